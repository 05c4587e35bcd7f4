// The visitor's own runs, one by one: where each stands, its accuracy, what is its own, and what can be done with it.
const exactly = (share) => (100 * share).toFixed(1) + "%";               // an accuracy: a race is decided by less than a whole percent
const isOver = (state) => !["queued", "starting", "running"].includes(state);

// A setting as a person reads it: { patch: [4, 4] } as "patch 4 × 4".
function settingText(value) {
  if (value === null || value === undefined || value === "") return WORDS.setting_none;
  if (typeof value === "boolean") return value ? WORDS.setting_on : WORDS.setting_off;
  if (Array.isArray(value)) return value.flat().length > 4 ? value.flat().slice(0, 4).join(", ") + " …" :
    value.map(settingText).join(" × ") || WORDS.setting_none;
  return String(value);
}

// What is each run's own: the settings whose value fewer than all share, and not most. By run: [[name, value]], the telling ones first.
const TELLING = ["data", "network", "patch", "dim", "depth", "heads", "pool", "positions", "optimizer", "lr", "muon_lr", "batch", "flip",
  "shift", "stages", "seed"];
function differences(runs) {
  const names = [...new Set([...TELLING, ...runs.flatMap((one) => Object.keys(one.settings ?? {}))])],
    text = (one, name) => JSON.stringify(one.settings?.[name] ?? null);
  return runs.map((one) => names.filter((name) => {
    const same = runs.filter((other) => text(other, name) === text(one, name)).length;
    return name in (one.settings ?? {}) && same < runs.length && same * 2 <= runs.length;
  }).map((name) => [name, one.settings[name]]));
}

const TAGS = 6;
const tags = (pairs) => [
  ...pairs.slice(0, TAGS).map(([name, value]) =>
    make("li", { text: name.replaceAll("_", " ") + " " }, make("b", { text: settingText(value) }))),
  ...(pairs.length > TAGS ? [make("li", { text: phrase(WORDS.and_more, { n: pairs.length - TAGS }),
    title: pairs.slice(TAGS).map(([name, value]) => name + " " + settingText(value)).join(", ") })] : []),
];

// A file in the server's hands: its path there. Rejects with a sentence.
async function handOver(file, megabytes) {
  const { name } = file, size = (n) => phrase(WORDS.megabytes, { n });
  if (megabytes && file.size > megabytes * 1e6)
    throw new Error(phrase(WORDS.file_too_large, { name, size: size(Math.ceil(file.size / 1e6)), most: size(megabytes) }));
  const sent = await Promise.resolve(upload(file)).catch(() => null);
  if (!sent?.path) throw new Error(phrase(WORDS.file_not_sent, { name }));
  return sent.path;
}

let sealed = () => false;                                                 // whether a run's numbers are hidden: see the race

// Files dropped on a box go to `act`; the box shows that it would take them.
function dropInto(box, act) {
  const over = (state) => (event) => {
    if (![...event.dataTransfer?.types ?? []].includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    box.dataset.over = String(state);
  };
  box.addEventListener("dragenter", over(true));
  box.addEventListener("dragover", over(true));
  box.addEventListener("dragleave", (event) => { if (!box.contains(event.relatedTarget)) box.dataset.over = "false"; });
  box.addEventListener("drop",
    (event) => { over(false)(event); if (event.dataTransfer?.files.length) act([...event.dataTransfer.files]); });
}

// One run in the list: a tick, its name, where it stands in words, its accuracy, what is its own, and what can be done with it.
function runItem(id, { tick, removed }) {
  let one = null;
  const node = make("li", { class: "vl-run-item" });
  const box = make("input", { type: "checkbox", onchange: () => tick(id, box.checked) }), mark = make("span", { class: "vl-ticked" });
  const title = make("span", { class: "vl-run-title" }), facts = make("span", { class: "vl-hint" }),
    chips = make("ul", { class: "vl-tags", "aria-label": WORDS.what_differs });
  const score = make("div", { class: "vl-score" });
  const button = (text, act, kind = "vl-button") => make("button",
    { type: "button", class: kind, text, onclick: (event) => doing(event.currentTarget, act) });
  const watch = make("button", { type: "button", class: "vl-button", onclick: () => watchRun(id) });
  const explore = make("button", { type: "button", class: "vl-button", text: WORDS.explore, onclick: () => openInExplore(id) });
  const more = make("button",
    { type: "button", class: "vl-button vl-more", text: WORDS.more, "aria-expanded": "false", onclick: () => unfold(extras.hidden) });
  const download = button(WORDS.download_checkpoint, fetchCheckpoint), resume = button(WORDS.go_on_training, goOn),
    stop = button(WORDS.stop, halt);
  const tune = make("button", { type: "button", class: "vl-button", text: WORDS.tune_from, onclick: () => startFrom() });
  const remove = make("button", { type: "button", class: "vl-button vl-danger", text: WORDS.delete, onclick: () => asked(true) });
  const yes = button(WORDS.delete_it, erase, "vl-button vl-danger"),
    no = make("button", { type: "button", class: "vl-button", text: WORDS.keep_it, onclick: () => asked(false) });
  const sure = make("div", { class: "vl-row vl-sure", role: "group", hidden: true },
    make("span", { text: WORDS.delete_run }), yes, no);
  const usual = make("div", { class: "vl-row" }, download, resume, stop, tune, remove);
  const extras = make("div", { class: "vl-extras", hidden: true, onkeydown: (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (sure.hidden) { unfold(false); more.focus(); } else asked(false);
  } }, usual, sure);
  node.append(make("label", { class: "vl-tick" }, box, mark), make("div", { class: "vl-run-main" }, title, facts, chips), score,
    make("div", { class: "vl-row vl-run-acts" }, watch, explore, more), extras);

  function unfold(open) {
    extras.hidden = !open;
    more.setAttribute("aria-expanded", String(open));
    if (!open) { sure.hidden = true; usual.hidden = false; }
  }

  function asked(open) {
    sure.hidden = !open;
    usual.hidden = open;
    (open ? no : remove).focus();
  }

  async function fetchCheckpoint() {
    say(phrase(WORDS.saved_whole, { saved: await saveModel(id) }));
  }

  async function goOn() { await ask({ question: "resume", run: id, mine: mine.known() }); emit("runs", mine.list()); choose(id); }

  async function halt() { await ask({ question: "stop", run: id }); emit("runs", mine.list()); }

  async function erase() { await ask({ question: "delete", run: id }); removed(id); say(WORDS.deleted); }

  const startFrom = () => emit("start-from", { start: id, startTitle: one.title });

  return {
    node,
    chosen(now) {
      node.dataset.chosen = String(now);
      watch.textContent = now ? WORDS.on_show : WORDS.watch;
      watch.setAttribute("aria-label", phrase(WORDS.what_value, { what: watch.textContent, value: title.textContent }));
      watch.setAttribute("aria-pressed", String(now));
    },
    mark(place) { box.checked = place >= 0; mark.replaceChildren(...(place >= 0 ? [swatch(STYLES[place])] : [])); },
    show(next, own) {
      one = next;
      const over = isOver(one.state), hidden = sealed(id), network = networkOf(one);
      title.textContent = one.title || one.preset || WORDS.a_run;
      const state = WORDS.states[one.state] ?? one.state;
      facts.textContent = [one.imported ? phrase(WORDS.from_file, { state }) : state,
        one.race ? phrase(WORDS.in_race, { side: one.race.side.toUpperCase() }) : "",
        one.seconds ? phrase(WORDS.trained_for, { time: clock(one.seconds) }) : "", ago(one.created)].filter(Boolean).join(" · ");
      chips.hidden = !own.length;
      chips.replaceChildren(...tags(own));
      score.replaceChildren(...scoreOf(one, hidden));
      box.setAttribute("aria-label", phrase(WORDS.lay_over, { title: title.textContent }));
      box.disabled = hidden || one.imported;
      watch.disabled = hidden;
      explore.disabled = hidden || !one.can.open;
      if (network === "cnn") explore.title = WORDS.no_attention;
      download.hidden = !one.can.download;
      resume.hidden = !one.can.resume || !lab.hello?.training;
      stop.hidden = over;
      tune.hidden = !one.can.open || !lab.hello?.training;
      for (const each of [explore, more])
        each.setAttribute("aria-label", phrase(WORDS.what_value, { what: each.textContent, value: title.textContent }));
    },
  };
}

const networkOf = (one) => one.network ?? one.settings?.network ?? "vit";

function watchRun(id) {
  choose(id);
  root.scrollIntoView({ block: "start" });
}

function scoreOf(one, hidden) {
  if (hidden) return [make("span", { class: "vl-hint", text: WORDS.hidden_until_vote })];
  const share = one.test ?? one.accuracy;
  if (share === null || share === undefined)
    return [make("span", { class: "vl-hint", text: one.imported ? WORDS.not_measured : WORDS.no_accuracy })];
  const which = one.test !== null && one.test !== undefined ? WORDS.of_test : WORDS.of_validation;
  return [make("b", { text: exactly(share) }),
    make("span", { class: "vl-hint", text: one.flatters ? phrase(WORDS.with_near_copies, { which }) : which, title: one.flatters })];
}

function ago(created) {
  const seconds = Date.now() / 1000 - created;
  if (!created || seconds < 0) return "";
  for (const [size, words] of [[86400, WORDS.days_ago], [3600, WORDS.hours_ago], [60, WORDS.minutes_ago]])
    if (seconds >= size) return phrase(words, { n: Math.floor(seconds / size) });
  return WORDS.just_now;
}

// Where the run stands, readable from the back row: its state in a word, the countdown, the accuracy, the speed;
// and what can be done with it.
(() => {
  const name = make("p", { class: "vl-run-name" }), state = make("h3", { class: "vl-state" }),
    sentence = make("p", { class: "vl-sentence-now" }),
    live = make("p", { class: "vl-hidden", role: "status" });
  const figure = (kind) => {
    const value = make("b", { class: "vl-value" }), what = make("span", { class: "vl-what" });
    return { box: make("div", { class: "vl-figure vl-figure-" + kind }, value, what), value, what };
  };
  const time = figure("left"), right = figure("right"), speed = figure("speed"), epoch = figure("passes");
  const caution = make("p", { class: "vl-caution", hidden: true });
  const bar = make("progress", { class: "vl-progress", max: 1, value: 0, "aria-label": WORDS.how_much_done });
  const button = (text, kind, act) => make("button",
    { type: "button", class: kind, text, onclick: (event) => doing(event.currentTarget, act) });
  const stop = button(WORDS.stop, "vl-button",
    async () => { await ask({ question: "stop", run: lab.id }); stopping = lab.id; fill(); lookNow(); });
  const open = button(WORDS.open_in_explore, "vl-primary", async () => openInExplore(lab.id));
  const resume = button(WORDS.go_on_training, "vl-button",
    async () => { await ask({ question: "resume", run: lab.id, mine: mine.known() }); mine.add(lab.id); lookNow(); });
  const download = button(WORDS.download_model, "vl-button", save);
  const again = button(WORDS.new_run, "vl-button", async () => { choose(null); root.querySelector(".vl-amount").focus(); });
  const output = make("pre", { class: "vl-output", tabindex: 0, role: "region", "aria-label": WORDS.last_lines });
  const skipped = make("details", { class: "vl-skipped" }, make("summary"), make("p", { class: "vl-hint" }));
  const plan = make("dl", { class: "vl-plan", id: "vl-plan", hidden: true });
  const more = make("button", { type: "button", class: "vl-button vl-more", "aria-controls": "vl-plan", "aria-expanded": "false",
    text: WORDS.all_settings, onclick: () => { plan.hidden = !plan.hidden; more.setAttribute("aria-expanded", String(!plan.hidden)); } });
  const box = make("section", { class: "vl-status", "aria-label": WORDS.the_run },
    make("div", { class: "vl-words" }, name, state, sentence, live),
    make("div", { class: "vl-figures" }, time.box, right.box, speed.box, epoch.box), caution, bar,
    make("div", { class: "vl-row vl-acts" }, open, stop, resume, download, again, more), output, skipped, plan);
  let stopping = null, end = null, ticking = 0, told = "";

  put($("top"), 10, box);

  // The countdown runs by this computer's clock between two answers; an answer moves it only where they differ by more than a breath.
  function aim(left) {
    const now = performance.now();
    if (left === null || left === undefined) { end = null; return; }
    if (end === null || Math.abs(end - now - 1000 * left) > 1500) end = now + 1000 * left;
    else end += (now + 1000 * left - end) / 4;
  }

  function tick() {
    clearTimeout(ticking);
    const status = lab.status;
    if (!status || status.over || end === null || !root.isConnected) return;
    const left = Math.max(0, (end - performance.now()) / 1000), text = clock(left);
    if (time.value.textContent !== text) time.value.textContent = text;
    ticking = setTimeout(tick, 1000 * (left % 1 || 1) % 500 + 60);
  }

  function show({ box: tile, value, what }, text, words) {
    tile.hidden = text === null;
    if (text === null) return;
    if (value.textContent !== text) value.textContent = text;
    if (what.textContent !== words) what.textContent = words;
  }

  // A share and its standard error as people read them: 62.4 %, ± 1.1.
  const exact = (share) => (100 * share).toFixed(1) + "%";
  const error = (share) => typeof share === "number" ? ", ±\u00a0" + (100 * share).toFixed(1) : "";

  function figures(status) {
    const looks = lab.rows.filter((row) => typeof row.accuracy === "number"), { test } = lab;
    // of a run that is over the best look counts: those weights are kept, opened and taken home
    const last = status.over ? looks.reduce((best, look) => best?.accuracy >= look.accuracy ? best : look, null) : looks.at(-1);
    aim(status.over ? null : status.seconds_left);
    if (status.over) show(time, status.seconds ? clock(status.seconds) : null, WORDS.trained);
    else if (status.state === "queued") show(time, status.position > 1 ? String(status.position - 1) : null, WORDS.in_line);
    // else the test
    else if (end === null) show(time, status.state === "running" && status.progress < 1 ? "–:––" : null, WORDS.timing_first);
    else { show(time, clock((end - performance.now()) / 1000), WORDS.time_left); tick(); }
    if (test) show(right, exact(test.accuracy),
      phrase(WORDS.right_of_test_n, { n: test.n.toLocaleString("en"), error: error(test.standard_error) }));
    else if (last) show(right, exact(last.accuracy), last.step === 0 ? WORDS.right_untrained :
      phrase(WORDS.right_of.validation, { error: error(last.look?.standard_error) }));
    else if (typeof (status.test_accuracy ?? status.accuracy) === "number") show(right, exact(status.test_accuracy ?? status.accuracy),
      phrase(WORDS.right_of[typeof status.test_accuracy === "number" ? "test" : "validation"], { error: "" }));
    else show(right, null);
    caution.textContent = right.box.hidden ? "" : lab.flatters;
    caution.hidden = !caution.textContent;
    // while it runs the speed of late, afterwards that of the whole run
    const newest = lab.rows.at(-1);
    const pace = status.over ? newest?.seconds && newest.images / newest.seconds : status.state === "running" && status.images_per_second;
    show(speed, pace ? Math.round(pace).toLocaleString("en") : null, WORDS.images_a_second);
    const passes = status.epoch || newest?.epoch;
    show(epoch, passes ? passes.toFixed(1) : null, WORDS.passes_made);
  }

  function fill() {
    const { status, can } = lab;
    box.dataset.state = status?.state ?? "";
    if (status?.over) stopping = null;
    if (!status) {
      for (const part of [time, right, speed, epoch]) part.box.hidden = true;
      name.textContent = sentence.textContent = "";
      state.textContent = lab.id ? WORDS.asking : "";
      for (const part of [caution, bar, stop, open, resume, download, output, skipped, plan, more]) part.hidden = true;
      return;
    }
    const own = lab.id !== "recorded", ending = (stopping === lab.id || status.stopping) && !status.over;
    state.textContent = lab.plan?.imported ? WORDS.loaded_model : ending ? WORDS.stopping : WORDS.states[status.state] ?? status.state;
    const words = ending ? WORDS.best_kept : status.queue_sentence || status.head || "";
    sentence.textContent = words.replace(/^(Training|Finished|Stopped|Starting|Waiting|Failed)[.:;]\s*/, "")
      .replace(/^./, (letter) => letter.toUpperCase());
    hear(live, state.textContent + ". " + sentence.textContent);
    figures(status);
    bar.hidden = status.state === "failed" && !status.progress || Boolean(lab.plan?.imported);
    bar.value = status.progress || 0;
    bar.setAttribute("aria-valuetext", phrase(WORDS.percent_n, { n: Math.round(100 * bar.value) }));
    stop.hidden = status.over || !own;
    stop.disabled = ending;
    open.hidden = !can.open;
    resume.hidden = !(status.over && can.resume) || !own || !lab.hello?.training;
    download.hidden = !can.download;
    again.hidden = !status.over || !lab.hello?.training;
    output.hidden = !(status.state === "failed" && status.output?.length);
    output.textContent = (status.output ?? []).join("\n");
    skipped.hidden = !lab.left.line;
    skipped.firstChild.textContent = lab.left.line;
    skipped.lastChild.textContent = lab.left.names.join(", ") || WORDS.all_read;
    fillPlan();
  }

  const plain = (what, value) => typeof value === "boolean" ? (value ? WORDS.setting_on : WORDS.setting_off) :
    Array.isArray(value) ? value.join(["image", "patch"].includes(what) ? " × " : ", ") || WORDS.setting_none : String(value);

  // The run's title, and of its kind what the title does not say already.
  function called({ title = "", network, model, data = "", preset, start }) {
    const kind = [[network === "cnn" ? WORDS.small_cnn : model], [data.split(":")[0]],
      [preset, preset && phrase(WORDS.by_recipe, { name: preset })],
      [start && phrase(WORDS.begun_from, { model: start[0].toLowerCase() + start.slice(1) })]];
    return [title, ...kind.filter(([part]) => part && !title.includes(part)).map(([part, words = part]) => words)]
      .filter(Boolean).join(" · ");
  }

  function fillPlan() {
    const { plan: wish } = lab;
    more.hidden = !wish?.settings?.length;
    plan.hidden ||= more.hidden;
    name.textContent = wish ? called(wish) : "";
    if (told === lab.id || more.hidden) return;
    told = lab.id;
    const asked = wish.settings.filter(([what, value]) => !(["minutes", "epochs", "steps"].includes(what) && !value));
    plan.replaceChildren(...asked.map(([what, value]) => make("div", {}, make("dt", { text: String(what).replaceAll("_", " ") }),
      make("dd", { text: plain(what, value) }))));
  }

  async function save() {
    say(phrase(WORDS.model_saved_here, { saved: await saveModel(lab.id) }));
  }

  on("run", () => { more.setAttribute("aria-expanded", "false"); end = null; told = ""; stopping = null; fill(); });
  on("status", fill);
  on("news", () => figures(lab.status));
})();

// A fair race: two runs that differ in one thing. Chosen here, with the total time said first; 66 shows how it goes.
let openRace;                                                            // shows the form, or the race that is going: set in 66
const race = (() => {
  // { race, kind, question, a, b, minutes, seeds, data, seconds, runs: [{ run, side, seed }], vote, looked }
  let now = mine.race();                                                 // where nothing can be kept it lasts as long as the page
  // what another tab began, voted or ended
  window.addEventListener("storage", (event) => {
    if (event.key !== OWN_RACE || !root.isConnected) return;
    now = mine.race();
    mine.tell();
    openRace();
  });
  return {
    now: () => now,
    keep(next) {
      now = next;
      try { if (next) localStorage.setItem(OWN_RACE, JSON.stringify(next)); else localStorage.removeItem(OWN_RACE); } catch { /* see `now` */ }
      mine.tell();                                                       // what is hidden changes with the vote
    },
    hidden: () => mine.unvoted(now),
  };
})();

sealed = (id) => race.hidden() && race.now().runs.some(({ run }) => run === id);

// Whatever way leads to a run that is sealed ends before its numbers are drawn.
on("run", (id) => {
  if (id && sealed(id)) Promise.resolve().then(() => {
    if (lab.id === id) { choose(null); say(WORDS.run_sealed, true); }
  });
});

(() => {
  const { box, body } = section("runs", 20, WORDS.race, WORDS.race_line, { open: Boolean(race.now()) });
  const form = make("form", { class: "vl-lines", onsubmit: (event) => { event.preventDefault(); start(); } }),
    stage = make("div", { class: "vl-lines vl-race", hidden: true });
  const kinds = make("div", { class: "vl-cards" });
  const minutes = make("input",
    { type: "number", min: 0.1, max: 60, step: "any", value: 1, id: "vl-race-minutes", oninput: () => price() });
  const data = make("select", { id: "vl-race-data", onchange: () => price() });
  const three = make("input", { type: "checkbox", id: "vl-race-seeds", onchange: () => price() });
  const total = make("p", { role: "status", class: "vl-total" }),
    go = make("button", { type: "submit", class: "vl-primary", text: WORDS.start_race, disabled: true });
  let timer = 0, turn = 0, seconds = null;

  form.append(make("fieldset", {}, make("legend", { text: WORDS.race_tests }), kinds),
    make("div", { class: "vl-row vl-race-ways" }, make("label", {}, WORDS.minutes_each, minutes),
      make("label", {}, WORDS.pictures, data), make("label", {}, three, make("span", {}, WORDS.three_seeds + " ",
        make("span", { class: "vl-hint", text: WORDS.three_seeds_hint })))),
    make("div", { class: "vl-row" }, go, total));
  body.append(form, stage);
  box.addEventListener("toggle", () => { if (box.open && !race.now()) price(); });

  on("hello", (hello) => {
    box.hidden = !hello.races?.length || (!hello.training && !race.now());
    kinds.replaceChildren(...(hello.races ?? []).map((kind, i) => make("label", { class: "vl-card" },
      make("input", { type: "radio", name: "vl-race-kind", value: kind.kind, checked: i === 0, onchange: () => price() }),
      make("span", { class: "vl-card-text" }, make("b", { text: kind.question }), make("span", { text: phrase(WORDS.a_or_b, kind) }),
        make("span", { class: "vl-hint", text: WORDS.both_get[kind.budget] })))));
    data.replaceChildren(...(hello.data ?? []).map((one) => make("option", { value: one.name, text: one.title })));
    minutes.max = hello.max_minutes ?? 60;
    openRace();
  });

  const wish = () => ({ question: "race", kind: kinds.querySelector("input:checked")?.value, minutes: Number(minutes.value),
    seeds: three.checked ? 3 : 1, data: data.value });

  // The total time is said before anybody can start.
  function price() {
    clearTimeout(timer);
    go.disabled = true;
    const mine_ = ++turn;
    timer = setTimeout(async () => {
      try {
        const answer = await ask({ ...wish(), dry: true });
        if (mine_ !== turn) return;
        if (answer.measuring) {
          write(total, answer.sentence ?? WORDS.timing_computer);
          timer = setTimeout(() => mine_ === turn && price(), 1500);
          return;
        }
        seconds = answer.seconds;
        total.className = "vl-total";
        write(total, answer.sentence ?? phrase(WORDS.takes, { time: clock(answer.seconds) }));
        go.disabled = false;
      } catch (failure) {
        if (mine_ !== turn) return;
        write(total, failure.message);
        total.className = "vl-total vl-trouble";
        if (failure.answer && !failure.answer.busy && !failure.answer.again) return;
        if (await later(() => mine_ === turn && box.open && !form.hidden)) price();             // "when that is over"
      }
    }, 200);
  }

  async function start() {
    const request = wish(), kind = lab.hello.races.find((one) => one.kind === request.kind);
    await doing(go, async () => {
      const answer = await ask({ ...request, mine: mine.known() });
      race.keep({ race: answer.race, kind: request.kind, question: kind.question, a: kind.a, b: kind.b, minutes: request.minutes,
        seeds: request.seeds, data: request.data, seconds, runs: answer.runs, vote: null, looked: false });
      for (const { run } of answer.runs) mine.add(run);
      openRace({ focus: true });
    });
  }

  // The same race again, or the same over three seeds.
  function again({ seeds }) {
    const { kind, minutes: each, data: source } = race.now();
    race.keep(null);
    for (const input of kinds.querySelectorAll("input")) input.checked = input.value === kind;
    minutes.value = each;
    data.value = source;
    three.checked = seeds === 3;
    openRace();
    price();
    go.scrollIntoView({ block: "nearest" });
    kinds.querySelector("input:checked")?.focus();
  }

  openRace = ({ focus = false } = {}) => {
    form.hidden = Boolean(race.now());
    stage.hidden = !race.now();
    if (race.now()) { box.open = true; showRace(stage, { again, focus }); } else if (box.open) price();
  };
})();

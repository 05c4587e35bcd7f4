// "You have 3 minutes": one number, one button, and what this machine can do in that time. Everything else about a new run is in `form`,
// which the part after this one fills; `null` stands for what the server proposes.
const form = { unit: "minutes", amount: 3, data: null, preset: null, model: null, start: "", freeze: false, title: "", film: [],
  changes: {}, startTitle: "" };
// the server's last proposal; `fill`, `change`, `wish` for the other part
const setup = { offer: null };

(() => {
  const first = make("span"), unit = make("span");
  const amount = make("input", { class: "vl-amount", type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 6,
    "aria-describedby": "vl-refusal", oninput: () => typed() });
  const go = make("button", { type: "submit", class: "vl-primary vl-go", text: WORDS.start_training });
  const slider = make("input", { class: "vl-minutes", type: "range", min: 1, max: 60, step: 1, "aria-label": WORDS.minutes_slider,
    oninput: () => { amount.value = slider.value; typed(); } });
  const ends = make("span", { class: "vl-hint vl-number" });
  const slide = make("div", { class: "vl-minutes-row" }, make("span", { class: "vl-hint", text: "1" }), slider, ends);
  const refusal = make("p", { id: "vl-refusal", class: "vl-trouble", role: "alert" });
  const offer = make("p", { class: "vl-offer", "aria-live": "polite" });
  const about = make("span"),
    other = make("button", { type: "button", class: "vl-link", text: WORDS.other_pictures, onclick: () => setup.pictures() });
  const back = make("button", { type: "button", class: "vl-button", text: WORDS.back_to_run, onclick: () => choose(before) });
  const sentence = make("label", { class: "vl-sentence" }, first, amount, unit);
  const hero = make("form", { class: "vl-hero", novalidate: true, onsubmit: (event) => { event.preventDefault(); start(); } },
    make("div", { class: "vl-ask" }, sentence, go), refusal, slide, offer, make("p", { class: "vl-hint" }, about, " ", other),
    make("div", { class: "vl-row" }, back));
  let asked = 0, waiting = 0, before = null;

  put($("setup"), 10, hero);

  // The number as it stands, or null after saying what is wrong with it.
  function read() {
    const value = numberOf(amount.value), most = lab.hello.max_minutes, minutes = form.unit === "minutes";
    const wrong = minutes ? !(value > 0 && value <= most) : !(Number.isInteger(value) && value > 0);
    amount.setAttribute("aria-invalid", String(wrong));
    refusal.textContent = !wrong ? "" : !minutes ? WORDS.give_whole_length[form.unit] :
      value > most ? phrase(WORDS.too_many_minutes, { n: most }) : phrase(WORDS.give_minutes, { most });
    return wrong ? null : value;
  }

  const fit = () => { amount.style.width = Math.max(1, amount.value.length) + 0.35 + "ch"; };

  function typed() {
    const value = read();
    fit();
    if (value === null) { asked++; clearTimeout(waiting); offer.textContent = ""; return; }
    form.amount = value;
    slider.value = value;
    setup.change();
  }

  // The length, set by something else than the number field, which may hold nonsense until now.
  setup.length = (name, value) => {
    form.unit = name;
    form.amount = amount.value = value;
    amount.setAttribute("aria-invalid", "false");
    refusal.textContent = "";
  };

  // What a run is asked to be, in the server's words.
  setup.wish = () => {
    // a proposal is for minutes; without one the server takes what goes with the pictures
    const preset = form.preset ?? (form.unit === "minutes" ? setup.offer?.preset : null);
    return { ...(preset ? { preset } : {}), ...(form.model ? { model: form.model } : {}), data: form.data, [form.unit]: form.amount,
      changes: changes(), start: form.start, freeze: form.freeze };
  };

  // What was changed, but for the shape of a model that brings its own.
  const changes = () => Object.fromEntries(Object.entries(form.changes).filter(([name]) =>
    !form.start || lab.hello.settings.find((one) => one.name === name)?.group !== "model"));

  // After every change of the form: a little later, because people type, the proposal is asked for again.
  setup.change = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => propose(), 350);
    emit("form", form);
  };

  setup.fill = () => {
    [first.textContent, unit.textContent] = around(WORDS.length_asked[form.unit], "field", { n: form.amount });
    fit();
    offer.hidden = form.unit !== "minutes";
    slide.hidden = form.unit !== "minutes" || lab.hello.max_minutes < 2;
    slider.value = form.amount;
    slider.setAttribute("aria-valuetext", phrase(WORDS.n_minutes, { n: form.amount }));
    go.textContent = form.start ? WORDS.start_tuning : WORDS.start_training;
    const data = lab.hello.data.find((one) => one.name === form.data), pictures = (data?.title ?? form.data).replace(": ", ", "),
      given = [phrase(form.start ? WORDS.learns_on : WORDS.learns_new, { pictures })];
    if (data && !data.here && data.note) given.push(data.note);
    if (form.start)
      given.push(phrase(form.freeze ? WORDS.begins_with_frozen : WORDS.begins_with, { model: form.startTitle || WORDS.a_trained_model }));
    about.textContent = given.map((text) => text.replace(/\.*$/, ".")).join(" ");
    back.hidden = !before;
  };

  const request = () => ({ question: "offer", minutes: form.amount, data: form.data, ...(form.preset ? { preset: form.preset } : {}),
    ...(form.model ? { model: form.model } : {}), changes: changes(), start: form.start, freeze: form.freeze });

  // Asks for a proposal once. The recipe comes at once, the rest when the pace of this computer was measured.
  async function suggest() {
    const wanted = request(), answer = await ask(wanted);
    setup.offer = { ...answer, about: JSON.stringify(wanted) };
    emit("offer", answer);
    return answer;
  }

  async function propose(again = false) {
    const turn = ++asked, wanted = () => turn === asked && !$("setup").hidden;
    const retry = async () => { if (await later(wanted)) propose(true); };
    setup.fill();
    if (form.unit !== "minutes") { setup.offer = null; offer.textContent = ""; return; }
    for (let first = true; wanted() && root.isConnected; first = false) {
      let answer;
      try { answer = await suggest(); } catch (failure) {
        if (turn !== asked) return;
        write(offer, failure.message);
        if (!failure.answer || failure.answer.busy) retry();
        return;
      }
      if (turn !== asked) return;
      if (!answer.measuring) { write(offer, answer.sentence); if (answer.busy) retry(); return; }
      if (first && !again) write(offer, WORDS.timing_computer);
      await pause(700);
    }
  }

  async function start() {
    if (go.disabled || !lab.hello) return;
    if (read() === null) { amount.focus(); return; }
    const wrong = root.querySelector(".vl-advanced [aria-invalid=true]");
    if (wrong) {
      for (let fold = wrong.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      wrong.focus();
      return;
    }
    go.disabled = true;
    refusal.textContent = "";
    try {
      // somebody was quicker than the proposal
      if (form.unit === "minutes" && setup.offer?.about !== JSON.stringify(request())) await suggest();
      const film = [];
      for (const { file } of form.film) film.push((await upload(file)).path);
      const { run } = await ask({ question: "start", ...setup.wish(), film, title: form.title, mine: mine.known() });
      mine.add(run);
      choose(run);
      root.scrollIntoView({ block: "start" });
    } catch (failure) {
      if (failure.answer?.runs) { choose(failure.answer.runs[0]); say(failure.message, true); }
      else refusal.textContent = failure.answer === undefined ? WORDS.film_not_uploaded : failure.message;
    }
    go.disabled = false;
  }

  setup.start = start;

  on("hello", (hello) => {
    form.data ??= hello.data[0]?.name ?? null;
    setup.length("minutes", Math.min(form.amount, hello.max_minutes));
    slider.max = Math.floor(hello.max_minutes);
    ends.textContent = Math.floor(hello.max_minutes);
  });

  on("run", (id) => {
    if (id) { before = id === "recorded" ? before : id; asked++; return; }
    if (!lab.hello?.training) return;
    setup.fill();
    setup.change();
  });

  // a run that learns has fetched its pictures
  on("news", ({ rows }) => {
    const known = lab.id !== "recorded" && rows.length && lab.hello?.data.find((one) => one.title === lab.plan?.data);
    if (known) known.here = true;
  });

  on("runs", (runs) => { if (!runs.includes(before)) before = runs[0] ?? null; back.hidden = !before; });

  on("start-from", (wanted) => {
    const { minutes, title, ...rest } = wanted;
    Object.assign(form, { start: "", startTitle: title ?? "", freeze: false, changes: {}, preset: null, model: null }, rest);
    if (minutes) setup.length("minutes", minutes);
    if (form.dataTitle && form.data && !lab.hello.data.some((one) => one.name === form.data))
      lab.hello.data.push({ name: form.data, title: form.dataTitle, here: true, note: "" });
    if (lab.id) choose(null); else { setup.fill(); setup.change(); }
    hero.scrollIntoView({ block: "nearest" });
    amount.focus();
  });
})();

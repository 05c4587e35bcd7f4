// From one's own pictures to a run: from scratch, or on top of what a trained encoder already knows.
function buildOwnTraining() {
  const way = (value, title, line) => make("label", { class: "vl-card" }, make("input", { type: "radio", name: "vl-own-way", value,
    checked: value === "tune", onchange: () => { if (!touched) minutes.value = tuning() ? 0.5 : 3; change(); } }),
    make("span", { class: "vl-card-text" }, make("b", { text: title }), make("span", { class: "vl-hint", text: line })));
  const from = make("select", { id: "vl-own-start", onchange: () => change() },
    make("option", { value: "box", text: WORDS.model_in_the_box }));
  const freeze = make("input", { type: "checkbox", onchange: () => change() }),
    minutes = make("input", { type: "number", min: 0.1, max: 60, step: "any", value: 0.5, oninput: () => { touched = true; change(); } });
  const told = make("p", { role: "status", class: "vl-hint" }),
    go = make("button", { type: "submit", class: "vl-primary", disabled: true });
  const more = make("button", { type: "button", class: "vl-button vl-quiet", text: WORDS.all_settings, onclick: () => emit("start-from",
    { ...request(), dataTitle: collected.title || WORDS.set_in_sentence, startTitle: from.selectedOptions[0]?.textContent }) });
  const begin = make("div", { class: "vl-row vl-race-ways" }, make("label", {}, WORDS.begin_with, from),
    make("label", {}, freeze,
      make("span", {}, WORDS.freeze + " ", make("span", { class: "vl-hint", text: WORDS.freeze_line }))));
  const form = make("form", { class: "vl-lines vl-own-training", onsubmit: (event) => { event.preventDefault(); start(); } },
    make("h4", { text: WORDS.own_training }),
    make("div", { class: "vl-cards" }, way("tune", WORDS.tune, WORDS.tune_line),
      way("scratch", WORDS.scratch, WORDS.scratch_line)),
    begin, make("div", { class: "vl-row" }, make("label", {}, WORDS.own_minutes, minutes), go, more), told);
  let timer = 0, turn = 0, checkedFor = "", touched = false;

  const tuning = () => form.querySelector("input[name=vl-own-way]:checked").value === "tune";
  const request = () =>
    ({ data: collected.id, minutes: Number(minutes.value), start: tuning() ? from.value : "", freeze: tuning() && freeze.checked });

  on("hello", (hello) => { minutes.max = hello.max_minutes ?? 60; });
  on("set", () => change());
  on("listed", (rows) => {
    const chosen = from.value;
    from.replaceChildren(make("option", { value: "box", text: WORDS.model_in_the_box }),
      ...rows.filter((one) => one.can.open).map((one) => make("option", { value: one.id, text: one.title || one.id.slice(0, 6) })));
    from.value = [...from.options].some((option) => option.value === chosen) ? chosen : "box";
  });

  // What is missing, or what the run will be in the server's words; asked for again only where something changed.
  function change() {
    const ready = collected.cards.filter((card) => card.count > 1), lonely = collected.cards.find((card) => card.count === 1);
    begin.hidden = !tuning();
    go.textContent = tuning() ? WORDS.tune : WORDS.scratch;
    const missing = ready.length < 2 ? WORDS.too_few : lonely ? phrase(WORDS.lonely, { name: lonely.name }) : "";
    go.disabled = Boolean(missing || collected.busy);
    more.hidden = Boolean(missing);
    if (missing) { turn++; checkedFor = ""; told.className = "vl-hint"; told.textContent = missing; return; }
    const now = JSON.stringify([request(), collected.cards.map((card) => card.count)]);
    if (now === checkedFor || collected.busy) return;
    checkedFor = now;
    tell("");
    clearTimeout(timer);
    const mine_ = ++turn;
    timer = setTimeout(async () => {
      try { const { sentence } = await ask({ question: "check", ...request() }); if (mine_ === turn) tell(sentence); }
      catch (failure) { if (mine_ === turn) { tell(failure.message, true); go.disabled = Boolean(failure.answer); } }
    }, 250);
  }

  function tell(text, trouble = false) { told.textContent = text; told.className = trouble ? "vl-trouble" : "vl-hint"; }

  async function start() {
    closeCamera();
    tell(WORDS.starting);
    await doing(go, async () => {
      try {
        const title = collected.title || WORDS.set_untitled;
        const { run } = await ask({ question: "start", ...request(),
          title: tuning() ? phrase(WORDS.tuned_title, { title }) : title, mine: mine.known() });
        mine.add(run);
        choose(run);
        root.scrollIntoView({ block: "start" });
        tell(WORDS.started);
      } catch (failure) { tell(failure.message, true); throw failure; }
    });
  }

  return form;
}

// From one's own pictures to a run: from scratch, or on top of what a trained encoder already knows.
function buildOwnTraining() {
  const way = (value, title, line) => make("label", { class: "vl-card" }, make("input", { type: "radio", name: "vl-own-way", value,
    checked: value === "tune", onchange: () => { if (!touched) minutes.value = tuning() ? 0.5 : 3; change(); } }),
    make("span", { class: "vl-card-text" }, make("b", { text: title }), make("span", { class: "vl-hint", text: line })));
  const from = make("select", { id: "vl-own-start", onchange: () => change() },
    make("option", { value: "box", text: "the model in the box" }));
  const freeze = make("input", { type: "checkbox", onchange: () => change() }),
    minutes = make("input", { type: "number", min: 0.1, max: 60, step: "any", value: 0.5, oninput: () => { touched = true; change(); } });
  const told = make("p", { role: "status", class: "vl-hint" }),
    go = make("button", { type: "submit", class: "vl-primary", disabled: true });
  const more = make("button", { type: "button", class: "vl-button vl-quiet", text: "All settings", onclick: () => emit("start-from",
    { ...request(), dataTitle: collected.title || "my pictures", startTitle: from.selectedOptions[0]?.textContent }) });
  const begin = make("div", { class: "vl-row vl-race-ways" }, make("label", {}, "Begin with", from),
    make("label", {}, freeze,
      make("span", {}, "Keep its encoder frozen ", make("span", { class: "vl-hint", text: "only the new head learns: quickest" }))));
  const form = make("form", { class: "vl-lines vl-own-training", onsubmit: (event) => { event.preventDefault(); start(); } },
    make("h4", { text: "Train with these pictures" }),
    make("div", { class: "vl-cards" }, way("tune", "Fine-tune", "a trained encoder with a fresh head; best with few pictures"),
      way("scratch", "Train from scratch", "random weights; wants hundreds of pictures of each class")),
    begin, make("div", { class: "vl-row" }, make("label", {}, "Minutes", minutes), go, more), told);
  let timer = 0, turn = 0, checkedFor = "", touched = false;

  const tuning = () => form.querySelector("input[name=vl-own-way]:checked").value === "tune";
  const request = () =>
    ({ data: collected.id, minutes: Number(minutes.value), start: tuning() ? from.value : "", freeze: tuning() && freeze.checked });

  on("hello", (hello) => { minutes.max = hello.max_minutes ?? 60; });
  on("set", () => change());
  on("listed", (rows) => {
    const chosen = from.value;
    from.replaceChildren(make("option", { value: "box", text: "the model in the box" }),
      ...rows.filter((one) => one.can.open).map((one) => make("option", { value: one.id, text: one.title || one.id.slice(0, 6) })));
    from.value = [...from.options].some((option) => option.value === chosen) ? chosen : "box";
  });

  // What is missing, or what the run will be in the server's words; asked for again only where something changed.
  function change() {
    const ready = collected.cards.filter((card) => card.count > 1), lonely = collected.cards.find((card) => card.count === 1);
    begin.hidden = !tuning();
    go.textContent = tuning() ? "Fine-tune" : "Train from scratch";
    const missing = ready.length < 2 ? "Give at least two classes two pictures each; a few dozen each make it useful." : lonely ?
      lonely.name + " has one picture only: one more is needed, to check with." : "";
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
    tell("Starting …");
    await doing(go, async () => {
      try {
        const { run } = await ask({ question: "start", ...request(),
          title: (collected.title || "My pictures") + (tuning() ? ", fine-tuned" : ""), mine: mine.known() });
        mine.add(run);
        choose(run);
        root.scrollIntoView({ block: "start" });
        tell("Started: it is shown above.");
      } catch (failure) { tell(failure.message, true); throw failure; }
    });
  }

  return form;
}

// What it got wrong: one report of the validation part per look, one of the test part at the end; accuracy, classes, and
// the parts that follow.
const mistakes = { part: "validation", parts: {}, panes: [] };
(() => {
  const { box, body } = section("run", 50, "What it got wrong",
    "How often it is right, which classes it takes for which, and whether it knows when it is unsure.");
  const { parts } = mistakes;
  mistakes.box = box;
  mistakes.classes = () => lab.scene?.classes ?? lab.test?.classes ?? [];

  // The report on show as { part, confusion, calibration, ece, perClass, accuracy, error, n, frame }, or null. The test
  // part is looked at once, at the end.
  mistakes.report = () => {
    if (mistakes.part === "test" && lab.test) {
      const { confusion, calibration, ece, accuracy, standard_error, n } = lab.test;
      return { part: "test", confusion, calibration: calibration ?? [], ece, accuracy, error: standard_error, n,
        perClass: shares(confusion), frame: null };
    }
    const frame = lab.frames[lab.index];
    return frame?.report ? { part: "validation", ...frame.report, perClass: frame.report.per_class, accuracy: frame.accuracy,
      error: frame.standard_error, n: frame.n, frame } : null;
  };

  const total = (row) => row.reduce((a, b) => a + b, 0);
  const shares = (confusion) => confusion.map((row, i) => total(row) ? row[i] / total(row) : null);
  mistakes.total = total;

  function build() {
    const chip = (part, text) => make("button",
      { type: "button", class: "vl-chip", "data-part": part, text, onclick: () => { mistakes.part = part; update(); } });
    Object.assign(parts, {
      which: make("div", { class: "vl-row", role: "group", "aria-label": "Part of the pictures" },
        chip("validation", "Validation, at every look"), chip("test", "Test, once at the end")),
      about: make("p", { class: "vl-hint" }),
      number: make("p", { class: "vl-big" }), said: make("p", { class: "vl-hint" }), bars: make("ol", { class: "vl-bars" }),
      sort: make("input", { type: "checkbox", oninput: () => update() }),
      empty: make("p", { class: "vl-hint", role: "status" }), whole: make("div", { class: "vl-mistakes", hidden: true }),
      matrix: make("section", { class: "vl-matrix-pane", "aria-label": "Confusion matrix" }),
      cell: make("section", { class: "vl-cell-pane", "aria-label": "Pictures of one cell" }),
      reliability: make("section", { class: "vl-reliability-pane", "aria-label": "Reliability" }),
    });
    parts.classes = make("section", { class: "vl-classes", "aria-label": "Accuracy of each class" }, make("h4", { text: "Each class" }),
      make("label", {}, parts.sort, "Worst first"), parts.bars);
    parts.whole.append(make("section", { class: "vl-share", "aria-label": "Accuracy" }, parts.number, parts.said), parts.matrix,
      parts.classes, parts.cell, parts.reliability);
    body.append(parts.which, parts.about, parts.empty, parts.whole);
    box.addEventListener("toggle", update);
  }

  function update() {
    if (mistakes.part === "test" && !lab.test) mistakes.part = "validation";
    const report = mistakes.report(), test = parts.which.lastChild;
    for (const chip of parts.which.children) chip.setAttribute("aria-pressed", String(chip.dataset.part === mistakes.part));
    test.disabled = !lab.test;
    parts.about.textContent = lab.test ? (mistakes.part === "test" ?
      "Pictures that played no part in training: neither to learn from nor to choose the best weights." : where(report?.frame)) :
      where(report?.frame) + (lab.status?.over ? " The test part was not looked at: this run ended before." :
        " The test part stays closed until the run is over, so that nothing can be chosen by it.");
    parts.whole.hidden = !report;
    parts.empty.hidden = Boolean(report);
    parts.empty.textContent = lab.plan?.imported ? "Nothing was measured here: this model was loaded from a file." : lab.status?.over ?
      "This run ended before it was measured." : "The first look at the validation pictures is still to come.";
    if (!report || !box.open) return;
    drawNumber(report);
    drawBars(report);
    for (const pane of mistakes.panes) pane(report);
  }
  mistakes.update = update;

  function where(frame) {
    if (!frame) return "";
    const held = "Pictures held out from training; the weights that did best on them are kept, so this number flatters a little.";
    return (lab.index === lab.frames.length - 1 ? (lab.status?.over ? "The last look" : "The newest look") :
      "Look " + (lab.index + 1) + " of " + lab.frames.length + ", as the film stands") + ", step " + frame.step + ". " + held;
  }

  function drawNumber({ accuracy, error, n, part }) {
    const known = mistakes.classes().length, wrong = Math.round(n * (1 - accuracy));
    parts.number.replaceChildren(make("strong", { text: (100 * accuracy).toFixed(1) + "%" }), " ± " + (100 * error).toFixed(1) + " right");
    parts.said.textContent = wrong.toLocaleString("en") + " of " + n.toLocaleString("en") + " " + part + " pictures were named wrongly. " +
      "± is one standard error: with other pictures of the same kind the number would differ about so much. " +
      (known > 1 ? "Guessing would be right " + percent(1 / known) + " of the time." : "") + (lab.flatters ? " " + lab.flatters : "");
  }

  // One bar per class with its standard error as a line across the bar's end.
  function drawBars({ perClass, confusion }) {
    const names = mistakes.classes(), order = perClass.map((_, i) => i);
    if (parts.sort.checked) order.sort((one, two) => (perClass[one] ?? 2) - (perClass[two] ?? 2));
    parts.bars.classList.toggle("vl-many", order.length > 20);
    parts.bars.replaceChildren(...order.map((i) => {
      const share = perClass[i], n = confusion ? total(confusion[i]) : 0;
      const error = share === null || !n ? 0 : Math.sqrt(share * (1 - share) / n);
      const low = Math.max(0, share - error), high = Math.min(1, share + error);
      return make("li", {}, make("span", { class: "vl-bar-name", text: names[i] }),
        make("span", { class: "vl-bar-number",
          text: share === null ? "no pictures" : !n ? percent(share) : share === 1 ? "all of " + n : share === 0 ? "none of " + n :
          percent(share) + " ± " + (100 * error).toFixed(share < 0.0995 ? 1 : 0) + ", n = " + n }),
        make("div", { class: "vl-gauge" }, make("div", { style: "width:" + 100 * (share ?? 0) + "%" }),
          ...(error === 0 ? [] : [make("i", { style: "left:" + 100 * low + "%;width:" + 100 * (high - low) + "%" })])));
    }));
  }

  build();
  on("run", () => { mistakes.part = "validation"; update(); });
  on("news", update);
  // while a film plays, the browser says when there is time to draw
  let ended = null, soon = 0;
  on("scrub", () => { if (mistakes.part === "validation") soon ||= requestAnimationFrame(() => { soon = 0; update(); }); });
  on("status",
    () => { const stamp = [lab.id, Boolean(lab.test), lab.status?.over].join("|"); if (stamp !== ended) { ended = stamp; update(); } });
})();

// What it got wrong: one report of the validation part per look, one of the test part at the end; accuracy, classes, and
// the parts that follow.
const mistakes = { part: "validation", parts: {}, panes: [] };
(() => {
  const { box, body } = section("run", 50, WORDS.mistakes, WORDS.mistakes_line);
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
      which: make("div", { class: "vl-row", role: "group", "aria-label": WORDS.part_of_pictures },
        chip("validation", WORDS.validation_part), chip("test", WORDS.test_part)),
      about: make("p", { class: "vl-hint" }),
      number: make("p", { class: "vl-big" }), said: make("p", { class: "vl-hint" }), bars: make("ol", { class: "vl-bars" }),
      sort: make("input", { type: "checkbox", oninput: () => update() }),
      empty: make("p", { class: "vl-hint", role: "status" }), whole: make("div", { class: "vl-mistakes", hidden: true }),
      matrix: make("section", { class: "vl-matrix-pane", "aria-label": WORDS.matrix }),
      cell: make("section", { class: "vl-cell-pane", "aria-label": WORDS.cell_pane }),
      reliability: make("section", { class: "vl-reliability-pane", "aria-label": WORDS.reliability }),
    });
    parts.classes = make("section", { class: "vl-classes", "aria-label": WORDS.accuracy_by_class }, make("h4", { text: WORDS.each_class }),
      make("label", {}, parts.sort, WORDS.worst_first), parts.bars);
    parts.whole.append(make("section", { class: "vl-share", "aria-label": WORDS.accuracy_pane }, parts.number, parts.said), parts.matrix,
      parts.classes, parts.cell, parts.reliability);
    body.append(parts.which, parts.about, parts.empty, parts.whole);
    box.addEventListener("toggle", update);
  }

  function update() {
    if (mistakes.part === "test" && !lab.test) mistakes.part = "validation";
    const report = mistakes.report(), test = parts.which.lastChild;
    for (const chip of parts.which.children) chip.setAttribute("aria-pressed", String(chip.dataset.part === mistakes.part));
    test.disabled = !lab.test;
    parts.about.textContent = mistakes.part === "test" ? WORDS.about_test :
      [...where(report?.frame), ...(lab.test ? [] : [lab.status?.over ? WORDS.test_not_looked_at : WORDS.test_closed])].join(" ");
    parts.whole.hidden = !report;
    parts.empty.hidden = Boolean(report);
    parts.empty.textContent = lab.plan?.imported ? WORDS.mistakes_of_file : lab.status?.over ? WORDS.mistakes_none :
      WORDS.mistakes_to_come;
    if (!report || !box.open) return;
    drawNumber(report);
    drawBars(report);
    for (const pane of mistakes.panes) pane(report);
  }
  mistakes.update = update;

  // Sentences: which look this is, and of which pictures.
  function where(frame) {
    if (!frame) return [];
    const look = lab.index < lab.frames.length - 1 ? WORDS.look_of_film : lab.status?.over ? WORDS.last_look : WORDS.newest_look;
    return [phrase(look, { look: lab.index + 1, all: lab.frames.length, step: frame.step }), WORDS.held_out];
  }

  function drawNumber({ accuracy, error, n, part }) {
    const known = mistakes.classes().length, wrong = Math.round(n * (1 - accuracy));
    parts.number.replaceChildren(make("strong", { text: (100 * accuracy).toFixed(1) + "%" }),
      " " + phrase(WORDS.right_within, { error: (100 * error).toFixed(1) }));
    parts.said.textContent = [
      phrase(WORDS.named_wrongly[part], { wrong: wrong.toLocaleString("en"), n: n.toLocaleString("en") }), WORDS.standard_error,
      known > 1 ? phrase(WORDS.guessing_right, { share: percent(1 / known) }) : "", lab.flatters].filter(Boolean).join(" ");
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
          text: share === null ? WORDS.class_without : !n ? percent(share) : phrase(share === 1 ? WORDS.class_all : share === 0 ?
            WORDS.class_none : WORDS.class_share, { n, share: percent(share), error: (100 * error).toFixed(share < 0.0995 ? 1 : 0) }) }),
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

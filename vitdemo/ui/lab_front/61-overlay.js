// Curves of several runs over each other. A run is told apart by the colour of its line, by its dashes, and by its name beside it.
const STYLES = [{ colour: 1 }, { colour: 2, dash: "9 5" }, { colour: 4, dash: "2 4" }, { colour: 5, dash: "14 4 3 4" },
  { colour: 6, dash: "5 3" }, { colour: 3, dash: "18 6" }, { colour: 1, dash: "3 3 9 3" }, { colour: 2, dash: "2 7" }];
const MOST_OVERLAID = STYLES.length;

function swatch({ colour, dash }) {
  return svg("svg", { viewBox: "0 0 36 8", class: "vl-swatch", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 36, y1: 4, y2: 4, class: "vd-line-" + colour, "stroke-dasharray": dash ?? "none" }));
}

// The loss of single batches jumps: a mean over a thirtieth of the curve to either side shows where it goes.
function smooth(points) {
  const reach = Math.floor(points.length / 30);
  return points.map(([at], i) => {
    const near = points.slice(Math.max(0, i - reach), i + reach + 1);
    return [at, near.reduce((sum, [, value]) => sum + value, 0) / near.length];
  });
}

// Two charts, loss and accuracy, of lines { loss, accuracy: [[seconds, step, value]], style, name }; by: "seconds" or "steps".
function twoCharts(lines, by) {
  const at = by === "steps" ? 1 : 0, points = (rows) => rows.filter((row) => row[2] !== null).map((row) => [row[at], row[2]]);
  const drawn = lines.map(({ loss, accuracy, style, name }) => ({ ...style, name: root.clientWidth < 600 ? "" : name.length > 17 ?
    name.slice(0, 16) + "…" : name, loss: smooth(points(loss)), accuracy: points(accuracy) }));
  const most = Math.max(1, ...drawn.flatMap((line) => [...line.loss, ...line.accuracy].map(([x]) => x)));
  const axis = { x: [0, most],
    xName: by === "steps" ? WORDS.by_steps : most > 120 ? WORDS.minutes_of_training : WORDS.seconds_of_training,
    xText: by === "steps" || most <= 120 ? String : (v) => +(v / 60).toFixed(1),
    xTicks: by === "seconds" && most > 120 ? ticks(0, most / 60).map((t) => 60 * t) : null };
  const one = (key, yName, y, yText) => {
    const has = drawn.filter((line) => line[key].length > (key === "loss" ? 1 : 0)).map((line) => ({ ...line, points: line[key] }));
    const label = phrase(WORDS.curves_of, { what: yName, runs: lines.map((line) => line.name).join(", ") });
    return has.length ? chart({ ...axis, y, yName, yText, lines: has, label }) :
      make("p", { class: "vl-empty", text: WORDS.no_curve[key] });
  };
  const losses = drawn.flatMap((line) => line.loss.map(([, y]) => y)), shares = drawn.flatMap((line) => line.accuracy.map(([, y]) => y));
  const low = Math.min(...losses), high = Math.max(0.1, ...losses);
  return [one("loss", WORDS.training_loss, [Math.max(0, low - 0.1 * (high - low)), high], String),
    one("accuracy", WORDS.validation_accuracy, [0, Math.min(1, Math.ceil(10 * Math.max(0.1, ...shares)) / 10)], whole)];
}

// Charts are drawn anew where the page becomes narrow or wide: then their letters keep their size.
function onNarrow(act) {
  let narrow = root.clientWidth < 600;
  new ResizeObserver(() => { const now = root.clientWidth < 600; if (root.clientWidth && now !== narrow) { narrow = now; act(); } })
    .observe(root);
}

// The choice between the two horizontal axes.
function layOut(text, act) {
  const ways = [["seconds", WORDS.by_seconds], ["steps", WORDS.by_steps]].map(([way, name], i) => make("button",
    { type: "button", class: "vl-chip", text: name, "aria-pressed": String(i === 0), onclick: () => {
      ways.forEach((each, k) => each.setAttribute("aria-pressed", String(k === i)));
      act(way);
    } }));
  return make("div", { class: "vl-row", role: "group", "aria-label": WORDS.laid_out_by },
    make("span", { class: "vl-hint", text }), ...ways);
}

// What is under the list: nothing, or the curves of the ticked runs with what is different between just these.
const showOverlay = (() => {
  const CURVES = new Map();                                              // by run id: { stamp, loss, accuracy }
  let by = "seconds", shown = "", turn = 0;
  const charts = make("div", { class: "vl-two" }), legend = make("ul", { class: "vl-overlay-legend" }),
    words = make("p", { class: "vl-hint", role: "status" });
  const parts = [make("div", { class: "vl-row" }, make("h4", { text: WORDS.curves_over }),
    layOut(WORDS.by, (way) => { by = way; draw(); })), charts, legend, words];
  let runs = [];

  async function show(box, next) {
    runs = next;
    box.hidden = !runs.length;
    if (box.hidden) { shown = ""; return; }
    if (!box.children.length) box.append(...parts);
    const stamps = runs.map((one) => [one.id, one.state, one.seconds].join()), now = stamps.join("|"), mine_ = ++turn;
    if (now === shown) return;
    const missing = runs.filter((one, i) => CURVES.get(one.id)?.stamp !== stamps[i]).map((one) => one.id);
    try {
      const answer = missing.length ? (await ask({ question: "curves", runs: missing })).runs : {};
      for (const [id, curves] of Object.entries(answer))
        CURVES.set(id, { ...curves, stamp: stamps[runs.findIndex((one) => one.id === id)] ?? "" });
      if (mine_ !== turn) return;
      shown = now;
      draw();
    } catch (failure) { if (mine_ === turn) words.textContent = failure.message; }
  }

  function draw() {
    const lines = runs.map((one, i) => ({ ...(CURVES.get(one.id) ?? { loss: [], accuracy: [] }), style: STYLES[i], name: one.title }));
    charts.replaceChildren(...twoCharts(lines, by));
    const own = differences(runs);
    legend.replaceChildren(...runs.map((one, i) => make("li", {}, swatch(STYLES[i]),
      make("span", { class: "vl-run-title", text: one.title }),
      make("span", { class: "vl-score" }, ...scoreOf(one, false)), make("ul", { class: "vl-tags" }, ...tags(own[i])))));
    words.textContent = runs.length < 2 ? WORDS.tick_another :
      [...(own.some((pairs) => pairs.length) ? [] : [WORDS.same_settings]), WORDS.loss_is_mean].join(" ");
  }

  onNarrow(() => { if (runs.length) draw(); });
  return show;
})();

// Loss and validation accuracy while the run goes on, over one axis of time. Drawn again only when there is news; the film's place is
// marked, and a pointer reads the numbers. Left and right arrows go from look to look, as in the film.
(() => {
  const MOST = 400, TALL = { loss: 190, accuracy: 250 }, TOP = 12, BOTTOM = 26, LEFT = 52, RIGHT = 14;
  const { box, body } = section("run", 25, WORDS.how_it_learns, WORDS.how_it_learns_line, { column: "side" });
  const readout = make("p", { class: "vl-readout" }), area = make("div", { class: "vl-curves", tabindex: 0, role: "slider",
    "aria-label": WORDS.curves_slider, "aria-valuemin": 0 });
  body.append(area, readout);
  let width = 0, plots = [], frame = 0, points = [], hovered = null, total = 0;

  // The rows thinned to what a screen can show: means over as many buckets as fit.
  function thinned(rows) {
    const size = Math.ceil(rows.length / MOST), out = [];
    for (let i = 0; i < rows.length; i += size) {
      const part = rows.slice(i, i + size);
      out.push([part.reduce((sum, row) => sum + row.seconds, 0) / part.length, part.reduce((sum, row) => sum + row.loss, 0) / part.length]);
    }
    return out;
  }

  // The axis runs to the end of the run as far as it can be told, so that what is empty is what is still to come.
  function axisEnd() {
    const last = lab.rows.at(-1), over = lab.status?.over;
    if (!last) return 60;
    if (over) return Math.max(last.seconds, 1);
    // a look may use time before any training
    const guess = last.progress > 0.005 && last.seconds > 0 ? last.seconds / last.progress : 60;
    if (!(Math.abs(guess - total) < 0.03 * total) || total < last.seconds) total = Math.max(guess, last.seconds);
    return total;
  }

  const timeTicks = (end, most) => {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 36000, 86400];
    const step = steps.find((s) => end / s <= most) ?? 86400 * 7, out = [];
    for (let t = 0; t <= end + 1e-6; t += step) out.push(t);
    return out;
  };

  function frameOf(kind, title, y, yTicks, yText, last) {
    const tall = (width < 400 ? 0.9 : 1) * TALL[kind] + (last ? 16 : 0), end = axisEnd(),
      x = (v) => LEFT + (width - LEFT - RIGHT) * v / end, bottom = tall - BOTTOM - (last ? 16 : 0);
    const at = (v) => bottom - (bottom - TOP - 18) * (v - y[0]) / (y[1] - y[0] || 1);
    const plot = svg("svg", { viewBox: "0 0 " + width + " " + tall, width, height: tall, class: "vl-plot", "aria-hidden": "true" });
    plot.append(svg("text", { x: 0, y: TOP, class: "vl-plot-title", text: title }));
    for (const t of yTicks) plot.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: at(t), y2: at(t), class: "vl-rule" }),
      svg("text", { x: LEFT - 8, y: at(t) + 5, "text-anchor": "end", text: yText(+t.toPrecision(6)) }));
    for (const t of timeTicks(end, width / 80)) plot.append(svg("line", { x1: x(t), x2: x(t), y1: bottom, y2: bottom + 4,
      class: "vl-rule" }), svg("text", { x: x(t), y: bottom + 20, "text-anchor": t ? "middle" : "start", text: clock(t) }));
    if (last) plot.append(svg("text",
      { x: (LEFT + width - RIGHT) / 2, y: tall - 3, "text-anchor": "middle", class: "vl-soft", text: WORDS.minutes_of_training }));
    const mark = svg("line", { y1: TOP + 18, y2: bottom, class: "vl-mark" }),
      pointer = svg("line", { y1: TOP + 18, y2: bottom, class: "vl-pointer" });
    return { plot, x, at, bottom, mark, pointer, end };
  }

  function drawLoss(rows) {
    const losses = thinned(rows.filter((row) => typeof row.loss === "number")), values = losses.map(([, loss]) => loss);
    const low = values.length ? Math.min(...values) : 0, high = values.length ? Math.max(...values) : 2.5,
      room = (high - low) * 0.06 || 0.2, y = [Math.max(0, low - room), high + room];
    const one = frameOf("loss", WORDS.loss, y, ticks(...y, 4), String, false);
    if (losses.length) one.plot.append(svg("polyline",
      { class: "vl-loss", points: losses.map(([s, loss]) => one.x(s).toFixed(1) + "," + one.at(loss).toFixed(1)).join(" ") }));
    one.plot.append(one.pointer, one.mark);
    return one;
  }

  function drawAccuracy(looks, chance) {
    const most = looks.reduce((high, row) => Math.max(high, row.accuracy + 2 * (row.look?.standard_error ?? 0)), 0),
      y = [0, most < 0.38 ? 0.4 : most < 0.58 ? 0.6 : most < 0.78 ? 0.8 : 1];
    const one = frameOf("accuracy", WORDS.right_on_validation, y, ticks(...y, 4), whole, true), { plot, x, at } = one;
    if (chance) plot.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: at(chance), y2: at(chance), class: "vl-chance" }),
      svg("text", { x: width - RIGHT - 8, y: at(chance) - 6, "text-anchor": "end", class: "vl-soft", text: WORDS.guessing }));
    const band = looks.filter((row) => row.look?.standard_error), edge = (row, sign) =>
      x(row.seconds).toFixed(1) + "," + at(Math.max(0, Math.min(y[1], row.accuracy + sign * row.look.standard_error))).toFixed(1);
    if (band.length > 1) plot.append(svg("polygon",
      { class: "vl-error", points: [...band.map((row) => edge(row, 1)), ...band.map((row) => edge(row, -1)).reverse()].join(" ") }));
    if (looks.length) plot.append(svg("polyline",
      { class: "vl-accuracy", points: looks.map((row) => x(row.seconds).toFixed(1) + "," + at(row.accuracy).toFixed(1)).join(" ") }));
    plot.append(one.pointer, one.mark,
      ...looks.map((row) => svg("circle", { cx: x(row.seconds), cy: at(row.accuracy), r: 4, class: "vl-look" })));
    return one;
  }

  function draw() {
    frame = 0;
    box.hidden = !lab.rows.length;
    if (!width || !box.open || !lab.id) return;
    const looks = lab.rows.filter((row) => typeof row.accuracy === "number"), classes = lab.scene?.classes.length;
    plots = [drawLoss(lab.rows), drawAccuracy(looks, classes ? 1 / classes : 0)];
    points = lab.rows;
    area.replaceChildren(...plots.map(({ plot }) => plot));
    marks();
  }

  const later = () => { frame ||= requestAnimationFrame(draw); };

  // The film's place and the pointer: moved, not drawn again.
  function marks() {
    const shown = lab.frames[lab.index];
    for (const { x, mark, pointer } of plots) {
      mark.style.display = shown ? "" : "none";
      if (shown) dress(mark, { x1: x(shown.seconds), x2: x(shown.seconds) }, []);
      pointer.style.display = hovered ? "" : "none";
      if (hovered) dress(pointer, { x1: x(hovered.seconds), x2: x(hovered.seconds) }, []);
    }
    dress(area, { "aria-valuemax": Math.max(0, lab.frames.length - 1), "aria-valuenow": Math.max(0, lab.index) }, []);
    const text = words(hovered ?? shown ?? lab.rows.at(-1));
    readout.textContent = text;
    area.setAttribute("aria-valuetext", text);
  }

  function words(row) {
    if (!row) return WORDS.no_point;
    const look = lab.rows.filter((one) => typeof one.accuracy === "number" && one.step <= row.step)
      .at(-1) ?? (typeof row.accuracy === "number" ? row : null);
    const error = look?.look?.standard_error, parts = [];
    if (typeof row.loss === "number") parts.push(phrase(WORDS.loss_is, { loss: row.loss.toFixed(2) }));
    if (look) parts.push(phrase(look.step < row.step ? WORDS.right_before : WORDS.right_here, { time: clock(look.seconds),
      share: (100 * look.accuracy).toFixed(1) + "%" + (error ? " ± " + (100 * error).toFixed(1) : "") }));
    const point = phrase(WORDS.point, { time: clock(row.seconds), step: row.step.toLocaleString("en") });
    return [point, parts.join("; ")].filter(Boolean).join(": ") + ".";
  }

  function nearest(list, seconds) {
    let best = null;
    for (const one of list) if (!best || Math.abs(one.seconds - seconds) < Math.abs(best.seconds - seconds)) best = one;
    return best;
  }

  const secondsAt = (event) => {
    const from = area.getBoundingClientRect(), [{ end }] = plots;
    return end * (event.clientX - from.left - LEFT) / (width - LEFT - RIGHT);
  };
  area.addEventListener("pointermove",
    (event) => { if (plots.length && event.pointerType !== "touch") { hovered = nearest(points, secondsAt(event)); marks(); } });
  area.addEventListener("pointerleave", () => { hovered = null; marks(); });
  area.addEventListener("click",
    (event) => { if (plots.length && lab.frames.length) setIndex(lab.frames.indexOf(nearest(lab.frames, secondsAt(event)))); });
  area.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: lab.index - 1, ArrowRight: lab.index + 1, Home: 0, End: lab.frames.length - 1 }[event.key];
    if (to === undefined || !lab.frames.length) return;
    event.preventDefault();
    setIndex(Math.max(0, to));
  });
  new ResizeObserver(([entry]) => { const now = Math.round(entry.contentRect.width); if (now && now !== width) { width = now; later(); } })
    .observe(area);
  box.addEventListener("toggle", later);
  on("run", () => { plots = []; total = 0; hovered = null; area.replaceChildren(); readout.textContent = ""; later(); });
  on("news", later);
  on("scrub", marks);
  let over = false;
  on("status", (status) => { if (status.over !== over) { over = status.over; later(); } });
})();

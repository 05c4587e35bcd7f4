// A small line chart as SVG: numbers on both axes, named lines, a band, horizontal marks, points that can be chosen.
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, settings = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), settings, children);
}

function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const out = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-6; t += step) out.push(Math.abs(t) < step * 1e-6 ? 0 : t);
  return out;
}

const whole = (share) => Math.round(100 * share) + "%";
const said = (text, value) => text === String ? String(+value.toPrecision(3)) : text(value);

// lines: [{ points: [[x, y]], colour: 1..6, dash, name }]; band: { xs, low, high }; levels: [{ y, name }]; dots: [{ x, y, label, chosen, act }]
function chart({ x, y, xName, yName, lines = [], band = null, levels = [], dots = [], xTicks = null, xText = String, yText = String, label, cursor = null }) {
  const narrow = root.clientWidth < 600;                                   // a phone: names stand under the plot, and letters keep their size
  const wide = narrow ? 360 : 640, tall = narrow ? 250 : 320, left = narrow ? 52 : 58, right = narrow ? 10 : 176, top = 14, bottom = 48;
  const px = (v) => left + (wide - left - right) * (v - x[0]) / (x[1] - x[0] || 1), py = (v) => tall - bottom - (tall - top - bottom) * (v - y[0]) / (y[1] - y[0] || 1);
  const ends = lines.filter(({ name, points }) => name && points.length).map(({ name, points }) => phrase(WORDS.curve_from_to, { name, first: said(yText, points[0][1]), last: said(yText, points.at(-1)[1]) }));
  const plot = svg("svg", { viewBox: "0 0 " + wide + " " + tall, class: "vd-chart", role: dots.length ? "group" : "img", "aria-label": [label, ...ends].join("; "), "data-small-targets": dots.length ? "" : null });
  for (const t of ticks(...y)) plot.append(svg("line", { x1: left, x2: wide - right, y1: py(t), y2: py(t), class: "vd-rule" }), svg("text", { x: left - 8, y: py(t) + 4, "text-anchor": "end", text: yText(+t.toPrecision(6)) }));
  for (const t of xTicks ?? ticks(...x)) plot.append(svg("text", { x: px(t), y: tall - bottom + 18, "text-anchor": "middle", text: xText(+t.toPrecision(6)) }));
  plot.append(svg("text", { x: (left + wide - right) / 2, y: tall - 8, "text-anchor": "middle", text: xName }),
    svg("text", { x: 0, y: 0, transform: "translate(14 " + (tall - bottom + top) / 2 + ") rotate(-90)", "text-anchor": "middle", text: yName.length > 34 ? yName.slice(0, 33) + "…" : yName }));
  if (band) plot.append(svg("polygon", { class: "vd-band", points: [...band.xs.map((v, i) => [px(v), py(band.high[i])]), ...band.xs.map((v, i) => [px(v), py(band.low[i])]).reverse()].map((p) => p.join(",")).join(" ") }));
  const labels = [];
  for (const { y: at, name } of levels) if (at >= y[0] && at <= y[1]) {
    plot.append(svg("line", { x1: left, x2: wide - right, y1: py(at), y2: py(at), class: "vd-level" }));
    labels.push({ y: py(at), name, colour: 0, dash: "6 5" });
  }
  for (const { points, colour, dash, name } of lines) {
    plot.append(svg("polyline", { class: "vd-line-" + colour, "stroke-dasharray": dash ?? "none", points: points.map(([a, b]) => px(a) + "," + py(b)).join(" ") }));
    if (name) labels.push({ y: py(points.at(-1)[1]), name, colour, dash });
  }
  labels.sort((one, two) => one.y - two.y);
  for (let i = 0, least = top; i < labels.length; i++) { labels[i].y = Math.max(labels[i].y, least); least = labels[i].y + 16; }
  for (let i = labels.length - 1, most = tall - bottom + 4; i >= 0; i--) { labels[i].y = Math.min(labels[i].y, most); most = labels[i].y - 16; }
  const sample = (colour, dash, x, y) => svg("line", { x1: x, x2: x + 24, y1: y, y2: y, class: "vd-sample " + (colour ? "vd-line-" + colour : "vd-level"), "stroke-dasharray": dash ?? "none" });
  if (!narrow) for (const { y: at, name, colour, dash } of labels) plot.append(sample(colour, dash, wide - right + 6, at), svg("text", { x: wide - right + 36, y: at + 4, class: "vd-name-" + colour, text: name.length > 22 ? name.slice(0, 21) + "…" : name }));
  if (cursor !== null) plot.append(svg("line", { x1: px(cursor), x2: px(cursor), y1: top, y2: tall - bottom, class: "vd-cursor" }));
  for (const { x: at, y: value, label: text, chosen, act } of dots) {
    const dot = svg("circle", { cx: px(at), cy: py(value), r: chosen ? 8 : 6, class: "vd-dot" + (chosen ? " vd-dot-chosen" : ""), tabindex: 0, role: "button", "aria-label": text, "aria-pressed": String(chosen),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); act(); } } }, svg("title", { text }));
    plot.append(dot);
  }
  if (dots.length) plot.addEventListener("click", (event) => nearDot(event, plot, dots));
  if (!narrow || !labels.length) return plot;
  return make("div", {}, plot, make("ul", { class: "vd-legend" }, ...labels.map(({ name, colour, dash }) => make("li", { class: "vd-name-" + colour },
    svg("svg", { viewBox: "0 0 24 8", class: "vd-legend-line", "aria-hidden": "true" }, sample(colour, dash, 0, 4)), name))));
}

// A finger need not hit a dot: the nearest one counts, up to 28 CSS pixels away.
function nearDot(event, plot, dots) {
  const circles = [...plot.querySelectorAll("circle")], hit = circles.indexOf(event.target.closest("circle"));
  const away = circles.map((circle) => {
    const { left, top, width, height } = circle.getBoundingClientRect();
    return Math.hypot(event.clientX - left - width / 2, event.clientY - top - height / 2);
  });
  const nearest = hit >= 0 ? hit : away.indexOf(Math.min(...away));
  if (hit >= 0 || away[nearest] < 28) dots[nearest].act();
}

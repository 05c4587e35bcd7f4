// The pictures of one cell of the matrix, with what the model read in them; and the reliability diagram: does its confidence mean anything?
(() => {
  const { parts } = mistakes;
  let current = 0, shown = null, stamp = "", narrow = false, last = null;

  const title = make("h4"), words = make("p", { class: "vl-hint", role: "status" }), grid = make("div", { class: "vl-wrong-pictures" });
  const maps = make("input", { type: "checkbox", checked: true, oninput: () => paintAll() }),
    mapLabel = make("label", {}, maps, WORDS.show_what_it_reads);
  const high = make("span"),
    scale = make("canvas", { width: 256, height: 14, class: "vl-scale", role: "img" });
  const unit = make("span", { class: "vl-hint" });
  const bar = make("div", { class: "vl-bar" }, make("span", { text: "0" }), make("span", { class: "vl-scale-box" }, scale), high, unit);
  // focus goes back to the cell it came from
  const close = make("button", { type: "button", class: "vl-button", text: WORDS.close,
    onclick: () => { shut(); parts.matrix.querySelector("[tabindex=\"0\"]")?.focus(); } });
  const shut = () => { current++; shown = null; parts.cell.hidden = true; };
  parts.cell.hidden = true;
  parts.cell.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); close.click(); } });
  parts.cell.append(make("div", { class: "vl-row vl-cell-head" }, title, mapLabel, close), words, grid, bar);

  mistakes.open = async (truth, answer) => {
    const mine = ++current, part = mistakes.part, report = mistakes.report(), early = report.frame && lab.index < lab.frames.length - 1;
    parts.cell.hidden = false;
    title.textContent = phrase(report.frame ? WORDS.cell_at_step : WORDS.cell_of_test,
      { cell: mistakes.cellWords(truth, answer, report), step: report.frame?.step });
    words.className = "vl-hint";
    words.textContent = WORDS.fetching_pictures;
    mapLabel.hidden = bar.hidden = true;
    grid.replaceChildren();
    try {
      const reply = await ask({ question: "cell", run: lab.id, part, truth, answer });
      const pictures = await Promise.all(reply.pictures.map((one) => picture(one.picture)));
      if (mine !== current) return;
      shown = { reply, part };
      words.textContent = early ? phrase(WORDS.newest_look_only, { sentence: reply.sentence }) : reply.sentence;
      grid.replaceChildren(...reply.pictures.map((one, i) => figure(one, pictures[i], mistakes.cellName(truth, answer))));
      paintAll();
      parts.cell.scrollIntoView({ block: "nearest", behavior: gently() });
    } catch (failure) {
      if (mine !== current) return;
      words.textContent = failure.message;
      words.className = "vl-trouble";
    }
  };

  function figure(one, image, cell) {
    const share = percent(one.confidence), { map } = one,
      canvas = make("canvas", { role: "img", "aria-label": phrase(WORDS.cell_picture, { cell, share }) });
    canvas.about = { photo: image, width: image.width, height: image.height, crop: [0, 0, image.height, image.width], rows: map?.rows ?? 1,
      cols: map?.cols ?? 1, prefix: 0 };
    canvas.map = map && Float32Array.from(bytes(map.data), (share) => share / 255 * map.high);
    return make("figure", {}, canvas, make("figcaption", { text: phrase(WORDS.how_sure, { share }) }));
  }

  // All pictures of a cell on one scale, so that they can be compared; it ends where the film's may end at the least.
  function paintAll() {
    if (!shown) return;
    const highs = shown.reply.pictures.map(({ map }) => map?.high ?? 0), any = highs.some((high) => high > 0),
      most = Math.max(lab.scene ? film.least() : 0, ...highs);
    mapLabel.hidden = !any;
    bar.hidden = !any || !maps.checked;
    high.textContent = most.toFixed(3);
    unit.textContent = phrase(WORDS.cell_scale, { layer: shown.reply.layer });
    ramp(scale);
    for (const { firstChild: canvas } of grid.children) paint(canvas, canvas.about, maps.checked ? canvas.map : null, most, 128);
  }

  const verdict = make("p"), plot = make("div"), numbers = make("details", {}, make("summary", { text: WORDS.same_in_numbers }));
  parts.reliability.append(make("h4", { text: WORDS.reliability_title }), plot,
    make("div", { class: "vl-reliability-words" }, verdict,
      make("p", { class: "vl-hint", text: WORDS.reliability_hint }), numbers));

  function drawReliability(report) {
    const { calibration, ece, accuracy } = last = report;
    parts.reliability.hidden = !calibration?.length;
    if (!calibration?.length) return;
    const key = JSON.stringify([calibration, narrow]);
    if (key === stamp) return;
    stamp = key;
    const n = calibration.reduce((sum, [count]) => sum + count, 0);
    const sure = calibration.reduce((sum, [count, confidence]) => sum + count * confidence, 0) / (n || 1), off = sure - accuracy;
    const fit = Math.abs(off) < 0.015 ? WORDS.sure_enough : off > 0 ? WORDS.too_sure : WORDS.too_unsure;
    verdict.textContent = phrase(fit, { sure: percent(sure), right: percent(accuracy) }) + " " +
      phrase(WORDS.calibration_error, { points: (100 * ece).toFixed(1) });
    plot.replaceChildren(diagram(calibration, verdict.textContent));
    const rows = calibration.map(([count, confidence, right], i) => make("tr", {},
      make("th", { scope: "row", text: phrase(WORDS.from_to, { low: 10 * i, high: 10 * (i + 1) }) }),
      make("td", { class: "vl-number", text: count }), make("td", { class: "vl-number", text: count ? percent(confidence) : "" }),
      make("td", { class: "vl-number", text: count ? percent(right) : "" })));
    numbers.replaceChildren(numbers.firstChild, make("table", {},
      make("thead", {}, make("tr", {}, ...WORDS.reliability_columns.map((text, i) =>
        make("th", { scope: "col", class: i ? "vl-number" : "", text })))), make("tbody", {}, ...rows)));
  }

  // Bars of how often answers of a confidence were right, the line where the two agree, and how many answers there were.
  function diagram(calibration, label) {
    const wide = narrow ? 360 : 520, left = 62, right = 24, top = 10, low = narrow ? 230 : 270, foot = low + 76,
      most = Math.max(1, ...calibration.map(([count]) => count));
    const px = (v) => left + (wide - left - right) * v, py = (v) => low - (low - top) * v, pc = (count) => foot - 18 - 44 * count / most;
    const out = svg("svg",
      { viewBox: "0 0 " + wide + " " + (foot + 44), class: "vd-chart vl-reliability", role: "img", "aria-label": label });
    for (const t of [0, 0.25, 0.5, 0.75, 1]) out.append(svg("line", { x1: left, x2: wide - right, y1: py(t), y2: py(t), class: "vd-rule" }),
      svg("text", { x: left - 8, y: py(t) + 4, "text-anchor": "end", text: 100 * t + "%" }));
    calibration.forEach(([count, confidence, share], i) => {
      const x = px(i / 10) + 2, width = (wide - left - right) / 10 - 4;
      if (count) out.append(svg("rect", { x, y: py(share), width, height: low - py(share), class: "vl-rel-bar" }),
        svg("line", { x1: x, x2: x + width, y1: py(confidence), y2: py(confidence), class: "vl-rel-sure" }));
      if (count) out.append(svg("rect", { x, y: pc(count), width, height: foot - 18 - pc(count), class: "vl-rel-count" }));
      out.append(svg("text",
        { x: x + width / 2, y: (count ? pc(count) : foot - 18) - 4, "text-anchor": "middle", class: "vl-rel-number", text: count }));
    });
    out.append(svg("line", { x1: px(0), y1: py(0), x2: px(1), y2: py(1), class: "vl-rel-line" }));
    for (const t of [0, 0.2, 0.4, 0.6, 0.8, 1])
      out.append(svg("text", { x: px(t), y: foot, "text-anchor": "middle", text: 100 * t + "%" }));
    out.append(svg("text", { x: (left + wide - right) / 2, y: foot + 20, "text-anchor": "middle", text: WORDS.reliability_across }),
      svg("text", { x: 0, y: 0, transform: "translate(11 " + (low + top) / 2 + ") rotate(-90)", "text-anchor": "middle",
        text: WORDS.share_right }));
    return out;
  }

  new ResizeObserver(([entry]) => {
    const next = entry.contentRect.width < 460;
    if (entry.contentRect.width && next !== narrow) { narrow = next; if (last) drawReliability(last); }
  }).observe(plot);
  mistakes.panes.push(drawReliability, () => {
    if (shown && shown.part !== mistakes.part) shut();
  });
  on("run", () => { current++; shown = last = null; stamp = ""; parts.cell.hidden = true; });
  on("look", paintAll);
})();

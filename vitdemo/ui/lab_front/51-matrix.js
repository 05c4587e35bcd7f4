// The confusion matrix: rows are what the pictures are, columns what the model said. A table to walk through with the arrow keys; drawn
// small on a canvas where its cells would be too narrow for numbers.
(() => {
  const MOST = 20, NARROWEST = 18, LARGEST = 15, SMALLEST = 8.5;           // classes of a table; CSS pixels of its cells and its numbers
  const { parts } = mistakes;
  let at = [0, 0], room = 0, drawn = "", report = null, cells = [];

  const readout = make("p", { class: "vl-matrix-readout" }), place = make("div", { class: "vl-matrix-box" }),
    legend = make("div", { class: "vl-legend-row vl-hint" });
  const worst = make("div", { class: "vl-row vl-worst", role: "group", "aria-label": WORDS.most_frequent });
  const frame = make("i", { class: "vl-small-mark" }), canvas = make("canvas", { class: "vl-small", role: "img" });
  const small = make("div", { class: "vl-small-box", tabindex: 0, role: "application",
    "aria-label": WORDS.matrix_keys }, canvas, frame);
  parts.matrix.append(make("h4", { text: WORDS.matrix_title }), make("p", { class: "vl-hint", text: WORDS.matrix_hint }),
    place, readout, legend, make("p", { class: "vl-worst-title", text: WORDS.most_frequent }), worst);

  const lists = [WORDS.what_it_is, WORDS.what_model_said].map((label) => make("select", { "aria-label": label }));
  const pick = make("div", { class: "vl-row vl-cell-pick" }, lists[0], WORDS.taken_for, lists[1], make("button", { type: "button",
    class: "vl-button", text: WORDS.show_cell, onclick: () => { at = lists.map((list) => Number(list.value)); tell(); open(); } }));
  parts.matrix.querySelector(".vl-worst-title").before(pick);

  const name = (i) => mistakes.classes()[i] ?? phrase(WORDS.class_n, { n: i + 1 });
  const short = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  mistakes.cellName = (i, j) => i === j ? phrase(WORDS.named_rightly, { name: name(i) }) :
    phrase(WORDS.mistaken_for, { truth: name(i), answer: name(j) });
  mistakes.cellWords = (i, j, { confusion }) => {
    const count = confusion[i][j], all = mistakes.total(confusion[i]), cell = mistakes.cellName(i, j);
    return phrase(all ? WORDS.cell_share : WORDS.cell_count, { cell, count, all, share: percent(count / all) });
  };

  // Colours: blue by the share of the row on the diagonal; elsewhere orange up to the largest share of a row that was mistaken.
  function scaled({ confusion }) {
    const shares = confusion.map((row) => { const all = mistakes.total(row); return row.map((count) => all ? count / all : 0); });
    const high = shares.reduce((most, row, i) => row.reduce((m, share, j) => i === j ? m : Math.max(m, share), most), 0);
    return { shares, high, strength: (i, j) => i === j ? shares[i][j] : high ? shares[i][j] / high : 0 };
  }

  function draw(given) {
    parts.matrix.hidden = !given.confusion;                                // of very many classes it does not travel
    if (!given.confusion) { report = null; return; }
    report = given;
    const K = report.confusion.length, narrow = room < 420, longest = Math.max(...mistakes.classes().map((text) => text.length)),
      named = Math.min(narrow ? 68 : 118, Math.max(48, (narrow ? 6 : 8) * longest + 8)), cell = (room - named) / K - 2;
    const digits = String(report.confusion.reduce((most, row) => row.reduce((m, count) => Math.max(m, count), most), 0)).length,
      size = Math.min(LARGEST, (cell - 2) / (0.66 * digits));
    if (!room) return;
    at = at.map((index) => Math.min(index, K - 1));
    const compact = K > MOST || size < SMALLEST || cell < NARROWEST,
      shape = [compact, K, mistakes.classes().join("|"), Math.round(cell)].join("/");
    if (shape !== drawn) {
      drawn = shape;
      place.replaceChildren(compact ? small : table(K, cell));
      for (const list of lists) list.replaceChildren(...report.confusion.map((_, i) => make("option", { value: i, text: name(i) })));
    }
    readout.setAttribute("aria-live", compact ? "polite" : "off");          // a cell of the table says itself what it is
    const scale = scaled(report);
    if (compact) paintSmall(K, scale);
    else { place.firstChild.style.cssText = "--vl-named:" + named + "px;--vl-digits:" + size.toFixed(1) + "px"; fill(K, scale, cell); }
    drawLegend(scale, compact);
    drawWorst();
    tell();
  }

  function table(K, cell) {
    const turned = cell < 8 * Math.max(...mistakes.classes().map((text) => text.length));
    const head = (i) => make("th", { scope: "col", class: turned ? "vl-turned" : "", title: name(i) },
      make("span", { text: short(name(i), 16) }));
    cells = Array.from({ length: K }, (_, i) => Array.from({ length: K }, (_, j) => make("td", { role: "gridcell", tabindex: -1,
      onclick: () => { go(i, j); open(); }, onfocus: () => { at = [i, j]; tell(); }, onpointerenter: () => tell([i, j]),
        onpointerleave: () => tell() }, make("b"), make("small"))));
    return make("table", { class: "vl-matrix", role: "grid", "aria-label": WORDS.matrix, "data-small-targets": "",
      onkeydown: key },
      make("thead", {}, make("tr", {}, make("td", { role: "none" }), ...cells.map((_, i) => head(i)))),
      make("tbody", {},
        ...cells.map((row, i) => make("tr", {}, make("th", { scope: "row", title: name(i), text: short(name(i), 16) }), ...row))));
  }

  function fill(K, { shares, strength }, cell) {
    for (let i = 0; i < K; i++) for (let j = 0; j < K; j++) {
      const td = cells[i][j], count = report.confusion[i][j], amount = Math.round(55 * strength(i, j));
      td.firstChild.textContent = count;
      td.lastChild.textContent = cell < 44 ? "" : count ? percent(shares[i][j]) : "";
      td.className = (i === j ? "vl-right" : "vl-wrong") + (count ? "" : " vl-none");
      td.style.setProperty("--vl-much", amount + "%");
      td.setAttribute("aria-label", mistakes.cellWords(i, j, report));
      td.tabIndex = i === at[0] && j === at[1] ? 0 : -1;
    }
  }

  function paintSmall(K, { strength }) {
    const ctx = canvas.getContext("2d"), css = getComputedStyle(root), size = Math.max(2, Math.floor(560 / K));
    canvas.width = canvas.height = size * K;
    small.style.width = size * K + "px";
    canvas.setAttribute("aria-label", phrase(WORDS.matrix_of_classes, { n: K }));
    for (const right of [false, true]) {
      ctx.fillStyle = css.getPropertyValue(right ? "--vd-c2" : "--vd-c1").trim();
      for (let i = 0; i < K; i++) for (let j = 0; j < K; j++) if ((i === j) === right) {
        ctx.globalAlpha = 0.85 * strength(i, j);
        ctx.fillRect(j * size, i * size, size - (size > 6), size - (size > 6));
      }
    }
    ctx.globalAlpha = 1;
  }

  function tell(where = at) {
    if (!report) return;
    const [i, j] = where, K = report.confusion.length;
    readout.textContent = mistakes.cellWords(i, j, report) + ".";
    lists.forEach((list, i) => { list.value = at[i]; });
    frame.style.cssText = "top:" + 100 * at[0] / K + "%;left:" + 100 * at[1] / K + "%;width:" + 100 / K + "%;height:" + 100 / K + "%";
  }

  function go(i, j) {
    const K = report.confusion.length;
    if (cells[at[0]]?.[at[1]]) cells[at[0]][at[1]].tabIndex = -1;
    at = [Math.max(0, Math.min(K - 1, i)), Math.max(0, Math.min(K - 1, j))];
    if (small.isConnected) tell();
    else { cells[at[0]][at[1]].tabIndex = 0; cells[at[0]][at[1]].focus({ preventScroll: false }); }
  }

  const open = () => mistakes.open(at[0], at[1]);

  function key(event) {
    if (!report || event.ctrlKey || event.metaKey || event.altKey) return;
    const K = report.confusion.length, [i, j] = at;
    const acts = { ArrowLeft: () => go(i, j - 1), ArrowRight: () => go(i, j + 1), ArrowUp: () => go(i - 1, j),
      ArrowDown: () => go(i + 1, j), Home: () => go(i, 0), End: () => go(i, K - 1),
      PageUp: () => go(0, j), PageDown: () => go(K - 1, j), Enter: open, " ": open };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  function drawLegend({ high }, compact) {
    const bar = (colour, strongest, text, most) => make("span", { class: "vl-legend-one" }, text,
      make("i", { class: "vl-ramp", style: "--vl-to:color-mix(in srgb, var(" + colour + ") " + (compact ? 85 : strongest) +
        "%, var(--background-fill-secondary))" }), most);
    const ofRow = (share) => phrase(WORDS.share_of_row, { share });
    legend.replaceChildren(bar("--vd-c2", 44, WORDS.legend_right, ofRow("100%")),
      bar("--vd-c1", 55, WORDS.legend_mistaken, ofRow(percent(high))));
  }

  function drawWorst() {
    const { confusion } = report, pairs = confusion.flatMap((row, i) => row.map((count, j) => ({ i, j, count })))
      .filter(({ i, j, count }) => i !== j && count)
      .sort((one, two) => two.count - one.count).slice(0, 6);
    parts.matrix.querySelector(".vl-worst-title").hidden = !pairs.length;
    worst.replaceChildren(...pairs.map(({ i, j, count }) => make("button",
      { type: "button", class: "vl-chip", text: phrase(WORDS.what_value, { what: mistakes.cellName(i, j), value: count }),
      onclick: () => { at = [i, j]; tell(); mistakes.open(i, j); } })));
  }

  small.addEventListener("keydown", key);
  const spot = (event) => {
    const { top, left, width, height } = canvas.getBoundingClientRect(), K = report.confusion.length;
    return [Math.floor((event.clientY - top) / height * K), Math.floor((event.clientX - left) / width * K)]
      .map((v) => Math.max(0, Math.min(K - 1, v)));
  };
  small.addEventListener("pointermove", (event) => { if (report && event.pointerType !== "touch") tell(spot(event)); });
  small.addEventListener("pointerleave", () => tell());
  small.addEventListener("click", (event) => { if (report) { go(...spot(event)); open(); } });
  new ResizeObserver(([entry]) => {
    const next = Math.min(entry.contentRect.width, 760);
    if (next && next !== room) { room = next; if (report && mistakes.report()) draw(mistakes.report()); }
  }).observe(place);
  mistakes.panes.push(draw);
  on("run", () => { report = null; drawn = ""; at = [0, 0]; });
  on("look", () => { if (report && small.isConnected) draw(report); });
})();

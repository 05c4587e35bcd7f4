// Logit lens: what the classifier would have said after every layer.
panel({
  key: "lens", place: 2, title: WORDS.lens_title, line: WORDS.lens_line,
  build(sheet) {
    this.box = make("div", {});
    this.words = make("p", {});
    sheet.append(this.box, this.words, make("p", { class: "vd-hint", text: WORDS.lens_misleads }));
  },
  update() {
    const { names, shares } = result.lens;
    if (!names.length) { this.box.replaceChildren(); this.words.textContent = WORDS.lens_no_classes; return; }
    const lines = names.map((name, k) => ({ name, colour: 1 + k % 6, dash: ["none", "8 4", "2 4", "10 3 2 3", "4 2", "1 3"][k % 6], points: shares.map((row, l) => [l + 1, row[k]]) }));
    const xTicks = Array.from({ length: result.layers }, (_, l) => l + 1).filter((l) => result.layers <= 16 || l % 2 === 0 || l === 1);
    this.box.replaceChildren(chart({ x: [1, Math.max(2, result.layers)], y: [0, 1], xName: WORDS.lens_x, yName: WORDS.lens_y, yText: whole, xTicks, lines, cursor: view.layer + 1, label: WORDS.lens_chart,
      levels: [{ y: 1 / result.known, name: phrase(WORDS.even_share, { n: result.known }) }] }));
    const row = shares[view.layer], best = row.indexOf(Math.max(...row));
    const listed = names.map((name, k) => [name, row[k]]).sort((one, two) => two[1] - one[1]).map(([name, share]) => name + " " + percent(share)).join(", ");
    this.words.textContent = phrase(best === 0 ? WORDS.lens_leads : WORDS.lens_leads_first, { layer: view.layer + 1, shares: listed, klass: names[best], last: result.top[0][0] });
  },
});

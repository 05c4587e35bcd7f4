// Logit lens: what the classifier would have said after every layer.
panel({
  key: "lens", place: 2, title: "Layer by layer", line: "What the model would answer if it stopped after each layer: the last norm and the head read its token early (the logit lens, nostalgebraist 2020).",
  build(sheet) {
    this.box = make("div", {});
    this.words = make("p", {});
    sheet.append(this.box, this.words, make("p", { class: "vd-hint", text: "It misleads because the head was trained for the last layer only: early layers may hold the answer in a form it cannot read." }));
  },
  update() {
    const { names, shares } = result.lens;
    if (!names.length) { this.box.replaceChildren(); this.words.textContent = "This model has no classes, so no head could say what it takes the picture for after a layer."; return; }
    const lines = names.map((name, k) => ({ name, colour: 1 + k % 6, dash: ["none", "8 4", "2 4", "10 3 2 3", "4 2", "1 3"][k % 6], points: shares.map((row, l) => [l + 1, row[k]]) }));
    const xTicks = Array.from({ length: result.layers }, (_, l) => l + 1).filter((l) => result.layers <= 16 || l % 2 === 0 || l === 1);
    this.box.replaceChildren(chart({ x: [1, Math.max(2, result.layers)], y: [0, 1], xName: "after layer", yName: "probability", yText: whole, xTicks, lines, cursor: view.layer + 1, label: "Class probabilities from the first layer to the last",
      levels: [{ y: 1 / result.known, name: "even share 1/" + result.known }] }));
    const row = shares[view.layer], best = row.indexOf(Math.max(...row));
    this.words.textContent = "After layer " + (view.layer + 1) + ": " + names.map((name, k) => [name, row[k]]).sort((one, two) => two[1] - one[1]).map(([name, share]) => name + " " + percent(share)).join(", ") +
      ". Of these " + names[best] + " leads" + (best === 0 ? ", as at the end." : "; at the end it is " + result.top[0][0] + ".");
  },
});

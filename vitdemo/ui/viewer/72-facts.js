// Head facts: a plot of every head that selects heads when clicked.
(() => {
  const FACTS = {
    entropy: { name: "entropy (nats)", even: (about) => Math.log(about.tokens), text: (v) => v.toFixed(2), line: "How spread out what the reader reads is: 0 when one token gets all, the logarithm of the number of tokens when all get the same." },
    effective: { name: "effective number of tokens", even: (about) => about.tokens, text: (v) => v.toFixed(1), line: "The exponential of the entropy: over how many tokens the weights are spread, as if evenly." },
    distance: { name: "mean attention distance (pixels)", even: (about) => evenDistance(about), text: (v) => v.toFixed(1), line: "How far away, in pixels of the model's input, patches look from themselves (ViT paper, figure 7 right): the mean over all patches of this one picture; the paper averages 128 pictures." },
    prefix: { name: "share on tokens that are no patch", even: (about) => about.prefix / about.tokens, text: percent, line: "How much of what it reads goes to class token, registers and their like instead of patches: heads that do nothing often rest there." },
  };
  let box, choice, words;

  function evenDistance(about) {
    if (about.evenDistance) return about.evenDistance;
    const { rows, cols, patch } = about;
    let total = 0;
    for (let r = -rows + 1; r < rows; r++) for (let c = -cols + 1; c < cols; c++) total += (rows - Math.abs(r)) * (cols - Math.abs(c)) * Math.hypot(r * patch[0], c * patch[1]);
    return (about.evenDistance = total / (rows * cols) ** 2);
  }

  function drawFacts(answer) {
    const { name, even, text, line } = FACTS[choice.value], table = answer[choice.value], about = result;
    const dots = table.flatMap((row, l) => row.map((value, h) => ({ x: l + 1 + (about.heads > 1 ? (h / (about.heads - 1) - 0.5) * 0.5 : 0), y: value, chosen: l === view.layer && (view.head === h || typeof view.head !== "number"), label: "layer " + (l + 1) + ", head " + (h + 1) + ": " + text(value),
      act: () => change({ kind: "attention", layer: l, head: h }) })));
    const most = Math.max(even(about), ...table.flat()) * 1.05;
    const at = document.activeElement?.getAttribute?.("aria-label");
    box.replaceChildren(chart({ x: [0.5, about.layers + 0.5], y: [0, most || 1], xName: "layer (its heads side by side)", yName: name, yText: (v) => choice.value === "prefix" ? whole(v) : String(v), dots, label: name + " of every head",
      xTicks: Array.from({ length: about.layers }, (_, l) => l + 1).filter((l) => about.layers <= 16 || l % 2 === 0), levels: [{ y: even(about), name: "even: " + text(even(about)) }] }));
    const again = [...box.querySelectorAll("circle")].find((dot) => at && dot.getAttribute("aria-label") === at);
    again?.focus();
    const head = typeof view.head === "number" ? view.head : null, value = head === null ? table[view.layer].reduce((a, b) => a + b, 0) / about.heads : table[view.layer][head];
    words.textContent = line + (choice.value === "distance" ? "" : " The reader is " + about.tokenName(about.first) + ", whatever token is chosen above.") + " Layer " + (view.layer + 1) + ", " + headName(head ?? "mean") + ": " + text(value) + "; even attention would give " + text(even(about)) + ".";
  }

  panel({
    key: "facts", place: 3, title: "Head facts", line: "Every dot is a head; choose one to see its map.",
    build(sheet) {
      choice = make("select", { "aria-label": "Fact", onchange: () => this.update() }, ...Object.entries(FACTS).map(([value, { name }]) => make("option", { value, text: name })));
      box = make("div", {});
      words = make("p", {});
      sheet.append(choice, box, words);
    },
    update() {
      const about = result;
      ask(about, { question: "facts" }).then((answer) => { if (about === result) drawFacts(answer); }, (failure) => { words.textContent = failure.message; box.replaceChildren(); });
    },
  });
})();

// Head facts: a plot of every head that selects heads when clicked.
(() => {
  // what attention spread evenly would have, and how a value is written
  const FACTS = {
    entropy: { even: (about) => Math.log(about.tokens), text: (v) => v.toFixed(2) },
    effective: { even: (about) => about.tokens, text: (v) => v.toFixed(1) },
    distance: { even: (about) => evenDistance(about), text: (v) => v.toFixed(1) },
    prefix: { even: (about) => about.prefix / about.tokens, text: percent },
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
    const { even, text } = FACTS[choice.value], { name, line } = WORDS.facts[choice.value], table = answer[choice.value], about = result;
    const dots = table.flatMap((row, l) => row.map((value, h) => ({ x: l + 1 + (about.heads > 1 ? (h / (about.heads - 1) - 0.5) * 0.5 : 0), y: value, chosen: l === view.layer && (view.head === h || typeof view.head !== "number"), label: phrase(WORDS.fact_dot, { layer: l + 1, head: h + 1, value: text(value) }),
      act: () => change({ kind: "attention", layer: l, head: h }) })));
    const most = Math.max(even(about), ...table.flat()) * 1.05;
    const at = document.activeElement?.getAttribute?.("aria-label");
    box.replaceChildren(chart({ x: [0.5, about.layers + 0.5], y: [0, most || 1], xName: WORDS.facts_x, yName: name, yText: (v) => choice.value === "prefix" ? whole(v) : String(v), dots, label: phrase(WORDS.facts_chart, { fact: name }),
      xTicks: Array.from({ length: about.layers }, (_, l) => l + 1).filter((l) => about.layers <= 16 || l % 2 === 0), levels: [{ y: even(about), name: phrase(WORDS.fact_even, { value: text(even(about)) }) }] }));
    const again = [...box.querySelectorAll("circle")].find((dot) => at && dot.getAttribute("aria-label") === at);
    again?.focus();
    const head = typeof view.head === "number" ? view.head : null, value = head === null ? table[view.layer].reduce((a, b) => a + b, 0) / about.heads : table[view.layer][head];
    const reader = choice.value === "distance" ? [] : [phrase(WORDS.fact_reader, { token: about.tokenName(about.first) })];
    words.textContent = [line, ...reader, phrase(WORDS.fact_now, { layer: view.layer + 1, heads: headName(head ?? "mean"), value: text(value), even: text(even(about)) })].join(" ");
  }

  panel({
    key: "facts", place: 3, title: WORDS.facts_title, line: WORDS.facts_line,
    build(sheet) {
      choice = make("select", { "aria-label": WORDS.fact, onchange: () => this.update() }, ...Object.keys(FACTS).map((value) => make("option", { value, text: WORDS.facts[value].name })));
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

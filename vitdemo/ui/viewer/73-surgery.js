// Patch surgery: hide, swap and shuffle patches, with or without positions, and see what changes.
(() => {
  let masked = new Set(), order = null, without, words, table, tools, shownFor = "", current = 0;
  const identity = () => Array.from({ length: result.patches }, (_, i) => i);

  function build(sheet) {
    const button = (text, act) => make("button", { type: "button", class: "vd-button", text, onclick: act });
    without = make("input", { type: "checkbox", onchange: operate });
    words = make("p", { role: "status" });
    table = make("div", { class: "vd-scroll" });
    tools = make("div", { class: "vd-lines vd-here" }, make("p", { class: "vd-hint", text: "Click patches of the picture to choose them, or move there with the arrow keys and press x." }),
      make("div", { class: "vd-row" }, button("Hide the chosen", hide), button("Swap two chosen", swap), button("Shuffle all patches", shuffle), button("Undo everything", reset)),
      make("label", { class: "vd-line" }, without, " Remove the position embeddings"), words);
    $("focus").after(tools);                                               // under the picture: what is cut and the knife belong together
    sheet.append(make("p", { text: "The tools stand under the picture above." }), table);
  }

  function hide() {
    if (!marked.size) { words.textContent = "Choose patches first: click them in the picture."; return; }
    for (const patch of marked) masked.add(patch);
    marked.clear();
    operate();
  }

  function swap() {
    if (marked.size !== 2) { words.textContent = "Choose exactly two patches to swap; " + marked.size + " are chosen."; return; }
    order ??= identity();
    const [one, two] = [...marked].map((patch) => order.indexOf(patch));
    [order[one], order[two]] = [order[two], order[one]];
    marked.clear();
    operate();
  }

  function shuffle() {
    order = identity();
    for (let i = order.length - 1; i > 0; i--) { const j = Math.floor(Math.random() * (i + 1)); [order[i], order[j]] = [order[j], order[i]]; }
    operate();
  }

  function reset() {
    masked = new Set(); order = null; without.checked = false;
    marked.clear();
    current++;
    operated = null;
    table.replaceChildren();
    words.textContent = "";
    if (other.kind === "surgery") compareWith("none"); else { showCompare(); draw(); }
  }

  async function operate() {
    const about = result, mine = ++current;
    words.className = "";
    words.textContent = "Looking again …";
    try {
      const answer = await ask(about, { question: "surgery", masked: [...masked].sort((a, b) => a - b), order, positions: !without.checked });
      const after = await Result.of(answer);
      if (mine !== current || about !== result) return;
      operated = after;
      compareWith("surgery");
      tell(answer);
    } catch (failure) {
      if (mine === current) { words.textContent = failure.message; words.className = "vd-trouble"; }
    }
  }

  function tell(answer) {
    const moved = order !== null, positions = !without.checked, change = answer.difference === null ? "" : answer.difference === 0 ? "0" : answer.difference < 1e-3 ? answer.difference.toExponential(1) : answer.difference.toFixed(3);
    words.textContent = (masked.size ? masked.size + (masked.size === 1 ? " patch hidden. " : " patches hidden. ") : "") + (moved ? "Patches moved. " : "") + (positions ? "" : "Without positions. ") +
      (change === "" ? "" : "The " + (result.known ? "logits" : result.first === null ? "average patch" : "class token") + " changed by at most " + change + (positions ? "" : " against the unmoved picture without positions") + "." +
        (!positions && moved && !masked.size ? " That is rounding and nothing else: without positions a Vision Transformer sees a bag of patches, so their order cannot matter." : ""));
    const row = (name, list) => make("tr", {}, make("th", { scope: "row", text: name }), ...list.slice(0, 3).map(([klass, share]) => make("td", { text: klass + " " + percent(share) })));
    table.replaceChildren(...(answer.before?.length ? [make("table", {}, make("tbody", {}, row("before" + (positions ? "" : ", without positions"), answer.before), row("after", answer.top)))] : []));
  }

  panel({
    key: "surgery", place: 4, live: true, title: "Patch surgery", line: "Hide, swap or shuffle patches and watch the class and the maps change; without positions, shuffling changes nothing.", build,
    update() {
      if (tools.hidden || !tools.seen) { tools.hidden = false; tools.seen = true; $("focus").scrollIntoView({ block: "nearest" }); }
      if (shownFor === result.key) return;
      shownFor = result.key;
      masked = new Set(); order = null; without.checked = false; without.disabled = result.positions === "none";
      words.textContent = "";
      table.replaceChildren();
    },
    click(patch) { if (marked.has(patch)) marked.delete(patch); else marked.add(patch); draw(); return true; },
    close() { tools.hidden = true; if (marked.size) { marked.clear(); draw(); } },
  });
})();

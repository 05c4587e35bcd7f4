// Patch surgery: hide, swap and shuffle patches, with or without positions, and see what changes.
(() => {
  let masked = new Set(), order = null, without, words, table, tools, shownFor = "", current = 0;
  const identity = () => Array.from({ length: result.patches }, (_, i) => i);

  function build(sheet) {
    const button = (text, act) => make("button", { type: "button", class: "vd-button", text, onclick: act });
    without = make("input", { type: "checkbox", onchange: operate });
    words = make("p", { role: "status" });
    table = make("div", { class: "vd-scroll" });
    tools = make("div", { class: "vd-lines vd-here" }, make("p", { class: "vd-hint", text: WORDS.surgery_choose }),
      make("div", { class: "vd-row" }, button(WORDS.surgery_hide, hide), button(WORDS.surgery_swap, swap), button(WORDS.surgery_shuffle, shuffle), button(WORDS.surgery_undo, reset)),
      make("label", { class: "vd-line" }, without, " " + WORDS.surgery_positions), words);
    $("focus").after(tools);                                               // under the picture: what is cut and the knife belong together
    sheet.append(make("p", { text: WORDS.surgery_tools }), table);
  }

  function hide() {
    if (!marked.size) { words.textContent = WORDS.surgery_choose_first; return; }
    for (const patch of marked) masked.add(patch);
    marked.clear();
    operate();
  }

  function swap() {
    if (marked.size !== 2) { words.textContent = phrase(WORDS.surgery_choose_two, { n: marked.size }); return; }
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
    words.textContent = WORDS.surgery_looking;
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
    const moved = order !== null, positions = !without.checked, { difference } = answer;
    const what = WORDS.surgery_outputs[result.known ? "logits" : result.first === null ? "average" : "token"], change = difference && (difference < 1e-3 ? difference.toExponential(1) : difference.toFixed(3));
    words.textContent = [
      masked.size && phrase(WORDS.surgery_hidden, { n: masked.size }), moved && WORDS.surgery_moved, !positions && WORDS.surgery_without,
      difference !== null && phrase(positions ? WORDS.surgery_changed : WORDS.surgery_changed_without, { what, change }),
      difference !== null && !positions && moved && !masked.size && WORDS.surgery_rounding].filter(Boolean).join(" ");
    const row = (name, list) => make("tr", {}, make("th", { scope: "row", text: name }), ...list.slice(0, 3).map(([klass, share]) => make("td", { text: klass + " " + percent(share) })));
    table.replaceChildren(...(answer.before?.length ? [make("table", {}, make("tbody", {}, row(positions ? WORDS.surgery_before : WORDS.surgery_before_without, answer.before), row(WORDS.surgery_after, answer.top)))] : []));
  }

  panel({
    key: "surgery", place: 4, live: true, title: WORDS.surgery_title, line: WORDS.surgery_line, build,
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

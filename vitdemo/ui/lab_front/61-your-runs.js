// The list of the visitor's own runs, and the loading of a checkpoint file as one of them.
(() => {
  const EVERY = 4000, ITEMS = new Map(), ticked = [];                    // nodes by run id; ids in the order they were ticked
  let rows = [], timer = 0, asking = false, again = false, shownState = "";
  const { body, head } = section("runs", 10, WORDS.your_runs, phrase(WORDS.your_runs_line, { most: MOST_OVERLAID }), { open: true });
  const nothing = make("p", { class: "vl-empty", text: WORDS.no_runs });
  const list = make("ul", { class: "vl-run-list", "aria-label": WORDS.your_runs });
  const overlaid = make("div", { class: "vl-overlaid" });
  body.append(nothing, list, buildLoading(), overlaid);

  on("runs", refresh);
  on("run", (id) => { for (const [known, item] of ITEMS) item.chosen(known === id); });
  on("status", (status) => { const now = lab.id + status?.state; if (now !== shownState) { shownState = now; refresh(); } });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && root.isConnected) refresh(); });

  // Asked for anew, once, however often it is wished for at the same time.
  async function refresh() {
    if (asking) { again = true; return; }
    asking = true;
    clearTimeout(timer);
    do {
      again = false;
      await Promise.resolve();
      try { await look(); } catch (failure) { if (!rows.length) nothing.textContent = failure.message; }
    } while (again);
    asking = false;
    if (rows.some((one) => !isOver(one.state)) && root.isConnected)
      timer = setTimeout(() => root.offsetParent && !document.hidden ? refresh() : later(), EVERY);
  }

  function later() { timer = setTimeout(() => root.isConnected && (root.offsetParent && !document.hidden ? refresh() : later()), EVERY); }

  async function look() {
    const ids = mine.list();
    const answer = ids.length ? await ask({ question: "list", mine: ids }) : { runs: [], gone: [] };
    for (const id of answer.gone ?? []) mine.remove(id);
    if (answer.gone?.length) say(phrase(WORDS.runs_gone, { n: answer.gone.length }));
    rows = ids.map((id) => answer.runs.find((one) => one.id === id)).filter(Boolean);
    draw();
    emit("listed", rows);
  }

  function draw() {
    const trained = rows.filter((one) => !one.imported), own = differences(trained);
    nothing.hidden = rows.length > 0;
    for (const [id, item] of ITEMS) if (!rows.some((one) => one.id === id)) { item.node.remove(); ITEMS.delete(id); untick(id); }
    rows.forEach((one, place) => {
      if (!ITEMS.has(one.id)) ITEMS.set(one.id, runItem(one.id, { tick, removed }));
      const item = ITEMS.get(one.id);
      item.show(one, own[trained.indexOf(one)] ?? []);
      item.chosen(one.id === lab.id);
      if (list.children[place] !== item.node) list.insertBefore(item.node, list.children[place] ?? null);
    });
    head.querySelector(".vl-how-many")?.remove();
    if (rows.length)
      head.querySelector(".vl-title").after(make("span", { class: "vl-how-many vl-hint", text: phrase(WORDS.n_runs, { n: rows.length }) }));
    overlay();
  }

  function tick(id, wanted) {
    if (wanted && ticked.length >= MOST_OVERLAID) {
      say(phrase(WORDS.most_overlaid, { most: MOST_OVERLAID }), true);
      overlay();
      return;
    }
    if (wanted) ticked.push(id); else untick(id);
    overlay();
  }

  function untick(id) { if (ticked.includes(id)) ticked.splice(ticked.indexOf(id), 1); }

  function overlay() {
    for (const [id, item] of ITEMS) item.mark(ticked.indexOf(id));
    showOverlay(overlaid, ticked.map((id) => rows.find((one) => one.id === id)).filter(Boolean));
  }

  // The focus goes to the neighbour, so that the keyboard does not fall back to the top of the page.
  function removed(id) {
    const at = [...ITEMS.get(id).node.parentNode.children].indexOf(ITEMS.get(id).node);
    untick(id);
    if (lab.id === id) choose(null);
    mine.remove(id);
    ITEMS.get(id)?.node.remove();
    ITEMS.delete(id);
    (list.children[Math.min(at, list.children.length - 1)]?.querySelector("button") ?? head).focus();
  }

  // A checkpoint file becomes a run like the others: it can be opened, tested, and fine-tuned.
  function buildLoading() {
    const input = make("input", { type: "file", class: "vl-hidden", id: "vl-checkpoint", accept: ".safetensors,.pt,.pth,.bin",
      onchange: () => { const [file] = input.files; input.value = ""; if (file) load(file); } });
    const words = make("span", { class: "vl-hint", role: "status", text: WORDS.kinds_of_checkpoints });
    const heads = make("input", { type: "number", min: 1, max: 256, value: 12, id: "vl-checkpoint-heads" }),
      go = make("button", { type: "submit", class: "vl-button", text: WORDS.load_with_heads });
    const form = make("form", { class: "vl-row", hidden: true,
      onsubmit: (event) => { event.preventDefault(); open(Number(heads.value)); } }, make("label", {}, WORDS.attention_heads, heads), go);
    const box = make("div", { class: "vl-loading vl-drop" },
      make("div", { class: "vl-row" }, make("label", { class: "vl-button vl-file" }, input, WORDS.load_checkpoint), words), form);
    let path = null;

    dropInto(box, (files) => load(files[0]));

    async function load(file) {
      form.hidden = true;
      tell(phrase(WORDS.reading_file, { name: file.name }));
      try { path = await handOver(file, lab.hello?.limits?.zip_megabytes); await open(); } catch (failure) { tell(failure.message, true); }
    }

    async function open(count) {
      try {
        const answer = await ask({ question: "open", path, ...(count ? { heads: count } : {}) });
        form.hidden = !answer.heads_needed;
        tell(answer.sentence ?? WORDS.loaded, Boolean(answer.heads_needed));
        if (answer.heads_needed) heads.select();
        if (answer.run) mine.add(answer.run);
      } catch (failure) { tell(failure.message, true); }
    }

    function tell(text, trouble = false) { words.textContent = text; words.className = trouble ? "vl-trouble" : "vl-hint"; }

    return box;
  }
})();

// What a class sees of the viewer on the projector, screen by screen. The view is the page's own: who leaves finds the layer, the head and
// the picture that were shown last.
const projected = (() => {
  const paper = () => getComputedStyle(root).getPropertyValue("--vd-paper") || "#fff";
  const said = () => trouble || result.progress || WORDS.asking_model;
  let example = 0, spoken = 0, alone = true;                              // which example, which of the first classes, whether a map has its own scale

  // A canvas of its own in a screen: made when the screen comes, painted by `show(canvas, room)`.
  function canvasScreen(screen, show) {
    let canvas = null;
    return { ...screen, enter(stage) { canvas = make("canvas", { role: "img" }); stage.append(canvas); screen.act?.(canvas); }, draw: (room) => {
      canvas.setAttribute("aria-label", screen.say().filter(Boolean).join(". "));
      show(canvas, room);
    } };
  }

  // The whole picture, what is cropped away included.
  const entire = (about) => (about.entire ??= { photo: about.photo, width: about.width, height: about.height, crop: [0, 0, about.height, about.width] });

  // The brightest patch, framed for the back row; none where all are alike or no number says which.
  const brightest = (about, vector) => hovered === null ? frameOfMost(about, vector) : [];

  // Gaps between patches that are seen from the back row, and leave most of each patch.
  const gap = (about, side) => Math.max(1, Math.min(6, 0.07 * side * (about.crop[3] - about.crop[1]) / about.width / about.cols));

  const LAYER = { arrowup: () => change({ layer: view.layer + 1 }), arrowdown: () => change({ layer: view.layer - 1 }) };
  const HEAD = { "[": () => change({ kind: "attention", head: nextHead(-1) }), "]": () => change({ kind: "attention", head: nextHead(1) }), m: () => change({ kind: "attention", head: "mean" }) };
  const TOKEN = { c: () => change({ token: result.first, direction: "reads" }), r: () => { if (view.token !== null) change({ direction: view.direction === "reads" ? "read_by" : "reads" }); } };
  const maps = () => rowsOf(result, view.token, view.direction);
  const who = () => aboutToken(result, view.token, view.direction);

  const first = canvasScreen({ name: WORDS.screens.picture, say: () => [WORDS.what_is_this, ""] },
    (canvas, room) => large(canvas, entire(result), null, 0, room));

  const cut = canvasScreen({ name: WORDS.screens.cut, say: () => [phrase(WORDS.cut_into, { rows: result.rows, cols: result.cols, n: result.patches }), ""] },
    (canvas, room) => large(canvas, result, null, 0, room, { grid: true, bold: gap(result, fitted(result, room)), ink: paper() }));

  // The three first classes as bars, beside the picture.
  const answer = (() => {
    const list = make("ol", { class: "vd-show-bars" }), three = () => result.top.slice(0, 3);
    let canvas;
    return { name: WORDS.screens.answer, there: () => result.top.length > 0, say: () => [phrase(WORDS.it_says, { name: result.top[0][0] }), result.truth ? phrase(WORDS.true_label, { name: result.truth }) : ""],
      enter(stage) { canvas = make("canvas", { role: "img", "aria-label": WORDS.screens.picture }); stage.append(canvas, list); },
      draw(room) {
        large(canvas, entire(result), null, 0, room.wide > room.tall ? { wide: 0.42 * room.wide, tall: 0.8 * room.tall } : { wide: room.wide, tall: 0.4 * room.tall });
        list.replaceChildren(...three().map(([name, share]) => make("li", {}, make("span", { text: name }), make("span", { text: percent(share) }),
          make("div", {}, make("i", { style: "width:" + 100 * share + "%" })))));
      } };
  })();

  // The map that the page shows, large; beside it what the page compares it with.
  const map = (() => {
    const figure = () => make("figure", {}, make("figcaption"), make("canvas", { role: "img" }));
    const one = figure(), two = figure(), scale = make("canvas", { width: 256, height: 14, role: "img" }), low = make("span"), high = make("span");
    const bar = make("div", { class: "vd-show-scale" }, low, scale, high), panes = make("div", { class: "vd-show-panes" }, one, two), box = make("div", { class: "vd-show-column" }, panes, bar);
    bindPointer(one.lastChild, () => seenPart(other.flicker && other.phase && beside() ? beside().result : result));
    bindPointer(two.lastChild, () => seenPart(beside()?.result ?? result));
    const line = (vector) => !vector ? said() : hovered !== null ? patchSentence(result, vector, hovered) :
      view.kind === "attention" ? capital(who()) + ": " + mostIn(vector) : FEATURES.includes(view.kind) ? "" : capital(mostIn(vector, !BY_CLASS.includes(view.kind)));
    return { name: WORDS.screens.map, hint: WORDS.keys_map, say: () => [titleOf(result), line(mapOf(result))],
      enter: (stage) => stage.append(box),
      draw({ wide, tall }) {
        const captions = beside() ? 60 : 0;
        const kept = look.own;
        look.own = alone && !beside();                                     // one map by itself may use all colours: its number stands beside them
        const drawn = drawPanes(one.lastChild, two.lastChild, { wide, tall: tall - bar.offsetHeight - 16 - captions * tall / 800, face: seenPart, marks: brightest, ...SEEN_FAR });
        look.own = kept;
        ramp(scale);
        low.textContent = scaleNumber(drawn.low);
        const number = scaleNumber(drawn.high);
        high.textContent = view.kind === "attention" && !beside() ? phrase(alone || ownScale(view.head) ? WORDS.high_own : WORDS.high_layer, { number }) : number;
        bar.hidden = view.kind === "colours";
      },
      keys: { ...LAYER, ...HEAD, ...TOKEN, o: () => { alone = !alone; change({}); }, u: () => compareWith(other.kind === "twin" ? "none" : "twin") } };
  })();

  // How many columns of equal pictures, each over a line of words, are largest in a room; and how wide one is then.
  function tiling(count, { wide, tall }, shape, line, frame) {
    const choices = Array.from({ length: count }, (_, i) => i + 1).map((columns) =>
      ({ columns, side: Math.min(wide / columns, (tall / Math.ceil(count / columns) - line) * shape) - frame }));
    return choices.reduce((best, one) => one.side > best.side ? one : best);
  }

  // All heads of the layer; one that is clicked is shown alone.
  const heads = (() => {
    const box = make("div", { class: "vd-show-tiles", role: "group", "aria-label": WORDS.heads });
    let built = null;
    function build() {
      built = result;
      box.replaceChildren(...Array.from({ length: result.heads }, (_, head) => make("button", { type: "button", onclick: () => { change({ kind: "attention", head }); shown.go(map.name); } },
        make("canvas", { "aria-hidden": "true" }), headName(head))));
    }
    return { name: WORDS.screens.heads, hint: WORDS.keys_heads, enter: (stage) => stage.append(box), keys: { ...LAYER, ...HEAD, ...TOKEN },
      say: () => [phrase(WORDS.layer_and_count, { layer: view.layer + 1, n: result.heads }), maps() ? capital(who()) : said()],
      draw(room) {
        if (built !== result) build();
        const all = maps(), line = 1.7 * parseFloat(getComputedStyle(box.firstChild).fontSize), about = seenPart(result), { columns, side } = tiling(result.heads, room, about.width / about.height, line, 30);
        box.style.gridTemplateColumns = "repeat(" + columns + ", auto)";
        for (const [head, button] of [...box.children].entries()) {
          const vector = all && fuse(all, view.layer, head), high = all ? highOf(result, all, view.layer, head, vector) : 0;
          button.setAttribute("aria-pressed", String(head === view.head));
          button.setAttribute("aria-label", headName(head) + (all ? ": " + mostIn(vector) : ""));
          button.firstChild.style.width = side + "px";
          paint(button.firstChild, about, vector, high, side, { ...SEEN_FAR, marks: [...marksOf(result), ...brightest(result, vector)] });
        }
      } };
  })();

  // The page's wall, lent: it is drawn anew there, and a click chooses there.
  const wall = (() => {
    const node = lent($("wall-box"));
    let box = null;
    const move = (layer, step) => () => change({ kind: "attention", layer: view.layer + layer, ...(step ? { head: nextHead(step) } : {}) });
    return { name: WORDS.screens.wall, hint: WORDS.keys_heads,
      say: () => [phrase(WORDS.layers_and_heads, { layers: result.layers, heads: result.heads }), phrase(WORDS.layers_down, { reads: who() })],
      enter(stage) { box = make("div", { class: "vd-show-wall", onclick: (event) => { if (event.target === $("wall")) shown.go(map.name); } }); node.take(box); stage.append(box); },
      draw: (room) => fillRoom(box, room, (result.heads * (result.cols + 1) - 1) / (result.layers * (result.rows + 1) - 1), result.layers),
      leave: node.back, keys: { arrowup: move(-1, 0), arrowdown: move(1, 0), "[": move(0, -1), "]": move(0, 1), m: HEAD.m, ...TOKEN } };
  })();

  const speaks = canvasScreen({ name: WORDS.screens.class, hint: WORDS.keys_class, there: () => result.known > 0 && result.leading.length > 0,
    say: () => {
      const wanted = { ...view, kind: "relevance", klass: result.leading[spoken] ?? result.leading[0] }, vector = mapOf(result, wanted);
      return [titleOf(result, wanted), vector ? phrase(WORDS.relevance_most, { most: mostIn(vector, false) }) : said()];
    },
    keys: { arrowup: () => speak(-1), arrowdown: () => speak(1) } },
  (canvas, room) => {
    const vector = mapOf(result, { ...view, kind: "relevance", klass: result.leading[spoken] ?? result.leading[0] });
    large(canvas, seenPart(result), vector, vector ? largest(vector, result.prefix) : 0, room, { grid: look.grid, marks: brightest(result, vector), ...SEEN_FAR });
  });

  function speak(step) {
    spoken = Math.max(0, Math.min(2, result.leading.length - 1, spoken + step));
    change({});
  }

  // Does the map matter? The test's curve once it was made, which a key does.
  const test = { name: WORDS.screens.test, hint: WORDS.keys_test, there: () => result.known > 0 && !FEATURES.includes(view.kind),
    say: () => tested.now() ? tested.say(tested.now()) : [WORDS.does_it_matter, tested.progress() || WORDS.press_t],
    enter(stage) { this.box = make("div", { class: "vd-show-chart" }); this.canvas = make("canvas", { role: "img", "aria-label": WORDS.picture_under_map }); stage.append(this.box, this.canvas); },
    draw(room) {
      const done = tested.now(), vector = done ? null : mapOf(result), high = vector ? largest(vector, result.prefix) : 0;
      this.box.hidden = !done;
      this.canvas.hidden = Boolean(done);
      this.box.replaceChildren(...(done ? [tested.curve(done)] : []));
      if (!done) large(this.canvas, seenPart(result), vector, high, room, { grid: look.grid, marks: brightest(result, vector), ...SEEN_FAR });
    },
    keys: { t: () => openPanel("test", { act: true }) } };

  // The next example picture, by the page's own list.
  function turn(step) {
    const all = exampleButtons();
    if (!all.length) return;
    const now = all.findIndex(isShown);
    if (now >= 0) example = now;                                           // it may have been chosen on the page
    example = (example + step + all.length) % all.length;
    spoken = 0;
    all[example].click();
  }

  const shown = projector({
    missing: () => result ? "" : $("message").textContent || WORDS.opening, screens: [first, cut, answer, map, heads, wall, speaks, test], hint: WORDS.keys_next,
    keys: { n: () => turn(1), "shift n": () => turn(-1), ...Object.fromEntries(Array.from("123456789", (digit) => [digit, () => { if (digit <= result?.heads) change({ kind: "attention", head: digit - 1 }); }])) },
  });
  return shown;
})();

// What a class sees of the viewer on the projector, screen by screen. The view is the page's own: who leaves finds the layer, the head and
// the picture that were shown last.
const projected = (() => {
  const paper = () => getComputedStyle(root).getPropertyValue("--vd-paper") || "#fff";
  const said = () => trouble || result.progress || "Asking the model …";
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
  const who = () => view.direction === "reads" ? "What " + result.tokenName(view.token) + " reads" : "Who reads " + result.tokenName(view.token);

  const first = canvasScreen({ name: "the picture", say: () => ["What is this?", ""] },
    (canvas, room) => large(canvas, entire(result), null, 0, room));

  const cut = canvasScreen({ name: "cut into patches", say: () => [result.rows + " × " + result.cols + " = " + result.patches + " patches", ""] },
    (canvas, room) => large(canvas, result, null, 0, room, { grid: true, bold: gap(result, fitted(result, room)), ink: paper() }));

  // The three first classes as bars, beside the picture.
  const answer = (() => {
    const list = make("ol", { class: "vd-show-bars" }), three = () => result.top.slice(0, 3);
    let canvas;
    return { name: "the answer", there: () => result.top.length > 0, say: () => ["It says: " + result.top[0][0], result.truth ? "True label: " + result.truth : ""],
      enter(stage) { canvas = make("canvas", { role: "img", "aria-label": "the picture" }); stage.append(canvas, list); },
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
      view.kind === "attention" ? who() + ": " + mostIn(vector) : FEATURES.includes(view.kind) ? "" : capital(mostIn(vector));
    return { name: "where it looks", hint: "↑ ↓ layer   [ ] head   o scale   u untrained", say: () => [titleOf(result), line(mapOf(result))],
      enter: (stage) => stage.append(box),
      draw({ wide, tall }) {
        const captions = beside() ? 60 : 0;
        const kept = look.own;
        look.own = alone && !beside();                                     // one map by itself may use all colours: its number stands beside them
        const drawn = drawPanes(one.lastChild, two.lastChild, { wide, tall: tall - bar.offsetHeight - 16 - captions * tall / 800, face: seenPart, marks: brightest, ...SEEN_FAR });
        look.own = kept;
        ramp(scale);
        low.textContent = scaleNumber(drawn.low);
        high.textContent = scaleNumber(drawn.high) + (view.kind === "attention" && !beside() ? alone ? ", this map's own scale" : ", one scale for the layer" : "");
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
    const box = make("div", { class: "vd-show-tiles", role: "group", "aria-label": "Heads" });
    let built = null;
    function build() {
      built = result;
      box.replaceChildren(...Array.from({ length: result.heads }, (_, head) => make("button", { type: "button", onclick: () => { change({ kind: "attention", head }); shown.go(map.name); } },
        make("canvas", { "aria-hidden": "true" }), "head " + (head + 1))));
    }
    return { name: "all heads", hint: "↑ ↓ layer   [ ] head", enter: (stage) => stage.append(box), keys: { ...LAYER, ...HEAD, ...TOKEN },
      say: () => ["Layer " + (view.layer + 1) + (result.heads === 1 ? ": its one head" : ": all " + result.heads + " heads"), maps() ? who() : said()],
      draw(room) {
        if (built !== result) build();
        const all = maps(), line = 1.7 * parseFloat(getComputedStyle(box.firstChild).fontSize), about = seenPart(result), { columns, side } = tiling(result.heads, room, about.width / about.height, line, 30);
        box.style.gridTemplateColumns = "repeat(" + columns + ", auto)";
        for (const [head, button] of [...box.children].entries()) {
          const vector = all && fuse(all, view.layer, head), high = !all ? 0 : look.own ? largest(vector, result.prefix) : layerHigh(result, all, view.layer);
          button.setAttribute("aria-pressed", String(head === view.head));
          button.setAttribute("aria-label", "head " + (head + 1) + (all ? ": " + mostIn(vector) : ""));
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
    return { name: "the whole model", hint: "↑ ↓ layer   [ ] head",
      say: () => [result.layers + (result.layers === 1 ? " layer × " : " layers × ") + result.heads + (result.heads === 1 ? " head" : " heads"), "Layers down, heads across: " + who().toLowerCase()],
      enter(stage) { box = make("div", { class: "vd-show-wall", onclick: (event) => { if (event.target === $("wall")) shown.go(map.name); } }); node.take(box); stage.append(box); },
      draw: (room) => fillRoom(box, room, (result.heads * (result.cols + 1) - 1) / (result.layers * (result.rows + 1) - 1), result.layers),
      leave: node.back, keys: { arrowup: move(-1, 0), arrowdown: move(1, 0), "[": move(0, -1), "]": move(0, 1), m: HEAD.m, ...TOKEN } };
  })();

  const speaks = canvasScreen({ name: "what speaks for it", hint: "↑ ↓ class", there: () => result.known > 0 && result.leading.length > 0,
    say: () => {
      const wanted = { ...view, kind: "relevance", klass: result.leading[spoken] ?? result.leading[0] }, vector = mapOf(result, wanted);
      return ["What speaks for " + className(result, wanted.klass), vector ? "Class relevance: " + mostIn(vector, false) : said()];
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
  const test = { name: "does the map matter", hint: "t test this map", there: () => result.known > 0 && !FEATURES.includes(view.kind),
    say: () => tested.now() ? tested.say(tested.now()) : ["Does the map matter?", tested.progress() || "Press t: the patches it calls important are hidden, one after the other. Does the answer fall?"],
    enter(stage) { this.box = make("div", { class: "vd-show-chart" }); this.canvas = make("canvas", { role: "img", "aria-label": "the picture under the map" }); stage.append(this.box, this.canvas); },
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
    const all = [...document.querySelectorAll("#vd-examples button.thumbnail-item")];
    if (!all.length) return;
    const now = all.findIndex((one) => one.textContent.trim().replaceAll(" ", "-") === result?.link?.example);
    if (now >= 0) example = now;                                           // it may have been chosen on the page
    example = (example + step + all.length) % all.length;
    spoken = 0;
    all[example].click();
  }

  const shown = projector({
    missing: () => result ? "" : $("message").textContent || "Opening …", screens: [first, cut, answer, map, heads, wall, speaks, test], hint: "n next",
    keys: { n: () => turn(1), "shift n": () => turn(-1), ...Object.fromEntries(Array.from("123456789", (digit) => [digit, () => { if (digit <= result?.heads) change({ kind: "attention", head: digit - 1 }); }])) },
  });
  return shown;
})();

// Sixteen pictures it never trains on and what it takes them for, and the first layer forming: its filters and its positions.
(() => {
  const watch_ = section("run", 42, WORDS.watched, WORDS.watched_line, { column: "side" });
  const first = section("run", 45, WORDS.first_layer, WORDS.first_layer_line, { column: "under" });
  const count = make("p", { class: "vl-count" }), grid = make("ul", { class: "vl-watched" });
  watch_.body.append(count, grid);
  const pair = (title, line) => {
    const then = make("canvas", { role: "img" }), now = make("canvas", { role: "img" }),
      words = make("p", { class: "vl-hint", text: line });
    const caption = make("figcaption");
    const box = make("section", { class: "vl-pair" }, make("h4", { text: title }), make("div", { class: "vl-then-now" },
      make("figure", {}, make("figcaption", { text: WORDS.at_the_start }), then), make("figure", {}, caption, now)), words);
    return { box, then, now, caption, title };
  };
  const filters = pair(WORDS.patch_filters, WORDS.filters_line), positions = pair(WORDS.similarity_of_positions, WORDS.positions_line);
  first.body.append(make("div", { class: "vl-pairs" }, filters.box, positions.box));
  let tiles = [], built = null, frame = 0;

  function build() {
    const { scene } = lab;
    built = scene;
    tiles = scene.watched.map(({ picture: url, truth }) => {
      const name = make("b"), sure = make("span", { class: "vl-number" }), fate = make("span", { class: "vl-fate" }),
        line = svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true", class: "vl-spark" });
      const box = make("li", {}, make("img", { src: url, alt: phrase(WORDS.picture_of_class, { name: scene.classes[truth] }) }),
        make("div", { class: "vl-tile" }, make("span", { class: "vl-answer" }, name, sure), fate, line));
      return { box, name, sure, fate, line, truth };
    });
    grid.replaceChildren(...tiles.map(({ box }) => box));
  }

  function draw() {
    frame = 0;
    const { scene, frames } = lab, shown = frames[lab.index];
    first.box.hidden = !scene || !shown;
    watch_.box.hidden = first.box.hidden || !scene.watched.length;          // a recorded run ships without pictures of its data
    if (!scene || !shown) return;
    if (built !== scene) build();
    if (watch_.box.open) drawWatched(shown);
    if (first.box.open) drawFirst(shown);
  }

  function drawWatched(shown) {
    const { scene, frames } = lab, most = Math.max(1, frames.length - 1);
    tiles.forEach((tile, i) => {
      const [answer, sure] = shown.watched[i], right = answer === tile.truth;
      tile.box.dataset.right = String(right);
      tile.name.textContent = scene.classes[answer];
      tile.sure.textContent = percent(sure);
      tile.fate.textContent = right ? WORDS.is_right : phrase(WORDS.it_is, { name: scene.classes[tile.truth] });
      tile.line.replaceChildren(svg("polyline",
        { points: frames.map((one, k) => (100 * k / most).toFixed(1) + "," + (19 - 18 * one.watched[i][2]).toFixed(1)).join(" ") }),
        svg("line", { x1: 100 * lab.index / most, x2: 100 * lab.index / most, y1: 0, y2: 20 }));
    });
    const right = tiles.filter((tile, i) => shown.watched[i][0] === tile.truth).length;
    const [before, after] = around(WORDS.watched_right, "count", { when: when(shown) });
    count.replaceChildren(before, make("b", { text: phrase(WORDS.n_of_all, { n: right, all: tiles.length }) }), after);
  }

  const when = (shown) => shown.step === 0 ? WORDS.before_any_training : phrase(WORDS.after_time, { time: clock(shown.seconds) });

  function drawFirst(shown) {
    const start = lab.frames[0];
    for (const [part, key, paint_] of [[filters, "filters", paintFilters], [positions, "positions", paintPositions]]) {
      part.box.hidden = !shown[key];
      if (!shown[key]) continue;
      part.caption.textContent = when(shown);
      for (const [canvas, of] of [[part.then, start], [part.now, shown]])
        if (canvas.of !== of) {
          paint_(canvas, of[key]);
          canvas.of = of;
          dress(canvas, { "aria-label": phrase(WORDS.what_when, { what: part.title, when: when(of) }) }, []);
        }
    }
  }

  // Filters (n, P, Q, C) side by side with a pixel of nothing between them.
  function paintFilters(canvas, { count: n, rows, cols, channels, data }) {
    const raw = bytes(data), across = n > 16 ? 8 : n > 4 ? 4 : 2, down = Math.ceil(n / across), gap = Math.max(1, Math.round(rows / 6));
    canvas.width = across * (cols + gap) - gap;
    canvas.height = down * (rows + gap) - gap;
    const ctx = canvas.getContext("2d");
    for (let f = 0; f < n; f++) {
      const image = ctx.createImageData(cols, rows);
      for (let i = 0; i < rows * cols; i++) for (let c = 0; c < 4; c++)
        image.data[4 * i + c] = c === 3 ? 255 : raw[(f * rows * cols + i) * channels + Math.min(c, channels - 1)];
      ctx.putImageData(image, (f % across) * (cols + gap), Math.floor(f / across) * (rows + gap));
    }
  }

  // Similarities (tile rows, tile cols, rows, cols): one small map per position.
  function paintPositions(canvas, { rows, cols, tiles: [down, across] = [rows, cols], data }) {
    const raw = bytes(data), table = COLOUR_TABLES[look.colours];
    canvas.width = across * (cols + 1) - 1;
    canvas.height = down * (rows + 1) - 1;
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(cols, rows);
    for (let t = 0; t < down * across; t++) {
      for (let i = 0; i < rows * cols; i++) { image.data.set(table[raw[t * rows * cols + i]], 4 * i); image.data[4 * i + 3] = 255; }
      ctx.putImageData(image, (t % across) * (cols + 1), Math.floor(t / across) * (rows + 1));
    }
  }

  const later = () => { frame ||= requestAnimationFrame(draw); };
  for (const { box } of [watch_, first]) box.addEventListener("toggle", later);
  on("run", () => { built = null; filters.then.of = filters.now.of = positions.then.of = positions.now.of = null; later(); });
  on("news", later);
  on("scrub", later);
  on("look", () => { positions.then.of = positions.now.of = null; later(); });
})();

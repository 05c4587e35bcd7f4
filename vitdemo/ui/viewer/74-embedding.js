// What the first layer learned: patch filters, and how alike the positions are.
panel({
  key: "embedding", place: 5, title: WORDS.embedding_title, line: WORDS.embedding_line,
  build(sheet) {
    this.words = make("p", { role: "status" });
    this.filters = make("div", { class: "vd-filters", role: "group", "aria-label": WORDS.filters_group });
    this.kind = make("select", { "aria-label": WORDS.filters, onchange: () => this.fill() }, ...["principal", "filters"].map((value) => make("option", { value, text: WORDS.filters_shown[value] })));
    this.similar = make("canvas", { class: "vd-similar", role: "img" });
    this.told = make("p", { class: "vd-hint" });
    sheet.append(this.words, make("div", { class: "vd-two" }, make("section", {}, make("h4", { text: WORDS.patch_filters }), this.kind, this.filters), make("section", {}, make("h4", { text: WORDS.similarity_of_positions }), this.similar, this.told)));
    for (const kind of ["pointermove", "click"]) this.similar.addEventListener(kind, (event) => this.point(event));
    this.similar.addEventListener("pointerleave", () => { this.told.textContent = this.rest; });
  },
  update() {
    if (this.about === result) { if (this.answer && this.colours !== look.colours) this.fill(); return; }
    const about = this.about = result;
    this.answer = null;
    this.words.textContent = WORDS.asking;
    ask(about, { question: "embedding" }).then((answer) => { if (about === result) { this.answer = answer; this.words.textContent = ""; this.fill(); } },
      (failure) => { this.words.textContent = failure.message; this.about = null; });
  },
  fill() {
    if (!this.answer) return;
    this.colours = look.colours;
    const { answer } = this, urls = answer[this.kind.value];
    this.filters.replaceChildren(...urls.map((url, i) => make("img", { src: url, alt: phrase(WORDS.filters_each[this.kind.value], { n: i + 1, all: urls.length }) })));
    this.similar.hidden = !answer.positions;
    if (!answer.positions) { this.told.textContent = this.rest = WORDS.positions_none; return; }
    const { rows, cols, data } = answer.positions, raw = atob(data), n = rows * cols, width = cols * (cols + 1) - 1, height = rows * (rows + 1) - 1;
    this.raw = raw;
    this.similar.width = width; this.similar.height = height;
    const ctx = this.similar.getContext("2d"), image = ctx.createImageData(width, height), table = COLOUR_TABLES[look.colours];
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const y = Math.floor(i / cols) * (rows + 1) + Math.floor(j / cols), x = (i % cols) * (cols + 1) + j % cols, colour = table[raw.charCodeAt(i * n + j)], at = 4 * (y * width + x);
      image.data[at] = colour[0]; image.data[at + 1] = colour[1]; image.data[at + 2] = colour[2]; image.data[at + 3] = 255;
    }
    ctx.putImageData(image, 0, 0);
    this.similar.setAttribute("aria-label", phrase(WORDS.positions_said, { n, ...this.near(rows, cols) }));
    this.told.textContent = this.rest = WORDS.positions_rest + (result.positions === "sinusoidal" ? " " + WORDS.positions_sines : "");
  },
  // How alike neighbours are on average, and any two.
  near(rows, cols) {
    const of = { near: [0, 0], all: [0, 0] }, n = rows * cols;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (i !== j) for (const key of Math.abs(Math.floor(i / cols) - Math.floor(j / cols)) + Math.abs(i % cols - j % cols) === 1 ? ["near", "all"] : ["all"]) {
      of[key][0] += this.raw.charCodeAt(i * n + j) / 127.5 - 1;
      of[key][1]++;
    }
    const mean = ([total, count]) => (total / (count || 1)).toFixed(2);
    return { near: mean(of.near), all: mean(of.all) };
  },
  point(event) {
    if (!this.answer?.positions) return;
    const { rows, cols } = this.answer.positions, box = this.similar.getBoundingClientRect();
    const y = (event.clientY - box.top) / box.height * (rows * (rows + 1) - 1), x = (event.clientX - box.left) / box.width * (cols * (cols + 1) - 1);
    const one = [Math.floor(y / (rows + 1)), Math.floor(x / (cols + 1))], two = [Math.min(rows - 1, Math.floor(y % (rows + 1))), Math.min(cols - 1, Math.floor(x % (cols + 1)))];
    if (!(one[0] >= 0 && one[0] < rows && one[1] >= 0 && one[1] < cols)) return;
    const value = this.raw.charCodeAt((one[0] * cols + one[1]) * rows * cols + two[0] * cols + two[1]) / 127.5 - 1, spot = ([r, c]) => phrase(WORDS.place, { row: r + 1, col: c + 1 });
    this.told.textContent = phrase(WORDS.positions_two, { one: spot(one), two: spot(two), value: value.toFixed(2) });
  },
});

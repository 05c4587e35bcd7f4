// The attention film: the chosen pictures as the model saw them at every look, one large, with the maps of all layers and heads beside it.
const film = { subject: 0, layer: -1, head: "mean", own: false, input: false, abouts: [], room: 480 };
(() => {
  const TALLEST = 480;       // CSS pixels of the large picture's height
  const { box, body } = section("run", 40, WORDS.film, WORDS.film_line, { column: "main" });
  const parts = film.parts = {};
  let fresh = 0;             // counts the runs, so that pictures of an earlier one that arrive late are dropped

  film.box = box;
  film.frame = () => lab.frames[lab.index] ?? null;
  film.hasMaps = () => Boolean(film.frame()?.subjects[film.subject]?.reads);
  film.about = () => film.abouts[film.subject]?.[film.input ? "input" : "photo"] ?? null;
  film.headName = (head) => head === "mean" ? WORDS.heads_joined.mean : phrase(WORDS.head_n, { n: head + 1 });
  // Which class a picture is of: its label or, for a picture that somebody chose, the class that its name says; null where nobody knows.
  film.truth = (subject = film.subject) => {
    const { name, truth } = lab.scene.subjects[subject],
      named = lab.scene.classes.findIndex((klass) => klass.toLowerCase() === name.toLowerCase());
    return truth ?? (named < 0 ? null : named);
  };
  film.nextHead = (step) => typeof film.head === "number" ? Math.max(0, Math.min(lab.scene.heads - 1, film.head + step)) :
    step > 0 ? 0 : lab.scene.heads - 1;
  film.title = () => phrase(WORDS.layer_and_heads, { layer: film.layer + 1, heads: film.headName(film.head) });

  // The weights (layers, heads, T) of a subject in a frame and the largest patch weight of every layer, worked out once; null for a CNN.
  film.maps = (frame, subject = film.subject) => {
    const seen = frame?.subjects[subject];
    if (!seen?.reads) return null;
    if (!seen.maps) {
      const all = unpack(seen.reads), highs = Array(all.layers).fill(0), ofLayer = all.tokens * all.heads;
      all.weights.forEach(
        (w, i) => { const l = Math.floor(i / ofLayer); if (i % all.tokens >= lab.scene.prefix && w > highs[l]) highs[l] = w; });
      seen.maps = { ...all, highs, tops: {} };
    }
    return seen.maps;
  };

  // One map over all tokens: a head, or the mean of a layer's heads.
  film.vector = ({ heads, tokens, weights }, layer = film.layer, head = film.head) => {
    const start = layer * heads * tokens;
    if (head !== "mean") return weights.subarray(start + head * tokens, start + (head + 1) * tokens);
    const out = new Float32Array(tokens);
    for (let i = 0; i < heads * tokens; i++) out[i % tokens] += weights[start + i] / heads;
    return out;
  };

  // What colours run up to: the largest weight of a map at any look, so that growth is visible; in the wall, where heads are compared, the
  // largest of any head of the layer. Three even shares at least: random weights, which read from everywhere alike, do not glow
  // before they learn.
  film.least = () => 3 / (lab.scene.prefix + lab.scene.rows * lab.scene.cols);
  film.top = (maps, layer, head) => head === undefined ? maps.highs[layer] :
    maps.tops[layer + "/" + head] ??= film.largest(film.vector(maps, layer, head));
  film.high = (layer, subject = film.subject, head = undefined) => lab.frames.reduce((most, frame) =>
    Math.max(most, film.maps(frame, subject) ? film.top(film.maps(frame, subject), layer, head) : 0), film.least());
  film.largest = (vector) => {
    let high = 0;
    for (let i = lab.scene.prefix; i < vector.length; i++) if (vector[i] > high) high = vector[i];
    return high;
  };
  film.placeOf = (vector) => {
    const { cols, prefix } = lab.scene, high = film.largest(vector), best = vector.indexOf(high, prefix) - prefix;
    return { place: phrase(WORDS.place, { row: Math.floor(best / cols) + 1, col: best % cols + 1 }), share: percent(high) };
  };
  film.scale = (vector, layer, subject) => film.own ? film.largest(vector) : film.high(layer, subject, film.head);

  film.change = (changes = {}) => { Object.assign(film, changes); draw(); film.tell(); film.speak(); };

  function build() {
    const stage = make("canvas", { class: "vl-film-main", role: "img" });
    const scale = make("canvas", { class: "vl-scale", width: 256, height: 14, role: "img" });
    Object.assign(parts, {
      stage, scale, empty: make("p", { class: "vl-hint", role: "status" }), whole: make("div", { class: "vl-film", hidden: true }),
      subjects: make("div", { class: "vl-subjects", role: "group", "aria-label": WORDS.film_picture }),
      even: make("i", { class: "vl-even" }), high: make("span"), unit: make("span", { class: "vl-hint" }),
      verdict: make("p", { class: "vl-verdict" }), right: make("p", { class: "vl-hint" }), top: make("ol", { class: "vl-top3" }),
      wall: make("canvas", { class: "vl-wall", role: "img" }), wallHeads: make("div", { class: "vl-wall-heads", "aria-hidden": "true" }),
      wallLayers: make("div", { class: "vl-wall-layers", "aria-hidden": "true" }), chosen: make("i", { class: "vl-wall-chosen" }),
      note: make("p", { class: "vl-hint" }), time: make("div", { class: "vl-time" }), told: make("div", { class: "vl-told" }),
      heads: make("div", { class: "vl-row", role: "group", "aria-label": WORDS.head }), layerName: make("span"),
      crop: make("p", { class: "vl-hint" }),
    });
    parts.layer = make("input", { type: "range", min: 1, max: 1, step: 1, value: 1, "aria-label": WORDS.layer,
      oninput: (event) => film.change({ layer: Number(event.target.value) - 1 }) });
    parts.bar = make("div", { class: "vl-bar" }, make("span", { text: "0" }),
      make("span", { class: "vl-scale-box" }, scale, parts.even), parts.high, parts.unit);
    parts.wallFrame = make("div", { class: "vl-wall-frame", tabindex: 0, role: "application",
      "aria-label": WORDS.all_maps_keys }, parts.wall, parts.chosen);
    parts.wallBox = make("section", { class: "vl-film-wall", "aria-label": WORDS.all_maps },
      make("h4", { text: WORDS.all_maps }),
      make("p", { class: "vl-hint", text: WORDS.all_maps_line }),
      make("div", { class: "vl-wall-box" }, parts.wallHeads, parts.wallLayers, parts.wallFrame));
    parts.controls = controls();
    parts.whole.append(parts.subjects, make("div", { class: "vl-film-room" }, stage, parts.crop, parts.bar),
      make("div", { class: "vl-film-beside" }, make("section", { class: "vl-film-answer", "aria-label": WORDS.answer_at_look },
        make("h4", { text: WORDS.what_it_answers }), parts.verdict, parts.top, parts.right, parts.note), parts.wallBox),
      parts.time, parts.controls, parts.told);
    body.append(parts.empty, parts.whole);
    new ResizeObserver(([entry]) => { if (entry.contentRect.width) { film.room = entry.contentRect.width; draw(); } })
      .observe(stage.parentElement);
    box.addEventListener("toggle", draw);
    ramp(parts.scale);
  }

  function controls() {
    const opacity = make("input", { type: "range", min: 0, max: 100, step: 1, value: look.opacity, "aria-label": WORDS.opacity,
      "aria-valuetext": phrase(WORDS.percent_n, { n: look.opacity }), oninput: (event) => {
        look.opacity = Number(event.target.value);
        event.target.setAttribute("aria-valuetext", phrase(WORDS.percent_n, { n: look.opacity }));
        emit("look");
      } });
    const colours = make("select", { onchange: (event) => { look.colours = event.target.value; emit("look"); } },
      ...Object.keys(COLOUR_TABLES).map((name) => make("option", { value: name, text: WORDS.colour_names[name] })));
    const tick = (name, text) => make("label", {},
      make("input", { type: "checkbox", oninput: (event) => film.change({ [name]: event.target.checked }) }), text);
    parts.mapControls = make("div", { class: "vl-film-controls" },
      make("label", { class: "vl-slide" }, parts.layerName, parts.layer), parts.heads,
      make("label", { class: "vl-slide" }, WORDS.opacity, opacity), make("label", {}, WORDS.colours, colours),
      tick("own", WORDS.own_scale));
    return make("div", { class: "vl-film-controls" }, parts.mapControls, tick("input", WORDS.as_model_sees));
  }

  // The pictures of a run's scene, decoded, as the shared painting wants them; and what depends on the scene alone.
  async function open(scene) {
    const mine = fresh, grid = { rows: scene.rows, cols: scene.cols, prefix: scene.prefix };
    const abouts = await Promise.all(scene.subjects.map(async ({ picture: url, seen, height, width, crop }) => {
      const [photo, input] = await Promise.all([picture(url), picture(seen)]);
      return { photo: { photo, height, width, crop, ...grid },
        input: { photo: input, height: input.height, width: input.width, crop: [0, 0, input.height, input.width], ...grid } };
    })).catch(() => null);
    if (mine !== fresh) return;
    if (!abouts) { parts.empty.textContent = WORDS.film_damaged; return; }
    Object.assign(film, { abouts, subject: 0, layer: scene.layers - 1, head: "mean" });
    parts.subjects.replaceChildren(...scene.subjects.map(({ name }, i) => make("button",
      { type: "button", onclick: () => film.change({ subject: i }) },
      make("canvas", { "aria-hidden": "true" }), make("span", { text: name }), make("span", { class: "vl-hint" }))));
    parts.layer.max = scene.layers;
    parts.heads.replaceChildren(...["mean", ...Array(scene.heads).keys()].map((head) => make("button", {
       type: "button", class: "vl-chip", "data-head": head, text: head === "mean" ? WORDS.mean : head + 1,
         ...(head === "mean" ? {} : { "aria-label": film.headName(head) }), onclick: () => film.change({ head }) })));
    parts.wallBox.style.setProperty("--vl-wall",
      Math.max(90, Math.min(78 * scene.heads, 320 * scene.heads * scene.cols / (scene.layers * scene.rows))) + 24 + "px");
    parts.wallHeads.replaceChildren(...Array.from({ length: scene.heads }, (_, h) => make("span", { text: h + 1 })));
    parts.wallLayers.replaceChildren(...Array.from({ length: scene.layers }, (_, l) => make("span", { text: l + 1 })));
    draw();
    film.tell();
    emit("film");
  }

  function draw() {
    const frame = film.frame(), there = Boolean(frame && film.abouts.length);
    parts.whole.hidden = !there;
    parts.empty.hidden = there;
    if (!there) { parts.empty.textContent = nothing(); return; }
    if (!box.open) return;
    const about = film.about(), maps = film.maps(frame), vector = maps && film.vector(maps),
      high = vector ? film.scale(vector, film.layer) : 0;
    const side = Math.max(1, Math.min(film.room, TALLEST * about.width / about.height));
    parts.stage.style.width = side + "px";
    paint(parts.stage, about, vector, high, side);
    const { name } = lab.scene.subjects[film.subject], { reader } = lab.scene, { step } = frame;
    parts.stage.setAttribute("aria-label", vector ?
      phrase(WORDS.map_at_step, { name, title: film.title(), reader, step, ...film.placeOf(vector) }) :
      phrase(WORDS.picture_at_step, { name, step }));
    const [top, left, bottom, right] = about.crop;
    parts.crop.hidden = top < 1 && left < 1 && bottom > about.height - 1 && right > about.width - 1;
    parts.crop.textContent = WORDS.cropped_away;
    for (const part of [parts.bar, parts.wallBox, parts.mapControls]) part.hidden = !vector;
    parts.note.hidden = Boolean(vector);
    parts.note.textContent = vector ? "" : WORDS.film_without_attention;
    if (vector) drawScale(high);
    drawAnswer(frame.subjects[film.subject], film.truth());
    drawSubjects(frame);
    if (maps) film.drawWall(maps);
    film.drawTime();
  }

  function nothing() {
    if (!lab.status) return "";
    if (lab.scene && !lab.scene.subjects.length) return WORDS.film_empty;
    if (lab.plan?.imported) return WORDS.film_of_file;
    return lab.status.over ? WORDS.film_none : WORDS.film_to_come;
  }

  function drawScale(high) {
    const tokens = film.maps(film.frame()).tokens;
    parts.high.textContent = high.toFixed(3);
    parts.unit.textContent = phrase(WORDS.film_scale,
      { scale: film.own ? WORDS.scale_own : lab.status?.over ? WORDS.scale_all : WORDS.scale_so_far, tokens });
    parts.even.hidden = high * tokens < 1;
    parts.even.style.left = 100 / (tokens * high) + "%";
    parts.layer.value = film.layer + 1;
    parts.layerName.textContent = phrase(WORDS.layer_of, { layer: film.layer + 1, all: lab.scene.layers });
    parts.layer.setAttribute("aria-valuetext", parts.layerName.textContent);
    for (const chip of parts.heads.children) chip.setAttribute("aria-pressed", String(chip.dataset.head === String(film.head)));
  }

  // A head that starts at zero gives every class the same share: then there is no answer yet.
  film.undecided = (seen) => seen.top.length > 1 && seen.top[0][1] - seen.top.at(-1)[1] < 1e-4;
  film.named = (seen) => film.undecided(seen) ? WORDS.no_answer_yet : seen.top.length ?
    lab.scene.classes[seen.top[0][0]] + " " + percent(seen.top[0][1]) : "";

  function drawAnswer(seen, truth) {
    const undecided = film.undecided(seen), best = seen.top[0]?.[0];
    parts.verdict.textContent = undecided ? phrase(WORDS.all_alike, { share: percent(seen.top[0][1]) }) : film.named(seen);
    parts.top.replaceChildren(...(undecided ? [] : seen.top).map(([klass, share]) => make("li", {},
      make("span", { text: lab.scene.classes[klass] }), make("span", { text: percent(share) }),
      make("div", { class: "vl-gauge" }, make("div", { style: "width:" + 100 * share + "%" })))));
    const { classes, subjects } = lab.scene, known = subjects[film.subject].truth === null ? WORDS.called : WORDS.labelled;
    parts.right.textContent = truth !== null ?
      phrase(known[undecided ? "open" : best === truth ? "right" : "wrong"], { name: classes[truth] }) :
      classes.length ? phrase(WORDS.unlabelled, { n: classes.length }) : "";
  }

  function drawSubjects(frame) {
    [...parts.subjects.children].forEach((button, i) => {
      const about = film.abouts[i].photo, maps = film.maps(frame, i), vector = maps && film.vector(maps);
      button.setAttribute("aria-pressed", String(i === film.subject));
      paint(button.firstChild, about, vector, vector ? film.scale(vector, film.layer, i) : 0, 84 * Math.min(1, about.width / about.height));
      button.lastChild.textContent = film.named(frame.subjects[i]);
    });
  }

  build();
  on("run", () => { fresh++; film.abouts = []; film.opened = null; film.pause?.(); draw(); });
  let state = "";
  on("status", () => {
    const next = [lab.id, lab.status?.state, lab.status?.over].join("|");
    if (next !== state) { state = next; draw(); film.tell(); }
  });
  on("news", () => {
    if (lab.scene && film.opened !== lab.scene) { film.opened = lab.scene; open(lab.scene); }
    if (film.abouts.length) { draw(); film.tell(); }
  });
  on("scrub", () => { draw(); film.speak(); });
  on("look", () => { ramp(parts.scale); draw(); });
})();

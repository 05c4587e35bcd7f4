// The large picture, its sentence, its scale, and the controls under it.
const other = { result: null, view: null, title: "", flicker: false };      // what stands beside the picture, if anything
let marked = new Set();    // patches chosen for surgery
let parts = {};            // the controls, by name
let room = 640;            // width of the stage in CSS pixels; measured when it changes, because asking in between would lay out the page

function buildStage() {
  const pick = (name, kind) => (event) => change({ [name]: kind === "number" ? Number(event.target.value) : event.target.value });
  const kind = (key) => make("button", { type: "button", class: "vd-chip", "data-kind": key, text: WORDS.kinds[key].name, onclick: () => change({ kind: key }) });
  $("kinds").append(make("div", { class: "vd-row", role: "group", "aria-label": WORDS.kinds_where }, ...KINDS.filter((key) => !FEATURES.includes(key)).map(kind)),
    make("div", { class: "vd-row", role: "group", "aria-label": WORDS.kinds_features }, make("span", { class: "vd-hint", text: WORDS.kinds_features }), ...FEATURES.map(kind)));
  const layer = make("input", { class: "vd-layer", type: "range", min: 1, max: 1, step: 1, value: 1, oninput: (e) => change({ layer: Number(e.target.value) - 1 }) });
  const opacity = make("input", { class: "vd-opacity", type: "range", min: 0, max: 100, step: 1, value: look.opacity, oninput: (e) => { look.opacity = Number(e.target.value); draw(); } });
  const colours = make("select", { class: "vd-colours", "aria-label": WORDS.colours, onchange: (e) => { look.colours = e.target.value; drawScale(); change({}); } },
    ...Object.keys(COLOUR_TABLES).map((name) => make("option", { value: name, text: name })));
  const tick = (name, text) => make("label", {}, make("input", { class: "vd-" + name, type: "checkbox", ...(look[name] ? { checked: true } : {}), oninput: (e) => { look[name] = e.target.checked; change({}); } }), " " + text);
  const fusion = make("select", { class: "vd-fusion", "aria-label": WORDS.joined_by, onchange: pick("fusion") }, ...FUSIONS.map((name) => make("option", { value: name, text: WORDS.fusions[name] })));
  const discard = make("input", { class: "vd-discard", type: "range", min: 0, max: 95, step: 5, value: 0, onchange: (e) => change({ discard: Number(e.target.value) / 100 }) });
  const klass = make("select", { class: "vd-klass", "aria-label": WORDS.class, onchange: pick("klass", "number") });
  const second = make("select", { class: "vd-klass-two", "aria-label": WORDS.second_class, onchange: (e) => { change({ second: e.target.value === "" ? null : Number(e.target.value) }); beat(); } });
  parts = { layer, opacity, colours, fusion, discard, klass, second };
  parts.layerName = make("span", { class: "vd-layer-name" });
  parts.heads = make("div", { class: "vd-row vd-head-chips", role: "group", "aria-label": WORDS.head });
  parts.tokens = make("div", { class: "vd-row vd-token-chips", role: "group", "aria-label": WORDS.token });
  parts.direction = make("div", { class: "vd-row vd-direction", role: "group", "aria-label": WORDS.direction },
    ...["reads", "read_by"].map((key) => make("button", { type: "button", class: "vd-chip", "data-direction": key, text: WORDS.directions[key], onclick: () => change({ direction: key }) })));
  parts.layerRow = make("label", { class: "vd-wide" }, parts.layerName, layer);
  parts.headLine = line(WORDS.head, parts.heads);
  parts.tokenLine = line(WORDS.token, parts.tokens);
  parts.directionLine = line(WORDS.direction, parts.direction);
  parts.patches = make("div", { class: "vd-row", role: "group", "aria-label": WORDS.patches }, ...PARTS.map((part) => make("button", { type: "button", class: "vd-chip", "data-part": part, text: WORDS.patch_parts[part], onclick: () => change({ part }) })));
  parts.patchLine = line(WORDS.patches, parts.patches);
  parts.discardName = make("span");
  parts.rolloutRows = make("div", { class: "vd-lines" }, line(WORDS.joined_by, fusion), make("label", { class: "vd-wide" }, parts.discardName, discard));
  parts.relevanceRows = make("div", { class: "vd-lines" }, line(WORDS.class, klass), line(WORDS.beside_it, second));
  parts.coloursLabel = make("label", {}, WORDS.colours + " ", colours);
  parts.own = tick("own", WORDS.rescale);
  parts.stretch = tick("stretch", WORDS.stretch);
  $("controls").append(parts.layerRow, parts.headLine, parts.tokenLine, parts.directionLine, parts.patchLine, parts.rolloutRows, parts.relevanceRows,
    make("div", { class: "vd-row vd-look" }, make("label", { class: "vd-wide" }, make("span", { text: WORDS.opacity }), opacity), parts.coloursLabel, tick("grid", WORDS.grid), parts.own, parts.stretch),
    buildCompare(), ...(props.report ? [] : [line(WORDS.link_line, buildCopy())]), buildKeys());
  $("try").addEventListener("click", () => openPanel("test", { act: true }));
}

const line = (text, ...things) => make("div", { class: "vd-line" }, make("span", { class: "vd-line-name", text }), ...things);

function showControls() {
  for (const button of $("kinds").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.kind === view.kind));
    button.hidden = BY_CLASS.includes(button.dataset.kind) && !result.known;
  }
  $("about-kind").querySelector("summary").textContent = WORDS.kinds[view.kind].line;
  $("about-kind").querySelector("p").textContent = WORDS.kinds[view.kind].more;
  parts.layer.max = result.layers;
  parts.layer.value = view.layer + 1;
  parts.layerName.textContent = phrase(WORDS.layer_of_kind[view.kind] ?? WORDS.layer_of, { layer: view.layer + 1, all: result.layers });
  parts.layer.setAttribute("aria-valuetext", parts.layerName.textContent);
  parts.opacity.setAttribute("aria-valuetext", phrase(WORDS.percent_n, { n: look.opacity }));
  parts.layerRow.hidden = !["attention", "rollout", "norms"].includes(view.kind);
  parts.headLine.hidden = parts.directionLine.hidden = view.kind !== "attention";
  parts.tokenLine.hidden = !OF_A_TOKEN.includes(view.kind);
  parts.patchLine.hidden = view.kind !== "colours";
  parts.coloursLabel.hidden = !parts.patchLine.hidden;
  parts.own.hidden = FEATURES.includes(view.kind);
  parts.stretch.hidden = !["similarity", "norms"].includes(view.kind);
  $("actions").hidden = Boolean(props.report) || FEATURES.includes(view.kind) || !result.known;
  parts.rolloutRows.hidden = view.kind !== "rollout";
  parts.relevanceRows.hidden = !BY_CLASS.includes(view.kind);
  parts.fusion.value = view.fusion;
  parts.discard.value = Math.round(100 * view.discard);
  parts.discard.setAttribute("aria-valuetext", phrase(WORDS.discard_said, { n: Math.round(100 * view.discard) }));
  parts.discardName.textContent = phrase(WORDS.discard, { n: Math.round(100 * view.discard) });
  parts.klass.value = view.klass;
  parts.second.value = view.second ?? "";
  parts.flickerLabel.hidden = !beside();
  parts.swap.hidden = !(beside() && other.flicker && calm());
  for (const chip of parts.heads.children) chip.setAttribute("aria-pressed", String(chip.dataset.head === String(view.head)));
  for (const chip of parts.direction.children) {
    chip.setAttribute("aria-pressed", String(chip.dataset.direction === view.direction));
    chip.disabled = view.token === null && chip.dataset.direction === "read_by";
  }
  for (const chip of parts.patches.children) chip.setAttribute("aria-pressed", String(chip.dataset.part === view.part));
  const pinned = view.token !== null && view.token >= result.prefix;
  for (const chip of parts.tokens.querySelectorAll("button")) {
    if (chip.dataset.token === "patch") { chip.hidden = !pinned; chip.textContent = pinned ? placeName(result, view.token - result.prefix) + " ×" : ""; }
    chip.setAttribute("aria-pressed", String(chip.dataset.token === "patch" ? pinned : chip.dataset.token === String(view.token)));
  }
}

// What depends on the result only: chips for its heads and prefix tokens, its classes.
function fillControls() {
  const chip = (name, value, text, act) => make("button", { type: "button", class: "vd-chip", ["data-" + name]: value, text, onclick: act });
  parts.heads.replaceChildren(...FUSIONS.map((head) => chip("head", head, WORDS.fusions[head], () => change({ head }))),
    ...Array.from({ length: result.heads }, (_, h) => chip("head", h, h + 1, () => change({ head: h }))));
  [...parts.heads.children].slice(3).forEach((button, h) => button.setAttribute("aria-label", headName(h)));
  const names = result.prefix_names.map((name, i) => chip("token", i, name, () => change({ token: i })));
  if (result.first === null) names.unshift(chip("token", "null", WORDS.average_patch, () => change({ token: null, direction: "reads" })));
  parts.tokens.replaceChildren(...names, chip("token", "patch", "", () => change({ token: result.first })),
    make("span", { class: "vd-hint", text: WORDS.or_click }));
  const order = result.leading, rest = result.knows.map((_, k) => k).filter((k) => !order.includes(k));      // of very many classes, those whose names came along
  const options = () => [...order, ...rest].map((k) => make("option", { value: k, text: className(result, k) }));
  parts.klass.replaceChildren(...options());
  parts.second.replaceChildren(make("option", { value: "", text: WORDS.second_class_none }), ...options());
}

function marksOf(about) {
  const marks = about === result ? [...marked].map((patch) => ({ patch, dashed: true })) : [];
  if (OF_A_TOKEN.includes(view.kind) && view.token !== null && view.token >= result.prefix && !(view.kind === "similarity" && across(about))) marks.push({ patch: placeIn(about, view.token - result.prefix) });
  if (hovered !== null) marks.push({ patch: placeIn(about, hovered) });
  return marks;
}

// Everything that shows the view.
function draw() {
  if (!result) return;
  const { pair, map, otherMap, low, high } = drawPanes($("main"), $("other"), { wide: room, tall: TALLEST });
  if (map && (otherMap || !pair)) good = { result, view: { ...view } };
  drawWords(map, otherMap, pair);
  drawBar(pair, low, high);
  showControls();
  drawWall();
  projected.draw();
}

// The picture of the stage: one or two panes on one scale, on two canvases, each in a figure under a caption, in a room of CSS
// pixels. `face` gives the part of a picture that is drawn, `more` what else `paint` is told, and marks(about, map) are added to the page's own.
function drawPanes(main, second, { wide, tall, face = (about) => about, marks = () => [], ...more }) {
  const pair = beside(), map = mapOf(result), otherMap = pair && mapOf(pair.result, pair.view);
  let [low, high] = map ? scaleOf(result, map) : [0, 0];
  if (map && otherMap) {
    const [least, most] = scaleOf(pair.result, otherMap, pair.view);
    low = Math.min(low, least);
    high = Math.max(high, most);
  }
  const two = Boolean(pair) && !other.flicker;
  const side = (about) => Math.max(1, Math.min(two ? (wide - 16 * (more.bold ?? 1)) / (wide > 520 ? 2 : 1) : wide, tall * face(about).width / face(about).height));
  const fill = (canvas, about, vector) => {
    canvas.style.width = side(about) + "px";
    paint(canvas, face(about), vector, high, side(about), { grid: look.grid, marks: [...marksOf(about), ...marks(about, vector)], low, ...more });
  };
  const swapped = Boolean(pair) && other.flicker && other.phase;
  const front = swapped ? pair.result : result, frontMap = swapped ? otherMap : map, frontView = swapped ? pair.view : view;
  fill(main, front, frontMap);
  const title = titleOf(front, frontView).replace(/^./, (c) => c.toLowerCase());
  main.setAttribute("aria-label", frontView.kind !== "attention" ? phrase(WORDS.picture_with, { title }) :
    phrase(WORDS.picture_with_token, { title, reads: aboutToken(front, tokenFor(front, frontView), frontView.direction) }));
  main.previousElementSibling.textContent = pair ? pair.captions[Number(swapped)] : "";
  second.parentElement.hidden = !two;
  if (two) {
    fill(second, pair.result, otherMap);
    second.previousElementSibling.textContent = pair.captions[1];
    second.setAttribute("aria-label", pair.title);
  }
  return { pair, map, otherMap, low, high };
}

function drawWords(map, otherMap, pair) {
  const waiting = result.progress || (pair && pair.result.progress);
  let words = !map ? (waiting || (trouble ? "" : WORDS.asking)) : hovered !== null ? patchSentence(result, map, hovered) : mapSentence(result, map);
  if (map && pair && !otherMap) words += " " + (waiting || (trouble ? "" : WORDS.asking_other));
  if (map && otherMap) words += "\n" + capital(pair.title) + ": " + (hovered !== null ? patchSentence(pair.result, otherMap, placeIn(pair.result, hovered), pair.view) : mapSentence(pair.result, otherMap, pair.view));
  $("readout").textContent = [trouble, words].filter(Boolean).join(" ");
}

const SCALE_DIGITS = { relevance: (v) => v.toPrecision(2), occlusion: (v) => v.toPrecision(2), similarity: signed, norms: (v) => v.toFixed(1) };
const scaleNumber = (value) => value === 0 ? "0" : (SCALE_DIGITS[view.kind] ?? ((v) => v.toFixed(3)))(value);

// The colour bar: where it begins and ends, a mark, and what it measures.
function drawBar(pair, low, high) {
  const weights = WEIGHTS.includes(view.kind);
  const mark = weights ? result.uniform : FEATURES.includes(view.kind) ? featureMark() : Infinity, at = high > low ? (mark - low) / (high - low) : 2;
  $("low").textContent = scaleNumber(low);
  $("high").textContent = scaleNumber(high);
  for (const part of [$("low"), $("high"), $("scale").parentElement]) part.hidden = view.kind === "colours";
  $("even").hidden = !(at >= 0 && at <= 1);
  $("even").style.left = 100 * at + "%";
  if (FEATURES.includes(view.kind)) { $("unit").textContent = featureUnit(pair, !$("even").hidden); return; }
  const scale = view.kind !== "attention" || typeof view.head !== "number" ? WORDS.scale_of_map : look.own ? WORDS.scale_of_head : phrase(WORDS.scale_of_layer, { layer: view.layer + 1 });
  const unit = measured(WORDS.units[view.kind], scale, pair);
  $("unit").textContent = weights ? phrase(WORDS.mark_even, { unit, tokens: result.tokens }) : unit;
}

// What the colours measure, and over what they run.
const measured = (unit, scale, both) => phrase(WORDS.measured, { unit, scale: both ? phrase(WORDS.scale_and_both, { scale }) : scale });

function drawScale() {
  ramp($("scale"));
}

// Says in words where the head looks, to screen readers, once things have come to rest.
let speaking = 0;
function announce() {
  clearTimeout(speaking);
  speaking = setTimeout(() => { $("live").textContent = $("readout").textContent; }, 350);
}

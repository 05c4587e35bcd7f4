// A link that opens a prepared state. The server reads the address (vitdemo.ui.links); what only the browser knows is checked here. The
// address stays as it is, so that a reload opens the same again.
const LINKED = ["example", "model", "size", "fit", "tab", "kind", "layer", "head", "token", "direction", "fusion", "discard", "class", "second", "patches",
  "opacity", "colours", "grid", "own", "stretch", "compare", "flicker", "open", "run", "look", "picture"];
const PATIENCE = 20000;
let linked = null;         // what the address asked for, until it is shown

// The beginning of the page: nothing is drawn before the linked view is there, so that no other one is seen first.
async function begin() {
  const query = location.search;
  const before = window.vitdemoLink !== undefined;                        // a page that is put up anew does not begin anew
  window.vitdemoLink = null;
  if (props.report || before || ![...new URLSearchParams(query).keys()].some((name) => LINKED.includes(name))) return show(props.value);
  const asked = { query, mine: mine.list() };
  const veil = make("style", { text: "#vd-picture img { visibility: hidden; }" }), reveal = () => veil.remove();
  document.head.append(veil);
  $("message").textContent = WORDS.link_opening;
  const link = await Promise.resolve(server.link(asked)).catch(() => null);
  if (root.dataset.state !== "empty" || !link) { reveal(); return result ? null : show(props.value); }       // a picture was chosen meanwhile, or nobody answers
  linked = link;
  window.vitdemoLink = link;                                              // the Train tab takes its part from there
  if (!link.opens) { reveal(); return show(props.value); }
  shown = () => { clearTimeout(timer); reveal(); shown = () => {}; };
  const timer = setTimeout(() => { shown(); if (!result) show(props.value); }, PATIENCE);
  opening.opened = inputNow();
  trigger("apply", asked);
}

let shown = () => {};

// Shows what the link asked for on the result that has just come; once, and again when the model that it names had to be fetched first.
function applyLink() {
  const { link } = result, asked = linked;
  if (!asked) return;
  const right = link?.model === asked.model;
  if (link?.example !== asked.example || asked.run || right || asked.seen) linked = null;
  if (link?.example !== asked.example || asked.run || (asked.seen && !right)) return;
  asked.seen = true;
  applyLook(asked);
  applyBeside(asked);
  change(viewOf(asked));
  if (projected.open && ["kind", "layer", "head", "token"].some((part) => part in asked)) projected.go(WORDS.screens.map);      // a map was prepared
  if (asked.open && panels.some((one) => one.key === asked.open)) { openPanel(asked.open); $("tools").scrollIntoView({ block: "start" }); }
}

// The parts of a link that this result can show; a part that it cannot is left out.
function viewOf(asked) {
  const within = (value, most) => Number.isInteger(value) && value <= most, klass = (name) => classIndex(result, name), token = tokenOf(asked.token);
  const direction = { reads: "reads", "read-by": "read_by" }[asked.direction];
  return Object.fromEntries(Object.entries({
    kind: KINDS.find((kind) => kind.replace(" ", "-") === asked.kind),
    layer: within(asked.layer, result.layers) ? asked.layer - 1 : undefined,
    head: within(asked.head, result.heads) ? asked.head - 1 : typeof asked.head === "string" ? asked.head : undefined,
    token, direction, fusion: asked.fusion, discard: asked.discard === undefined ? undefined : asked.discard / 100,
    klass: klass(asked.klass) >= 0 ? klass(asked.klass) : undefined, second: klass(asked.second) >= 0 ? klass(asked.second) : undefined,
    part: asked.patches,
  }).filter(([, value]) => value !== undefined));
}

// A token by its name in links: cls, dist, mean (the average patch), reg1, r3c5 (row 3, column 5), or its number; undefined where this model
// has none of that.
const PREFIX = { cls: "class token", dist: "distillation token" };

function tokenOf(name) {
  const [, row, col] = /^r(\d+)c(\d+)$/.exec(name ?? "") ?? [];
  if (row) return row <= result.rows && col <= result.cols ? result.prefix + (row - 1) * result.cols + (col - 1) : undefined;
  if (/^\d+$/.test(name ?? "")) return Number(name) < result.prefix + result.rows * result.cols ? Number(name) : undefined;
  if (name === "mean") return result.first === null ? null : undefined;
  const at = result.prefix_names.indexOf(PREFIX[name] ?? (name ?? "").replace("reg", "register "));
  return at < 0 ? undefined : at;
}

function nameOf(token) {
  if (token === null) return "mean";
  if (token >= result.prefix) return "r" + (Math.floor((token - result.prefix) / result.cols) + 1) + "c" + ((token - result.prefix) % result.cols + 1);
  const name = result.prefix_names[token];
  return Object.keys(PREFIX).find((key) => PREFIX[key] === name) ?? name.replace("register ", "reg");
}

function applyLook(asked) {
  for (const name of ["opacity", "colours", "grid", "own", "stretch"]) if (asked[name] !== undefined) look[name] = asked[name];
  parts.opacity.value = look.opacity;
  parts.colours.value = look.colours;
  for (const name of ["grid", "own", "stretch"]) $(name).checked = look[name];
  drawScale();
}

function applyBeside({ compare, flicker }) {
  if (flicker !== undefined) parts.flicker.checked = other.flicker = flicker;
  if (compare === "twin" || (compare === "box" && result.own_model)) compareWith(compare);
}

// The other way: what is shown now, in a link's parts. What is as the page begins anyway is left out, layer and head never.
function partsNow() {
  const { kind } = view, { example, model, size, fit } = result.link ?? {}, of = (...kinds) => kinds.includes(kind), klass = (k) => k === null ? "" : className(result, k);
  return [
    ["example", example], ["model", model === "box" ? "" : model], ...(model ? [["size", size], ["fit", fit]] : []), ["kind", of("attention") ? "" : kind.replace(" ", "-")],
    ["layer", of("attention", "rollout", "norms") && view.layer + 1], ["head", of("attention") && (typeof view.head === "number" ? view.head + 1 : view.head)],
    ["token", OF_A_TOKEN.includes(kind) && view.token !== result.first && nameOf(view.token)], ["direction", of("attention") && view.direction === "read_by" && "read-by"],
    ["fusion", of("rollout") && view.fusion !== "mean" && view.fusion], ["discard", of("rollout") && view.discard > 0 && Math.round(100 * view.discard)],
    ["class", BY_CLASS.includes(kind) && klass(view.klass)], ["second", BY_CLASS.includes(kind) && klass(view.second)], ["patches", of("colours") && view.part !== "all" && view.part],
    ["opacity", look.opacity === 65 ? "" : look.opacity], ["colours", look.colours !== "cividis" && look.colours], ["grid", look.grid ? "" : 0], ["own", look.own], ["stretch", look.stretch],
    ["compare", ["twin", "box"].includes(other.kind) && other.kind], ["flicker", other.flicker && Boolean(beside())], ["open", openKey],
  ];
}

function leftBehind() {
  const { example, model } = result.link ?? {};
  return [example ? "" : WORDS.link_no_picture,
    model ? "" : WORDS.link_no_model,
    result.link?.part ? WORDS.link_no_part : "",
    ["pinned", "surgery"].includes(other.kind) ? WORDS.link_no_beside : ""].filter(Boolean);
}

const buildCopy = () => copyButton("vd", WORDS.link_copy, () => ({ parts: partsNow(), what: titleOf(result), notes: leftBehind() }));

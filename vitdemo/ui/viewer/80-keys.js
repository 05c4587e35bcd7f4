// Pointer, touch and keyboard.
let listening = true;      // whether letters are keys: a switch for those whose speech or hands press some by chance

function buildKeys() {
  return make("details", { class: "vd-keys", open: matchMedia("(min-width: 900px) and (hover: hover)").matches }, make("summary", { text: WORDS.keys }),
    make("dl", {}, ...Object.entries(WORDS.keys_listed).filter(([key]) => key !== "x" || !props.report).flatMap(([key, what]) => [make("dt", {}, make("kbd", { text: key })), make("dd", { text: what })])),
    make("label", {}, make("input", { type: "checkbox", checked: true, oninput: (event) => { listening = event.target.checked; } }), WORDS.keys_work));
}

function bindPointer(canvas, about) {
  canvas.addEventListener("pointermove", (event) => { if (result && event.pointerType !== "touch") hover(patchAt(event, canvas, about())); });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => {
    if (!result) return;
    const patch = patchAt(event, canvas, about());
    if (patch === null) return;
    if (!projected.open && panels.find((one) => one.key === openKey)?.click?.(patch)) return;
    const token = result.prefix + patch, kind = kindOfToken();
    hovered = null;
    change({ kind, token: view.kind === kind && view.token === token ? result.first : token });
  });
}

// What is asked about a chosen patch: its similarity where features are looked at, else its attention.
const kindOfToken = () => FEATURES.includes(view.kind) ? "similarity" : "attention";

function hover(patch) {
  if (patch === hovered) return;
  hovered = patch;
  draw();
}

// Escape closes what it was pressed in: the list of keys, or the open sheet; the focus goes to what opens it again.
function closes(at) {
  const keys = at?.closest?.(".vd-keys[open]"), sheet = at?.closest?.(".vd-tools") && panels.find((one) => one.key === openKey);
  if (!keys && !sheet) return false;
  if (keys) { keys.open = false; keys.firstElementChild.focus(); } else { openPanel(null); sheet.tab.focus(); }
  return true;
}

function showKeys() {
  const keys = $("keys");
  keys.open = true;
  keys.firstElementChild.focus();
  keys.scrollIntoView({ block: "nearest", behavior: gently() });
}

function key(event) {
  const chord = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");         // on many keyboards [ is made with AltGr
  if (!result || !root.offsetParent || chord || event.defaultPrevented || projected.open) return;
  const at = document.activeElement, inside = root.contains(at);
  if (at && at !== document.body && !inside) return;                       // the keys belong to whoever has the focus
  if (at && (at.matches("select, textarea, input:not([type=range]):not([type=checkbox])"))) return;
  if (event.key === "Escape" && closes(at)) return event.preventDefault();
  if (event.key.length === 1 && !listening) return;
  if (event.key === "?") { event.preventDefault(); return showKeys(); }
  const arrow = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (arrow && at !== $("focus") && at !== document.body) return;          // sliders and tabs have their own arrows, and a page scrolls
  if (arrow && at === document.body) return;
  const acts = {
    "[": () => ({ layer: view.layer - 1 }), "]": () => ({ layer: view.layer + 1 }), m: () => ({ head: "mean" }),
    c: () => ({ token: result.first, direction: "reads" }), Escape: () => ({ token: result.first, direction: "reads" }),
    ",": () => ({ kind: "attention", head: nextHead(-1) }), ".": () => ({ kind: "attention", head: nextHead(1) }),
    r: () => view.token === null ? {} : ({ direction: view.direction === "reads" ? "read_by" : "reads" }),
  };
  if (event.key === "x" && view.token !== null && view.token >= result.prefix) {
    if (panels.find((one) => one.key === openKey)?.click?.(view.token - result.prefix)) event.preventDefault();
    return;
  }
  let changes = null;
  if (arrow) {
    const now = view.token !== null && view.token >= result.prefix ? view.token - result.prefix : null;
    const row = now === null ? Math.floor((result.rows - 1) / 2) : Math.max(0, Math.min(result.rows - 1, Math.floor(now / result.cols) + arrow[0]));
    const col = now === null ? Math.floor((result.cols - 1) / 2) : Math.max(0, Math.min(result.cols - 1, now % result.cols + arrow[1]));
    changes = { kind: kindOfToken(), token: result.prefix + row * result.cols + col };
  } else if (/^[1-9]$/.test(event.key) && Number(event.key) <= result.heads) changes = { kind: "attention", head: Number(event.key) - 1 };
  else if (acts[event.key]) changes = acts[event.key]();
  if (!changes) return;
  event.preventDefault();
  hovered = null;
  change(changes);
}

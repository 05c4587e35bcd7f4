// The projector mode: one screen at a time over the whole window, for a class and its back row. The page's mark PRESENT says that it is on;
// each front end of the page that is in sight then shows its own screens. What is chosen meanwhile stays chosen on the page.
const PRESENTED = "vd:presented";                                      // the event that tells of the mark's change
const STEPS = { ArrowRight: 1, PageDown: 1, " ": 1, Enter: 1, ArrowDown: 1, ArrowLeft: -1, PageUp: -1, Backspace: -1, ArrowUp: -1 };
const REST = 4000, EDGE = 0.12, SWIPE = 60;                               // ms until the line of keys goes; share of the width; CSS pixels

// How wide a picture is drawn to fill the room.
const fitted = ({ width, height }, room) => Math.max(1, Math.min(room.wide, room.tall * width / height));

// What the model sees of a picture, alone: a map is larger so.
function seenPart(about) {
  if (!about.part) {
    const [top, left, bottom, right] = about.crop, photo = make("canvas", { width: Math.max(1, Math.round(right - left)), height: Math.max(1, Math.round(bottom - top)) });
    photo.getContext("2d").drawImage(about.photo, -left, -top);
    about.part = { photo, width: photo.width, height: photo.height, crop: [0, 0, photo.height, photo.width], rows: about.rows, cols: about.cols, prefix: about.prefix };
  }
  return about.part;
}

// A map for the back row: over a grey picture, so that its colours are the only ones, and its brightest patch in a frame, if it has one.
const SEEN_FAR = { bold: 2.5, grey: true }, FRAME = "#ff5ad6";

function frameOfMost(about, vector) {
  if (!vector || vector.rgba) return [];
  let most = about.prefix, total = 0;
  for (let i = about.prefix; i < vector.length; i++) { total += vector[i]; if (vector[i] > vector[most]) most = i; }
  return vector[most] > 1.05 * total / (vector.length - about.prefix) ? [{ patch: most - about.prefix, colour: FRAME }] : [];
}

// Paints a picture with its map as large as the room is.
function large(canvas, about, map, high, room, options = {}) {
  const side = fitted(about, room);
  canvas.style.width = side + "px";
  paint(canvas, about, map, high, side, options);
}

// `missing()` is a sentence where there is nothing to show. `screens`: { name, hint, there(), say() -> [title, words], enter(stage), draw(room),
// leave(), keys: { key: act } }, all but `name` and `say` may be left out. `keys` are those of every screen. Gives { draw, go, open }.
function projector({ missing, screens, keys, hint }) {
  const title = make("h2", { class: "vd-show-title" }), stage = make("div", { class: "vd-show-stage" }), words = make("p", { class: "vd-show-words" });
  const count = make("span", { class: "vd-show-count" }), keyLine = make("span", { class: "vd-show-keys" }), live = make("p", { class: "vd-show-live", role: "status" });
  const button = (text, label, act) => make("button", { type: "button", text, "aria-label": label, title: label, onclick: act });
  const foot = make("div", { class: "vd-show-foot" }, button("‹", WORDS.screen_before, () => step(-1)), count, button("›", WORDS.screen_next, () => step(1)), keyLine,
    button(WORDS.full_screen, WORDS.full_screen_key, () => full()), button(WORDS.leave, WORDS.leave_key, () => leave()));
  const black = make("div", { class: "vd-show-black", hidden: true });
  const page = make("div", { class: "vd-show-page", tabindex: -1, role: "group", "aria-roledescription": WORDS.screen }, title, stage, words, foot, live, black);
  const box = make("dialog", { class: "vd-show", "aria-label": WORDS.projector }, page);
  let now = null, resting = 0, telling = 0, from = null, swiped = false;
  root.append(box);

  const there = () => missing() ? [] : screens.filter((screen) => !screen.there || screen.there());
  const shown = { open: false, draw, go: (name) => enter(screens.find((screen) => screen.name === name)) };

  function enter(screen) {
    if (now) now.leave?.();
    stage.replaceChildren();
    now = screen;
    page.dataset.screen = screen?.name ?? "";
    if (screen) screen.enter?.(stage);
    draw();
    awake();
  }

  function step(by) {
    const list = there(), at = list.indexOf(now), next = list[Math.max(0, Math.min(list.length - 1, at + by))];
    if (next && next !== now) enter(next);
    else awake();
  }

  // Draws the screen anew: what it says first, because that leaves the room for what it shows.
  function draw() {
    if (!shown.open) return;
    const nothing = missing(), list = nothing ? [] : there();
    if (!nothing && !list.includes(now)) return enter(list[0]);
    if (nothing && now) return enter(null);
    const [head, line] = nothing ? [nothing, ""] : now.say();
    title.textContent = head;
    words.textContent = line ?? "";
    count.textContent = list.length ? (list.indexOf(now) + 1) + " / " + list.length : "";
    keyLine.textContent = [WORDS.keys_step, now?.hint, hint, WORDS.keys_black].filter(Boolean).join("   ");
    now?.draw?.({ wide: stage.clientWidth, tall: stage.clientHeight });
    tell(list.length ? phrase(WORDS.screen_of, { n: list.indexOf(now) + 1, all: list.length, name: now.name }) + " " : "", [head, line].filter(Boolean).join(". "));
  }

  // To screen readers, once things have come to rest; the screen's number only when it is another one.
  function tell(place, sentence) {
    clearTimeout(telling);
    telling = setTimeout(() => { hear(live, (live.place === place ? "" : place) + sentence); live.place = place; }, 300);
  }

  // The line of keys and the pointer go when nobody moves.
  function awake() {
    page.dataset.awake = "true";
    clearTimeout(resting);
    resting = setTimeout(() => { page.dataset.awake = "false"; }, REST);
  }

  // In a frame the browser may refuse the full screen: then the window has to do.
  async function full() {
    try { await (document.fullscreenElement ? document.exitFullscreen() : page.requestFullscreen()); }
    catch { keyLine.textContent = WORDS.full_screen_refused; }
    awake();
  }

  function blacken(on) {
    black.hidden = !on;
    live.place = null;
    hear(live, on ? WORDS.screen_black : WORDS.screen_back);
  }

  function leave() {
    document.body.classList.remove(PRESENT);
    window.dispatchEvent(new Event(PRESENTED));
  }

  // What a key does: the screen's own keys come first, then those of every screen, and then stepping.
  function actOf({ key, shiftKey }) {
    const name = key.toLowerCase(), shifted = "shift " + name;
    if (shiftKey && (now?.keys?.[shifted] ?? keys[shifted])) return now?.keys?.[shifted] ?? keys[shifted];
    const own = now?.keys?.[name] ?? keys[name] ?? { b: () => blacken(true), ".": () => blacken(true), f: full, escape: leave, "?": awake, home: () => step(-Infinity), end: () => step(Infinity) }[name];
    const by = key === " " && shiftKey ? -1 : STEPS[key];
    return own ?? (by ? () => step(by) : null);
  }

  function press(event) {
    const chord = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph"), at = event.target;
    if (chord || ["Control", "Alt", "Meta", "Shift", "AltGraph"].includes(event.key) || at.matches("input, select, textarea")) return;
    if (event.key === "Tab") return awake();
    if ([" ", "Enter"].includes(event.key) && black.hidden && at.closest("button")) return;
    const act = black.hidden ? actOf(event) : () => blacken(false);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();                                               // what is shown has keys of its own on the page
    act();
  }

  // A click at the left or right edge steps, where nothing lies that can be clicked itself; a finger may also be drawn across.
  function click(event) {
    if (!black.hidden || swiped) { event.stopPropagation(); event.preventDefault(); if (!swiped) blacken(false); swiped = false; return; }
    if (event.target.closest("canvas, button")) return;
    const share = event.clientX / page.clientWidth;
    if (share < EDGE) step(-1); else if (share > 1 - EDGE) step(1);
  }

  function lift(event) {
    const along = from && event.clientX - from.clientX, across = from && event.clientY - from.clientY;
    swiped = false;
    if (from?.pointerType === "touch" && Math.abs(along) > SWIPE && Math.abs(along) > 2 * Math.abs(across)) { swiped = true; step(along < 0 ? 1 : -1); setTimeout(() => { swiped = false; }, 300); }
    from = null;
  }

  // Opens or closes by the page's mark and by which tab is in sight.
  function follow() {
    if (!root.isConnected) return;
    const on = document.body.classList.contains(PRESENT) && root.checkVisibility();
    if (on === shown.open) return;
    shown.open = on;
    if (!on) { now?.leave?.(); now = null; stage.replaceChildren(); clearTimeout(resting); if (document.fullscreenElement === page) document.exitFullscreen(); return box.close(); }
    black.hidden = true;
    live.place = null;
    box.showModal();
    page.focus();
    draw();
    awake();
  }

  box.addEventListener("keydown", press, true);
  box.addEventListener("click", click, true);
  box.addEventListener("pointerdown", (event) => { from = event; awake(); });
  box.addEventListener("pointerup", lift);
  box.addEventListener("pointermove", awake);
  box.addEventListener("cancel", (event) => { event.preventDefault(); if (event.target === box) leave(); });
  box.addEventListener("close", () => { if (shown.open) leave(); });
  window.addEventListener(PRESENTED, follow);
  new ResizeObserver(follow).observe(root);
  let size = "";
  new ResizeObserver(([entry]) => {
    const next = [entry.contentRect.width, entry.contentRect.height].map(Math.round).join("x");
    if (next !== size) { size = next; requestAnimationFrame(draw); }
  }).observe(page);
  follow();
  return shown;
}

// How large a lent wall of small maps is drawn: it fills the room beside its numbers, of which every other is left out where lines are low.
function fillRoom(box, { wide, tall }, shape, lines) {
  const letter = parseFloat(getComputedStyle(box.firstElementChild ?? box).fontSize), high = tall - 2.4 * letter;
  box.style.setProperty("--vd-fit", Math.max(40, Math.min(wide - 2.4 * letter, high * shape) + 2 * letter) + "px");
  box.dataset.sparse = String(high / lines < letter);
}

// A node of the page that a screen shows while it is there, and which then goes back to its place.
function lent(node) {
  const place = document.createComment("");
  return {
    take: (stage) => { node.before(place); stage.append(node); },
    back: () => { if (place.parentNode) place.replaceWith(node); },
  };
}

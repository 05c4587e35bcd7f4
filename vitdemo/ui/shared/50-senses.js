// What people need whose eyes, ears or hands are different: fewer words for a screen reader, no motion that nobody asked for, colours that
// follow the page's.
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const gently = () => calm() ? "auto" : "smooth";

// A sentence for screen readers in `live`; where only its numbers are new it is not said again.
function hear(live, sentence) {
  const gist = sentence.replace(/[\d.,:]+/g, "#");
  if (live.gist === gist) return;
  live.gist = gist;
  live.textContent = sentence;
}

// Calls `act` when the page's colours have changed while it is open: canvases do not follow by themselves.
function recoloured(act) {
  const now = () => ["--vd-accent", "--vd-edge", "--body-text-color"].map((name) => getComputedStyle(root).getPropertyValue(name)).join();
  let before = now();
  const look = () => { const after = now(); if (root.isConnected && after !== before) { before = after; act(); } };
  const observer = new MutationObserver(look);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true, attributeFilter: ["class"] });
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"])
    matchMedia(query).addEventListener("change", () => requestAnimationFrame(look));
}

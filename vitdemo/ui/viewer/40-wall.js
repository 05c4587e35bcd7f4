// The whole model at a glance: one small map for every layer and head; and the heads of the chosen layer over the picture.
function drawWall() {
  $("wall-text").textContent = phrase(WORDS.wall_text, { reads: aboutToken(result, view.token, view.direction) });
  const tall = result.rows + 1, wide = result.cols + 1, width = result.heads * wide - 1, height = result.layers * tall - 1;
  const chosen = $("chosen"), column = typeof view.head === "number" ? view.head : 0, span = typeof view.head === "number" ? 1 : result.heads;
  chosen.style.cssText = "top:" + 100 * view.layer * tall / height + "%;height:" + 100 * result.rows / height + "%;left:" + 100 * column * wide / width + "%;width:" + 100 * (span * wide - 1) / width + "%";
  chosen.hidden = view.kind !== "attention";
  smaller ||= requestAnimationFrame(drawSmall);
}

// The small maps follow the large one in the next frame, once, however often it changed before.
let smaller = 0;
function drawSmall() {
  smaller = 0;
  if (!result) return;
  const all = rowsOf(result, view.token, view.direction), canvas = $("wall");
  drawHeads(all);
  if (!all) return;
  const tall = result.rows + 1, wide = result.cols + 1, width = result.heads * wide - 1, height = result.layers * tall - 1;
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const stamp = [result.key, view.token, view.direction, look.colours, look.own].join("|");
  if (canvas.dataset.stamp === stamp && canvas.about === result) return;
  const ctx = canvas.getContext("2d"), image = ctx.createImageData(width, height), highs = headHighs(result, all);
  for (let l = 0; l < result.layers; l++) {
    const shared = layerHigh(result, all, l);
    for (let h = 0; h < result.heads; h++)
      colourInto(image.data, width, l * tall, h * wide, result, fuse(all, l, h), look.own ? highs[l * result.heads + h] : shared);
  }
  ctx.putImageData(image, 0, 0);
  canvas.dataset.stamp = stamp;
  canvas.about = result;
  const best = highs.indexOf(Math.max(...highs)), layer = Math.floor(best / result.heads), head = best % result.heads;
  canvas.setAttribute("aria-label", phrase(WORDS.wall_said, { layers: result.layers, heads: result.heads, layer: layer + 1, head: head + 1, most: mostIn(fuse(all, layer, head)) }));
}

// Where a map is brightest, for those who hear it.
function mostIn(vector, share = true) {
  const high = largest(vector, result.prefix), best = vector.indexOf(high, result.prefix) - result.prefix;
  return phrase(share ? WORDS.most_in_share : WORDS.most_in, { place: placeName(result, best), share: percent(high) });
}

function fillWall() {
  const label = (n) => make("span", { text: n });
  $("wall-box").style.setProperty("--vd-wall", (72 * result.heads + 24) + "px");           // a map is at most 72 CSS pixels wide
  $("wall-heads").replaceChildren(...Array.from({ length: result.heads }, (_, h) => label(h + 1)));
  $("wall-layers").replaceChildren(...Array.from({ length: result.layers }, (_, l) => label(l + 1)));
  const box = $("heads");
  box.replaceChildren(...["mean", ...Array(result.heads).keys()].map((head) => make("button", { type: "button", "data-head": head, onclick: () => change({ head, kind: "attention" }) },
    make("canvas", { "aria-hidden": "true" }), make("span", { text: head === "mean" ? WORDS.mean : headName(head) }))));
}

function drawHeads(all) {
  const box = $("heads");
  $("heads-box").hidden = view.kind !== "attention";
  if (view.kind !== "attention") return;
  $("heads-title").textContent = phrase(WORDS.heads_of_layer, { layer: view.layer + 1 });
  for (const button of box.children) {
    const head = button.dataset.head === "mean" ? "mean" : Number(button.dataset.head), canvas = button.firstChild;
    button.setAttribute("aria-pressed", String(head === view.head));
    const stamp = [view.layer, view.token, view.direction, look.colours, look.own, look.opacity, Boolean(all)].join("|");
    if (canvas.dataset.stamp === stamp && canvas.about === result) continue;
    const vector = all && fuse(all, view.layer, head);
    button.setAttribute("aria-label", button.lastChild.textContent + (vector ? ": " + mostIn(vector) : ""));
    paint(canvas, result, vector, vector ? highOf(result, all, view.layer, head, vector) : 0, 132);
    canvas.dataset.stamp = stamp;
    canvas.about = result;
  }
}

// Arrow keys in the wall: up and down the layers, left and right the heads.
function wallKey(event) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!step || !result || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  change({ kind: "attention", layer: view.layer + step[0], ...(step[1] ? { head: nextHead(step[1]) } : {}) });
}

// The head after the one that is shown, or before it; from the mean to the first, or the last.
const nextHead = (step) => typeof view.head === "number" ? Math.max(0, Math.min(result.heads - 1, view.head + step)) : step > 0 ? 0 : result.heads - 1;

function wallClick(event) {
  const box = $("wall").getBoundingClientRect();
  const layer = Math.floor((event.clientY - box.top) / box.height * result.layers), head = Math.floor((event.clientX - box.left) / box.width * result.heads);
  change({ kind: "attention", layer, head });
}

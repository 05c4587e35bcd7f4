// The browser's half of the viewer. `props.value` is what viewer.payload made; everything is drawn from it, text only as text nodes.
const COLOURS_256 = "COLOURS";
const STEPS = 65535;
const TALLEST = 620;        // CSS pixels of the large picture's height
const LARGEST = "LIMIT";    // bytes of an upload
const $ = (name) => element.querySelector(".vd-" + name);
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + "%";

let shown = null;          // the value on screen
let maps = null;           // Uint16Array (layers, heads, rows, cols)
let photo = null;          // decoded picture
let seen = null;           // decoded model input
let layer = 0;
let head = -1;             // -1: mean of all heads
let hovered = null;        // [row, col]

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

// Weights of one head of the current layer, or their mean, as Float32Array (rows * cols).
function weights(which) {
  const v = shown, n = v.rows * v.cols, out = new Float32Array(n), factor = v.highs[layer] / STEPS;
  const from = which < 0 ? 0 : which, to = which < 0 ? v.heads : which + 1;
  for (let h = from; h < to; h++) {
    const start = (layer * v.heads + h) * n;
    for (let i = 0; i < n; i++) out[i] += maps[start + i] * factor / (to - from);
  }
  return out;
}

function highest(map) {
  return $("own").checked ? Math.max(...map, 0) : shown.highs[layer];
}

// Picture, what was cropped away, overlay and grid on one canvas whose CSS width is `side`.
function paint(canvas, map, side, grid) {
  const v = shown, ratio = window.devicePixelRatio || 1, scale = side * ratio / v.width;
  const width = Math.max(1, Math.round(v.width * scale)), height = Math.max(1, Math.round(v.height * scale));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const ctx = canvas.getContext("2d");
  ctx.globalAlpha = 1;
  ctx.imageSmoothingEnabled = scale < 4;
  ctx.drawImage(photo, 0, 0, width, height);
  const [top, left, bottom, right] = v.crop.map((edge) => edge * scale);
  ctx.fillStyle = "rgba(235,235,235,0.82)";
  ctx.fillRect(0, 0, width, top);
  ctx.fillRect(0, bottom, width, height - bottom);
  ctx.fillRect(0, top, left, bottom - top);
  ctx.fillRect(right, top, width - right, bottom - top);
  const edge = (from, to, i, n) => Math.round(from + (to - from) * i / n);
  const high = highest(map) || 1;
  ctx.globalAlpha = $("opacity").value / 100;
  for (let r = 0; r < v.rows; r++) {
    const y = edge(top, bottom, r, v.rows), tall = edge(top, bottom, r + 1, v.rows) - y;
    for (let c = 0; c < v.cols; c++) {
      const x = edge(left, right, c, v.cols);
      ctx.fillStyle = "rgb(" + COLOURS_256[Math.min(255, Math.round(255 * map[r * v.cols + c] / high))].join(",") + ")";
      ctx.fillRect(x, y, edge(left, right, c + 1, v.cols) - x, tall);
    }
  }
  ctx.globalAlpha = 1;
  if (!grid) return;
  ctx.strokeStyle = "rgba(255,255,255,0.55)";
  ctx.lineWidth = ratio;
  ctx.beginPath();
  for (let r = 0; r <= v.rows; r++) { const y = edge(top, bottom, r, v.rows); ctx.moveTo(left, y); ctx.lineTo(right, y); }
  for (let c = 0; c <= v.cols; c++) { const x = edge(left, right, c, v.cols); ctx.moveTo(x, top); ctx.lineTo(x, bottom); }
  ctx.stroke();
  if (!hovered) return;
  const [r, c] = hovered, x = edge(left, right, c, v.cols), y = edge(top, bottom, r, v.rows);
  const w = edge(left, right, c + 1, v.cols) - x, h = edge(top, bottom, r + 1, v.rows) - y;
  ctx.lineWidth = 5 * ratio; ctx.strokeStyle = "#000"; ctx.strokeRect(x, y, w, h);
  ctx.lineWidth = 2 * ratio; ctx.strokeStyle = "#fff"; ctx.strokeRect(x, y, w, h);
}

function sentence(map) {
  const v = shown, name = "Layer " + (layer + 1) + ", " + (head < 0 ? "mean of the heads" : "head " + (head + 1));
  if (hovered) {
    const w = map[hovered[0] * v.cols + hovered[1]];
    return "Row " + (hovered[0] + 1) + ", column " + (hovered[1] + 1) + ": weight " + w.toFixed(4) + ", " +
      (w / v.uniform).toFixed(1) + " times an even share.";
  }
  let best = 0;
  for (let i = 1; i < map.length; i++) if (map[i] > map[best]) best = i;
  const prefix = head < 0 ? v.prefix[layer].reduce((a, b) => a + b, 0) / v.heads : v.prefix[layer][head];
  return name + ": " + v.reader + " reads most from row " + (Math.floor(best / v.cols) + 1) + ", column " + (best % v.cols + 1) + " (" + percent(map[best]) + ", " +
    (map[best] / v.uniform).toFixed(1) + " times an even share); " + percent(prefix) + " goes to tokens that are no patch.";
}

function draw() {
  if (!shown || !photo) return;
  const map = weights(head), side = Math.max(1, Math.min(720, $("main").parentElement.clientWidth || 640, TALLEST * shown.width / shown.height));
  $("main").style.width = side + "px";
  paint($("main"), map, side, $("grid").checked);
  const name = head < 0 ? "mean of all heads" : "head " + (head + 1);
  $("main").setAttribute("aria-label", "The picture with what " + shown.reader + " reads in layer " + (layer + 1) + ", " + name);
  $("readout").textContent = sentence(map);
  $("high").textContent = highest(map).toFixed(3);
  $("unit").textContent = "attention weight, " + ($("own").checked ? "scale of this map" : "one scale for layer " + (layer + 1));
  $("layer-name").textContent = "Layer " + (layer + 1) + " of " + shown.layers;
  $("heads-title").textContent = "All heads of layer " + (layer + 1);
  element.querySelector(".vd").dataset.layer = layer + 1;
  element.querySelectorAll(".vd-heads button").forEach((button) => {
    const h = Number(button.dataset.head), own = weights(h);
    button.setAttribute("aria-pressed", String(h === head));
    paint(button.firstChild, own, button.firstChild.clientWidth || 132, false);
  });
}

function drawScale() {
  const ctx = $("scale").getContext("2d");
  COLOURS_256.forEach((colour, i) => { ctx.fillStyle = "rgb(" + colour.join(",") + ")"; ctx.fillRect(i, 0, 1, 14); });
}

function buildHeads() {
  const box = $("heads");
  box.replaceChildren();
  for (let h = -1; h < shown.heads; h++) {
    const button = document.createElement("button"), canvas = document.createElement("canvas"), text = document.createElement("span");
    button.type = "button";
    button.dataset.head = h;
    text.textContent = h < 0 ? "mean" : "head " + (h + 1);
    button.append(canvas, text);
    button.addEventListener("click", () => { head = h; draw(); });
    box.append(button);
  }
}

function buildAnswer() {
  const v = shown, list = $("top");
  $("verdict").textContent = v.top.length ? v.top[0][0] + ", " + percent(v.top[0][1]) : "No classes: this model has no head";
  list.replaceChildren();
  for (const [name, share] of v.top) {
    const item = document.createElement("li"), label = document.createElement("span"), value = document.createElement("span");
    const track = document.createElement("div"), fill = document.createElement("div");
    label.className = "vd-name"; value.className = "vd-share"; track.className = "vd-track"; fill.className = "vd-fill";
    label.textContent = name; value.textContent = percent(share); fill.style.width = (100 * share) + "%";
    track.append(fill); item.append(label, value, track); list.append(item);
  }
  const count = v.known === 10 ? "ten" : String(v.known);
  $("limit").textContent = v.top.length ? (v.truth ? "True label: " + v.truth + ". " : "") + v.about + " It knows only these " + count +
    " things: whatever you show it, it names one of them." : v.about;
  $("names").hidden = !v.known;
  $("names").querySelector("summary").textContent = "The " + count + " things it knows";
  $("names").querySelector("p").textContent = v.knows.join(", ") + (v.known > v.knows.length ? ", …" : "");
  const [height, width] = v.seen_size;
  $("seen-text").textContent = [width + " × " + height + " pixels, cut into " + v.cols + " × " + v.rows + " patches."].concat(v.notes).join(" ");
  $("seen").setAttribute("aria-label", "The picture as the model gets it, " + width + " by " + height + " pixels");
}

function load(url) {
  return new Promise((resolve, reject) => { const image = new Image(); image.onload = () => resolve(image); image.onerror = reject; image.src = url; });
}

async function show(value) {
  const root = element.querySelector(".vd");
  if (!value || !value.picture) {
    shown = photo = null;
    $("body").hidden = true;
    $("message").textContent = value ? value.message : "";
    root.dataset.state = value && value.failed ? "failed" : "empty";
    return;
  }
  const [nextPhoto, nextSeen] = await Promise.all([load(value.picture), load(value.seen)]);
  if (props.value !== value && JSON.stringify(props.value) !== JSON.stringify(value)) return;      // a newer one came in meanwhile
  const raw = bytes(value.attention);
  const again = shown !== null;
  photo = nextPhoto; seen = nextSeen; shown = value; hovered = null;
  maps = new Uint16Array(raw.buffer);
  if (!(layer < value.layers) || root.dataset.shape !== value.layers + "x" + value.heads) { layer = value.layers - 1; head = -1; }
  root.dataset.shape = value.layers + "x" + value.heads;
  $("layer").max = value.layers;
  $("layer").value = layer + 1;
  $("message").textContent = "";
  $("body").hidden = false;
  root.dataset.state = "shown";
  const small = $("seen");
  small.width = seen.width; small.height = seen.height;
  small.getContext("2d").drawImage(seen, 0, 0);
  buildHeads();
  buildAnswer();
  draw();
  const top = root.getBoundingClientRect().top;
  if (again && (top < -200 || top > window.innerHeight - 200)) root.scrollIntoView({ block: "start" });     // a phone: the answer is elsewhere on the page
}

// Files go to the picture input through here, whether chosen, dropped or pasted: Gradio's own part refuses by name what our decoder
// judges by content, says nothing of files that are too large, and does not listen for Ctrl+V.
async function hand(file) {
  if (file.size > LARGEST) {
    show({ message: "That file has " + Math.ceil(file.size / 1e6) + " MB; at most " + Math.floor(LARGEST / 1e6) + " MB can be uploaded: make the picture smaller.", failed: true });
    return;
  }
  const box = document.querySelector("#vd-picture"), field = () => box.querySelector("input[type=file]");
  if (!field()) box.querySelector("button[aria-label*='emove'], button[aria-label*='lear']")?.click();
  for (let wait = 0; !field() && wait < 40; wait++) await new Promise((done) => setTimeout(done, 25));
  if (!field()) return;
  const files = new DataTransfer();
  files.items.add(file.type.startsWith("image/") ? file : new File([file], file.name, { type: "image/unknown" }));
  field().files = files.files;
  const event = new Event("change", { bubbles: true });
  event.handed = true;
  field().dispatchEvent(event);
}

function take(event, list) {
  if (event.handed || !list || !list.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  hand(list[0]);
}

document.addEventListener("change", (event) => { if (event.target.matches?.("#vd-picture input[type=file]")) take(event, event.target.files); }, true);
document.addEventListener("drop", (event) => { if (event.target.closest?.("#vd-picture")) take(event, event.dataTransfer?.files); }, true);
document.addEventListener("paste", (event) => { if (element.offsetParent) take(event, event.clipboardData?.files); }, true);

function hover(event) {
  if (!shown) return;
  const box = $("main").getBoundingClientRect(), [top, left, bottom, right] = shown.crop;
  const y = (event.clientY - box.top) * shown.height / box.height, x = (event.clientX - box.left) * shown.width / box.width;
  const inside = y >= top && y < bottom && x >= left && x < right;
  hovered = inside ? [Math.floor((y - top) / (bottom - top) * shown.rows), Math.floor((x - left) / (right - left) * shown.cols)] : null;
  draw();
}

$("layer").addEventListener("input", () => { layer = Number($("layer").value) - 1; draw(); });
for (const name of ["opacity", "grid", "own"]) $(name).addEventListener("input", draw);
$("main").addEventListener("pointermove", hover);
$("main").addEventListener("pointerdown", hover);
$("main").addEventListener("pointerleave", () => { hovered = null; draw(); });
new ResizeObserver(() => draw()).observe($("main").parentElement);
drawScale();
watch("value", () => show(props.value));
show(props.value);

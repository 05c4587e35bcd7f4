// Canvases. `about` is a picture and its patches: { photo, width, height, crop [top, left, bottom, right], rows, cols, prefix }: the picture with what was cropped away greyed, a map over it, the patch grid, the marked patches.
const small = document.createElement("canvas");

// The colours from none to most, on a canvas 256 pixels wide.
function ramp(canvas) {
  const ctx = canvas.getContext("2d");
  canvas.setAttribute("aria-label", phrase(WORDS.colour_scale, { colours: WORDS.colours_from_to[look.colours] }));
  COLOUR_TABLES[look.colours].forEach((colour, i) => { ctx.fillStyle = "rgb(" + colour.join(",") + ")"; ctx.fillRect(i, 0, 1, canvas.height); });
}

// The map's cells as one small picture, (rows, cols) pixels, to be enlarged without smoothing. A map is a number per token, or { rgba } per patch.
function cells(about, map, low, high, into = small) {
  if (into.width !== about.cols || into.height !== about.rows) { into.width = about.cols; into.height = about.rows; }
  const ctx = into.getContext("2d"), image = ctx.createImageData(about.cols, about.rows);
  if (map.rgba) image.data.set(map.rgba);
  else colourInto(image.data, about.cols, 0, 0, about, map, high, low);
  ctx.putImageData(image, 0, 0);
  return into;
}

function colourInto(data, width, row, col, about, vector, high, low = 0) {
  const table = COLOUR_TABLES[look.colours], factor = high > low ? 255 / (high - low) : 0;
  for (let r = 0; r < about.rows; r++) for (let c = 0; c < about.cols; c++) {
    const w = vector[about.prefix + r * about.cols + c], colour = table[Math.max(0, Math.min(255, Math.round((w - low) * factor)))] ?? table[0], at = 4 * ((row + r) * width + col + c);
    data[at] = colour[0]; data[at + 1] = colour[1]; data[at + 2] = colour[2]; data[at + 3] = 255;
  }
}

// The picture at a size, with the parts the model does not see greyed; kept, because only the map over it changes.
function base(about, width, height) {
  about.bases ??= new Map();
  const key = width + "x" + height;
  if (!about.bases.has(key)) {
    if (about.bases.size > 8) about.bases.clear();
    const canvas = document.createElement("canvas"), ctx = canvas.getContext("2d");
    canvas.width = width; canvas.height = height;
    ctx.imageSmoothingEnabled = width / about.width < 4;
    ctx.drawImage(about.photo, 0, 0, width, height);
    const [top, left, bottom, right] = edges(about, height / about.height);
    ctx.fillStyle = "rgba(235,235,235,0.82)";
    ctx.fillRect(0, 0, width, top);
    ctx.fillRect(0, bottom, width, height - bottom);
    ctx.fillRect(0, top, left, bottom - top);
    ctx.fillRect(right, top, width - right, bottom - top);
    about.bases.set(key, canvas);
  }
  return about.bases.get(key);
}

const edges = (about, scale) => about.crop.map((edge) => Math.round(edge * scale));

// Draws `map` (null: the picture alone) over the picture on `canvas`, `side` CSS pixels wide; its colours run from `low` to `high`. Lines are `bold` times as wide as on the
// page, those of the grid in the colour `ink`; `grey` takes the picture's own
// colours, so that the map's are the only ones.
function paint(canvas, about, map, high, side, { grid = false, marks = [], low = 0, bold = 1, grey = false, ink = "rgba(255,255,255,0.55)" } = {}) {
  const ratio = window.devicePixelRatio || 1, scale = side * ratio / about.width;
  const width = Math.max(1, Math.round(about.width * scale)), height = Math.max(1, Math.round(about.height * scale));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const ctx = canvas.getContext("2d");
  ctx.globalAlpha = 1;
  ctx.drawImage(base(about, width, height), 0, 0);
  const [top, left, bottom, right] = edges(about, height / about.height);
  if (grey) {
    ctx.globalCompositeOperation = "saturation";
    ctx.fillStyle = "#808080";
    ctx.fillRect(left, top, right - left, bottom - top);
    ctx.globalCompositeOperation = "source-over";
  }
  if (map) {
    ctx.imageSmoothingEnabled = false;
    ctx.globalAlpha = look.opacity / 100;
    ctx.drawImage(cells(about, map, low, high), left, top, right - left, bottom - top);
    ctx.globalAlpha = 1;
  }
  const y = (r) => top + (bottom - top) * r / about.rows, x = (c) => left + (right - left) * c / about.cols;
  if (grid) {
    ctx.strokeStyle = ink;
    ctx.lineWidth = bold * ratio;
    ctx.beginPath();
    for (let r = 0; r <= about.rows; r++) { ctx.moveTo(left, y(r)); ctx.lineTo(right, y(r)); }
    for (let c = 0; c <= about.cols; c++) { ctx.moveTo(x(c), top); ctx.lineTo(x(c), bottom); }
    ctx.stroke();
  }
  for (const { patch, dashed, colour = "#fff" } of marks) {
    const r = Math.floor(patch / about.cols), c = patch % about.cols;
    ctx.setLineDash(dashed ? [6 * bold * ratio, 4 * bold * ratio] : []);
    ctx.lineWidth = 5 * bold * ratio; ctx.strokeStyle = "#000"; ctx.strokeRect(x(c), y(r), x(c + 1) - x(c), y(r + 1) - y(r));
    ctx.lineWidth = 2 * bold * ratio; ctx.strokeStyle = colour; ctx.strokeRect(x(c), y(r), x(c + 1) - x(c), y(r + 1) - y(r));
  }
  ctx.setLineDash([]);
}

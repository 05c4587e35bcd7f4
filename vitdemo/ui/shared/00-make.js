// What every front end of the page begins with. Each one defines `root`, its outermost element, and `look`, how its maps are drawn:
// { opacity (percent), colours (a name of COLOUR_TABLES) }. The parts of this folder are joined before those of the front end's own folder.
const COLOUR_TABLES = "COLOURS";
const WORDS = "SAID";                                                    // what this front end says, by name: vitdemo/words.py
// One of them with its values filled in: "{n} of {all}", "{n|picture|pictures}".
const phrase = (words, values) => words.replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name, one, many) =>
  !(name in values) ? whole : one === undefined ? String(values[name]) : Number(values[name]) === 1 ? one : many);
const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + "%";

// An element with text and children, never with markup: make("p", { class: "vd-x", text: name }, child, ...).
function make(tag, settings = {}, ...children) {
  return dress(document.createElement(tag), settings, children);
}

function dress(node, settings, children) {
  for (const [name, value] of Object.entries(settings)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") { if (value) node.setAttribute(name, ""); }
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Base64 as bytes.
function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < out.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

// Weights (layers, heads, T) from 8-bit or 16-bit shares of each head's largest.
function unpack(packed) {
  const [layers, heads, tokens] = packed.shape, raw = bytes(packed.data), out = new Float32Array(layers * heads * tokens), wide = raw.length === 2 * out.length;
  for (let i = 0; i < out.length; i++) out[i] = (wide ? (raw[2 * i] + 256 * raw[2 * i + 1]) / 65535 : raw[i] / 255) * packed.highs[Math.floor(i / tokens)];
  return { layers, heads, tokens, weights: out };
}

// The browser saves what is behind the address as a file of that name.
function saveAs(url, name) {
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

// The browser saves { name, type, data (base64) }; gives the file's bytes.
function saveData({ name, type, data }) {
  const content = bytes(data), url = URL.createObjectURL(new Blob([content], { type }));
  saveAs(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60000);
  return content.length;
}

function picture(url) {
  return new Promise((resolve, reject) => { const image = new Image(); image.onload = () => resolve(image); image.onerror = reject; image.src = url; });
}

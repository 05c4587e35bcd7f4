// Which map the view names, how its colours are scaled, and what it says in words.
const KINDS = ["attention", "mean attention", "rollout", "relevance", "occlusion", "similarity", "colours", "norms"];
const FUSIONS = ["mean", "min", "max"];                                    // how heads are joined
const WEIGHTS = ["attention", "mean attention", "rollout"];                // kinds whose numbers are weights, so that an even share means something
const BY_CLASS = ["relevance", "occlusion"];
const OF_A_TOKEN = ["attention", "similarity"];                            // kinds that ask about one token, which a click on a patch chooses

// Rows (or columns) of one token in all layers and heads; null while the server is asked.
function rowsOf(about, token, direction) {
  if (direction === "reads" && token === about.first) return about.own;
  const answer = settled(about, { question: "token", token });
  if (!answer) return null;
  const field = direction === "reads" ? "reads" : "read_by";
  answer.unpacked ??= {};
  return (answer.unpacked[field] ??= unpack(answer[field]));
}

// The answer to a question if it is there; else the question is asked, the page redrawn when it comes, and null returned.
function settled(about, request) {
  const key = JSON.stringify(request);
  about.ready ??= new Map();
  if (about.ready.has(key)) return about.ready.get(key);
  if (!about.asking?.has(key)) {
    (about.asking ??= new Set()).add(key);
    ask(about, request).then(
      (answer) => { about.ready.set(key, answer); about.asking.delete(key); about.progress = ""; change({}); },
      (failure) => { about.progress = ""; setTimeout(() => about.asking.delete(key), 2000); fallBack(about, failure.message); });
  }
  return null;
}

// What was wished cannot be had: the sentence is shown, and the view that was there before stays.
function fallBack(about, sentence) {
  if (about !== result && about !== beside()?.result) return;              // about a picture that is no longer shown
  if (good && good.result === result) Object.assign(view, good.view);
  change({});
  trouble = sentence;
  draw();
}

// The map of `view` as Float32Array over tokens, or null while it is on its way. Layer and head are bent to the model's own range.
function mapOf(about, wanted = view) {
  if (wanted.kind === "rollout") return single(about, { question: "rollout", up_to: Math.min(wanted.up_to, about.layers), fusion: wanted.fusion, discard: wanted.discard });
  if (BY_CLASS.includes(wanted.kind)) return single(about, { question: wanted.kind, klass: wanted.klass });
  if (FEATURES.includes(wanted.kind)) return featureMap(about, wanted);
  if (wanted.kind === "mean attention") return (about.meanAttention ??= meanOf(about.own));
  const all = rowsOf(about, tokenFor(about, wanted), wanted.direction);
  return all && fuse(all, Math.min(wanted.layer, about.layers - 1), headOf(about, wanted.head));
}

// The head that a model has in the place of the one that is wished: the mean of all where it has fewer.
const headOf = (about, head) => typeof head === "number" && head >= about.heads ? "mean" : head;

function meanOf({ tokens, weights }) {
  const out = new Float32Array(tokens);
  for (let i = 0; i < weights.length; i++) out[i % tokens] += weights[i] * tokens / weights.length;
  return out;
}

function tokenFor(about, wanted) {
  if (wanted.token === null || wanted.token === result.first) return about.first;
  if (wanted.token >= result.prefix) return about.prefix + placeIn(about, wanted.token - result.prefix);
  return wanted.token < about.prefix ? wanted.token : about.first;
}

// The patch of `about` that lies where a patch of the result on screen lies, because two models may cut pictures differently.
function placeIn(about, patch) {
  const row = Math.floor((Math.floor(patch / result.cols) + 0.5) / result.rows * about.rows), col = Math.floor((patch % result.cols + 0.5) / result.cols * about.cols);
  return row * about.cols + col;
}

function single(about, request) {
  const answer = settled(about, request);
  return answer && (answer.vector ??= unpack(answer.map).weights);
}

function fuse({ heads, tokens, weights }, layer, head) {
  const start = layer * heads * tokens;
  if (typeof head === "number") return weights.subarray(start + head * tokens, start + (head + 1) * tokens);
  const out = weights.slice(start, start + tokens);
  for (let h = 1; h < heads; h++) for (let i = 0; i < tokens; i++) {
    const w = weights[start + h * tokens + i];
    out[i] = head === "mean" ? out[i] + w : head === "min" ? Math.min(out[i], w) : Math.max(out[i], w);
  }
  if (head === "mean") for (let i = 0; i < tokens; i++) out[i] /= heads;
  return out;
}

function largest(vector, from) {
  let high = 0;
  for (let i = from; i < vector.length; i++) if (vector[i] > high) high = vector[i];
  return high;
}

// The largest patch weight of every head, worked out once: (layers * heads).
function headHighs(about, all) {
  return (all.patchHighs ??= Float32Array.from({ length: all.layers * all.heads }, (_, i) => largest(all.weights.subarray(i * all.tokens, (i + 1) * all.tokens), about.prefix)));
}

// The largest patch weight of any head of a layer: one scale for the layer.
function layerHigh(about, all, layer) {
  return largest(headHighs(about, all).subarray(layer * all.heads, (layer + 1) * all.heads), 0);
}

// Where the colours of a map of a layer end: at the layer's largest weight, one scale for all heads; at its own where heads are rescaled, and where heads are
// joined, which one head that looks at one patch would leave dark.
const ownScale = (head) => look.own || typeof head !== "number";
const highOf = (about, all, layer, head, map) => ownScale(head) ? largest(map, about.prefix) : layerHigh(about, all, layer);

// What the colours of a map run from and to.
function scaleOf(about, map, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return featureScale(about, map, wanted);
  if (wanted.kind !== "attention") return [0, largest(map, about.prefix)];
  return [0, highOf(about, rowsOf(about, tokenFor(about, wanted), wanted.direction), Math.min(wanted.layer, about.layers - 1), headOf(about, wanted.head), map)];
}

const headName = (head) => typeof head === "number" ? phrase(WORDS.head_n, { n: head + 1 }) : WORDS.heads_joined[head];
const className = (about, k) => about.knows[k] ?? about.top[about.leading.indexOf(k)]?.[0] ?? phrase(WORDS.class_n, { n: k + 1 });
// A class by name in another model; the one at the same place where that has the name, because names may occur twice.
const classIndex = (about, name, near = -1) => about.knows[near] === name ? near : Math.max(about.knows.indexOf(name), about.leading[about.top.findIndex(([one]) => one === name)] ?? -1);
const placeName = (about, patch) => phrase(WORDS.place, { row: Math.floor(patch / about.cols) + 1, col: patch % about.cols + 1 });
// What is asked about a token: what it reads, or who reads it.
const aboutToken = (about, token, direction) => phrase(WORDS.about_token[direction], { token: about.tokenName(token) });
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function titleOf(about, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return featureTitle(about, wanted);
  if (wanted.kind === "rollout") return phrase(WORDS.title_rollout, { layer: Math.min(wanted.up_to, about.layers), fusion: WORDS.fusions[wanted.fusion] });
  if (wanted.kind === "relevance") return phrase(WORDS.title_relevance, { klass: className(about, wanted.klass) });
  if (wanted.kind === "occlusion") return phrase(WORDS.title_occlusion, { klass: className(about, wanted.klass) });
  if (wanted.kind === "mean attention") return WORDS.title_mean;
  return phrase(WORDS.layer_and_heads, { layer: Math.min(wanted.layer, about.layers - 1) + 1, heads: headName(headOf(about, wanted.head)) });
}

// One patch in words: where, how much, and how that compares with an even share.
function patchSentence(about, vector, patch, wanted = view) {
  const w = vector[about.prefix + patch], where = capital(placeName(about, patch));
  if (FEATURES.includes(wanted.kind)) return featureOfPatch(about, vector, patch, wanted);
  if (BY_CLASS.includes(wanted.kind)) {
    const even = sum(vector, about.prefix) / about.patches;
    return phrase((even > 0 ? WORDS.patch_of_class_times : WORDS.patch_of_class)[wanted.kind], { where, value: w.toPrecision(3), points: (100 * w).toFixed(1), times: (w / even).toFixed(1) });
  }
  return phrase(WORDS.patch_weight, { where, weight: w.toFixed(4), times: (w / about.uniform).toFixed(1), tokens: about.tokens, even: about.uniform.toFixed(4) });
}

function sum(vector, from = 0, to = vector.length) {
  let total = 0;
  for (let i = from; i < to; i++) total += vector[i];
  return total;
}

// Which ninth of the picture a map prefers, in these words: the one with the most weight per patch, because ninths need not be equally large.
function region(about, vector, words) {
  const ninths = new Float64Array(9), sizes = new Float64Array(9), total = sum(vector, about.prefix);
  for (let i = 0; i < about.patches; i++) {
    const at = 3 * Math.floor(3 * Math.floor(i / about.cols) / about.rows) + Math.floor(3 * (i % about.cols) / about.cols);
    ninths[at] += vector[about.prefix + i];
    sizes[at]++;
  }
  const dense = [...ninths].map((weight, at) => sizes[at] ? weight / sizes[at] : 0), best = dense.indexOf(Math.max(...dense));
  const share = total > 0 ? ninths[best] / total : 0, even = sizes[best] / about.patches;
  return share > 1.2 * even ? phrase(words, { ninth: WORDS.ninths[best], share: percent(share) }) : "";
}

// The whole map in words: who reads, where most, how much of it goes to tokens that are no patch.
function mapSentence(about, vector, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return titleOf(about, wanted) + ": " + featureSentence(about, vector, wanted);
  const high = largest(vector, about.prefix), best = vector.indexOf(high, about.prefix) - about.prefix, mean = sum(vector, about.prefix) / about.patches;
  const title = titleOf(about, wanted), spot = placeName(about, best), share = percent(high);
  let even = true;
  for (let i = about.prefix; i < vector.length; i++) if (Math.abs(vector[i] - vector[about.prefix]) > 1e-6 * (high || 1)) even = false;
  const how = even ? "even" : high < 1.3 * mean ? "almost" : "most";
  if (BY_CLASS.includes(wanted.kind)) return phrase(WORDS.map_of_class[how], { title, spot, region: region(about, vector, WORDS.region_of_map) });
  const where = even ? "" : region(about, vector, WORDS.region_of_patches), times = (high / about.uniform).toFixed(1);
  const token = about.tokenName(wanted.kind === "attention" ? tokenFor(about, wanted) : about.first), prefix = sum(vector, 0, about.prefix);
  const lead = Array.from({ length: about.prefix }, (_, i) => i).filter((i) => vector[i] > high).sort((one, two) => vector[two] - vector[one])[0];
  const from = lead === undefined ? phrase(WORDS.from_patches[how], { spot }) : phrase(WORDS.from_token_and_patches[how], { token: about.tokenName(lead), share: percent(vector[lead]), spot });
  if (wanted.kind === "rollout")
    return phrase(WORDS.map_rollout, { title, token, from, share, times, region: where, rest: about.prefix ? phrase(WORDS.map_rollout_rest, { share: percent(prefix) }) : "" });
  const single = wanted.kind !== "attention" || !["min", "max"].includes(wanted.head);       // the least or the most of all heads is no row: it has no sum
  if (wanted.kind === "attention" && wanted.direction === "read_by") {
    const rest = !single ? "" : phrase(about.prefix ? WORDS.map_read_by_sum_and_rest : WORDS.map_read_by_sum, { sum: sum(vector).toFixed(2), rest: prefix.toFixed(2) });
    return phrase(WORDS.map_read_by, { title, token, by: phrase(WORDS.by_patches[how], { spot }), share, times, rest });
  }
  const each = prefix >= 0.005 && about.prefix > 1;
  const rest = single && about.prefix ? phrase(each ? WORDS.map_reads_rest_each : WORDS.map_reads_rest, { share: percent(prefix), each: prefixParts(about, vector) }) : "";
  return phrase(WORDS.map_reads, { title, token, from, share, times, region: where, rest, sum: single ? phrase(WORDS.map_reads_sum, { sum: sum(vector).toFixed(2) }) : "" });
}

function prefixParts(about, vector) {
  return about.prefix_names.map((name, i) => name + " " + percent(vector[i])).slice(0, 6).join(", ");
}

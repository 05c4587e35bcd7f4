// Which map the view names, how its colours are scaled, and what it says in words.
const KINDS = {
  attention: {
    name: "Attention", line: "Attention: how much one token reads from every other, in one layer and head.",
    more: "Equation (6) of the paper, appendix A: softmax of queries times keys. Each row sums to 1. It misleads when read as a reason: it shows where a head looks, " +
      "not what it does with what it finds there, and a token may by then hold what it gathered from others.",
  },
  "mean attention": {
    name: "Mean attention", line: "Mean attention: what the reader reads, averaged over all layers and heads.",
    more: "The simplest summary of all. It misleads because heads that do different things, and layers that read different things, are poured together.",
  },
  rollout: {
    name: "Rollout", line: "Rollout: attention followed through all layers up to the chosen one, as if information only flowed along it.",
    more: "Abnar and Zuidema 2020, Quantifying Attention Flow in Transformers: per layer (A + I) / 2, multiplied up. Discarding the weakest weights follows Gildenblat's vit-explain. " +
      "It misleads because it knows neither values, nor the MLPs, nor the class: every class gets the same map.",
  },
  relevance: {
    name: "Class relevance", line: "Class relevance: attention that speaks for one class, weighted by its gradient and added up over the layers.",
    more: "Chefer, Gur and Wolf, Generic Attention-model Explainability, ICCV 2021, equations (5) and (6): the positive part of gradient times attention, mean over heads. " +
      "It misleads because only what speaks for the class is kept, and a gradient tells about small changes, not about removing a patch. Test it.",
  },
  occlusion: {
    name: "Occlusion", line: "Occlusion: how much the class probability falls when one patch alone is hidden by the picture's mean colour.",
    more: "Zeiler and Fergus 2014, Visualizing and Understanding Convolutional Networks. Asks the model instead of reading its attention; patches whose hiding raises the probability count as zero here. " +
      "It misleads where two patches tell the same: hiding either alone changes nothing.",
  },
  similarity: {
    name: "Similarity", line: "Similarity: how alike the model finds one patch and all others. Click a patch.",
    more: "The cosine of the angle between two tokens' last hidden states: 1 the same direction, 0 nothing in common, -1 opposite (Caron et al. 2021, DINO; Amir et al. 2021, Deep ViT Features as Dense " +
      "Visual Descriptors). To look for a patch in a second picture, pin this result, choose another picture and compare with the pinned one. It misleads because features also hold where a patch lies, so " +
      "that neighbours are alike; and where a model learned from labels only the token that its head reads had to mean anything at the end.",
  },
  colours: {
    name: "Colours", line: "Colours: the three directions in which the patches' features differ most, as red, green and blue. Like colours, like features.",
    more: "Principal components of the patches' last hidden states (Oquab et al. 2024, DINOv2, figures 1 and 9). Each runs from its least patch to its most. The paper's foreground: patches on one side of zero on the " +
      "first component, coloured by components of their own. It misleads because three directions are few, a component's sign is free, which side is foreground is a guess (here the side with less of the picture's " +
      "edge), and colours can be compared only between pictures that are shown side by side.",
  },
  norms: {
    name: "Norms", line: "Norms: how long every token's vector is after a layer. Far longer patches than the others are called artifacts.",
    more: "Darcet et al. 2024, Vision Transformers Need Registers: large models that learned long keep what they know of the whole picture in patches of plain background, whose vectors then are many times longer; " +
      "registers are extra tokens that give it another place. The authors set the limit by eye for each model (150 for DINOv2's ViT-g); here a patch counts from three times the median patch of its layer on. It " +
      "misleads because a length is no content: the norm before the next layer takes it away, and in most models all tokens grow from layer to layer.",
  },
};
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
  return all && fuse(all, Math.min(wanted.layer, about.layers - 1), typeof wanted.head === "number" && wanted.head >= about.heads ? "mean" : wanted.head);
}

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

// What the colours of a map run from and to. Weights begin at 0 and end at their layer's largest, or at their own where heads are rescaled or there is but one map.
function scaleOf(about, map, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return featureScale(about, map, wanted);
  if (wanted.kind !== "attention" || look.own) return [0, largest(map, about.prefix)];
  return [0, layerHigh(about, rowsOf(about, tokenFor(about, wanted), wanted.direction), Math.min(wanted.layer, about.layers - 1))];
}

const headName = (head) => typeof head === "number" ? "head " + (head + 1) : { mean: "mean of the heads", min: "least of the heads", max: "most of the heads" }[head];
const className = (about, k) => about.knows[k] ?? about.top[about.leading.indexOf(k)]?.[0] ?? "class " + (k + 1);
// A class by name in another model; the one at the same place where that has the name, because names may occur twice.
const classIndex = (about, name, near = -1) => about.knows[near] === name ? near : Math.max(about.knows.indexOf(name), about.leading[about.top.findIndex(([one]) => one === name)] ?? -1);
const placeName = (about, patch) => "row " + (Math.floor(patch / about.cols) + 1) + ", column " + (patch % about.cols + 1);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function titleOf(about, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return featureTitle(about, wanted);
  if (wanted.kind === "rollout") return "Rollout up to layer " + Math.min(wanted.up_to, about.layers) + ", " + wanted.fusion + " of the heads";
  if (wanted.kind === "relevance") return "What speaks for " + className(about, wanted.klass);
  if (wanted.kind === "occlusion") return "What " + className(about, wanted.klass) + " loses when a patch is hidden";
  if (wanted.kind === "mean attention") return "Mean attention of all layers and heads";
  return "Layer " + (Math.min(wanted.layer, about.layers - 1) + 1) + ", " + headName(wanted.head);
}

// One patch in words: where, how much, and how that compares with an even share.
function patchSentence(about, vector, patch, wanted = view) {
  const w = vector[about.prefix + patch], where = capital(placeName(about, patch));
  if (FEATURES.includes(wanted.kind)) return where + ": " + featureOfPatch(about, vector, patch, wanted);
  if (BY_CLASS.includes(wanted.kind)) {
    const even = sum(vector, about.prefix) / about.patches;
    return where + ": " + (wanted.kind === "relevance" ? "relevance " + w.toPrecision(3) : "the probability falls by " + percent(w)) + (even > 0 ? ", " + (w / even).toFixed(1) + " times the average patch." : ".");
  }
  return where + ": weight " + w.toFixed(4) + ", " + (w / about.uniform).toFixed(1) + " times an even share (1/" + about.tokens + " = " + about.uniform.toFixed(4) + ").";
}

function sum(vector, from = 0, to = vector.length) {
  let total = 0;
  for (let i = from; i < to; i++) total += vector[i];
  return total;
}

// Which ninth of the picture a map prefers, in words: the one with the most weight per patch, because ninths need not be equally large.
function region(about, vector) {
  const ninths = new Float64Array(9), sizes = new Float64Array(9), total = sum(vector, about.prefix);
  for (let i = 0; i < about.patches; i++) {
    const at = 3 * Math.floor(3 * Math.floor(i / about.cols) / about.rows) + Math.floor(3 * (i % about.cols) / about.cols);
    ninths[at] += vector[about.prefix + i];
    sizes[at]++;
  }
  const dense = [...ninths].map((weight, at) => sizes[at] ? weight / sizes[at] : 0), best = dense.indexOf(Math.max(...dense));
  const names = ["upper left", "upper middle", "upper right", "middle left", "centre", "middle right", "lower left", "lower middle", "lower right"];
  const share = total > 0 ? ninths[best] / total : 0, even = sizes[best] / about.patches;
  return share > 1.2 * even ? "the " + names[best] + " of the picture holds " + percent(share) + " of " : "";
}

// The whole map in words: who reads, where most, how much of it goes to tokens that are no patch.
function mapSentence(about, vector, wanted = view) {
  if (FEATURES.includes(wanted.kind)) return titleOf(about, wanted) + ": " + featureSentence(about, vector, wanted);
  const high = largest(vector, about.prefix), best = vector.indexOf(high, about.prefix) - about.prefix, mean = sum(vector, about.prefix) / about.patches;
  const spot = placeName(about, best), place = region(about, vector);
  let even = true;
  for (let i = about.prefix; i < vector.length; i++) if (Math.abs(vector[i] - vector[about.prefix]) > 1e-6 * (high || 1)) even = false;
  const how = even ? "alike" : high < 1.3 * mean ? "almost evenly, most" : "most";
  if (BY_CLASS.includes(wanted.kind)) return titleOf(about, wanted) + ": " + (even ? "every patch alike" : how + " in " + spot + (place && "; " + place + "it")) + ".";
  const area = even || !place ? "" : "; " + place + "what goes to patches", times = (high / about.uniform).toFixed(1) + " times an even share";
  const token = wanted.kind === "attention" ? tokenFor(about, wanted) : about.first, who = about.tokenName(token), prefix = sum(vector, 0, about.prefix);
  const lead = Array.from({ length: about.prefix }, (_, i) => i).filter((i) => vector[i] > high).sort((one, two) => vector[two] - vector[one])[0];
  const from = (lead === undefined ? "" : "most from " + about.tokenName(lead) + " (" + percent(vector[lead]) + "), of the patches ") + (even ? (lead === undefined ? "every patch alike" : "from all alike") : how + " from " + spot);
  if (wanted.kind === "rollout")
    return titleOf(about, wanted) + ": " + who + " gathers " + from + " (" + percent(high) + ", " + times + ")" + area + (about.prefix ? "; " + percent(prefix) + " comes from tokens that are no patch" : "") + ".";
  const single = wanted.kind !== "attention" || !["min", "max"].includes(wanted.head);       // the least or the most of all heads is no row: it has no sum
  if (wanted.kind === "attention" && wanted.direction === "read_by")
    return titleOf(about, wanted) + ": " + who + " is read " + (even ? "by every patch alike" : how + " by " + spot) + " (" + percent(high) + " of what that patch reads, " + times + ")" +
      (single ? "; all readers together give it " + sum(vector).toFixed(2) + " (an even share would be 1.00)" + (about.prefix ? ", " + prefix.toFixed(2) + " of it from tokens that are no patch" : "") : "") + ".";
  return titleOf(about, wanted) + ": " + who + " reads " + from + " (" + percent(high) + ", " + times + ")" + area + (!single ? "" : (about.prefix ? "; " + percent(prefix) +
    " goes to tokens that are no patch" + (prefix >= 0.005 && about.prefix > 1 ? " (" + prefixParts(about, vector) + ")" : "") : "") + "; all together " + sum(vector).toFixed(2)) + ".";
}

function prefixParts(about, vector) {
  return about.prefix_names.map((name, i) => name + " " + percent(vector[i])).slice(0, 6).join(", ");
}

// What the model makes of the patches: how alike their features are, their principal components as colours, how long tokens grow. None of it needs a class.
const FEATURES = ["similarity", "colours", "norms"];
const PARTS = ["all", "foreground", "background"];                         // which patches are coloured

// The second picture, if its features may be compared with those of the first: as far as is known, the same model made both.
function partner() {
  const pair = beside();
  return pair && pair.result !== result && other.kind !== "twin" && !result.apart?.has(pair.result.key) ? pair.result : null;
}

// The server knows which models are the same; where they are not, each picture is asked about by itself.
function setApart(about) {
  (result.apart ??= new Set()).add(about.key);
}

function featureMap(about, wanted) {
  if (wanted.kind === "similarity") return similarityOf(about, wanted);
  if (wanted.kind === "colours") return coloursOf(about, wanted);
  const found = normsOf(about);
  return found && fuse(found.lengths, layerOf(about, wanted), 0);
}

const layerOf = (about, wanted) => Math.min(wanted.layer, about.layers - 1);

// What stands beside was made by another model.
const foreign = (about) => about !== result && about === other.result && about !== partner();

// In the second picture it is the first one's token that all patches are compared with.
const across = (about) => about !== result && about === partner();

function similarityOf(about, wanted) {
  const far = across(about), asked = far ? result : about;
  const answer = settled(asked, { question: "similarity", token: tokenFor(asked, wanted), ...(far ? { beside: about.key } : {}) });
  if (!answer) return null;
  if (answer.apart) { setApart(about); return similarityOf(about, wanted); }
  return (answer.cosines ??= unpack(answer.map).weights.map((share) => 2 * share - 1));
}

function coloursOf(about, wanted) {
  const next = partner(), joint = Boolean(next) && (about === result || about === next), asked = joint ? result : about;
  const answer = settled(asked, { question: "colours", part: wanted.part, ...(joint ? { beside: next.key } : {}) });
  if (!answer) return null;
  if (answer.apart) { setApart(next); return coloursOf(about, wanted); }
  const one = answer.pictures[joint && about !== result ? 1 : 0];
  if (!one.map) {
    const rgba = bytes(one.rgba), kept = Array.from({ length: about.patches }, (_, i) => rgba[4 * i + 3] > 0);
    for (let i = 3; i < rgba.length; i += 4) rgba[i] = 255;               // what is not looked at is black, as in the paper
    one.map = { rgba, kept, joint, explained: answer.explained };
  }
  return one.map;
}

function normsOf(about) {
  const answer = settled(about, { question: "norms" });
  return answer && (answer.lengths.weights ? answer : Object.assign(answer, { lengths: unpack(answer.lengths) }));
}

// From where to where the colours run: similarity over all it can be, lengths from 0, unless they are to be stretched over what there is.
function featureScale(about, map, wanted) {
  if (wanted.kind === "colours") return [0, 1];
  const patches = map.subarray(about.prefix), most = Math.max(...patches);
  if (look.stretch) return [Math.min(...patches), most];
  return wanted.kind === "similarity" ? [-1, 1] : [0, most];
}

// What the mark on the scale stands for: right angles, or the length from which on a patch counts as an artifact.
const featureMark = () => view.kind === "similarity" ? 0 : view.kind === "norms" ? normsOf(result)?.limits[view.layer] ?? Infinity : Infinity;

function featureUnit(pair, marked) {
  const both = pair ? " and both pictures" : "";
  if (view.kind === "colours") return "red, green and blue are the first, second and third component, each from its least patch to its most" + (pair && partner() ? " in both pictures" : "");
  const unit = view.kind === "similarity" ? "cosine similarity, " + (look.stretch ? "stretched over this map" + both : "the whole scale from opposite to the same") :
    "length after layer " + (view.layer + 1) + ", " + (look.stretch ? "stretched over this map" : "one scale for this layer") + both;
  return unit + (marked ? view.kind === "similarity" ? "; the mark is 0, nothing in common" : "; the mark is three times the median patch" : "");
}

function featureTitle(about, wanted) {
  if (wanted.kind === "norms") return "Length after layer " + (layerOf(about, wanted) + 1) + " of " + about.layers;
  if (wanted.kind === "colours") return "Feature colours" + (wanted.part === "all" ? "" : " of the " + wanted.part);
  return "Similarity to " + queryName(about, wanted);
}

const queryName = (about, wanted) => across(about) ? result.tokenName(tokenFor(result, wanted)) + " of the first picture" : about.tokenName(tokenFor(about, wanted));
const signed = (value) => (value < -0.005 ? "−" : "") + Math.abs(value).toFixed(2);

function featureOfPatch(about, map, patch, wanted) {
  if (wanted.kind === "similarity") return "similarity " + signed(map[about.prefix + patch]) + " to " + queryName(about, wanted) + ".";
  if (wanted.kind === "norms") {
    const length = map[about.prefix + patch], limit = normsOf(about).limits[layerOf(about, wanted)];
    return "length " + length.toFixed(1) + (limit > 0 ? ", " + (3 * length / limit).toFixed(1) + " times the median patch" + (length > limit ? ", an artifact" : "") : "") + ".";
  }
  if (!map.kept[patch]) return "taken for " + (wanted.part === "foreground" ? "background" : "foreground") + ".";
  const [red, green, blue] = map.rgba.subarray(4 * patch, 4 * patch + 3);
  return "red " + percent(red / 255) + ", green " + percent(green / 255) + ", blue " + percent(blue / 255) + " of the way from each component's least patch to its most.";
}

function featureSentence(about, map, wanted) {
  return (wanted.kind === "similarity" ? similaritySentence : wanted.kind === "colours" ? coloursSentence : normsSentence)(about, map, wanted);
}

function similaritySentence(about, map, wanted) {
  const asked = across(about) ? -1 : tokenFor(about, wanted), patches = Array.from({ length: about.patches }, (_, i) => i).filter((i) => about.prefix + i !== asked);
  const value = (i) => map[about.prefix + i], best = patches.reduce((a, b) => value(b) > value(a) ? b : a, patches[0]), least = patches.reduce((a, b) => value(b) < value(a) ? b : a, patches[0]);
  if (best === undefined) return "there is no other patch.";
  const rest = about.prefix_names.map((name, i) => name + " " + signed(map[i])).filter((_, i) => i !== asked).slice(0, 6).join(", ");
  const alone = foreign(about) ? " Features of two models cannot be compared, so each picture is compared with itself." : "";
  return "most alike " + placeName(about, best) + " (" + signed(value(best)) + "), least " + placeName(about, least) + " (" + signed(value(least)) + "), on average " +
    signed(patches.reduce((total, i) => total + value(i), 0) / patches.length) + (rest ? "; " + rest : "") + "." + alone;
}

function coloursSentence(about, map, wanted) {
  const count = map.kept.filter(Boolean).length, shares = map.explained.filter((share) => share > 0);
  const looked = wanted.part === "all" ? "" : count + " of " + about.patches + " patches are taken for " + wanted.part + "; ";
  const alone = foreign(about) ? " Features of two models cannot be compared: a colour does not mean the same in both." : "";
  if (!shares.length) return looked + "there is nothing to colour, because these patches are all alike." + alone;
  if (map.joint && about !== result) return looked + "coloured by the same components.";
  const named = shares.map(percent), together = shares.length > 1 ? ", together " + percent(sum(shares)) : "";
  return looked + (shares.length === 1 ? "the one component there is holds " : "the components hold ") + named.slice(0, -1).join(", ") + (named.length > 1 ? " and " : "") + named.at(-1) + together + " of how the patches" +
    (map.joint ? " of both pictures differ. A colour means the same in both." : " differ.") + alone;
}

function normsSentence(about, map, wanted) {
  const limit = normsOf(about).limits[layerOf(about, wanted)], patches = Array.from({ length: about.patches }, (_, i) => i).sort((a, b) => map[about.prefix + b] - map[about.prefix + a]);
  const length = (i) => map[about.prefix + i], high = patches.filter((i) => limit > 0 && length(i) > limit), named = high.slice(0, 3).map((i) => placeName(about, i)).join("; ");
  const found = high.length ? high.length + " of " + about.patches + (high.length === 1 ? " patches is an artifact" : " patches are artifacts") + ", more than three times as long: " + named + (high.length > 3 ? "; …" : "") :
    "no patch is three times as long, so there are no artifacts";
  const rest = about.prefix_names.map((name, i) => name + " " + map[i].toFixed(1)).slice(0, 10).join(", ");
  return "the median patch " + (limit / 3).toFixed(1) + ", the longest " + length(patches[0]).toFixed(1) + " (" + placeName(about, patches[0]) + "); " + found + (rest ? ". Besides the patches: " + rest : "") + ".";
}

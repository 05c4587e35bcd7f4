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
  if (view.kind === "colours") return pair && partner() ? WORDS.unit_colours_both : WORDS.unit_colours;
  const similar = view.kind === "similarity", full = similar && !look.stretch;
  const unit = measured(phrase(WORDS.units[view.kind], { layer: view.layer + 1 }), look.stretch ? WORDS.scale_stretched : full ? WORDS.scale_whole : WORDS.scale_of_this_layer, pair && !full);
  return marked ? phrase(similar ? WORDS.mark_similarity : WORDS.mark_norms, { unit }) : unit;
}

function featureTitle(about, wanted) {
  if (wanted.kind === "norms") return phrase(WORDS.title_norms, { layer: layerOf(about, wanted) + 1, all: about.layers });
  if (wanted.kind === "colours") return WORDS.title_colours[wanted.part];
  return phrase(WORDS.title_similarity, { token: queryName(about, wanted) });
}

const queryName = (about, wanted) => across(about) ? phrase(WORDS.token_of_first, { token: result.tokenName(tokenFor(result, wanted)) }) : about.tokenName(tokenFor(about, wanted));
const signed = (value) => (value < -0.005 ? "−" : "") + Math.abs(value).toFixed(2);

function featureOfPatch(about, map, patch, wanted) {
  const where = capital(placeName(about, patch));
  if (wanted.kind === "similarity") return phrase(WORDS.patch_similarity, { where, value: signed(map[about.prefix + patch]), token: queryName(about, wanted) });
  if (wanted.kind === "norms") {
    const length = map[about.prefix + patch], limit = normsOf(about).limits[layerOf(about, wanted)];
    return phrase(!(limit > 0) ? WORDS.patch_length : length > limit ? WORDS.patch_artifact : WORDS.patch_length_times, { where, length: length.toFixed(1), times: (3 * length / limit).toFixed(1) });
  }
  if (!map.kept[patch]) return phrase(WORDS.patch_taken_for[wanted.part === "foreground" ? "background" : "foreground"], { where });
  const [red, green, blue] = [...map.rgba.subarray(4 * patch, 4 * patch + 3)].map((part) => percent(part / 255));
  return phrase(WORDS.patch_colours, { where, red, green, blue });
}

function featureSentence(about, map, wanted) {
  return (wanted.kind === "similarity" ? similaritySentence : wanted.kind === "colours" ? coloursSentence : normsSentence)(about, map, wanted);
}

function similaritySentence(about, map, wanted) {
  const asked = across(about) ? -1 : tokenFor(about, wanted), patches = Array.from({ length: about.patches }, (_, i) => i).filter((i) => about.prefix + i !== asked);
  const value = (i) => map[about.prefix + i], best = patches.reduce((a, b) => value(b) > value(a) ? b : a, patches[0]), least = patches.reduce((a, b) => value(b) < value(a) ? b : a, patches[0]);
  if (best === undefined) return WORDS.similar_none;
  const rest = about.prefix_names.map((name, i) => name + " " + signed(map[i])).filter((_, i) => i !== asked).slice(0, 6).join(", ");
  const alone = foreign(about) ? " " + WORDS.similar_apart : "", mean = signed(patches.reduce((total, i) => total + value(i), 0) / patches.length);
  return phrase(WORDS.similar, { most: placeName(about, best), high: signed(value(best)), least: placeName(about, least), low: signed(value(least)), mean, rest: rest && "; " + rest }) + alone;
}

function coloursSentence(about, map, wanted) {
  const count = map.kept.filter(Boolean).length, told = colouredBy(about, map) + (foreign(about) ? " " + WORDS.coloured_apart : "");
  return wanted.part === "all" ? told : phrase(WORDS.coloured_patches, { n: count, all: about.patches, part: WORDS.patch_parts[wanted.part], told });
}

// How much of the patches' differences the colours hold.
function colouredBy(about, map) {
  const shares = map.explained.filter((share) => share > 0), named = shares.map(percent), words = map.joint ? WORDS.coloured_joint : WORDS.coloured;
  if (!shares.length) return WORDS.coloured_none;
  if (map.joint && about !== result) return WORDS.coloured_same;
  if (shares.length === 1) return phrase(words.one, { shares: named[0] });
  return phrase(words.many, { shares: phrase(WORDS.list_and, { list: named.slice(0, -1).join(", "), last: named.at(-1) }), all: percent(sum(shares)) });
}

function normsSentence(about, map, wanted) {
  const limit = normsOf(about).limits[layerOf(about, wanted)], patches = Array.from({ length: about.patches }, (_, i) => i).sort((a, b) => map[about.prefix + b] - map[about.prefix + a]);
  const length = (i) => map[about.prefix + i], high = patches.filter((i) => limit > 0 && length(i) > limit), named = high.slice(0, 3).map((i) => placeName(about, i)).join("; ");
  const artifacts = !high.length ? WORDS.artifacts_none : phrase(WORDS.artifacts, { n: high.length, all: about.patches, places: named + (high.length > 3 ? "; …" : "") });
  const rest = about.prefix_names.map((name, i) => name + " " + map[i].toFixed(1)).slice(0, 10).join(", ");
  const median = (limit / 3).toFixed(1), longest = length(patches[0]).toFixed(1), place = placeName(about, patches[0]);
  return phrase(rest ? WORDS.lengths_and_rest : WORDS.lengths, { median, longest, place, artifacts, rest });
}

// A model on its way: asked for until it is there, with the bytes that have arrived, and a button that ends it.
const EVERY = 500;

async function want(model, title = WORDS.the_model) {
  const mark = waiting = { model };
  following++;                                                            // what another tab of the page chose is no longer meant
  const cancel = button(WORDS.cancel, () => { ask({ question: "cancel", model, who }).catch(() => {}); stay(); });
  try {
    for (;;) {
      const answer = await ask({ question: "want", model, who });
      if (waiting !== mark) return;                                        // something else was chosen meanwhile
      if (answer.state === "ready") return arrived(answer);
      if (answer.state === "failed") return failed(answer.sentence, () => want(model, title));
      if (answer.state === "cancelled") return stay();
      const { state, done, total } = answer, fetching = state === "fetching";
      const words = fetching ? (total ? WORDS.arrived : WORDS.asked_for) : state === "waiting" ? WORDS.waits : WORDS.being_loaded;
      tell(phrase(words, { model: title, done: megabytes(done / 1e6), total: megabytes(total / 1e6) }),
        { share: fetching && total ? done / total : undefined, doing: [cancel] });
      await pause(EVERY);
    }
  } catch (failure) { if (waiting === mark) failed(failure.message, () => want(model, title)); }
}

function failed(sentence, again) {
  waiting = null;
  if (offer) fillModels();
  if (about) describe(about.line, about.facts);
  tell(sentence, { failed: true, doing: [button(WORDS.try_again, again), button(WORDS.close, stay)] });
}

// It is there: the page is told, and looks through it.
function arrived(answer) {
  const entry = listedAs(answer.model), same = chosen.model === answer.model, like = about?.shape === answer.shape;
  if (entry) entry.here = true;
  about = answer;
  before = chosen;
  chosen = { ...(same ? chosen : OWN), model: answer.model, part: like ? chosen.part : null };
  if (!like) framing.close();
  waiting = null;
  tell("");
  showChosen();
  lookThrough();
}

// The page is told what looks now, one choice at a time: Gradio would lose or mix up choices that overtake each other. It answers with the
// choice's number; whatever was chosen meanwhile follows then.
let serial = 0, told = null, patience = 0;
const marks = new Map();                                                  // what was told and not answered yet, by its number

function lookThrough(key = shownNow().key ?? "") {
  if (told) return;
  told = { ...chosen, serial: ++serial, key };
  marks.set(serial, { ...told, input: inputNow() });
  trigger("select", told);
  patience = setTimeout(unheard, 30000);
}

// No answer ever came: the network was gone, or the line was full. The bar must not go on naming a model that is not the one that looks.
function unheard() {
  if (!seen()) return;
  const { key, ...shown } = shownNow();
  if (!key || alike(shown, chosen)) return;
  tell(WORDS.server_silent, { failed: true, doing: [button(WORDS.try_again, () => { tell(""); lookThrough(); }), button(WORDS.close, () => follow(shown))] });
}

// That choice is done with. Gives whether it still stands: whatever was chosen meanwhile is told now, or it once more for another picture.
function seen(instead) {
  clearTimeout(patience);
  const heard = told;
  told = null;
  const stands = alike(heard, chosen) && instead === undefined;
  if (!stands) lookThrough(instead);
  return stands;
}

// The page has looked through a choice, and its answer, `ours`, is about to be drawn. Where another picture has come meanwhile, or none is
// left, that is the one to be looked at, and no part of the one before is meant.
function echoed({ echo, key: ours }) {
  const mark = marks.get(echo), key = shownNow().key ?? "", input = inputNow();
  if (!mark) return;
  marks.delete(echo);
  const another = input !== mark.input || !input && key && !firsts.has(key) && origin(key) !== origin(mark.key);
  if (ours) firsts.set(ours, origin(mark.key));
  if (another && chosen.part && JSON.stringify(chosen.part) === JSON.stringify(mark.part)) chosen.part = null;
  if (told?.serial === echo) seen(another ? key : undefined);
  else if (another) lookThrough(key);                                     // given up already, and here all the same
}

// Of an answer that a choice here asked for, the one that showed its picture first.
const firsts = new Map(), origin = (key) => firsts.get(key) ?? key;

const alike = (one, two) => Object.keys(chosen).every((name) => JSON.stringify(one[name]) === JSON.stringify(two[name]));

// What the viewer shows: its key, and how that was looked at.
function shownNow() {
  const { key, look } = document.querySelector(".vd[data-key]")?.dataset ?? {}, [model, side, fit, part] = JSON.parse(look ?? "null") ?? [];
  return { key, model, side, fit, part };
}

// Another answer is shown. One that was on its way while something else was chosen here is by the way before that: then once more.
let before = null;
function answered() {
  if (!root.isConnected) return;
  const mark = told;
  if (mark && document.querySelector(".vd").dataset.state === "failed")      // a refusal before the choice was looked at comes without its number
    setTimeout(() => { if (told === mark) unheard(); }, 1000);
  if (framing.open) framing.renew();
  const { key, ...shown } = shownNow();
  if (!told && framing.open && !shown.part) chosen.part = null;            // another picture: the frame of the last one is not meant
  if (told || !key || alike(shown, chosen)) return;
  if (before && alike(shown, before)) return lookThrough();
  if (begun && !waiting && shown.model && shown.model !== chosen.model) follow(shown);       // the bar names what looks
}

async function watchViewer() {
  let view;
  while (!(view = document.querySelector(".vd"))) await pause(100);
  new MutationObserver(answered).observe(view, { attributes: true, attributeFilter: ["data-key", "data-state"] });
}

function showChosen() {
  fillModels();
  describe(about.line, about.facts);
  fillSides();
}

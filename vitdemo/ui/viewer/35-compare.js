// What stands beside the picture on the same scale: the untrained twin, the model in the box, a pinned result, a second class, the picture after surgery.
let pinned = null;         // a Result that was kept, with its title
let operated = null;       // the Result of the last surgery on the picture that is shown

const COMPARE = ["none", "twin", "box", "pinned", "surgery"];
const ASKED = ["twin", "box"];                                            // what the server is asked for
const called = (kind) => kind === "box" ? WORDS.model_in_the_box : phrase(WORDS.compare[kind], { title: pinned?.title });

function buildCompare() {
  parts.compare = make("select", { class: "vd-compare", "aria-label": WORDS.compare_with, onchange: () => compareWith(parts.compare.value) });
  parts.flicker = make("input", { class: "vd-flicker", type: "checkbox", oninput: (e) => { other.flicker = e.target.checked; beat(); change({}); } });
  parts.flickerLabel = make("label", {}, parts.flicker, " " + WORDS.flicker);
  parts.swap = make("button", { type: "button", class: "vd-button", text: WORDS.show_other, onclick: () => { other.phase = !other.phase; draw(); announce(); } });
  parts.pin = make("button", { type: "button", class: "vd-button vd-pin", text: WORDS.pin, onclick: pin });
  parts.compareNote = make("p", { class: "vd-hint vd-compare-note" });
  return make("div", { class: "vd-lines" }, make("div", { class: "vd-line" }, make("span", { class: "vd-line-name", text: WORDS.compare_with }), parts.compare, parts.pin, parts.flickerLabel, parts.swap), parts.compareNote);
}

function showCompare() {
  const choices = COMPARE.filter((key) => key === "none" || key === "twin" || (key === "box" && result.own_model) || (key === "pinned" && pinned) || (key === "surgery" && operated));
  const now = other.kind && choices.includes(other.kind) ? other.kind : "none";
  parts.compare.replaceChildren(...choices.map((key) => make("option", { value: key, text: called(key) })));
  parts.compare.value = now;
  const pair = beside();
  parts.compareNote.textContent = now === "twin" ? WORDS.twin_note :
    pair && (pair.result.layers !== result.layers || pair.result.heads !== result.heads) ? WORDS.shapes_note : "";
}

// The second picture and the view it is seen by, or null. A second class is one more view of the same result.
function beside() {
  if (!result) return null;
  if (BY_CLASS.includes(view.kind) && view.second !== null && !other.result)
    return { result, view: { ...view, klass: view.second }, title: className(result, view.second), captions: [view.klass, view.second].map((klass) => className(result, klass)) };
  if (!other.result) return null;
  const klass = BY_CLASS.includes(view.kind) ? classIndex(other.result, className(result, view.klass), view.klass) : 0;
  if (BY_CLASS.includes(view.kind) && klass < 0) return null;
  const captions = [captioned(WORDS.shown_beside[other.kind], result), other.kind === "pinned" ? other.title : captioned(other.title, other.result)];
  return { result: other.result, view: { ...view, klass }, title: other.title, captions };
}

// What stands over a pane: whose it is, and what that one answers.
const captioned = (title, { top }) => top.length ? title + ": " + top[0][0] + " " + percent(top[0][1]) : title;

async function compareWith(kind) {
  other.kind = kind;
  other.result = null;
  if (kind === "pinned" && pinned) Object.assign(other, { result: pinned.result, title: phrase(WORDS.pinned, { title: pinned.title }) });
  if (kind === "surgery" && operated) Object.assign(other, { result: operated, title: WORDS.after_surgery });
  beat();
  showCompare();
  change({});
  if (!ASKED.includes(kind)) return;
  const about = result;
  parts.compareNote.textContent = WORDS.compare_wait[kind];
  try {
    about[kind] ??= await Result.of(await ask(about, { question: kind }));
    if (other.kind !== kind || about !== result) return;
    Object.assign(other, { result: about[kind], title: called(kind) });
    showCompare();
    change({});
  } catch (failure) {
    if (other.kind !== kind || about !== result) return;
    other.kind = "none";
    showCompare();
    parts.compareNote.textContent = failure.message;
  }
}

function pin() {
  pinned = { result, title: result.top.length ? result.top[0][0] + " " + percent(result.top[0][1]) + ", " + result.model : phrase(WORDS.picture_through, { model: result.model }) };
  showCompare();
  parts.compareNote.textContent = WORDS.pin_note;
}

let timer = 0;
function beat() {
  clearInterval(timer);
  other.phase = false;
  if (other.flicker && beside() && !calm()) timer = setInterval(() => { if (root.offsetParent && beside()) { other.phase = !other.phase; draw(); } }, 900);
}

// A new result: twin and surgery belong to the old one, the pinned result stays.
function renewCompare() {
  operated = null;
  const kind = other.kind;
  if (result.beside) compareWith(result.beside);                           // the server wishes to begin with it: a model that was just trained
  else if (kind === "twin" || (kind === "box" && result.own_model)) compareWith(kind);
  else if (kind === "box") compareWith("none");
  else if (kind === "surgery") compareWith("none");
  else showCompare();
}

// The browser's half of the training lab: one function of (element, props, server, watch, trigger, upload), its parts joined in the order
// of their names, each part but this one closed in its own (() => { ... })(). The truth about a run is on the server's disk; here it is
// only asked for, once a second, and only what is new travels. Whatever was sent by anybody is written as text nodes and canvas pixels,
// never as markup.
const root = element.querySelector(".vl");
const $ = (name) => root.querySelector(".vl-" + name);
const look = { opacity: 65, colours: "cividis" };                        // how maps are drawn, for the shared painting

// The run on show. `follow` is the server's last answer about it, `index` the frame of the film that is on show, -1 before the first.
// `flatters` is what is to be said beside its accuracy, if anything, and `away` why nothing new is known of it just now.
const lab = {
  id: null, follow: null, status: null, rows: [], frames: [], scene: null, plan: null, test: null, can: {},
  left: { line: "", names: [] }, flatters: "", away: "",
  hello: null, index: -1,
};

const SHOWN = "vitdemo-shown";
const listeners = {};

// Events: "hello" (what this host offers), "run" (another run is on show, or none: `lab` was emptied), "news" ({ rows, frames } that are
// new; `again` where a resumed run takes back steps), "status", "away" (the server does not answer), "runs" (the own list changed), "scrub" (index of the frame on show), "film" (its pictures are there),
// "look" (opacity or colours of maps changed), "form" (the form of a new run changed),
// "start-from" (what the form should hold: any of { data, dataTitle, start, title or startTitle of that, freeze, minutes, preset, model,
// changes }).
function on(event, act) {
  (listeners[event] ??= []).push(act);
}

function emit(event, value) {
  for (const act of listeners[event] ?? [])
    try { act(value); } catch (failure) { console.error(failure); }      // one broken part does not take the others with it
}

// Rejects with an Error whose message is a sentence for people; `answer` is what the server said, null where it said nothing. Where it names
// runs of this browser that are going on, they are listed: the answer to the start of one may never have arrived.
async function ask(request) {
  for (let turn = 1; ; turn++) {
    const answer = await Promise.resolve(server.ask(request)).catch(() => null);          // Gradio gives nothing where the network fails
    if (answer && !answer.error) return answer;
    // a whole class asks at once: stand in line
    if (answer?.busy && turn < 12) { await pause(150 * turn * (1 + Math.random())); continue; }
    for (const run of answer?.runs ?? []) if (!mine.list().includes(run)) mine.add(run);
    throw Object.assign(new Error(answer ? answer.error : WORDS.server_silent), { answer });
  }
}

// Text that people may be reading, or hearing: left alone where it says that already.
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

const AGAIN = 5000;                                                      // ms until what was refused, or said of a busy moment, is asked again
const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));

// What is said of a moment is asked again after a while, once it is in sight: a server that was away, another run that went on. Gives
// whether it is still `wanted` then.
async function later(wanted) {
  const there = () => root.isConnected && wanted();
  do await pause(AGAIN); while (there() && (document.hidden || !root.offsetParent));
  return there();
}

// What stands before and after one of a phrase's values, for which a node is put in.
const around = (words, name, values) => phrase(words, { ...values, [name]: "\n" }).split("\n");

mine.changed((runs) => emit("runs", runs));

// A titled part of the page that can be folded away. place: "setup" (before a run, out of sight while one is shown), "run", or "runs"
// (always there, further down). In "run", `column` says where: "top", "main" and "side" beside each other, or "under" over the whole width.
// Gives { box, head, body }; `box.open` is whether it is unfolded, `box.hidden` whether it is there at all.
function section(place, order, title, line, { open = place === "run", column = "under" } = {}) {
  const name = make("span", { class: "vl-title", role: "heading", "aria-level": 3, text: title });
  const head = make("summary", { class: "vl-head" }, name, make("span", { class: "vl-hint", text: line }));
  const body = make("div", { class: "vl-body" });
  const box = make("details", { class: "vl-section", open }, head, body);
  put($(place === "run" ? column : place), order, box);
  return { box, head, body };
}

// Puts a node among its siblings by its order, which also rules where columns fall under each other.
function put(place, order, node) {
  node.style.order = order;
  place.insertBefore(node, [...place.children].find((other) => Number(other.style.order) > order) ?? null);
}

// One sentence for everybody, screen readers too. A failure stays until it is read, anything else goes by itself.
let fading = 0;
function say(sentence, failed = false) {
  clearTimeout(fading);
  const box = $("say");
  box.hidden = !sentence;
  box.dataset.failed = String(failed);
  box.firstElementChild.textContent = sentence;
  if (sentence && !failed) fading = setTimeout(() => say(""), 9000);
}

$("say-close").addEventListener("click", () => say(""));
$("say").addEventListener("keydown", (event) => { if (event.key === "Escape") say(""); });
recoloured(() => emit("look"));

// What a button does when it has to ask: it cannot be pressed twice, and a refusal is said.
async function doing(button, act) {
  button.disabled = true;
  try { return await act(); }
  catch (failure) { say(failure.message, true); return null; }
  finally { button.disabled = false; }
}

// Which frame of the film is on show. At the last one the film follows the run.
function setIndex(index) {
  const next = Math.max(-1, Math.min(lab.frames.length - 1, index));
  if (next === lab.index) return;
  lab.index = next;
  emit("scrub", next);
}

// A number as people write it: "3,5" is 3.5. NaN where it is none.
const numberOf = (text) => /^\s*-?(\d+([.,]\d*)?|[.,]\d+)(e-?\d+)?\s*$/i.test(text) ? Number(text.replace(",", ".")) : NaN;

// The run's weights as a file; gives what is said of that.
async function saveModel(run) {
  const { name, url, bytes: size } = await ask({ question: "checkpoint", run });
  saveAs(url, name);
  return phrase(WORDS.model_saved, { name, n: (size / 1e6).toFixed(1) });
}

const openInExplore = (run) => trigger("select", { run });

// What a run or a set left out, as the server tells it: one line that says how many files and how many pictures that were there already,
// empty where nothing was; and the names or reasons of the first files.
function leftOut({ skipped = [], skipped_count: count = skipped.length, duplicates_count: twice = 0 } = {}) {
  const written = (n) => ({ n: n.toLocaleString("en") });
  const parts = [count && phrase(WORDS.files_left_out, written(count)), twice && phrase(WORDS.counted_once, written(twice))];
  return { line: parts.filter(Boolean).join("; "),
    names: [...skipped, ...(count > skipped.length ? [phrase(WORDS.and_more, written(count - skipped.length))] : [])] };
}

const clock = (seconds) => {
  const s = Math.max(0, Math.round(seconds)), h = Math.floor(s / 3600), two = (n) => String(n).padStart(2, "0");
  return (h ? h + ":" + two(Math.floor(s / 60) % 60) : Math.floor(s / 60)) + ":" + two(s % 60);
};

// The browser's half of the viewer. `props.value` is what vitdemo.payload made; everything is drawn from it, text only as text nodes.
// The parts of the folder `shared` and then of this one are joined in order into one function of (element, props, server, watch).
const root = element.querySelector(".vd");
const $ = (name) => root.querySelector(".vd-" + name);

let result = null;         // the Result on screen
const view = { kind: "attention", direction: "reads", token: null, layer: 0, head: "mean", up_to: 1, fusion: "mean", discard: 0, klass: 0, second: null, part: "all" };
const look = { opacity: 65, colours: "cividis", grid: true, own: false, stretch: false };
let hovered = null;        // index of the patch under the pointer
let trouble = "";          // why the last wish could not be fulfilled, in a sentence
let good = null;           // { result, view } of what was last drawn whole

// One answer of the model: a payload with its pictures decoded, and what was asked about it since.
class Result {
  constructor(value) {
    Object.assign(this, value);
    this.prefix = value.prefix_names.length;
    this.patches = value.rows * value.cols;
    this.tokens = this.prefix + this.patches;
    this.first = value.pool === "cls" ? 0 : null;           // the reader: a token, or the average patch
    this.answers = new Map();
    this.own = unpack(value.reads);
  }
  static async of(value) {
    const made = new Result(value);
    [made.photo, made.input] = await Promise.all([picture(value.picture), picture(value.seen)]);
    return made;
  }
  tokenName(token) {
    if (token === null) return WORDS.the_average_patch;
    const name = this.prefix_names[token];
    if (token < this.prefix) return name.startsWith("register") ? name : phrase(WORDS.the_token, { name });
    return phrase(WORDS.the_patch, { place: placeName(this, token - this.prefix) });
  }
}

// Asks the server about a result; the same question is asked once. Rejects with an Error whose message is a sentence for people.
function ask(about, request) {
  const key = JSON.stringify(request);
  if (!about.answers.has(key)) {
    const answer = askThrough(about, request);
    about.answers.set(key, answer);
    answer.catch(() => about.answers.delete(key));
  }
  return about.answers.get(key);
}

// What takes long is answered a second at a time: asked on until all of it is there.
async function askThrough(about, request) {
  for (;;) {
    const answer = await askAgain(about, request);
    if (!("done" in answer) || answer.done >= answer.total) return answer;
    about.progress = phrase(WORDS.asking_share, { share: whole(answer.done / answer.total) });
    if (about === result || about === other.result) draw(); else return Promise.reject(new Error(WORDS.another_picture));
    if (answer.busy) await new Promise((go) => setTimeout(go, 1000));
  }
}

async function askAgain(about, request) {
  for (let turn = 1; ; turn++) {
    const answer = await server.ask({ ...request, key: about.key }).catch(() => null);     // Gradio gives nothing where the network fails
    if (!answer) throw new Error(WORDS.server_silent);
    if (!answer.error) return answer;
    if (!answer.busy || turn === 12) throw new Error(answer.error);
    await new Promise((go) => setTimeout(go, 120 * turn * (1 + Math.random())));           // a whole class asks at once: stand in line
  }
}

// The view as questions name it: without what only this page compares.
const wish = () => { const { second, ...rest } = view; return rest; };

// Every change of what is shown goes through here: clamped, drawn, and told to the open panel.
function change(changes = {}) {
  Object.assign(view, changes);
  if (!result) return;
  if (Object.keys(changes).length) trouble = "";
  view.layer = Math.max(0, Math.min(result.layers - 1, view.layer));
  view.up_to = view.layer + 1;
  if (typeof view.head === "number" && !(view.head >= 0 && view.head < result.heads)) view.head = "mean";
  if (view.token !== null && !(view.token >= 0 && view.token < result.tokens)) view.token = result.first;
  if (view.token === null && result.first !== null) view.token = result.first;
  if (view.token === null) view.direction = "reads";
  if (!(view.klass >= 0 && view.klass < result.known)) view.klass = 0;
  if (view.second !== null && !(view.second >= 0 && view.second < result.known)) view.second = null;
  if (BY_CLASS.includes(view.kind) && !result.known) view.kind = "attention";
  draw();
  updatePanels();
  announce();
}

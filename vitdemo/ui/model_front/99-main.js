$("models").addEventListener("change", (event) => pick(event.target.value));

// What was trained, loaded or fetched since: looked for when the bar comes into sight again, not while somebody may be choosing.
const again = () => { if (root.isConnected && root.offsetParent && !waiting && document.activeElement !== $("models")) renew().catch(() => {}); };
let sight = 0;                                                            // the first sight is the beginning
new IntersectionObserver(([entry]) => { if (entry.isIntersecting && sight++) again(); }).observe(root);
mine.changed(again);
document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); });
root.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("wait").hidden || event.target.matches("select")) return;
  event.preventDefault();
  event.stopPropagation();
  const [close] = [...$("act").querySelectorAll("button")].slice(-1);      // Not now, Cancel or Close
  close?.click();
  $("models").focus();
});
$("sides").addEventListener("change", (event) => change({ side: Number(event.target.value) === about.side ? null : Number(event.target.value) }));
$("fits").addEventListener("change", (event) => event.target.value === "part" ? framing.begin() : (framing.close(), change({ fit: event.target.value || null, part: null })));
bindFrame();
$("back").addEventListener("click", () => want("box"));

function change(changes) {
  before = chosen;
  chosen = { ...chosen, ...changes };
  lookThrough();
}

// Another tab of the page chose, or a link did: shown here, and looked through already. A model that a link names and that must be fetched
// first is offered as if it had been picked: { offer }.
let following = 0;
async function follow(value) {
  if (value?.echo) return echoed(value);
  if (value?.offer && begun) return pick(value.offer);
  if (!value?.model) return;
  const mark = ++following, { linked, ...choice } = value;
  before = linked ? chosen : null;                                         // of a picture that came meanwhile
  chosen = { ...OWN, ...choice };
  framing.close();
  try {
    let answer = await ask({ question: "want", model: chosen.model, who });
    for (let turn = 1; mark === following && answer.state !== "ready" && turn < 60; turn++) { await pause(EVERY); answer = await ask({ question: "want", model: chosen.model, who }); }
    if (answer.state !== "ready") throw new Error(answer.sentence || WORDS.not_loaded);
    await renew();
    if (mark !== following) return;                                       // another choice came meanwhile
    about = answer;
    waiting = null;
    tell("");
    showChosen();
    const late = linked && document.querySelector(".vd[data-key][data-late]");
    if (late) lookThrough();                                              // its picture is there, and the one that was meant was dropped
  } catch (failure) { if (mark === following) tell(failure.message, { failed: true, doing: [button(WORDS.close, () => tell(""))] }); }
}

// A server that was started anew is told what looks here; the page's other parts have said by then which example they show.
theServer().addEventListener("restart", ({ detail }) => { if (root.isConnected) trigger("restart", { ...chosen, example: detail.example }); });

let begun = false;
async function begin() {
  for (let turn = 1; ; turn++) {
    try { await renew(); await follow(props.value?.model ? props.value : { model: "box" }); begun = true; return follow(props.value?.offer ? props.value : null); }
    catch (failure) { tell(failure.message, { failed: true }); await pause(Math.min(8000, 1000 * turn)); if (!root.isConnected) return; }
  }
}

watch("value", () => follow(props.value));
watchViewer();
begin();

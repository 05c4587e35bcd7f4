$("models").addEventListener("change", (event) => pick(event.target.value));

// What was trained, loaded or fetched since: looked for when the bar comes into sight again, not while somebody may be choosing.
const again = () => { if (root.isConnected && root.offsetParent && !waiting && document.activeElement !== $("models")) renew().catch(() => {}); };
let sight = 0;                                                            // the first sight is the beginning
new IntersectionObserver(([entry]) => { if (entry.isIntersecting && sight++) again(); }).observe(root);
mine.changed(again);
document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); });
$("sides").addEventListener("change", (event) => change({ side: Number(event.target.value) === about.side ? null : Number(event.target.value) }));
$("whole").addEventListener("change", (event) => change({ whole: event.target.checked }));
$("back").addEventListener("click", () => want("box"));

function change(changes) {
  Object.assign(chosen, changes);
  lookThrough();
}

// Another tab of the page chose: shown here, and looked through already.
async function follow(value) {
  if (told && value?.echo === told.serial) return seen();
  if (!value?.model) return;
  chosen = { side: null, whole: false, ...value };
  try {
    about = await ask({ question: "want", model: chosen.model, who });
    for (let turn = 1; about.state !== "ready" && turn < 60; turn++) { await pause(EVERY); about = await ask({ question: "want", model: chosen.model, who }); }
    if (about.state !== "ready") throw new Error(about.sentence || "The model could not be loaded.");
    await renew();
    waiting = null;
    tell("");
    showChosen();
  } catch (failure) { tell(failure.message, { failed: true, doing: [button("Close", () => tell(""))] }); }
}

async function begin() {
  for (let turn = 1; ; turn++) {
    try { await renew(); return await follow({ model: "box" }); }
    catch (failure) { tell(failure.message, { failed: true }); await pause(Math.min(8000, 1000 * turn)); if (!root.isConnected) return; }
  }
}

watch("value", () => follow(props.value));
begin();

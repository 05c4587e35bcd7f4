let latest = null;         // what was to be shown last
const opening = {};         // what was in the input when a random picture was asked for, and when a link was

// Which answer comes too late: one whose picture is not the one in the input any more, or a random picture or a link's, since whose asking
// one has come into it.
function late(value) {
  if (!value || !document.querySelector("#vd-picture")) return "";
  const now = inputNow();
  if (value.input && !now.includes(value.input)) return "input";
  return ["random", "opened"].find((what) => value[what] && now && now !== opening[what]) ?? "";
}

// A new value from the server: show it, or say why there is none. Where the input was cleared, its own answer goes, and no other one.
async function show(value) {
  if (value?.cleared && !latest?.input) return;
  const dropped = late(value);
  if (dropped) return void (root.dataset.late = dropped);                  // for the model bar, which followed already
  delete root.dataset.late;
  if (value?.bring) return trigger("example_select", { example: value.bring });
  latest = value;
  if (value?.random) emptyInput();
  shown();
  if (!value || !value.picture) {
    result = null;
    delete root.dataset.key;
    $("body").hidden = true;
    $("message").textContent = value?.message ?? "";
    root.dataset.state = value && value.failed ? "failed" : "empty";
    markExample();
    projected.draw();
    return;
  }
  const next = await Result.of(value);
  if (latest !== value) return;                                            // a newer one came in meanwhile
  const again = result !== null, before = result;
  result = next;
  hovered = null;
  trouble = "";
  marked = new Set();
  const shape = [result.layers, result.heads, result.rows, result.cols, result.prefix].join("x");
  if (root.dataset.shape !== shape) Object.assign(view, { layer: result.layers - 1, head: "mean", token: result.first, direction: "reads" });
  root.dataset.shape = shape;
  const namesake = (k) => before ? classIndex(result, className(before, k), k) : -1;        // another model numbers its classes otherwise
  if (before && view.second !== null) view.second = namesake(view.second) >= 0 ? namesake(view.second) : null;
  const kept = BY_CLASS.includes(view.kind) ? namesake(view.klass) : -1;
  view.klass = kept >= 0 ? kept : result.leading[0] ?? 0;
  $("message").textContent = "";
  $("body").hidden = false;
  root.dataset.state = "shown";
  root.dataset.look = JSON.stringify(value.look ?? null);                  // before the key, whose change the model bar waits for
  root.dataset.key = value.key;                                            // for the model bar, which asks for the same picture through another model
  fillControls();
  fillWall();
  buildAnswer();
  markExample();
  renewCompare();
  change({});
  applyLink();
  const top = root.getBoundingClientRect().top, framing = document.querySelector(".vm[data-framing]");
  if (again && !framing && (top < -200 || top > window.innerHeight - 200)) root.scrollIntoView({ block: "start" });     // a phone: the answer is elsewhere on the page
}

buildStage();
buildPanels();
bindPointer($("main"), () => other.flicker && other.phase && beside() ? beside().result : result);
bindPointer($("other"), () => beside()?.result ?? result);
$("wall").addEventListener("click", wallClick);
$("wall-frame").addEventListener("keydown", wallKey);
document.addEventListener("keydown", key);
new ResizeObserver(([entry]) => { if (entry.contentRect.width) { room = entry.contentRect.width; draw(); } }).observe($("panes"));
drawScale();
watch("value", () => show(props.value));
begin();

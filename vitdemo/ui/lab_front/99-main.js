// The beginning: what this host offers, and the run that was on show before, if there is one.
async function begin() {
  const waiting = setTimeout(() => { $("off").hidden = false; }, 600);     // nobody sees the words where the answer is quick
  for (let turn = 1; ; turn++) {
    try { lab.hello = await ask({ question: "hello" }); break; }
    catch (failure) {
      say(failure.message, true);
      await pause(Math.min(8000, 1000 * turn));
      if (!root.isConnected) return clearTimeout(waiting);
    }
  }
  clearTimeout(waiting);
  say("");
  $("off").hidden = lab.hello.training;
  $("off").textContent = lab.hello.training ? "" : lab.hello.off;
  $("runs").hidden = false;
  emit("hello", lab.hello);
  emit("runs", mine.list());
  let shown = null;
  try { shown = localStorage.getItem(SHOWN); } catch { /* storage may be forbidden */ }
  choose(runOfLink() ?? ((shown ?? mine.list()[0]) || null));
}

begin();

// Following a run: who it is, what is new of it, and what is said when the server is away. `choose(id)` is the way in; null shows none.
let choose, lookNow;
(() => {
  const EVERY = 1000, HIDDEN = 5000, SLOWEST = 8000;
  let turn = 0, timer = 0, asking = false, offsets = { log: 0, film: 0 }, lost = 0;

  choose = (id) => {
    turn++;
    clearTimeout(timer);
    asking = false;
    lost = 0;
    offsets = { log: 0, film: 0 };
    const nothing = { follow: null, status: null, rows: [], frames: [], scene: null, plan: null, test: null, can: {},
      left: leftOut(), flatters: "", away: "" };
    Object.assign(lab, nothing, { id, index: -1 });
    try { localStorage.setItem(SHOWN, id ?? ""); } catch { /* then a refresh begins with the newest run */ }
    root.dataset.state = id ? "run" : "none";
    $("run").hidden = !id;
    $("setup").hidden = Boolean(id) || !lab.hello?.training;
    emit("run", id);
    if (id) poll();
  };

  lookNow = () => { if (lab.id && !asking) { clearTimeout(timer); poll(); } };

  async function poll() {
    const began = turn, id = lab.id;
    asking = true;
    let wait = null;
    try {
      const answer = await ask({ question: "follow", run: id, ...offsets });
      if (began !== turn) return;
      if (lost) say(WORDS.server_back);
      lost = 0;
      lab.away = "";
      take(answer);
      wait = lab.status.over ? null : document.hidden || !root.offsetParent ? HIDDEN : EVERY;
    } catch (failure) {
      if (began !== turn) return;
      wait = await missing(id, failure);
      if (began !== turn) return;
    }
    asking = false;
    if (wait !== null && root.isConnected) timer = setTimeout(poll, wait);
  }

  // Where the server knows the run no more, the page lets go of it; where it only does not answer, it is asked again, ever less often.
  async function missing(id, failure) {
    if (failure.answer) {
      const list = await ask({ question: "list", mine: [id] }).catch(() => null);
      if (lab.id !== id) return null;
      if (!list || list.gone?.includes(id)) { if (list) mine.remove(id); choose(null); say(failure.message, true); return null; }
    }
    lab.away = failure.answer ? failure.message : WORDS.server_asked_again;
    if (lost++ === 0) { say(lab.away, true); emit("away"); }
    return Math.min(SLOWEST, EVERY * 2 ** Math.min(lost, 3));
  }

  function take(answer) {
    const live = lab.index === lab.frames.length - 1;                    // whoever looks at an earlier frame stays there
    const rows = (answer.rows ?? []).filter((row) => typeof row.step === "number"), frames = answer.frames ?? [];
    const again = [join(lab.rows, rows), join(lab.frames, frames)].some(Boolean);
    offsets = { log: answer.log ?? offsets.log, film: answer.film ?? offsets.film };
    if (answer.scene) lab.scene = answer.scene;
    Object.assign(lab, {
      follow: answer, status: answer.status, plan: answer.plan ?? lab.plan, test: answer.test ?? lab.test, can: answer.can ?? {},
      left: answer.skipped ? leftOut(answer) : lab.left, flatters: answer.flatters ?? lab.flatters,
    });
    emit("status", lab.status);
    if (rows.length || frames.length || again) emit("news", { rows, frames, again });
    if (live || lab.index >= lab.frames.length) setIndex(lab.frames.length - 1);
  }

  // A run that was resumed goes back to where it was saved: what came after that is done again, and the old is dropped. Returns whether it was.
  function join(known, fresh) {
    let again = false;
    for (const one of fresh) {
      for (; known.length && known.at(-1).step >= one.step; again = true) known.pop();
      known.push(one);
    }
    return again;
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden && root.isConnected) lookNow(); });
  window.addEventListener("focus", () => { if (root.isConnected) lookNow(); });
  window.addEventListener("online", () => { if (root.isConnected) lookNow(); });
  let width = 0;
  // the tab is opened
  new ResizeObserver(([entry]) => { if (!width && entry.contentRect.width) lookNow(); width = entry.contentRect.width; }).observe(root);
})();

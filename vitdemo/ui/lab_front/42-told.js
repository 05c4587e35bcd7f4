// What the film shows in words, and the film as a file to take along.
(() => {
  const { parts } = film;
  const NINTHS = ["upper left", "upper middle", "upper right", "middle left", "centre", "middle right", "lower left",
    "lower middle", "lower right"];

  // How a map spreads over the patches: over how many (exp of its entropy), which ninth of the picture holds more than its part,
  // what stays off patches.
  function spread(vector) {
    const { rows, cols, prefix } = lab.scene, ninths = Array(9).fill(0), sizes = Array(9).fill(0), patches = vector.subarray(prefix),
      total = patches.reduce((a, b) => a + b, 0) || 1;
    let entropy = 0;
    patches.forEach((w, i) => {
      const p = w / total, at = 3 * Math.floor(3 * Math.floor(i / cols) / rows) + Math.floor(3 * (i % cols) / cols);
      if (p > 0) entropy -= p * Math.log(p);
      ninths[at] += p;
      sizes[at]++;
    });
    const dense = ninths.map((share, i) => sizes[i] ? share / sizes[i] : 0), best = dense.indexOf(Math.max(...dense));
    return { over: Math.exp(entropy), place: NINTHS[best], share: ninths[best], even: sizes[best] / patches.length,
      off: vector.subarray(0, prefix).reduce((a, b) => a + b, 0) };
  }

  // The share of its attention that a head moved elsewhere between two maps (total variation).
  const moved = (one, two) => one.reduce((sum, w, i) => sum + Math.abs(w - two[i]), 0) / 2;
  const over = ({ over: count }) => Math.max(1, Math.round(count)) + " of " + lab.scene.rows * lab.scene.cols + " patches";
  const most = (map) => map.share > 1.2 * map.even ? ", " + percent(map.share) + " of that in the " + map.place : "";

  film.brief = () => {
    const frame = film.frame(), maps = film.maps(frame), map = maps && spread(film.vector(maps));
    return (lab.index === 0 ? "Start" : "Step " + frame.step) + ": " + film.named(frame.subjects[film.subject]) +
      (map ? ". " + film.title() + " reads from about " + over(map) + most(map) : "") + ".";
  };

  const story = make("p", { class: "vl-story" }), more = make("div", { class: "vl-row" });
  const words = make("p", { class: "vl-hint", role: "status" });
  const save = ["webp", "gif"].map((kind) => make("button",
    { type: "button", class: "vl-button", text: "Save as " + (kind === "webp" ? "WebP" : "GIF"), onclick: () => take(kind) }));
  const keep = make("div", { class: "vl-row vl-export" }, ...save, make("span", { class: "vl-hint",
    text: "An animated picture of this film beside the loss, for slides: the picture, layer, head and speed that are chosen." }), words);
  parts.told.append(make("h4", { text: "What changed" }), story, more, keep);

  // Between the first and the last look: the answer, the spread of the chosen map, and which head moved most.
  film.tell = () => {
    const [first, last] = [lab.frames[0], lab.frames.at(-1)];
    parts.told.hidden = lab.frames.length < 2 || !film.abouts.length;
    if (parts.told.hidden) return;
    const name = lab.scene.subjects[film.subject].name, ends = [first, last].map((frame) => frame.subjects[film.subject]),
      by = lab.status?.over ? "at the end" : "now";
    const answers = lab.frames.map((frame) => frame.subjects[film.subject]).filter((seen) => !film.undecided(seen))
      .map((seen) => seen.top[0]?.[0]);
    const turns = answers.filter((answer, i) => i && answer !== answers[i - 1]).length;
    const said = (seen) => film.undecided(seen) ? "every class alike (" + percent(seen.top[0][1]) + ")" : film.named(seen);
    const sentences = ends[0].top.length ? [name + ": at the start " + said(ends[0]) + ", " + by + " " + said(ends[1]) +
      (turns ? "; it changed its answer " + (turns === 1 ? "once" : turns + " times") + " in between." : ".")] : [];
    const maps = [film.maps(first), film.maps(last)];
    more.replaceChildren();
    keep.hidden = !maps[0];
    if (maps[0] && maps[1]) {
      const vectors = maps.map((one) => film.vector(one)), [then, after] = vectors.map(spread);
      sentences.push(film.title() + ": " + lab.scene.reader + " read from about " + over(then) + most(then) + "; " + by + " from about " +
        over(after) + most(after) + ". " + percent(moved(...vectors)) + " of its attention went elsewhere.");
      const { layers, heads } = lab.scene,
        all = Array.from({ length: layers * heads }, (_, i) => ({ layer: Math.floor(i / heads), head: i % heads }));
      const best = all.map((one) => ({ ...one, share: moved(...maps.map((map) => film.vector(map, one.layer, one.head))) }))
        .sort((one, two) => two.share - one.share)[0];
      more.append(make("span", { text: "The head that moved most: " }), make("button", { type: "button", class: "vl-chip",
        text: "layer " + (best.layer + 1) + ", head " + (best.head + 1) + " (" + percent(best.share) + ")",
        onclick: () => film.change({ layer: best.layer, head: best.head }) }));
    }
    story.textContent = sentences.join(" ");
  };

  async function take(kind) {
    words.className = "vl-hint";
    words.textContent = "Drawing the film …";
    for (const button of save) button.disabled = true;
    try {
      const answer = await ask({ question: "export", run: lab.id, kind, subject: film.subject, layer: film.layer,
        head: film.head, seconds: film.pace() });
      words.textContent = "Saved as " + answer.name + " (" + Math.max(1, Math.round(saveData(answer) / 1000)) + " kB).";
    } catch (failure) {
      words.textContent = failure.message;
      words.className = "vl-trouble";
    }
    for (const button of save) button.disabled = false;
  }

  // A run that was recorded on another day, for the day the live one fails: always one click away.
  const recorded = make("div", { class: "vl-recorded vl-row", hidden: true },
    make("button", { type: "button", class: "vl-button", text: "Watch a recorded run", onclick: () => choose("recorded") }),
    make("span", { class: "vl-hint", text: "No training, no waiting: a run that was recorded earlier, with its film." }));
  $("run").after(recorded);
  const offer =
    () => { recorded.hidden = !lab.hello?.recorded || lab.id !== null && (lab.id === "recorded" || Boolean(lab.frames.length)); };
  for (const event of ["hello", "run", "news"]) on(event, offer);
  on("run", () => { words.textContent = ""; });
})();

// What the film shows in words, and the film as a file to take along.
(() => {
  const { parts } = film;

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
    return { over: Math.exp(entropy), ninth: WORDS.ninths[best], share: ninths[best], even: sizes[best] / patches.length,
      off: vector.subarray(0, prefix).reduce((a, b) => a + b, 0) };
  }

  // The share of its attention that a head moved elsewhere between two maps (total variation).
  const moved = (one, two) => one.reduce((sum, w, i) => sum + Math.abs(w - two[i]), 0) / 2;
  const patches = ({ over, share, even, ninth }) => phrase(share > 1.2 * even ? WORDS.about_patches_most : WORDS.about_patches,
    { n: Math.max(1, Math.round(over)), all: lab.scene.rows * lab.scene.cols, share: percent(share), ninth });

  film.brief = () => {
    const frame = film.frame(), maps = film.maps(frame), map = maps && spread(film.vector(maps));
    const look = lab.index === 0 ? WORDS.brief_start : phrase(WORDS.brief_step, { n: frame.step });
    const answer = [look, film.named(frame.subjects[film.subject])].filter(Boolean).join(": ") + ".";
    return map ? answer + " " + phrase(WORDS.brief_map, { title: film.title(), patches: patches(map) }) : answer;
  };

  const story = make("p", { class: "vl-story" }), more = make("div", { class: "vl-row" });
  const words = make("p", { class: "vl-hint", role: "status" });
  const save = [["webp", "WebP"], ["gif", "GIF"]].map(([kind, format]) => make("button",
    { type: "button", class: "vl-button", text: phrase(WORDS.save_as, { format }), onclick: () => take(kind) }));
  const keep = make("div", { class: "vl-row vl-export" }, ...save, make("span", { class: "vl-hint", text: WORDS.save_film_line }), words);
  parts.told.append(make("h4", { text: WORDS.what_changed }), story, more, keep);

  // Between the first and the last look: the answer, the spread of the chosen map, and which head moved most.
  film.tell = () => {
    const [first, last] = [lab.frames[0], lab.frames.at(-1)];
    parts.told.hidden = lab.frames.length < 2 || !film.abouts.length;
    if (parts.told.hidden) return;
    const name = lab.scene.subjects[film.subject].name, ends = [first, last].map((frame) => frame.subjects[film.subject]),
      by = lab.status?.over ? WORDS.by_end : WORDS.by_now;
    const answers = lab.frames.map((frame) => frame.subjects[film.subject]).filter((seen) => !film.undecided(seen))
      .map((seen) => seen.top[0]?.[0]);
    const turns = answers.filter((answer, i) => i && answer !== answers[i - 1]).length;
    const said = (seen) => film.undecided(seen) ? phrase(WORDS.every_class_alike, { share: percent(seen.top[0][1]) }) : film.named(seen);
    const sentences = ends[0].top.length ? [phrase(turns ? WORDS.answers_turned : WORDS.answers_kept, { name, by,
      then: said(ends[0]), after: said(ends[1]), times: turns === 1 ? WORDS.once : phrase(WORDS.n_times, { n: turns }) })] : [];
    const maps = [film.maps(first), film.maps(last)];
    more.replaceChildren();
    keep.hidden = !maps[0];
    if (maps[0] && maps[1]) {
      const vectors = maps.map((one) => film.vector(one)), [then, after] = vectors.map(spread);
      sentences.push(phrase(WORDS.map_moved, { title: film.title(), reader: lab.scene.reader, by, then: patches(then),
        after: patches(after), share: percent(moved(...vectors)) }));
      const { layers, heads } = lab.scene,
        all = Array.from({ length: layers * heads }, (_, i) => ({ layer: Math.floor(i / heads), head: i % heads }));
      const best = all.map((one) => ({ ...one, share: moved(...maps.map((map) => film.vector(map, one.layer, one.head))) }))
        .sort((one, two) => two.share - one.share)[0];
      more.append(make("span", { text: WORDS.moved_most }), make("button", { type: "button", class: "vl-chip",
        text: phrase(WORDS.layer_head_share, { layer: best.layer + 1, head: best.head + 1, share: percent(best.share) }),
        onclick: () => film.change({ layer: best.layer, head: best.head }) }));
    }
    story.textContent = sentences.join(" ");
  };

  async function take(kind) {
    words.className = "vl-hint";
    words.textContent = WORDS.drawing_film;
    for (const button of save) button.disabled = true;
    try {
      const answer = await ask({ question: "export", run: lab.id, kind, subject: film.subject, layer: film.layer,
        head: film.head, seconds: film.pace() });
      words.textContent = phrase(WORDS.saved_as, { name: answer.name,
        size: phrase(WORDS.kilobytes, { n: Math.max(1, Math.round(saveData(answer) / 1000)) }) });
    } catch (failure) {
      words.textContent = failure.message;
      words.className = "vl-trouble";
    }
    for (const button of save) button.disabled = false;
  }

  // A run that was recorded on another day, for the day the live one fails: always one click away.
  const recorded = make("div", { class: "vl-recorded vl-row", hidden: true },
    make("button", { type: "button", class: "vl-button", text: WORDS.watch_recorded, onclick: () => choose("recorded") }),
    make("span", { class: "vl-hint", text: WORDS.watch_recorded_line }));
  $("run").after(recorded);
  const offer =
    () => { recorded.hidden = !lab.hello?.recorded || lab.id !== null && (lab.id === "recorded" || Boolean(lab.frames.length)); };
  for (const event of ["hello", "run", "news"]) on(event, offer);
  on("run", () => { words.textContent = ""; });
})();

// What a class sees of a run on the projector, screen by screen; all of it stays live while the run trains.
(() => {
  const run = { name: WORDS.screen_run,
    say: () => [$("state").textContent || "…", lab.away || (["finished", "stopped"].includes(lab.status?.state) ? lab.flatters : $("sentence-now").textContent)],
    ...borrowed(() => [root.querySelector(".vl-figures"), root.querySelector(".vl-progress")], "vd-show-run") };

  // Screens that show nodes of the page itself, which go on being filled there.
  function borrowed(nodes, kind) {
    let lends = [];
    return {
      enter(stage) {
        const box = make("div", { class: kind });
        lends = nodes().map(lent);
        for (const one of lends) one.take(box);
        stage.append(box);
      },
      leave() { for (const one of lends) one.back(); lends = []; } };
  }

  // A curve over the minutes of training, with its last number in the title.
  function curve(name, title, field, say, plot) {
    const box = make("div", { class: "vd-show-chart" }), rows = () => lab.rows.filter((row) => typeof row[field] === "number");
    return { name, there: () => rows().length > 1, enter: (stage) => stage.append(box),
      say: () => [phrase(WORDS.what_value, { what: title, value: say(rows().at(-1)[field]) }), ""],
      draw() {
        const points = thin(rows().map((row) => [row.seconds / 60, row[field]])), { seconds, progress } = lab.rows.at(-1);
        // what is empty is still to come
        const end = Math.max(points.at(-1)[0], 0.1, lab.status?.over || !(progress > 0.01) ? 0 : seconds / progress / 60);
        box.replaceChildren(chart({ x: [0, end], xName: WORDS.minutes_of_training, yName: "", label: title, ...plot(points) }));
      } };
  }

  // Of very many points every so many-th, and the last.
  const thin = (points) => points.filter((_, i) => i % Math.ceil(points.length / 300) === 0 || i === points.length - 1);

  const right = curve(WORDS.screen_accuracy, WORDS.right_on_new, "accuracy", (share) => Math.round(100 * share) + "%", (points) => ({
    y: [0, 1], yText: whole, lines: [{ points, colour: 2, name: WORDS.share_right }],
    levels: lab.scene?.classes.length ? [{ y: 1 / lab.scene.classes.length, name: WORDS.guessing }] : [] }));

  const loss = curve(WORDS.screen_loss, WORDS.loss, "loss", (value) => value.toFixed(2), (points) => {
    const values = points.map(([, value]) => value), most = Math.max(...values);
    return { y: [0, most * 1.05], lines: [{ points, colour: 1, name: WORDS.track_loss }] };
  });

  const watched = { name: WORDS.screen_watched, there: () => Boolean(lab.scene?.watched.length && lab.frames.length),
    say: () => [root.querySelector(".vl-count")?.textContent.split(". ")[0] ?? "", ""],
    ...borrowed(() => [root.querySelector(".vl-watched")], "vd-show-watched") };

  const look = { layer: (step) => () => film.change({ layer: Math.max(0, Math.min(lab.scene.layers - 1, film.layer + step)) }), head: (step) => () => film.change({ head: film.nextHead(step) }) };
  const time = (step) => () => { film.pause(); setIndex(Math.max(0, lab.index + step)); };
  const playing = () => film.parts.time.querySelector(".vl-play").click();
  const FILM = { p: playing, "shift arrowleft": time(-1), "shift arrowright": time(1), m: () => film.change({ head: "mean" }), "[": look.head(-1), "]": look.head(1) };
  const shown = () => Boolean(film.frame() && film.about());
  const when = () => {
    const frame = film.frame(), answer = film.named(frame.subjects[film.subject]) || WORDS.no_classes;
    return phrase(frame.step === 0 ? WORDS.before_training : WORDS.after_training_for, { time: clock(frame.seconds), answer });
  };

  const one = { name: WORDS.screen_film, hint: WORDS.film_keys, there: shown, say: () => [when(), film.hasMaps() ? film.title() : ""],
    enter(stage) { this.canvas = make("canvas", { role: "img" }); stage.append(this.canvas); },
    draw(room) {
      const about = seenPart(film.about()), maps = film.maps(film.frame()), vector = maps && film.vector(maps);
      large(this.canvas, about, vector, vector ? film.scale(vector, film.layer) : 0, room, vector ? { ...SEEN_FAR, marks: frameOfMost(about, vector) } : {});
      this.canvas.setAttribute("aria-label", this.say().filter(Boolean).join(". "));
    },
    keys: { ...FILM, arrowup: look.layer(1), arrowdown: look.layer(-1) } };

  // All layers and heads at this look: the film's own wall, lent.
  const wall = (() => {
    const node = borrowed(() => [film.parts.wallBox.querySelector(".vl-wall-box")], "vd-show-wall");
    let box = null;
    return { name: WORDS.screen_wall, hint: WORDS.film_keys, there: () => shown() && film.hasMaps(),
      say: () => [when(), WORDS.wall_axes], leave: node.leave,
      enter(stage) {
        node.enter(stage);
        box = stage.firstChild;
        box.addEventListener("click", (event) => { if (event.target === film.parts.wall) screen.go(one.name); });
      },
      draw(room) { const { rows, cols, layers, heads } = lab.scene; fillRoom(box, room, (heads * (cols + 1) - 1) / (layers * (rows + 1) - 1), layers); },
      keys: { ...FILM, arrowup: look.layer(-1), arrowdown: look.layer(1) } };
  })();

  const missing = () => !lab.id ? WORDS.nothing_to_show : lab.status ? "" : WORDS.asking;
  const next = (step) => () => { if (shown()) film.change({ subject: (film.subject + step + lab.scene.subjects.length) % lab.scene.subjects.length }); };
  const digits = Object.fromEntries(Array.from("123456789", (digit) => [digit, () => { if (digit <= lab.scene?.heads) film.change({ head: digit - 1 }); }]));
  const screen = projector({ missing, screens: [run, right, loss, watched, one, wall], hint: WORDS.keys_next,
    keys: { n: next(1), "shift n": next(-1), ...digits } });

  const change = film.change;
  film.change = (changes) => { change(changes); screen.draw(); };
  for (const event of ["run", "status", "away", "news", "scrub", "look", "film"]) on(event, () => screen.draw());
})();

// How a race goes: first the vote, then curves and numbers of both sides, at the end what may be concluded.
const showRace = (() => {
  const EVERY = 2000, SIDES = ["a", "b"], LOOKS = { a: { colour: 1 }, b: { colour: 2, dash: "9 5" } };
  let stage, again, timer = 0, turn = 0, standing = null, by = "seconds", drawn = "";
  let title, told, bar, ballot, shown, charts, strip, verdict, ending, details, halt;

  const button = (text, act, kind = "vl-button") => make("button", { type: "button", class: kind, text, onclick: act });
  const named = (side) => phrase(WORDS.side_named, { side: side.toUpperCase(), what: race.now()[side] });

  function build() {
    title = make("h4", { class: "vl-race-title", tabindex: -1 });
    told = make("p", { role: "status" });
    bar = make("progress", { class: "vl-race-bar", max: 1, value: 0, "aria-label": WORDS.race_progress });
    ballot = make("div", { class: "vl-ballot" });
    charts = make("div", { class: "vl-two" });
    strip = make("div", {});
    verdict = make("h4", { class: "vl-judgement" });
    ending = make("p", {});
    details = make("details", {});
    shown = make("div", { class: "vl-lines" }, verdict, ending, strip,
      make("div", { class: "vl-row" }, layOut(WORDS.curves_by, (way) => { by = way; drawn = ""; look(); }),
        ...SIDES.map((side) => make("span", { class: "vl-key" }, swatch(LOOKS[side]), named(side)))),
      charts, details);
    halt = button(WORDS.stop_race, stop);
    const close = button(WORDS.another_race, () => { race.keep(null); turn++; clearTimeout(timer); openRace(); });
    const three = button(WORDS.same_three_seeds, () => { turn++; again({ seeds: 3 }); }, "vl-button vl-three");
    stage.replaceChildren(title, told, bar, ballot, shown, make("div", { class: "vl-row" }, halt, three, close));
    stage.three = three;
    stage.close = close;
    // a key votes only for who stands at the ballot: a letter pressed in haste cannot be taken back
    ballot.onkeydown = (event) => {
      const side = { a: "a", b: "b", n: "same" }[event.key.toLowerCase()];
      if (side && race.hidden() && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); vote(side); }
    };
  }

  function buildBallot() {
    const choice = (side, key, text) => make("button",
      { type: "button", class: "vl-vote", "data-side": side, "aria-keyshortcuts": key, onclick: () => vote(side) },
      make("b", { text: side === "same" ? WORDS.no_difference : phrase(WORDS.side, { side: side.toUpperCase() }) }), make("span", { text }),
      make("kbd", { text: key, "aria-hidden": "true" }));
    ballot.replaceChildren(
      make("p", { text: WORDS.vote_first }),
      make("div", { class: "vl-votes", role: "group", "aria-label": WORDS.your_vote }, choice("a", "a", race.now().a),
        choice("b", "b", race.now().b), choice("same", "n", WORDS.no_more_than_chance)),
      button(WORDS.show_unvoted, () => { race.keep({ ...race.now(), looked: true }); show(); }, "vl-button vl-quiet"));
  }

  function vote(side) {
    race.keep({ ...race.now(), vote: side });
    show();
    title.focus();
  }

  async function stop() {
    await doing(halt, async () => {
      for (const row of standing?.rows ?? race.now().runs) if (!isOver(row.state ?? "queued"))
        await ask({ question: "stop", run: row.run });
      look();
    });
  }

  async function look() {
    clearTimeout(timer);
    const mine_ = ++turn, now = race.now();
    if (!now) return;
    try {
      const answer = await ask({ question: "standing", runs: now.runs });
      const stamp = answer.rows.map((row) => [row.run, row.state, row.accuracy, row.progress].join()).join("|") + race.hidden() + by;
      const curves = race.hidden() || stamp === drawn ? null :
        (await ask({ question: "curves", runs: now.runs.map(({ run }) => run) })).runs;
      if (mine_ !== turn || race.now() !== now) return;
      const ended = standing && !standing.done && answer.done;
      standing = answer;
      if (curves) { drawn = stamp; drawCurves(curves); }
      show();
      if (ended) emit("runs", mine.list());
    } catch (failure) {
      if (mine_ !== turn) return;
      told.textContent = failure.message;
      // the server knows these runs no more; where it has only too much to do it is asked again
      if (failure.answer && !failure.answer.busy) { stage.close.hidden = false; halt.hidden = ballot.hidden = bar.hidden = true; return; }
    }
    if (!standing?.done && root.isConnected) timer = setTimeout(() => (root.offsetParent && !document.hidden ? look() : wait()), EVERY);
  }

  const wait = () => { timer = setTimeout(() => root.isConnected && (root.offsetParent && !document.hidden ? look() : wait()), EVERY); };

  function show() {
    const now = race.now(), hidden = race.hidden(), rows = standing?.rows ?? [], done = Boolean(standing?.done);
    title.textContent = now.question;
    bar.hidden = done;
    bar.value = rows.length ? rows.reduce((sum, row) => sum + (isOver(row.state) ? 1 : row.progress ?? 0), 0) / rows.length : 0;
    told.textContent = rows.length ? progressText(rows, done, now) : WORDS.race_asking;
    ballot.hidden = !hidden;
    if (hidden && !ballot.children.length) buildBallot();
    shown.hidden = hidden;
    halt.hidden = done;
    stage.three.hidden = !done || now.seeds !== 1 || !lab.hello.training;
    stage.close.hidden = !done;
    if (hidden) return;
    if (!drawn && rows.length) { drawn = "asked"; look(); }
    strip.replaceChildren(...(rows.some((row) => row.accuracy !== null && row.accuracy !== undefined) ? [drawStrip(rows, now)] : []));
    verdict.hidden = !done || !standing.verdict;
    if (standing?.verdict) {
      verdict.textContent = standing.verdict.sentence;
      verdict.dataset.kind = standing.verdict.winner ? "better" : "none";
    }
    ending.textContent = now.vote ? phrase(done && standing.verdict ? judged(now.vote, standing.verdict.winner, now.seeds) : WORDS.voted,
      { vote: now.vote === "same" ? WORDS.voted_none : named(now.vote) }) : WORDS.looked_unvoted;
    drawDetails(rows);
  }

  function judged(vote, winner, seeds) {
    if (!winner) return vote === "same" ? WORDS.voted_for_chance : seeds === 1 ? WORDS.voted_one_run : WORDS.voted_cannot_tell;
    return vote === winner ? WORDS.voted_rightly : WORDS.voted_wrongly;
  }

  const timeLeft = (seconds) => seconds < 50 ? WORDS.minute_left : phrase(WORDS.minutes_left, { n: Math.round(seconds / 60) });

  function progressText(rows, done, now) {
    const over = rows.filter((row) => isOver(row.state)).length,
      going = rows.filter((row) => row.state === "running" || row.state === "starting");
    const [both, all] = race.hidden() ? [WORDS.both_over_vote, WORDS.all_over_vote] : [WORDS.both_over, WORDS.all_over];
    if (done) return phrase(rows.length === 2 ? both : all, { n: rows.length });
    const whose = going.map(({ side, seed }) => phrase(now.seeds > 1 ? WORDS.side_seed : WORDS.side_alone,
      { side: side.toUpperCase(), seed }));
    const line = whose.length ? phrase(WORDS.race_going, { over, all: rows.length,
      going: whose.reduce((list, last) => phrase(WORDS.list_and, { list, last })) }) : phrase(WORDS.race_next, { over, all: rows.length });
    // how long others take that stand before it nobody knows
    return now.seconds && going.length ? line + " " + timeLeft(now.seconds * (1 - bar.value)) : line;
  }

  function drawCurves(curves) {
    const now = race.now(), first = new Set();
    const lines = now.runs.filter(({ run }) => curves[run]).map(({ run, side }) => {
      const name = first.has(side) ? "" : side.toUpperCase();                // named once; the key beside the switch says the rest
      first.add(side);
      return { ...curves[run], style: LOOKS[side], name };
    });
    charts.replaceChildren(...twoCharts(lines, by));
  }

  // Every run as a mark on the axis of accuracy, with its standard error as whiskers; the mean of a side as a longer stroke.
  function drawStrip(rows, now) {
    const known = rows.filter((row) => typeof row.accuracy === "number"),
      error = (row) => row.standard_error ?? (row.n ? Math.sqrt(row.accuracy * (1 - row.accuracy) / row.n) : 0);
    const low = Math.max(0, Math.min(...known.map((row) => row.accuracy - Math.max(0.02, 2.5 * error(row))))),
      high = Math.min(1, Math.max(...known.map((row) => row.accuracy + Math.max(0.02, 2.5 * error(row)))));
    const narrow = root.clientWidth < 600, wide = narrow ? 360 : 760, left = narrow ? 30 : 220, right = 20,
      px = (share) => left + (wide - left - right) * (share - low) / (high - low || 1);
    const plot = svg("svg", { viewBox: "0 0 " + wide + " 128", class: "vd-chart vl-strip", role: "img",
      "aria-label": SIDES.map((side) => phrase(WORDS.what_value,
        { what: phrase(WORDS.side, { side: side.toUpperCase() }), value: numbers(side, known) })).join(". ") });
    for (const t of ticks(low, high, narrow ? 4 : 6)) plot.append(svg("line", { x1: px(t), x2: px(t), y1: 4, y2: 100, class: "vd-rule" }),
      svg("text", { x: px(t), y: 118, "text-anchor": "middle", text: +(100 * t).toFixed(1) + "%" }));
    SIDES.forEach((side, i) => {
      const middle = 30 + 44 * i, own = known.filter((row) => row.side === side), stroke = "vd-line-" + LOOKS[side].colour,
        fill = "vl-fill-" + LOOKS[side].colour;
      plot.append(svg("text", { x: 0, y: middle + 4, class: "vd-name-" + LOOKS[side].colour, "font-weight": 700,
        text: narrow ? side.toUpperCase() : named(side) }));
      for (const [k, row] of own.entries()) {
        const y = middle + 9 * (k - (own.length - 1) / 2), x = px(row.accuracy), reach = px(row.accuracy + error(row)) - x;
        plot.append(svg("line", { x1: x - reach, x2: x + reach, y1: y, y2: y, class: stroke + " vl-whisker" }),
          side === "a" ? svg("circle", { cx: x, cy: y, r: 6, class: fill }) :
          svg("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, class: fill }));
      }
      if (own.length > 1) {
        const x = px(own.reduce((sum, row) => sum + row.accuracy, 0) / own.length);
        plot.append(svg("line", { x1: x, x2: x, y1: middle - 19, y2: middle + 19, class: stroke + " vl-mean" }));
      }
    });
    return make("div", {}, plot, make("p", { class: "vl-hint" }, ...SIDES.flatMap((side) =>
      [make("b", { text: named(side) + ": " }), numbers(side, known) + (side === "a" ? "; " : ". ")]),
      now.seeds > 1 ? WORDS.whiskers_and_means : WORDS.whiskers));
  }

  function numbers(side, known) {
    const own = known.filter((row) => row.side === side).map((row) => row.accuracy);
    if (own.length < 2) return own.length ? exactly(own[0]) : WORDS.nothing_yet;
    const mean = own.reduce((sum, share) => sum + share, 0) / own.length;
    return phrase(WORDS.mean_of, { mean: exactly(mean), all: own.map(exactly).join(", ") });
  }

  function drawDetails(rows) {
    const open = details.open;
    const now = race.now(), many = now.seeds > 1;                          // a single seed needs no column
    const line = (row) => make("tr", {}, make("td", { text: named(row.side) }),
      ...(many ? [make("td", { class: "vl-number", text: row.seed })] : []), make("td", { text: WORDS.states[row.state] ?? row.state }),
      make("td", { class: "vl-number", text: typeof row.accuracy === "number" ? exactly(row.accuracy) : "" }),
      make("td", {}, make("button", { type: "button", class: "vl-button", text: WORDS.watch,
        "aria-label": phrase(WORDS.watch_side, { side: row.side.toUpperCase(), seed: row.seed }), onclick: () => watchRun(row.run) })));
    const stamp = JSON.stringify(rows.map((row) => [row.run, row.state, row.accuracy]));
    if (details.dataset.stamp === stamp) return;                          // a button must not vanish under a finger
    details.dataset.stamp = stamp;
    const top = ["side", ...(many ? ["seed"] : []), "state", "accuracy"].map((name) =>
      make("th", { scope: "col", text: WORDS.race_columns[name], class: ["seed", "accuracy"].includes(name) ? "vl-number" : null }));
    details.replaceChildren(make("summary", { text: WORDS.every_run }),
      make("div", { class: "vl-scroll" },
        make("table", {}, make("thead", {}, make("tr", {}, ...top, make("td", {}))), make("tbody", {}, ...rows.map(line)))));
    details.open = open;
  }

  onNarrow(() => { if (stage && race.now()) { drawn = ""; look(); } });
  document.addEventListener("visibilitychange",
    () => { if (!document.hidden && root.isConnected && race.now() && stage && !standing?.done) look(); });

  return (box, options) => {
    stage = box;
    again = options.again;
    standing = null;
    drawn = "";
    by = "seconds";
    build();
    show();
    if (options.focus) { title.scrollIntoView({ block: "nearest" }); title.focus(); }
    look();
  };
})();

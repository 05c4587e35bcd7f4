// How a race goes: first the vote, then curves and numbers of both sides, at the end what may be concluded.
const showRace = (() => {
  const EVERY = 2000, SIDES = ["a", "b"], LOOKS = { a: { colour: 1 }, b: { colour: 2, dash: "9 5" } };
  let stage, again, timer = 0, turn = 0, standing = null, by = "seconds", drawn = "";
  let title, told, bar, ballot, shown, charts, strip, verdict, ending, details, halt;

  const button = (text, act, kind = "vl-button") => make("button", { type: "button", class: kind, text, onclick: act });
  const named = (side) => side === "same" ? "no difference" : side.toUpperCase() + ", " + race.now()[side];

  function build() {
    title = make("h4", { class: "vl-race-title", tabindex: -1 });
    told = make("p", { role: "status" });
    bar = make("progress", { class: "vl-race-bar", max: 1, value: 0, "aria-label": "progress of the race" });
    ballot = make("div", { class: "vl-ballot" });
    charts = make("div", { class: "vl-two" });
    strip = make("div", {});
    verdict = make("h4", { class: "vl-judgement" });
    ending = make("p", {});
    details = make("details", {});
    shown = make("div", { class: "vl-lines" }, verdict, ending, strip,
      make("div", { class: "vl-row" }, layOut("Curves by", (way) => { by = way; drawn = ""; look(); }),
        ...SIDES.map((side) => make("span", { class: "vl-key" }, swatch(LOOKS[side]), side.toUpperCase() + ", " + race.now()[side]))),
      charts, details);
    halt = button("Stop the race", stop);
    const close = button("Another race", () => { race.keep(null); turn++; clearTimeout(timer); openRace(); });
    const three = button("The same over three seeds", () => { turn++; again({ seeds: 3 }); }, "vl-button vl-three");
    stage.replaceChildren(title, told, bar, ballot, shown, make("div", { class: "vl-row" }, halt, three, close));
    stage.three = three;
    stage.close = close;
    stage.onkeydown = (event) => {
      const side = { a: "a", b: "b", n: "same" }[event.key.toLowerCase()];
      if (side && race.hidden() && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); vote(side); }
    };
  }

  function buildBallot() {
    const choice = (side, key, text) => make("button",
      { type: "button", class: "vl-vote", "data-side": side, "aria-keyshortcuts": key, onclick: () => vote(side) },
      make("b", { text: side === "same" ? "No difference" : "Side " + side.toUpperCase() }), make("span", { text }),
      make("kbd", { text: key, "aria-hidden": "true" }));
    ballot.replaceChildren(
      make("p", { text: "Which one will know more pictures it has never seen? Vote before you look: until then curves and numbers " +
        "stay hidden." }),
      make("div", { class: "vl-votes", role: "group", "aria-label": "Your vote" }, choice("a", "a", race.now().a),
        choice("b", "b", race.now().b), choice("same", "n", "not more than chance")),
      button("Show without voting", () => { race.keep({ ...race.now(), looked: true }); show(); }, "vl-button vl-quiet"));
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
      // the server knows these runs no more
      if (failure.answer) { stage.close.hidden = false; halt.hidden = ballot.hidden = bar.hidden = true; return; }
    }
    if (!standing?.done && root.isConnected) timer = setTimeout(() => (root.offsetParent && !document.hidden ? look() : wait()), EVERY);
  }

  const wait = () => { timer = setTimeout(() => root.isConnected && (root.offsetParent && !document.hidden ? look() : wait()), EVERY); };

  function show() {
    const now = race.now(), hidden = race.hidden(), rows = standing?.rows ?? [], done = Boolean(standing?.done);
    title.textContent = now.question;
    bar.hidden = done;
    bar.value = rows.length ? rows.reduce((sum, row) => sum + (isOver(row.state) ? 1 : row.progress ?? 0), 0) / rows.length : 0;
    told.textContent = rows.length ? progressText(rows, done, now) : "Asking how it stands …";
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
    ending.textContent = now.vote ? "You voted for " + named(now.vote) +
      (done && standing.verdict ? ": " + judged(now.vote, standing.verdict.winner, now.seeds) : ".") : "You looked without voting.";
    drawDetails(rows);
  }

  function judged(vote, winner, seeds) {
    if (!winner) return vote === "same" ? "and no difference beyond chance was found." : seeds === 1 ? "one run each cannot tell." :
      "these runs cannot tell the two apart.";
    return vote === winner ? "and that is what came out." : "it came out the other way.";
  }

  const minutesLeft = (seconds) => seconds < 50 ? "less than a minute" : counted(Math.round(seconds / 60), "minute");

  function progressText(rows, done, now) {
    const over = rows.filter((row) => isOver(row.state)).length,
      going = rows.filter((row) => row.state === "running" || row.state === "starting");
    if (done) return (rows.length === 2 ? "Both" : "All " + rows.length) + " runs are over" +
      (race.hidden() ? ": now vote, then look." : ".");
    const whose = going.map((row) => "side " + row.side.toUpperCase() + (now.seeds > 1 ? ", seed " + row.seed : "")).join(" and ");
    return over + " of " + rows.length + " runs done" + (whose ? "; now training: " + whose : "; the next one waits for its turn") + "." +
      (now.seconds ? " About " + minutesLeft(now.seconds * (1 - bar.value)) + " left." : "");
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
      "aria-label": SIDES.map((side) => "Side " + side.toUpperCase() + ": " + numbers(side, known)).join(". ") });
    for (const t of ticks(low, high, narrow ? 4 : 6)) plot.append(svg("line", { x1: px(t), x2: px(t), y1: 4, y2: 100, class: "vd-rule" }),
      svg("text", { x: px(t), y: 118, "text-anchor": "middle", text: +(100 * t).toFixed(1) + "%" }));
    SIDES.forEach((side, i) => {
      const middle = 30 + 44 * i, own = known.filter((row) => row.side === side), stroke = "vd-line-" + LOOKS[side].colour,
        fill = "vl-fill-" + LOOKS[side].colour;
      plot.append(svg("text", { x: 0, y: middle + 4, class: "vd-name-" + LOOKS[side].colour, "font-weight": 700,
        text: narrow ? side.toUpperCase() : side.toUpperCase() + ", " + now[side] }));
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
      [make("b", { text: side.toUpperCase() + ", " + now[side] + ": " }), numbers(side, known) + (side === "a" ? "; " : ". ")]),
      "Validation pictures; whiskers are one standard error" + (now.seeds > 1 ? ", long strokes the means." : ".")));
  }

  function numbers(side, known) {
    const own = known.filter((row) => row.side === side).map((row) => row.accuracy);
    return own.length ? (own.length > 1 ? exactly(own.reduce((sum, share) => sum + share, 0) / own.length) + " on average (" +
      own.map(exactly).join(", ") + ")" : exactly(own[0])) : "nothing yet";
  }

  function drawDetails(rows) {
    const open = details.open;
    const now = race.now(), many = now.seeds > 1;                          // a single seed needs no column
    const line = (row) => make("tr", {}, make("td", { text: row.side.toUpperCase() + ", " + now[row.side] }),
      ...(many ? [make("td", { class: "vl-number", text: row.seed })] : []), make("td", { text: STATE_NAMES[row.state] ?? row.state }),
      make("td", { class: "vl-number", text: typeof row.accuracy === "number" ? exactly(row.accuracy) : "" }),
      make("td", {}, make("button", { type: "button", class: "vl-button", text: "Watch",
        "aria-label": "Watch side " + row.side.toUpperCase() + ", seed " + row.seed, onclick: () => watchRun(row.run) })));
    const stamp = JSON.stringify(rows.map((row) => [row.run, row.state, row.accuracy]));
    if (details.dataset.stamp === stamp) return;                          // a button must not vanish under a finger
    details.dataset.stamp = stamp;
    const top = ["side", ...(many ? ["seed"] : []), "state", "accuracy"].map((text) =>
      make("th", { scope: "col", text, class: ["seed", "accuracy"].includes(text) ? "vl-number" : null }));
    details.replaceChildren(make("summary", { text: "Every run of the race" }),
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

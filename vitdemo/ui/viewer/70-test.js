// Believe it or test it: hide what the map calls important and watch the class probability. `tested` is what else shows the last test:
// now() gives it where it is of the picture on show, curve(it) its chart, say(it) its words, progress() how far the next one is.
let tested;
(() => {
  const HIDE = ["mean", "blur", "drop"], WAYS = ["out", "in"];             // by what patches are hidden; whether they go or come
  const way = ({ insertion: adding }) => adding ? "in" : "out";
  const digits = (area) => area >= 0.0995 ? area.toFixed(3) : area.toPrecision(3);
  let how, insertion, klass, ways, which, run, rank, stop, progress, live, out, current = 0, last = null, shownFor = "";

  // What of a view a kind's map depends on; two views with the same of that name one map.
  const MATTERS = { attention: ["layer", "head", "token", "direction"], "mean attention": [], rollout: ["up_to", "fusion", "discard"], relevance: ["klass"], occlusion: ["klass"] };
  const sameMap = (one, two) => one.kind === two.kind && (MATTERS[one.kind] ?? Object.keys(one)).every((name) => JSON.stringify(one[name]) === JSON.stringify(two[name]));

  const setting = () => ({ klass: Number(klass.value), how: how.value, insertion: insertion.value === "in" });

  function build(sheet) {
    how = make("select", {}, ...HIDE.map((value) => make("option", { value, text: WORDS.hide_by[value] })));
    insertion = make("select", {}, ...WAYS.map((value) => make("option", { value, text: WORDS.ways[value] })));
    klass = make("select", {});
    which = make("p", {});
    run = make("button", { type: "button", class: "vd-primary", text: WORDS.test_run, onclick: () => start("test") });
    rank = make("button", { type: "button", class: "vd-button", text: WORDS.test_rank, onclick: () => start("rank") });
    stop = make("button", { type: "button", class: "vd-button", text: WORDS.cancel, hidden: true, onclick: () => { current++; finish(WORDS.test_cancelled); } });
    progress = make("p");
    live = make("p", { class: "vd-unseen", role: "status" });
    out = make("div", { class: "vd-lines" });
    const label = (text, control) => make("label", { class: "vd-line" }, make("span", { text }), control);
    ways = make("div", { class: "vd-row vd-ways" }, label(WORDS.hidden_by, how), label(WORDS.way, insertion), label(WORDS.class, klass));
    sheet.append(which, make("div", { class: "vd-row" }, run, rank, stop), progress, live, out, ways,
      make("details", {}, make("summary", { text: WORDS.test_about }), make("p", { class: "vd-hint", text: WORDS.test_about_more })));
  }

  async function start(question) {
    const about = result, mine = ++current, request = { question, ...setting(), ...(question === "test" ? { view: wish() } : {}) };
    const title = question === "test" ? mapTitle() : "";
    out.replaceChildren();
    out.classList.remove("vd-stale");
    which.textContent = phrase(WORDS.test_map, { title: mapTitle() });
    for (const button of [run, rank]) button.disabled = true;
    stop.hidden = false;
    progress.className = "";
    progress.textContent = WORDS.test_hiding;
    hear(live, progress.textContent);
    try {
      for (;;) {
        const answer = await askAgain(about, request);
        if (mine !== current || about !== result) return;
        if (answer.done >= answer.total && (answer.shares || answer.rows)) {
          finish("");
          last = { question, request, answer, title, about };
          if (question === "test") drawTest(last); else drawRank(last);
          projected.draw();
          hear(live, question === "test" ? capital(answer.sentence) : WORDS.ranking_below);
          const { top, bottom } = out.getBoundingClientRect();
          if (!projected.open && (bottom > window.innerHeight || top < 0)) which.scrollIntoView({ block: "start", behavior: gently() });
          return;
        }
        progress.textContent = phrase(answer.busy ? WORDS.test_progress_queue : WORDS.test_progress, { share: whole(answer.done / answer.total), done: answer.done, total: answer.total });
        projected.draw();
        if (answer.busy) await new Promise((go) => setTimeout(go, 1000));
      }
    } catch (failure) {
      if (mine === current) finish(failure.message, true);
    }
  }

  // Without classes there is no probability to watch, and features do not say what matters.
  function allow() {
    const features = FEATURES.includes(view.kind);
    run.hidden = rank.hidden = ways.hidden = which.hidden = !result?.known;
    run.disabled = features;
    rank.disabled = false;
    if (features) which.textContent = WORDS.test_features;
  }

  function finish(text, trouble = false) {
    allow();
    stop.hidden = true;
    progress.textContent = text;
    if (text) hear(live, text);
    projected.draw();
    progress.className = trouble ? "vd-trouble" : "";
  }

  const mapTitle = () => titleOf(result) + (view.kind === "attention" ? ", " + aboutToken(result, view.token, view.direction) : "");

  function curve({ answer, request, about }, cursor = null) {
    const { shares } = answer, points = (ys) => ys.map((y, i) => [shares[i], y]);
    return chart({
      x: [0, 1], y: [0, 1], xName: WORDS.share_of_patches[way(request)], yName: phrase(WORDS.probability_of, { klass: className(about, request.klass) }), xText: whole, yText: whole, cursor,
      label: answer.sentence, band: { xs: shares, low: answer.random_low, high: answer.random_high }, levels: [{ y: 1 / about.known, name: phrase(WORDS.even_share, { n: about.known }) }],
      lines: [{ points: points(answer.random_mean), colour: 3, dash: "2 4", name: WORDS.curve_random }, { points: points(answer.reversed), colour: 2, dash: "8 4", name: WORDS.curve_reversed },
        { points: points(answer.map), colour: 1, name: WORDS.curve_map }],
    });
  }

  function drawTest({ answer, request, title, about }) {
    const { shares } = answer, klass = className(about, request.klass);
    const preview = make("canvas", { class: "vd-hidden-view", role: "img" });
    const slider = make("input", { type: "range", min: 0, max: shares.length - 1, step: 1, value: Math.min(shares.length - 1, 4), "aria-label": WORDS.share_of_patches[way(request)] });
    const told = make("p", { class: "vd-hint" }), box = make("div", {});
    const step = () => {
      const at = Number(slider.value), order = answer.order ?? [];
      box.replaceChildren(curve({ answer, request, about }, shares[at]));
      const n = Math.round(shares[at] * about.patches), all = about.patches, chosen = new Set(order.slice(0, n));
      preview.hidden = !order.length;
      if (order.length) { paint(preview, about, null, 0, 200); veil(preview, about, (patch) => chosen.has(patch) !== request.insertion); }
      slider.setAttribute("aria-valuetext", percent(shares[at]));
      preview.setAttribute("aria-label", phrase(WORDS.picture_holes[way(request)], { n, all }));
      told.textContent = phrase(WORDS.test_step[way(request)], { n, all, klass, map: percent(answer.map[at]), random: percent(answer.random_mean[at]), reversed: percent(answer.reversed[at]) });
    };
    slider.addEventListener("input", step);
    const [mean, low, high] = answer.area_random.map(digits), area = digits(answer.area), reversed = digits(answer.area_reversed);
    out.replaceChildren(make("h4", { class: "vd-judgement", "data-kind": answer.kind, text: capital(answer.sentence) }), make("p", { class: "vd-hint", text: phrase(WORDS.test_of, { title, klass, how: WORDS.hide_by[request.how] }) }),
      make("div", { class: "vd-test-row" }, box, make("div", { class: "vd-lines" }, preview, slider, told)),
      make("p", { text: phrase(WORDS.test_area[way(request)], { area, mean, low, high, reversed }) }));
    step();
  }

  // Greys patches of a drawn picture.
  function veil(canvas, about, covered) {
    const ctx = canvas.getContext("2d"), [top, left, bottom, right] = edges(about, canvas.height / about.height);
    ctx.fillStyle = "rgb(128,128,128)";
    for (let patch = 0; patch < about.patches; patch++) if (covered(patch)) {
      const r = Math.floor(patch / about.cols), c = patch % about.cols, y = top + (bottom - top) * r / about.rows, x = left + (right - left) * c / about.cols;
      ctx.fillRect(x, y, (right - left) / about.cols + 0.5, (bottom - top) / about.rows + 0.5);
    }
  }

  function drawRank({ answer, request, about }) {
    const [mean, low, high] = answer.random.map(digits), klass = className(about, request.klass), how = WORDS.hide_by[request.how];
    const rows = answer.rows.map((row, i) => make("tr", {}, make("td", { text: i + 1 }), make("td", {}, KINDS.includes(row.view.kind) ? make("button", { type: "button", class: "vd-chip", text: row.name, onclick: () => change(row.view) }) : row.name),
      make("td", { text: digits(row.area) }), make("td", { text: capital(WORDS.verdicts[row.kind]) })));
    out.replaceChildren(make("h4", { text: phrase(WORDS.rank_title, { klass }) }),
      make("div", { class: "vd-scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["", ...WORDS.rank_columns].map((text) => make("th", { scope: "col", text })))), make("tbody", {}, ...rows))),
      make("p", { class: "vd-hint", text: phrase(WORDS.rank_random[way(request)], { mean, low, high, how }) }));
  }

  tested = { now: () => last?.about === result && last.question === "test" && stop.hidden && sameMap(last.request.view, wish()) ? last : null, progress: () => progress?.textContent ?? "", curve,
    say: ({ answer, title }) => [phrase(WORDS.test_verdict, { verdict: WORDS.verdicts[answer.kind] }),
      phrase(WORDS.test_verdict_area, { title, area: digits(answer.area), low: digits(answer.area_random[1]), high: digits(answer.area_random[2]) })] };

  panel({
    key: "test", place: 1, live: true, title: WORDS.test_title, line: WORDS.test_line, build,
    update() {
      const stale = last && last.about === result && last.question === "test" && !sameMap(last.request.view, wish());
      out.classList.toggle("vd-stale", Boolean(stale));
      which.textContent = phrase(stale ? WORDS.test_map_other : WORDS.test_map, { title: mapTitle() });
      if (BY_CLASS.includes(view.kind) && shownFor === result.key && [...klass.options].some((option) => option.value === String(view.klass))) klass.value = view.klass;
      if (shownFor !== result.key) {
        shownFor = result.key;
        current++;
        finish(result.known ? "" : WORDS.test_no_classes);
        out.replaceChildren();
        klass.replaceChildren(...[...parts.klass.options].map((option) => make("option", { value: option.value, text: option.textContent })));
        if (BY_CLASS.includes(view.kind)) klass.value = view.klass;
      }
      if (stop.hidden) allow();
    },
    act() { if (result.known) start("test"); },
  });
})();

// Believe it or test it: hide what the map calls important and watch the class probability. `tested` is what else shows the last test:
// now() gives it where it is of the picture on show, curve(it) its chart, say(it) its words, progress() how far the next one is.
let tested;
(() => {
  const HIDE = { mean: "the picture's mean colour", blur: "a strong blur", drop: "dropping the tokens" };
  const VERDICTS = { better: "better than chance", chance: "no better than chance", worse: "worse than chance" };
  const digits = (area) => area >= 0.0995 ? area.toFixed(3) : area.toPrecision(3);
  let how, insertion, klass, ways, which, run, rank, stop, progress, live, out, current = 0, last = null, shownFor = "";

  const setting = () => ({ klass: Number(klass.value), how: how.value, insertion: insertion.value === "in" });

  function build(sheet) {
    how = make("select", {}, ...Object.entries(HIDE).map(([value, text]) => make("option", { value, text })));
    insertion = make("select", {}, make("option", { value: "out", text: "deletion: hide more and more" }), make("option", { value: "in", text: "insertion: show more and more" }));
    klass = make("select", {});
    which = make("p", {});
    run = make("button", { type: "button", class: "vd-primary", text: "Test the map that is shown", onclick: () => start("test") });
    rank = make("button", { type: "button", class: "vd-button", text: "Rank five kinds of maps", onclick: () => start("rank") });
    stop = make("button", { type: "button", class: "vd-button", text: "Cancel", hidden: true, onclick: () => { current++; finish("Cancelled: what was computed is kept, so that it goes on from there."); } });
    progress = make("p");
    live = make("p", { class: "vd-unseen", role: "status" });
    out = make("div", { class: "vd-lines" });
    const label = (text, control) => make("label", { class: "vd-line" }, make("span", { text }), control);
    ways = make("div", { class: "vd-row vd-ways" }, label("Hidden by", how), label("Way", insertion), label("Class", klass));
    sheet.append(which, make("div", { class: "vd-row" }, run, rank, stop), progress, live, out, ways,
      make("details", {}, make("summary", { text: "What this does, and when it misleads" }), make("p", { class: "vd-hint", text:
        "Patches are hidden in the order of the map, in up to 16 steps, and the model answers each time (deletion and insertion: Petsiuk, Das and Saenko 2018, RISE). Twenty random orders say what chance would do: " +
        "only a map whose area lies outside their 5 to 95 % range says more than chance. It misleads because a picture with holes is unlike anything the model was trained on; compare the ways of hiding. One picture is one picture." })));
  }

  async function start(question) {
    const about = result, mine = ++current, request = { question, ...setting(), ...(question === "test" ? { view: wish() } : {}) };
    const title = question === "test" ? mapTitle() : "";
    out.replaceChildren();
    out.classList.remove("vd-stale");
    which.textContent = "Map: " + mapTitle() + ".";
    for (const button of [run, rank]) button.disabled = true;
    stop.hidden = false;
    progress.className = "";
    progress.textContent = "Hiding patches …";
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
          hear(live, question === "test" ? capital(answer.sentence) : "The ranking is below.");
          const { top, bottom } = out.getBoundingClientRect();
          if (!projected.open && (bottom > window.innerHeight || top < 0)) which.scrollIntoView({ block: "start", behavior: gently() });
          return;
        }
        progress.textContent = Math.round(100 * answer.done / answer.total) + "%: " + answer.done + " of " + answer.total + " pictures with holes …" + (answer.busy ? " Others are before you." : "");
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
    if (features) which.textContent = "Similarity, colours and norms tell what the model makes of the patches, not which of them its answer depends on: choose another kind of map to test it.";
  }

  function finish(text, trouble = false) {
    allow();
    stop.hidden = true;
    progress.textContent = text;
    if (text) hear(live, text);
    projected.draw();
    progress.className = trouble ? "vd-trouble" : "";
  }

  const mapTitle = () => titleOf(result) + (view.kind === "attention" ? ", " + (view.direction === "reads" ? "what " + result.tokenName(view.token) + " reads" : "who reads " + result.tokenName(view.token)) : "");

  function curve({ answer, request, about }, cursor = null) {
    const { shares } = answer, points = (ys) => ys.map((y, i) => [shares[i], y]);
    return chart({
      x: [0, 1], y: [0, 1], xName: "share of patches " + (request.insertion ? "shown" : "hidden"), yName: "probability of " + className(about, request.klass), xText: whole, yText: whole, cursor,
      label: answer.sentence, band: { xs: shares, low: answer.random_low, high: answer.random_high }, levels: [{ y: 1 / about.known, name: "even share 1/" + about.known }],
      lines: [{ points: points(answer.random_mean), colour: 3, dash: "2 4", name: "random (mean, 5–95%)" }, { points: points(answer.reversed), colour: 2, dash: "8 4", name: "least important first" },
        { points: points(answer.map), colour: 1, name: "this map first" }],
    });
  }

  function drawTest({ answer, request, title, about }) {
    const { shares, insertion: adding } = { shares: answer.shares, insertion: request.insertion };
    const name = className(about, request.klass);
    const preview = make("canvas", { class: "vd-hidden-view", role: "img", "aria-label": "the picture with the first patches hidden" });
    const slider = make("input", { type: "range", min: 0, max: shares.length - 1, step: 1, value: Math.min(shares.length - 1, 4), "aria-label": "share of patches " + (adding ? "shown" : "hidden") });
    const told = make("p", { class: "vd-hint" }), box = make("div", {});
    const step = () => {
      const at = Number(slider.value), order = answer.order ?? [];
      box.replaceChildren(curve({ answer, request, about }, shares[at]));
      const count = Math.round(shares[at] * about.patches), chosen = new Set(order.slice(0, count));
      preview.hidden = !order.length;
      if (order.length) { paint(preview, about, null, 0, 200); veil(preview, about, (patch) => chosen.has(patch) !== adding); }
      slider.setAttribute("aria-valuetext", percent(shares[at]));
      preview.setAttribute("aria-label", "the picture with " + count + " of " + about.patches + " patches " + (adding ? "shown" : "hidden"));
      told.textContent = count + " of " + about.patches + " patches " + (adding ? "shown" : "hidden") + ": " + name + " " + percent(answer.map[at]) + " in the order of the map, " + percent(answer.random_mean[at]) + " in random order, " + percent(answer.reversed[at]) + " the least important first.";
    };
    slider.addEventListener("input", step);
    const [mean, low, high] = answer.area_random;
    out.replaceChildren(make("h4", { class: "vd-judgement", "data-kind": answer.kind, text: capital(answer.sentence) }), make("p", { class: "vd-hint", text: title + ", for " + name + "; hidden by " + HIDE[request.how] + "." }),
      make("div", { class: "vd-test-row" }, box, make("div", { class: "vd-lines" }, preview, slider, told)),
      make("p", { text: "Area under the curve: this map " + digits(answer.area) + "; random orders " + digits(mean) + " (5 to 95 %: " + digits(low) + " to " + digits(high) + "); least important first " + digits(answer.area_reversed) + ". " + (adding ? "Higher is better." : "Lower is better.") }));
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
    const [mean, low, high] = answer.random, name = className(about, request.klass);
    const rows = answer.rows.map((row, i) => make("tr", {}, make("td", { text: i + 1 }), make("td", {}, KINDS[row.view.kind] ? make("button", { type: "button", class: "vd-chip", text: row.name, onclick: () => change(row.view) }) : row.name),
      make("td", { text: digits(row.area) }), make("td", { text: capital(VERDICTS[row.kind]) })));
    out.replaceChildren(make("h4", { text: "Which map tells best what " + name + " depends on in this picture" }),
      make("div", { class: "vd-scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["", "map", "area", "verdict"].map((text) => make("th", { scope: "col", text })))), make("tbody", {}, ...rows))),
      make("p", { class: "vd-hint", text: "Random orders: area " + digits(mean) + ", 5 to 95 %: " + digits(low) + " to " + digits(high) + ". " + (request.insertion ? "Higher is better." : "Lower is better.") + " Hidden by " + HIDE[request.how] + "." }));
  }

  tested = { now: () => last?.about === result && last.question === "test" && stop.hidden ? last : null, progress: () => progress?.textContent ?? "", curve,
    say: ({ answer, title }) => ["This map: " + VERDICTS[answer.kind], title + ": area " + digits(answer.area) + ", random orders " + digits(answer.area_random[1]) + " to " + digits(answer.area_random[2])] };

  panel({
    key: "test", place: 1, live: true, title: "Believe it or test it", line: "Hide the patches that the map calls important, then as many at random: does the answer fall faster than by chance?", build,
    update() {
      const stale = last && last.about === result && last.question === "test" && JSON.stringify(last.request.view) !== JSON.stringify(wish());
      out.classList.toggle("vd-stale", Boolean(stale));
      which.textContent = "Map: " + mapTitle() + "." + (stale ? " Not tested yet; what stands below was the test of another map." : "");
      if (BY_CLASS.includes(view.kind) && shownFor === result.key && [...klass.options].some((option) => option.value === String(view.klass))) klass.value = view.klass;
      if (shownFor !== result.key) {
        shownFor = result.key;
        current++;
        finish(result.known ? "" : "This model has no classes, so there is no probability to watch while patches are hidden: neither a test nor a ranking can be made.");
        out.replaceChildren();
        klass.replaceChildren(...[...parts.klass.options].map((option) => make("option", { value: option.value, text: option.textContent })));
        if (BY_CLASS.includes(view.kind)) klass.value = view.klass;
      }
      if (stop.hidden) allow();
    },
    act() { if (result.known) start("test"); },
  });
})();

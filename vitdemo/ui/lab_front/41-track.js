// The film's time: a track over the whole run with its loss and accuracy, which is also the scrubber; play, pause, speed and keys.
(() => {
  const TALL = 92, PAD = 10, LINE = 62;                                    // CSS pixels of the track; LINE is where the looks stand
  const SPEEDS = [0.5, 2, 5, 12];                                          // looks a second
  const { parts, box } = film, ratio = () => window.devicePixelRatio || 1;
  let width = 0, timer = 0, playing = false, held = false;

  const canvas = make("canvas", { class: "vl-track-canvas", "aria-hidden": "true" }), mark = make("i", { class: "vl-track-mark" }),
    answers = make("div", { class: "vl-answers", "aria-hidden": "true" });
  const track = make("div", { class: "vl-track", tabindex: 0, role: "slider", "aria-label": WORDS.look_slider, "aria-valuemin": 1 },
    canvas, mark);
  const play = make("button", { type: "button", class: "vl-primary vl-play", onclick: () => playing ? film.pause() : start() });
  const step = (text, label, act) => make("button",
    { type: "button", class: "vl-button", text, "aria-label": label, title: label, onclick: act });
  const now = make("button", { type: "button", class: "vl-button", text: WORDS.back_to_now, onclick: () => go(lab.frames.length - 1) });
  const speed = make("select", { "aria-label": WORDS.speed, onchange: () => { if (playing) beat(); } },
    ...SPEEDS.map((value, i) => make("option", { value, text: phrase(WORDS.speeds[i], { n: value }), selected: value === 2 })));
  const again = make("input", { type: "checkbox" });
  const when = make("p", { class: "vl-when" }), live = make("p", { class: "vl-hidden", "aria-live": "polite" });
  const firstLine = make("span"), lastLine = make("span");
  parts.time.append(when, make("div", { class: "vl-track-box" }, track, answers, make("div", { class: "vl-track-ends vl-hint" }, firstLine,
      make("span", { class: "vl-track-what", text: WORDS.track_answers }), lastLine)),
    make("div", { class: "vl-row" }, play, step("|◂", WORDS.first_look, () => go(0)),
      step("◂", WORDS.look_back, () => go(lab.index - 1)), step("▸", WORDS.look_on, () => go(lab.index + 1)),
      step("▸|", WORDS.last_look_button, () => go(lab.frames.length - 1)),
      speed, make("label", {}, again, WORDS.repeat), now),
    make("p", { class: "vl-hint vl-film-keys", text: WORDS.film_keys_line }), live);

  const end = () => lab.status?.over ? lab.frames.at(-1)?.progress || 1 : 1;      // a run that was stopped fills the track as well
  const x = (progress) => PAD + (width - 2 * PAD) * Math.min(1, progress / end());

  // A person's own step through the film: it ends the playing.
  function go(index) {
    film.pause();
    setIndex(Math.max(0, index));
  }

  function start() {
    if (lab.frames.length < 2) return;
    playing = true;
    parts.stage.scrollIntoView({ block: "nearest" });                      // what is played is seen
    if (lab.index >= lab.frames.length - 1) setIndex(0);
    beat();
    show();
  }

  film.pause = () => { playing = false; clearTimeout(timer); show(); };

  function beat() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!root.isConnected) return film.pause();
      if (!root.offsetParent) return beat();                               // another tab of the page: the film waits
      if (lab.index < lab.frames.length - 1) setIndex(lab.index + 1);
      else if (again.checked) setIndex(0);
      else { film.pause(); film.speak(); return; }
      beat();
    }, (lab.index >= lab.frames.length - 1 ? 1500 : 1000) / (lab.index >= lab.frames.length - 1 ? 1 : Number(speed.value)));
  }

  film.pace = () => Math.max(0.1, 1 / Number(speed.value));               // seconds that a look stays
  const show = () => { play.textContent = playing ? WORDS.pause : WORDS.play; };

  // One look in words: which, when, how good.
  film.when = (frame = film.frame(), index = lab.index) => {
    const name = index === 0 && frame.step === 0 ? (lab.plan?.start ? WORDS.start_fresh_head : WORDS.start_random) :
      index === lab.frames.length - 1 ? (lab.status?.over ? WORDS.film_end : WORDS.film_now) :
      phrase(WORDS.look_of, { n: index + 1, all: lab.frames.length });
    return [phrase(WORDS.look_when, { look: name, step: frame.step, time: clock(frame.seconds),
      passes: frame.epoch.toFixed(frame.epoch < 1 ? 2 : frame.epoch < 10 ? 1 : 0) }),
    ...(frame.loss === null ? [] : [phrase(WORDS.loss_is, { loss: frame.loss.toFixed(2) })]),
    phrase(WORDS.look_right, { share: percent(frame.accuracy), error: (100 * frame.standard_error).toFixed(1) })].join(", ");
  };

  film.drawTime = () => {
    const frame = film.frame();
    when.textContent = film.when() + ".";
    now.hidden = Boolean(lab.status?.over) || lab.index === lab.frames.length - 1;
    track.setAttribute("aria-valuemax", lab.frames.length);
    track.setAttribute("aria-valuenow", lab.index + 1);
    track.setAttribute("aria-valuetext", [lab.index === 0 ? WORDS.film_start : phrase(WORDS.look_n, { n: lab.index + 1 }),
      phrase(WORDS.step_n, { n: frame.step }), film.named(frame.subjects[film.subject]),
      phrase(WORDS.right_on, { share: percent(frame.accuracy) })].filter(Boolean).join(", "));
    const [{ step: first }] = lab.frames;
    firstLine.textContent = first ? phrase(WORDS.step_n, { n: first }) : lab.plan?.start ? WORDS.fresh_head : WORDS.random_weights;
    lastLine.textContent = lab.status?.over ? WORDS.track_end : WORDS.track_end_of_run;
    play.disabled = lab.frames.length < 2;
    if (!width) return;
    mark.style.left = x(frame.progress) + "px";
    drawCurves();
    drawAnswers();
  };

  // Loss and accuracy, each from the least to the most it was: shapes to find one's way by; numbers stand with the curves above.
  function drawCurves() {
    const stamp = [lab.id, lab.rows.length, lab.frames.length, width, end(), film.dark()].join("|");
    if (canvas.dataset.stamp === stamp) return;
    canvas.dataset.stamp = stamp;
    canvas.width = width * ratio(); canvas.height = TALL * ratio();
    const ctx = canvas.getContext("2d"), css = getComputedStyle(root), colour = (name) => css.getPropertyValue(name).trim();
    ctx.scale(ratio(), ratio());
    ctx.lineWidth = 1; ctx.strokeStyle = colour("--border-color-primary");
    ctx.beginPath(); ctx.moveTo(PAD, LINE + 0.5); ctx.lineTo(width - PAD, LINE + 0.5); ctx.stroke();
    const rows = lab.rows.filter((row) => typeof row.loss === "number"), every = Math.max(1, Math.floor(rows.length / width));
    const line = (points, name, dash, [low, high]) => {
      ctx.strokeStyle = colour(name); ctx.lineWidth = 2; ctx.setLineDash(dash); ctx.lineJoin = "round"; ctx.beginPath();
      points.forEach(([progress, value], i) => ctx[i ? "lineTo" : "moveTo"](x(progress),
        LINE - 6 - (LINE - 14) * (value - low) / (high - low || 1)));
      ctx.stroke(); ctx.setLineDash([]);
    };
    const losses = rows.map((row) => row.loss);
    line(rows.filter((_, i) => i % every === 0).map((row) => [row.progress, row.loss]), "--vd-c1", [],
      [losses.reduce((a, b) => Math.min(a, b), Infinity), losses.reduce((a, b) => Math.max(a, b), -Infinity)]);
    const shares = lab.frames.map((frame) => frame.accuracy);
    line(lab.frames.map((frame) => [frame.progress, frame.accuracy]), "--vd-c2", [5, 3], [Math.min(...shares), Math.max(...shares)]);
    ctx.fillStyle = colour("--body-text-color");
    for (const { progress } of lab.frames) ctx.fillRect(Math.round(x(progress)) - 1, LINE - 3, 2, 7);
    ctx.font = "13px " + css.fontFamily; ctx.textBaseline = "bottom";
    ctx.fillStyle = colour("--vd-c1"); ctx.fillText(WORDS.track_loss, PAD, TALL - 6);
    ctx.fillStyle = colour("--vd-c2"); ctx.fillText(WORDS.track_accuracy, PAD + 40, TALL - 6);
  }

  film.dark = () => Boolean(root.closest(".dark") ?? document.querySelector(".dark"));

  // The subject's answers over the run, equal neighbours joined: when did it change its mind?
  function drawAnswers() {
    const stamp = [lab.id, lab.frames.length, width, end(), film.subject].join("|");
    if (answers.dataset.stamp === stamp) return;
    answers.dataset.stamp = stamp;
    const { frames, scene } = lab;
    const middle = (i) => i <= 0 ? x(0) : i >= frames.length ? Math.max(x(frames.at(-1).progress), middle(frames.length - 1) + 6) :
      (x(frames[i - 1].progress) + x(frames[i].progress)) / 2;
    const runs = [], truth = film.truth();
    frames.forEach((frame, i) => {
      const seen = frame.subjects[film.subject], answer = film.undecided(seen) ? -1 : seen.top[0]?.[0] ?? -1;
      if (runs.at(-1)?.answer === answer) runs.at(-1).last = i; else runs.push({ answer, first: i, last: i });
    });
    answers.replaceChildren(...runs.map(({ answer, first, last }) => {
      const left = middle(first), space = Math.max(2, middle(last + 1) - left - 2);
      const text = answer < 0 ? WORDS.no_answer : scene.classes[answer];
      return make("span", { text: space < 34 ? "" : text, title: text, "data-right": String(answer === truth),
        style: "left:" + left + "px;width:" + space + "px" });
    }));
  }

  // Says where the film stands, to screen readers, once things have come to rest.
  let speaking = 0;
  film.speak = () => {
    clearTimeout(speaking);
    if (playing || !film.abouts.length || !film.frame()) return;
    speaking = setTimeout(() => {
      if (film.frame() && film.abouts.length && document.activeElement && box.contains(document.activeElement))
        live.textContent = film.brief();
    }, 400);
  };

  function nearest(event) {
    const at = event.clientX - track.getBoundingClientRect().left;
    return lab.frames.reduce((best, frame, i) =>
      Math.abs(x(frame.progress) - at) < Math.abs(x(lab.frames[best].progress) - at) ? i : best, 0);
  }

  track.addEventListener("pointerdown", (event) => {
    if (event.button || !lab.frames.length) return;
    held = true;
    track.setPointerCapture(event.pointerId);
    go(nearest(event));
  });
  track.addEventListener("pointermove", (event) => { if (held) go(nearest(event)); });
  for (const name of ["pointerup", "pointercancel"]) track.addEventListener(name, () => { held = false; });

  box.addEventListener("keydown", (event) => {
    const chord = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
    if (chord || !film.frame() || !film.abouts.length) return;
    const at = event.target, inField = at.matches("select, input:not([type=checkbox])"), onTrack = at === track;
    const acts = { ArrowLeft: () => go(lab.index - 1), ArrowRight: () => go(lab.index + 1), " ": () => playing ? film.pause() : start(),
      m: () => film.change({ head: "mean" }),
      ",": () => film.change({ head: film.nextHead(-1) }), ".": () => film.change({ head: film.nextHead(1) }),
      "[": () => film.change({ layer: Math.max(0, film.layer - 1) }),
      "]": () => film.change({ layer: Math.min(lab.scene.layers - 1, film.layer + 1) }) };
    const slides = { ArrowDown: () => go(lab.index - 1), ArrowUp: () => go(lab.index + 1),
      PageDown: () => go(lab.index - 5), PageUp: () => go(lab.index + 5), Home: () => go(0), End: () => go(lab.frames.length - 1) };
    const digit = /^[1-9]$/.test(event.key) && Number(event.key) <= lab.scene.heads;
    const act = inField || event.key === " " && at.matches("button, summary, input, a") ? null :
      acts[event.key] ?? (onTrack ? slides[event.key] : null) ?? (digit ? () => film.change({ head: Number(event.key) - 1 }) : null);
    if (!act) return;
    event.preventDefault();
    act();
  });

  new ResizeObserver(([entry]) => { width = entry.contentRect.width; if (width && film.frame() && film.abouts.length) film.drawTime(); })
    .observe(track);
  show();
})();

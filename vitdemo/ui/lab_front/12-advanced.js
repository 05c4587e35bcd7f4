// Everything else about a new run, out of the way until somebody asks: pictures, recipe, what to begin with, and every setting
// with its one line.
(() => {
  const { box, body, head } = section("setup", 20, WORDS.advanced, WORDS.advanced_line);
  const changed = make("span", { class: "vl-hint" });
  head.append(changed);
  const block = (title, line, ...things) => make("section", { class: "vl-block" }, make("h4", { text: title }),
    make("p", { class: "vl-hint", text: line }), ...things);
  const act = () => { setup.fill(); setup.change(); };

  const data = make("select", { "aria-label": WORDS.pictures_to_learn, onchange: () => { form.data = data.value; act(); } });
  const dataNote = make("p", { class: "vl-hint" });
  const units = make("div", { class: "vl-row", role: "group", "aria-label": WORDS.length_counted_in },
    ...Object.entries(WORDS.length_units).map(([name, text]) => make("button",
      { type: "button", class: "vl-chip", "data-unit": name, text, onclick: () => setUnit(name) })));
  const recipes = make("div", { class: "vl-recipes", role: "radiogroup", "aria-label": WORDS.recipe });
  const size = make("select", { "aria-label": WORDS.model_size, onchange: () => { form.model = size.value || null; act(); } });
  const sizeNote = make("p", { class: "vl-hint" });
  const begin = make("select", { "aria-label": WORDS.begin_with,
    onchange: () => { form.start = begin.value; form.startTitle = begin.selectedOptions[0].textContent; byRecipe = false; act(); } });
  const freeze = make("input", { type: "checkbox", onchange: () => { form.freeze = freeze.checked; act(); } });
  const freezeRow = make("label", {}, freeze, WORDS.freeze_encoder);
  const title = make("input", { type: "text", maxlength: 60, class: "vl-name", "aria-label": WORDS.run_name_hint,
    placeholder: WORDS.run_name_empty, oninput: () => { form.title = title.value.trim(); } });
  const groups = make("div", { class: "vl-groups" });
  const verdict = make("p", { class: "vl-checked", role: "status" });
  const reset = make("button",
    { type: "button", class: "vl-button", text: WORDS.back_to_recipe, onclick: () => { form.changes = {}; buildSettings(); act(); } });
  const go = make("button", { type: "button", class: "vl-primary", text: WORDS.start_with_settings, onclick: () => setup.start() });
  // byRecipe: nobody but the recipe chose what to begin with; checked: the wish whose verdict stands there
  let asked = 0, waiting = 0, fields = [], byRecipe = false, checked = "";

  const shape = block(WORDS.model, WORDS.model_line, size, sizeNote);
  const lengths = block(WORDS.how_long, WORDS.how_long_line, units);
  body.classList.add("vl-advanced");
  body.append(make("div", { class: "vl-blocks" }, block(WORDS.pictures, WORDS.pictures_line, data, dataNote), lengths,
    block(WORDS.begin_with, WORDS.begin_line, begin, freezeRow),
    block(WORDS.run_name, WORDS.run_name_line, title)),
    block(WORDS.recipe, WORDS.recipe_line, recipes),
    shape,
    block(WORDS.every_setting, WORDS.every_setting_line, groups),
    make("div", { class: "vl-check" }, verdict, make("div", { class: "vl-row" }, go, reset)));

  function setUnit(name) {
    if (name === form.unit) return;
    const usual = { minutes: Math.min(3, lab.hello.max_minutes), epochs: 5, steps: 500 };
    setup.length(name, presetOf()?.[name] || usual[name]);
    act();
  }

  const presetOf = () => lab.hello.presets.find((one) => one.name === (form.preset ?? setup.offer?.preset));

  function choosePreset(name) {
    const preset = lab.hello.presets.find((one) => one.name === name);
    form.preset = preset?.name ?? null;
    if (preset) {
      // digits and photos have recipes of their own; somebody's own pictures stay
      const published = new Set(lab.hello.presets.map((one) => one.data));
      if (published.has(form.data) && lab.hello.data.some((one) => one.name === preset.data)) form.data = preset.data;
      if (preset.epochs && !lengths.hidden) setup.length("epochs", preset.epochs);
      else setup.length("minutes", Math.min(preset.minutes || 3, lab.hello.max_minutes));
    } else if (form.unit !== "minutes") setup.length("minutes", Math.min(3, lab.hello.max_minutes));
    if (byRecipe) Object.assign(form, { start: "", startTitle: "", freeze: false });                   // it went with the recipe before
    byRecipe = Boolean(preset?.start && !form.start);
    if (byRecipe) Object.assign(form, { start: preset.start, startTitle: WORDS.model_in_the_box });
    form.model = null;
    act();
  }

  // In sight what is reported and the measurement nearest to this host's threads and numbers; where it comes from and the other measurements fold away.
  function recipe(name, title_, about, facts = [], more = []) {
    const radio = make("input", { type: "radio", name: "vl-recipe", value: name, onchange: () => choosePreset(name) });
    const told = (pairs) => pairs.map(([what, text]) => make("span", { class: "vl-fact" }, make("i", { text: what }), make("span", { text })));
    const further = more.filter(([what]) => what === WORDS.recipe_facts.measured).length, fold = further ? phrase(WORDS.recipe_more, { n: further }) : WORDS.recipe_source;
    return make("div", { class: "vl-recipe" },
      make("label", {}, radio, make("span", { class: "vl-recipe-text" }, make("b", { text: title_ }), make("span", { text: about }), ...told(facts))),
      ...(more.length ? [make("details", {}, make("summary", { text: fold, "aria-label": phrase(WORDS.what_value, { what: fold, value: title_ }) }),
        make("div", { class: "vl-recipe-text" }, ...told(more)))] : []));
  }

  const measured = ({ threads, accuracy, n, seconds, images_per_second: speed, machine }) =>
    phrase(WORDS.measured, { share: percent(accuracy), time: clock(seconds), threads, machine, speed: Math.round(speed),
      runs: n === 1 ? WORDS.one_run : phrase(WORDS.mean_of_runs, { n }) });

  function buildRecipes(hello) {
    const { source, reported, measured: found, note } = WORDS.recipe_facts;
    recipes.replaceChildren(recipe("", WORDS.recipe_auto, WORDS.recipe_auto_line), ...hello.presets.map((one) => {
      const rows = (one.measured ?? []).map((row) => [found, measured(row)]), from = one.source ? [[source, one.source]] : [];
      return recipe(one.name, one.title ?? one.name, one.about, [
        ...(typeof one.reported === "number" ? [[reported, phrase(WORDS.reported, { share: percent(one.reported) })]] : []),
        ...rows.slice(0, 1), ...(one.note && !rows.length ? [[note, one.note]] : [])],
      [...rows.slice(1), ...(one.note && rows.length ? [[note, one.note]] : []), ...from]);
    }));
  }

  // One setting: a control that is empty where the recipe decides, its line, and why its value cannot be.
  function field(spec) {
    const list = spec.kind === "list", free = ["number", "whole", "list"].includes(spec.kind), name = spec.name.replaceAll("_", " ");
    const given = spec.kind === "switch" ? [[true, WORDS.setting_on], [false, WORDS.setting_off]] :
      (spec.choices ?? []).map((value) => [value, String(value)]);
    const wrong = make("span", { class: "vl-trouble", role: "alert" });
    const input = free ? make("input", { type: "text", inputmode: list ? "text" : "decimal", class: "vl-number", "aria-label": name,
      autocomplete: "off", maxlength: list ? 80 : 14 })
      : make("select", { "aria-label": name }, make("option", { value: "" }),
        ...given.map(([, text], i) => make("option", { value: i, text })));
    input.addEventListener(free ? "input" : "change", () => {
      let value = null;
      try {
        value = input.value.trim() === "" ? undefined : free ? parse(spec, input.value) : given[Number(input.value)][0];
        wrong.textContent = "";
      } catch (failure) { wrong.textContent = failure.message; }
      input.setAttribute("aria-invalid", String(value === null));
      if (value === null) return;
      if (value === undefined) delete form.changes[spec.name]; else form.changes[spec.name] = value;
      setup.change();
    });
    const renew = () => {
      const by = fromRecipe(spec), text = by === undefined ? WORDS.as_recipe : Array.isArray(by) ? by.join("; ") || WORDS.setting_none :
        by === true ? WORDS.setting_on : by === false ? WORDS.setting_off : String(by);
      if (free) input.placeholder = text;
      else input.options[0].textContent = by === undefined ? text : phrase(WORDS.recipe_says, { value: text });
      if (!(spec.name in form.changes) && input.getAttribute("aria-invalid") !== "true") input.value = "";
      row.classList.toggle("vl-changed", spec.name in form.changes);
    };
    const row = make("label", { class: "vl-setting" }, make("span", { class: "vl-setting-name", text: name }), input,
      make("span", { class: "vl-hint", text: spec.line }), wrong);
    if (spec.name in form.changes) input.value = free ? [form.changes[spec.name]].flat().join("; ") :
      given.findIndex(([value]) => value === form.changes[spec.name]);
    return { row, renew };
  }

  // What the recipe, or the size that was chosen instead of the recipe's own, says about a setting, but for what a run of minutes has
  // otherwise; undefined where the server did not tell.
  function fromRecipe(spec) {
    const clocked = form.unit === "minutes" ? setup.offer?.by_clock?.[spec.name] : undefined;
    if (clocked !== undefined) return clocked;
    const preset = presetOf(), of = lab.hello.sizes.find((one) => one.name === (form.model ?? preset?.size));
    return (form.model ? of?.settings?.[spec.name] : undefined) ?? spec.defaults?.[preset?.name];
  }

  function parse(spec, text) {
    if (spec.kind === "list") {
      const parts = (/[;\s]/.test(text.trim()) ? text.trim().split(/[;\s]+/) : text.trim().split(",")).filter(Boolean)
        .map((part) => numberOf(part.replace(/,$/, "")));
      if (parts.some(Number.isNaN) || (spec.pair && parts.length > 2)) throw new Error(spec.pair ? WORDS.give_pair : WORDS.give_numbers);
      return spec.pair && parts.length === 1 ? [parts[0], parts[0]] : parts;
    }
    const value = numberOf(text), { low, high } = spec, bounds = low !== null && low !== undefined && high !== null && high !== undefined;
    if (Number.isNaN(value) || (spec.kind === "whole" && !Number.isInteger(value)))
      throw new Error(spec.kind === "whole" ? WORDS.give_whole : WORDS.give_number);
    if (bounds && !(value >= low && value <= high)) throw new Error(phrase(WORDS.give_between, { low, high }));
    return value;
  }

  function buildSettings() {
    fields = [];
    groups.replaceChildren(...Object.entries(WORDS.setting_groups).map(([group, words]) => {
      const own = lab.hello.settings.filter((spec) => spec.group === group && spec.name !== "freeze").map(field);
      fields.push(...own);
      return make("details", { class: "vl-group", "data-group": group, hidden: !own.length },
        make("summary", { text: phrase(words, { n: own.length }) }), make("div", { class: "vl-settings" }, ...own.map(({ row }) => row)));
    }));
  }

  // Runs whose model can be the beginning of another (a CNN's cannot); what a race hides stays hidden. Asked when the form is opened,
  // because titles may have changed.
  async function fillBegin() {
    const options = [["", WORDS.from_scratch], ["box", WORDS.model_in_the_box]], known = mine.list();
    if (form.start && !options.some(([value]) => value === form.start))
      options.push([form.start, form.startTitle || WORDS.a_trained_model]);
    const list = known.length && box.open ? await ask({ question: "list", mine: known }).catch(() => null) : null;
    for (const run of list?.runs ?? []) if (run.can.open && run.id !== form.start)
      options.push([run.id, run.title + (run.accuracy && !sealed(run.id) ? ", " + exactly(run.accuracy) : "")]);
    begin.replaceChildren(...options.map(([value, text]) => make("option", { value, text })));
    begin.value = form.start;
  }

  function fill() {
    const { hello } = lab;
    if (data.options.length !== hello.data.length)
      data.replaceChildren(...hello.data.map((one) => make("option", { value: one.name, text: one.title })));
    data.value = form.data;
    const known = hello.data.find((one) => one.name === form.data);
    dataNote.textContent = known && !known.here ? known.note : "";
    for (const chip of units.children) chip.setAttribute("aria-pressed", String(chip.dataset.unit === form.unit));
    for (const radio of recipes.querySelectorAll("input")) radio.checked = radio.value === (form.preset ?? "");
    size.value = form.model ?? "";
    shape.hidden = Boolean(form.start);                                    // a trained model brings its own shape
    const preset = presetOf();
    size.options[0].textContent = preset ? phrase(WORDS.as_recipe_size, { size: preset.size }) : WORDS.as_recipe;
    sizeNote.textContent = hello.sizes.find((one) => one.name === (form.model ?? preset?.size))?.about ?? "";
    if (begin.value !== form.start) fillBegin();
    freeze.checked = form.freeze;
    freezeRow.hidden = !form.start;
    if (document.activeElement !== title) title.value = form.title;
    const count = Object.keys(form.changes).length;
    changed.textContent = count ? phrase(WORDS.settings_changed, { n: count }) : "";
    reset.hidden = !count;
    for (const { renew } of fields) renew();
    for (const one of groups.children) if (one.dataset.group === "model") one.hidden = Boolean(form.start);
    clearTimeout(waiting);
    if (box.open) waiting = setTimeout(check, 350);
  }

  async function check() {
    const turn = ++asked, wish = setup.wish(), wanted = JSON.stringify(wish);
    if (wanted === checked) return;
    try {
      const { sentence, flatters } = await ask({ question: "check", ...wish });
      if (turn === asked) {
        checked = wanted;
        verdict.className = "vl-checked";
        write(verdict, [sentence, flatters].filter(Boolean).join(" "));
        go.disabled = false;
      }
    } catch (failure) {
      if (turn !== asked) return;
      checked = "";
      verdict.className = "vl-checked vl-trouble";
      write(verdict, failure.message);
      go.disabled = Boolean(failure.answer);
    }
  }

  on("hello", (hello) => {
    buildRecipes(hello);
    size.replaceChildren(make("option", { value: "" }), ...hello.sizes.map((one) => make("option", { value: one.name, text: one.name })));
    lengths.hidden = hello.public || hello.max_minutes < 60;              // elsewhere runs are counted by the clock alone
    buildSettings();
    fillBegin();
  });
  on("form", fill);
  on("offer", fill);
  on("start-from", () => { byRecipe = false; buildSettings(); });
  box.addEventListener("toggle", () => { if (box.open) { fillBegin(); fill(); } });
  setup.pictures = () => { box.open = true; data.focus(); box.scrollIntoView({ block: "nearest" }); };
  setup.block = block;
  setup.more = $("setup").querySelector(".vl-blocks");
})();

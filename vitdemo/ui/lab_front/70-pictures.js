// A person's own pictures: sets of 2 to 100 classes, collected here or brought as a .zip of class folders. The pictures lie on the server,
// in a set whose name nobody can guess; the browser remembers only that name.
const ownSets = (() => {
  const KEPT = "vitdemo-sets";
  let kept = [];
  const clean = (known) => Array.isArray(known) ? known.filter((one) => typeof one?.id === "string")
    .map(({ id, title }) => ({ id, title: String(title ?? "") })).slice(0, 20) : [];
  const read = () => {
    try { kept = clean(JSON.parse(localStorage.getItem(KEPT) ?? "[]")); } catch { /* then sets last as long as the page */ }
    return kept;
  };
  const write = (next) => { kept = next; try { localStorage.setItem(KEPT, JSON.stringify(next)); } catch { /* see above */ } };
  return {
    list: read,
    keep({ id, title }) { write([{ id, title }, ...read().filter((one) => one.id !== id)].slice(0, 20)); },
    forget(id) { write(read().filter((one) => one.id !== id)); },
  };
})();

// the set on the table; a card is one class
const collected = { id: null, title: "", cards: [], left: leftOut(), flatters: "", busy: 0 };
// What changes a set is done one after the other, in the order it was asked for, so that picture 3 stays picture 3.
const inLine = (() => {
  let last = Promise.resolve();
  return (act) => {
    collected.busy++;
    last = last.then(act).catch((failure) => say(failure.message, true)).finally(() => { collected.busy--; showCollected(); });
    return last;
  };
})();

let showCollected = () => {};

(() => {
  const { box, body } = section("runs", 30, WORDS.own_pictures, WORDS.own_pictures_line);
  const which = make("select", { "aria-label": WORDS.set_of_pictures, onchange: () => inLine(() => open(which.value)) });
  const title = make("input",
    { type: "text", id: "vl-set-title", maxlength: 60, placeholder: WORDS.set_name_hint, onchange: () => rename() });
  const zip = make("input", { type: "file", class: "vl-hidden", accept: ".zip,application/zip",
    onchange: () => { const [file] = zip.files; zip.value = ""; if (file) inLine(() => bring(file)); } });
  const drop = make("button", { type: "button", class: "vl-button vl-danger", text: WORDS.delete_set, onclick: () => sure(true) });
  const yes = make("button", { type: "button", class: "vl-button vl-danger", text: WORDS.delete_it, onclick: () => inLine(erase) }),
    no = make("button", { type: "button", class: "vl-button", text: WORDS.keep_it, onclick: () => sure(false) });
  const asked = make("span", { class: "vl-row vl-sure", role: "group", hidden: true },
    make("span", { text: WORDS.delete_set_sure }), yes, no);
  const words = make("p", { class: "vl-hint", role: "status" }), caution = make("p", { class: "vl-caution", role: "status" }),
    skipped = make("details", {});
  const add = make("button", { type: "button", class: "vl-add-class", onclick: () => { addCard().rename.focus(); show(); } },
    make("b", { text: WORDS.add_class }), make("span", { class: "vl-hint", text: WORDS.add_class_hint }));
  const cards = make("div", { class: "vl-own-classes" }, add);
  const table = make("div", { class: "vl-lines vl-drop" }, cards, words, caution, skipped);
  body.append(make("div", { class: "vl-row" }, make("label", {}, WORDS.set, which),
    make("label", { class: "vl-grow" }, WORDS.set_name, title),
    make("label", { class: "vl-button vl-file" }, zip, WORDS.bring_zip), drop, asked),
    table, buildOwnTraining());

  dropInto(table, (files) => {                                           // a .zip may be dropped anywhere; pictures belong to a class
    const packed = files.find((file) => /\.zip$/i.test(file.name));
    if (packed) inLine(() => bring(packed)); else say(WORDS.drop_on_class, true);
  });

  box.addEventListener("toggle", () => { if (!box.open) closeCamera(); else begin(); });
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData?.files ?? []], at = document.activeElement?.closest?.(".vl-class"),
      card = collected.cards.find((one) => one.node === at) ?? collected.cards.find((one) => one.last);
    if (!files.length || !card || !box.open || !root.offsetParent ||
      !(at || body.contains(document.activeElement) || document.activeElement === document.body)) return;
    event.preventDefault();
    card.take(files);
  });

  let begun = false, bringing = false;
  on("hello", (hello) => { box.hidden = !hello.training || !hello.limits; if (!box.hidden && ownSets.list().length && box.open) begin(); });
  showCollected = show;
  show();

  function begin() {
    if (begun) return;
    begun = true;
    const [newest] = ownSets.list();
    if (newest) inLine(() => open(newest.id)); else fresh();
  }

  function fresh() {
    put_({ id: null, title: "", classes: [] });
    addCard();
    addCard();
    show();
  }

  function addCard(name = "", count = 0, urls = []) {
    const card = classCard(name || unused(), count, urls, gone);
    collected.cards.push(card);
    add.before(card.node);
    return card;
  }

  function unused() {
    for (let n = collected.cards.length + 1; ; n++) {
      const name = phrase(WORDS.class_n, { n });
      if (!collected.cards.some((card) => card.name === name)) return name;
    }
  }

  function gone(card) {
    collected.cards.splice(collected.cards.indexOf(card), 1);
    card.node.remove();
    (collected.cards.at(-1)?.rename ?? add).focus();
    show();
  }

  function put_(set) {
    closeCamera();
    for (const card of collected.cards) card.node.remove();
    Object.assign(collected, { id: set.id, title: set.title, left: leftOut(set), flatters: set.flatters ?? "", cards: [] });
    title.value = set.title;
    for (const [name, count] of set.classes) addCard(name, count, set.thumbnails?.[name] ?? []);
  }

  async function open(id) {
    if (!id) { fresh(); return; }
    try { put_((await ask({ question: "set", do: "get", set: id })).set); }
    catch (failure) {
      if (failure.answer) ownSets.forget(id);
      fresh();
      throw failure;
    }
  }

  async function bring(file) {
    bringing = true;
    words.textContent = phrase(WORDS.sending, { file: file.name });
    try {
      const path = await handOver(file, lab.hello.limits.zip_megabytes);
      words.textContent = phrase(WORDS.looking_through, { file: file.name });
      const { set } = await ask({ question: "set", do: "zip", path, title: file.name.replace(/\.zip$/i, "").slice(0, 60),
        browser: mine.secret() });
      ownSets.keep(set);
      put_(set);
    } finally { bringing = false; words.textContent = ""; }
  }

  function rename() {
    collected.title = title.value.trim();
    if (collected.id) inLine(async () => {
      await ask({ question: "set", do: "rename", set: collected.id, title: collected.title });
      ownSets.keep(collected);
    });
  }

  function sure(open) { asked.hidden = !open; drop.hidden = open; (open ? no : drop).focus(); }

  async function erase() {
    await ask({ question: "set", do: "delete", set: collected.id });
    ownSets.forget(collected.id);
    sure(false);
    await open(ownSets.list()[0]?.id ?? null);
    which.focus();
  }

  function show() {
    const known = ownSets.list(), current = collected.id && !known.some((one) => one.id === collected.id) ? [collected] : [];
    which.replaceChildren(...[...current, ...known].map((one) => make("option", { value: one.id, text: one.title || WORDS.set_unnamed })),
      make("option", { value: "", text: WORDS.set_new }));
    which.value = collected.id ?? "";
    if (document.activeElement !== title) title.value = collected.title;
    drop.hidden = !collected.id || !asked.hidden;
    for (const card of collected.cards) card.show();
    const limits = lab.hello?.limits ?? {}, pictures = collected.cards.reduce((sum, card) => sum + card.count, 0);
    add.disabled = collected.cards.length >= (limits.classes?.[1] ?? 100);
    if (!bringing) words.textContent = !pictures ? WORDS.own_privacy : phrase(limits.pictures ? WORDS.set_holds_most : WORDS.set_holds,
      { n: pictures.toLocaleString("en"), classes: collected.cards.filter((card) => card.count).length,
        most: limits.pictures?.toLocaleString("en") });
    if (caution.textContent !== collected.flatters) caution.textContent = collected.flatters;
    caution.hidden = !collected.flatters;
    const { line, names } = collected.left, stamp = [line, ...names].join("\n");
    skipped.hidden = !line;
    if (skipped.dataset.names !== stamp) skipped.replaceChildren(make("summary", { text: line }),
      ...names.map((name) => make("p", { class: "vl-hint", text: name })));
    skipped.dataset.names = stamp;
    emit("set", collected);
  }
})();

// One class of a set: its name, its pictures, and the ways to add some: files, drop, paste, camera.
// bytes of a file that this browser cannot read and the server may
const ADD_LARGEST = 4e6;
const SHOWN_THUMBS = 24, MOST_REMOVED = 200;                              // pictures shown of a class; of one that may be removed whole

// A picture file as a data URL that is small enough to travel: at most 256 pixels on its short side, as JPEG, upright.
async function shrunk(file) {
  const image = await createImageBitmap(file, { imageOrientation: "from-image" }).catch(() => null);
  if (image) return jpegOf(image, image.width, image.height);
  if (file.size > ADD_LARGEST) throw new Error(WORDS.why_large);
  return new Promise((done, failed) => Object.assign(new FileReader(),
    { onload() { done(this.result); }, onerror: () => failed(new Error(WORDS.why_unread)) }).readAsDataURL(file));
}

function jpegOf(source, width, height, { left = 0, top = 0 } = {}) {
  const scale = Math.min(1, 256 / Math.min(width, height));
  const canvas = make("canvas", { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) });
  const ctx = canvas.getContext("2d");
  ctx.imageSmoothingQuality = "high";
  ctx.fillStyle = "white";                                               // JPEG knows no transparency
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(source, left, top, width, height, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.9);
}

// urls[i] is picture i of the class; of a large class only some are known here.
function classCard(name, count, urls, gone) {
  const refused = [], limit = () => lab.hello?.limits?.pictures ?? Infinity;
  const rename = make("input", { type: "text", maxlength: 40, value: name, "aria-label": WORDS.class_name, onchange: () => named(),
    onfocus: () => rename.select() });
  const files = make("input", { type: "file", class: "vl-hidden", multiple: true, accept: "image/*,.heic,.tif,.tiff,.bmp,.webp",
    onchange: () => { take([...files.files]); files.value = ""; } });
  const camera = make("button", { type: "button", class: "vl-button", text: WORDS.camera, onclick: () => openCamera(card) });
  const remove = make("button", { type: "button", class: "vl-button vl-quiet", text: WORDS.remove, onclick: () => sure(true) });
  const yes = make("button",
    { type: "button", class: "vl-button vl-danger", text: WORDS.remove, onclick: () => { sure(false); inLine(clear); } }),
    no = make("button", { type: "button", class: "vl-button", text: WORDS.keep, onclick: () => sure(false) });
  const asked = make("div", { class: "vl-row vl-sure", role: "group", hidden: true },
    make("span", { text: WORDS.remove_class }), yes, no);
  const told = make("span", { class: "vl-hint", role: "status" }), thumbs = make("div", { class: "vl-thumbs" }),
    trouble = make("p", { class: "vl-trouble", role: "status" });
  const lens = make("div", { class: "vl-lens", hidden: true });
  const node = make("section", { class: "vl-class vl-drop" }, make("div", { class: "vl-class-head" }, rename, told),
    make("div", { class: "vl-row" }, make("label", { class: "vl-button vl-file" }, files, WORDS.add_files), camera, remove),
    asked, lens, thumbs, trouble);
  const card = { name, count, urls, node, rename, lens, camera, waiting: 0, last: false, take, add, show };

  dropInto(node, take);
  for (const event of ["focusin", "pointerdown"])
    node.addEventListener(event, () => { for (const other of collected.cards) other.last = other === card; });

  function take(list) {
    if (list.some((file) => /\.zip$/i.test(file.name))) {
      say(WORDS.zip_on_class, true);
      return;
    }
    refused.length = 0;
    for (const file of list) add(() => shrunk(file), file.name);
  }

  // One picture on its way: `picture` gives its data URL when its turn comes; `together`: it was taken in one go with the one before.
  function add(picture, from = WORDS.from_picture, together = false) {
    card.waiting++;
    show();
    return inLine(async () => {
      try {
        if (collected.cards.reduce((sum, each) => sum + each.count, 0) >= limit())
          throw new Error(phrase(WORDS.why_full, { n: limit().toLocaleString("en") }));
        const url = await picture();
        if (!collected.id) await begin();
        const { set } = await ask({ question: "set", do: "add", set: collected.id, klass: card.name, data: url, together });
        collected.flatters = set.flatters ?? "";
        card.count = set.classes.find(([known]) => known === card.name)?.[1] ?? card.count + 1;
        card.urls[card.count - 1] = url;
      } catch (failure) {
        const why = failure.message.slice(0, 1).toLowerCase() + failure.message.slice(1);
        refused.push(phrase(WORDS.what_value, { what: from, value: why }));
      }
      card.waiting--;
    });
  }

  async function begin() {
    const { set } = await ask({ question: "set", do: "new", title: collected.title || WORDS.set_untitled, browser: mine.secret() });
    collected.id = set.id;
    collected.title ||= set.title;
    ownSets.keep({ id: set.id, title: set.title });
  }

  function named() {
    const next = rename.value.replace(/[/\\]/g, "-").replace(/\s+/g, " ").replace(/^[._\- ]+|[. ]+$/g, "");       // as the server keeps it
    rename.value = next;
    if (!next || collected.cards.some((other) => other !== card && other.name.toLowerCase() === next.toLowerCase())) {
      say(next ? phrase(WORDS.class_twice, { name: next }) : WORDS.class_nameless, true);
      rename.value = card.name;
      return;
    }
    inLine(async () => {
      try {
        if (card.count) await ask({ question: "set", do: "rename", set: collected.id, klass: card.name, title: next });
        card.name = next;
      } catch (failure) { rename.value = card.name; throw failure; }
    });
  }

  function sure(open) {
    if (open && !card.count) { gone(card); return; }
    asked.hidden = !open;
    (open ? no : remove).focus();
  }

  async function dropped(index) {
    const { set } = await ask({ question: "set", do: "drop", set: collected.id, klass: card.name, index });
    collected.flatters = set.flatters ?? "";
  }

  async function clear() {
    for (; card.count; card.count--) await dropped(card.count - 1);
    gone(card);
  }

  function dropOne(index) {
    const url = card.urls[index];                                         // those before it may be gone when its turn comes
    inLine(async () => {
      const at = card.urls.indexOf(url);
      if (at < 0) return;
      await dropped(at);
      card.count--;
      card.urls.splice(at, 1);
      show();
      (thumbs.querySelector("button") ?? rename).focus();
    });
  }

  function show() {
    told.textContent = phrase(card.waiting ? WORDS.pictures_coming : WORDS.n_pictures,
      { n: card.count.toLocaleString("en"), waiting: card.waiting });
    node.dataset.enough = String(card.count > 1);
    trouble.textContent = refused.length > 3 ?
      phrase(WORDS.many_left_out, { n: refused.length, some: refused.slice(0, 2).join("; ") }) : refused.join("; ");
    remove.hidden = card.count > MOST_REMOVED;
    const known = Object.keys(card.urls).map(Number).slice(-SHOWN_THUMBS).reverse(), stamp = [card.name, card.count, ...known].join();
    if (thumbs.dataset.stamp === stamp) return;
    thumbs.dataset.stamp = stamp;
    thumbs.replaceChildren(...known.map((i) => make("button", { type: "button", class: "vl-thumb",
      "aria-label": phrase(WORDS.remove_picture, { n: i + 1, name: card.name }), title: WORDS.remove,
      onclick: () => dropOne(i) },
      make("img", { src: card.urls[i], alt: "" }), make("i", { "aria-hidden": "true", text: "×" }))),
      ...(card.count > known.length ?
        [make("span", { class: "vl-hint", text: phrase(WORDS.and_more, { n: card.count - known.length }) })] : []));
  }

  return card;
}

// The pictures that the attention film looks at: up to six of one's own, or three that the program chooses.
(() => {
  const most = () => lab.hello?.limits.film ?? 6;
  const pick = make("input", { type: "file", accept: "image/*", multiple: true, class: "vl-hidden", tabindex: -1,
    "aria-label": WORDS.film_pick, onchange: () => { add(pick.files); pick.value = ""; } });
  const button = make("button", { type: "button", class: "vl-button", text: WORDS.choose_pictures, onclick: () => pick.click() });
  const shown = make("div", { class: "vl-picks" }), words = make("p", { class: "vl-hint", role: "status" });
  const area = setup.block(WORDS.film_pictures, WORDS.film_pictures_line, make("div", { class: "vl-row" }, button, pick, words), shown);
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => { event.preventDefault(); add(event.dataTransfer.files); });
  setup.more.append(area);

  async function add(files) {
    const largest = lab.hello.limits.zip_megabytes;
    words.textContent = "";
    for (const file of files) {
      if (form.film.length >= most()) { words.textContent = phrase(WORDS.film_full, { n: most() }); break; }
      if (file.size > largest * 1e6) { words.textContent = phrase(WORDS.file_larger, { name: file.name, n: largest }); continue; }
      form.film.push({ file, url: URL.createObjectURL(file) });
    }
    fill();
  }

  function fill() {
    button.disabled = form.film.length >= most();
    shown.replaceChildren(...form.film.map((one, i) => make("figure", {}, make("img", { src: one.url, alt: one.file.name }),
      make("button", { type: "button", class: "vl-button", text: WORDS.remove,
        "aria-label": phrase(WORDS.remove_file, { name: one.file.name }),
        onclick: () => { URL.revokeObjectURL(one.url); form.film.splice(i, 1); fill(); button.focus(); } }))));
    shown.hidden = !form.film.length;
  }

  fill();
})();

// Weights that a person brings along: a file of theirs, or the name of a repository.
const input = make("input", { type: "file", class: "vm-hidden", tabindex: -1, "aria-label": WORDS.weights_file, accept: ".safetensors,.pt,.pth,.bin",
  onchange: () => { const [file] = input.files; input.value = ""; if (file) take(file); } });
root.append(input);

function askForFile() {
  tell(WORDS.file_wanted, { doing: [button(WORDS.choose_file, () => input.click(), "vm-primary"), button(WORDS.not_now, stay)] });
}

async function take(file) {
  const mark = waiting = { model: FILE };
  $("models").value = FILE;
  try {
    const { name } = file, size = megabytes(file.size / 1e6);
    if (file.size > offer.megabytes * 1e6) throw new Error(phrase(WORDS.file_too_large, { name, size, most: megabytes(offer.megabytes) }));
    tell(phrase(WORDS.sending, { name, size }), { share: undefined });
    const sent = await Promise.resolve(upload(file)).catch(() => null);
    if (waiting !== mark) return;
    if (!sent?.path) throw new Error(phrase(WORDS.file_not_sent, { name }));
    await open(sent.path, file, mark);
  } catch (failure) { if (waiting === mark) failed(failure.message, () => take(file)); }
}

async function open(path, file, mark, heads) {
  tell(phrase(WORDS.reading_file, { name: file.name }), { share: undefined });
  const answer = await ask({ question: "open", path, ...(heads ? { heads } : {}) });
  if (waiting !== mark) return;
  if (answer.heads_needed) return askForHeads(answer, (count) => open(path, file, mark, count).catch((failure) => failed(failure.message, () => take(file))));
  mine.add(answer.run);
  await renew();
  await want(answer.run, file.name);
}

// How many heads a model has cannot be seen in its file.
function askForHeads({ sentence, choices = [] }, act) {
  const field = make("input", { type: "number", min: 1, max: 256, value: choices[0] ?? 12, id: "vm-heads" });
  const form = make("form", { class: "vm-row", onsubmit: (event) => { event.preventDefault(); act(Number(field.value)); } },
    ...choices.slice(0, 4).map((n) => button(phrase(WORDS.n_heads, { n }), () => act(n))),
    make("label", { class: "vm-field" }, make("span", { text: WORDS.attention_heads }), field),
    make("button", { type: "submit", class: "vm-primary", text: WORDS.load_it }));
  tell(sentence, { doing: [form, button(WORDS.not_now, stay)] });
  field.select();
}

function askForRepository() {
  const field = make("input", { type: "text", id: "vm-repository", placeholder: WORDS.repository_example,
    maxlength: 120, autocomplete: "off", spellcheck: "false" });
  const form = make("form", { class: "vm-row", onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) want("hub:" + field.value.trim(), field.value.trim()); } },
    make("label", { class: "vm-field" }, make("span", { text: WORDS.repository }), field),
    make("button", { type: "submit", class: "vm-primary", text: WORDS.download }));
  tell(WORDS.repository_wanted, { doing: [form, button(WORDS.not_now, stay)] });
  field.focus();
}

for (const [kind, over] of [["dragenter", true], ["dragover", true], ["dragleave", false], ["drop", false]])
  root.addEventListener(kind, (event) => {
    if (![...event.dataTransfer?.types ?? []].includes("Files") || (kind === "dragleave" && root.contains(event.relatedTarget))) return;
    event.preventDefault();
    event.stopPropagation();
    root.dataset.over = String(over);
    if (kind === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });

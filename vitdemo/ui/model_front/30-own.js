// Weights that a person brings along: a file of theirs, or the name of a repository.
const input = make("input", { type: "file", class: "vm-hidden", tabindex: -1, "aria-label": "Weights file", accept: ".safetensors,.pt,.pth,.bin", onchange: () => { const [file] = input.files; input.value = ""; if (file) take(file); } });
root.append(input);

function askForFile() {
  tell("A .safetensors, .pt or .pth file of a plain Vision Transformer: this program's own, timm's, torchvision's, Hugging Face's, DINO's. Drop it here, or choose it. It stays among your runs on the Train tab.",
    { doing: [button("Choose a file", () => input.click(), "vm-primary"), button("Not now", stay)] });
}

async function take(file) {
  const mark = waiting = { model: FILE };
  $("models").value = FILE;
  try {
    if (file.size > offer.megabytes * 1e6) throw new Error(file.name + " has " + megabytes(file.size / 1e6) + "; at most " + megabytes(offer.megabytes) + " can be sent here.");
    tell("Sending " + file.name + " (" + megabytes(file.size / 1e6) + ") …", { share: undefined });
    const sent = await Promise.resolve(upload(file)).catch(() => null);
    if (waiting !== mark) return;
    if (!sent?.path) throw new Error(file.name + " could not be sent: is it too large for this host, or the network gone?");
    await open(sent.path, file, mark);
  } catch (failure) { if (waiting === mark) failed(failure.message, () => take(file)); }
}

async function open(path, file, mark, heads) {
  tell("Reading " + file.name + " …", { share: undefined });
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
    ...choices.slice(0, 4).map((count) => button(count + " heads", () => act(count))), make("label", { class: "vm-field" }, make("span", { text: "Attention heads" }), field), make("button", { type: "submit", class: "vm-primary", text: "Load it" }));
  tell(sentence, { doing: [form, button("Not now", stay)] });
  field.select();
}

function askForRepository() {
  const field = make("input", { type: "text", id: "vm-repository", placeholder: "user/repository", maxlength: 120, autocomplete: "off", spellcheck: "false" });
  const form = make("form", { class: "vm-row", onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) want("hub:" + field.value.trim(), field.value.trim()); } },
    make("label", { class: "vm-field" }, make("span", { text: "Repository" }), field), make("button", { type: "submit", class: "vm-primary", text: "Download" }));
  tell("Any repository of the Hub that holds a plain Vision Transformer as safetensors, for example facebook/dino-vits16.", { doing: [form, button("Not now", stay)] });
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

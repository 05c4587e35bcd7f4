// The list of models: in the box, on this computer, one's own, and what a click would fetch.
const FILE = "file", REPOSITORY = "repository";

async function renew() {
  offer = await ask({ question: "offer", mine: mine.list().filter((run) => !mine.sealed().includes(run)) });
  fillModels();
}

function fillModels() {
  const option = (one, more = "") => make("option", { value: one.model, text: one.title + more });
  const group = (label, ...options) => options.length ? [make("optgroup", { label }, ...options)] : [];
  const here = offer.zoo.filter((one) => one.here), far = offer.zoo.filter((one) => !one.here);
  const listed = [...offer.box.map((one) => one.model), ...offer.zoo.map((one) => one.model), ...offer.own.map((one) => one.model)];
  const guest = listed.includes(chosen.model) ? [] : [option({ model: chosen.model, title: about?.title ?? chosen.model })];
  $("models").replaceChildren(...offer.box.map((one) => option(one)), ...guest,
    ...group(WORDS.on_this_computer, ...here.map((one) => option(one))),
    ...group(WORDS.your_own, ...offer.own.map((one) => option(one))),
    ...group(WORDS.to_download, ...far.map((one) => option(one, " · " + megabytes(one.megabytes)))),
    ...group(WORDS.more, make("option", { value: FILE, text: WORDS.a_file }),
      ...(offer.hub ? [make("option", { value: REPOSITORY, text: WORDS.a_repository })] : [])));
  $("models").value = waiting?.model ?? chosen.model;
}

const listedAs = (model) => offer.zoo.find((one) => one.model === model);

// What the list says was chosen. Nothing is fetched before it was asked for with a button.
function pick(value) {
  waiting = null;
  following++;
  if (value === FILE) return askForFile();
  if (value === REPOSITORY) return askForRepository();
  const entry = listedAs(value);
  if (!entry || entry.here) return want(value, entry?.title);
  $("models").value = value;                                              // a link may have picked it
  describe(entry.title + ": " + entry.line, entry.facts);
  const load = button(phrase(WORDS.download_size, { size: megabytes(entry.megabytes) }), () => want(value, entry.title), "vm-primary");
  tell(phrase(WORDS.not_here, { model: entry.title }), { doing: [load, button(WORDS.not_now, stay)] });
}

// Everything as it was: the model that looks keeps looking, also one that another tab of the page chose and that was not described yet.
function stay() {
  waiting = null;
  tell("");
  if (begun && about?.model !== chosen.model) return follow(chosen);
  if (about) describe(about.line, about.facts);
  if (offer) fillModels();
}

function describe(line, facts) {
  $("about").querySelector("summary").textContent = line;
  $("about").querySelector("dl").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })]));
}

// What it can get of a picture: as its own way says, or otherwise; null is its own way, "part" a part that a person chooses.
function fillFits() {
  const option = (value, name) => make("option", { value, text: WORDS.fits[name] });
  $("fits").replaceChildren(option("", about.fit), ...about.fits.filter((fit) => fit !== about.fit).map((fit) => option(fit, fit)), option("part", "part"));
  $("fits").value = framing.open ? "part" : chosen.fit ?? "";
}

// The sizes that the chosen model can look at.
function fillSides() {
  const { sides, side, square } = about;
  $("sides").replaceChildren(...sides.map((one) => make("option",
    { value: one, text: phrase(one === side ? WORDS.side_px_own : WORDS.side_px, { side: one }) })));
  $("sides").value = chosen.side ?? side;
  $("sides").closest("label").hidden = !square || sides.length < 2;
  fillFits();
  $("back").hidden = chosen.model === "box";
}

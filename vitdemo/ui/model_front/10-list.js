// The list of models: in the box, on this computer, one's own, and what a click would fetch.
const FILE = "file", REPOSITORY = "repository";

async function renew() {
  offer = await ask({ question: "offer", mine: mine.list() });
  fillModels();
}

function fillModels() {
  const option = (one, more = "") => make("option", { value: one.model, text: one.title + more });
  const group = (label, ...options) => options.length ? [make("optgroup", { label }, ...options)] : [];
  const here = offer.zoo.filter((one) => one.here), far = offer.zoo.filter((one) => !one.here);
  const listed = [offer.box.model, ...offer.zoo.map((one) => one.model), ...offer.own.map((one) => one.model)];
  const guest = listed.includes(chosen.model) ? [] : [option({ model: chosen.model, title: about?.title ?? chosen.model })];
  $("models").replaceChildren(option(offer.box), ...guest,
    ...group("On this computer", ...here.map((one) => option(one))),
    ...group("Your own", ...offer.own.map((one) => option(one))),
    ...group("To download", ...far.map((one) => option(one, " · " + megabytes(one.megabytes)))),
    ...group("More", make("option", { value: FILE, text: "A weights file of yours …" }),
      ...(offer.hub ? [make("option", { value: REPOSITORY, text: "A repository of the Hugging Face Hub …" })] : [])));
  $("models").value = waiting?.model ?? chosen.model;
}

const listedAs = (model) => offer.zoo.find((one) => one.model === model);

// What the list says was chosen. Nothing is fetched before it was asked for with a button.
function pick(value) {
  waiting = null;
  if (value === FILE) return askForFile();
  if (value === REPOSITORY) return askForRepository();
  const entry = listedAs(value);
  if (!entry || entry.here) return want(value, entry?.title);
  $("models").value = value;                                              // a link may have picked it
  describe(entry.title + ": " + entry.line, entry.facts);
  tell(entry.title + " is not on this computer yet.", { doing: [button("Download " + megabytes(entry.megabytes), () => want(value, entry.title), "vm-primary"), button("Not now", stay)] });
}

// Everything as it was: the model that looks keeps looking.
function stay() {
  waiting = null;
  tell("");
  if (about) describe(about.line, about.facts);
  if (offer) fillModels();
}

function describe(line, facts) {
  $("about").querySelector("summary").textContent = line;
  $("about").querySelector("dl").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })]));
}

// The sizes that the chosen model can look at.
function fillSides() {
  const { sides, side, square } = about;
  $("sides").replaceChildren(...sides.map((one) => make("option", { value: one, text: one + " × " + one + (one === side ? " px, its own" : " px") })));
  $("sides").value = chosen.side ?? side;
  $("sides").closest("label").hidden = !square || sides.length < 2;
  $("whole").checked = chosen.whole;
  $("back").hidden = chosen.model === "box";
}

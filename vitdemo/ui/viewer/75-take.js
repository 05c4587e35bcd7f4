// Take it home: figures, numbers, and a report that works without the program.
(() => {
  const KINDS_OF_FILE = [["png", "This figure (PNG)"], ["svg", "This figure (SVG)"], ["sheet", "All heads in one sheet (PNG)"], ["npz", "Raw maps (.npz)"], ["report", "Report (HTML, works offline)"]];
  let words, buttons;

  async function take(kind) {
    const about = result;
    words.className = "";
    words.textContent = kind === "report" ? "Writing the report …" : "Drawing …";
    for (const button of buttons) button.disabled = true;
    try {
      const answer = await askAgain(about, { question: "take", kind, view: wish(), opacity: look.opacity, colours: look.colours, own_scale: FEATURES.includes(view.kind) ? look.stretch : look.own });
      const size = saveData(answer);
      words.textContent = "Saved as " + answer.name + " (" + (size > 1e6 ? (size / 1e6).toFixed(1) + " MB" : Math.max(1, Math.round(size / 1e3)) + " kB") + ").";
    } catch (failure) {
      words.textContent = failure.message;
      words.className = "vd-trouble";
    }
    for (const button of buttons) button.disabled = false;
  }

  panel({
    key: "take", place: 6, live: true, title: "Take it home", line: "Save the map as a figure, all maps as numbers, or the whole viewer as one file that works offline.",
    build(sheet) {
      buttons = KINDS_OF_FILE.map(([kind, text]) => make("button", { type: "button", class: "vd-button", text, onclick: () => take(kind) }));
      words = make("p", { role: "status" });
      sheet.append(make("div", { class: "vd-row" }, ...buttons), words, make("p", { class: "vd-hint", text: "The same without a page: python -m vitdemo.explain PHOTO --out FOLDER, or explain(picture, model) in Python." }));
    },
    update() {},
  });
})();

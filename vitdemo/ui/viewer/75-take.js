// Take it home: figures, numbers, and a report that works without the program.
(() => {
  const KINDS_OF_FILE = ["png", "svg", "sheet", "npz", "report"];
  let words, buttons;

  async function take(kind) {
    const about = result;
    words.className = "";
    words.textContent = kind === "report" ? WORDS.take_writing : WORDS.take_drawing;
    for (const button of buttons) button.disabled = true;
    try {
      const answer = await askAgain(about, { question: "take", kind, view: wish(), opacity: look.opacity, colours: look.colours, own_scale: FEATURES.includes(view.kind) ? look.stretch : look.own });
      const size = saveData(answer);
      const sized = size > 1e6 ? phrase(WORDS.megabytes, { n: (size / 1e6).toFixed(1) }) : phrase(WORDS.kilobytes, { n: Math.max(1, Math.round(size / 1e3)) });
      words.textContent = phrase(WORDS.saved_as, { name: answer.name, size: sized });
    } catch (failure) {
      words.textContent = failure.message;
      words.className = "vd-trouble";
    }
    for (const button of buttons) button.disabled = false;
  }

  panel({
    key: "take", place: 6, live: true, title: WORDS.take_title, line: WORDS.take_line,
    build(sheet) {
      buttons = KINDS_OF_FILE.map((kind) => make("button", { type: "button", class: "vd-button", text: WORDS.take_files[kind], onclick: () => take(kind) }));
      words = make("p", { role: "status" });
      sheet.append(make("div", { class: "vd-row" }, ...buttons), words, make("p", { class: "vd-hint", text: WORDS.take_hint }));
    },
    update() {},
  });
})();

// A link to a look of the recorded run's film, and the page that such a link opened: the viewer left here what the address asks for.
let runOfLink;
(() => {
  let asked = null;

  runOfLink = () => {
    asked = window.vitdemoLink?.run && lab.hello.recorded ? window.vitdemoLink : null;
    window.vitdemoLink = null;                                             // once
    return asked?.run ?? null;
  };

  on("film", () => {
    if (!asked || lab.id !== asked.run) return;
    const { layer, head, picture: name, look: at } = asked, { layers, heads, subjects } = lab.scene;
    const subject = subjects.findIndex((one) => one.name === name);
    asked = null;
    film.change({ ...(subject < 0 ? {} : { subject }), ...(layer <= layers ? { layer: layer - 1 } : {}),
      ...(head === "mean" || head <= heads ? { head: head === "mean" ? head : head - 1 } : {}) });
    if (at <= lab.frames.length) setIndex(at - 1);
    film.box.scrollIntoView({ block: "start" });
  });

  const copy = copyButton("vl", WORDS.copy_look, () => ({
    parts: [["tab", "train"], ["run", lab.id], ["look", lab.index + 1], ["picture", lab.scene.subjects[film.subject].name],
      ["layer", film.layer + 1], ["head", film.head === "mean" ? "mean" : film.head + 1]],
    what: phrase(WORDS.look_linked, { map: film.title(), look: lab.index + 1 }), notes: [],
  }));
  film.parts.told.append(copy);
  on("run", () => { copy.hidden = lab.id !== "recorded"; });              // the runs of visitors are theirs: no link names one
})();

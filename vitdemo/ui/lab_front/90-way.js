// The way through a long page: while a run is on show, one line with its parts stays in sight.
(() => {
  const link = (text, act) => make("button", { type: "button", class: "vl-link", text, onclick: act });
  const nav = make("nav", { class: "vl-way", "aria-label": WORDS.parts_of_page, hidden: true });
  const parts = [...$("run").querySelectorAll(".vl-section"), ...$("runs").querySelectorAll(".vl-section")].map((box) => ({
    box, link: link(box.querySelector(".vl-title").textContent, () => {
      box.open = true;
      box.scrollIntoView({ block: "start" });
      box.querySelector("summary").focus({ preventScroll: true });
    }) }));
  nav.append(link(WORDS.top, () => root.scrollIntoView({ block: "start" })), ...parts.map((part) => part.link));
  $("run").before(nav);

  function fill() {
    nav.hidden = !lab.id;
    for (const part of parts) part.link.hidden = part.box.hidden;
  }

  // at once: who scrolls to a run's top must not find it below this line
  on("run", (id) => { nav.hidden = !id; });
  // After the others, which decide by the same news whether their part is there.
  for (const event of ["hello", "run", "status", "news"]) on(event, () => requestAnimationFrame(() => requestAnimationFrame(fill)));
})();

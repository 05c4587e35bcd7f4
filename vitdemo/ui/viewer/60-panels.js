// The tabs under the picture. A panel is { key, title, line, build(sheet), update() }: built when first opened, updated when what it shows has changed.
const panels = [];
let openKey = null;

function panel(made) { panels.push(made); }

function buildPanels() {
  panels.sort((one, two) => one.place - two.place);
  if (props.report) panels.splice(0, panels.length, ...panels.filter((one) => !one.live));      // a report cannot ask the model anything new
  for (const one of panels) {
    one.tab = make("button", { type: "button", role: "tab", id: "vd-tab-" + one.key, "aria-controls": "vd-sheet-" + one.key, "aria-selected": "false", tabindex: -1, text: one.title, onclick: () => openPanel(openKey === one.key ? null : one.key) });
    one.sheet = make("div", { class: "vd-sheet", role: "tabpanel", id: "vd-sheet-" + one.key, "aria-labelledby": "vd-tab-" + one.key, hidden: true });
    $("tabs").append(one.tab);
    $("sheets").append(one.sheet);
  }
  panels[0].tab.tabIndex = 0;
  $("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: "first", End: "last" }[event.key], at = panels.findIndex((one) => one.tab === document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = step === "first" ? panels[0] : step === "last" ? panels.at(-1) : panels[(at + step + panels.length) % panels.length];
    next.tab.focus();
    openPanel(next.key);
  });
}

function openPanel(key, { act = false } = {}) {
  openKey = key;
  for (const one of panels) {
    const open = one.key === key;
    one.tab.setAttribute("aria-selected", String(open));
    one.tab.tabIndex = open || (!key && one === panels[0]) ? 0 : -1;
    one.sheet.hidden = !open;
    if (!open) { if (one.built) one.close?.(); continue; }
    if (!one.built) { one.built = true; one.sheet.append(make("p", { class: "vd-hint", text: one.line })); one.build(one.sheet); }
    one.update();
    if (act) one.act?.();
  }
}

function updatePanels() {
  const open = panels.find((one) => one.key === openKey);
  if (open && open.built && result) open.update();
}

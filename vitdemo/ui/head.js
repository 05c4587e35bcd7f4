// The switch of the projector mode. Whether it is on stands on the page's body, so that every part of the page can see it; an event tells.
const PRESENT = "vd-present", PRESENTED = "vd:presented";
const button = element.querySelector(".vd-switch"), on = () => document.body.classList.contains(PRESENT);

function turn(wanted) {
  document.body.classList.toggle(PRESENT, wanted);
  window.dispatchEvent(new Event(PRESENTED));
}

button.addEventListener("click", () => {
  turn(!on());
  // About has nothing to project: Explore has
  if (on() && !document.querySelector("dialog.vd-show[open]")) document.querySelector("[role=tab]")?.click();
});
window.addEventListener(PRESENTED, () => button.setAttribute("aria-pressed", String(on())));

// A link may begin with it: once, since a page that is put up anew does not begin anew.
if (window.vitdemoPresented === undefined) {
  window.vitdemoPresented = true;
  if (new URLSearchParams(location.search).get("present") === "1") turn(true);
}
button.setAttribute("aria-pressed", String(on()));

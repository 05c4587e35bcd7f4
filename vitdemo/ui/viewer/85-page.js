// What the page around the viewer lacks for those who do not see it or do not use a pointer: a way past its head, and names for examples.
function buildSkip() {
  document.querySelector(".vd-skip")?.remove();
  const link = make("a", { class: "vd-skip", href: "#vd-viewer", text: WORDS.skip, onclick: (event) => {
    event.preventDefault();
    const panel = [...document.querySelectorAll("[role=tabpanel]")].find((one) => one.checkVisibility());
    const goal = root.offsetParent && result ? $("focus") : panel?.querySelector("button:not(:disabled), select, input, h2, h3");
    if (!goal) return;
    if (goal.tabIndex < 0) goal.tabIndex = -1;
    goal.focus();
    goal.scrollIntoView({ block: "start", behavior: gently() });
  } });
  document.body.prepend(link);
}

// Gradio calls the examples "Thumbnail 1 of 12"; what they show stands under each of them.
function nameExamples(turn = 0) {
  const box = document.getElementById("vd-examples");
  if (!box) { if (turn < 40) setTimeout(() => nameExamples(turn + 1), 250); return; }           // not there yet
  const name = () => {
    for (const button of box.querySelectorAll("button.thumbnail-item")) {
      const caption = button.querySelector(".caption-label")?.textContent.trim();
      const words = caption && phrase(WORDS.example, { name: caption });
      if (words && button.getAttribute("aria-label") !== words) button.setAttribute("aria-label", words);
    }
  };
  name();
  markExample();
  new MutationObserver(name).observe(box, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-label"] });
}

// Which example is shown, if one is; Gradio goes on marking the one that was clicked last.
const exampleButtons = () => [...document.querySelectorAll("#vd-examples button.thumbnail-item")];
const isShown = (button) => button.textContent.trim().replaceAll(" ", "-") === result?.link?.example;

function markExample() {
  for (const button of exampleButtons()) {
    if (isShown(button)) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

if (!props.report) { buildSkip(); nameExamples(); }

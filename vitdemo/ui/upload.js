const LARGEST = "LIMIT";    // bytes of an upload

// Files go to the picture input through here, whether chosen, dropped or pasted: Gradio's own part refuses by name what our decoder
// judges by content, says nothing of files that are too large, and does not listen for Ctrl+V.
async function hand(file) {
  if (file.size > LARGEST) {
    show({ message: "That file has " + Math.ceil(file.size / 1e6) + " MB; at most " + Math.floor(LARGEST / 1e6) + " MB can be uploaded: make the picture smaller.", failed: true });
    return;
  }
  const box = document.querySelector("#vd-picture"), field = () => box.querySelector("input[type=file]");
  if (!field()) box.querySelector("button[aria-label*='emove'], button[aria-label*='lear']")?.click();
  for (let wait = 0; !field() && wait < 40; wait++) await new Promise((done) => setTimeout(done, 25));
  if (!field()) return;
  const files = new DataTransfer();
  files.items.add(file.type.startsWith("image/") ? file : new File([file], file.name, { type: "image/unknown" }));
  field().files = files.files;
  const event = new Event("change", { bubbles: true });
  event.handed = true;
  field().dispatchEvent(event);
}

function take(event, list) {
  if (event.handed || !list || !list.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  hand(list[0]);
}

document.addEventListener("change", (event) => { if (event.target.matches?.("#vd-picture input[type=file]")) take(event, event.target.files); }, true);
document.addEventListener("drop", (event) => { if (event.target.closest?.("#vd-picture")) take(event, event.dataTransfer?.files); }, true);
document.addEventListener("paste", (event) => { if (element.offsetParent) take(event, event.clipboardData?.files); }, true);

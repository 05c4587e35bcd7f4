const LARGEST = "LIMIT";    // bytes of an upload
const box = () => document.querySelector("#vd-picture"), field = () => box().querySelector("input[type=file]");
const CLEAR = "#vd-picture button[aria-label*='emove'], #vd-picture button[aria-label*='lear']";           // Gradio's own
const remark = make("p", { role: "status" });                             // a line in the picture input
remark.style.cssText = "position: absolute; inset: auto 1px 44px; margin: 0; padding: 8px; text-align: center; pointer-events: none; "
  + "color: var(--body-text-color); background: var(--block-background-fill)";          // above the bar with the input's buttons

// Files go to the picture input through here, whether chosen, dropped or pasted: Gradio's own part refuses by name what our decoder
// judges by content, says nothing of files that are too large, and does not listen for Ctrl+V.
async function hand(file, given) {
  if (file.size > LARGEST) {
    const megabytes = (n) => phrase(WORDS.megabytes, { n });
    show({ message: phrase(WORDS.upload_too_large, { size: megabytes(Math.ceil(file.size / 1e6)), most: megabytes(Math.floor(LARGEST / 1e6)) }), failed: true });
    return;
  }
  say(given > 1 ? phrase(WORDS.first_of_many, { given }) : "");
  if (!field()) document.querySelector(CLEAR)?.click();
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
  hand(list[0], list.length);
}

// A drop holds files, a folder, or what was dragged from a page: a link or words.
function dropped(event) {
  const given = event.dataTransfer, folder = Array.from(given?.items ?? []).some((item) => item.webkitGetAsEntry?.()?.isDirectory);
  if (!folder && given?.files.length) return take(event, given.files);
  event.preventDefault();
  event.stopImmediatePropagation();
  show({ message: folder ? WORDS.dropped_folder : WORDS.dropped_text, failed: true });
}

function say(text) {
  if (!remark.isConnected) box().append(remark);
  remark.textContent = text;
  remark.hidden = !text;
}

// Browsers show no TIFF and no HEIC, and nothing that is broken: a line stands where the sign for a missing picture would.
function seen(event, can) {
  if (!event.target.matches?.("#vd-picture img")) return;
  event.target.style.display = can ? "" : "none";
  if (!can) say(WORDS.not_shown_here);
  else if (remark.textContent === WORDS.not_shown_here) say("");
}

// A random picture has come, and the one in the input is not looked at any more.
function emptyInput() {
  emptying = true;
  document.querySelector(CLEAR)?.click();
  emptying = false;
}

const carries = (event, kind) => Array.from(event.dataTransfer?.types ?? []).includes(kind);

document.addEventListener("change", (event) => { if (event.target.matches?.("#vd-picture input[type=file]")) take(event, event.target.files); }, true);
document.addEventListener("drop", (event) => { if (event.target.closest?.("#vd-picture")) dropped(event); }, true);
document.addEventListener("paste", (event) => { if (element.offsetParent) take(event, event.clipboardData?.files); }, true);
// Said by the page itself, at once: the server's word would come after what is said of the next file.
let emptying = false;
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#vd-random")) opening.random = inputNow();
  if (!event.target.closest?.(CLEAR)) return;
  say("");
  if (!emptying) show({ message: WORDS.no_picture });
}, true);
document.addEventListener("load", (event) => seen(event, true), true);
document.addEventListener("error", (event) => seen(event, false), true);
// A file that is dropped beside every place for it would be opened by the browser in place of the page.
document.addEventListener("dragover", (event) => { if (carries(event, "Files")) event.preventDefault(); });
document.addEventListener("drop", (event) => {
  if (event.defaultPrevented || !carries(event, "Files")) return;
  event.preventDefault();
  if (element.offsetParent) dropped(event);
});

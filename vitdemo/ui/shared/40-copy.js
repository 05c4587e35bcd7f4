// Links to what is shown. A link holds names and numbers only: nothing that a visitor made, and no key to it.
const PRESENT = "vd-present";                                             // the page's mark while it is projected

// The page's own address with these parts instead of those it was opened by; empty ones are left out. What the page itself is told by its
// address stays (`__theme`), but for the ticket that a private host hands out.
function addressOf(parts) {
  const kept = [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("__") && name !== "__sign");
  const shown = [document.documentElement, document.body].some((node) => node.classList.contains(PRESENT)) ? [["present", 1]] : [];
  const wanted = [...parts, ...shown, ...kept].filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return location.origin + location.pathname + "?" + new URLSearchParams(wanted.map(([name, value]) => [name, value === true ? 1 : value])).toString().replaceAll("%3A", ":");
}

// A button that copies an address, and a field with it where the browser does not let a page copy: over plain http in a class, in some frames.
// `made()` gives { parts, what, notes }: what the link is of, and sentences about what it leaves behind. `kind` begins the names of classes.
function copyButton(kind, text, made) {
  const field = make("input", { type: "text", class: "vd-address", readonly: true, hidden: true, "aria-label": WORDS.link, onfocus: () => field.select() });
  const said = make("span", { class: kind + "-hint", role: "status" });
  const button = make("button", { type: "button", class: kind + "-button", text, onclick: async () => {
    const { parts, what, notes } = made();
    field.value = addressOf(parts);
    said.textContent = "";
    const copied = await copyText(field);
    if (!copied) field.focus();
    const framed = window.top === window ? [] : [WORDS.link_frame];
    said.textContent = [copied ? phrase(WORDS.link_copied, { what }) : WORDS.link_not_copied, ...notes, ...framed].join(" ");
  } });
  return make("div", { class: "vd-copy" }, button, said, field);
}

async function copyText(field) {
  field.hidden = true;
  try { await navigator.clipboard.writeText(field.value); return true; } catch { /* not over plain http, or not in this frame: the old way */ }
  const at = document.activeElement;
  field.hidden = false;
  field.select();
  let copied = false;
  try { copied = document.execCommand("copy"); } catch { /* not at all then */ }
  if (copied) at?.focus?.();
  return copied;
}

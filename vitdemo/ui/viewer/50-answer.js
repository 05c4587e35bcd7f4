// What the model answered, and what it saw.
function prefixInWords() {
  const named = result.prefix_names.filter((name) => !name.startsWith("register")).map((name) => "the " + name), registers = result.prefix - named.length;
  return [...named, ...(registers ? [registers === 1 ? "one register" : registers + " registers"] : [])].join(" and ");
}

function buildAnswer() {
  const list = $("top");
  $("verdict").textContent = result.top.length ? result.top[0][0] + ", " + percent(result.top[0][1]) : "No classes: this model has no head";
  list.replaceChildren(...result.top.map(([name, share]) => make("li", {}, make("span", { class: "vd-name", text: name }), make("span", { class: "vd-share", text: percent(share) }),
    make("div", { class: "vd-track" }, make("div", { class: "vd-fill", style: "width:" + 100 * share + "%" })))));
  const count = result.known === 10 ? "ten" : String(result.known);
  $("limit").textContent = result.top.length ? (result.truth ? "True label: " + result.truth + ". " : "") + result.about + (result.known === 1 ? " It knows one thing only, and always names it." : " It knows only these " + count +
    " things: whatever you show it, it names one of them.") : result.about + " It describes pictures and names nothing. What it finds alike is shown by Similarity and Colours.";
  $("names").hidden = !result.known;
  $("names").querySelector("summary").textContent = result.known === 1 ? "The one thing it knows" : "The " + count + " things it knows";
  $("names").querySelector("p").textContent = result.knows.slice(0, 100).join(", ") + (result.known > 100 ? ", …" : "");
  const [height, width] = result.seen_size, seen = $("seen");
  $("seen-text").textContent = [width + " × " + height + " pixels, cut into " + result.cols + " × " + result.rows + " patches" +
    (result.prefix ? " and joined by " + prefixInWords() + ": " + result.tokens + " tokens." : ".")].concat(result.notes).join(" ");
  seen.setAttribute("aria-label", "The picture as the model gets it, " + width + " by " + height + " pixels");
  seen.width = result.input.width; seen.height = result.input.height;
  seen.getContext("2d").drawImage(result.input, 0, 0);
}

// What the model answered, and what it saw.
function prefixInWords() {
  const named = result.prefix_names.filter((name) => !name.startsWith("register")).map((name) => phrase(WORDS.the_token, { name })), registers = result.prefix - named.length;
  return [...named, ...(registers ? [phrase(WORDS.registers_n, { n: registers })] : [])].reduce((list, last) => phrase(WORDS.list_and, { list, last }));
}

function buildAnswer() {
  const list = $("top");
  $("verdict").textContent = result.top.length ? result.top[0][0] + ", " + percent(result.top[0][1]) : WORDS.no_classes;
  list.replaceChildren(...result.top.map(([name, share]) => make("li", {}, make("span", { class: "vd-name", text: name }), make("span", { class: "vd-share", text: percent(share) }),
    make("div", { class: "vd-track" }, make("div", { class: "vd-fill", style: "width:" + 100 * share + "%" })))));
  const count = result.known === 10 ? WORDS.ten : String(result.known);
  const limit = !result.top.length ? WORDS.knows_none : result.known === 1 ? WORDS.knows_one : phrase(WORDS.knows_only, { count });
  $("limit").textContent = (result.top.length && result.truth ? phrase(WORDS.true_label, { name: result.truth }) + ". " : "") + result.about + " " + limit;
  $("names").hidden = !result.known;
  $("names").querySelector("summary").textContent = result.known === 1 ? WORDS.names_one : phrase(WORDS.names_all, { count });
  $("names").querySelector("p").textContent = result.knows.slice(0, 100).join(", ") + (result.known > 100 ? ", …" : "");
  const [height, width] = result.seen_size, seen = $("seen");
  const { rows, cols, tokens } = result, cut = result.prefix ? phrase(WORDS.seen_cut_and_joined, { width, height, rows, cols, tokens, joined: prefixInWords() }) : phrase(WORDS.seen_cut, { width, height, rows, cols });
  $("seen-text").textContent = [cut, ...result.notes].join(" ");
  seen.setAttribute("aria-label", phrase(WORDS.seen_said, { width, height }));
  seen.width = result.input.width; seen.height = result.input.height;
  seen.getContext("2d").drawImage(result.input, 0, 0);
}

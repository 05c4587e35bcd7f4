// What is said on this page while the server is away, and when it is back. The answer that is shown stays: it is drawn from what the browser has.
(() => {
  const words = make("span"), close = make("button", { type: "button", class: "vd-button", text: "Close", onclick: () => say("") });
  const reload = make("button", { type: "button", class: "vd-button", text: "Reload the page", onclick: () => location.reload() });
  const notice = make("div", { class: "vd-server", hidden: true }, make("p", { role: "status" }, words), reload, close);
  let fading = 0;
  root.append(notice);

  function say(sentence, { stays = false, other = false } = {}) {
    clearTimeout(fading);
    notice.hidden = !sentence;
    reload.hidden = !other;
    close.hidden = !stays;
    words.textContent = sentence;
    if (sentence && !stays && !other) fading = setTimeout(() => say(""), 9000);
  }

  const listen = (kind, act) => theServer().addEventListener(kind, ({ detail }) => { if (root.isConnected) act(detail); });
  listen("away", () => say(NO_ANSWER, { stays: true }));
  listen("back", (detail) => {
    if (detail.other) return say("The program was renewed meanwhile: reload the page to go on.", { other: true });
    detail.example = result?.link?.example;
    if (!detail.fresh || !result) return say("The server answers again. If a picture that you chose is not shown, choose it again.");
    if (detail.example) return say("The server was started anew and looks at this example again.");
    latest = { ...latest, input: false };                                  // it stays, though the input lets go of it
    say("The server was started anew and no longer has this picture. What is shown stays; to ask more about it, please upload it again.", { stays: true });
  });
})();

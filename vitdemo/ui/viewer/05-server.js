// What is said on this page while the server is away, and when it is back. The answer that is shown stays: it is drawn from what the browser has.
(() => {
  const words = make("span"), close = make("button", { type: "button", class: "vd-button", text: WORDS.close, onclick: () => say("") });
  const reload = make("button", { type: "button", class: "vd-button", text: WORDS.reload, onclick: () => location.reload() });
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
  listen("away", () => say(WORDS.server_away, { stays: true }));
  listen("back", (detail) => {
    if (detail.other) return say(WORDS.program_renewed, { other: true });
    detail.example = result?.link?.example;
    if (!detail.fresh || !result) return say(WORDS.server_again);
    if (detail.example) return say(WORDS.server_anew_example);
    latest = { ...latest, input: false };                                  // it stays, though the input lets go of it
    say(WORDS.server_anew, { stays: true });
  });
})();

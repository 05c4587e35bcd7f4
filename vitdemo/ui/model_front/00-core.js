// The browser's half of the model bar: one function of (element, props, server, watch, trigger, upload). What models there are and how far a
// chosen one is, is the server's to say; whatever it says is written as text nodes.
const root = element.querySelector(".vm");
const $ = (name) => root.querySelector(".vm-" + name);
const look = { opacity: 65, colours: "cividis" };                        // the shared painting asks for it; nothing is painted here
const who = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");   // this page, while it waits

let offer = null;                                                         // the models there are, as the server last said
const OWN = { side: null, fit: null, part: null };                        // as the model looks when nobody says otherwise
let chosen = { model: "box", ...OWN };                                    // what looks now
let about = null;                                                         // what the server says of that model
let waiting = null;                                                       // the model that is on its way, and how often it has been asked for

// Rejects with an Error whose message is a sentence for people.
async function ask(request) {
  for (let turn = 1; ; turn++) {
    const answer = await Promise.resolve(server.ask(request)).catch(() => null);
    if (answer && !answer.error) return answer;
    if (answer?.busy && turn < 12) { await pause(150 * turn * (1 + Math.random())); continue; }
    throw new Error(answer ? answer.error : WORDS.server_silent);
  }
}

const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));
const megabytes = (count) => count >= 1000 ? phrase(WORDS.gigabytes, { n: (count / 1000).toFixed(1) }) :
  phrase(WORDS.megabytes, { n: Math.max(1, Math.round(count)) });

// One sentence in the box under the bar, with what can be done about it; nothing takes the box away.
function tell(sentence, { failed = false, share = null, doing = [] } = {}) {
  const box = $("wait");
  box.hidden = !sentence;
  box.dataset.failed = String(failed);
  $("told").textContent = sentence ?? "";
  hear($("live"), sentence ?? "");
  $("progress").hidden = share === null;
  if (share !== null) { if (share === undefined) $("progress").removeAttribute("value"); else $("progress").value = 100 * share; }
  const there = [...$("act").children];
  if (doing.length !== there.length || doing.some((node, place) => node !== there[place])) $("act").replaceChildren(...doing);   // else it keeps the focus
}

const button = (text, act, kind = "vm-button") => make("button", { type: "button", class: kind, text, onclick: act });

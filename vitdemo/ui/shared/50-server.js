// Whether the server is there. Where a connection breaks, Gradio 6.31 serves no more events, and reloads the page when a server answers:
// the opening picture would stand in the place of the visitor's. Here it hears of a failed event instead, and the page goes on with what
// it has, saying in words what happened.
const LOOK_EVERY = 15000, LOOK_AGAIN = [1000, 2000, 4000, 8000], LOOK_PATIENCE = 10000;

// One for the whole page, whichever front end comes first. Its events: "away"; "back", whose detail says what the server is now: the one that
// was there (`fresh` is false), a new one of the same program (true), or one of another program, which this page does not fit (`other`); and
// after "back" from a new one "restart" with the same detail, to which listeners of "back" may have added the name of an `example`.
const theServer = () => window.vitdemoServer ??= watchServer(window.gradio_config);

function watchServer(config) {
  const fetchIt = window.fetch.bind(window), news = new EventTarget(), prefix = config.api_prefix ?? "";
  let id = config.app_id, tries = 0, timer = 0, looking = false;

  const get = (address) => fetchIt(config.root + address, { cache: "no-store", signal: AbortSignal.timeout(LOOK_PATIENCE) })
    .then((answer) => answer.ok ? answer.json() : null).catch(() => null);

  async function look() {
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    const answer = await get(prefix + "/app_id");
    if (answer) await found(answer.app_id);
    else if (tries++ === 0) tell("away", {});
    looking = false;
    if (tries || !document.hidden) timer = setTimeout(look, tries ? LOOK_AGAIN[Math.min(tries, LOOK_AGAIN.length) - 1] : LOOK_EVERY);
  }

  async function found(now) {
    const fresh = now !== id, away = tries > 0;
    tries = 0;
    if (!fresh && !away) return;
    id = now;
    const detail = { fresh, other: fresh && partsOf(await get("/config")) !== partsOf(config) };
    closeToasts();
    tell("back", detail);
    if (fresh && !detail.other) tell("restart", detail);
  }

  const tell = (kind, detail) => news.dispatchEvent(new CustomEvent(kind, { detail }));

  window.fetch = async (input, settings) => {
    const path = String(input?.url ?? input).split("?")[0], own = path.includes(prefix + "/"), messages = path.endsWith("/queue/data");
    try {
      const answer = await fetchIt(input, settings);
      return own && messages && answer.ok ? mended(answer, look) : answer;
    } catch (failure) {
      if (!own || failure?.name === "AbortError") throw failure;
      look();
      if (messages) return new Response(LOST_EVENTS, { headers: { "content-type": "text/event-stream" } });
      if (/\/(queue\/join|run\/\w+)\/?$/.test(path)) return Response.json({ detail: WORDS.server_away, error: WORDS.server_away }, { status: 504 });
      throw failure;
    }
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  for (const event of ["online", "offline"]) window.addEventListener(event, look);
  timer = setTimeout(look, LOOK_EVERY);
  return news;
}

// What Gradio is told of the events it waits for where their stream breaks off.
const LOST_EVENTS = [{ msg: "unexpected_error", message: WORDS.server_away, success: false }, { msg: "close_stream" }].map((one) => "data: " + JSON.stringify(one) + "\n\n").join("");

// A stream of messages that always comes to its end.
function mended(answer, look) {
  const reader = answer.body.getReader(), read = new TextDecoder(), write = new TextEncoder();
  let over = false;
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (!done) {
        const text = read.decode(value, { stream: true });
        over ||= text.includes("close_stream");
        return controller.enqueue(write.encode(text.replaceAll('"session_not_found":true', '"session_not_found":false')));
      }
      if (!over) { controller.enqueue(write.encode("\n\n" + LOST_EVENTS)); look(); }
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, { status: answer.status, headers: answer.headers });
}

// What a page and its server must agree on: the parts and the events by their numbers.
const partsOf = (config) => config && JSON.stringify([config.version, config.components.map((one) => [one.id, one.type]), config.dependencies.map((one) => [one.id, one.targets, one.inputs, one.outputs])]);

// What Gradio said about events that were lost would stand beside the news.
function closeToasts() {
  for (const toast of document.querySelectorAll(".toast-body.error")) if (toast.textContent.includes(WORDS.server_away)) toast.querySelector(".toast-close")?.click();
}

// A model on its way: asked for until it is there, with the bytes that have arrived, and a button that ends it.
const EVERY = 500;

async function want(model, title = "The model") {
  const mark = waiting = { model };
  const cancel = button("Cancel", () => { ask({ question: "cancel", model, who }).catch(() => {}); stay(); });
  try {
    for (;;) {
      const answer = await ask({ question: "want", model, who });
      if (waiting !== mark) return;                                        // something else was chosen meanwhile
      if (answer.state === "ready") return arrived(answer);
      if (answer.state === "failed") return failed(answer.sentence, () => want(model, title));
      if (answer.state === "cancelled") return stay();
      const { done, total } = answer, share = total ? done / total : undefined;
      tell(answer.state === "fetching" ? title + ": " + (total ? megabytes(done / 1e6) + " of " + megabytes(total / 1e6) + " have arrived." : "asking for it …") :
        answer.state === "waiting" ? title + " waits for another download to end." : title + " is being loaded …", { share: answer.state === "fetching" ? share : undefined, doing: [cancel] });
      await pause(EVERY);
    }
  } catch (failure) { if (waiting === mark) failed(failure.message, () => want(model, title)); }
}

function failed(sentence, again) {
  waiting = null;
  if (offer) fillModels();
  if (about) describe(about.line, about.facts);
  tell(sentence, { failed: true, doing: [button("Try again", again), button("Close", stay)] });
}

// It is there: the page is told, and looks through it.
function arrived(answer) {
  const entry = listedAs(answer.model), same = chosen.model === answer.model;
  if (entry) entry.here = true;
  about = answer;
  chosen = { model: answer.model, side: same ? chosen.side : null, whole: same && chosen.whole };
  waiting = null;
  tell("");
  showChosen();
  lookThrough();
}

// The page is told what looks now, one choice at a time: Gradio would lose or mix up choices that overtake each other. It answers with the
// choice's number; whatever was chosen meanwhile follows then.
let serial = 0, told = null, patience = 0;

function lookThrough() {
  if (told) return;
  told = { ...chosen, serial: ++serial };
  trigger("select", told);
  patience = setTimeout(seen, 30000);                                     // no answer ever came: the network was gone
}

function seen() {
  clearTimeout(patience);
  const { model, side, whole } = told;
  told = null;
  if (model !== chosen.model || side !== chosen.side || whole !== chosen.whole) lookThrough();
}

function showChosen() {
  fillModels();
  describe(about.line, about.facts);
  fillSides();
}

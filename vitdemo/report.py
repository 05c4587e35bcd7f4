"""A result as one HTML file: the same viewer with its data inside, working offline from a double click."""

import json
from collections.abc import Iterator
from datetime import date
from html import escape
from string import Template
from typing import Any

from vitdemo import answers, front
from vitdemo.explain import Explanation
from vitdemo.payload import payload

LIMIT_BYTES = 10 * 10**6                        # of a report; what does not fit is left out, and said
HEAVY = 2 * 10**10                              # multiplications beyond which hiding each patch in turn takes too long
CLASSES = 5                                     # for how many of the first classes relevance is kept; for two of a heavy model, for one of its twin
SENTENCE = 400                                  # bytes kept for the line that says what was left out

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { --body-text-color: #18181b; --body-text-color-subdued: #52525b; --border-color-primary: #d4d4d8; --background-fill-primary: #ffffff;
  --background-fill-secondary: #f4f4f5; $light color-scheme: light; }
:root.dark { --body-text-color: #f4f4f5; --body-text-color-subdued: #d4d4d8; --border-color-primary: #3f3f46; --background-fill-primary: #18181b;
  --background-fill-secondary: #27272a; $dark color-scheme: dark; }
body { margin: 0 auto; padding: 1.5rem; max-width: 1180px; font-family: "IBM Plex Sans", ui-sans-serif, system-ui, sans-serif; font-size: 16px;
  background: var(--background-fill-primary); color: var(--body-text-color); }
header { margin-bottom: 1.2rem; } header h1 { margin: 0 0 0.3rem; font-size: 1.6rem; overflow-wrap: anywhere; } header p { margin: 0.2rem 0; color: var(--body-text-color-subdued); }
$style
</style>
</head>
<body>
<header><h1>$title</h1>$facts</header>
<div id="viewer">$page</div>
<script type="application/json" id="data">$data</script>
<script>
const dark = matchMedia("(prefers-color-scheme: dark)"), follow = () => document.documentElement.classList.toggle("dark", dark.matches);
dark.addEventListener("change", follow);
follow();
const held = JSON.parse(document.getElementById("data").textContent);
const canonical = ({ key, ...rest }) => key + " " + JSON.stringify(Object.keys(rest).sort().map((name) => [name, rest[name]]));
const server = { ask: async (request) => held.answers[canonical(request)] ?? { error: "This is a saved report: what was not in it when it was saved needs the program." } };
(function (element, props, server, watch) {
$script
})(document.getElementById("viewer"), { value: held.value, report: true }, server, () => {});
</script>
</body>
</html>
""")


def report(explanation: Explanation, *, about: str = "", limit: int = LIMIT_BYTES) -> str:
    """The report of an explanation as HTML of at most `limit` bytes, or the bare viewer if that alone is larger. It asks nobody for anything."""
    value = payload(explanation, key="picture", about=about)
    room = limit - SENTENCE - len(_page(explanation, value, {}, []).encode())
    held: dict[str, Any] = {}
    left: list[str] = []
    for what, wanted in _parts(explanation):
        if wanted is None:
            left.append(what)
            continue
        for key, answer in wanted:
            size = len(_json({key: answer}))
            if size > room:
                left.append(what)
                break                                                       # the rest of this part is no smaller
            held[key] = answer
            room -= size
    return _page(explanation, value, held, left)


def _page(explanation: Explanation, value: dict[str, Any], held: dict[str, Any], left: list[str]) -> str:
    title = f"{explanation.top(1)[0][0]}, {explanation.top(1)[0][1]:.0%}" if explanation.classes else "What a Vision Transformer looks at"
    return PAGE.substitute(title=escape(title), facts="".join(f"<p>{escape(line)}</p>" for line in _facts(explanation, left)), style=front.style(), light=front.LIGHT, dark=front.DARK,
                           page=front.page(), script=front.script(), data=_json({"value": value, "answers": held}))


def canonical(key: str, question: str, **fields: Any) -> str:
    """A request as the report's script looks it up: its fields in the order of their names."""
    pairs = sorted({"question": question, **fields}.items())
    return f"{key} {json.dumps([list(pair) for pair in pairs], separators=(',', ':'))}"


def _parts(explanation: Explanation) -> Iterator[tuple[str, Iterator[tuple[str, Any]] | None]]:
    """What a reader of the report may ask, the most wanted first: (its name, pairs of request and answer, or None where they would take too
    long). Worked out one by one, so that little is computed that does not fit."""
    top = [explanation.class_index(name) for name, _ in explanation.top(CLASSES)]
    layers = explanation.attention.shape[0]
    T, config, parameters = explanation.tokens, explanation.loaded.config, sum(p.numel() for p in explanation.loaded.model.parameters())
    heavy = T * T * (parameters + 2 * T * config.dim * config.depth) > HEAVY            # T passes, each with two products of T x T in every block
    twin = explanation.twin()
    rollouts = (lambda key, found: ((canonical(key, "rollout", up_to=n, fusion="mean", discard=0), answers.rollout(found, up_to=n)) for n in range(layers, 0, -1)))
    relevances = (lambda key, found, classes: ((canonical(key, "relevance", klass=k), answers.relevance(found, k)) for k in classes))
    tokens = (lambda key, found: ((canonical(key, "token", token=i), answers.token(found, i)) for i in range(found.tokens)))
    yield "head facts", ((canonical("picture", "facts"), answers.facts(explanation)) for _ in range(1))
    yield "the untrained twin", ((canonical("picture", "twin"), payload(twin, key="twin", about="The same architecture with random weights.")) for _ in range(1))
    yield "rollout of some layers", rollouts("picture", explanation)
    yield "relevance of some classes", relevances("picture", explanation, top[:2] if heavy else top)
    occlusions = ((canonical("picture", "occlusion", klass=k), answers.occlusion(explanation, k)) for k in top)
    yield "occlusion", None if heavy else occlusions
    yield "filters and positions", ((canonical("picture", "embedding"), answers.embedding(explanation.loaded)) for _ in range(1))
    yield "some tokens", tokens("picture", explanation)
    yield "the twin's rollout", rollouts("twin", twin)
    yield "the twin's relevance", relevances("twin", twin, top[:1] if heavy else top)
    yield "some of the twin's tokens", tokens("twin", twin)


def _facts(explanation: Explanation, left: list[str]) -> list[str]:
    """Lines under the title: the model, how the report was made, what was left out."""
    model = explanation.loaded.model
    weights = sum(p.numel() for p in model.parameters())
    rows, cols = explanation.grid
    lines = [f"Model: {explanation.model}, {weights:,} parameters, {explanation.attention.shape[0]} layers of {explanation.attention.shape[1]} heads, "
             f"{cols} × {rows} patches, {explanation.tokens} tokens.",
             f"Saved by vitdemo on {date.today().isoformat()}. Everything shown is in this file; testing maps and patch surgery need the program."]
    if left:
        lines.append(f"Left out, because the file would grow too large or take too long to make: {', '.join(left)}.")
    return lines


def _json(value: Any) -> str:
    """JSON that may stand inside a script element, whatever the texts in it are: no tag can be closed or opened."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

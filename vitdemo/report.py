"""A result as one HTML file: the same viewer with its data inside, working offline from a double click."""

import json
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from html import escape
from string import Template
from typing import Any, NamedTuple

import numpy as np

from vitdemo import answers, front
from vitdemo.explain import Explanation
from vitdemo.payload import payload

LIMIT_BYTES = 10 * 10**6                        # of a report; what does not fit is left out, and said
HEAVY = 2 * 10**10                              # multiplications beyond which hiding each patch in turn takes too long
SIMILAR = 100_000                               # numbers of similarity that are kept: to all tokens of up to 316 of them, else to the most wanted
CLASSES = 5                                     # for how many of the first classes relevance is kept; for two of a heavy model, for one of its twin
SENTENCE = 700                                  # bytes kept for the line that says what was left out
FACTS = {                                       # of a model's provenance: what kind of value each must be, and how it is said
    "data": (str, "trained on {}"), "training_pictures": (int, "{:,} training pictures"), "seconds": (float, "{:,.0f} seconds"),
    "hardware": (str, "{}"), "test_accuracy": (float, "{:.1%} of its test pictures right"),
    "validation_accuracy": (float, "{:.1%} of its validation pictures right"),
}

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
    for part in _parts(explanation):
        kept = 0
        for key, answer in part.asked:
            entry = {key: answer()}
            size = len(_json(entry))
            if size > room:
                break                                                       # the rest of this part is no smaller
            held |= entry
            kept, room = kept + 1, room - size
        if kept < part.count:
            left.append(f"{part.count - kept:,} of {part.count:,} {part.what}" if part.count > 1 else part.what)
    return _page(explanation, value, held, left)


class _Part(NamedTuple):
    """Questions of one kind that a reader of the report may ask, the most wanted first."""

    what: str
    count: int                      # of all that might be asked
    asked: list[tuple[str, Callable[[], Any]]]              # (request, what answers it): fewer than `count` where the rest takes too long


def _page(explanation: Explanation, value: dict[str, Any], held: dict[str, Any], left: list[str]) -> str:
    title = f"{explanation.top(1)[0][0]}, {explanation.top(1)[0][1]:.0%}" if explanation.classes else "What a Vision Transformer looks at"
    return PAGE.substitute(title=_text(title), facts="".join(f"<p>{_text(line)}</p>" for line in _facts(explanation, left)), style=front.style(), light=front.LIGHT, dark=front.DARK,
                           page=front.page(), script=front.script(alone=True), data=_json({"value": value, "answers": held}))


def _text(words: str) -> str:
    """Words as HTML; a name may hold half a letter, which no file can."""
    return escape(words.encode("utf-8", "replace").decode())


def canonical(key: str, question: str, **fields: Any) -> str:
    """A request as the report's script looks it up: its fields in the order of their names."""
    pairs = sorted({"question": question, **fields}.items())
    return f"{key} {json.dumps([list(pair) for pair in pairs], separators=(',', ':'))}"


def _parts(explanation: Explanation) -> Iterator[_Part]:
    """What is worth keeping, the most wanted first. Each answer is worked out when its turn comes, so that little is computed in vain."""
    layers, tokens = explanation.attention.shape[0], explanation.tokens
    top = explanation.leading(CLASSES)
    heavy, twin = _heavy(explanation), explanation.twin()

    def rollouts(what: str, key: str, found: Explanation) -> _Part:
        return _Part(what, layers, [(canonical(key, "rollout", up_to=n, fusion="mean", discard=0), partial(answers.rollout, found, up_to=n))
                                    for n in range(layers, 0, -1)])

    def classes(what: str, key: str, found: Explanation, wanted: list[int], answer: Callable[..., Any] = answers.relevance) -> _Part:
        return _Part(what, len(top), [(canonical(key, answer.__name__, klass=k), partial(answer, found, k)) for k in wanted])

    def each_token(what: str, key: str, found: Explanation) -> _Part:
        return _Part(what, tokens, [(canonical(key, "token", token=i), partial(answers.token, found, i)) for i in _by_interest(explanation)])

    def of_features(whose: str, key: str, found: Explanation) -> Iterator[_Part]:
        wanted = [None] * (found.loaded.config.pool == "mean") + _by_interest(explanation)
        yield _Part(f"norms{whose}", 1, [(canonical(key, "norms"), partial(answers.norms, found))])
        yield _Part(f"feature colours{whose}", 3, [(canonical(key, "colours", part=part), partial(answers.colours, found, part)) for part in ("all", "foreground", "background")])
        yield _Part(f"similarities to a token{whose}", len(wanted), [(canonical(key, "similarity", token=i), partial(answers.similarity, found, i)) for i in wanted[:SIMILAR // tokens]])

    yield _Part("head facts", 1, [(canonical("picture", "facts"), partial(answers.facts, explanation))])
    random = "The same architecture with random weights."
    yield _Part("the untrained twin", 1, [(canonical("picture", "twin"), partial(payload, twin, key="twin", about=random))])
    yield rollouts("layers of rollout", "picture", explanation)
    yield classes("classes of relevance", "picture", explanation, top[:2] if heavy else top)
    yield classes("classes of occlusion", "picture", explanation, [] if heavy else top, answers.occlusion)
    yield _Part("filters and positions", 1, [(canonical("picture", "embedding"), partial(answers.embedding, explanation.loaded))])
    yield from of_features("", "picture", explanation)
    yield each_token("tokens (kept: those before the patches, then the patches that are read most)", "picture", explanation)
    yield rollouts("layers of the twin's rollout", "twin", twin)
    yield classes("classes of the twin's relevance", "twin", twin, top[:1] if heavy else top)
    yield from of_features(" of the twin", "twin", twin)
    yield each_token("tokens of the twin", "twin", twin)


def _heavy(explanation: Explanation) -> bool:
    """Whether hiding each patch in turn takes too long: T passes, each with two products of T x T in every block."""
    T, config = explanation.tokens, explanation.loaded.config
    parameters = sum(p.numel() for p in explanation.loaded.model.parameters())
    return T * T * (parameters + 2 * T * config.dim * config.depth) > HEAVY


def _by_interest(explanation: Explanation) -> list[int]:
    """All tokens: those before the patches, then the patches by how much the reader reads of them, over all layers and heads."""
    prefix = explanation.prefix_attention.shape[2]
    order = np.argsort(-explanation.attention.mean((0, 1)).ravel(), kind="stable")
    return [*range(prefix), *(prefix + order).tolist()]


def _facts(explanation: Explanation, left: list[str]) -> list[str]:
    """Lines under the title: the model, how the report was made, what was left out."""
    model = explanation.loaded.model
    weights = sum(p.numel() for p in model.parameters())
    rows, cols = explanation.grid
    lines = [f"Model: {explanation.model}, {weights:,} parameters, {explanation.attention.shape[0]} layers of {explanation.attention.shape[1]} heads, "
             f"{'' if explanation.classes else 'no classes, as it has no head, '}{cols} × {rows} patches, {explanation.tokens} tokens.",
             f"Saved by vitdemo on {date.today().isoformat()}. Everything shown is in this file; testing maps and patch surgery need the program."]
    known = explanation.loaded.provenance
    told = [form.format(known[key]) for key, (kind, form) in FACTS.items() if type(known.get(key)) is kind]
    if told:
        line = ", ".join(told)[:400]
        lines.insert(1, f"{line[:1].upper()}{line[1:]}.")
    if left:
        lines.append(f"Left out, because the file would grow too large or take too long to make: {'; '.join(left)}.")
    return lines


def _json(value: Any) -> str:
    """JSON that may stand inside a script element, whatever the texts in it are: no tag can be closed or opened."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

"""What the page asks about a result it shows: one door, every request checked, every answer plain JSON or one sentence.

    ask({"question": "token", "key": ..., "token": 7}) -> {"reads": ..., "read_by": ..., "total": ...} or {"error": "One sentence."}

The functions that a browser calls have no queue before them, so what takes long goes through `Slots`; a test or a ranking works about a
second at a time and is asked again until it is done.
"""

import base64
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from vitdemo import answers, faithfulness, features, front, takehome, words
from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation, explain, untrained
from vitdemo.payload import payload, whole_picture
from vitdemo.surgery import Surgery
from vitdemo.ui import fields, operated, stock, testing
from vitdemo.ui.fields import Answer, Request, RequestError, sentence
from vitdemo.ui.models import describe_box
from vitdemo.ui.results import Gone, Kept, Results
from vitdemo.ui.slots import Busy, Slots
from vitdemo.ui.testing import Jobs, Occlusion, Trial, Way

log = logging.getLogger(__name__)


class Offspring(NamedTuple):
    """A result that was made from another one: its key, and what its answer says besides."""

    key: str
    beside: Answer


class Questions:
    """Answers the page's questions about what is kept in `results`; `box` is the model that any other one may be compared with. Safe in
    threads; nobody can ask without a result's key."""

    def __init__(self, results: Results, box: Loaded):
        self._results = results
        self._box = box
        self._quick = threading.BoundedSemaphore(4)
        self._slots = Slots(working=2, waiting=4, patience=10)
        self._heavy = Slots(working=1, waiting=2, patience=10, of_one=2)    # for what takes seconds; with the others half of the page's threads
        self._short = {"token": self._token, "rollout": self._rollout, "facts": self._facts, "similarity": self._similarity,
                       "picture": self._picture}
        self._long = {"relevance": self._relevance, "colours": self._colours, "norms": self._norms, "embedding": self._embedding,
                      "twin": self._twin, "box": self._boxed, "surgery": self._surgery, "take": self._take}
        self._in_slices = {"occlusion": self._occlusion, "test": self._test, "rank": self._rank}

    def ask(self, request: Any) -> Answer:
        """The answer to one request, or {"error": sentence}; with "gone" where the picture must be uploaded again. Never raises."""
        try:
            return self._answer(request)
        except Gone as error:
            return {"error": sentence(str(error)), "gone": True}
        except Busy as error:
            return {"error": sentence(str(error)), "busy": True}
        except RequestError as error:
            return {"error": sentence(str(error))}
        except Exception:
            return {"error": fields.unexpected(log, "question", words.UNEXPECTED)}

    def _answer(self, request: Any) -> Answer:
        if not isinstance(request, dict):
            raise RequestError(f"a question is an object with a name and a key, not {fields.brief(request)}")
        question = fields.choice(request, "question", (*self._short, *self._long, *self._in_slices))
        if not isinstance(request.get("key"), str):
            raise RequestError(f"the field 'key' must be the text that came with the result, not {fields.brief(request.get('key'))}")
        kept = self._results.get(request["key"])
        if question in self._in_slices:
            return self._in_slices[question](kept, request)
        whose = None if kept.stays else kept.turn                           # what is on the page from the start is everybody's
        if question in self._short:
            with self._quick:
                return self._short[question](kept, request)
        with (self._heavy if question == "take" else self._slots).one(kept.turn, whose=whose):
            return self._long[question](kept, request)

    def _token(self, kept: Kept, request: Request) -> Answer:
        return answers.token(kept.explanation, fields.whole(request, "token", kept.explanation.tokens - 1))

    def _rollout(self, kept: Kept, request: Request) -> Answer:
        view = fields.view({"view": {**request, "kind": "rollout"}}, kept.explanation)
        return answers.rollout(kept.explanation, up_to=view["up_to"], fusion=view["fusion"], discard=view["discard"])

    def _facts(self, kept: Kept, request: Request) -> Answer:
        return answers.facts(kept.explanation)

    def _picture(self, kept: Kept, request: Request) -> Answer:
        """All of the picture, as it was before margins were laid around it, and the part of it that was looked at, where one was chosen."""
        return {**whole_picture(kept.explanation), "part": kept.part}

    def _similarity(self, kept: Kept, request: Request) -> Answer:
        token = fields.token(request, kept.explanation)
        return answers.similarity(kept.explanation, token, other=self._beside(request))

    def _colours(self, kept: Kept, request: Request) -> Answer:
        part = fields.choice(request, "part", features.PARTS, default=features.PARTS[0])
        other = self._beside(request)
        return kept.remember(("colours", part, request.get("beside")), lambda: answers.colours(kept.explanation, part, other=other))

    def _norms(self, kept: Kept, request: Request) -> Answer:
        return kept.remember("norms", lambda: answers.norms(kept.explanation))

    def _beside(self, request: Request) -> Explanation | None:
        """The result that a request sets beside its own, by that one's key."""
        key = request.get("beside")
        if key is not None and not isinstance(key, str):
            raise RequestError(f"the field 'beside' must be the text that came with the other result, not {fields.brief(key)}")
        try:
            return None if key is None else self._results.get(key).explanation
        except Gone:
            raise RequestError("the result beside this one is no longer kept: look at its picture again") from None

    def _relevance(self, kept: Kept, request: Request) -> Answer:
        return answers.relevance(kept.explanation, fields.klass(request, kept.explanation))

    def _occlusion(self, kept: Kept, request: Request) -> Answer:
        trial = Occlusion(kept, fields.klass(request, kept.explanation))
        return self._go_on(kept, trial, trial.answer)

    def _embedding(self, kept: Kept, request: Request) -> Answer:
        return answers.embedding(kept.explanation.loaded)

    def _twin(self, kept: Kept, request: Request) -> Answer:
        def make() -> Offspring:
            loaded = self._relative(kept.explanation.loaded, "untrained", untrained, stock.bytes_of(kept.explanation.loaded))
            made = kept.explanation.through(loaded)
            return Offspring(self._results.keep(made), {})

        return self._child(kept, "twin", make, about="The same architecture with random weights.")

    def _boxed(self, kept: Kept, request: Request) -> Answer:
        """The same picture through the model in the box, prepared as that one wants it."""
        def make() -> Offspring:
            return Offspring(self._results.keep(explain(kept.explanation.picture, self._box, part=kept.part)), {})

        return self._child(kept, "box", make, about=describe_box(self._box))

    def _surgery(self, kept: Kept, request: Request) -> Answer:
        asked = kept.explanation
        patches = asked.grid[0] * asked.grid[1]
        masked = tuple(sorted(set(fields.patches(request, "masked", patches))))
        done = Surgery(patches, masked, fields.permutation(request, "order", patches), fields.flag(request, "positions", default=True))

        def make() -> Offspring:
            loaded = asked.loaded if done.positions else self._relative(asked.loaded, "without positions", operated.without_positions)
            made = operated.operate(asked, loaded, done)
            return Offspring(self._results.keep(made.explanation), {"difference": made.difference, "before": made.before})

        return self._child(kept, done, make, about="The picture after surgery.")

    def _child(self, kept: Kept, name: Any, make: Callable[[], Offspring], *, about: str) -> Answer:
        """The payload of a result made from `kept`: the one made before, if it is still there."""
        child = kept.remember(name, make)
        try:
            result = self._results.get(child.key)
        except Gone:
            kept.forget(name)
            child = kept.remember(name, make)
            result = self._results.get(child.key)
        return {**payload(result.explanation, key=child.key, about=about), **child.beside}

    def _test(self, kept: Kept, request: Request) -> Answer:
        view, way = fields.view(request, kept.explanation), _way(kept, request)
        trial = Trial(kept, [view], way)
        return self._go_on(kept, trial, lambda: testing.test_answer(trial, way))

    def _rank(self, kept: Kept, request: Request) -> Answer:
        way = _way(kept, request)
        named = testing.candidates(kept.explanation, way.klass)
        views = {name: fields.view({"view": view}, kept.explanation) for name, view in named.items()}
        trial = Trial(kept, list(views.values()), way)
        return self._go_on(kept, trial, lambda: testing.rank_answer(trial, way, views))

    def _go_on(self, kept: Kept, trial: Jobs, finish: Callable[[], Answer]) -> Answer:
        """Work on a trial for a moment; how far it is, and once it is done the answer. Who finds no slot hears how far it is, and that
        nothing was done just now."""
        busy = {}
        if not trial.finished:
            try:
                with self._heavy.one(kept.turn, whose=kept.turn):
                    trial.work()
            except Busy:
                busy = {"busy": True}
        return {**trial.progress, **(finish() if trial.finished else busy)}

    def _take(self, kept: Kept, request: Request) -> Answer:
        kind = fields.choice(request, "kind", takehome.KINDS)
        view = fields.view(request, kept.explanation, fields.KINDS + fields.FEATURES)
        taken = takehome.take(kept.explanation, kind, view, opacity=fields.number(request, "opacity", 100, default=65) / 100,
                              colours=fields.choice(request, "colours", front.COLOURS, default=front.COLOURS[0]),
                              own_scale=fields.flag(request, "own_scale", default=False))
        return {"name": taken.name, "type": taken.type, "data": base64.b64encode(taken.data).decode()}

    def _relative(self, loaded: Loaded, name: str, make: Callable[[Loaded], Loaded], size: int = 0) -> Loaded:
        """A model of `size` bytes of its own made from another one, kept with all others; all visitors together get one."""
        found = self._results.stock.get((loaded.model, name), lambda: make(loaded), size)
        return replace(found, preprocessing=loaded.preprocessing)           # whoever asked first may have looked at another size


def _way(kept: Kept, request: Request) -> Way:
    """How a test is to be made, as the request says."""
    return Way(fields.klass(request, kept.explanation), fields.choice(request, "how", faithfulness.HIDING, default="mean"),
               fields.flag(request, "insertion", default=False))

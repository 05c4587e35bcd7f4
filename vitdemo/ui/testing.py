"""The page's tests of maps, a second at a time: each test is made of jobs that are kept beside the result and gone on with whenever the
page asks again. Random orders are shared by all maps that are tested for the same class in the same way."""

import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from vitdemo import answers, faithfulness
from vitdemo.explain import Explanation
from vitdemo.faithfulness import Curves, Hider
from vitdemo.ui.fields import sentence
from vitdemo.ui.results import Kept

SLICE = 1.0                                     # seconds a call works, plus what is left of the step it is in
STEP_OPERATIONS = 2e10                          # of one step: half a second or less on two cores

Steps = Generator[int, None, Any]               # yields how many pictures are done, returns what came out


class Way(NamedTuple):
    """How a map is tested: by which class's probability, how patches are hidden, and whether they are hidden or shown in order."""

    klass: int
    how: str
    insertion: bool


class Tested(NamedTuple):
    """A map's order of patches, the most important first, and the curves of that order and its reverse."""

    order: np.ndarray
    curves: Curves


class Job:
    """A computation of `total` pictures that goes on whenever somebody works on it: one thread at a time."""

    def __init__(self, steps: Steps, total: int):
        self._steps, self.total = steps, total
        self.done, self.finished, self.result = 0, False, None

    def work(self, until: float) -> None:
        """Go on until the clock says `until` or all is done; one step at least."""
        while not self.finished:
            try:
                self.done = min(next(self._steps), self.total - 1)          # all is done when the answer is there
            except StopIteration as end:
                self.done, self.finished, self.result = self.total, True, end.value
            if time.monotonic() >= until:
                return


class Jobs:
    """Jobs that are kept beside a result, as far as they have come; the same ones whoever asks for them."""

    def __init__(self, kept: Kept):
        self._kept = kept
        self._jobs: dict[tuple[Any, ...], Job] = {}

    def add(self, name: tuple[Any, ...], make: Callable[[], Job]) -> None:
        self._jobs[name] = self._kept.remember(name, make)

    @property
    def progress(self) -> dict[str, int]:
        """How many pictures are done, and of how many."""
        return {"done": sum(job.done for job in self._jobs.values()), "total": sum(job.total for job in self._jobs.values())}

    @property
    def finished(self) -> bool:
        return all(job.finished for job in self._jobs.values())

    @property
    def results(self) -> list[Any]:
        return [job.result for job in self._jobs.values()]

    def work(self) -> None:
        """Go on for about SLICE seconds, the model in memory. A job that fails is forgotten, so that the next call starts it afresh."""
        _held = self._kept.held()                                           # it may have to be loaded, which counts as no work
        until = time.monotonic() + SLICE
        for name, job in self._jobs.items():
            if job.finished:
                continue
            try:
                job.work(until)
            except Exception:
                self._kept.forget(name)
                raise
            if time.monotonic() >= until:
                return


class Trial(Jobs):
    """Maps against their reverses and random orders."""

    def __init__(self, kept: Kept, views: list[dict[str, Any]], way: Way):
        super().__init__(kept)
        patches = _patches(kept)
        levels = len(faithfulness.counts(patches))
        along = {orders: orders * (levels - 2) + 2 for orders in (2, faithfulness.RANDOM)}                  # pictures of so many curves
        for view in views:
            total = along[2] + (patches + 1 if view["kind"] == "occlusion" else 0)
            self.add(("map", *view.values(), *way), lambda view=view, total=total: Job(_of_map(kept, view, way), total))
        self.add(("random", *way), lambda: Job(_of_chance(kept, way), along[faithfulness.RANDOM]))

    def outcome(self) -> tuple[list[Tested], Curves]:
        """What came out for each map, and the curves of the random orders."""
        *maps, chance = self.results
        return maps, chance


class Occlusion(Jobs):
    """The occlusion map of a class."""

    def __init__(self, kept: Kept, klass: int):
        super().__init__(kept)
        self.add(("occlusion", klass), lambda: Job(_of_occlusion(kept, klass), _patches(kept) + 1))

    def answer(self) -> dict[str, Any]:
        return answers.occluded(self._kept.explanation, *self.results)


def test_answer(trial: Trial, way: Way) -> dict[str, Any]:
    """Curves, areas and the verdict of one finished map."""
    ((order, found),), chance = trial.outcome()
    own, back = faithfulness.area(found)
    areas = faithfulness.area(chance)
    verdict = faithfulness.judge(own, areas, insertion=way.insertion)
    low, high = faithfulness.spread(chance.probabilities)
    return {
        "order": order.tolist(), "shares": _plain(found.shares),
        "map": _plain(found.probabilities[0]), "reversed": _plain(found.probabilities[1]),
        "random_mean": _plain(chance.probabilities.mean(0)), "random_low": _plain(low), "random_high": _plain(high),
        "area": _plain(own), "area_reversed": _plain(back), "area_random": _plain((areas.mean(), verdict.low, verdict.high)),
        "kind": verdict.kind, "sentence": sentence(verdict.sentence),
    }


def candidates(explanation: Explanation, klass: int) -> dict[str, dict[str, Any]]:
    """The five maps that a ranking compares: their names, and views to check and show them by."""
    of_reader = "CLS attention" if explanation.loaded.config.pool == "cls" else "attention of the average patch"
    return {f"{of_reader}, last layer": {"kind": "attention"}, "mean attention": {"kind": "mean attention"}, "rollout": {"kind": "rollout"},
            "relevance": {"kind": "relevance", "klass": klass}, "occlusion": {"kind": "occlusion", "klass": klass}}


def rank_answer(trial: Trial, way: Way, views: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All finished maps, the best first: lowest area where patches were hidden, highest where they were shown."""
    maps, chance = trial.outcome()
    areas, rows = faithfulness.area(chance), []
    for (name, view), tested in zip(views.items(), maps, strict=True):
        own = faithfulness.area(tested.curves)[0]
        verdict = faithfulness.judge(own, areas, insertion=way.insertion)
        shown = {field: value for field, value in view.items() if field != "klass" or value is not None}
        beaten = faithfulness.percentile(own, areas, insertion=way.insertion)
        rows.append({"name": name, "view": shown, "area": _plain(own), "percentile": _plain(beaten), "kind": verdict.kind,
                     "sentence": sentence(verdict.sentence)})
    rows.sort(key=lambda row: row["area"], reverse=way.insertion)
    return {"rows": rows, "random": _plain((areas.mean(), verdict.low, verdict.high))}


def pictures_at_once(explanation: Explanation) -> int:
    """How many pictures a step may take, by the operations of one: large models go one by one, so that a slice stays near a second."""
    config, T = explanation.loaded.config, explanation.tokens
    operations = config.depth * (24 * T * config.dim**2 + 4 * T * T * config.dim)
    return max(1, min(faithfulness.BATCH, int(STEP_OPERATIONS / operations)))


def _of_map(kept: Kept, view: dict[str, Any], way: Way) -> Steps:
    explanation, before = kept.explanation, 0
    if view["kind"] == "occlusion":
        weights = yield from _of_occlusion(kept, view["klass"])
        before = weights.size + 1
    else:
        weights = explanation.patches(answers.map_of(explanation, view))
    order = faithfulness.order_of(weights)
    return Tested(order, (yield from _along(kept, np.stack((order, order[::-1])), way, before)))


def _of_chance(kept: Kept, way: Way) -> Steps:
    return (yield from _along(kept, faithfulness.random_orders(_patches(kept)), way, 0))


def _along(kept: Kept, orders: np.ndarray, way: Way, before: int) -> Steps:
    """Curves along `orders`; `before` pictures were done already."""
    hider, batch, found = _hider(kept, way.klass, way.how), pictures_at_once(kept.explanation), None
    for done, _, found in faithfulness.curves(hider, orders, insertion=way.insertion, batch=batch):
        yield before + done
    return found


def _of_occlusion(kept: Kept, klass: int) -> Steps:
    """The occlusion map of a class, (rows, cols)."""
    drops = None
    for done, _, drops in faithfulness.occlusion_steps(_hider(kept, klass, "mean"), batch=pictures_at_once(kept.explanation)):
        yield done
    return drops


def _patches(kept: Kept) -> int:
    rows, cols = kept.explanation.grid
    return rows * cols


def _hider(kept: Kept, klass: int, how: str) -> Hider:
    return kept.remember(("hider", klass, how), lambda: Hider(kept.explanation.loaded, kept.explanation.tensor, klass, how))


def _plain(numbers: Any) -> Any:
    """Numbers as JSON has them, to five places."""
    return np.round(numbers, 5).tolist()

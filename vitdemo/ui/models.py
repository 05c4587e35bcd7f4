"""Which model a visitor looks through, by its id: the one in the box, a published one, the best weights of a run of theirs (a file they
loaded is one), or the recorded run's.

    "box" or None · "tiny", the tiny one beside it · "zoo:dino-s16", an entry of `vitdemo.zoo` · "hub:user/name", any other on a hub (at home only) · else the id of a run
"""

import re
from pathlib import Path
from typing import Any

from vitdemo import checkpoint, hub, loading, settings, words, zoo
from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation
from vitdemo.runs import RunError, RunFolder, Scheduler
from vitdemo.settings import Settings
from vitdemo.ui import gpu
from vitdemo.ui.fields import sentence
from vitdemo.ui.stock import Stock, placed

BOX, TINY, ZOO, HUB = loading.BOX, loading.TINY, "zoo:", "hub:"         # two ids, and what two kinds of ids begin with
RECORDED = "recorded"                           # the name of the run that ships with the program, where a run's id is expected
EXAMPLES = Path(__file__).resolve().with_name("examples")                   # the example pictures
RECORDED_FOLDER = Path(__file__).resolve().with_name("recorded")
REPO = re.compile(r"[a-z0-9][\w.-]{0,95}/[a-z0-9][\w.-]{0,95}", re.ASCII | re.IGNORECASE)


class Models:
    """Finds models and has `stock` keep those in use, for all visitors together: a model holds nothing of theirs. Fetches nothing."""

    def __init__(self, box: Loaded, scheduler: Scheduler, owner: Settings | None = None):
        device = settings.device()
        self.box = placed(box, device)
        self.owner = owner or settings.read()
        self._explain = gpu.explainer(self.owner)
        self.stock = Stock(self.owner.models_megabytes * 10**6, device)
        self._scheduler = scheduler
        unknown = [name for name in self.owner.models if name not in ("all", "small") and not zoo.find(name)]
        if unknown:
            raise ValueError(f"VITDEMO_MODELS must be all, small, none or names of published models; {unknown[0]!r:.60} is none of them")

    def get(self, model_id: str | None) -> Loaded:
        """The model, loaded if need be. Raises RunError with a sentence where there is none (any more), or none on this computer yet."""
        if model_id in (None, "", BOX):
            return self.box
        path = self._path(model_id)
        try:
            state = path.stat()
        except OSError:
            raise RunError(words.RUN_MODEL_GONE) from None
        entry, written = self._entry(model_id), state.st_mtime_ns
        size = 4 * entry.parameters if entry else state.st_size
        try:
            return self.stock.get((model_id, written), lambda: self._load(model_id, path, written), size)
        except RunError:
            if _written(path) in (written, None):
                raise
            return self.get(model_id)                                       # a run that is going on wrote better weights meanwhile

    def explain(self, picture: Any, loaded: Loaded, **how: Any) -> Explanation:
        """`vitdemo.explain.explain`, on a GPU where one is lent for it."""
        return self._explain(picture, loaded, **how)

    def listed(self) -> tuple[zoo.Entry, ...]:
        """The published models that may be asked for here."""
        names, small = self.owner.models, settings.SMALL_MEGABYTES
        return tuple(entry for entry in zoo.ENTRIES
                     if entry.name in names or "all" in names or "small" in names and entry.megabytes <= small)

    def where(self, model_id: str) -> zoo.Hub | zoo.Torchvision | None:
        """Where a model is fetched from; None for one that is nowhere but here. Raises RunError for one that may not be asked for."""
        if model_id.startswith(ZOO):
            entry = self._entry(model_id)
            if entry is None:
                raise RunError(f"There is no model called {model_id.removeprefix(ZOO)!r:.60} to choose here.")
            return entry.where
        if not model_id.startswith(HUB):
            return None
        repo = model_id.removeprefix(HUB)
        if not self.owner.hub:
            raise RunError("On this host only the models in the list can be opened: run the program on your own computer to open others.")
        if not REPO.fullmatch(repo):
            raise RunError(f"A model on a hub is called user/name, not {repo!r:.60}.")
        return zoo.Hub(repo)

    def here(self, model_id: str | None) -> bool:
        """Whether a model can be had without fetching anything. Raises RunError for one that may not be asked for."""
        try:
            return model_id in (None, "", BOX) or bool(self._path(model_id))
        except NotHere:
            return False

    def check(self, model_id: str) -> None:
        """Raises RunError for a model that may not be asked for."""
        self.here(model_id)

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a visitor's run or of the recorded one. Raises RunError for anything else."""
        return RunFolder(RECORDED_FOLDER) if run_id == RECORDED else self._scheduler.read(run_id)

    def source(self, model_id: str | None) -> str:
        """The data set that a model learned from: a run's own, CIFAR-10 for the one in the box; "" where nobody says. Raises RunError."""
        if model_id in (None, "", BOX, TINY):
            return "cifar10"
        if self.where(model_id):
            entry = self._entry(model_id)
            return entry.learned_from if entry else ""
        return str(self.folder(model_id).config().get("data", ""))

    def describe(self, model_id: str | None, loaded: Loaded) -> str:
        """Which model this is and how good, in one sentence for a person. Raises RunError."""
        if model_id in (None, "", BOX):
            return describe_box(self.box)
        if model_id == TINY:
            return _with_accuracy(words.MODEL_TINY, loaded)
        if self.where(model_id):
            entry = self._entry(model_id)
            if entry is None:
                return _with_accuracy(words.MODEL_NAMED.format(name=model_id.removeprefix(HUB)), loaded)
            return f"{entry.title}: {entry.result}." if entry.result else f"{entry.title}."
        config = self.folder(model_id).config()
        title = str(config.get("title") or "")[:60]
        if model_id == RECORDED:
            return _with_accuracy(words.MODEL_RECORDED, loaded)
        if config.get("imported"):
            return _with_accuracy(words.MODEL_NAMED.format(name=title or loaded.name), loaded)
        return _with_accuracy(words.MODEL_OF_RUN + (f" “{title}”" if title else ""), loaded)

    def _entry(self, model_id: str) -> zoo.Entry | None:
        if not model_id.startswith(ZOO):
            return None
        return next((entry for entry in self.listed() if entry.name == model_id.removeprefix(ZOO)), None)

    def _path(self, model_id: str) -> Path:
        """The file of a model's weights, which may be gone where it is a run's. Raises RunError."""
        if not isinstance(model_id, str):
            raise RunError(words.NO_SUCH_MODEL)
        if model_id == TINY:
            try:
                return checkpoint.tiny_path()
            except checkpoint.CheckpointError:
                raise NotHere(words.NO_SUCH_MODEL) from None
        where = self.where(model_id)
        if where is None:
            return self.folder(model_id).best
        path = hub.cached(where)
        if path is None:
            entry = self._entry(model_id)
            name, much = (entry.title, f" ({entry.megabytes:,} MB)") if entry else (model_id.removeprefix(HUB), "")
            raise NotHere(f"{name} is not on this computer yet: choose it in the list of models to fetch it{much}.")
        return path

    def _load(self, model_id: str, path: Path, written: int) -> Loaded:
        """The model whose weights were `written` then. Raises RunError where others stand in their place, or none."""
        if _written(path) != written:
            raise RunError(words.RUN_MODEL_GONE)
        entry, where = self._entry(model_id), self.where(model_id)
        if where is None:
            try:
                return checkpoint.load(path)
            except (OSError, checkpoint.CheckpointError):
                raise RunError(words.RUN_MODEL_GONE) from None
        try:
            return loading.load(entry.name if entry else where, download=False)
        except ValueError as error:                                         # of many kinds, each of them one sentence
            raise RunError(sentence(str(error))) from None


class NotHere(RunError):
    """A model that can be asked for must be fetched first."""


def describe_box(box: Loaded) -> str:
    """Which model is in the box, or stands in its place by the owner's wish, and how good it is."""
    return _with_accuracy(words.MODEL_IN_THE_BOX if settings.read().checkpoint is None else words.MODEL_NAMED.format(name=box.name), box)


def _written(path: Path) -> int | None:
    """When a file was written last; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _with_accuracy(name: str, loaded: Loaded) -> str:
    for key, which in (("test_accuracy", "test"), ("validation_accuracy", "validation")):       # a run is tested once, at its end
        share = loaded.provenance.get(key)
        if isinstance(share, float):
            return f"{name} is right on {share:.0%} of its {which} pictures."
    return f"{name}."

"""Which model a visitor looks through: the one in the box, the best weights of a run of theirs, a file they loaded, or the recorded run's."""

import threading
from collections import OrderedDict
from pathlib import Path

from vitdemo import checkpoint, settings
from vitdemo.checkpoint import Loaded
from vitdemo.runs import RunError, RunFolder, Scheduler
from vitdemo.ui import words

RECORDED = "recorded"                           # the name of the run that ships with the program, where a run's id is expected
EXAMPLES = Path(__file__).resolve().with_name("examples")                   # the example pictures
RECORDED_FOLDER = Path(__file__).resolve().with_name("recorded")


class Models:
    """Loads models when they are asked for and keeps the few used last, for all visitors together: a model holds nothing of theirs."""

    def __init__(self, box: Loaded, scheduler: Scheduler, keep: int = 4):
        self.box = box
        self._scheduler = scheduler
        self._keep = keep
        self._lock = threading.Lock()
        self._recent: OrderedDict[tuple[str, int], Loaded] = OrderedDict()

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a visitor's run or of the recorded one. Raises RunError for anything else."""
        return RunFolder(RECORDED_FOLDER) if run_id == RECORDED else self._scheduler.read(run_id)

    def get(self, run_id: str | None) -> Loaded:
        """The model of a run, or the one in the box for None. Raises RunError with a sentence where there is none (any more)."""
        if not run_id:
            return self.box
        best = self.folder(run_id).best
        try:
            key = run_id, best.stat().st_mtime_ns
            with self._lock:
                if key in self._recent:
                    self._recent.move_to_end(key)
                    return self._recent[key]
            loaded = checkpoint.load(best)
        except (OSError, checkpoint.CheckpointError):
            raise RunError(words.RUN_MODEL_GONE) from None
        with self._lock:
            self._recent[key] = loaded
            while len(self._recent) > self._keep:
                self._recent.popitem(last=False)
        return loaded

    def source(self, run_id: str | None) -> str:
        """The data set that a model learned from: a run's own, CIFAR-10 for the one in the box. Raises RunError."""
        return str(self.folder(run_id).config().get("data", "")) if run_id else "cifar10"

    def describe(self, run_id: str | None, loaded: Loaded) -> str:
        """Which model this is and how good, in one sentence for a person. Raises RunError."""
        if not run_id:
            return describe_box(self.box)
        config = self.folder(run_id).config()
        title = str(config.get("title") or "")[:60]
        name = words.MODEL_RECORDED if run_id == RECORDED else words.MODEL_NAMED.format(name=title or loaded.name) if config.get("imported") else \
            words.MODEL_OF_RUN + (f" “{title}”" if title else "")
        return _with_accuracy(name, loaded)


def describe_box(box: Loaded) -> str:
    """Which model is in the box, or stands in its place by the owner's wish, and how good it is."""
    return _with_accuracy(words.MODEL_IN_THE_BOX if settings.read().checkpoint is None else words.MODEL_NAMED.format(name=box.name), box)


def _with_accuracy(name: str, loaded: Loaded) -> str:
    for key, which in (("test_accuracy", "test"), ("validation_accuracy", "validation")):       # a run is tested once, at its end
        share = loaded.provenance.get(key)
        if isinstance(share, float):
            return f"{name} is right on {share:.0%} of its {which} pictures."
    return f"{name}."

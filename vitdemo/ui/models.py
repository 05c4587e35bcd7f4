"""Which model a visitor looks through: the one in the box, or the best weights of a run of theirs."""

import threading
from collections import OrderedDict

from vitdemo import checkpoint, settings
from vitdemo.checkpoint import Loaded
from vitdemo.runs import RunError, Scheduler
from vitdemo.ui import words


class Models:
    """Loads models when they are asked for and keeps the few used last, for all visitors together: a model holds nothing of theirs."""

    def __init__(self, box: Loaded, scheduler: Scheduler, keep: int = 4):
        self.box = box
        self._scheduler = scheduler
        self._keep = keep
        self._lock = threading.Lock()
        self._recent: OrderedDict[tuple[str, int], Loaded] = OrderedDict()

    def get(self, run_id: str | None) -> Loaded:
        """The model of a run, or the one in the box for None. Raises RunError with a sentence where there is none (any more)."""
        if not run_id:
            return self.box
        best = self._scheduler.read(run_id).best
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
        return str(self._scheduler.read(run_id).config().get("data", "cifar10")) if run_id else "cifar10"


def describe(loaded: Loaded, *, trained_here: bool) -> str:
    """Which model this is and how good, in one sentence for a person."""
    facts = loaded.provenance
    box = words.MODEL_IN_THE_BOX if settings.read().checkpoint is None else words.MODEL_NAMED.format(name=loaded.name)
    name, key, which = (words.MODEL_OF_RUN, "validation_accuracy", "validation") if trained_here else (box, "test_accuracy", "test")
    share = facts.get(key)
    return f"{name} is right on {share:.0%} of its {which} pictures." if isinstance(share, float) else f"{name}."

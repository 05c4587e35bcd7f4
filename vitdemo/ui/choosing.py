"""What the page's model bar asks: which models there are, how far a chosen one is, and a file of the visitor's own taken in.

    ask({"question": "want", "model": "zoo:dino-s16", "who": ...}) -> {"state": "fetching", "done": ..., "total": ...} or {"error": "One sentence."}

Like every function that a browser calls it has no queue before it: every field is checked, long work is done by `Fetches` and `Handover`.
"""

import logging
import threading
from typing import Any

from vitdemo import checkpoint, looking, words, zoo
from vitdemo.checkpoint import Loaded
from vitdemo.runs import RunError
from vitdemo.ui import fields
from vitdemo.ui.fetches import Fetches
from vitdemo.ui.fields import Answer, Request, RequestError, sentence
from vitdemo.ui.handover import Handover
from vitdemo.ui.models import BOX, TINY, Models
from vitdemo.ui.reach import MINE, title_of
from vitdemo.ui.slots import Busy, Slots

log = logging.getLogger(__name__)
IN_THE_BOX = {BOX: words.MODEL_IN_THE_BOX, TINY: words.MODEL_TINY}


class Choosing:
    """Answers the model bar's questions. Safe in threads."""

    def __init__(self, models: Models, handover: Handover, fetches: Fetches):
        self._models = models
        self._handover = handover
        self._fetches = fetches
        self._slots = Slots(working=2, waiting=6, patience=10)
        self._known = {"offer": self._offer, "want": self._want, "cancel": self._cancel, "open": self._open}

    def ask(self, request: Any) -> Answer:
        """The answer to one request, or {"error": sentence}; with "busy" where the same may be asked again in a moment. Never raises."""
        try:
            if not isinstance(request, dict):
                raise RequestError(f"a question is an object with a name, not {fields.brief(request)}")
            return self._known[fields.choice(request, "question", tuple(self._known))](request)
        except Busy as error:
            return {"error": sentence(str(error)), "busy": True}
        except ValueError as error:                                         # RequestError, RunError, CheckpointError: one sentence each
            return {"error": sentence(str(error))} if fields.refused(error) else self._unexpected()
        except Exception:
            return self._unexpected()

    def _unexpected(self) -> Answer:
        return {"error": fields.unexpected(log, "model bar", words.LAB_UNEXPECTED)}

    def _offer(self, request: Request) -> Answer:
        """All models by where they are: in the box, here, a visitor's own, to be fetched."""
        offered = [row(entry, here=self._models.here(f"zoo:{entry.name}")) for entry in self._models.listed()]
        boxed = [model for model in IN_THE_BOX if model == BOX or self._models.here(model) and checkpoint.tiny_path() != checkpoint.box_path()]
        return {"box": [{"model": model, "title": IN_THE_BOX[model]} for model in boxed],
                "zoo": offered, "own": self._own(fields.runs(request, "mine", MINE)), "hub": self._models.owner.hub,
                "megabytes": self._models.owner.upload_megabytes}

    def _own(self, runs: list[str]) -> list[Answer]:
        """The visitor's runs that have weights."""
        own = []
        for run in runs:
            try:
                folder = self._models.folder(run)
                if folder.best.is_file() and folder.config().get("network", "vit") != "cnn":
                    own.append({"model": run, "title": title_of(folder.config())})
            except RunError:                                                # deleted since
                continue
        return own

    def _want(self, request: Request) -> Answer:
        model = fields.text(request, "model", 200)
        self._models.check(model)
        answer = self._fetches.want(model, fields.text(request, "who", 64))
        return {**answer, **self.about(model)} if answer["state"] == "ready" else answer

    def _cancel(self, request: Request) -> Answer:
        self._fetches.cancel(fields.text(request, "model", 200), fields.text(request, "who", 64))
        return {}

    def _open(self, request: Request) -> Answer:
        with self._slots.one(threading.Lock()):
            return self._handover.open(request)

    def about(self, model: str) -> Answer:
        """What the bar shows of a model that is chosen: its name, what is known of it, and the sizes it can look at."""
        loaded = self._models.get(model)
        return {"model": model, "title": self._title(model, loaded), "line": self._models.describe(model, loaded), "facts": facts(loaded),
                "sides": list(looking.sides(loaded)), "side": loaded.preprocessing.size[0], "square": square(loaded),
                "shape": loaded.preprocessing.size[0] / loaded.preprocessing.size[1], "fit": loaded.preprocessing.fit,
                "fits": list(looking.FITS)}

    def _title(self, model: str, loaded: Loaded) -> str:
        if model in IN_THE_BOX:
            return IN_THE_BOX[model]
        entry = zoo.find(model.removeprefix("zoo:")) if model.startswith("zoo:") else None
        if entry:
            return entry.title
        return model.removeprefix("hub:") if model.startswith("hub:") else title_of(self._models.folder(model).config())


def row(entry: zoo.Entry, *, here: bool) -> Answer:
    """A published model as the bar lists it."""
    return {"model": f"zoo:{entry.name}", "title": entry.title, "line": entry.line, "megabytes": entry.megabytes, "here": here,
            "facts": [["Learned from", entry.learned_from], ["Reported", entry.result or entry.reported_as], ["Parameters", f"{entry.parameters:,}"], ["Licence", entry.licence]]}


def facts(loaded: Loaded) -> list[list[str]]:
    """What a person may want to know of a model, as pairs of texts."""
    config, said = loaded.config, loaded.provenance
    prefix = [f"{config.registers} registers"] * bool(config.registers) + ["a distillation token"] * config.distilled
    tokens = f"{config.patch[0]} × {config.patch[1]} pixels a patch" + "".join(f", {extra}" for extra in prefix)
    pairs = [["Layers, heads, width", f"{config.depth}, {config.heads}, {config.dim}"], ["Tokens", tokens],
             ["Classes", f"{config.classes:,}" if config.classes else words.NO_CLASSES],
             ["Parameters", f"{sum(p.numel() for p in loaded.model.parameters()):,}"]]
    pairs += [[name, fields.plain(said[key])[:200]] for name, key in (("Learned from", "learned_from"), ("Reported", "reported"), ("Licence", "licence"),
                                                                     ("Source", "source")) if isinstance(said.get(key), str)]
    notes = said.get("notes")
    return pairs + [["Note", fields.plain(note)[:300]] for note in notes[:6]] if isinstance(notes, list) else pairs


def square(loaded: Loaded) -> bool:
    """Whether a model looks at squares, so that one side names its size."""
    return loaded.preprocessing.size[0] == loaded.preprocessing.size[1]

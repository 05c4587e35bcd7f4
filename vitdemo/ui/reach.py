"""What a visitor's request may touch: the runs whose ids it names, the known pictures and sets of one's own, the models to start from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vitdemo import data, settings, words
from vitdemo.checkpoint import Loaded
from vitdemo.picturesets import Sets
from vitdemo.runs import RunError, RunFolder, Scheduler
from vitdemo.settings import Settings
from vitdemo.ui import fields
from vitdemo.ui.fields import RequestError
from vitdemo.ui.models import RECORDED, Models

MINE = 50                                       # runs that a browser remembers


class Source(NamedTuple):
    """Pictures to learn from."""

    name: str                       # as the page names it: a known data set, or the id of a person's own set
    title: str                      # as a person reads it
    data: str                       # as `vitdemo.data` reads it; may be a path, so it is never sent
    pictures: int                   # to learn from and to check with
    classes: int
    tested: int = 0                 # in its test part
    alike: int = 0                  # of all of them, near-copies of others
    note: str = ""                  # what has to be fetched first


KNOWN = {"cifar10": Source("cifar10", "CIFAR-10: ten kinds of things", "cifar10", 50_000, 10, 10_000, note=words.NOT_LOCAL_CIFAR10),
         "mnist": Source("mnist", "MNIST: handwritten digits", "mnist", 60_000, 10, 10_000, note=words.NOT_LOCAL_MNIST)}
# a run's length in words
BUDGETS = {"minutes": ("minute", "minutes", "of"), "epochs": ("pass", "passes", "over"), "steps": ("step", "steps", "of")}


class Start(NamedTuple):
    """The model that a run goes on from."""

    plan: str                       # as the plan says it
    loaded: Loaded
    title: str


@dataclass(frozen=True)
class Reach:
    """Everything the lab's questions work with, and the checks that keep a request to what is its own."""

    scheduler: Scheduler
    models: Models
    sets: Sets
    owner: Settings

    @property
    def threads(self) -> int:
        """Of each run that the page starts."""
        return settings.training_threads(self.owner.runs_at_once)

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a run, or of the recorded one. Raises RunError."""
        folder = self.models.folder(run_id)
        if run_id == RECORDED and not (folder.path / "config.json").is_file():
            raise RunError(words.NO_RECORDED)
        return folder

    def own(self, request: dict[str, Any]) -> RunFolder:
        """The folder of the request's run, where that is one that may be changed."""
        run_id = fields.run(request)
        if run_id == RECORDED:
            raise RequestError(words.RECORDED_STAYS)
        return self.scheduler.read(run_id)

    def source(self, request: dict[str, Any], *, default: str = "cifar10") -> Source:
        """The pictures that a request names under "data"."""
        name = fields.text(request, "data", 100, default=default)
        if name in KNOWN:
            return KNOWN[name]._replace(note="" if data.is_local(name) else KNOWN[name].note)
        found = self.sets.get(name)
        return Source(name, found.title or words.OWN_PICTURES, str(self.sets.path(name)), found.pictures - found.tested, len(found.classes),
                      found.tested, found.alike)

    def start(self, request: dict[str, Any]) -> Start | None:
        """The model that a request names under "start": "box", a run, or none."""
        name = fields.text(request, "start", 100, default="")
        if not name:
            return None
        if name == "box":
            return Start("box", self.models.box, words.MODEL_IN_THE_BOX)
        folder = self.folder(name)
        if not folder.best.is_file():
            raise RequestError(words.NO_WEIGHTS)
        return Start(str(folder.best), self.models.get(name), title_of(folder.config()))

    def start_title(self, config: dict[str, Any]) -> str:
        """What the model is called that a run went on from; nothing where it began with random weights."""
        start = config.get("start")
        if not start or start == "box":
            return words.MODEL_IN_THE_BOX if start else ""
        try:
            return title_of(self.models.folder(Path(str(start)).parent.name).config())
        except RunError:                                                    # deleted since
            return words.A_MODEL


def title_of(config: dict[str, Any]) -> str:
    """What a run is called: the person's own name for it, or how long it learns from what, as "3 minutes of CIFAR-10"."""
    named = fields.plain(config.get("title"))[:60]
    if named:
        return named
    train, pictures = config.get("train"), source_title(config).split(":")[0]
    for name, (one, many, of) in BUDGETS.items():
        amount = train.get(name) if isinstance(train, dict) else None
        if isinstance(amount, int | float) and amount and pictures:
            return f"{amount:g} {one if amount == 1 else many} {of} {pictures}"
    return ", ".join(filter(None, (fields.plain(config.get("preset")) or "a model", pictures)))


def source_title(config: dict[str, Any]) -> str:
    """What a run's pictures are called. Never the path they were read from."""
    name = config.get("data")
    if name in KNOWN:
        return KNOWN[name].title
    try:
        return fields.plain(data.title(str(name)))[:100] if name else ""
    except (data.DataError, OSError):                                       # deleted since
        return words.OWN_PICTURES

"""From what somebody filled in to a plan that this host carries out: every owner's limit is kept here, whatever the page allowed."""

from typing import Any, NamedTuple

from vitdemo import words
from vitdemo.cnn import vit_parameters
from vitdemo.config import TrainConfig, ViTConfig
from vitdemo.plan import BUDGETS, TITLE_LENGTH, Plan, looks, plan
from vitdemo.presets import PRESETS, SIZES
from vitdemo.settings import Settings
from vitdemo.ui import catalogue, fields, room
from vitdemo.ui.fields import Request, RequestError
from vitdemo.ui.reach import Reach, Source, Start

MANY = 5000                                     # pictures
HURRY, QUICK_LOOK = 5.0, 0.02                   # minutes of a run that must not lose them to looks, and the share held out for those
LOOKS = {False: 200, True: 40}                  # most looks of a run, on one's own machine and on a public host: no clock counts them
OPTIMIZERS = {"muon": "Muon", "adamw": "AdamW", "adam": "Adam"}


class Order(NamedTuple):
    """A plan with what is said about it."""

    plan: Plan
    source: Source
    start: Start | None
    vit: ViTConfig                  # the model that will learn, its classes those of the data
    parameters: int


def order(request: Request, reach: Reach) -> Order:
    """What a request asks for. Raises RequestError or ConfigError with a sentence for anything that cannot or may not be."""
    owner = reach.owner
    source, start = reach.source(request), reach.start(request)
    preset = fields.choice(request, "preset", tuple(PRESETS), default=fitting(request) or "class")
    changes = {"threads": reach.threads, **chosen(request)}
    amount = budget(request, owner, preset)
    if amount.get("minutes"):
        changes = {**by_clock(amount["minutes"], source.pictures), **changes, "clock": "all"}
    changes["freeze"] = fields.flag(request, "freeze", default=changes.get("freeze", False))
    # a start brings its own shape
    model = None if start else fields.choice(request, "model", tuple(SIZES), default=PRESETS[preset].size)
    if source.classes < 2 or source.pictures <= source.classes:
        raise RequestError("a difference can be learned from two classes on, with two pictures in one of them at least: add some first")
    made = plan(preset=preset, model=model, data=source.data, changes=changes, start=start.plan if start else "",
                title=fields.text(request, "title", TITLE_LENGTH, default=""), **amount)
    if start and start.plan != "box":                                       # its file has no name of its own
        made = made._replace(model=start.title)
    if made.train.freeze and not start:
        raise RequestError("only a model that has learned something can keep its encoder as it is: choose a model to start from")
    if made.train.evaluations > LOOKS[owner.public]:
        raise RequestError(f"a run here looks at the validation pictures at most {LOOKS[owner.public]} times, not {made.train.evaluations}")
    vit = shape(made, start, source)
    if vit.channels not in (1, 3):
        raise RequestError(f"pictures have 1 channel (grey) or 3 (colours), not {vit.channels}")
    parameters = vit_parameters(vit)
    room.check(room.needed(vit, made.train, parameters=parameters, pictures=source.pictures), reach.scheduler.limit)
    room.check_disk(parameters, owner.runs_megabytes * 10**6)
    return Order(made, source, start, vit, parameters)


def by_clock(minutes: float, pictures: int) -> dict[str, Any]:
    """What a run of so many minutes by the page's clock, "all", changes of its recipe besides: who has three minutes has no five, and must
    not lose them to looks, which of few pictures take no time."""
    if pictures < MANY:
        return {}
    return {"evaluations": looks(minutes), **({"validation": QUICK_LOOK} if minutes <= HURRY else {})}


def fitting(request: Request) -> str | None:
    """The recipe that goes with what a request begins with or learns from, where one does whatever the length."""
    return "tune" if request.get("start") else "mnist" if request.get("data") == "mnist" else None


def shape(made: Plan, start: Start | None, source: Source) -> ViTConfig:
    """The model that will learn: a start's encoder, at the size of its pictures, under a linear head, or what the plan says."""
    if start is None:
        return made.vit.with_(classes=source.classes)
    return start.loaded.config.with_(image=start.loaded.preprocessing.size, classes=source.classes, head="linear")


def budget(request: Request, owner: Settings, preset: str) -> dict[str, Any]:
    """The one of minutes, epochs and steps that a request names, or the preset's own, within what the owner allows."""
    given = [name for name in BUDGETS if request.get(name) is not None]
    if len(given) > 1:
        raise RequestError(f"choose {' or '.join(given)}, not both")
    own = PRESETS[preset].train
    name = given[0] if given else "minutes" if own.minutes else "epochs"
    if name == "minutes":
        return {name: fields.number(request, name, owner.max_minutes, least=0.02, default=min(own.minutes, owner.max_minutes) or None)}
    if owner.clocked:                                                       # epochs and steps know no clock
        raise RequestError(words.ONLY_MINUTES)
    return {name: fields.whole(request, name, 10**8 if name == "steps" else 10**5, least=1, default=own.epochs)}


def chosen(request: Request) -> dict[str, Any]:
    """The settings that a request changes: only those that the page offers, and only plain values of a size that a refusal can quote."""
    changes = request.get("changes")
    if changes is None:
        return {}
    if not isinstance(changes, dict) or len(changes) > 100:
        raise RequestError(f"the field 'changes' must be an object of settings, not {fields.brief(changes)}")
    for name, value in changes.items():
        if name not in catalogue.OFFERED:
            raise RequestError(f"there is no setting {name!r:.40} to choose here")
        if not all(map(_plain, value if isinstance(value, list) and len(value) <= 64 else [value])):
            raise RequestError(f"the setting {name} cannot be {fields.brief(value)}")
    return dict(changes)


def _plain(value: Any) -> bool:
    """Whether a value is a switch, a number that is not huge, or a short text."""
    return isinstance(value, bool) or isinstance(value, (int, float)) and abs(value) < 10**12 or isinstance(value, str) and len(value) <= 40


def told(made: Order) -> str:
    """What a run will be, in two sentences."""
    vit, train = made.vit, made.plan.train
    (rows, cols), (tall, wide) = vit.image, vit.patch
    what = (f"A ViT of {made.parameters:,} parameters: {rows} × {cols} pixels in {vit.patches} patches of {tall} × {wide}, "
            f"{vit.depth} layers of {vit.heads} heads.")
    if made.start:
        learns = "only its new head learns" if train.freeze else "all of it goes on learning"
        what = (f"The encoder of “{made.start.title}” ({made.parameters:,} parameters) with a new head for {vit.classes} classes; "
                f"{learns}.")
    return f"{what} It learns for {_amount(train)} with {OPTIMIZERS[train.optimizer]} from {made.source.pictures:,} pictures."


def _amount(train: TrainConfig) -> str:
    number, one, many = next((n, one, many) for n, one, many in ((train.minutes, "minute", "minutes"), (train.epochs, "pass", "passes"),
                                                                (train.steps, "step", "steps")) if n)
    return f"{number:,g} {one if number == 1 else many}"

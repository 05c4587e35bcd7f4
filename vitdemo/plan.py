"""What a training run is asked to do: a preset with what somebody chose instead, as it stands in the run's config.json."""

import json
import re
from dataclasses import fields
from pathlib import PurePath
from typing import Any, NamedTuple

from vitdemo.config import ConfigError, TrainConfig, ViTConfig
from vitdemo.presets import PRESETS, SIZES

BUDGETS = ("minutes", "epochs", "steps")
NETWORKS = ("vit", "cnn")
TITLE_LENGTH = 60

EXPLAINED: dict[str, str] = {  # one line for every setting, for whoever chooses one
    "minutes": "How long the run takes.",
    "clock": "What the minutes count: training alone, or the looks at the validation pictures and the test at the end as well.",
    "epochs": "How many passes over the training pictures, instead of minutes.",
    "steps": "How many optimizer steps, instead of minutes.",
    "batch": "How many pictures each step learns from.",
    "optimizer": "How a gradient becomes a step: Muon for the blocks' matrices and AdamW for the rest, or AdamW or Adam for everything.",
    "lr": "How far AdamW or Adam moves a weight in one step.",
    "muon_lr": "How far Muon moves a matrix in one step.",
    "head_rate": "How many times faster the last layer learns; a fresh one on a trained encoder has more to learn.",
    "momentum": "How long Muon remembers earlier gradients: 0 not at all, towards 1 longer.",
    "weight_decay": "How strongly weights are pulled towards zero in every step.",
    "warmup": "Share of the run in which the learning rate rises from zero.",
    "decay": "How the learning rate falls after the warm-up.",
    "label_smoothing": "Share of the right answer that is spread over all classes, against overconfidence.",
    "clip": "Longest gradient that is let through whole; 0 lets all through.",
    "flip": "Whether pictures are mirrored at random; not for digits and letters.",
    "shift": "By how many pixels pictures are moved at random, at most.",
    "crop_least": "How little of a picture's area a random crop may show; 1 with the next one at 1 for no such crops.",
    "crop_most": "How much of it a random crop may show; above 1 the picture may stand small on a plain colour.",
    "tint": "How strongly brightness, contrast and colours are changed at random.",
    "erase": "Share of the pictures in which a random rectangle is covered by a plain colour.",
    "mix": "Share of the pictures that are mixed with another one, and so are their answers (mixup, CutMix); for long runs.",
    "mix_end": "Share of the run after which no pictures are mixed any more.",
    "zero_head": "Whether the last layer starts at zero, so that every class begins equally likely.",
    "freeze": "Whether only the last layer learns and the rest stays as it is.",
    "stages": "Sizes the pictures are shown at, one after the other, as shares of the full size: small ones are quick.",
    "stage_ends": "Shares of the run at which each but the last of these sizes ends.",
    "validation": "Share of the training pictures kept aside to measure with.",
    "evaluations": "How often the run looks at the validation pictures.",
    "seed": "Where every random number begins: the same seed, the same run.",
    "precision": "Numbers of 16 bits in the large products where the processor is quick at them, or 32 bits everywhere.",
    "threads": "Processor threads to use; 0 uses every core.",
    "image": "Rows and columns of pixels the model sees.",
    "patch": "Rows and columns of pixels in one patch: smaller patches see finer and cost more.",
    "channels": "1 for grey pictures, 3 for colour.",
    "dim": "Width: how many numbers describe each token.",
    "depth": "How many blocks follow one another.",
    "heads": "Attention heads in each block; the width must be a multiple.",
    "mlp_dim": "Width inside each block's MLP; 0 means four times the width.",
    "classes": "How many kinds of pictures; the data decide.",
    "head": "The classifier: one linear layer, or a hidden layer before it.",
    "pool": "What the classifier reads: the class token, or the mean of all patches.",
    "class_token": "Whether there is a class token at all; without one the mean is read.",
    "distilled": "Whether there is a second, distillation token with its own classifier (DeiT).",
    "registers": "Extra tokens without a patch, where a model may keep notes (Darcet et al. 2024).",
    "positions": "How the model knows where a patch was: learned, fixed waves, or not at all.",
    "prefix_positions": "How many of the tokens before the patches have a position; -1 means all.",
    "patchify": "How patches are cut and projected: two ways, the same numbers.",
    "qkv_bias": "Whether queries, keys and values have a bias.",
    "layer_scale": "Whether each branch has a learned scale per channel (CaiT, DINOv2).",
    "norm_at": "Where the last norm sits: on all tokens, or on the pooled one.",
    "eps": "A small number that keeps norms from dividing by zero.",
    "init": "How new weights are drawn: as in DeiT, or as in the authors' code, which small widths need.",
}


LOOK_EVERY = 15                                 # seconds between two looks at the validation part, which take time of their own


def looks(minutes: float) -> int:
    """How often a run of so many minutes that somebody watches looks at its validation part."""
    return min(20, max(3, round(60 * minutes / LOOK_EVERY)))


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE as somebody types it: the name, and the value read as JSON or else as text. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set takes NAME=VALUE, not {text!r:.60}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


class Plan(NamedTuple):
    """What a run was asked to do; the same values as in config.json."""

    vit: ViTConfig                              # with a `start`, what the run found there, once it has begun
    train: TrainConfig
    data: str
    model: str                                  # the size's name, or the name of what it started from
    preset: str
    start: str = ""                             # "": random weights; "box" or a checkpoint's path: its encoder with a fresh head
    network: str = "vit"                        # or "cnn": a small CNN with as many parameters, to race against
    title: str = ""                             # the person's own name for it
    race: dict[str, Any] | None = None          # {"id": hex, "side": "a" or "b", "kind": name, "seed": number}
    heads: int = 0                              # of the start, where its file does not say
    teacher: str = ""                           # "box" or a checkpoint's path: its answers take the place of the labels

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "vit": self.vit.to_json(), "train": self.train.to_json()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Plan":
        try:
            wanted = cls(ViTConfig.from_json(values["vit"]), TrainConfig.from_json(values["train"]),
                         *(str(values[name]) for name in ("data", "model", "preset")),
                         *(str(values.get(name, cls._field_defaults[name])) for name in ("start", "network", "title")),
                         values.get("race"), values.get("heads", 0), str(values.get("teacher", "")))
        except KeyError as error:
            raise ConfigError(f"config.json of this run lacks {error.args[0]!r}: start a new run") from None
        _check(wanted)
        return wanted


def plan(*, preset: str | None = None, model: str | None = None, data: str | None = None, minutes: float | None = None,
         epochs: int | None = None, steps: int | None = None, changes: dict[str, Any] | None = None, start: str | None = None,
         network: str = "vit", title: str = "", race: dict[str, Any] | None = None, heads: int = 0, teacher: str = "") -> Plan:
    """A preset ("class", or "tune" where a `start` is named) with what was chosen instead. `changes` may name any field of TrainConfig, and
    of ViTConfig unless the run starts from a model, which keeps its shape. Raises ConfigError."""
    preset = preset or ("tune" if start else "class")
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    chosen = PRESETS[preset]
    start = chosen.start if start is None else start
    size = (model or chosen.size).lower()
    if size not in SIZES:
        raise ConfigError(f"there is no model size {size!r}; there are {', '.join(SIZES)}")
    of_train, of_vit = ({spec.name for spec in fields(kind)} for kind in (TrainConfig, ViTConfig))
    changes = dict(changes or {})
    unknown = sorted(set(changes) - of_train - of_vit)
    if unknown:
        raise ConfigError(f"there is no setting {unknown[0]!r}; there are {', '.join(sorted(of_train | of_vit))}")
    shape = {name: value for name, value in changes.items() if name in of_vit}
    if start and (model or shape):
        raise ConfigError(f"a run that starts from a model keeps its shape: leave {next(iter(shape), 'the model size')} out")
    asked = {name: value for name, value in (("minutes", minutes), ("epochs", epochs), ("steps", steps)) if value is not None}
    train = {**chosen.train.to_json(), **upright(data or chosen.data), **changes, **_budget({name: changes[name] for name in BUDGETS if name in changes} | asked)}
    wanted = Plan(ViTConfig.from_json(SIZES[size].config.to_json() | shape),
                  TrainConfig.from_json({name: value for name, value in train.items() if name in of_train}), str(data or chosen.data),
                  "box" if start == "box" else PurePath(start).stem or size, preset, start, network, " ".join(title.split()), race, heads, teacher)
    _check(wanted)
    return wanted


def upright(data: str) -> dict[str, Any]:
    """What of a recipe gives way for digits: a mirrored one is another one, or none."""
    return {"flip": False} if data == "mnist" else {}


def _budget(asked: dict[str, Any]) -> dict[str, Any]:
    """What `asked` of minutes, epochs and steps means for all three of them; nothing where none was asked for."""
    said = {name: amount for name, amount in asked.items() if amount != 0} or asked
    if len(said) > 1:
        raise ConfigError(f"give {' or '.join(said)}, not both")
    for name, amount in said.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not amount > 0:
            raise ConfigError(f"{name} must be a number above 0, not {amount!r:.40}")
    return {**dict.fromkeys(BUDGETS, 0), **said} if said else {}


def _check(wanted: Plan) -> None:
    if wanted.network not in NETWORKS:
        raise ConfigError(f"the network is one of {', '.join(NETWORKS)}, not {wanted.network!r:.40}")
    if wanted.network != "vit" and wanted.start:
        raise ConfigError("only a ViT can start from a checkpoint")
    if type(wanted.heads) is not int or wanted.heads < 0 or wanted.heads and not wanted.start:
        raise ConfigError(f"heads are a whole number, given only where a run starts from a file that does not say how many, not {wanted.heads!r:.40}")
    if len(wanted.title) > TITLE_LENGTH:
        raise ConfigError(f"a title has at most {TITLE_LENGTH} characters, not {len(wanted.title)}")
    race = wanted.race
    if race is not None and not (isinstance(race, dict) and set(race) == {"id", "side", "kind", "seed"} and race["side"] in ("a", "b")
                                 and isinstance(race["id"], str) and re.fullmatch("[0-9a-f]{1,64}", race["id"])
                                 and isinstance(race["kind"], str) and type(race["seed"]) is int):
        raise ConfigError("a race is an id in hexadecimal digits, a side (a or b), a kind and a seed")

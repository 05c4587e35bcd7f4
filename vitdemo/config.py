"""What a model and a training run are, as frozen values that are checked when they are made.

`ViTConfig` says everything that decides a Vision Transformer's shapes and numbers; `TrainConfig` everything that decides a
training run. Both go into JSON and back unchanged, so a checkpoint and a run folder can explain themselves.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin

Config = TypeVar("Config", bound="_Checked")

LIMITS = {  # far above H/14; what lies beyond is a hostile or broken file, refused before anything is built
    "image": 4096, "patch": 1024, "channels": 64, "dim": 8192, "depth": 256, "heads": 256, "mlp_dim": 65536,
    "classes": 100_000, "registers": 256, "tokens": 65536, "parameters": 3_000_000_000,
}


class ConfigError(ValueError):
    """A setting that cannot be; the message is one sentence that names it and its value."""


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low} and {high}, not {value}")


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """`value` as the type its field declares, without guessing: JSON lists become tuples, whole floats become ints."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ConfigError(f"{name} must be one of {', '.join(map(repr, get_args(kind)))}, not {value!r}")
        return value
    if get_origin(kind) is tuple:
        inner, pair = get_args(kind)[0], get_args(kind)[1] is not Ellipsis
        items = (value, value) if pair and isinstance(value, int) else value
        if not isinstance(items, (tuple, list)) or (pair and len(items) != 2) or len(items) > 64:
            raise ConfigError(f"{name} must be {'two numbers (rows, cols)' if pair else 'a list of numbers'}, not {value!r:.80}")
        return tuple(_coerce(name, item, inner) for item in items)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer()):
        return int(value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30:
        return float(value)
    raise ConfigError(f"{name} must be of type {kind.__name__}, not {value!r:.80}")


class _Checked:
    """Shared by both configs: types and choices checked at birth, and JSON there and back."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            object.__setattr__(self, spec.name, _coerce(spec.name, getattr(self, spec.name), spec.type))
        self._check()

    def _check(self) -> None:
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values (tuples become lists)."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls: type[Config], values: dict[str, Any]) -> Config:
        """The config that `to_json` wrote. Raises ConfigError for unknown names or impossible values."""
        if not isinstance(values, dict):
            raise ConfigError(f"a {cls.__name__} is a JSON object, not {type(values).__name__}")
        unknown = sorted(set(values) - {spec.name for spec in fields(cls)})
        if unknown:
            raise ConfigError(f"{cls.__name__} has no setting {unknown[0]!r}")
        return cls(**values)

    def with_(self: Config, **changes: Any) -> Config:
        """A copy with some settings changed, checked again."""
        return replace(self, **changes)


@dataclass(frozen=True)
class ViTConfig(_Checked):
    """Shape and options of a Vision Transformer (Dosovitskiy et al. 2021, section 3.1 and table 1).

    Sizes are (rows, cols); a single number stands for a square. The defaults are the paper's choices.
    """

    image: tuple[int, int] = (224, 224)
    patch: tuple[int, int] = (16, 16)
    channels: int = 3
    dim: int = 768                    # D
    depth: int = 12                   # L, the number of blocks
    heads: int = 12                   # H
    mlp_dim: int = 0                  # 0 means 4 * dim, as in table 1
    classes: int = 1000               # K; 0 means no head (self-supervised models)
    head: Literal["linear", "mlp", "both"] = "linear"       # "mlp": one hidden layer with tanh (section 3.1); "both": one linear
                                      # layer over the class token and the mean of the patch tokens side by side (DINOv2's classifier)
    pool: Literal["cls", "mean"] = "cls"                    # "mean": average of the patch tokens
    class_token: bool = True
    distilled: bool = False           # a distillation token and its own head (DeiT)
    registers: int = 0                # register tokens (Darcet et al. 2024)
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    prefix_positions: int = -1        # how many prefix tokens have a position of their own; -1 means all
    patchify: Literal["conv", "linear"] = "conv"            # same weights, same numbers, two ways to compute them
    qkv_bias: bool = True
    layer_scale: bool = False         # CaiT's per-channel scale (DINOv2)
    norm_at: Literal["tokens", "pooled"] = "tokens"         # "pooled": one last norm after the mean (timm's fc_norm)
    eps: float = 1e-6
    init: Literal["normal", "xavier"] = "normal"            # how a new model's matrices are drawn: as DeiT, or as the authors' code

    def _check(self) -> None:
        for name in ("channels", "dim", "depth", "heads"):
            _within(name, getattr(self, name), 1, LIMITS[name])
        _within("mlp_dim", self.mlp_dim, 0, LIMITS["mlp_dim"])
        for name in ("image", "patch"):
            for side in getattr(self, name):
                _within(name, side, 1, LIMITS[name])
        _within("classes", self.classes, 0, LIMITS["classes"])
        _within("registers", self.registers, 0, LIMITS["registers"])
        _within("prefix_positions", self.prefix_positions, -1, self.prefix)
        _within("eps", self.eps, 1e-12, 1e-1)
        for side, patch in zip(self.image, self.patch):
            if side % patch:
                raise ConfigError(f"an image side of {side} pixels cannot be cut into patches of {patch} pixels")
        if self.dim % self.heads:
            raise ConfigError(f"a width of {self.dim} cannot be shared by {self.heads} heads: it must be a multiple")
        if self.positions == "sinusoidal" and self.dim % 2:
            raise ConfigError(f"sinusoidal positions need an even width, not {self.dim}")
        if self.pool == "cls" and not self.class_token:
            raise ConfigError("pooling by class token needs a class token")
        if self.head == "both" and (self.pool != "cls" or self.norm_at != "tokens" or self.distilled):
            raise ConfigError("a head that reads class token and patches side by side goes with pooling by class token, one norm of all "
                              "tokens and no distillation")
        if self.distilled and self.pool != "cls":
            raise ConfigError("a distilled model is pooled by its class and distillation tokens")
        _within("number of tokens", self.tokens, 1, LIMITS["tokens"])
        _within("number of parameters", self.depth * self.dim * (4 * self.dim + 2 * self.mlp_width), 1, LIMITS["parameters"])

    @property
    def grid(self) -> tuple[int, int]:
        """Patches as (rows, cols)."""
        return self.image[0] // self.patch[0], self.image[1] // self.patch[1]

    @property
    def patches(self) -> int:
        """N, the number of patches."""
        return self.grid[0] * self.grid[1]

    @property
    def prefix(self) -> int:
        """How many tokens stand before the first patch: class, distillation, registers."""
        return int(self.class_token) + int(self.distilled) + self.registers

    @property
    def tokens(self) -> int:
        """T = prefix + N, the length of the sequence."""
        return self.prefix + self.patches

    @property
    def position_rows(self) -> int:
        """How many prefix tokens, counted from the first, have a row in the position table."""
        return self.prefix if self.prefix_positions == -1 else self.prefix_positions

    @property
    def mlp_width(self) -> int:
        """Width of the MLP's hidden layer."""
        return self.mlp_dim or 4 * self.dim

    @property
    def head_dim(self) -> int:
        """d = D / H, the width of one head."""
        return self.dim // self.heads


@dataclass(frozen=True)
class Preprocessing(_Checked):
    """How a picture becomes a model's input: what is shown of it, antialiased resize, channels, normalisation."""

    size: tuple[int, int] = (32, 32)  # (rows, cols) in pixels
    channels: int = 3                 # 1: grey, 3: RGB
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)               # per channel, of values between 0 and 1
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    crop_fraction: float = 1.0        # of "crop": share of the largest centred crop that is kept (published 224-px models: 0.875 or 0.9)
    interpolation: Literal["bilinear", "bicubic"] = "bicubic"
    fit: Literal["crop", "squash", "whole"] = "crop"        # a centred part of the shape of `size`; all of it, pressed into that shape;
                                      # or all of it in nearly its own shape, cut into at most as many patches as `size` is

    def _check(self) -> None:
        for side in self.size:
            _within("size", side, 1, LIMITS["image"])
        if self.channels not in (1, 3):
            raise ConfigError(f"pictures have 1 or 3 channels, not {self.channels}")
        if len(self.mean) != self.channels or len(self.std) != self.channels:
            raise ConfigError(f"{self.channels} channels need as many means and deviations, not {len(self.mean)} and {len(self.std)}")
        for value in self.mean:
            _within("mean", value, -10, 10)
        for value in self.std:
            _within("std", value, 1e-3, 10)
        _within("crop_fraction", self.crop_fraction, 0.05, 1)


@dataclass(frozen=True)
class TrainConfig(_Checked):
    """Everything that decides a training run, next to its data and its ViTConfig.

    A run ends after `minutes`, after `epochs` or after `steps`: exactly one of them is above zero.
    """

    minutes: float = 0.0
    clock: Literal["training", "all"] = "training"          # what minutes count: training alone, or its looks and the test at the end too
    epochs: int = 0
    steps: int = 0                    # optimizer steps
    batch: int = 128
    optimizer: Literal["muon", "adamw", "adam"] = "muon"    # "muon": the blocks' matrices by Muon, the rest by AdamW
    lr: float = 2e-3                  # AdamW / Adam
    muon_lr: float = 8e-3             # Muon (Jordan et al. 2024)
    head_rate: float = 1.0            # factor on the head's learning rate: a fresh one on a trained encoder has more to learn
    momentum: float = 0.95
    weight_decay: float = 0.05
    warmup: float = 0.05              # share of the budget in which the rate climbs from zero
    decay: Literal["linear", "cosine", "none"] = "linear"   # what happens to it afterwards
    label_smoothing: float = 0.1
    clip: float = 1.0                 # largest norm of all gradients together; 0 means no clipping
    flip: bool = True
    shift: int = 4                    # shifted crops: up to so many pixels each way, at full resolution
    crop_least: float = 1.0           # random crops show from so much ...
    crop_most: float = 1.0            # ... to so much of a picture's area; above 1 it stands small on a plain colour
    tint: float = 0.0                 # how strongly brightness, contrast and colours are changed at random
    erase: float = 0.0                # share of the pictures in which a rectangle becomes one plain colour
    mix: float = 0.0                  # share of the pictures that are mixed with another one (mixup and CutMix) ...
    mix_end: float = 1.0              # ... until this share of the budget is used
    zero_head: bool = True            # the linear head starts at zero, as in section 3.1
    freeze: bool = False              # only the head learns
    stages: tuple[float, ...] = ()    # shares of the full side the images are trained at, in order; empty: full size only
    stage_ends: tuple[float, ...] = ()                      # shares of the budget at which each but the last stage ends
    validation: float = 0.05          # share of the training pictures held out to choose the best weights
    evaluations: int = 10             # how often, at most, the budget is interrupted to look at the validation part
    seed: int = 0
    precision: Literal["auto", "float32"] = "auto"          # of matrix products: bfloat16 where the processor has instructions for it
    threads: int = 0                  # torch threads; 0 means every core this process may use

    def _check(self) -> None:
        _within("minutes", self.minutes, 0, 60 * 24 * 7)
        _within("epochs", self.epochs, 0, 100_000)
        _within("steps", self.steps, 0, 100_000_000)
        if [self.minutes > 0, self.epochs > 0, self.steps > 0].count(True) != 1:
            raise ConfigError("a run needs one of minutes, epochs and steps, not several or none "
                              f"(minutes {self.minutes:g}, epochs {self.epochs}, steps {self.steps})")
        _within("batch", self.batch, 1, 65536)
        for name in ("lr", "muon_lr"):
            _within(name, getattr(self, name), 1e-8, 10)
        _within("head_rate", self.head_rate, 1e-3, 1e3)
        _within("momentum", self.momentum, 0, 0.9999)
        if self.warmup > 0.99:
            raise ConfigError(f"warmup is a share of the run and must end before it, so it lies between 0 and 0.99, not {self.warmup:g}")
        for name in ("weight_decay", "warmup", "label_smoothing"):
            _within(name, getattr(self, name), 0, 0.99)
        _within("clip", self.clip, 0, 1e6)
        _within("shift", self.shift, 0, 64)
        _within("crop_least", self.crop_least, 0.05, 4)
        _within("crop_most", self.crop_most, self.crop_least, 4)
        for name in ("tint", "erase", "mix", "mix_end"):
            _within(name, getattr(self, name), 0, 1)
        _within("validation", self.validation, 0.001, 0.5)
        _within("evaluations", self.evaluations, 1, 1000)
        _within("seed", self.seed, 0, 2**31 - 1)
        _within("threads", self.threads, 0, 1024)
        if len(self.stage_ends) != max(len(self.stages) - 1, 0):
            raise ConfigError(f"{len(self.stages)} stages need {max(len(self.stages) - 1, 0)} stage ends, not {len(self.stage_ends)}")
        if list(self.stage_ends) != sorted(self.stage_ends) or any(not 0 < end < 1 for end in self.stage_ends):
            raise ConfigError(f"stage ends are rising shares between 0 and 1, not {self.stage_ends}")
        for share in self.stages:
            _within("stages", share, 0.01, 1)

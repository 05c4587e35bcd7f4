"""Training a ViT: `fit` yields one `Step` after another, and whoever iterates decides to print, plot, save or stop.

    python -m vitdemo.train --model vit-micro --preset class --data cifar10 --minutes 3 --out RUN

Everything random in step s of a run is drawn from a generator seeded with (seed, s), and the order of pictures in epoch e from
(seed, e). So a run's future depends only on its step number, its weights and its optimizers: that is all a resume has to restore.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo import augment
from vitdemo.config import Preprocessing, TrainConfig, ViTConfig
from vitdemo.data import DataError, Split
from vitdemo.evaluate import predict
from vitdemo.images import normalise
from vitdemo.model import ViT


class TrainingError(ValueError):
    """A run that cannot go on; the message is one sentence that says why and what to change."""


class Step(NamedTuple):
    """What one optimizer step did."""

    step: int                       # counted from 1; 0 is the look at the untrained model
    images: int                     # training pictures seen so far
    epoch: float                    # the same in passes over the training part
    progress: float                 # share of the budget that is used, 0 to 1
    seconds: float                  # of training so far, looks at the validation part not counted
    loss: float                     # mean over the batch; NaN at step 0
    rate: float                     # factor on the learning rates
    accuracy: float | None          # on the validation part, where this step ended with a look at it


class State:
    """A run in the middle: the model, its optimizers, and how far they have come. `fit` moves it forward in place."""

    def __init__(self, model: ViT, config: TrainConfig):
        self.model = model
        self.config = config
        self.optimizers = optimizers(model, config)
        self.step = 0
        self.seconds = 0.0
        self.looks = 0              # evaluations so far

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers: `torch.load(weights_only=True)` reads them back."""
        return {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                "step": self.step, "seconds": self.seconds, "looks": self.looks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.seconds, self.looks = state["step"], state["seconds"], state["looks"]


def optimizers(model: ViT, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices and AdamW for the rest, or one Adam(W) for all. Biases, norms and tokens are not decayed.

    Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest orthogonal matrix, so every direction learns at one speed.
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    matrices = [p for name, p in named if name.startswith("blocks.") and p.ndim == 2 and config.optimizer == "muon"]
    taken = set(map(id, matrices))
    decayed = [p for name, p in named if id(p) not in taken and p.ndim >= 2 and name.endswith("weight")]
    taken |= set(map(id, decayed))
    groups = [{"params": decayed, "weight_decay": config.weight_decay},
              {"params": [p for _, p in named if id(p) not in taken], "weight_decay": 0.0}]
    if config.optimizer == "adam":
        return [torch.optim.Adam(groups, lr=config.lr)]
    rest = torch.optim.AdamW(groups, lr=config.lr)
    if not matrices:
        return [rest]
    return [torch.optim.Muon(matrices, lr=config.muon_lr, momentum=config.momentum, weight_decay=config.weight_decay,
                             adjust_lr_fn="original"), rest]


def rate(progress: float, config: TrainConfig) -> float:
    """The factor on all learning rates after `progress` (0 to 1) of the budget: a linear rise, then the chosen decay to zero."""
    if progress < config.warmup:
        return progress / config.warmup
    rest = min(1.0, (progress - config.warmup) / (1 - config.warmup))
    return {"none": 1.0, "linear": 1 - rest, "cosine": (1 + math.cos(math.pi * rest)) / 2}[config.decay]


def stage_size(progress: float, config: TrainConfig, vit: ViTConfig) -> tuple[int, int]:
    """(rows, cols) in pixels at which pictures are shown after `progress` of the budget: whole patches, at least one."""
    if not config.stages:
        return vit.image
    share = config.stages[sum(progress >= end for end in config.stage_ends)]
    return tuple(max(1, round(share * side / patch)) * patch for side, patch in zip(vit.image, vit.patch))


def batch_of(split: Split, step: int, size: int, config: TrainConfig) -> Split:
    """The training pictures of `step` (counted from 0): epochs are shuffled anew, a last incomplete batch is left out."""
    epoch, index = divmod(step, max(1, len(split) // size))
    order = torch.randperm(len(split), generator=_generator(config.seed, 0, epoch))
    return split[order[index * size:(index + 1) * size]]


def prepare(images: Tensor, size: tuple[int, int], preprocessing: Preprocessing, config: TrainConfig, generator: torch.Generator) -> Tensor:
    """uint8 pictures (B, C, rows, cols) to augmented, normalised input (B, C, *size)."""
    images = augment.shifted_crop(images, config.shift, generator)
    if config.flip:
        images = augment.flip(images, generator)
    return normalise(augment.shrink(images, size), preprocessing)


def fit(model: ViT, train: Split, validation: Split, config: TrainConfig, *, preprocessing: Preprocessing,
        state: State | None = None, clock: Callable[[], float] = time.perf_counter) -> Iterator[Step]:
    """Train `model` in place on `train` and look at `validation` before the first step, `config.evaluations` times in between
    evenly over the budget, and at the end. Time is read from `clock` in seconds.

    With `state` a run goes on where it was. Raises TrainingError at the first loss or gradient that is not finite, before that
    step is taken, and DataError for data that do not fit the model.
    """
    _check(model, train, validation)
    state = state or State(model, config)
    size = min(config.batch, len(train))
    images_wanted = config.epochs * (len(train) // size) * size
    if config.zero_head and state.step == 0 and model.head is not None:
        nn.init.zeros_(model.head.weight)

    def progress() -> float:
        used = state.step * size / images_wanted if config.epochs else state.seconds / (60 * config.minutes)
        return min(1.0, used)

    if state.step == 0:
        yield Step(0, 0, 0.0, 0.0, 0.0, math.nan, 0.0, accuracy(model, validation, preprocessing))
    while progress() < 1:
        start = clock()
        done = progress()
        # the first step has to move as well, so the rise begins one step's worth above zero
        factor = max(rate(done, config), 1e-3)
        loss = _step(state, batch_of(train, state.step, size, config), stage_size(done, config, model.config), factor, preprocessing)
        state.step += 1
        state.seconds += clock() - start
        look = progress() >= (state.looks + 1) / config.evaluations or progress() >= 1
        state.looks += look
        yield Step(state.step, state.step * size, state.step * size / len(train), progress(), state.seconds, loss, factor,
                   accuracy(model, validation, preprocessing) if look else None)


def _step(state: State, batch: Split, size: tuple[int, int], factor: float, preprocessing: Preprocessing) -> float:
    """One forward and backward pass and one step of every optimizer; returns the loss."""
    config, model = state.config, state.model
    model.train()
    inputs = prepare(batch.images, size, preprocessing, config, _generator(config.seed, 1, state.step))
    loss = F.cross_entropy(model(inputs), batch.labels, label_smoothing=config.label_smoothing)
    for optimizer in state.optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf)
    if not (loss.isfinite() and norm.isfinite()):
        raise TrainingError(f"the loss stopped being a number at step {state.step + 1}: try a smaller learning rate or a longer warm-up")
    for optimizer in state.optimizers:
        peak = config.muon_lr if isinstance(optimizer, torch.optim.Muon) else config.lr
        for group in optimizer.param_groups:
            group["lr"] = peak * factor
        optimizer.step()
    return loss.item()


def accuracy(model: ViT, split: Split, preprocessing: Preprocessing) -> float:
    """Share of `split` that the model gets right, 0 to 1."""
    return (predict(model, split.images, preprocessing).argmax(1) == split.labels).float().mean().item()


def _check(model: ViT, train: Split, validation: Split) -> None:
    if not len(train) or not len(validation):
        raise DataError(f"training needs pictures in both parts, not {len(train)} to learn from and {len(validation)} to check with")
    if tuple(train.images.shape[1:]) != (model.config.channels, *model.config.image):
        raise DataError(f"the model takes pictures of {(model.config.channels, *model.config.image)}, not {tuple(train.images.shape[1:])}")
    if int(train.labels.max()) >= model.config.classes:
        raise DataError(f"the data have at least {int(train.labels.max()) + 1} classes and the model's head has {model.config.classes}")


def _generator(*key: int) -> torch.Generator:
    """A generator that depends on nothing but `key`. PyTorch's CPU generator keeps only 32 bits of a seed, hence the hash."""
    return torch.Generator().manual_seed(int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "big"))


if __name__ == "__main__":
    from vitdemo.train_command import main

    raise SystemExit(main())

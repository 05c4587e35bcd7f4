"""Training a network: `fit` yields one `Step` after another, and whoever iterates decides to print, plot, save or stop.

    python -m vitdemo.train --model vit-micro --preset class --data cifar10 --minutes 3 --out RUN

Everything random in step s of a run is drawn from a generator seeded with (seed, s), and the order of pictures in epoch e from
(seed, e). So a run's future depends only on its step number, its weights and its optimizers: that is all a resume has to restore.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo.batches import batch_size, batches, generator_of, prepare
from vitdemo.budget import looks_made, pictures_tested, rate, training_time
from vitdemo.config import Preprocessing, TrainConfig
from vitdemo.data import DataError, Split
from vitdemo.distributed import World
from vitdemo.evaluate import predict
from vitdemo.muon import Muon
from vitdemo.optimizers import optimizers
from vitdemo.precision import computing

ALONE = World()


class TrainingError(ValueError):
    """A run that cannot go on; the message is one sentence that says why and what to change."""


class Step(NamedTuple):
    """What one optimizer step did."""

    step: int                       # counted from 1; 0 is the look at the untrained model
    images: int                     # training pictures seen so far
    epoch: float                    # the same in passes over the training part
    progress: float                 # share of the budget that is used, 0 to 1
    seconds: float                  # of training so far, looks at the validation part not counted
    loss: float                     # mean over the batch; NaN at step 0, and where only a look was still to be made
    rate: float                     # factor on the learning rates
    accuracy: float | None          # on the validation part, where this step ended with a look at it
    logits: Tensor | None = None    # (N, K) of the validation part, float32 on the CPU, where there is an accuracy


class State:
    """A run in the middle: the model, its optimizers, and how far they have come. `fit` moves it forward in place."""

    def __init__(self, model: nn.Module, config: TrainConfig):
        if config.freeze:
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(name.startswith("head"))           # and head_dist; no other name begins like that
        self.model = model
        self.config = config
        self.optimizers = optimizers(model, config)
        self.step = 0
        self.seconds = 0.0          # of training
        self.look_seconds = 0.0     # of all looks
        self.looks = 0              # evaluations so far, the one before the first step not counted
        self.planned = config.evaluations           # how many there are room for, see `looks_made`
        self.due = 1                # which of those comes next; a step that lasts as long as several of them lets them go
        self.progress = 0.0         # of a run of minutes, the most so far: it does not go back where looks turn out quicker
        self.owed = False           # one is due and not done yet: it was cut short
        self.complete = False       # the last one is done

    @property
    def seconds_a_look(self) -> float:
        """What a look takes, the mean over all so far; 0 before the first one."""
        return self.look_seconds / (self.looks + 1)

    @property
    def looks_ahead(self) -> int:
        """How many looks are still to come: the last one is made whatever happens."""
        return max(not self.complete, self.planned - self.due + 1)

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and numbers: `torch.load(weights_only=True)` reads them back."""
        return {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers],
                "step": self.step, "seconds": self.seconds, "look_seconds": self.look_seconds,
                "looks": self.looks, "planned": self.planned, "due": self.due, "progress": self.progress, "owed": self.owed, "complete": self.complete}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.seconds, self.looks = state["step"], state["seconds"], state["looks"]
        self.look_seconds, self.owed, self.complete = state.get("look_seconds", 0.0), state.get("owed", False), state.get("complete", False)
        self.planned, self.due = state.get("planned", self.config.evaluations), state.get("due", self.looks + 1)
        self.progress = state.get("progress", 0.0)


def fit(model: nn.Module, train: Split, validation: Split, config: TrainConfig, *, preprocessing: Preprocessing, state: State | None = None,
        clock: Callable[[], float] = time.perf_counter, between: Callable[[], None] | None = None, tested: int = 0,
        teacher: Callable[[Tensor], Tensor] | None = None, world: World = ALONE) -> Iterator[Step]:
    """Train `model` in place, on its own device, on `train` and look at `validation` before the first step and then `config.evaluations`
    times (less often where `looks_made` says so), evenly over the budget and the last time at its end. Time is read from `clock` in
    seconds. `between` is called during looks and may raise. Where the minutes count everything, time is left for a test on `tested`
    pictures afterwards. What a `teacher` answers to the prepared input, (B, K) shares, takes the place of the labels.

    With `state` a run goes on where it was. Of a `world` of several processes, each learns from its slice of the batch, and process 0 keeps
    the time and looks. Raises TrainingError at the first loss or gradient that is not finite, before that step is taken, and DataError for
    data that do not fit the model.
    """
    size = batch_size(len(train), config.batch)
    _check(model, train, validation, size, world)
    state = state or State(model, config)
    _agree(state, world)
    network = world.wrap(model)
    steps_wanted = config.steps or config.epochs * (len(train) // size)
    coming = batches(train, size, config, state.step)
    if config.zero_head and state.step == 0:
        nn.init.zeros_(model.head.weight)

    def progress() -> float:
        if steps_wanted:
            return min(1.0, state.step / steps_wanted)
        each = state.seconds_a_look
        test = pictures_tested(tested, config, each / len(validation)) * each / len(validation)
        used = state.seconds / training_time(config, state.look_seconds + state.looks_ahead * each, test)
        state.progress = min(1.0, max(state.progress, used))
        return state.progress

    def told(done: float, loss: float, factor: float, look: bool) -> Step:
        start = clock() if look else 0.0
        logits = predict(model, validation.images, preprocessing, between=between) if look and not world.rank else None
        if look:
            state.look_seconds += world.told(clock() - start)
            if state.step:
                state.looks, state.due = state.looks + 1, max(state.due, int(done * state.planned)) + 1
            else:
                state.planned = looks_made(config, state.look_seconds)
        accuracy = None if logits is None else (logits.argmax(1) == validation.labels).double().mean().item()
        return Step(state.step, state.step * size, state.step * size / len(train), progress(), state.seconds, loss, factor, accuracy, logits)

    if state.step == 0:
        yield told(0.0, math.nan, 0.0, look=True)
    while not state.complete:
        loss = factor = math.nan
        done = progress()
        if done < 1 and not state.owed:                                     # else a run whose look was cut short goes on with that
            start = clock()
            # no step stands still, not the first one either, where the rise begins at zero
            factor = max(rate(done, config), 1e-3)
            loss = _step(state, network, next(coming), done, factor, preprocessing, teacher, world)
            state.step += 1
            state.seconds = world.told(state.seconds + clock() - start)
        done = progress()
        look = state.owed = state.owed or done >= min(1.0, state.due / state.planned)
        step = told(done, loss, factor, look)
        state.owed = False
        state.complete = done >= 1 or progress() >= 1                       # a last look that was quicker than foreseen makes no time for more steps
        yield step._replace(progress=1.0) if state.complete else step


def _step(state: State, network: nn.Module, batch: Split, done: float, factor: float, preprocessing: Preprocessing,
          teacher: Callable[[Tensor], Tensor] | None, world: World) -> float:
    """Prepare a batch after `done` of the budget and learn from it; returns the loss."""
    inputs, targets = prepare(batch, done, preprocessing, state.config, state.model.config, generator_of(state.config.seed, 1, state.step))
    return learn(state, network, inputs, targets if teacher is None else teacher(inputs), factor, world)


def learn(state: State, network: nn.Module, inputs: Tensor, targets: Tensor, factor: float, world: World = ALONE) -> float:
    """One forward and backward pass over `inputs` (B, C, rows, cols) with their `targets`, (B,) labels or (B, K) shares, and one step of
    every optimizer at `factor` times its learning rate; returns the loss, over the whole batch. Raises TrainingError."""
    config, model = state.config, state.model
    model.train(not config.freeze)                                          # what does not learn behaves as it will afterwards
    device, whole = next(model.parameters()).device, len(inputs)
    inputs, targets = world.slice(inputs).to(device), world.slice(targets).to(device)
    for optimizer in state.optimizers:
        optimizer.zero_grad(set_to_none=True)
    with computing(device, inputs.shape[2:], model.config.patch, config.precision):
        logits = network(inputs)
    # the mean over processes of what each adds to the batch's mean; their slices may differ by a picture
    loss = F.cross_entropy(logits.float(), targets, label_smoothing=config.label_smoothing) * (len(targets) * world.size / whole)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf)
    loss = world.mean(loss.detach())
    if not (loss.isfinite() and norm.isfinite()):
        raise TrainingError(f"the loss stopped being a number at step {state.step + 1}: try a smaller learning rate or a longer warm-up")
    for optimizer in state.optimizers:
        peak = config.muon_lr if isinstance(optimizer, Muon) else config.lr
        for group in optimizer.param_groups:
            group["lr"] = peak * factor * group.get("rate", 1.0)
        optimizer.step()
    return loss.item()


def _agree(state: State, world: World) -> None:
    """Muon multiplies in float32 where some process would: each takes the whole step itself, and their weights stay the same."""
    for optimizer in state.optimizers:
        if isinstance(optimizer, Muon) and not world.all_ready(optimizer.numbers == torch.bfloat16):
            optimizer.numbers = torch.float32


def _check(model: nn.Module, train: Split, validation: Split, size: int, world: World) -> None:
    if not len(train) or not len(validation):
        raise DataError(f"training needs pictures in both parts, not {len(train)} to learn from and {len(validation)} to check with")
    if tuple(train.images.shape[1:]) != (model.config.channels, *model.config.image):
        raise DataError(f"the model takes pictures of {(model.config.channels, *model.config.image)}, not {tuple(train.images.shape[1:])}")
    if int(train.labels.max()) >= model.config.classes:
        raise DataError(f"the data have at least {int(train.labels.max()) + 1} classes and the model's head has {model.config.classes}")
    if size < world.size:
        raise DataError(f"{world.size} processes cannot share a batch of {size}: start fewer")


if __name__ == "__main__":
    from vitdemo import distributed
    from vitdemo.train_command import main

    raise SystemExit(distributed.ended(main()))

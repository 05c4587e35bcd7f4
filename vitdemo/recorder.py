"""Writes down what a run does while somebody iterates over `fit`: log, status, weights, film, mistakes, and the test at the end."""

import copy
import itertools
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

import vitdemo
from vitdemo import checkpoint, mistakes, runs, settings
from vitdemo.atomic import replacing
from vitdemo.budget import pictures_tested, stage_size, stage_sizes
from vitdemo.config import Preprocessing
from vitdemo.data import Split
from vitdemo.evaluate import Report, predict
from vitdemo.film import Camera
from vitdemo.model import ViT
from vitdemo.plan import Plan
from vitdemo.precision import in_bfloat16, products_in_bfloat16
from vitdemo.terminal import say
from vitdemo.train import State, Step

REPORT_EVERY = 0.5                              # seconds between two lines of the log
KEEP_EVERY, KEEP_SHARE = 60.0, 0.02             # seconds between two times that everything is saved, and the share of the time that it may take
TEACHERS = ("data", "preset", "seed", "seconds", "test_accuracy")           # what is said of a teacher: the file of every run has the same name
RECENT = 10.0                                   # seconds of training over which images/s are counted


class Parts(NamedTuple):
    """The pictures of a run: what they are called, how many it learns from, and those it is measured with."""

    name: str
    training: int
    validation: Split
    test: Split | None
    classes: tuple[str, ...]
    preprocessing: Preprocessing
    held: tuple[float, int] = (0.0, 0)                                      # share and seed of what is held out
    digest: str = ""                # of what is learned from and what is held out
    before: tuple[dict[str, Any], ...] = ()                                 # where the weights that it starts from come from, oldest first
    teacher: dict[str, Any] | None = None                                   # where the weights that it learns from come from, the last training


class Recorder:
    """Keeps a run's folder up to date. `open` comes first, after `restore` where a run goes on; then `take` gets every step, and `test`
    ends a run that was not stopped."""

    def __init__(self, folder: runs.RunFolder, plan: Plan, state: State, parts: Parts, *, quiet: bool):
        self.folder, self.plan, self.state, self.parts, self.quiet = folder, plan, state, parts, quiet
        self.camera = Camera(folder, classes=parts.classes, preprocessing=parts.preprocessing, validation=parts.validation)
        self.best = -1.0                        # highest accuracy of a look
        self.best_loss = math.inf               # lowest loss of a look with that accuracy: few pictures are soon all right, and it goes on falling
        self.weights: dict[str, Any] = {}       # the best ones of a network that has no checkpoint file
        self._given_up: set[str] = set()
        self._losses: list[float] = []          # since the last line of the log
        self._reported = -math.inf
        self._kept, self._keeping = time.monotonic(), 0.0                   # when everything was saved last, and how long that took
        self._pending: Step | None = None       # taken and not written down
        self._marks: deque[tuple[float, int]] = deque()                     # (seconds, images) of recent lines

    def open(self, *, resume: bool) -> None:
        """Begin the film and, in a new run, leave the untrained weights, so that there is a model to look into from the start."""
        if resume:                              # what the log says of later steps is made again
            self.folder.log({"resumed": self.state.step, "seconds": round(self.state.seconds, 3)})
        else:
            self._save_best(None)
            self.keep()
        self._extra("film", lambda: self.camera.open(self.state.model))

    def take(self, step: Step, now: float) -> None:
        """Note one step at the time `now` (seconds): a line at most every REPORT_EVERY seconds, and everything there is at every look."""
        if math.isfinite(step.loss):
            self._losses.append(step.loss)
        if step.logits is None and now - self._reported < REPORT_EVERY:
            self._pending = step
            return
        self._pending, look = None, None
        if step.logits is not None:
            report = Report.of(step.logits, self.parts.validation.labels, self.parts.classes)
            look = {"n": report.n, "standard_error": report.standard_error, "ece": report.expected_calibration_error}
            self._look(step, report)
        self._line(step, look)
        self._reported = now
        if time.monotonic() - self._kept > max(KEEP_EVERY, self._keeping / KEEP_SHARE):
            self.keep()                         # between two looks of a long run, which may be ended from outside

    def flush(self) -> None:
        """Write down and save the latest step, where somebody asked for an end between two looks."""
        if self._pending is not None:
            self._line(self._pending, None)
        self.keep()

    def _line(self, step: Step, look: dict[str, float] | None) -> None:
        """One line of the log, the status, and a line on the screen."""
        loss = sum(self._losses) / len(self._losses) if self._losses else math.nan
        self.folder.log({"step": step.step, "images": step.images, "epoch": round(step.epoch, 4), "progress": round(step.progress, 5),
                         "seconds": round(step.seconds, 3), "loss": loss, "rate": step.rate, "accuracy": step.accuracy,
                         **({"look": look} if look else {})})
        speed = self._speed(step)
        self.folder.write_status(state="running", message="", step=step.step, epoch=step.epoch, seconds=step.seconds, progress=step.progress,
                                 seconds_left=self.left(step, speed), images_per_second=speed, best_accuracy=max(self.best, 0.0))
        self._show(step, loss, speed)
        self._losses.clear()

    def left(self, step: Step, speed: float | None) -> float | None:
        """Seconds until the end, looks and the test included; None before the fifth step."""
        if not speed or not step.progress:
            return None
        budget, each = self.plan.train, self.state.seconds_a_look
        # of a run of minutes, progress is the share of its training time
        training = step.seconds * (1 / step.progress - 1) if budget.minutes else step.images / step.progress / speed * self._ahead(step.progress)
        return training + self.state.looks_ahead * each + self.tested * each / len(self.parts.validation)

    def _ahead(self, progress: float) -> float:
        """The share of all pictures that is still to come, each counted as so many times its own present cost as its size has patches more
        than now: a run that grows its pictures slows down."""
        recipe, vit = self.plan.train, self.plan.vit
        parts = itertools.pairwise((0.0, *recipe.stage_ends, 1.0))
        ahead = sum(max(0.0, end - max(progress, start)) * math.prod(size) for (start, end), size in zip(parts, stage_sizes(recipe, vit), strict=True))
        return ahead / math.prod(stage_size(progress, recipe, vit))

    def keep(self) -> None:
        """Write everything a resume needs, whole or not at all."""
        began = time.monotonic()
        try:
            with replacing(self.folder.last) as draft:
                torch.save({**self.state.state_dict(), "best": self.best, "best_loss": self.best_loss, "best_weights": self.weights,
                            "pictures": self.parts.digest}, draft)
        except (OSError, RuntimeError) as error:
            raise runs.RunError(f"the run could not be saved ({type(error).__name__}): free some disk space and resume") from error
        self._kept = time.monotonic()
        self._keeping = self._kept - began

    @property
    def tested(self) -> int:
        """How many test pictures the run is tested with."""
        return pictures_tested(len(self.parts.test or ()), self.plan.train, self.state.seconds_a_look / len(self.parts.validation))

    def test(self, between: Callable[[], None]) -> float | None:
        """Look once at the test pictures with the best weights, or at as many of them, drawn at random, as there is time for; returns their
        accuracy, or None where there are none."""
        test, parts = self.parts.test, self.parts
        if test is None:
            return None
        if self.tested < len(test):
            test = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(0))[:self.tested].sort().values]
        self.folder.write_status(message="Trained; now counting right answers on the test pictures.", seconds_left=None)
        kept = checkpoint.load(self.folder.best) if self.plan.network == "vit" else None
        model = kept.model if kept else copy.deepcopy(self.state.model)
        if not kept:
            model.load_state_dict(self.weights)
        logits = predict(model.to(next(self.state.model.parameters()).device), test.images, parts.preprocessing, between=between)
        report = Report.of(logits, test.labels, parts.classes)
        if kept:
            checkpoint.save(self.folder.best, model, classes=parts.classes, preprocessing=parts.preprocessing,
                            provenance={**kept.provenance, **report.tested()})
        path = self.folder.path / "mistakes-test.safetensors"
        self._extra("list of mistakes", lambda: mistakes.save(path, test, logits, parts.classes))
        self.folder.log({"test": report.to_json()})
        return report.accuracy

    def _look(self, step: Step, report: Report) -> None:
        loss = F.cross_entropy(step.logits, self.parts.validation.labels).item()
        if (report.accuracy, -loss) > (self.best, -self.best_loss):
            self.best, self.best_loss = report.accuracy, loss
            self._save_best(step)
        self._extra("film", lambda: self.camera.shoot(self.state.model, step, report))
        path = self.folder.path / "mistakes-validation.safetensors"
        self._extra("list of mistakes", lambda: mistakes.save(path, self.parts.validation, step.logits, self.parts.classes))
        self.keep()

    def _save_best(self, step: Step | None) -> None:
        model = self.state.model
        if isinstance(model, ViT):
            checkpoint.save(self.folder.best, model, classes=self.parts.classes, preprocessing=self.parts.preprocessing,
                            provenance=provenance(self.plan, step, self.parts, model))
        else:
            self.weights = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}

    def restore(self) -> None:
        """Go on from last.pt. Raises RunError where it does not fit."""
        try:
            saved = torch.load(self.folder.last, map_location="cpu", weights_only=True)
            if saved.get("pictures", self.parts.digest) != self.parts.digest:
                raise runs.RunError("the pictures have changed since this run was stopped, so it cannot go on: start a new run")
            self.state.load_state_dict(saved)
            self.best, self.best_loss, self.weights = float(saved["best"]), float(saved.get("best_loss", math.inf)), saved.get("best_weights", {})
        except runs.RunError:
            raise
        except Exception as error:              # whatever a damaged or foreign file makes torch say
            raise runs.RunError(f"the run cannot go on, because last.pt is damaged or does not fit its settings and pictures "
                                f"({type(error).__name__}): start a new run") from error

    def _extra(self, what: str, make: Callable[[], None]) -> None:
        """What fails here is given up, since training matters more; only a full disk is said, because it would end the run anyway."""
        if what in self._given_up:
            return
        try:
            make()
        except runs.RunError:
            raise
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise runs.RunError(f"the {what} could not be saved ({reason}): free some disk space and resume") from error
        except Exception as error:
            self._given_up.add(what)
            say(f"no more {what} of this run: {type(error).__name__}: {error}")

    def _speed(self, step: Step) -> float | None:
        """Images per second of late; None before the fifth step."""
        self._marks.append((step.seconds, step.images))
        while len(self._marks) > 2 and step.seconds - self._marks[1][0] > RECENT:
            self._marks.popleft()
        (since, before), images = self._marks[0], step.images
        if step.step < 5:
            return None
        return (images - before) / (step.seconds - since) if step.seconds > since and images > before else images / max(step.seconds, 1e-9)

    def _show(self, step: Step, loss: float, speed: float | None) -> None:
        live = sys.stdout.isatty()
        if self.quiet or not (live or step.accuracy is not None):
            return
        left = self.left(step, speed)
        text = (f"{step.progress:4.0%}  epoch {step.epoch:6.2f}  loss {loss:6.3f}  best {max(self.best, 0):6.2%}  "
                f"{speed or 0:5.0f} images/s  {f'{left:4.0f} s left' if left is not None else ''}")
        say(f"\r{text:<100}" if live else text, end="" if live and step.accuracy is None else "\n")


def provenance(plan: Plan, step: Step | None, parts: Parts, model: nn.Module) -> dict[str, Any]:
    """Where weights come from: the run, how far it had come (`step`; None: nowhere yet), and on what."""
    device, way = next(model.parameters()).device, plan.train.precision
    half = ["bf16 autocast"] * any(in_bfloat16(device, size, plan.vit.patch, way) for size in stage_sizes(plan.train, plan.vit))
    half += ["Muon's iteration in bf16"] * (plan.train.optimizer == "muon" and products_in_bfloat16(device, way))
    card = f", {torch.cuda.get_device_name(device)}" if device.type == "cuda" else ""
    return {"data": parts.name, "held_out": list(parts.held), "training_pictures": parts.training, "validation_pictures": len(parts.validation),
            "validation_accuracy": step and step.accuracy, "model": plan.model, "preset": plan.preset, "train": plan.train.to_json(),
            "title": plan.title, "started_from": plan.model if plan.start else "random weights",
            **({"before": list(parts.before)} if parts.before else {}),
            **({"taught_by": "the model in the box" if plan.teacher == "box" else PurePath(plan.teacher).stem} if plan.teacher else {}),
            **({"teacher": {name: parts.teacher[name] for name in TEACHERS if parts.teacher.get(name) is not None}} if parts.teacher else {}),
            "seed": plan.train.seed, "epochs": round(step.epoch, 3) if step else 0, "seconds": round(step.seconds, 1) if step else 0,
            "threads": torch.get_num_threads(), "hardware": settings.machine() + card,
            "precision": f"{' and '.join(half)} in training, float32 elsewhere" if half else "float32", "date": time.strftime("%Y-%m-%d"),
            "version": f"vitdemo {vitdemo.__version__}, torch {torch.__version__}"}

"""The command behind `python -m vitdemo.train`: one training run, carried out in a run folder.

The page starts the same command as a child process with `--from-run`; then everything it needs stands in the folder's config.json.
"""

import argparse
import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import vitdemo
from vitdemo import checkpoint, data, downloads, runs, settings
from vitdemo.atomic import replacing
from vitdemo.config import PRESETS, SIZES, ConfigError, Preprocessing
from vitdemo.evaluate import evaluate
from vitdemo.model import ViT
from vitdemo.plan import Plan, plan
from vitdemo.train import State, Step, TrainingError, fit

REPORT_EVERY = 0.5                              # seconds between two lines of the log


class Stopped(Exception):
    """Somebody asked for the run's end before training began."""


class Recorder:
    """Writes a run's log, status and checkpoints while somebody iterates over `fit`."""

    def __init__(self, folder: runs.RunFolder, wanted: Plan, *, quiet: bool):
        self.folder, self.plan, self.quiet = folder, wanted, quiet
        self.losses: list[float] = []
        self.best = -1.0
        self.reported = 0.0
        self.look_seconds = 0.0

    def take(self, step: Step, now: float) -> bool:
        """Note one step; writes at most every REPORT_EVERY seconds and at every look. Returns whether it is the best look so far."""
        if step.step:
            self.losses.append(step.loss)
        if step.accuracy is None and now - self.reported < REPORT_EVERY:
            return False
        better = step.accuracy is not None and step.accuracy > self.best
        if better:
            self.best = step.accuracy
        loss = sum(self.losses) / len(self.losses) if self.losses else math.nan
        self.folder.log({"step": step.step, "images": step.images, "epoch": round(step.epoch, 4), "progress": round(step.progress, 5),
                         "seconds": round(step.seconds, 3), "loss": loss, "rate": step.rate, "accuracy": step.accuracy})
        speed = step.images / step.seconds if step.step >= 5 else None
        self.folder.write_status(state="running", message="", step=step.step, epoch=step.epoch, seconds=step.seconds, progress=step.progress,
                                 seconds_left=self.left(step), images_per_second=speed, best_accuracy=max(self.best, 0.0))
        self._show(step, loss, speed)
        self.losses.clear()
        self.reported = now
        return better

    def left(self, step: Step) -> float | None:
        """Seconds until the end, looks at the validation part included; None before the fifth step."""
        if step.step < 5 or not step.progress:
            return None
        looks = self.plan.train.evaluations * (1 - step.progress)
        return step.seconds * (1 - step.progress) / step.progress + looks * self.look_seconds

    def _show(self, step: Step, loss: float, speed: float | None) -> None:
        live = sys.stdout.isatty()
        if self.quiet or not (live or step.accuracy is not None):
            return
        left = self.left(step)
        text = (f"{step.progress:4.0%}  epoch {step.epoch:6.2f}  loss {loss:6.3f}  best {max(self.best, 0):6.2%}  "
                f"{speed or 0:5.0f} images/s  {f'{left:4.0f} s left' if left is not None else ''}")
        print(f"\r{text:<100}" if live else text, end="" if live and step.accuracy is None else "\n", flush=True)


def carry_out(folder: runs.RunFolder, wanted: Plan, *, resume: bool = False, quiet: bool = False) -> Path:
    """Train as planned, writing into `folder`, and return the path of the best checkpoint. Raises ValueError subclasses."""
    torch.set_num_threads(wanted.train.threads or settings.cores())
    if resume:
        folder.withdraw_stop()
    with _beating(folder):
        return _carry_out(folder, wanted, resume=resume, quiet=quiet)


@contextlib.contextmanager
def _beating(folder: runs.RunFolder) -> Iterator[None]:
    """A sign of life every few seconds, also while a large model looks at its validation part and writes nothing."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(5):
            with contextlib.suppress(OSError):
                os.utime(folder.path / "config.json")

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _carry_out(folder: runs.RunFolder, wanted: Plan, *, resume: bool, quiet: bool) -> Path:
    folder.write_status(state="starting", message="Getting the pictures.", pid=os.getpid())
    dataset = data.load(wanted.data, size=wanted.vit.image, channels=wanted.vit.channels, progress=_reading(folder))
    if dataset.skipped:
        folder.log({"skipped": list(dataset.skipped[:1000])})
        print(f"{len(dataset.skipped)} files are no pictures and are left out, for example {dataset.skipped[0]}", flush=True)
    train, validation = data.hold_out(dataset.train, wanted.train.validation, wanted.train.seed)
    mean, std = data.statistics(train)
    preprocessing = Preprocessing(size=wanted.vit.image, channels=wanted.vit.channels, mean=mean, std=std)
    model = ViT(wanted.vit.with_(classes=len(dataset.classes)), torch.Generator().manual_seed(wanted.train.seed))
    state = State(model, wanted.train)
    recorder = Recorder(folder, wanted, quiet=quiet)
    if resume:
        recorder.best = _restore(folder, state)
    stopped = _train(folder, recorder, state, (train, validation), preprocessing, dataset.classes)
    _keep(folder, state, recorder.best)
    best = checkpoint.load(folder.best)
    tested = {}
    if dataset.test is not None and not stopped:
        folder.write_status(message="Trained; now counting right answers on the test pictures.", seconds_left=None)
        report = evaluate(best.model, dataset.test, preprocessing, dataset.classes)
        tested = {"test_accuracy": report.accuracy, "test_pictures": report.n, "test_per_class": report.per_class}
        checkpoint.save(folder.best, best.model, classes=best.classes, preprocessing=preprocessing, provenance={**best.provenance, **tested})
        folder.log({"test": report.to_json()})
    folder.write_status(state="stopped" if stopped else "finished", seconds_left=0, test_accuracy=tested.get("test_accuracy"), message=(
        "Stopped; the best weights so far are kept." if stopped else
        f"Finished: {best.provenance['validation_accuracy']:.1%} of the validation pictures right."))
    return folder.best


def _train(folder: runs.RunFolder, recorder: Recorder, state: State, parts: tuple[data.Split, data.Split],
           preprocessing: Preprocessing, classes: tuple[str, ...]) -> bool:
    """Iterate over `fit`, keeping the best weights; returns whether somebody asked for an end before it was reached."""
    started = time.monotonic()
    steps = fit(state.model, *parts, recorder.plan.train, preprocessing=preprocessing, state=state)
    while True:
        before, trained = time.monotonic(), state.seconds
        try:
            step = next(steps, None)
        except TrainingError as error:
            raise TrainingError(f"{error} (the best weights so far are kept)") from None
        if step is None:
            return False
        if step.accuracy is not None:
            recorder.look_seconds = time.monotonic() - before - (state.seconds - trained)
        if recorder.take(step, time.monotonic() - started):
            provenance = _provenance(recorder.plan, step, len(parts[0]), len(parts[1]))
            checkpoint.save(folder.best, state.model, classes=classes, preprocessing=preprocessing, provenance=provenance)
        if step.accuracy is not None:
            _keep(folder, state, recorder.best)
        if folder.stop_requested() and step.progress < 1:
            return True


def _keep(folder: runs.RunFolder, state: State, best: float) -> None:
    """Write everything a resume needs, whole or not at all."""
    try:
        with replacing(folder.last) as draft:
            torch.save({**state.state_dict(), "best": best}, draft)
    except (OSError, RuntimeError) as error:
        raise runs.RunError(f"the run could not be saved ({type(error).__name__}): free some disk space and resume") from error


def _restore(folder: runs.RunFolder, state: State) -> float:
    saved = torch.load(folder.last, weights_only=True)
    state.load_state_dict(saved)
    return float(saved["best"])


def _provenance(wanted: Plan, step: Step, train: int, validation: int) -> dict[str, Any]:
    return {"data": Path(wanted.data).stem, "training_pictures": train, "validation_pictures": validation,
            "validation_accuracy": step.accuracy, "model": wanted.model, "preset": wanted.preset, "train": wanted.train.to_json(),
            "seed": wanted.train.seed, "epochs": round(step.epoch, 3), "seconds": round(step.seconds, 1),
            "threads": torch.get_num_threads(), "hardware": settings.machine(), "date": time.strftime("%Y-%m-%d"),
            "version": f"vitdemo {vitdemo.__version__}, torch {torch.__version__}"}


def _reading(folder: runs.RunFolder) -> data.Progress:
    told = [0.0]

    def tell(what: str, done: int, total: int) -> None:
        if folder.stop_requested():
            raise Stopped
        if time.monotonic() - told[0] > REPORT_EVERY:
            told[0] = time.monotonic()
            folder.write_status(message=f"Getting the pictures: {done:,} of {total:,} {what}.")
    return tell


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vitdemo.train", description="Train a Vision Transformer; the last line printed is the best checkpoint.")
    parser.add_argument("--model", help=f"size: {', '.join(SIZES)}")
    parser.add_argument("--preset", help=f"recipe: {', '.join(PRESETS)} (default: class)")
    parser.add_argument("--data", help="cifar10, mnist, or a folder or .zip of class folders")
    parser.add_argument("--minutes", type=float, help="how long to train")
    parser.add_argument("--epochs", type=int, help="how many passes to train, instead of minutes")
    parser.add_argument("--seed", type=int, help="of everything random (default: 0)")
    parser.add_argument("--threads", type=int, help="torch threads (default: every core)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change any other setting of the recipe or the model")
    parser.add_argument("--out", type=Path, help="the run's folder (default: a new one in the cache folder)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--from-run", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for item in args.set:
        name, equals, text = item.partition("=")
        if not equals:
            raise ConfigError(f"--set takes NAME=VALUE, not {item!r}")
        try:
            changes[name] = json.loads(text)
        except ValueError:
            changes[name] = text
    return changes | {name: getattr(args, name) for name in ("seed", "threads") if getattr(args, name) is not None}


def _prepare(args: argparse.Namespace) -> tuple[runs.RunFolder, Plan]:
    """The run's folder and plan: from the command line, or from the folder when a run there is begun for the page or resumed."""
    folder = runs.RunFolder(args.out or settings.read().runs_folder / runs.new_id())
    given = {name: getattr(args, name) for name in ("model", "preset", "data", "minutes", "epochs") if getattr(args, name) is not None}
    if not (args.resume or args.from_run):
        wanted = plan(**given, changes=_changes(args))
        data.is_local(wanted.data)                                          # a path that leads nowhere leaves no folder behind
        if wanted.data not in downloads.KNOWN:
            wanted = wanted._replace(data=str(Path(wanted.data).expanduser().resolve()))      # a resume may come from another folder
        folder.create(wanted.to_json())
        return folder, wanted
    if args.resume and not folder.last.exists():
        raise runs.RunError(f"there is no run to resume in {folder.path.name!r}: --out names the folder of a run that was stopped after its first look")
    if args.resume and not folder.status().over and time.time() - folder.heartbeat() < 30:
        raise runs.RunError(f"the run in {folder.path.name!r} is still going on: stop it first")
    wanted = Plan.from_json(folder.config())
    again = {"model": wanted.model, "preset": wanted.preset, "data": wanted.data, **wanted.train.to_json(), **wanted.vit.to_json()}
    for name, value in (given | _changes(args)).items():
        if again.get(name) != value:
            raise ConfigError(f"this run has {name} {again.get(name)!r}, so it cannot be resumed with {value!r}; leave it out or start a new run")
    return folder, wanted


def main(arguments: list[str] | None = None) -> int:
    args = _arguments(arguments)
    folder = None
    try:
        folder, wanted = _prepare(args)
        if args.from_run:
            runs.watch_parent(folder.request_stop)
        elif not args.resume:
            print(f"getting the pictures; the run is kept in {folder.path}", flush=True)
        print(carry_out(folder, wanted, resume=args.resume, quiet=args.from_run))
    except Stopped:
        _last_word(folder, "stopped", "Stopped before the training began.")
        return 0
    except KeyboardInterrupt:
        _last_word(folder, "stopped", "Stopped; the weights of the last look are kept.")
        print("\nstopped" + (f"; {folder.best} holds the best weights, --resume goes on" if folder and folder.best.exists() else ""), file=sys.stderr)
        return 130
    except (ValueError, OSError, MemoryError) as error:
        sentence = str(error) or type(error).__name__
        if not isinstance(error, ConfigError):                              # a wrong setting says nothing about the run in that folder
            _last_word(folder, "failed", sentence)
        print(sentence, file=sys.stderr)
        return 1
    return 0


def _last_word(folder: runs.RunFolder | None, state: str, message: str) -> None:
    """Leave a final state in a run's folder, where there is one and it can still be written."""
    if folder is not None and (folder.path / "config.json").exists():
        with contextlib.suppress(runs.RunError):
            folder.write_status(state=state, message=message)

"""Carries out one training run in its folder: from the pictures to the last word, on one process or several."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from vitdemo import beginning, data, jsonfile, runs, settings
from vitdemo.batches import batch_size
from vitdemo.budget import stage_sizes
from vitdemo.checkpoint import Loaded, held_out
from vitdemo.distributed import World
from vitdemo.plan import Plan
from vitdemo.recorder import REPORT_EVERY, Parts, Recorder
from vitdemo.teacher import Teacher
from vitdemo.terminal import say
from vitdemo.train import ALONE, State, Step, TrainingError, fit

LISTED = 1000                                   # names of left-out files that the log keeps


class Stopped(Exception):
    """Somebody asked for the run's end."""


def carry_out(folder: runs.RunFolder, wanted: Plan, *, resume: bool = False, quiet: bool = False, world: World = ALONE) -> Path:
    """Train as planned, writing into `folder`, and return the path of the best checkpoint (of a network that has none, of what a resume
    needs). Of several processes only the first one writes. Raises ValueError subclasses, and Stopped before training has begun."""
    torch.set_num_threads(wanted.train.threads or settings.shared_threads(world.here))
    with _beating(folder) if world.rank == 0 else contextlib.nullcontext(), _enough_memory(wanted):
        return _carry_out(folder, wanted, resume=resume, quiet=quiet, world=world)


def _carry_out(folder: runs.RunFolder, wanted: Plan, *, resume: bool, quiet: bool, world: World) -> Path:
    writes = world.rank == 0
    if world.size > 1 and wanted.network != "vit":
        raise TrainingError("a network with batch norm learns from its own slice only: train it with one process")
    if writes:
        folder.write_status(state="starting", message="Getting the pictures.", pid=os.getpid())
    # a run that goes on has the picture's preparation in its own checkpoint, and needs the first one no more
    source = (beginning.opened(str(folder.best)) if resume else beginning.opened(wanted.start, wanted.heads)) if wanted.start else None
    taught_by = beginning.opened(wanted.teacher) if wanted.teacher else None
    size, channels = (source.preprocessing.size, source.config.channels) if source else (wanted.vit.image, wanted.vit.channels)
    with world.first():
        dataset = data.load(wanted.data, size=size, channels=channels, progress=_reading(folder) if writes else None)
    held = _held(wanted, (source, taught_by), dataset.name)
    train, validation = data.hold_out(dataset.train, *held)
    model, preprocessing = beginning.beginning(wanted, source, train, len(dataset.classes))
    wanted = wanted._replace(vit=model.config)
    teacher = None if taught_by is None else Teacher(taught_by, dataset.classes, preprocessing, sizes=stage_sizes(wanted.train, wanted.vit),
                                                     precision=wanted.train.precision).to(world.device)
    state = State(model.to(world.device), wanted.train)
    parts = Parts(dataset.name, len(train), validation, dataset.test, dataset.classes, preprocessing, held, data.digest(train, validation),
                  before=(source.before if resume else source.lineage) if source else (), teacher=taught_by.provenance if taught_by else None)
    recorder = Recorder(folder, wanted, state, parts, quiet=quiet)
    if resume:
        recorder.restore()
    if writes:
        _announce(folder, wanted, dataset, len(train), resume=resume)
        recorder.open(resume=resume)
    asking = _asking(folder) if world.size == 1 else None                   # of several processes all must stop at the same step
    steps = fit(model, train, validation, wanted.train, preprocessing=preprocessing, state=state, between=asking,
                tested=len(dataset.test) if dataset.test else 0, teacher=teacher, world=world)
    stopped = _follow(steps, folder, recorder, world)
    if writes:
        _finish(folder, recorder, stopped=stopped)
    return folder.best if wanted.network == "vit" else folder.last


def _held(wanted: Plan, models: Iterable[Loaded | None], name: str) -> tuple[float, int]:
    """Share and seed of the part that is held out: those of the latest training on the same data of the first of the `models` that had one,
    what a run starts from before what it learns from, so that nothing its weights have learned is held out."""
    trainings = (facts for model in models if model for facts in (model.provenance, *reversed(model.before)))
    known = (held_out(facts) for facts in trainings if facts.get("data") == name)
    return next(filter(None, known), (wanted.train.validation, wanted.train.seed))


def _announce(folder: runs.RunFolder, wanted: Plan, dataset: data.Dataset, training: int, *, resume: bool) -> None:
    """Leave what was found out about the run before its first step."""
    if wanted.to_json() != folder.config():
        try:
            jsonfile.write(folder.path / "config.json", wanted.to_json())
        except OSError as error:
            raise runs.RunError(f"config.json could not be written ({error.strerror}): free some disk space") from error
    if (dataset.skipped or dataset.duplicates) and not resume:
        folder.log({"skipped": list(dataset.skipped[:LISTED]), "skipped_count": len(dataset.skipped),
                    "duplicates": list(dataset.duplicates[:LISTED]), "duplicates_count": len(dataset.duplicates)})
    if dataset.skipped:
        say(f"{len(dataset.skipped)} files are no pictures and are left out, for example {dataset.skipped[0]}")
    if dataset.duplicates:
        say(f"{len(dataset.duplicates)} pictures are there more than once and are counted once, for example {dataset.duplicates[0]}")
    size = batch_size(training, wanted.train.batch)
    if size != wanted.train.batch:
        say(f"there are {training} pictures to learn from, so every step sees {size} of them instead of {wanted.train.batch}")


def _follow(steps: Iterator[Step], folder: runs.RunFolder, recorder: Recorder, world: World) -> bool:
    """Iterate over `fit`, writing down what it does; returns whether somebody asked for an end before it was reached."""
    started = time.monotonic()
    while True:
        try:
            step = next(steps, None)
        except Stopped:                                                     # during a look
            return True
        except TrainingError as error:
            raise TrainingError(f"{error} (the best weights so far are kept)") from None
        if step is None:
            return False
        if world.rank == 0:
            recorder.take(step, time.monotonic() - started)
        if world.told(float(world.rank == 0 and folder.stop_requested())) and step.progress < 1:
            return True


def _finish(folder: runs.RunFolder, recorder: Recorder, *, stopped: bool) -> None:
    """The test, unless somebody asked for an end before or in the middle of it, and the last word."""
    accuracy = None
    if not stopped:
        try:
            accuracy = recorder.test(_asking(folder))
        except Stopped:
            stopped = True
    if stopped:
        recorder.flush()
    end = "Stopped" if folder.stopped_by_person() else "Interrupted"
    folder.write_status(state="stopped" if stopped else "finished", seconds_left=None if stopped else 0, test_accuracy=accuracy, message=(
        f"{end}; the best weights so far are kept." if stopped else f"Finished: {recorder.best:.1%} of the validation pictures right."))


def _asking(folder: runs.RunFolder) -> Callable[[], None]:
    def ask() -> None:
        if folder.stop_requested():
            raise Stopped
    return ask


def _reading(folder: runs.RunFolder) -> data.Progress:
    told, ask = [0.0], _asking(folder)

    def tell(what: str, done: int, total: int) -> None:
        ask()
        if time.monotonic() - told[0] > REPORT_EVERY:
            told[0] = time.monotonic()
            folder.write_status(message=f"Getting the pictures: {done:,} of {total:,} {what}.")
    return tell


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


@contextlib.contextmanager
def _enough_memory(wanted: Plan) -> Iterator[None]:
    """Turn what torch and Python say of too little memory into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search(r"not enough memory|allocate memory|out of memory", str(error), re.IGNORECASE):
            raise
        rows, cols = wanted.vit.image
        raise TrainingError(f"there is not enough memory for batches of {wanted.train.batch} pictures of {rows} x {cols} pixels and the model "
                            f"{wanted.model}: try a smaller batch or model") from error

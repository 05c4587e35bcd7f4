"""How fast a plan would train on this machine, from a few real optimizer steps on random pictures; no data are read.

    python -m vitdemo.pace --preset class --threads 1 --minutes 3
"""

import itertools
import json
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from vitdemo import beginning
from vitdemo.budget import stage_size
from vitdemo.config import Preprocessing
from vitdemo.data import Split
from vitdemo.distributed import World
from vitdemo.evaluate import batch_of_looks, predict
from vitdemo.plan import Plan
from vitdemo.train import ALONE, State, fit

PROBE, GROWTH = 8, 4                            # pictures of the first steps that are timed, and how much larger the next ones are


class Pace(NamedTuple):
    """Training pictures per second, over all stages and for each of them as (rows of pixels, pictures per second)."""

    images_per_second: float
    looks_per_second: float         # pictures that are only looked at, at full size
    stages: tuple[tuple[int, float], ...]
    threads: int
    seconds: float                  # that the measurement took
    parameters: int


def measure(wanted: Plan, *, threads: int, seconds: float = 3.0, world: World = ALONE) -> Pace:
    """Time the steps of `wanted` for about `seconds`, at least one at each of its stages after one that warms up.

    Where a step on a whole batch would take more than twice the time that its stage has, one on fewer pictures is timed instead. Raises
    ValueError subclasses for a plan that cannot begin.
    """
    began, before = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        config = wanted.train
        shares = config.stages or (1.0,)
        stages = tuple(_stage(wanted, share, seconds / len(shares), world) for share in shares)
        looks = _looks(wanted, seconds / 6, world)
    finally:
        torch.set_num_threads(before)
    ends = (0.0, *config.stage_ends, 1.0)
    parts = [end - start for start, end in itertools.pairwise(ends)]
    speeds = [speed for _, speed, _ in stages]
    # stages end after shares of the budget: of the time in a run of minutes, of the pictures otherwise
    overall = sum(p * s for p, s in zip(parts, speeds)) if config.minutes else 1 / sum(p / s for p, s in zip(parts, speeds))
    return Pace(overall, looks, tuple((rows, speed) for rows, speed, _ in stages), threads, time.perf_counter() - began, stages[0][2])


def images_in(pace: Pace, minutes: float) -> int:
    """How many training pictures a run of so many minutes sees."""
    return round(60 * minutes * pace.images_per_second)


def _stage(wanted: Plan, share: float, seconds: float, world: World) -> tuple[int, float, int]:
    """(rows of pixels, pictures per second, parameters) of training at `share` of the full size."""
    model, preprocessing, drawn = _begun(wanted, world)
    size = wanted.train.batch
    config = wanted.train.with_(minutes=0.0, epochs=0, steps=100_000_000, stages=(share,), stage_ends=(), evaluations=1)

    def speed(rows: int, least: float) -> float:
        """Pictures per second in steps of `rows` pictures, timed for `least` seconds after the first step."""
        state, pictures = State(model, config), drawn(rows)
        steps = fit(model, pictures, pictures[:1], config, preprocessing=preprocessing, state=state, world=world)
        warm = next(step for step in steps if step.step == 1).seconds
        for step in steps:
            if step.seconds - warm >= least:
                return rows * (step.step - 1) / (step.seconds - warm)
        raise AssertionError("a run of so many steps does not end here")

    rows = min(max(PROBE, world.size), size)
    fast = speed(rows, seconds * (rows == size))
    # a large batch is faster per picture than a small one, so this foresees too much time rather than too little
    while rows < size and min(GROWTH * rows, size) / fast < 2 * seconds:
        rows = min(GROWTH * rows, size)
        fast = speed(rows, seconds * (rows == size))
    return stage_size(0.0, config, model.config)[0], fast, sum(p.numel() for p in model.parameters())


def _looks(wanted: Plan, seconds: float, world: World) -> float:
    """Pictures per second of looking alone, timed for at least `seconds` after one batch that warms up."""
    model, preprocessing, drawn = _begun(wanted, world)
    pictures, seen = drawn(batch_of_looks(preprocessing.size, preprocessing.channels)).images, 0
    predict(model, pictures, preprocessing)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or not seen:
        predict(model, pictures, preprocessing)
        seen += len(pictures)
    return seen / (time.perf_counter() - began)


def _begun(wanted: Plan, world: World) -> tuple[nn.Module, Preprocessing, Callable[[int], Split]]:
    """The plan's model as it begins, how it wants its pictures, and random ones of its size by their number: as many as are needed, since
    a whole batch may be more than memory holds."""
    source = beginning.opened(wanted.start, wanted.heads) if wanted.start else None
    vit = source.config.with_(image=source.preprocessing.size) if source else wanted.vit
    classes, generator = max(2, wanted.vit.classes), torch.Generator().manual_seed(0)

    def drawn(rows: int) -> Split:
        return Split(torch.randint(0, 256, (rows, vit.channels, *vit.image), dtype=torch.uint8, generator=generator),
                     torch.randint(0, classes, (rows,), generator=generator))

    model, preprocessing = beginning.beginning(wanted, source, drawn(PROBE), classes)
    return model.to(world.device), preprocessing, drawn


def main(arguments: list[str] | None = None) -> int:
    import argparse
    import sys

    from vitdemo import distributed, heap, settings
    from vitdemo.plan import plan, setting

    parser = argparse.ArgumentParser(prog="python -m vitdemo.pace",
                                     description="Measure how fast this machine trains; prints one line of JSON.")
    for name in ("preset", "model", "start", "network"):
        parser.add_argument(f"--{name}", help="as for vitdemo.train")
    parser.add_argument("--minutes", type=float, help="also say how many pictures so many minutes are")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change a setting of the recipe or the model")
    parser.add_argument("--threads", type=int, default=0, help="torch threads (default: every core)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to measure (default: 3)")
    args = parser.parse_args(arguments)
    heap.keep()                                                             # as the training command does
    try:
        named = {name: getattr(args, name) for name in ("preset", "model", "start", "network")}
        named = {name: value for name, value in named.items() if value is not None}
        wanted = plan(**named, changes=dict(map(setting, args.set)))
        with distributed.joined() as world:
            found = measure(wanted, threads=args.threads or settings.shared_threads(world.here), seconds=args.seconds, world=world)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        print(str(error) or type(error).__name__, file=sys.stderr)
        return 1
    print(json.dumps(found._asdict() | ({"images": images_in(found, args.minutes)} if args.minutes else {})))
    return 0


if __name__ == "__main__":
    from vitdemo import distributed

    raise SystemExit(distributed.ended(main()))

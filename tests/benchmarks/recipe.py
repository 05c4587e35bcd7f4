"""The short recipe, one factor at a time: what each of its parts is worth, judged on the validation pictures (never on the test pictures).

    python tests/benchmarks/recipe.py --steps 900 --threads 1 --seeds 0 1 2 [--only "AdamW for everything" ...] [--keep FILE]
    python tests/benchmarks/recipe.py --minutes 3 --threads 2           equal times instead of equal steps, on a machine that does nothing else
    python tests/benchmarks/recipe.py --overtake 10     after how many seconds the recipe passes what the plain one, at the best of three rates,
                                                        reaches in 10 minutes; of the first seed

Each row is the preset "class" with one change, and how far it lies from the first row with its standard error, seed by seed. What is in FILE
already is not run again, so a long table can be made in pieces. By hand. Data: VITDEMO_DATA or the cache.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from short_runs import best, machine, spread, trained

import vitdemo
from vitdemo import heap, settings
from vitdemo.plan import Plan, plan

LOOKS = 4                                       # of each run at the validation pictures; the best counts
PLAIN = {"optimizer": "adamw", "lr": 1e-3, "stages": [], "stage_ends": []}
RATES = (1e-3, 2e-3, 4e-3)                      # of the plain recipe, where the two are set against each other
CHANGES: dict[str, dict[str, Any]] = {
    "the recipe": {}, "AdamW for everything": {"optimizer": "adamw", "lr": 1.5e-3}, "full size only": {"stages": [], "stage_ends": []},
    "AdamW for everything, rate halved": {"optimizer": "adamw", "lr": 0.75e-3}, "AdamW for everything, rate doubled": {"optimizer": "adamw", "lr": 3e-3},
    "both": PLAIN, "both, rate halved": {**PLAIN, "lr": 0.5e-3}, "both, rate doubled": {**PLAIN, "lr": 2e-3}, "both, rate times four": {**PLAIN, "lr": 4e-3},
    "Muon's rate doubled": {"muon_lr": 0.016}, "Muon's rate halved": {"muon_lr": 0.004}, "AdamW's rate tripled": {"lr": 6e-3}, "less momentum": {"momentum": 0.9},
    "batch 64": {"batch": 64}, "batch 256": {"batch": 256}, "shifts of up to a pixel": {"shift": 1}, "shifts of up to 4 pixels": {"shift": 4}, "no flip": {"flip": False}, "no label smoothing": {"label_smoothing": 0.0},
    "cosine decay": {"decay": "cosine"}, "no warm-up": {"warmup": 0.0}, "mean of the patches": {"pool": "mean"}, "no weight decay": {"weight_decay": 0.0},
    "whole gradients": {"clip": 0.0}, "one size more, 12 pixels": {"stages": [0.375, 0.5, 0.75, 1], "stage_ends": [0.2, 0.5, 0.75]},
    "less at full size": {"stage_ends": [0.5, 0.9]}, "wide and shallow": {"dim": 128, "heads": 4, "depth": 4},
    "four registers": {"registers": 4}, "layer scale": {"layer_scale": True}, "positions as a fixed table": {"positions": "sinusoidal"},
}


class Row(NamedTuple):
    """What one run came to."""

    images: int
    seconds: float
    accuracy: float                 # the best on the validation pictures


def planned(changes: dict[str, Any], threads: int, seed: int, minutes: float | None, steps: int | None = None) -> Plan:
    """A run of the recipe with `changes`, so many minutes or steps long."""
    return plan(preset="class", minutes=minutes, steps=steps, changes={"threads": threads, "seed": seed, "evaluations": LOOKS, **changes})


def row(wanted: Plan) -> Row:
    found = trained(wanted)[0]
    return Row(found[-1]["images"], found[-1]["seconds"], best(found))


def overtake(minutes: float, threads: int, seed: int, file: Path | None) -> None:
    """Print how long the recipe takes for what the plain one, as long as `minutes` and at the best of its RATES, reaches in the end."""
    goal = 0.0
    for rate in RATES:
        found = kept(file, planned({**PLAIN, "lr": rate}, threads, seed, minutes))
        print(f"AdamW at full size, rate {rate:g}, reaches {found.accuracy:.1%} in {found.seconds:.0f} s ({found.images:,} pictures).", flush=True)
        goal = max(goal, found.accuracy)
    for share in (0.125, 0.25, 0.5, 1.0):                                   # the recipe's schedule is as long as its run
        found = kept(file, planned({}, threads, seed, share * minutes))
        print(f"The recipe reaches {found.accuracy:.1%} in {found.seconds:.0f} s ({found.images:,} pictures).", flush=True)
        if found.accuracy >= goal:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=3)
    length.add_argument("--steps", type=int, help="equally many for each, whatever the time")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--only", nargs="+", choices=CHANGES, default=list(CHANGES), metavar="CHANGE")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON lines of the runs so far")
    parser.add_argument("--overtake", type=float, metavar="MINUTES")
    args = parser.parse_args()
    if args.overtake and args.steps:
        parser.error("--overtake goes by minutes")
    heap.keep()                                                             # as the training command does
    threads = args.threads or settings.cores()
    print(f"{machine()}, {threads} threads\n")
    if args.overtake:
        return overtake(args.overtake, threads, args.seeds[0], args.keep)
    print("| change | n | images seen | seconds | right on validation pictures | from the first row |\n|---|---|---|---|---|---|")
    base: list[float] = []
    for name in args.only:
        found = [kept(args.keep, planned(CHANGES[name], threads, seed, None if args.steps else args.minutes, args.steps)) for seed in args.seeds]
        shares = [one.accuracy for one in found]
        base = base or shares
        print(f"| {name} | {len(found)} | {statistics.mean(one.images for one in found):,.0f} | {statistics.mean(one.seconds for one in found):.0f} | "
              f"{spread(shares)} | {apart(shares, base)} |", flush=True)


def kept(file: Path | None, wanted: Plan) -> Row:
    """What `file` has of the very same run by this version on such a machine; made and written there where it has nothing."""
    key = [vitdemo.__version__, machine(), wanted.vit.to_json(), wanted.train.to_json(), wanted.data]
    for line in file.read_text(encoding="utf-8").splitlines() if file and file.is_file() else []:
        if (known := json.loads(line))["key"] == key:
            return Row(*known["row"])
    made = row(wanted)
    if file:
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"key": key, "row": made}) + "\n")
    return made


def apart(shares: list[float], base: list[float]) -> str:
    """Mean difference in points, seed by seed, and its standard error where there are several."""
    found = [100 * (share - other) for share, other in zip(shares, base, strict=True)]
    if shares is base:
        return ""
    return f"{statistics.mean(found):+.1f}" + (f" ± {statistics.stdev(found) / math.sqrt(len(found)):.1f}" if len(found) > 1 else "")


if __name__ == "__main__":
    main()

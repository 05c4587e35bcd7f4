"""The short recipe, one factor at a time: what each of its parts is worth, judged on the validation pictures (never on the test pictures).

    python tests/benchmarks/recipe.py [--minutes 3] [--threads 2] [--seeds 0 1 2] [--only "AdamW for everything" ...]
    python tests/benchmarks/recipe.py --overtake 10     after how many seconds the recipe passes what the plain one reaches in 10 minutes, of the first seed

Each row is the preset "class" with one change, trained for the same time. By hand, on a machine that does nothing else. Data: VITDEMO_DATA
or the cache.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from short_runs import best, machine, trained

from vitdemo import heap, settings
from vitdemo.plan import plan

PLAIN = {"optimizer": "adamw", "lr": 1e-3, "stages": [], "stage_ends": []}
CHANGES: dict[str, dict[str, Any]] = {
    "the recipe": {}, "AdamW for everything": {"optimizer": "adamw", "lr": 1.5e-3}, "full size only": {"stages": [], "stage_ends": []},
    "AdamW for everything, rate halved": {"optimizer": "adamw", "lr": 0.75e-3}, "AdamW for everything, rate doubled": {"optimizer": "adamw", "lr": 3e-3},
    "both": PLAIN, "both, rate halved": {**PLAIN, "lr": 0.5e-3}, "both, rate doubled": {**PLAIN, "lr": 2e-3},
    "Muon's rate doubled": {"muon_lr": 0.016}, "Muon's rate halved": {"muon_lr": 0.004}, "AdamW's rate tripled": {"lr": 6e-3}, "less momentum": {"momentum": 0.9},
    "batch 64": {"batch": 64}, "batch 256": {"batch": 256}, "shifts of up to a pixel": {"shift": 1}, "shifts of up to 4 pixels": {"shift": 4}, "no flip": {"flip": False}, "no label smoothing": {"label_smoothing": 0.0},
    "cosine decay": {"decay": "cosine"}, "no warm-up": {"warmup": 0.0}, "mean of the patches": {"pool": "mean"}, "no weight decay": {"weight_decay": 0.0},
    "whole gradients": {"clip": 0.0}, "one size more, 12 pixels": {"stages": [0.375, 0.5, 0.75, 1], "stage_ends": [0.2, 0.5, 0.75]},
    "less at full size": {"stage_ends": [0.5, 0.9]}, "wide and shallow": {"dim": 128, "heads": 4, "depth": 4},
    "four registers": {"registers": 4}, "layer scale": {"layer_scale": True}, "positions as a fixed table": {"positions": "sinusoidal"},
}


def rows(changes: dict[str, Any], minutes: float, threads: int, seed: int) -> list[dict[str, Any]]:
    """What a run wrote down: its steps, those with an `accuracy` on the validation part among them."""
    return trained(plan(preset="class", minutes=minutes, changes={"threads": threads, "seed": seed, **changes}))[0]


def overtake(minutes: float, threads: int, seed: int) -> None:
    """Print how long the recipe takes for what the plain one, as long as `minutes`, reaches in the end."""
    goal = best(rows(PLAIN, minutes, threads, seed))
    print(f"AdamW at full size reaches {goal:.1%} in {minutes:g} minutes.")
    for share in (0.125, 0.25, 0.5, 1.0):                                   # the recipe's schedule is as long as its run
        found = rows({}, share * minutes, threads, seed)
        print(f"The recipe reaches {best(found):.1%} in {found[-1]['seconds']:.0f} s.", flush=True)
        if best(found) >= goal:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--only", nargs="+", choices=CHANGES, default=list(CHANGES), metavar="CHANGE")
    parser.add_argument("--overtake", type=float, metavar="MINUTES")
    args = parser.parse_args()
    heap.keep()                                                             # as the training command does
    threads = args.threads or settings.cores()
    print(f"{machine()}, {threads} threads\n")
    if args.overtake:
        return overtake(args.overtake, threads, args.seeds[0])
    print("| change | n | images seen | accuracy on validation pictures |\n|---|---|---|---|")
    for name in args.only:
        found = [rows(CHANGES[name], args.minutes, threads, seed) for seed in args.seeds]
        accuracies = [best(one) for one in found]
        spread = f" ± {statistics.stdev(accuracies):.1%}" if len(accuracies) > 1 else ""
        print(f"| {name} | {len(found)} | {statistics.mean(one[-1]['images'] for one in found):,.0f} | {statistics.mean(accuracies):.1%}{spread} |", flush=True)


if __name__ == "__main__":
    main()

"""Runs presets as a person would and prints what they reached, as a Markdown table. By hand, on a machine that does nothing else.

    python tests/benchmarks/short_runs.py --data PATH/cifar10.zip --presets quick class --threads 1 2 --seeds 0 1 2
    python tests/benchmarks/short_runs.py --presets quick --minutes 2 --seeds 0 1 2         # a recipe given another time than its own
    python tests/benchmarks/short_runs.py --presets class --seeds 0 1 2 --set shift=1          # a recipe with another setting
    python tests/benchmarks/short_runs.py --presets plain --threads 2 --first-epochs 2         # of a recipe that takes hours
    python tests/benchmarks/short_runs.py --presets break --seeds 5 6 --out runs               # its models are kept, for candidates.py
"""

import argparse
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from vitdemo import checkpoint, distributed, heap, settings
from vitdemo.plan import Plan, plan, setting
from vitdemo.precision import in_bfloat16
from vitdemo.presets import PRESETS
from vitdemo.runs import RunFolder
from vitdemo.trainer import carry_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--presets", nargs="+", default=["quick", "class", "break"], choices=PRESETS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, help="of training, instead of what the recipe says")
    length.add_argument("--first-epochs", type=int, help="end after so many epochs; the recipe's schedule is then as long as that")
    parser.add_argument("--set", action="append", type=setting, default=[], dest="changes", metavar="NAME=VALUE", help="settings that differ from the recipe's")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the runs' folders here, where no run of such a name is yet")
    args = parser.parse_args()
    if {"seed", "threads"} & dict(args.changes).keys():
        parser.error("seeds and threads are --seeds and --threads")
    if args.out and (there := [path.name for path in (kept(args.out, *run) for run in itertools.product(args.presets, args.threads, args.seeds)) if path.exists()]):
        parser.error(f"{args.out} holds {', '.join(there)} already")
    heap.keep()                                                             # as the training command does
    print(f"{machine()}\n")
    print("| preset | threads | n | seconds of training | images seen | images/s | on validation pictures | on test pictures |\n|---|---|---|---|---|---|---|---|")
    for preset in args.presets:
        for threads in args.threads:
            rows = [once(plan(preset=preset, data=args.data, minutes=args.minutes, epochs=args.first_epochs,
                              changes={**dict(args.changes), "threads": threads, "seed": seed}),
                         args.out and kept(args.out, preset, threads, seed)) for seed in args.seeds]
            seconds, images, chosen, accuracies = zip(*rows, strict=True)
            named = " ".join([preset, *(f"{name}={value}" for name, value in args.changes)])
            print(f"| {named} | {threads} | {len(rows)} | {statistics.mean(seconds):.1f} | {statistics.mean(images):,.0f} | "
                  f"{sum(images) / sum(seconds):.0f} | {statistics.mean(chosen):.1%} | {spread(accuracies)} |", flush=True)


def kept(out: Path, preset: str, threads: int, seed: int) -> Path:
    """Where a run that is kept has its folder."""
    return out / f"{preset}-{threads}-{seed}"


def machine() -> str:
    """This machine, the GPU that it trains on if it has one, and in which numbers it multiplies."""
    with distributed.joined() as world:
        card = [torch.cuda.get_device_name(world.device)] if world.device.type == "cuda" else []
        return ", ".join([settings.machine(), *card, "bfloat16" if in_bfloat16(world.device, (32, 32), (4, 4), "auto") else "float32"])


def spread(shares: Sequence[float]) -> str:
    """Their mean, and of several their standard deviation and each of them."""
    return f"{statistics.mean(shares):.1%}" + (f" ± {statistics.stdev(shares):.1%} ({', '.join(f'{share:.1%}' for share in shares)})" if len(shares) > 1 else "")


def once(wanted: Plan, out: Path | None = None) -> tuple[float, int, float, float]:
    """(seconds of training, images seen, best accuracy on the validation part, that of those weights on the test part) of one run."""
    steps, accuracy = trained(wanted, out)
    return steps[-1]["seconds"], steps[-1]["images"], best(steps), accuracy


def best(steps: list[dict[str, Any]]) -> float:
    """The best accuracy on the validation part among a run's steps."""
    return max(row["accuracy"] for row in steps if row.get("accuracy") is not None)


def trained(wanted: Plan, out: Path | None = None) -> tuple[list[dict[str, Any]], float]:
    """The steps that a run wrote down, and the accuracy of its best weights on the test part. `out`: a folder that is not there yet, to keep the run in."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(out or Path(scratch) / "run").create(wanted.to_json())
        with distributed.joined() as world:                                 # on the GPU where the command would
            carry_out(folder, wanted, quiet=True, world=world)
        return [row for row in folder.records()[0] if "step" in row], checkpoint.load(folder.best).provenance["test_accuracy"]


if __name__ == "__main__":
    main()

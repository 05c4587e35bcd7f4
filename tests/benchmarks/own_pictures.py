"""What a few pictures per class come to: pictures are drawn from each set's train part, a run learns from them, and its best weights are
tested on the set's test part; prints a Markdown table. By hand, on a machine that does nothing else, or with --steps, which any machine
makes alike, in place of --seconds.

    python tests/benchmarks/own_pictures.py --make FOLDER --data PATH        # animals.zip and digits.zip from PATH/cifar10.zip and PATH/mnist.zip
    python tests/benchmarks/own_pictures.py FOLDER/animals.zip FOLDER/digits.zip --seconds 15 30 60 --seeds 0 1 2

Settings are chosen with --choose, which tests on the pictures of the train part that were not drawn; the test part is then still unseen.

    python tests/benchmarks/own_pictures.py PATH/digits.zip --choose --ways tune --set lr=1e-3 --set shift=0
"""

import argparse
import io
import json
import random
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from PIL import Image, ImageOps

from short_runs import machine

from vitdemo import checkpoint, class_folders, distributed
from vitdemo.plan import Plan, plan
from vitdemo.runs import RunFolder
from vitdemo.trainer import carry_out

WAYS = {"tune": {"preset": "tune"}, "frozen": {"preset": "tune", "changes": {"freeze": True}}, "scratch": {"preset": "class", "start": ""}}


class Outcome(NamedTuple):
    """What one run came to."""

    accuracy: float                 # on the pictures it is tested on, 0 to 1
    tested: int                     # their number
    images_per_second: float
    seconds: float                  # from the first picture read to the last word, in this process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, help="folders or .zip files with class folders in train/ and test/")
    parser.add_argument("--per-class", type=int, default=30)
    parser.add_argument("--seconds", nargs="+", type=float, default=[15, 30, 60])
    parser.add_argument("--steps", nargs="+", type=int, help="budgets in optimizer steps")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the pictures drawn and of the run")
    parser.add_argument("--start", default="box")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--choose", action="store_true", help="test on what is left of the train part")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="write two such sets there instead")
    parser.add_argument("--data", type=Path, help="folder of cifar10.zip and mnist.zip, for --make")
    args = parser.parse_args()
    if bool(args.make) == bool(args.sets) or bool(args.make) != bool(args.data):
        parser.error("name sets to measure, or --make and --data")
    if args.make:
        make(args.data / "cifar10.zip", ("cat", "dog", "horse"), args.make / "animals.zip")
        return make(args.data / "mnist.zip", ("3", "5", "8"), args.make / "digits.zip", coloured=True)
    changes = {name: json.loads(value) for name, _, value in (text.partition("=") for text in args.set)}
    print(f"{machine()}; one thread; {args.per_class} pictures a class, tested on {'the rest of the train part' if args.choose else 'the test part'}\n")
    print("| pictures | way | budget | n | right | from, to | images/s | all in all, s |\n|---|---|---|---|---|---|---|---|")
    budgets = [({"steps": n}, f"{n} steps") for n in args.steps] if args.steps else [({"minutes": s / 60}, f"{s:g} s") for s in args.seconds]
    for source in args.sets:
        for way in args.ways:
            for budget, named in budgets:
                runs = [once(source, wanted(way, budget, seed, args.start, changes), args.per_class, choose=args.choose) for seed in args.seeds]
                right = [run.accuracy for run in runs]
                print(f"| {source.stem} | {way} | {named} | {len(runs)} | {statistics.mean(right):.1%} of {runs[0].tested} | "
                      f"{min(right):.1%}, {max(right):.1%} | {statistics.mean(run.images_per_second for run in runs):.0f} | "
                      f"{statistics.mean(run.seconds for run in runs):.0f} |", flush=True)


def make(source: Path, labels: tuple[str, ...], packed: Path, *, coloured: bool = False) -> None:
    """Write a .zip of 300 pictures of every class to draw from and 100 to test with, digits in two random colours each."""
    packed.parent.mkdir(parents=True, exist_ok=True)
    found, draws = class_folders.survey(source).entries, random.Random(0)
    with zipfile.ZipFile(packed, "w") as archive:
        for part, many in (("train", 300), ("test", 100)):
            for label in labels:
                for file in draws.sample([file for file in found if (file.part, file.label) == (part, label)], many):
                    picture = in_two_colours(file.read(), draws) if coloured else file.read()
                    archive.writestr(f"{part}/{label}/{Path(file.name).name}", picture)


def in_two_colours(picture: bytes, draws: random.Random) -> bytes:
    """A grey picture as a PNG in two random colours, in the place of white and of black."""
    ink, ground = (tuple(draws.randrange(256) for _ in range(3)) for _ in range(2))
    buffer = io.BytesIO()
    ImageOps.colorize(Image.open(io.BytesIO(picture)).convert("L"), ground, ink).save(buffer, "PNG")
    return buffer.getvalue()


def wanted(way: str, budget: dict[str, float], seed: int, start: str, changes: dict[str, Any]) -> Plan:
    """One thread, because that is how the page trains on two cores."""
    chosen = {"threads": 1, "seed": seed, **WAYS[way].get("changes", {}), **changes}
    return plan(preset=WAYS[way]["preset"], start=WAYS[way].get("start", start), changes=chosen, **budget)


def once(source: Path, asked: Plan, per_class: int, *, choose: bool) -> Outcome:
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch, "drawn.zip")
        draw(source, packed, per_class, asked.train.seed, choose=choose)
        asked = asked._replace(data=str(packed))
        folder = RunFolder(Path(scratch) / "run").create(asked.to_json())
        began = time.monotonic()
        with distributed.joined() as world:
            carry_out(folder, asked, quiet=True, world=world)
        took = time.monotonic() - began
        steps = [row for row in folder.records()[0] if "step" in row]
        tested = checkpoint.load(folder.best).provenance
        return Outcome(tested["test_accuracy"], tested["test_pictures"], steps[-1]["images"] / steps[-1]["seconds"], took)


def draw(source: Path, packed: Path, per_class: int, seed: int, *, choose: bool) -> None:
    """A .zip of `per_class` pictures of every class to learn from, and those to test with."""
    found = class_folders.survey(source).entries
    learned = [file for file in found if file.part == "train"]
    taken = set()
    for label in sorted({file.label for file in learned}):
        names = [file.name for file in learned if file.label == label]
        taken |= set(random.Random(seed).sample(names, per_class))
    with zipfile.ZipFile(packed, "w") as archive:
        for file in found:
            part = "train" if file.name in taken else "test" if (file.part == "train") == choose else ""
            if part:
                archive.writestr(f"{part}/{file.label}/{Path(file.name).name}", file.read())


if __name__ == "__main__":
    main()

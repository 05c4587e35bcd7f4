"""Puts a finished run's best weights into the box: a file in checkpoints/, and beside it a picture of how the run learned.

    python tests/benchmarks/ship.py RUN NAME [--data PATH/cifar10.zip]
    python tests/benchmarks/ship.py runs/best cifar10-small

The numbers are rounded to 16 bits, which halves the file, where the validation pictures are answered as well as before (but for a tenth of a point). What the file then
says of the test pictures is measured on the very file. The file whose name ends in -tiny is the tiny model. Afterwards model_card.py writes
what the card says.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

from vitdemo import checkpoint, data
from vitdemo.evaluate import evaluate
from vitdemo.runs import RunFolder

EQUAL = 0.001                                   # a share of right answers that lies lower by no more than this counts as the same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--data", default="cifar10")
    args = parser.parse_args()
    folder, target = RunFolder(args.run), ROOT / "checkpoints" / f"{args.name}.safetensors"
    if folder.status().state != "finished":
        raise SystemExit(f"the run in {args.run} is not finished: `python -m vitdemo.train --out {args.run} --resume` goes on with it")
    loaded = checkpoint.load(folder.best)
    held, test = data.hold_out(data.load_part(args.data, "train").split, *loaded.held_out)[1], data.load_part(args.data, "test").split
    with tempfile.TemporaryDirectory() as scratch:                          # the box keeps what it has until everything is known
        files = [stored(Path(scratch) / target.name, loaded, loaded.provenance, half) for half in (False, True)]
        accuracy = [evaluate(file.model, held, file.preprocessing, file.classes).accuracy for file in files]
        half = accuracy[1] >= accuracy[0] - EQUAL
        report = evaluate(files[half].model, test, loaded.preprocessing, loaded.classes)
    stored(target, loaded, {**loaded.provenance, **report.tested()}, half)
    print(f"validation accuracy in 32 bits {accuracy[0]:.2%}, in 16 bits {accuracy[1]:.2%}; test accuracy {report.accuracy:.2%}; "
          f"{target.stat().st_size / 1e6:.2f} MB")
    curve(folder).savefig(target.with_suffix(".png"), dpi=100)


def stored(path: Path, loaded: checkpoint.Loaded, facts: dict[str, Any], half: bool) -> checkpoint.Loaded:
    """The model as it comes back from a file, in which its numbers may be rounded to 16 bits."""
    checkpoint.save(path, loaded.model, classes=loaded.classes, preprocessing=loaded.preprocessing, provenance=facts, half=half)
    return checkpoint.load(path)


def curve(folder: RunFolder) -> Figure:
    """Validation accuracy and training loss over the epochs of a run."""
    steps = folder.steps()
    looks = [row for row in steps if row["accuracy"] is not None]
    figure = Figure(figsize=(8, 4), layout="constrained")
    right, left = (axes := figure.add_subplot()).twinx(), axes
    learned = [row for row in steps if row["loss"] is not None]
    recent = [statistics.fmean(row["loss"] for row in learned[max(0, i - 50):i + 1]) for i in range(len(learned))]
    right.plot([row["epoch"] for row in learned], recent, color="0.6", linewidth=1)
    right.set_ylabel("training loss (grey)")
    left.plot([row["epoch"] for row in looks], [row["accuracy"] for row in looks], "o-", color="#0072b2")
    left.set(xlabel="epochs", ylabel="right on validation pictures (blue)", ylim=(0, 1))
    left.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    main()

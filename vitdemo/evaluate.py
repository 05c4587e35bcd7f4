"""How often a model is right, and whether it knows: accuracy with its standard error, per class, the confusion matrix, calibration.

    python -m vitdemo.evaluate CHECKPOINT --data cifar10|mnist|PATH [--json]
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vitdemo import data, loading
from vitdemo.chance import share_error
from vitdemo.config import Preprocessing
from vitdemo.images import normalise

MOST_VALUES = 2**22                             # of the pictures that are looked at at once
BINS = 10


class Bin(NamedTuple):
    """The pictures whose answer had a confidence in one tenth of 0 to 1; an empty bin is all zero."""

    count: int
    confidence: float               # mean share given to the answer, 0 to 1
    right: float                    # share of right answers, 0 to 1


@dataclass(frozen=True)
class Report:
    """What a model did on n labelled pictures. `confusion[i][j]` counts pictures of class i that were called j; `calibration` has one
    bin for each tenth of confidence, lowest first."""

    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    calibration: tuple[Bin, ...] = ()

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, classes: tuple[str, ...]) -> "Report":
        """Compare the largest of each picture's `logits` (N, K) with its label (N,)."""
        K = len(classes)
        confidence, answers = logits.double().softmax(1).max(1)
        counts = torch.bincount(labels * K + answers, minlength=K * K).view(K, K)
        return cls(classes, tuple(tuple(row) for row in counts.tolist()), _calibration(confidence, answers == labels))

    @property
    def n(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0 to 1."""
        return sum(row[i] for i, row in enumerate(self.confusion)) / self.n

    @property
    def standard_error(self) -> float:
        """Of the accuracy, see `vitdemo.chance`."""
        return share_error(self.accuracy, self.n)

    @property
    def per_class(self) -> dict[str, float | None]:
        """Share of right answers among the pictures of each class; None for a class without pictures."""
        return {name: row[i] / sum(row) if sum(row) else None for i, (name, row) in enumerate(zip(self.classes, self.confusion))}

    @property
    def confidence(self) -> float:
        """Mean share that the answers were given, 0 to 1: less than the accuracy of a model that is right more often than it says."""
        return sum(part.count * part.confidence for part in self.calibration) / self.n

    @property
    def expected_calibration_error(self) -> float:
        """How far confidence and accuracy lie apart, averaged over the pictures (Guo et al. 2017, equation (3)); 0 to 1."""
        return sum(part.count * abs(part.right - part.confidence) for part in self.calibration) / self.n

    def tested(self) -> dict[str, Any]:
        """What a checkpoint's provenance says of the test pictures, where this is about those."""
        return {"test_accuracy": self.accuracy, "test_pictures": self.n, "test_per_class": self.per_class,
                "test_calibration_error": self.expected_calibration_error}

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "standard_error": self.standard_error, "n": self.n, "per_class": self.per_class,
                "classes": list(self.classes), "confusion": [list(row) for row in self.confusion],
                "calibration": [list(part) for part in self.calibration], "ece": self.expected_calibration_error}


def _calibration(confidence: Tensor, right: Tensor) -> tuple[Bin, ...]:
    """Ten bins of equal width, ((m-1)/10, m/10] as in Guo et al. 2017, of `confidence` (N,) and whether each answer was `right` (N,)."""
    place = (confidence * BINS).ceil().long().clamp(1, BINS) - 1
    counts = torch.bincount(place, minlength=BINS)
    sums = [torch.bincount(place, weights=values.double(), minlength=BINS) / counts.clamp(min=1) for values in (confidence, right)]
    return tuple(Bin(*values) for values in zip(counts.tolist(), *(total.tolist() for total in sums), strict=True))


def batch_of_looks(size: Sequence[int], channels: int) -> int:
    """How many pictures of `size` (rows, cols) are looked at at once: as many as MOST_VALUES hold, at least one and at most 64."""
    return max(1, min(64, MOST_VALUES // (channels * math.prod(size))))


@torch.inference_mode()
def predict(model: nn.Module, images: Tensor, preprocessing: Preprocessing, batch: int = 0, *,
            between: Callable[[], None] | None = None) -> Tensor:
    """Logits (N, K), float32 on the CPU, for uint8 `images` (N, C, rows, cols), in evaluation mode, on the model's device.

    `batch` pictures at a time; 0: as `batch_of_looks` says. `between` is called before every batch: what it raises ends the
    work there, so that nobody who asked for an end waits for all of it.
    """
    was_training, device = [part.training for part in model.modules()], next(model.parameters()).device
    model.eval()
    logits = []
    try:
        for chunk in images.split(batch or batch_of_looks(images.shape[2:], images.shape[1])):
            if between is not None:
                between()
            logits.append(model(normalise(chunk.to(device), preprocessing)).float().cpu())
    finally:
        for part, training in zip(model.modules(), was_training, strict=True):
            part.training = training                                        # a frozen encoder stays in evaluation mode
    return torch.cat(logits)


def evaluate(model: nn.Module, split: data.Split, preprocessing: Preprocessing, classes: tuple[str, ...]) -> Report:
    """Compare the model's first answer with the label of every picture."""
    return Report.of(predict(model, split.images, preprocessing), split.labels, classes)


def labels_in_order(split: data.Split, names: tuple[str, ...], wanted: tuple[str, ...]) -> data.Split:
    """`split` with its labels counted in the model's order of classes; they go by name, and by position where the model's classes have no
    names of their own. Raises DataError for classes that the model does not know."""
    if names == wanted or all(name == f"class {i}" for i, name in enumerate(wanted)):
        if len(names) > len(wanted):
            raise data.DataError(f"the data have {len(names)} classes and the model knows {len(wanted)}")
        return split
    missing = [name for name in names if name not in wanted]
    if missing:
        raise data.DataError(f"the model does not know the class {missing[0]!r}; it knows {', '.join(wanted[:12])}")
    order = torch.tensor([wanted.index(name) for name in names])
    return data.Split(split.images, order[split.labels])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vitdemo.evaluate", description="Accuracy of a checkpoint on the test part of a data set.")
    parser.add_argument("checkpoint", help="a published model's name, a file, a folder or user/repo; box is the model in the box")
    parser.add_argument("--data", default="cifar10", help="cifar10, mnist, or a folder or .zip of class folders")
    parser.add_argument("--heads", type=int, help="attention heads, where the file does not say")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(arguments)
    try:
        loaded = loading.at_a_terminal(args.checkpoint, args.heads)
        wanted = loaded.preprocessing
        read = ((name, data.load_part(args.data, name, size=wanted.size, channels=wanted.channels)) for name in ("test", "train"))
        which, part = next((pair for pair in read if pair[1] is not None), ("", None))
        if part is None:
            raise data.DataError("there are no labelled pictures in that data set")
        report = evaluate(loaded.model, labels_in_order(part.split, part.classes, loaded.classes), wanted, loaded.classes)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")
    usual = Preprocessing()
    others = [f"{name} {getattr(wanted, name)}" for name in ("fit", "crop_fraction", "interpolation") if getattr(wanted, name) != getattr(usual, name)]
    if others:
        print(f"note: this model wants its pictures with {', '.join(others)}; data sets are read by their middle, as large as it fits, and bicubically, "
              "so it may do better than this", file=sys.stderr)
    if args.json:
        print(json.dumps({**report.to_json(), "part": which}))
        return 0
    print(f"accuracy {report.accuracy:.2%} ± {report.standard_error:.2%} (standard error, n = {report.n}, the {which} part)")
    print(f"expected calibration error {report.expected_calibration_error:.2%} (confidence against accuracy, {BINS} bins)")
    for name, share in report.per_class.items():
        print(f"  {name:<20.20} {'no pictures' if share is None else f'{share:.1%}'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

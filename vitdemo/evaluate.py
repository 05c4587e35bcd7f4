"""How often a model is right: accuracy with its standard error, per class, and the confusion matrix.

    python -m vitdemo.evaluate CHECKPOINT --data cifar10|mnist|PATH [--json]
"""

import argparse
import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vitdemo import checkpoint, data
from vitdemo.config import Preprocessing
from vitdemo.images import normalise
from vitdemo.model import ViT


@dataclass(frozen=True)
class Report:
    """What a model did on n labelled pictures. `confusion[i][j]` counts pictures of class i that were called j."""

    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0 to 1."""
        return sum(row[i] for i, row in enumerate(self.confusion)) / self.n

    @property
    def standard_error(self) -> float:
        """Of the accuracy, as a binomial share."""
        return math.sqrt(self.accuracy * (1 - self.accuracy) / self.n)

    @property
    def per_class(self) -> dict[str, float | None]:
        """Share of right answers among the pictures of each class; None for a class without pictures."""
        return {name: row[i] / sum(row) if sum(row) else None for i, (name, row) in enumerate(zip(self.classes, self.confusion))}

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "standard_error": self.standard_error, "n": self.n, "per_class": self.per_class,
                "classes": list(self.classes), "confusion": [list(row) for row in self.confusion]}


@torch.inference_mode()
def predict(model: ViT, images: Tensor, preprocessing: Preprocessing, batch: int = 64) -> Tensor:
    """Logits (N, K) for uint8 `images` (N, C, rows, cols), in evaluation mode."""
    was_training = model.training
    model.eval()
    try:
        return torch.cat([model(normalise(chunk, preprocessing)) for chunk in images.split(batch)])
    finally:
        model.train(was_training)


def evaluate(model: ViT, split: data.Split, preprocessing: Preprocessing, classes: tuple[str, ...]) -> Report:
    """Compare the model's first answer with the label of every picture."""
    K = len(classes)
    answers = predict(model, split.images, preprocessing).argmax(1)
    counts = torch.bincount(split.labels * K + answers, minlength=K * K).view(K, K)
    return Report(classes, tuple(tuple(row) for row in counts.tolist()))


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
    parser.add_argument("checkpoint", help="a .safetensors or .pt file")
    parser.add_argument("--data", default="cifar10", help="cifar10, mnist, or a folder or .zip of class folders")
    parser.add_argument("--heads", type=int, help="attention heads, where the file does not say")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(arguments)
    try:
        loaded = checkpoint.load(args.checkpoint, heads=args.heads)
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
    if args.json:
        print(json.dumps({**report.to_json(), "part": which}))
        return 0
    print(f"accuracy {report.accuracy:.2%} ± {report.standard_error:.2%} (standard error, n = {report.n}, the {which} part)")
    for name, share in report.per_class.items():
        print(f"  {name:<20.20} {'no pictures' if share is None else f'{share:.1%}'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

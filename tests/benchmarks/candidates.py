"""Sets models that may go into the box side by side: right on validation pictures as they are and as uploads come, and how faithful their maps are.

    python tests/benchmarks/candidates.py [FILE ...] [--data PATH/cifar10.zip] [--pictures 1000] [--maps 500] [--threads 1]

FILE is a checkpoint of a finished run on CIFAR-10 (`runs/NAME/best.safetensors`); without any, the models in the box. No test picture is used, only
pictures that each model's own run held back, by which it also chose its weights: a little too good for all of them. "Both" is the mean of "as they are" and
"changed", with its standard error over the pictures. Two models of one seed see the same pictures, others do not: the error of their difference is then
the root of the sum of the squares. Of models that are as good, the one whose maps lie further below random is the better choice.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import torch
from model_card import deletion
from uploads import mean_of_changes, right, some

from vitdemo import checkpoint, data, settings

HEAD = "| model | parameters | as they are | changed | both | maps below random: the last layer's attention | class relevance |\n|---|---|---|---|---|---|---|"


def row(path: Path, loaded: checkpoint.Loaded, held: data.Split, pictures: int, maps: int) -> str:
    """A model's line of the table, by some of the pictures that its run held back."""
    plain, changed = (way(loaded, some(held, pictures)) for way in (right, mean_of_changes))
    both, areas = (plain + changed) / 2, deletion(loaded, some(held, maps))
    return (f"| {path} | {sum(p.numel() for p in loaded.model.parameters()):,} | {float(plain.mean()):.1%} | {float(changed.mean()):.1%} | "
            f"{float(both.mean()):.1%} ± {float(both.std()) / len(both) ** 0.5:.1%} | {areas['cls_gain']:.3f} ± {areas['cls_error']:.3f} | "
            f"{areas['relevance_gain']:.3f} ± {areas['relevance_error']:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", default=sorted((ROOT / "checkpoints").glob("*.safetensors")))
    parser.add_argument("--data", default="cifar10", help="what the runs had: the .zip and torchvision's copy are in different orders, so each holds back others")
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--maps", type=int, default=500, help="pictures whose maps are measured")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    candidates = [(path, checkpoint.load(path)) for path in args.files]
    train = data.load_part(args.data, "train").split
    held = {}
    for path, loaded in candidates:
        said = loaded.provenance.get("validation_accuracy")
        if loaded.provenance.get("data") != "cifar10" or loaded.held_out is None or said is None:
            parser.error(f"{path} does not say which pictures of CIFAR-10 its run held back, or how many of them were right")
        held[path] = data.hold_out(train, *loaded.held_out)[1]
        if abs((found := float(right(loaded, held[path]).mean())) - said) > 0.003:         # more than the rounding of a file changes: other pictures
            parser.error(f"{path} has {found:.1%} of the pictures held back here and says {said:.1%}: its run had the pictures from another place (--data)")
    print(f"{settings.machine()}; {args.pictures} validation pictures, maps of {args.maps}\n\n{HEAD}", flush=True)
    for path, loaded in candidates:
        print(row(path, loaded, held[path], args.pictures, args.maps), flush=True)


if __name__ == "__main__":
    main()

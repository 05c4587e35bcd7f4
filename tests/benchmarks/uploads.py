"""What uploads do to a picture: accuracy on CIFAR-10 pictures that were changed as people's own are, beside that on the pictures as they are.

    python tests/benchmarks/uploads.py [--checkpoint FILE] [--part test] [--pictures 2000] [--seed 0] [--threads 1]

Every picture is first enlarged ten times (Lanczos), as a photo would come, then changed, then goes the way of an upload
(`vitdemo.images.to_input`). The last line is the mean over the changes. `--part validation` judges by pictures that no run of that seed
learned from, which is what choosing between recipes may look at. Backgrounds are not exchanged: these pictures have no masks.
Data: VITDEMO_DATA or the cache.
"""

import argparse
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from PIL import Image, ImageEnhance, ImageFilter

from vitdemo import checkpoint, data, settings
from vitdemo.chance import share_error
from vitdemo.config import TrainConfig
from vitdemo.film import pixels
from vitdemo.images import to_input

TIMES = 10                                      # as large as it was, before anything is done to it


def laid(colour: str) -> Callable[[Image.Image], Image.Image]:
    """Shrunk to 60 % and laid on one colour."""
    def change(image: Image.Image) -> Image.Image:
        canvas, side = Image.new("RGB", image.size, colour), round(0.6 * image.width)
        canvas.paste(image.resize((side, side), Image.Resampling.LANCZOS), ((image.width - side) // 2,) * 2)
        return canvas
    return change


def moved(image: Image.Image) -> Image.Image:
    """A quarter to the right and down, white behind."""
    canvas = Image.new("RGB", image.size, "white")
    canvas.paste(image, (image.width // 4, image.height // 4))
    return canvas


def jpeg(image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.resize((128, 128), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=30)
    return Image.open(buffer).convert("RGB")


def warm(image: Image.Image) -> Image.Image:
    red, green, blue = image.split()
    return Image.merge("RGB", (red.point(lambda x: min(255, round(1.25 * x))), green, blue.point(lambda x: round(0.75 * x))))


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "60 % of it on white": laid("white"), "60 % of it on grey": laid("grey"), "60 % of it on black": laid("black"), "moved by a quarter": moved,
    "stretched 2:1": lambda image: image.resize((2 * image.width, image.height), Image.Resampling.BICUBIC),
    "stretched 1:2": lambda image: image.resize((image.width, 2 * image.height), Image.Resampling.BICUBIC),
    "blurred": lambda image: image.filter(ImageFilter.GaussianBlur(0.8 * TIMES)), "JPEG, quality 30, at 128 px": jpeg,
    "half as bright": lambda image: ImageEnhance.Brightness(image).enhance(0.5), "brighter by 60 %": lambda image: ImageEnhance.Brightness(image).enhance(1.6),
    "pale": lambda image: ImageEnhance.Color(image).enhance(0.3), "warm light": warm,
}


def right(loaded: checkpoint.Loaded, split: data.Split, change: Callable[[Image.Image], Image.Image] = lambda image: image) -> torch.Tensor:
    """Which pictures of `split` are answered right once they were changed, (n,) of 0.0 or 1.0."""
    found = []
    for start in range(0, len(split), 250):
        part = split[slice(start, start + 250)]
        inputs = torch.cat([to_input(change(pixels(image)), loaded.preprocessing, loaded.config.patch).tensor for image in part.images])
        with torch.inference_mode():
            found.append((loaded.model(inputs).argmax(1) == part.labels).float())
    return torch.cat(found)


def some(split: data.Split, count: int) -> data.Split:
    """`count` pictures of `split` at random, the same ones every time."""
    return split[torch.randperm(len(split), generator=torch.Generator().manual_seed(0))[:count]]


def changed(loaded: checkpoint.Loaded, split: data.Split) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, which pictures are answered right) of each change, made to every picture."""
    for name, change in CHANGES.items():
        yield name, right(loaded, split, lambda image, change=change: change(enlarged(image)))


def mean_of_changes(loaded: checkpoint.Loaded, split: data.Split) -> torch.Tensor:
    """For each picture the share of its changes under which it is answered right, (n,); its mean is the accuracy over all the changes together."""
    return torch.stack([each for _, each in changed(loaded, split)]).mean(0)


def enlarged(image: Image.Image) -> Image.Image:
    return image.resize((TIMES * image.width, TIMES * image.height), Image.Resampling.LANCZOS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint")
    parser.add_argument("--part", default="test", choices=("test", "validation"))
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the run whose validation part is meant, where the file does not say")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    loaded, dataset = checkpoint.load(args.checkpoint) if args.checkpoint else checkpoint.load(), data.load("cifar10")
    split = dataset.test if args.part == "test" else data.hold_out(dataset.train, *(loaded.held_out or (TrainConfig(steps=1).validation, args.seed)))[1]
    split = some(split, args.pictures)
    print(f"{loaded.name}, {len(split)} {args.part} pictures, ± {share_error(0.8, len(split)):.1%}; {settings.machine()}\n\n| picture | right |\n|---|---|")
    print(f"| as it is | {float(right(loaded, split).mean()):.1%} |\n| enlarged ten times | {float(right(loaded, split, enlarged).mean()):.1%} |", flush=True)
    found = []
    for name, each in changed(loaded, split):
        found.append(float(each.mean()))
        print(f"| {name} | {found[-1]:.1%} |", flush=True)
    print(f"| mean of the {len(found)} changes | {sum(found) / len(found):.1%} |")


if __name__ == "__main__":
    main()

"""Picture + model -> `Explanation`: the one door for the page, the README, a notebook and the tests.

    python -m vitdemo.explain PHOTO --out FOLDER [--checkpoint FILE]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from vitdemo import attention, checkpoint
from vitdemo.checkpoint import Loaded
from vitdemo.geometry import Geometry
from vitdemo.images import open_picture, to_input


@dataclass(frozen=True)
class Explanation:
    """What a model made of one picture. Arrays are float32.

    `attention[l, h]` is what the class token reads in head h of block l, laid out as the patch grid; `prefix_attention[l, h]` is what it
    reads from the tokens before the patches (itself first). For every head the two together sum to 1.
    """

    classes: tuple[str, ...]
    probabilities: np.ndarray       # (K,), sums to 1
    attention: np.ndarray           # (layers, heads, rows, cols)
    prefix_attention: np.ndarray    # (layers, heads, prefix)
    picture: Image.Image            # upright, sRGB
    seen: Image.Image               # the very pixels the model got
    geometry: Geometry              # between `picture` and the patch grid
    notes: tuple[str, ...]          # sentences about how the picture was read
    reader: str                     # whose attention it is: the class token's, or the patches' on average where the model averages them
    model: str

    @property
    def grid(self) -> tuple[int, int]:
        """Patches as (rows, cols)."""
        return self.attention.shape[2], self.attention.shape[3]

    @property
    def uniform(self) -> float:
        """1/T, the weight of every token if attention made no difference."""
        return 1 / (self.grid[0] * self.grid[1] + self.prefix_attention.shape[2])

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The k most probable classes with their probabilities, the most probable first; empty for a model without a head."""
        order = np.argsort(-self.probabilities, kind="stable")[:k]
        return [(self.classes[i], float(self.probabilities[i])) for i in order]


@torch.inference_mode()
def explain(picture: Any, model: Loaded | None = None) -> Explanation:
    """Classify `picture` and read what the class token attends to in every head of every block.

    `picture` is a path, bytes, an open file or a PIL image; `model` comes from `vitdemo.load` (the model in the box where it is left
    out). Raises PictureError for what is no usable picture. Equation numbers stand in `vitdemo.model` and `vitdemo.attention`.
    """
    loaded = model or checkpoint.load()
    opened = open_picture(picture)
    seen = to_input(opened, loaded.preprocessing, loaded.config.patch)
    trace = loaded.model.trace(seen.tensor)
    maps = attention.class_maps(trace.queries, trace.keys, prefix=loaded.config.prefix, grid=seen.geometry.grid,
                                class_token=loaded.config.pool == "cls")
    return Explanation(
        classes=loaded.classes, probabilities=trace.logits.softmax(-1)[0].numpy(),
        attention=maps.patches[0].numpy(), prefix_attention=maps.prefix[0].numpy(),
        picture=opened.image, seen=seen.seen, geometry=seen.geometry, notes=opened.notes,
        reader="the class token" if loaded.config.pool == "cls" else "the average patch", model=loaded.name,
    )


def save_maps(explanation: Explanation, path: Path) -> None:
    """The numbers as a NumPy file: `attention` (layers, heads, rows, cols), `prefix_attention`, `probabilities`, `classes`."""
    np.savez_compressed(path, attention=explanation.attention, prefix_attention=explanation.prefix_attention,
                        probabilities=explanation.probabilities, classes=np.array(explanation.classes))


def main(arguments: list[str] | None = None) -> int:
    from vitdemo import figures  # matplotlib, only needed here

    parser = argparse.ArgumentParser(prog="python -m vitdemo.explain", description="What a model makes of a photo, as figures and numbers.")
    parser.add_argument("photo", help="a picture file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures and maps.npz; made if missing")
    parser.add_argument("--checkpoint", help="a .safetensors or .pt file (default: the model in the box)")
    parser.add_argument("--heads", type=int, help="attention heads, where the checkpoint does not say")
    args = parser.parse_args(arguments)
    try:
        result = explain(args.photo, checkpoint.load(args.checkpoint, heads=args.heads))
        args.out.mkdir(parents=True, exist_ok=True)
        save_maps(result, args.out / "maps.npz")
        figures.patch_grid(result.picture, result.geometry).save(args.out / "patches.png")
        figures.enlarge(result.seen, 320).save(args.out / "model-sees.png")
        figures.layers_by_heads(result.attention, title=f"{result.model}: what the class token reads").savefig(args.out / "all-heads.png")
        for layer, maps in enumerate(result.attention, start=1):
            figure = figures.layer_heads(result.picture, result.geometry, maps, title=f"{result.model}, layer {layer}", uniform=result.uniform)
            figure.savefig(args.out / f"layer-{layer:02d}.png")
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    except OSError as error:
        parser.exit(1, f"the folder {args.out.name!r} cannot be written to ({error.strerror}): choose another one\n")
    for note in result.notes:
        print(note)
    for name, probability in result.top():
        print(f"{probability:6.1%}  {name}")
    print(f"figures and maps.npz are in {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

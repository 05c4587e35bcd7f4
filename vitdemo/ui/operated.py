"""A result after patch surgery: an explanation like any other, of the picture as it was cut up. All questions can be asked of it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from vitdemo import surgery
from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation, describe
from vitdemo.images import Input
from vitdemo.model import ViT
from vitdemo.surgery import Surgery

LONGEST_SIDE = 640                              # of the picture that shows the patches in their new places, in pixels


class Operated(NamedTuple):
    """What surgery made of a result."""

    explanation: Explanation
    difference: float               # largest absolute change of the logits that masking and moving made
    before: list[tuple[str, float]]         # the classes of the whole picture, under the same position setting


def operate(explanation: Explanation, loaded: Loaded, done: Surgery) -> Operated:
    """`explanation` after surgery; `loaded` is its model, or where positions are off the same model `without_positions`."""
    operated, trace = surgery.answer(loaded, explanation.tensor, done)
    _, before = surgery.answer(loaded, explanation.tensor, Surgery(done.patches, positions=done.positions))
    shown, seen = (Image.fromarray(rearranged(np.asarray(image), explanation.grid, done))
                   for image in (_crop(explanation), explanation.seen))
    size = shown.height, shown.width
    geometry = replace(explanation.geometry, original=size, crop=(0, 0, *size))
    with torch.inference_mode():
        whole = describe(loaded, Input(explanation.tensor, explanation.seen, explanation.geometry), before, picture=explanation.picture)
        after = describe(loaded, Input(operated, seen, geometry), trace, picture=shown)
    return Operated(after, surgery.apart(loaded, before, trace), whole.top())


def rearranged(pixels: np.ndarray, grid: tuple[int, int], done: Surgery) -> np.ndarray:
    """uint8 pixels (height, width) or (height, width, C), whole multiples of `grid`, with the same done to their blocks as
    `surgery.operate` does to the model's input: masked ones get the mean colour, then place i shows block `order[i]`."""
    rows, cols = grid
    tall, wide = pixels.shape[0] // rows, pixels.shape[1] // cols
    blocks = pixels.reshape(rows, tall, cols, wide, -1).swapaxes(1, 2).reshape(rows * cols, tall, wide, -1).copy()
    blocks[list(done.masked)] = np.round(pixels.mean((0, 1))).astype(np.uint8)
    if done.order is not None:
        blocks = blocks[list(done.order)]
    return blocks.reshape(rows, cols, tall, wide, -1).swapaxes(1, 2).reshape(pixels.shape)


def without_positions(loaded: Loaded) -> Loaded:
    """The same model, sharing its weights, that never adds positions: what `embed(..., positions=False)` is for one pass."""
    config = loaded.config.with_(positions="none", prefix_positions=-1)
    with torch.device("meta"):
        model = ViT(config)
    model.load_state_dict({name: tensor for name, tensor in loaded.model.state_dict().items() if name != "pos_embed"}, assign=True)
    return replace(loaded, model=model.eval(), name=f"{loaded.name} without positions")


def _crop(explanation: Explanation) -> Image.Image:
    """What the model sees of the picture, in the picture's own sharpness, every patch a block of the same whole size."""
    (rows, cols), (tall, wide) = explanation.grid, explanation.geometry.patch
    scale = LONGEST_SIDE / max(rows * tall, cols * wide)
    height, width = rows * max(1, int(scale * tall)), cols * max(1, int(scale * wide))
    top, left, bottom, right = explanation.geometry.crop
    small = height >= 4 * (bottom - top)                                    # such a picture keeps its squares
    method = Image.Resampling.NEAREST if small else Image.Resampling.BICUBIC
    return explanation.picture.resize((width, height), method, box=(left, top, right, bottom))

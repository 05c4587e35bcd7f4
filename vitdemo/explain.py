"""Picture + model -> `Explanation`: the one door for the page, the README, a notebook and the tests.

    python -m vitdemo.explain PHOTO --out FOLDER [--checkpoint FILE]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitdemo import attention, checkpoint, looking
from vitdemo.attention import HeadFacts
from vitdemo.checkpoint import Loaded
from vitdemo.config import ViTConfig
from vitdemo.geometry import WHOLE, Edges, Geometry
from vitdemo.images import PADDED, Input, open_picture, padded, to_input
from vitdemo.model import Trace, ViT


@dataclass(frozen=True)
class Explanation:
    """What a model made of one picture, and what else can be asked about it. Arrays are float32, T = prefix tokens + patches.

    `attention[l, h]` is what the class token reads in head h of block l, laid out as the patch grid; `prefix_attention[l, h]` is what it
    reads from the tokens before the patches (itself first). For every head the two together sum to 1. Where the model has no class token
    or averages its patches instead, the reader is the average patch (`reader` says which).
    """

    classes: tuple[str, ...]
    probabilities: np.ndarray       # (K,), sums to 1; a model without a head has no classes, and K is 0
    lens: np.ndarray                # (layers, K), the probabilities if the classifier read the image after each layer
    attention: np.ndarray           # (layers, heads, rows, cols)
    prefix_attention: np.ndarray    # (layers, heads, prefix)
    picture: Image.Image            # upright, sRGB
    seen: Image.Image               # the very pixels the model got
    geometry: Geometry              # between `picture` and the patch grid
    notes: tuple[str, ...]          # sentences about how the picture was read
    reader: str                     # whose attention it is: the class token's, or the patches' on average where the model averages them
    model: str
    loaded: Loaded
    tensor: Tensor                  # (1, C, height, width), what the model got, normalised
    trace: Trace
    lies: Edges = WHOLE             # where the original lies in `picture`, as shares of its height and width: all of it, but for margins

    @property
    def grid(self) -> tuple[int, int]:
        """Patches as (rows, cols)."""
        return self.attention.shape[2], self.attention.shape[3]

    @property
    def tokens(self) -> int:
        return self.prefix_attention.shape[2] + self.grid[0] * self.grid[1]

    @property
    def uniform(self) -> float:
        """1/T, the weight of every token if attention made no difference."""
        return 1 / self.tokens

    @property
    def original(self) -> Image.Image:
        """The picture without the margins that were laid around it."""
        top, left, bottom, right = self.lies
        height, width = self.picture.height, self.picture.width
        edges = round(left * width), round(top * height), round(right * width), round(bottom * height)
        return self.picture if self.lies == WHOLE else self.picture.crop(edges)

    def leading(self, k: int = 5) -> list[int]:
        """The numbers of the k most probable classes, the most probable first. Names may occur twice (ImageNet has two cranes), numbers not."""
        return np.argsort(-self.probabilities, kind="stable")[:k].tolist()

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The k most probable classes with their probabilities, the most probable first; empty for a model without a head."""
        return [(self.classes[i], float(self.probabilities[i])) for i in self.leading(k)]

    def patches(self, vector: np.ndarray) -> np.ndarray:
        """The patches' part of an array over tokens (..., T), laid out as the grid (..., rows, cols)."""
        return vector[..., self.prefix_attention.shape[2]:].reshape(*vector.shape[:-1], *self.grid)

    @torch.inference_mode()
    def reads(self, token: int | None = None) -> np.ndarray:
        """What `token` reads in every layer and head, (layers, heads, T), each row summing to 1; None is the reader of `attention`."""
        if token is None:
            flat = self.attention.reshape(*self.attention.shape[:2], -1)
            return np.concatenate((self.prefix_attention, flat), axis=2)
        return attention.rows(self.trace.queries, self.trace.keys, token)[0].numpy()

    @torch.inference_mode()
    def read_by(self, token: int) -> np.ndarray:
        """Who reads `token` in every layer and head, (layers, heads, T): its column, which does not sum to 1."""
        return attention.columns(self.trace.queries, self.trace.keys, token)[0].numpy()

    @torch.inference_mode()
    def rollout(self, up_to: int | None = None, *, fusion: str = "mean", discard: float = 0.0) -> np.ndarray:
        """Attention rollout of the reader up to layer `up_to` (1 is the first, None the last), (T,): see `attention.rollout`."""
        return attention.rollout(self.trace.queries, self.trace.keys, start=self._start(), up_to=up_to, fusion=fusion,
                                 discard=discard, class_token=self.loaded.config.class_token)[0].numpy()

    def relevance(self, klass: int | str) -> np.ndarray:
        """How much each token speaks for a class, (T,), after Chefer et al. 2021 (`attention.class_relevance`), without the identity that
        equation (6) starts from: what the readers bring along themselves. Where the classifier reads two things, a distillation token or the
        mean of the patches beside the class token, each counts half. Raises ValueError for a class the model does not know."""
        index, start = self.class_index(klass), self._answered_from()
        with torch.inference_mode(False), torch.enable_grad():
            branches = self.loaded.model.branches(self.embedded())
            return (attention.class_relevance(branches, index, start=start)[0].detach().cpu() - start).clamp(min=0).numpy()

    @torch.inference_mode()
    def facts(self) -> HeadFacts:
        """Entropy, effective number of tokens, mean distance and share on prefix tokens of every head, each (1, layers, heads)."""
        config = self.loaded.config
        return attention.facts(self.trace.queries, self.trace.keys, prefix=config.prefix, grid=self.grid, patch=config.patch, start=self._start())

    def twin(self, seed: int = 0) -> "Explanation":
        """The same picture through the same architecture with random weights: what a map looks like where nothing was learned."""
        return self.through(untrained(self.loaded, seed))

    @torch.inference_mode()
    def through(self, loaded: Loaded) -> "Explanation":
        """The same picture through another model that takes the same input."""
        return describe(loaded, Input(self.tensor, self.seen, self.geometry), loaded.model.trace(self.tensor), picture=self.picture,
                        notes=self.notes, lies=self.lies)

    def class_index(self, klass: int | str) -> int:
        """The number of a class given by number or name."""
        if isinstance(klass, str) and klass in self.classes:
            return self.classes.index(klass)
        if isinstance(klass, int) and not isinstance(klass, bool) and 0 <= klass < len(self.classes):
            return klass
        if not self.classes:
            raise ValueError("this model has no classes: it was trained without a head")
        raise ValueError(f"the model knows {len(self.classes)} classes, numbered from 0; {klass!r} is none of them")

    def embedded(self) -> Tensor:
        """The tokens that enter the first block, (1, T, D)."""
        return self.loaded.model.embed(self.tensor.clone())                 # a copy: the tensor itself was made without gradients

    def _answered_from(self) -> Tensor:
        """What the classifier reads, (T,), summing to 1: see `ViT.classify`."""
        config, start = self.loaded.config, self._start()
        if config.head == "both":
            return (start + attention.reader(self.tokens, config.prefix, class_token=False)) / 2
        if config.distilled and config.pool == "cls":
            return (start + start.roll(1)) / 2                              # the distillation token stands behind the class token
        return start

    def _start(self) -> Tensor:
        config = self.loaded.config
        return attention.reader(self.tokens, config.prefix, config.pool == "cls")


def explain(picture: Any, model: Loaded | None = None, *, side: int | None = None, fit: str | None = None, part: Edges | None = None) -> Explanation:
    """Classify `picture` and read what the class token attends to in every head of every block.

    `picture` is a path, bytes, an open file or a PIL image; `model` comes from `vitdemo.load` (the model in the box where it is left
    out). With `side` it looks at squares of so many pixels; `fit` says at what of the picture: "crop" is its middle, "pad" all of it on a
    plain ground, "whole" all of it in its own shape (`vitdemo.looking`), and left out it is what the model wants; with `part`, (top, left,
    bottom, right) as shares of its height and width, it looks at that. Raises PictureError for what is no usable picture, LookError for a
    side, a fit or a part that there is not. Equation numbers stand in `vitdemo.model` and `vitdemo.attention`.
    """
    loaded = looking.at(model or checkpoint.load(), side, fit, part)
    opened = open_picture(picture)
    image, notes, lies = opened.image, opened.notes, WHOLE
    if fit == "pad" and part is None:
        image, lies = padded(image, loaded.preprocessing.size)
        notes = (*notes, *[PADDED] * (lies != WHOLE))
    seen = to_input(image, loaded.preprocessing, loaded.config.patch, part)
    with torch.inference_mode():
        return describe(loaded, seen, loaded.model.trace(seen.tensor), picture=image, notes=notes, lies=lies)


def describe(loaded: Loaded, seen: Input, trace: Trace, *, picture: Image.Image, notes: tuple[str, ...] = (), lies: Edges = WHOLE) -> Explanation:
    """The `Explanation` of a pass that was already made: `trace` is what the model did with `seen`, which shows `picture`."""
    maps = attention.class_maps(trace.queries, trace.keys, prefix=loaded.config.prefix, grid=seen.geometry.grid,
                                class_token=loaded.config.pool == "cls")
    return Explanation(
        classes=loaded.classes, probabilities=trace.logits.softmax(-1)[0].numpy(), lens=trace.lens.softmax(-1)[0].numpy(),
        attention=maps.patches[0].numpy(), prefix_attention=maps.prefix[0].numpy(),
        picture=picture, seen=seen.seen, geometry=seen.geometry, notes=notes,
        reader=reader_name(loaded.config), model=loaded.name, loaded=loaded, tensor=seen.tensor, trace=trace, lies=lies,
    )


def reader_name(config: ViTConfig) -> str:
    """Whose attention is shown: the class token's, or the patches' on average where the classifier averages them."""
    return "the class token" if config.pool == "cls" else "the average patch"


def untrained(loaded: Loaded, seed: int = 0) -> Loaded:
    """The untrained twin of a model: the same architecture, classes and preprocessing, with weights as they are drawn before training."""
    model = ViT(loaded.config, torch.Generator().manual_seed(seed)).eval()
    return Loaded(model, loaded.classes, loaded.preprocessing, {"notes": ["random weights"]}, f"{loaded.name} untrained")


def main(arguments: list[str] | None = None) -> int:
    from vitdemo import explain_command  # figures and reports stand above this file

    return explain_command.main(arguments)


if __name__ == "__main__":
    raise SystemExit(main())

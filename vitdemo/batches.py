"""The pictures of every step: which, in what order, how changed. All of it is drawn by generators that depend on the run's seed and the step alone."""

import hashlib
import itertools
import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vitdemo import augment
from vitdemo.budget import stage_size
from vitdemo.config import Preprocessing, TrainConfig, ViTConfig
from vitdemo.data import Split
from vitdemo.images import normalise


def batch_size(pictures: int, batch: int) -> int:
    """Pictures of a step. What an epoch leaves out is less than a batch: little of many pictures, but of few it would be a large part, so
    those are shared out evenly."""
    return batch if pictures >= 20 * batch else pictures // math.ceil(pictures / batch) if pictures else 0


def batches(split: Split, size: int, config: TrainConfig, step: int = 0) -> Iterator[Split]:
    """The training pictures of `step` (counted from 0) and of all that follow: epochs are shuffled anew, a last incomplete batch is left out."""
    each = max(1, len(split) // size)                                       # steps of an epoch
    for epoch in itertools.count(step // each):
        order = torch.randperm(len(split), generator=generator_of(config.seed, 0, epoch))
        for index in range(max(0, step - epoch * each), each):
            yield split[order[index * size:(index + 1) * size]]


def prepare(batch: Split, done: float, preprocessing: Preprocessing, config: TrainConfig, vit: ViTConfig,
            generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures to augmented, normalised input (B, C, rows, cols) as it is shown after `done` (0 to 1) of the budget, and what is to be
    answered: labels (B,), or (B, classes) where some are mixed."""
    images, targets = augment.shifted_crop(batch.images, config.shift, generator), batch.labels
    if config.flip:
        images = augment.flip(images, generator)
    if (config.crop_least, config.crop_most) != (1, 1):
        images = augment.resized_crop(images, config.crop_least, config.crop_most, generator)
    if config.tint:
        images = augment.tint(images, config.tint, generator)
    if config.erase:
        images = augment.erase(images, config.erase, generator)
    images = augment.shrink(images, stage_size(done, config, vit))
    if config.mix and done < config.mix_end:
        images, targets = augment.mix(images, F.one_hot(targets, vit.classes), config.mix, generator)
    return normalise(images, preprocessing), targets


def generator_of(*key: int) -> torch.Generator:
    """A generator that depends on nothing but `key`. PyTorch's CPU generator keeps only 32 bits of a seed, hence the hash."""
    return torch.Generator().manual_seed(int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "big"))

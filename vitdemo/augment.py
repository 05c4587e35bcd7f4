"""Random changes to a whole batch of training pictures at once: tensors in, tensors out, no worker processes."""

import torch
import torch.nn.functional as F
from torch import Tensor


def shifted_crop(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Move every picture of `images` (B, C, rows, cols) by up to `most` pixels each way; what moves in from outside is black."""
    if most == 0:
        return images
    B, _, rows, cols = images.shape
    padded = F.pad(images, (most,) * 4)
    down, right = torch.randint(2 * most + 1, (2, B), generator=generator)
    windows = padded.unfold(2, rows, 1).unfold(3, cols, 1)                  # every crop there is, as a view
    return windows[torch.arange(B), :, down, right]                         # one crop for each picture


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each picture of `images` (B, C, rows, cols) left to right with probability one half."""
    mirrored = torch.rand(len(images), generator=generator) < 0.5
    return torch.where(mirrored[:, None, None, None], images.flip(3), images)


def shrink(images: Tensor, size: tuple[int, int]) -> Tensor:
    """uint8 `images` (B, C, rows, cols) at a smaller size, antialiased."""
    if tuple(images.shape[2:]) == size:
        return images
    return F.interpolate(images, size=size, mode="bilinear", antialias=True)

"""Random changes to a whole batch of training pictures at once: tensors in, tensors out, no worker processes.

`flip` is all that short runs need. `shifted_crop` and the others make a long run see few pictures twice; most of them make pictures look as
people's uploads do: cut out on one plain colour, small, off the middle, stretched, darker, paler.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

GREYS = (0.0, 128.0, 255.0)                     # of the plain colours around or in a picture; the fourth is any colour


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


def resized_crop(images: Tensor, least: float, most: float, generator: torch.Generator) -> Tensor:
    """Of each picture of `images` (B, C, rows, cols) a window anywhere, at the picture's size: its area is `least` to `most` times the
    picture's, every factor as likely, its shape up to 4:3 stretched (after Szegedy et al. 2015, section 6). A window larger than the
    picture shows all of it, small, on one plain colour. Float in the range of `images`."""
    B = len(images)
    area, shape, down, right = torch.rand(4, B, generator=generator)
    area, shape = least * (most / least) ** area, (4 / 3) ** (2 * shape - 1)
    high, wide = (area / shape).sqrt(), (area * shape).sqrt()               # of the window, in picture sides
    theta = torch.zeros(B, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = wide, high
    theta[:, 0, 2], theta[:, 1, 2] = (2 * right - 1) * (1 - wide).abs(), (2 * down - 1) * (1 - high).abs()      # inside, or around
    colour = plain(B, images.shape[1], generator)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)    # (B, rows, cols, 2): x, y
    # a window inside ends with the picture's outermost pixels; half of the next one would be the plain colour
    ends = torch.stack([torch.where(side > 1, math.inf, 1 - 1 / pixels) for side, pixels in ((wide, images.shape[3]), (high, images.shape[2]))], dim=1)
    grid = grid.clamp(-ends[:, None, None], ends[:, None, None])
    return F.grid_sample(images.float() - colour, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + colour


def tint(images: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Brightness, contrast and saturation of each picture of `images` (B, C, rows, cols, 0 to 255) times a factor of up to
    1 + `strength` either way, and each channel by up to a third of that. Float, 0 to 255."""
    B, C = images.shape[:2]
    factors = (1 + strength) ** (2 * torch.rand(3, B, 1, 1, 1, generator=generator) - 1)
    channels = (1 + strength / 3) ** (2 * torch.rand(B, C, 1, 1, generator=generator) - 1)
    images = images.float() * (factors[0] * channels)
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean + (images - mean) * factors[1]
    grey = images.mean(1, keepdim=True)
    return (grey + (images - grey) * factors[2]).clamp(0, 255)


def erase(images: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """In a `share` of `images` (B, C, rows, cols, 0 to 255) a rectangle of 2 to 30 % of the area, shape up to 3:1, becomes one plain colour
    (Zhong et al. 2020, Random Erasing). Float."""
    B, C, rows, cols = images.shape
    chosen, area, shape, down, right = torch.rand(5, B, 1, 1, generator=generator)
    area, shape = 0.02 + 0.28 * area, 3 ** (2 * shape - 1)
    high, wide = (area / shape).sqrt().clamp(max=1), (area * shape).sqrt().clamp(max=1)
    y, x = (torch.arange(rows)[:, None] + 0.5) / rows, (torch.arange(cols) + 0.5) / cols
    top, left = down * (1 - high), right * (1 - wide)
    covered = inside(y, x, top, left, high, wide) & (chosen < share)
    return torch.where(covered[:, None], plain(B, C, generator), images.float())


def mix(images: Tensor, targets: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A `share` of `images` (B, C, rows, cols) each mixed with another one, and their `targets` (B, K) in the same proportion: half of them
    blended (Zhang et al. 2018, mixup), half with a rectangle of the other (Yun et al. 2019, CutMix)."""
    B, _, rows, cols = images.shape
    chosen, kind, part, down, right = torch.rand(5, B, 1, 1, generator=generator)
    other = torch.randperm(B, generator=generator)
    side = (1 - part).sqrt()                                                # of the rectangle, in picture sides
    y, x = torch.arange(rows)[:, None], torch.arange(cols)
    high, wide = (side * rows).round(), (side * cols).round()
    top, left = (down * (rows - high)).round(), (right * (cols - wide)).round()
    cut = inside(y, x, top, left, high, wide)
    weight = torch.where(kind < 0.5, 1 - part, cut.float()) * (chosen < share)      # (B, rows, cols), of the other picture
    images = torch.lerp(images.float(), images[other].float(), weight[:, None])
    targets = torch.lerp(targets.float(), targets[other].float(), weight.mean((1, 2))[:, None])
    return images, targets


def inside(y: Tensor, x: Tensor, top: Tensor, left: Tensor, high: Tensor, wide: Tensor) -> Tensor:
    """(B, rows, cols): whether the pixels at rows `y` (rows, 1) and columns `x` (cols,) lie in each picture's rectangle, (B, 1, 1) each."""
    return (y >= top) & (y < top + high) & (x >= left) & (x < left + wide)


def plain(count: int, channels: int, generator: torch.Generator) -> Tensor:
    """(count, channels, 1, 1), 0 to 255: black, grey, white or any colour, as often each."""
    colour = 255 * torch.rand(count, channels, generator=generator)
    which = torch.randint(len(GREYS) + 1, (count,), generator=generator)
    for number, grey in enumerate(GREYS):
        colour[which == number] = grey
    return colour[:, :, None, None]


def shrink(images: Tensor, size: tuple[int, int]) -> Tensor:
    """`images` (B, C, rows, cols) at a smaller size, antialiased."""
    if tuple(images.shape[2:]) == size:
        return images
    return F.interpolate(images, size=size, mode="bilinear", antialias=True)

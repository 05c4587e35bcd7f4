"""A plain small convolutional network with as many parameters as a given ViT, for a fair race between the two."""

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo.config import ViTConfig
from vitdemo.model import ViT

CONVOLUTIONS = 2                    # in each stage


class SmallCNN(nn.Module):
    """Three stages of 3x3 convolutions, each with batch norm and ReLU, the sides halved in between; then the mean over all places and one
    linear layer. Takes images (B, C, height, width) of any size; `config` is that of the ViT it is as large as.
    """

    def __init__(self, config: ViTConfig, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        self.stages = nn.ModuleList()
        before = config.channels
        for width in widths(config):
            stage = nn.Sequential()
            for _ in range(CONVOLUTIONS):
                # no bias: the norm that follows has one
                stage.extend((nn.Conv2d(before, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()))
                before = width
            self.stages.append(stage)
        self.head = nn.Linear(before, config.classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu", generator=generator)
        nn.init.trunc_normal_(self.head.weight, std=0.02, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, K)."""
        x = self.stages[0](images)
        for stage in self.stages[1:]:
            x = stage(F.max_pool2d(x, 2, ceil_mode=True))                   # a side of 1 stays 1
        return self.head(x.mean(dim=(2, 3)))


def widths(config: ViTConfig) -> tuple[int, int, int]:
    """The stages' widths, about 1 : 2 : 4, whose network is nearest in parameters to the ViT of `config`."""
    wanted = vit_parameters(config)
    base = 1
    while _parameters(config, (base + 1, 2 * base + 2, 4 * base + 4)) <= wanted:
        base += 1
    tried = product((base, base + 1), range(2 * base, 2 * base + 3), range(max(1, 4 * base - 4), 4 * base + 9))
    return min(tried, key=lambda found: (abs(_parameters(config, found) - wanted), found))


def vit_parameters(config: ViTConfig) -> int:
    """How many numbers the ViT of `config` learns; none of them is drawn here."""
    with torch.device("meta"):
        return sum(p.numel() for p in ViT(config).parameters())


def _parameters(config: ViTConfig, stages: tuple[int, ...]) -> int:
    total, before = 0, config.channels
    for width in stages:
        total += 9 * before * width + 9 * width * width * (CONVOLUTIONS - 1) + 2 * width * CONVOLUTIONS
        before = width
    return total + (before + 1) * config.classes

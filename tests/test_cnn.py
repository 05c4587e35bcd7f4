"""The small CNN that races against a ViT: as many parameters, any size of picture."""

import pytest
import torch

from vitdemo.cnn import SmallCNN, vit_parameters
from vitdemo.config import ViTConfig
from vitdemo.model import ViT
from vitdemo.presets import SIZES


@pytest.mark.parametrize("size", ["vit-micro", "vit-notebook", "vit-tiny-9.5m", "vit-mnist"])
def test_it_has_as_many_parameters_as_the_vit_within_three_percent(size):
    config = SIZES[size].config
    with torch.device("meta"):
        ours, theirs = (sum(p.numel() for p in network(config).parameters()) for network in (SmallCNN, ViT))
    assert theirs == vit_parameters(config) and abs(ours / theirs - 1) <= 0.03, (ours, theirs)


def test_the_counts_of_the_race_in_a_lesson_are_the_ones_said():
    with torch.device("meta"):
        cnn, patch_4, patch_8 = (sum(p.numel() for p in model.parameters()) for model in (
            SmallCNN(SIZES["vit-micro"].config), ViT(SIZES["vit-micro"].config), SmallCNN(SIZES["vit-micro"].config.with_(patch=8))))
    assert patch_4 == 683_242 and abs(cnn / patch_4 - 1) < 0.01 and patch_8 != cnn


@pytest.mark.parametrize(("height", "width"), [(1, 1), (12, 20), (32, 32), (7, 28)])
def test_pictures_of_any_size_give_logits(height, width):
    model = SmallCNN(ViTConfig(image=(12, 12), patch=(4, 4), channels=1, dim=10, depth=2, heads=2, classes=3)).eval()
    assert model(torch.randn(2, 1, height, width)).shape == (2, 3) and model.config.classes == 3


def test_the_same_generator_gives_the_same_network_and_every_part_of_it_learns():
    config = ViTConfig(image=(12, 12), patch=(4, 4), dim=10, depth=2, heads=2, classes=3)
    one, two = (SmallCNN(config, torch.Generator().manual_seed(5)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))
    one(torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in one.parameters())

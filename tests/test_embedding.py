"""What the first layer learned: filters, their principal components, and how alike positions are."""

import math

import pytest
import torch
from conftest import tiny_config

from vitdemo import embedding
from vitdemo.model import ViT


def made(**options) -> ViT:
    """A seeded model with random positions; tall patches of 6 x 4 pixels on a 2 x 5 grid unless told otherwise."""
    model, generator = ViT(tiny_config(**{"patch": (6, 4), **options})), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.3 * torch.randn(p.shape, generator=generator))
    return model


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)


@pytest.mark.parametrize("options", [
    {}, {"registers": 3}, {"registers": 3, "prefix_positions": 1}, {"registers": 3, "prefix_positions": 0}, {"distilled": True},
    {"positions": "sinusoidal"}, {"pool": "mean", "class_token": False},
], ids=str)
def test_position_similarity_is_the_cosine_of_each_patchs_position_with_every_other(options):
    model = made(**options)
    got = embedding.position_similarity(model)
    assert got.shape == (2, 5, 2, 5)
    table = model.pos_embed[0].tolist()[-10:]                               # patches come last
    for r, c, s, d in [(0, 0, 0, 1), (0, 3, 1, 2), (1, 4, 0, 0), (1, 2, 1, 2)]:
        assert got[r, c, s, d].item() == pytest.approx(cosine(table[5 * r + c], table[5 * s + d]), abs=1e-6)
    assert got.abs().max() <= 1
    assert not got.requires_grad


def test_a_model_without_positions_has_no_similarity():
    assert embedding.position_similarity(made(positions="none")) is None


def test_filters_come_strongest_first_on_one_scale_with_zero_in_the_middle():
    model = made()
    weight = model.patch_embed.proj.weight                                  # (D, C, P, Q)
    with torch.no_grad():
        weight[4] *= 3
        weight[7] = 0
        weight[7, 2, 5, 1] = 40                                             # one strong weight: channel 2, row 5, col 1
        weight[9] = 0
    got = embedding.filters(model)
    assert got.shape == (10, 6, 4, 3)
    assert got[0, 5, 1, 2] == 1
    assert (got[0] == 0.5).sum() == 71
    assert (got[-1] == 0.5).all()
    assert torch.allclose(got[1], 0.5 + weight[4].permute(1, 2, 0) / 80, atol=1e-6)
    assert not got.requires_grad
    assert torch.equal(embedding.filters(model, 2), got[:2])
    in_order = embedding.filters(model, strongest=False)
    assert torch.equal(in_order[7], got[0]) and torch.equal(in_order[4], got[1]) and (in_order[9] == 0.5).all()


def test_filters_that_are_all_zero_are_even_grey():
    model = made(channels=1)
    with torch.no_grad():
        model.patch_embed.proj.weight.zero_()
    assert torch.equal(embedding.filters(model, 4), torch.full((4, 6, 4, 1), 0.5))
    assert embedding.principal_filters(model).shape == (0, 6, 4, 1)


def test_principal_filters_find_the_directions_the_filters_were_made_of():
    model, generator = made(dim=40, heads=2), torch.Generator().manual_seed(5)
    directions = torch.linalg.qr(torch.randn(72, 3, generator=generator)).Q.T               # three orthogonal ones
    amounts = torch.randn(40, 3, generator=generator)
    amounts = torch.linalg.qr(amounts - amounts.mean(0)).Q * torch.tensor([9., 3., 1.])
    with torch.no_grad():
        model.patch_embed.proj.weight.copy_((amounts @ directions + 5).view(40, 3, 6, 4))   # a common offset is no component
    got = embedding.principal_filters(model)
    assert got.shape == (3, 6, 4, 3)
    for picture, direction in zip(got, directions):
        flat = (2 * picture - 1).permute(2, 0, 1).flatten()
        assert flat.max() == pytest.approx(1, abs=1e-6)                                     # the sign is settled
        assert abs(cosine(flat.tolist(), direction.tolist())) == pytest.approx(1, abs=1e-4)
    assert torch.equal(embedding.principal_filters(model, 2), got[:2])


def test_there_are_no_more_components_than_filters_span():
    got = embedding.principal_filters(made(), 28)
    assert got.shape == (9, 6, 4, 3)                                        # ten filters about their mean
    assert 0 <= got.min() <= got.max() <= 1


@pytest.mark.parametrize("count", [0, -1, True, 2.0, math.nan, None])
@pytest.mark.parametrize("ask", [embedding.filters, embedding.principal_filters])
def test_a_count_that_is_none_is_refused(ask, count):
    with pytest.raises(ValueError, match="count must be a whole number from 1 up"):
        ask(made(), count)

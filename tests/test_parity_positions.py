"""Positions for another grid, the same numbers as timm's `resample_abs_pos_embed`: many grids, any number of tokens in front."""

import pytest
import torch

from vitdemo.model import resize_positions

timm = pytest.importorskip("timm")

GRIDS = [(1, 1), (2, 5), (3, 3), (3, 4), (4, 3), (7, 7), (8, 2), (14, 14), (16, 27), (37, 37)]
PAIRS = [(old, new) for old in GRIDS for new in GRIDS if old != new]


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_positions_are_resized_as_timm_does_for_many_grids(prefix):
    for old, new in PAIRS:
        table = torch.randn(1, prefix + old[0] * old[1], 6, generator=torch.Generator().manual_seed(3))
        expected = timm.layers.resample_abs_pos_embed(table, list(new), list(old), num_prefix_tokens=prefix)
        mine = resize_positions(table, old, new)
        assert mine.shape == (1, prefix + new[0] * new[1], 6)
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-5, msg=lambda text: f"{old} to {new}: {text}")
        assert torch.equal(mine[:, :prefix], table[:, :prefix])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_positions_keep_their_precision(dtype):
    table = torch.randn(1, 10, 6, dtype=dtype)
    mine = resize_positions(table, (3, 3), (4, 5))
    assert mine.dtype == dtype
    torch.testing.assert_close(mine, timm.layers.resample_abs_pos_embed(table, [4, 5], [3, 3]), rtol=1e-5, atol=1e-5)


def test_the_same_grid_changes_nothing_and_the_other_way_round_is_another_grid():
    table = torch.randn(1, 13, 6)
    assert resize_positions(table, (3, 4), (3, 4)) is table
    turned = resize_positions(table, (3, 4), (4, 3))
    assert turned.shape == table.shape and not torch.allclose(turned, table, atol=0.1)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(turned, resize_positions(table, (4, 3), (3, 4)), rtol=1e-2, atol=1e-2)

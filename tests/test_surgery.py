"""Patches hidden and moved: against loops over pixels, and what is left of a shuffle when the model gets no positions."""

import copy

import pytest
import torch
from conftest import tiny_config
from test_faithfulness import KINDS, random_model

from vitdemo import attention
from vitdemo.checkpoint import Loaded
from vitdemo.surgery import Surgery, answer, difference, operate

ORDER = (7, 2, 14, 0, 11, 5, 13, 1, 9, 3, 12, 6, 10, 4, 8)


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request) -> Loaded:
    return random_model(tiny_config(**request.param))


@pytest.fixture
def tensor() -> torch.Tensor:
    return torch.randn(1, 3, 12, 20, generator=torch.Generator().manual_seed(6))


def by_hand(tensor: torch.Tensor, patch: tuple[int, int], masked: tuple[int, ...], order: tuple[int, ...]) -> torch.Tensor:
    """Every place of the picture filled on its own."""
    tall, wide = patch
    cols, result = tensor.shape[3] // wide, torch.empty_like(tensor)
    for place, source in enumerate(order):
        (i, j), (k, m) = divmod(place, cols), divmod(source, cols)
        for b in range(len(tensor)):
            for c in range(tensor.shape[1]):
                here = result[b, c, i * tall:(i + 1) * tall, j * wide:(j + 1) * wide]
                here[:] = tensor[b, c].mean() if source in masked else tensor[b, c, k * tall:(k + 1) * tall, m * wide:(m + 1) * wide]
    return result


@pytest.mark.parametrize("patch", [(4, 4), (3, 4), (2, 10)])
@pytest.mark.parametrize("masked", [(), (0,), (5, 1, 5)])
@pytest.mark.parametrize("moved", [False, True])
def test_patches_are_masked_and_moved_as_in_a_loop_over_pixels(patch, masked, moved):
    images = torch.randn(2, 3, 12, 20, generator=torch.Generator().manual_seed(1))
    patches = 12 // patch[0] * (20 // patch[1])
    order = tuple(torch.randperm(patches, generator=torch.Generator().manual_seed(2)).tolist()) if moved else None
    before = images.clone()
    done = operate(images, patch, Surgery(patches, masked, order))
    assert torch.allclose(done, by_hand(images, patch, masked, order or tuple(range(patches))), atol=1e-6)
    assert torch.equal(images, before) and torch.equal(done, images) == (not masked and not moved)


def test_swapping_twice_gives_the_picture_back(tensor):
    swapped = Surgery(15, order=(*range(3), 9, *range(4, 9), 3, *range(10, 15)))
    once = operate(tensor, (4, 4), swapped)
    assert torch.equal(operate(once, (4, 4), swapped), tensor) and not torch.equal(once, tensor)
    assert torch.equal(once[0, :, 0:4, 12:16], tensor[0, :, 4:8, 16:20])    # patch 9 stands at place 3


@pytest.mark.parametrize("positions", [False, True])
def test_the_answer_is_the_models_own_about_the_operated_picture(kind, tensor, positions):
    operated, trace = answer(kind, tensor, Surgery(15, (4, 8), ORDER, positions))
    wanted = by_hand(tensor, (4, 4), (4, 8), ORDER)
    bare = copy.deepcopy(kind.model)
    if not positions:
        bare.pos_embed.data.zero_()                                         # a table of zeros is no table
    assert torch.allclose(operated, wanted, atol=1e-6) and torch.allclose(trace.logits, bare(wanted), atol=1e-5)
    assert (kind.model(wanted) - bare(wanted)).abs().max().item() > 1e-2 or positions


def test_without_positions_a_shuffle_changes_nothing_but_rounding_and_with_them_it_does(kind, tensor):
    free, bound = (difference(kind, tensor, Surgery(15, (), ORDER, positions))[0] for positions in (False, True))
    assert free < 1e-4 and bound > 1e-2
    exact = Loaded(copy.deepcopy(kind.model).double(), kind.classes, kind.preprocessing, {}, "float64")
    assert difference(exact, tensor.double(), Surgery(15, (), ORDER, False))[0] < 1e-10


def test_masking_changes_the_answer_with_and_without_positions(kind, tensor):
    for positions in (False, True):
        assert difference(kind, tensor, Surgery(15, (3, 7), None, positions))[0] > 1e-3
        assert difference(kind, tensor, Surgery(15, positions=positions))[0] == 0


def test_the_difference_is_measured_from_the_whole_picture_under_the_same_position_setting(kind, tensor):
    for positions in (False, True):
        done = Surgery(15, (3,), ORDER, positions)
        change, before = difference(kind, tensor, done)
        whole = kind.model.classify(kind.model.transform(kind.model.embed(tensor, positions=positions)))
        assert torch.allclose(before.logits, whole, atol=1e-5)
        assert change == pytest.approx((answer(kind, tensor, done)[1].logits - whole).abs().max().item(), abs=1e-5)


def test_the_map_of_a_shuffled_picture_lies_on_the_shuffled_grid(kind, tensor):
    config = kind.config
    maps = [attention.class_maps(trace.queries, trace.keys, prefix=config.prefix, grid=(3, 5), class_token=config.pool == "cls")
            for trace in (answer(kind, tensor, Surgery(15, (), order, False))[1] for order in (None, ORDER))]
    before, after = (one.patches.flatten(3) for one in maps)                # (1, layers, heads, 15)
    assert torch.allclose(after, before[..., list(ORDER)], atol=1e-5) and not torch.allclose(after, before, atol=1e-3)
    assert torch.allclose(maps[0].prefix, maps[1].prefix, atol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"pool": "mean", "class_token": False, "norm_at": "pooled"}], ids=["class token", "mean"])
def test_a_model_without_a_head_is_compared_by_the_token_that_is_read(changes, tensor):
    headless = random_model(tiny_config(classes=0, **changes))
    free, trace = difference(headless, tensor, Surgery(15, (), ORDER, False))
    bound = difference(headless, tensor, Surgery(15, (), ORDER))[0]
    assert trace.logits.shape == (1, 0) and free < 1e-4 < 1e-2 < bound


def test_surgery_leaves_no_trace_on_the_picture_or_the_model(kind, tensor):
    before, logits = tensor.clone(), kind.model(tensor)
    answer(kind, tensor, Surgery(15, (1,), ORDER, False))
    assert torch.equal(tensor, before) and torch.equal(kind.model(tensor), logits) and all(p.grad is None for p in kind.model.parameters())


@pytest.mark.parametrize("order", [(), tuple(range(14)), tuple(range(1, 16)), (0,) * 15, (*range(14), 15), (*range(14), -1)])
def test_an_order_that_is_not_one_of_all_patches_is_refused(order):
    with pytest.raises(ValueError, match="every patch from 0 to 14 once"):
        Surgery(15, order=order)


@pytest.mark.parametrize("patch", [-1, 15, 1000])
def test_a_patch_that_is_not_there_cannot_be_masked(patch):
    with pytest.raises(ValueError, match=f"from 0 to 14; {patch} is none"):
        Surgery(15, masked=(3, patch))


def test_surgery_for_another_grid_is_refused_in_a_sentence(tensor):
    for done in (Surgery(8, masked=(2,)), Surgery(8, order=tuple(range(8))), Surgery(20, masked=(17,))):
        with pytest.raises(ValueError, match=f"surgery on {done.patches} patches does not fit a picture of 3 x 5 patches"):
            operate(tensor, (4, 4), done)

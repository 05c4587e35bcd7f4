"""Patches hidden in a map's order: against loops over single pictures, by pixels and tokens, and for a picture whose truth is known."""

from itertools import islice

import numpy as np
import pytest
import torch
from conftest import tiny_config

from vitdemo.checkpoint import Loaded
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.faithfulness import (HIDING, RANDOM, Curves, Hider, area, counts, cover, curves, judge, measure, occlusion, order_of,
                                  percentile, random_orders)
from vitdemo.model import ViT

KINDS = {
    "class token": {}, "registers": {"registers": 2, "prefix_positions": 1}, "distilled": {"distilled": True},
    "mean of the patches": {"pool": "mean", "class_token": False, "norm_at": "pooled"},
    "mean beside a class token": {"pool": "mean", "registers": 1}, "class token and mean": {"head": "both"},
    "made for another grid": {"image": (16, 8)},
}


def random_model(config: ViTConfig) -> Loaded:
    """A model whose answers differ a lot from picture to picture."""
    generator = torch.Generator().manual_seed(3)
    model = ViT(config, generator).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.4 * torch.randn(p.shape, generator=generator))
    names = ("blue", "green", "red")[:config.classes]
    return Loaded(model, names, Preprocessing(size=config.image), {}, "seeded")


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request) -> Loaded:
    return random_model(tiny_config(**request.param))


@pytest.fixture
def tensor() -> torch.Tensor:
    return torch.randn(1, 3, 12, 20, generator=torch.Generator().manual_seed(5))


def blurred(tensor: torch.Tensor) -> torch.Tensor:
    """A two-dimensional Gaussian of deviation height/4 and width/4, pixel by pixel, over a picture reflected at its edges."""
    (height, width), (tall, wide) = tensor.shape[2:], (7, 11)               # half the side, made odd
    down, across = (np.exp(-0.5 * ((np.arange(n) - n // 2) / (side / 4)) ** 2) for n, side in ((tall, height), (wide, width)))
    window = np.outer(down / down.sum(), across / across.sum())
    padded = np.pad(tensor[0].double().numpy(), ((0, 0), (tall // 2,) * 2, (wide // 2,) * 2), mode="reflect")
    pixels = [[(padded[:, i:i + tall, j:j + wide] * window).sum((1, 2)) for j in range(width)] for i in range(height)]
    return torch.tensor(np.array(pixels)).permute(2, 0, 1)[None].float()


@torch.no_grad()
def one_picture(loaded: Loaded, tensor: torch.Tensor, hidden: set[int], klass: int, how: str) -> float:
    """The class probability with some patches hidden, the slow and plain way."""
    config, model = loaded.config, loaded.model
    if how == "drop":
        kept = [p for p in range(15) if p not in hidden]
        if not kept and (config.pool == "mean" or config.head == "both"):
            kept = [14]                                                     # an average needs one patch
        z = model.embed(tensor)
        z = torch.cat((z[:, :config.prefix], *(z[:, config.prefix + p, None] for p in kept)), dim=1)
        return model.classify(model.transform(z)).softmax(-1)[0, klass].item()
    picture, fill = tensor.clone(), blurred(tensor) if how == "blur" else None
    for p in hidden:
        top, left = p // 5 * 4, p % 5 * 4
        for channel in range(3):
            picture[0, channel, top:top + 4, left:left + 4] = (
                tensor[0, channel].mean() if fill is None else fill[0, channel, top:top + 4, left:left + 4])
    return model(picture).softmax(-1)[0, klass].item()


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("insertion", [False, True], ids=["deletion", "insertion"])
def test_curves_are_those_of_a_loop_over_single_pictures(kind, tensor, how, insertion):
    orders = random_orders(15, 3, seed=8)
    found = measure(Hider(kind, tensor, 2, how), orders, insertion=insertion, levels=6, batch=2)
    steps = [round(15 * level / 6) for level in range(7)]
    assert np.allclose(found.shares, [step / 15 for step in steps]) and found.probabilities.shape == (3, 7)
    for m, order in enumerate(orders.tolist()):
        for level, step in enumerate(steps):
            hidden = set(order[step:] if insertion else order[:step])
            assert found.probabilities[m, level] == pytest.approx(one_picture(kind, tensor, hidden, 2, how), abs=2e-6), (m, level)
    assert np.ptp(found.probabilities) > 1e-2                               # the models do look


@pytest.mark.parametrize("how", HIDING)
def test_occlusion_is_what_hiding_one_patch_alone_costs(kind, tensor, how):
    found = occlusion(kind, tensor, 1, how, batch=4)
    whole = one_picture(kind, tensor, set(), 1, how)
    slow = [whole - one_picture(kind, tensor, {p}, 1, how) for p in range(15)]
    assert found.shape == (3, 5) and np.allclose(found.ravel(), slow, atol=2e-6) and np.ptp(slow) > 1e-3


@pytest.mark.parametrize("how", HIDING)
def test_the_batch_and_the_company_of_other_orders_change_no_curve(kind, tensor, how):
    orders, hider = random_orders(15, 5), Hider(kind, tensor, 0, how)
    together = measure(hider, orders)
    alone = np.concatenate([measure(hider, orders[i:i + 1], batch=1).probabilities for i in range(5)])
    assert np.allclose(together.probabilities, alone, atol=2e-6) and np.ptp(together.probabilities[:, 5]) > 1e-4


def test_deletion_starts_and_insertion_ends_at_the_whole_picture(kind, tensor):
    whole = kind.model(tensor).softmax(-1)[0, 1].item()
    for how in HIDING:
        hider, orders = Hider(kind, tensor, 1, how), random_orders(15, 4)
        out, into = measure(hider, orders), measure(hider, orders, insertion=True)
        assert np.allclose(out.probabilities[:, 0], whole, atol=1e-6) and np.allclose(into.probabilities[:, -1], whole, atol=1e-6)
        assert np.ptp(out.probabilities[:, -1]) == 0 and np.ptp(into.probabilities[:, 0]) == 0             # nothing left: the same for all
        backwards = measure(hider, orders[:, ::-1])                         # showing the first is hiding the last, from the other end
        assert np.allclose(into.probabilities, backwards.probabilities[:, ::-1], atol=2e-6)


def test_progress_counts_the_pictures_and_whoever_iterates_may_stop_and_go_on(kind, tensor):
    total = 4 * (len(counts(15)) - 2) + 2                                   # both ends once
    run = curves(Hider(kind, tensor, 0, "mean"), random_orders(15, 4), batch=3)
    first = list(islice(run, 5))
    assert [(done, of) for done, of, _ in first] == [(1, total), (4, total), (5, total), (8, total), (9, total)]
    assert all(result is None for *_, result in first) and not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    *_, (done, of, result) = run
    assert done == of == total and result.probabilities.shape == (4, len(counts(15)))


def test_hiding_leaves_the_picture_and_the_model_as_they_were(tiny, tensor):
    before, weights = tensor.clone(), [p.clone() for p in tiny.model.parameters()]
    for how in HIDING:
        measure(Hider(tiny, tensor, 0, how), random_orders(15, 2))
        occlusion(tiny, tensor, 0, how)
    assert torch.equal(tensor, before) and all(torch.equal(one, two) for one, two in zip(weights, tiny.model.parameters(), strict=True))
    assert all(p.grad is None for p in tiny.model.parameters())


def test_levels_are_even_and_never_more_than_the_patches():
    assert counts(64).tolist() == list(range(0, 65, 4)) and counts(3).tolist() == [0, 1, 2, 3] and counts(1).tolist() == [0, 1]
    for patches in (15, 17, 196, 1369):
        steps = counts(patches)
        assert len(steps) == min(16, patches) + 1 and (steps[0], steps[-1]) == (0, patches) and np.ptp(np.diff(steps)) <= 1


@pytest.mark.parametrize("size", [(4, 4), (1, 1), (2, 7), (12, 20), (5, 64), (224, 224)])
def test_the_blurred_copy_fits_any_size_and_keeps_even_colours(size):
    even = torch.tensor([0.3, -1.2, 2.0])[None, :, None, None].expand(1, 3, *size)
    assert cover(even, "blur").shape == even.shape and torch.allclose(cover(even, "blur"), even, atol=1e-5)
    assert torch.allclose(cover(even, "mean").expand_as(even), even, atol=1e-5)


def test_the_blur_leaves_little_of_what_patches_show():
    squares = (torch.arange(32)[:, None] // 4 + torch.arange(32) // 4) % 2 * 2.0 - 1           # a board of 4-pixel patches
    assert cover(squares.expand(1, 3, 32, 32), "blur").abs().max() < 0.1


def test_an_order_runs_from_the_most_important_patch_down():
    assert order_of(np.array([[0.1, 0.9, -2.0], [0.5, 0.2, 0.0]])).tolist() == [1, 3, 4, 0, 5, 2]
    noise = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    assert order_of(noise).tolist() == np.argsort(-noise.ravel()).tolist()


def test_ties_are_broken_by_seed_and_not_by_position():
    constant = np.full((8, 8), 0.25)
    orders = [order_of(constant, seed).tolist() for seed in range(30)]
    assert all(sorted(order) == list(range(64)) and order != sorted(order) for order in orders)
    assert order_of(constant, 7).tolist() == orders[7] != orders[8]
    assert 15 < np.mean([order.index(0) for order in orders]) < 48          # the corner is not favoured
    half = order_of(np.repeat([0.0, 1.0], 32)).tolist()
    assert set(half[:32]) == set(range(32, 64)) and half[:32] != sorted(half[:32])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_map_that_is_not_finite_has_no_order(value):
    with pytest.raises(ValueError, match="not finite"):
        order_of(np.array([[0.1, value], [0.2, 0.3]]))


def test_random_orders_are_permutations_that_the_seed_repeats():
    orders = random_orders(15, seed=4)
    assert orders.shape == (RANDOM, 15) and (np.sort(orders) == np.arange(15)).all() and len({tuple(order) for order in orders}) == RANDOM
    assert np.array_equal(orders, random_orders(15, seed=4)) and not np.array_equal(orders, random_orders(15, seed=5))


def test_the_area_is_the_mean_height_also_over_uneven_steps():
    shares = np.array([0, 0.1, 0.5, 1])
    found = area(Curves(shares, np.array([[0.7] * 4, 1 - shares, [1, 0, 0, 0], [0, 0, 0, 1]])))
    assert found.tolist() == pytest.approx([0.7, 0.5, 0.05, 0.25])


@pytest.mark.parametrize(("own", "kind", "added"), [(0.30, "better", "worse"), (0.3995, "better", "worse"), (0.45, "chance", "chance"),
                                                    (0.5905, "worse", "better"), (0.9, "worse", "better")])
def test_low_is_good_where_patches_are_hidden_and_high_where_they_are_shown(own, kind, added):
    chance = np.arange(40, 60) / 100
    out, into = judge(own, chance), judge(own, chance, insertion=True)
    assert (out.kind, into.kind) == (kind, added)
    assert (out.low, out.high) == pytest.approx((0.4005, 0.5895)) == (into.low, into.high)
    for verdict in (out, into):
        assert f"{own:.3f}" in verdict.sentence and "0.401" in verdict.sentence and "0.589" in verdict.sentence
        assert verdict.sentence.startswith({"chance": "this map is no better than chance for this picture"}.get(
            verdict.kind, f"this map is {verdict.kind} than chance for this picture"))


def test_a_difference_that_is_rounding_is_no_verdict():
    for own in (0.9999999, 1.0, 0.9999998):
        assert judge(own, np.full(20, 0.9999999)).kind == "chance" and percentile(own, np.full(20, 0.9999999)) == 0.5


def test_the_percentile_is_the_share_of_random_orders_that_are_beaten():
    chance = np.arange(20) / 20
    assert [percentile(own, chance) for own in (-1, 0.225, 0.5, 2)] == pytest.approx([1, 0.75, 0.475, 0])
    assert [percentile(own, chance, insertion=True) for own in (-1, 0.225, 0.5, 2)] == pytest.approx([0, 0.25, 0.525, 1])


@pytest.fixture
def planted() -> tuple[Loaded, torch.Tensor, np.ndarray]:
    """A model of which nothing is left but the mean of its patches' red, a picture whose few red patches decide, and the redness (3, 5)."""
    config = tiny_config(pool="mean", class_token=False, depth=1, norm_at="pooled")
    model = ViT(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.fc_norm.weight.fill_(1)
        model.patch_embed.proj.weight[0, 0] = 1 / 16                        # the first number of a token is its mean red
        model.patch_embed.proj.bias[1] = 3
        model.head.weight[2, 0], model.head.weight[0, 1] = 3, 1
    red = np.zeros(15)
    red[[11, 3, 7, 8]] = 9, 5, 4, 3
    red += np.random.default_rng(2).normal(size=15) / 10
    pixels = torch.zeros(1, 3, 12, 20)
    pixels[0, 0] = torch.from_numpy(red.reshape(3, 5)).repeat_interleave(4, 0).repeat_interleave(4, 1)
    return Loaded(model, ("blue", "green", "red"), Preprocessing(size=(12, 20)), {}, "planted"), pixels, red.reshape(3, 5)


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("insertion", [False, True], ids=["deletion", "insertion"])
def test_the_true_order_is_better_than_chance_its_reverse_worse_and_a_random_map_mostly_chance(planted, how, insertion):
    loaded, tensor, red = planted
    hider, order = Hider(loaded, tensor, 2, how), order_of(red)
    own, reverse, *chance = area(measure(hider, [order, order[::-1], *random_orders(15)], insertion=insertion))
    assert judge(own, chance, insertion=insertion).kind == "better" and judge(reverse, chance, insertion=insertion).kind == "worse"
    assert percentile(own, np.array(chance), insertion=insertion) == 1 and percentile(reverse, np.array(chance), insertion=insertion) == 0
    maps = [order_of(np.random.default_rng(100 + seed).random((3, 5))) for seed in range(60)]
    kinds = [judge(one, chance, insertion=insertion).kind for one in area(measure(hider, maps, insertion=insertion))]
    assert kinds.count("chance") > 0.6 * len(kinds)


@pytest.mark.parametrize("how", ["mean", "drop"])
def test_occlusion_finds_the_patches_that_decide(planted, how):
    loaded, tensor, red = planted
    assert order_of(occlusion(loaded, tensor, 2, how))[:4].tolist() == order_of(red)[:4].tolist() == [11, 3, 7, 8]


def test_a_constant_map_is_no_better_than_chance(planted):
    loaded, tensor, _ = planted
    hider = Hider(loaded, tensor, 2, "mean")
    chance = area(measure(hider, random_orders(15)))
    kinds = [judge(area(measure(hider, [order_of(np.ones((3, 5)), seed)]))[0], chance).kind for seed in range(20)]
    assert kinds.count("chance") > 12


@pytest.mark.parametrize("how", HIDING)
def test_a_model_that_looks_at_nothing_makes_every_map_chance(tiny, tensor, how):
    blind = ViT(tiny.config.with_(classes=3)).eval()
    with torch.no_grad():
        blind.head.weight.normal_(generator=torch.Generator().manual_seed(1))
        blind.cls_token.normal_(generator=torch.Generator().manual_seed(2))
        for block in blind.blocks:
            block.attn.proj.weight.zero_()
    hider = Hider(Loaded(blind, tiny.classes, tiny.preprocessing, {}, "blind"), tensor, 1, how)
    own, *chance = area(measure(hider, [np.arange(15), *random_orders(15)]))
    assert judge(own, chance).kind == "chance"


@pytest.mark.parametrize("klass", [-1, 3, True, 1.0, None, "red"])
def test_a_class_the_model_does_not_know_is_refused(tiny, tensor, klass):
    with pytest.raises(ValueError, match="the model knows 3 classes"):
        Hider(tiny, tensor, klass, "mean")


def test_a_model_without_classes_and_an_unknown_way_are_refused_in_a_sentence(tiny, tensor):
    headless = random_model(tiny_config(classes=0))
    with pytest.raises(ValueError, match="no classes, so there is no probability"):
        Hider(headless, tensor, 0, "mean")
    with pytest.raises(ValueError, match="mean, blur, drop, not by 'noise'"):
        Hider(tiny, tensor, 0, "noise")


@pytest.mark.parametrize("orders", [[range(14)], [[0] * 15], [range(1, 16)], [], range(15), [np.arange(15) + 0.5]],
                         ids=["too short", "one patch only", "counted from 1", "none", "not a list of orders", "halves"])
def test_what_is_no_order_of_the_patches_is_refused(tiny, tensor, orders):
    with pytest.raises(ValueError, match="every patch from 0 to 14 once"):
        measure(Hider(tiny, tensor, 0, "mean"), orders)


@pytest.mark.parametrize("levels", [0, -3])
def test_a_curve_has_at_least_one_step(tiny, tensor, levels):
    with pytest.raises(ValueError, match=f"at least 1 step, not {levels}"):
        measure(Hider(tiny, tensor, 0, "mean"), random_orders(15, 2), levels=levels)


def test_a_random_order_is_called_better_than_chance_about_one_time_in_twenty():
    generator = np.random.default_rng(4)
    kinds = [judge(float(generator.random()), generator.random(20)).kind for _ in range(4000)]
    assert kinds.count("better") / 4000 == pytest.approx(0.05, abs=0.012) and kinds.count("worse") / 4000 == pytest.approx(0.05, abs=0.012)

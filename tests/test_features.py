"""What the model makes of patches: similarity, principal components as colours, lengths of tokens; against naive NumPy."""

import numpy as np
import pytest
import torch
from conftest import coloured, seeded
from PIL import Image

from vitdemo import features
from vitdemo.explain import explain
from vitdemo.ui.operated import without_positions

MODELS = {"plain": {}, "registers": {"registers": 3}, "distilled": {"distilled": True}, "averaged": {"pool": "mean", "class_token": False},
          "headless": {"classes": 0}, "wide": {"image": (8, 28)}, "pooled norm": {"pool": "mean", "class_token": False, "norm_at": "pooled"}}


@pytest.fixture(params=MODELS)
def result(request, photo):
    return explain(photo, seeded(**MODELS[request.param]))


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def scattered(n: int = 24, dim: int = 10, seed: int = 0) -> torch.Tensor:
    """Patches whose three strongest directions are far apart, so that a rounding does not decide which comes first."""
    return random(n, dim, seed=seed) * torch.tensor([9., 5., 3.] + [0.5] * (dim - 3)) + 2


def naive_components(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, 3) and shares of variance by the eigenvectors of the covariance, each vector's largest entry positive."""
    x = x.astype(np.float64) - x.astype(np.float64).mean(0)
    values, vectors = np.linalg.eigh(x.T @ x)
    order = np.argsort(-values)[:3]
    vectors = vectors[:, order]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), range(3)])
    return x @ vectors, values[order] / values.sum()


def naive_colours(x: np.ndarray) -> np.ndarray:
    scores = naive_components(x)[0]
    return (scores - scores.min(0)) / (scores.max(0) - scores.min(0))


# Similarity.

def test_similarity_is_the_cosine_with_every_token(result):
    tokens = result.trace.tokens[0].double().numpy()
    for token in (0, len(tokens) - 1):
        found = features.similarity(result.trace.tokens[0, token], result.trace.tokens[0]).numpy()
        wanted = [tokens[token] @ one / np.sqrt(one @ one) / np.sqrt(tokens[token] @ tokens[token]) for one in tokens]
        assert found.shape == (result.tokens,) and np.allclose(found, wanted, atol=1e-6)
        assert found[token] == pytest.approx(1) and np.abs(found).max() <= 1


def test_the_query_is_one_token_or_the_average_patch():
    tokens = random(7, 4)
    assert torch.equal(features.feature(tokens, 5, prefix=2), tokens[5]) and torch.equal(features.feature(tokens, 0, prefix=2), tokens[0])
    assert np.allclose(features.feature(tokens, None, prefix=2), tokens[2:].numpy().mean(0), atol=1e-6)


def test_a_token_without_length_is_like_no_other_and_opposites_are_at_minus_one():
    tokens = torch.tensor([[0., 0.], [3., 4.], [-30., -40.], [4., -3.]])
    assert features.similarity(tokens[1], tokens).tolist() == pytest.approx([0, 1, -1, 0], abs=1e-6)
    assert features.similarity(tokens[0], tokens).tolist() == [0, 0, 0, 0]


# Colours.

def test_colours_are_the_first_three_components_each_from_its_least_patch_to_its_most():
    x = scattered()
    found = features.colours([x], [(4, 6)])
    assert np.allclose(found.rgb[0], naive_colours(x.numpy()), atol=1e-4) and found.kept[0].all()
    assert np.allclose(found.explained, naive_components(x.numpy())[1], atol=1e-5) and found.explained.tolist() == sorted(found.explained.tolist(), reverse=True)
    assert found.rgb[0].min(0).values.tolist() == [0, 0, 0] and found.rgb[0].max(0).values.tolist() == pytest.approx([1, 1, 1])


def test_colours_of_a_models_patches_follow_its_grid(result):
    patches = result.trace.tokens[0, result.loaded.config.prefix:]
    found = features.colours([patches], [result.grid])
    assert found.rgb[0].shape == (result.grid[0] * result.grid[1], 3) and np.allclose(found.rgb[0], naive_colours(patches.numpy()), atol=1e-3)


def test_two_pictures_are_coloured_together_so_that_like_patches_have_like_colours():
    one, two = scattered(24, seed=1), scattered(15, seed=2)
    two[7] = one[3]
    found = features.colours([one, two], [(4, 6), (3, 5)])
    together = naive_colours(torch.cat((one, two)).numpy())
    assert np.allclose(found.rgb[0], together[:24], atol=1e-4) and np.allclose(found.rgb[1], together[24:], atol=1e-4)
    assert torch.allclose(found.rgb[0][3], found.rgb[1][7])
    assert not torch.allclose(features.colours([two], [(3, 5)]).rgb[0], found.rgb[1], atol=0.01)


def object_in_the_middle(rows: int = 5, cols: int = 7, sign: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Patches whose strongest direction tells the inner ones from the edge; and which are the inner ones."""
    x, inside = 0.1 * random(rows * cols, 10, seed=3), torch.zeros(rows, cols, dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    x[:, 4] += sign * 20 * inside.flatten()
    return x, inside.flatten()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_foreground_is_the_side_of_the_first_component_with_less_of_the_edge_whatever_its_sign(sign):
    x, inside = object_in_the_middle(sign=sign)
    front, back = (features.colours([x], [(5, 7)], part) for part in ("foreground", "background"))
    assert torch.equal(front.kept[0], inside) and torch.equal(back.kept[0], ~inside)
    for found in (front, back):
        kept = found.kept[0]
        assert np.allclose(found.rgb[0][kept], naive_colours(x[kept].numpy()), atol=1e-4) and (found.rgb[0][~kept] == 0).all()
        assert np.allclose(found.explained, naive_components(x[kept].numpy())[1], atol=1e-5)


def test_foreground_of_two_pictures_is_cut_at_one_place():
    one, inside = object_in_the_middle()
    two = one[:20].clone()                                                  # 4 x 5: the object is a mere third of both
    found = features.colours([one, two], [(5, 7), (4, 5)], "foreground")
    assert torch.equal(found.kept[0], inside) and torch.equal(found.kept[1], inside[:20])


def test_the_same_patches_have_the_same_colours_every_time_and_turning_them_around_flips_nothing_else():
    x = scattered()
    one, two = (features.colours([x], [(4, 6)]) for _ in range(2))
    assert torch.equal(one.rgb[0], two.rgb[0])
    order = torch.randperm(24, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(features.colours([x[order]], [(4, 6)]).rgb[0], one.rgb[0][order], atol=1e-4)
    mirrored = features.colours([-x], [(4, 6)]).rgb[0]                       # the directions are as they were, so every score turns around
    assert torch.allclose(mirrored, 1 - one.rgb[0], atol=1e-4)


@pytest.mark.parametrize("part", features.PARTS)
@pytest.mark.parametrize("grid", [(1, 1), (1, 2), (2, 1), (1, 5), (2, 2), (3, 3)])
def test_few_patches_have_few_components_and_no_numbers_that_are_none(grid, part):
    n = grid[0] * grid[1]
    found = features.colours([scattered(n)], [grid], part)
    count, looked = min(3, n - 1), found.kept[0]
    assert found.rgb[0].isfinite().all() and found.explained.isfinite().all() and 0 <= found.explained.sum() <= 1 + 1e-6
    if part == "all":
        assert (found.explained > 0).tolist() == [i < count for i in range(3)] and (found.rgb[0][:, count:] == 0.5).all()
        assert not 2 <= n <= 4 or found.explained.sum() == pytest.approx(1)                                         # all there is
    assert (found.rgb[0][~looked] == 0).all()


@pytest.mark.parametrize("shift", [0.0, 1e-6])
def test_patches_that_are_all_alike_are_grey_even_where_rounding_tells_them_apart(shift):
    x = 3 + shift * random(12, 10)
    found = features.colours([x], [(3, 4)])
    assert (found.rgb[0] == 0.5).all() and found.explained.tolist() == [0, 0, 0] and found.kept[0].all()
    assert not features.colours([x], [(3, 4)], "foreground").kept[0].any() and features.colours([x], [(3, 4)], "background").kept[0].all()


def test_a_flat_picture_through_a_model_without_positions_is_grey_and_alike_and_equally_long():
    flat = explain(Image.new("RGB", (40, 24), (90, 120, 30)), seeded(positions="none"))
    patches = flat.trace.tokens[0, 1:]
    found = features.colours([patches], [flat.grid])
    lengths = features.norms(flat.loaded.model, flat.embedded())
    assert (found.rgb[0] == 0.5).all() and features.similarity(patches[4], patches).min() > 0.9999
    assert torch.allclose(lengths[:, 1:], lengths[:, 1:2].expand(-1, 15), rtol=1e-4) and not (lengths > features.limits(lengths, 1)[:, None])[:, 1:].any()


def test_a_part_or_a_grid_that_is_none_is_refused():
    with pytest.raises(ValueError, match="all, foreground, background"):
        features.colours([scattered()], [(4, 6)], "front")
    with pytest.raises(ValueError, match="24 patches are not a grid of 5 x 5"):
        features.colours([scattered()], [(5, 5)])


# Norms.

@torch.inference_mode()
def test_norms_are_the_lengths_after_every_block_before_the_last_norm(result):
    model, z = result.loaded.model, result.embedded()
    found = features.norms(model, z)
    assert found.shape == (3, result.tokens)
    for layer, block in enumerate(model.blocks):
        z = z + block.ls1(block.attn(block.norm1(z))[0])
        z = z + block.ls2(block.mlp(block.norm2(z)))
        assert np.allclose(found[layer], np.sqrt((z[0].double().numpy() ** 2).sum(1)), rtol=1e-5)
    assert torch.allclose(model.norm(z), result.trace.tokens, atol=1e-5)


def test_an_artifact_is_a_patch_three_times_as_long_as_the_median_patch_of_its_layer():
    lengths = torch.tensor([[900., 10., 10., 11., 12., 31., 33.1], [5., 1., 1., 1., 1., 1., 1.]])
    assert features.limits(lengths, prefix=1).tolist() == pytest.approx([33, 3])          # a prefix token does not count
    assert (lengths[:, 1:] > features.limits(lengths, 1)[:, None]).sum(1).tolist() == [1, 0]


# Whose features may be compared.

def test_models_may_be_compared_that_differ_in_their_heads_and_positions_only():
    loaded = seeded()
    other = seeded(classes=0).model
    other.load_state_dict({name: tensor for name, tensor in loaded.model.state_dict().items() if not name.startswith("head")})
    other.pos_embed.data += 1
    assert features.same_encoder(loaded.model, loaded.model) and features.same_encoder(loaded.model, other) and features.same_encoder(other, loaded.model)
    assert features.same_encoder(loaded.model, without_positions(loaded).model)
    larger = seeded(image=(24, 8)).model
    larger.load_state_dict({**larger.state_dict(), **{name: tensor for name, tensor in loaded.model.state_dict().items() if name != "pos_embed"}})
    assert features.same_encoder(loaded.model, larger)


@pytest.mark.parametrize("changes", [{"heads": 5}, {"dim": 20}, {"depth": 2}, {"registers": 1}, {"mlp_dim": 20}, {"patch": (2, 2)}, {"layer_scale": True}], ids=str)
def test_models_of_another_shape_may_not_be_compared(changes):
    loaded, other = seeded(), seeded(**changes).model
    if "heads" in changes:                                                  # which no tensor shows
        other.load_state_dict(loaded.model.state_dict())
    assert not features.same_encoder(loaded.model, other) and not features.same_encoder(other, loaded.model)


@pytest.mark.parametrize("name", ["patch_embed.proj.bias", "cls_token", "blocks.2.mlp.fc2.weight", "norm.bias"])
def test_one_weight_of_the_encoder_makes_another_model(name):
    one, two = seeded().model, seeded().model
    assert features.same_encoder(one, two)
    with torch.no_grad():
        two.get_parameter(name).view(-1)[0] += 1e-3
    assert not features.same_encoder(one, two)


def test_a_trained_and_an_untrained_model_may_not_be_compared(tiny):
    result = explain(coloured("red", 1), tiny)
    assert not features.same_encoder(tiny.model, result.twin().loaded.model)

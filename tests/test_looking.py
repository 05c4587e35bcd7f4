"""Other sizes, squashed and whole pictures: what may be chosen, that the weights are the same, and that all that follows holds on any grid."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import seeded, tiny_config
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vitdemo import answers, faithfulness, features, figures, surgery, takehome
from vitdemo.checkpoint import Loaded
from vitdemo.config import Preprocessing
from vitdemo.explain import Explanation, explain
from vitdemo.geometry import Geometry, whole_size
from vitdemo.looking import MOST_TOKENS, LookError, at, sides
from vitdemo.model import ViT, resize_positions
from vitdemo.payload import payload
from vitdemo.report import canonical, report
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results

LAST = {"kind": "attention", "direction": "reads", "token": None, "layer": 2, "head": "mean", "up_to": 3, "fusion": "mean", "discard": 0.0, "klass": 1}


def test_a_model_whose_attention_would_fill_the_memory_is_refused_before_it_is_formed(monkeypatch):
    loaded = seeded(image=(1024, 1024), patch=(4, 4), positions="none", pool="mean", class_token=False, dim=8, heads=1, depth=1)
    for look in (lambda: at(loaded), lambda: explain(Image.new("RGB", (30, 30)), loaded)):
        with pytest.raises(LookError, match="65,536 tokens: the attention of its 1 heads between them would fill the memory"):
            look()
    assert at(replace(loaded, preprocessing=loaded.preprocessing.with_(size=(256, 256)))).preprocessing.size == (256, 256)


MODELS = {
    "class token": {}, "registers": {"registers": 2, "prefix_positions": 1}, "distilled": {"distilled": True}, "average": {"pool": "mean", "class_token": False},
    "average beside a class token": {"pool": "mean", "registers": 1}, "class token and average": {"head": "both"}, "no head": {"classes": 0},
    "sinusoidal": {"positions": "sinusoidal"}, "no positions": {"positions": "none"}, "uneven patches": {"patch": (4, 2), "image": (12, 10)},
}
WAYS = {"larger": {"size": (16, 28)}, "squash": {"size": (28, 16), "fit": "squash"}, "whole": {"fit": "whole"}}             # of a model of 3 x 5 patches
PAIRS = [*((model, list(WAYS)[i % 3]) for i, model in enumerate(MODELS)), ("class token", "whole"), ("registers", "whole")]
THIN = [(1, 1), (2, 3), (200, 1), (1, 200), (600, 3), (3, 600)]             # (width, height)


def looking(image: tuple[int, int], patch: tuple[int, int], **changes) -> Loaded:
    """An untrained model that looks at pictures of `image` pixels."""
    model = ViT(tiny_config(image=image, patch=patch, depth=1, **changes)).eval()
    return Loaded(model, ("a", "b", "c"), Preprocessing(size=image), {}, "looking")


def made(model: str, way: str) -> Loaded:
    loaded = seeded(**MODELS[model])
    return replace(loaded, preprocessing=loaded.preprocessing.with_(**WAYS[way]))


def busy(size: tuple[int, int] = (120, 40)) -> Image.Image:
    """A picture of (width, height) pixels that shows something everywhere."""
    return Image.fromarray(np.random.default_rng(7).integers(0, 256, (*size[::-1], 3)).astype(np.uint8))


@pytest.fixture(scope="module", params=PAIRS, ids=" ".join)
def result(request) -> Explanation:
    """Explained on a grid that is no square and not the model's own, of a picture three times as wide as high."""
    found = explain(busy(), made(*request.param))
    assert found.grid != found.loaded.config.grid and found.grid[0] != found.grid[1]
    return found


class Page:
    """A visitor with one result, who asks until an answer is whole."""

    def __init__(self, explanation: Explanation):
        results = Results()
        self.questions = Questions(results, seeded())
        self.key = results.keep(explanation)
        self.asked: set[str] = set()

    def ask(self, question: str, **fields) -> dict:
        self.asked.add(question)
        while True:
            answer = self.questions.ask({"question": question, "key": self.key, **fields})
            json.dumps(answer, allow_nan=False)
            if "done" not in answer or answer["done"] == answer["total"]:
                return answer


@pytest.mark.parametrize(("image", "patch", "expected"), [
    (224, 16, (224, 384, 512)), (224, 14, (224, 378, 518)), (224, 32, (224, 384, 512)), (518, 14, (518, 224, 378)), (384, 16, (384, 224, 512)),
    (224, 8, (224, 384)), (240, (12, 8), (240, 216, 384)), (32, 4, (32, 48, 64)), (28, 7, (28, 42, 56)), (28, 4, (28, 40, 56)), (12, 12, (12, 24)),
    (96, 8, (96, 144, 192)), (160, 80, (160, 240, 400, 480)), (256, 4, (256,)), (160, 1, (160,)), ((12, 20), 4, ()),
])
def test_a_models_own_side_comes_first_then_others_in_order_that_its_patch_divides(image, patch, expected):
    square = (image, image) if isinstance(image, int) else image
    loaded = looking(square, (patch, patch) if isinstance(patch, int) else patch)
    assert sides(loaded) == expected
    for side in expected[1:]:
        config = loaded.config.with_(image=side)                            # a side that no patch divides raises
        assert config.tokens <= MOST_TOKENS


def test_tokens_before_the_patches_count_too():
    assert sides(looking((224, 224), (8, 8), registers=195)) == (224, 384) and sides(looking((224, 224), (8, 8), registers=196)) == (224,)


@pytest.mark.parametrize("side", [32, 48, 64])
def test_another_side_is_the_same_weights_with_positions_for_that_grid(side):
    loaded = looking((32, 32), (4, 4), registers=1)
    torch.nn.init.normal_(loaded.model.pos_embed, generator=torch.Generator().manual_seed(1))
    chosen = at(loaded, side)
    assert chosen.model is loaded.model and chosen.preprocessing == loaded.preprocessing.with_(size=(side, side))
    assert (chosen is loaded) == (side == 32) and at(loaded) is loaded and loaded.preprocessing.size == (32, 32)
    result = explain(busy(), loaded, side=side)
    assert result.grid == (side // 4, side // 4) and result.seen.size == (side, side) and result.tokens == 2 + (side // 4) ** 2
    larger = ViT(loaded.config.with_(image=side)).eval()
    weights = dict(loaded.model.state_dict())
    weights["pos_embed"] = resize_positions(weights["pos_embed"], (8, 8), result.grid)
    larger.load_state_dict(weights)
    with torch.inference_mode():
        assert torch.allclose(larger(result.tensor), result.trace.logits, atol=1e-6)


@pytest.mark.parametrize("side", [0, -32, 31, 40, 96, 10**9, "32", 48.5, (32, 32), True])
def test_a_side_that_is_not_offered_is_refused_with_those_that_are(side):
    with pytest.raises(LookError, match=r"^this model can look at squares of 32, 48, 64 pixels, not at squares of "):
        at(looking((32, 32), (4, 4)), side)
    with pytest.raises(ValueError, match=r"^this model can look at pictures of 12 x 20 pixels only, not at squares of "):
        explain(busy(), seeded(), side=side)


def test_the_whole_picture_is_seen_in_its_shape_with_no_more_patches_than_the_side_has():
    loaded = looking((32, 32), (4, 4))
    for side, grid in ((None, (4, 12)), (64, (9, 27))):
        result = explain(busy((120, 40)), loaded, side=side, fit="whole")
        assert result.grid == grid and grid[0] * grid[1] <= ((side or 32) // 4) ** 2
        assert result.geometry.crop == (0, 0, 40, 120) and result.seen.size == (4 * grid[1], 4 * grid[0]) and result.loaded.model is loaded.model
    assert explain(busy((120, 40)), loaded).geometry.crop == (0, 40, 40, 80) and explain(busy((40, 40)), loaded, fit="whole").grid == (8, 8)


@settings(max_examples=200, deadline=None)
@given(picture=st.tuples(st.integers(1, 5000), st.integers(1, 5000)), grid=st.tuples(st.integers(1, 40), st.integers(1, 40)),
       patch=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_an_input_for_the_whole_picture_never_has_more_patches_nor_none_and_is_bent_little(picture, grid, patch):
    size = grid[0] * patch[0], grid[1] * patch[1]
    tall, wide = whole_size(picture, size, patch)
    rows, cols = tall // patch[0], wide // patch[1]
    assert tall % patch[0] == wide % patch[1] == 0 and rows >= 1 and cols >= 1 and rows * cols <= grid[0] * grid[1]
    shape = (picture[0] / patch[0]) / (picture[1] / patch[1])
    ideal = np.sqrt(grid[0] * grid[1] * np.array([shape, 1 / shape]))       # rows and columns, if they could be broken
    if ideal.min() >= 4:                                                    # then it is bent by less than one row or column more would bend it
        assert abs(np.log(tall / wide / (picture[0] / picture[1]))) < np.log(1 + 1 / ideal.min()) and rows * cols > 0.6 * grid[0] * grid[1]


@pytest.mark.parametrize(("picture", "grid"), [((300, 300), (14, 14)), ((200, 300), (11, 17)), ((300, 400), (12, 16)), ((100, 300), (8, 24)), ((1, 200), (1, 196)),
                                               ((200, 1), (196, 1)), ((1, 1), (14, 14)), ((1080, 1920), (10, 18))])
def test_common_shapes_at_224_pixels(picture, grid):
    assert whole_size(picture, (224, 224), (16, 16)) == (16 * grid[0], 16 * grid[1])
    assert whole_size(picture[::-1], (224, 224), (16, 16)) == (16 * grid[1], 16 * grid[0])


def drawn_to_one_cell() -> Loaded:
    """A model of 3 x 5 patches whose class token reads nothing but the reddest patch, in both heads."""
    model = ViT(tiny_config(depth=1)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.patch_embed.proj.weight[0, 0] = 1 / 16                        # the first number of a token is its mean red,
        model.patch_embed.proj.bias[1] = 3                                  # small beside the second, so that the norm keeps it
        model.blocks[0].norm1.weight.fill_(1)
        model.blocks[0].attn.qkv.bias[[0, 5]] = 100                         # the queries of either head
        model.blocks[0].attn.qkv.weight[[10, 15], 0] = 100                  # and the keys
    return Loaded(model, ("a", "b", "c"), Preprocessing(size=(12, 20)), {}, "drawn")


@pytest.mark.parametrize(("row", "col"), [(0, 0), (1, 4), (0, 5), (1, 0)])
def test_the_overlays_brightest_square_lies_on_the_original_where_all_attention_went(row, col):
    picture = Image.new("RGB", (300, 100), (60, 60, 60))
    top, left = 50 * row, 50 * col                                          # the whole picture is cut into 2 x 6 squares
    picture.paste((250, 60, 60), (left, top, left + 50, top + 50))
    result = explain(picture, drawn_to_one_cell(), fit="whole")
    assert result.grid == (2, 6) and (result.attention[0, :, row, col] > 0.999).all()
    assert result.geometry.patch_rectangle(row, col) == (top, left, top + 50, left + 50)
    laid = np.asarray(figures.overlay(picture, result.geometry, result.attention[0, 1], high=1.0, opacity=1.0, least=300)).astype(int)
    bright = np.argwhere(laid.sum(-1) > laid.sum(-1).max() - 20)
    assert laid.shape == (100, 300, 3) and bright.min(0).tolist() == [top, left] and bright.max(0).tolist() == [top + 49, left + 49]
    assert len(bright) == 50 * 50
    value = payload(result)
    assert value["crop"] == [0, 0, 100, 300] and (value["rows"], value["cols"], value["seen_size"]) == (2, 6, [8, 24])
    assert np.asarray(result.seen).reshape(2, 4, 6, 4, 3)[..., 0].mean((1, 3)).argmax() == 6 * row + col


def test_what_a_crop_cuts_away_is_seen_in_a_squashed_and_in_a_whole_picture():
    picture = Image.new("RGB", (300, 100), (60, 60, 60))
    picture.paste((250, 60, 60), (250, 0, 300, 50))
    loaded = drawn_to_one_cell()
    squashed = explain(picture, replace(loaded, preprocessing=loaded.preprocessing.with_(fit="squash")))
    assert squashed.grid == (3, 5) and squashed.geometry.crop == (0, 0, 100, 300) and squashed.attention[0, 0].argmax() == 4
    assert np.ptp(np.asarray(explain(picture, loaded).seen)) == 0 < np.ptp(np.asarray(squashed.seen))
    assert explain(picture, loaded, fit="whole").attention[0, 0].argmax() == 5


def test_maps_facts_and_relatives_have_the_pictures_grid_and_agree_with_each_other(result):
    rows, cols = result.grid
    config, geometry = result.loaded.config, result.geometry
    assert geometry.grid == (rows, cols) and result.tokens == config.prefix + rows * cols and result.attention.shape == (3, 2, rows, cols)
    assert np.allclose(result.attention.sum((2, 3)) + result.prefix_attention.sum(2), 1, atol=1e-5)
    assert np.array_equal(result.patches(result.reads()), result.attention) and result.uniform == 1 / result.tokens
    for vector in (result.rollout(), result.rollout(1, fusion="max", discard=0.5), result.read_by(result.tokens - 1)[0, 0]):
        assert vector.shape == (result.tokens,) and result.patches(vector).shape == (rows, cols)
    patches, tall, wide = rows * cols, *config.patch
    far = np.hypot(*[side * (at[:, None] - at) for side, at in zip((tall, wide), np.divmod(np.arange(patches), cols), strict=True)])
    q, k = (side[1][0].double().numpy()[:, config.prefix:] for side in (result.trace.queries, result.trace.keys))
    scores = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(config.head_dim))
    read = scores / scores.sum(2, keepdims=True)                            # (heads, N, N) of the second layer, over patches alone
    assert np.allclose(result.facts().distance[0, 1], (read * far).sum(2).mean(1), atol=1e-3)
    twin = result.twin()
    assert twin.grid == (rows, cols) and twin.geometry == geometry and twin.tensor is result.tensor


def test_every_question_is_answered_on_the_pictures_grid(result):
    page, (rows, cols), config = Page(result), result.grid, result.loaded.config
    tokens, N = result.tokens, rows * cols
    answer = page.ask("token", token=tokens - 1)
    assert answer["reads"]["shape"] == answer["read_by"]["shape"] == [3, 2, tokens] and answer == answers.token(result, tokens - 1)
    assert page.ask("rollout")["map"]["shape"] == [1, 1, tokens] and page.ask("rollout") == answers.rollout(result)
    assert page.ask("facts") == answers.facts(result) and page.ask("similarity") == answers.similarity(result)
    assert all(page.ask("colours", part=part) == answers.colours(result, part) for part in features.PARTS)
    assert len(page.ask("colours")["pictures"][0]["rgba"]) == 4 * -(-4 * N // 3)
    assert page.ask("norms")["lengths"]["shape"] == [3, 1, tokens]
    positions = page.ask("embedding")["positions"]                          # those are the model's, whatever it looks at
    assert positions is None if config.positions == "none" else (positions["rows"], positions["cols"]) == config.grid
    for question in ("twin", "box"):
        other = page.ask(question)
        assert other["reads"]["shape"] == ([3, 2, tokens] if question == "twin" else [3, 2, 16])
    order = np.random.default_rng(1).permutation(N).tolist()
    operated = page.ask("surgery", masked=[0, N - 1], order=order)
    done = surgery.Surgery(N, (0, N - 1), tuple(order))
    assert (operated["rows"], operated["cols"]) == (rows, cols) and operated["difference"] == pytest.approx(surgery.difference(result.loaded, result.tensor, done)[0], abs=1e-5)
    assert page.ask("surgery", order=order, positions=False)["difference"] < 1e-3
    by_class = [page.ask("relevance", klass=1), page.ask("occlusion", klass=1), page.ask("rank", klass=1),
                *(page.ask("test", view=LAST, klass=1, how=how, insertion=insertion) for how in faithfulness.HIDING for insertion in (False, True))]
    if not config.classes:
        assert all("no classes" in answer["error"] for answer in by_class)
    else:
        assert by_class[0] == answers.relevance(result, 1) and by_class[1]["map"] == answers.occlusion(result, 1)["map"]
        assert len(by_class[2]["rows"]) == 5 and all(sorted(answer["order"]) == list(range(N)) for answer in by_class[3:])
        best = int(result.attention[-1].mean(0).argmax())
        assert all(answer["order"][0] == best for answer in by_class[3:])
    assert page.ask("take", kind="npz", view=LAST)["name"].endswith("-maps.npz")
    assert page.ask("picture")["picture"].startswith("data:image/jpeg")
    assert page.asked == {*page.questions._short, *page.questions._long, *page.questions._in_slices}


@pytest.mark.parametrize("result", [("class token", "larger"), ("registers", "whole"), ("no head", "squash"), ("uneven patches", "whole")], indirect=True, ids=" ".join)
def test_everything_can_be_taken_home_from_any_grid(result):
    for kind in takehome.KINDS:
        view = {**LAST, "token": result.tokens - 1}
        data = takehome.take(result, kind, view).data
        assert data.startswith({"png": b"\x89PNG", "sheet": b"\x89PNG", "svg": b"<?xml", "npz": b"PK", "report": b"<!doctype"}[kind])
    rows, cols = result.grid
    page = report(result)
    assert f"{cols} × {rows} patches, {result.tokens} tokens" in page and canonical("picture", "token", token=result.tokens - 1).replace('"', '\\"') in page
    assert f"row {rows}, column {cols}" in takehome.view_title(result, view)
    assert figures.patch_grid(result.picture, result.geometry).size[0] >= 640
    figures.layer_heads(result.picture, result.geometry, result.attention[0], title="layer", uniform=result.uniform).savefig(io.BytesIO())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", THIN)
def test_thin_and_tiny_pictures_are_bounded(way, size):
    result = explain(busy(size), made("class token", way))
    rows, cols = result.grid
    assert rows * cols <= 28 and result.attention.shape[2:] == (rows, cols) and np.isfinite(result.attention).all()
    top, left, bottom, right = result.geometry.crop
    assert 0 <= top < bottom <= size[1] and 0 <= left < right <= size[0]
    value = payload(result)
    assert len(json.dumps(value, allow_nan=False)) < 100_000 and value["height"] >= 1 and value["width"] >= 1
    page = Page(result)
    assert page.ask("surgery", masked=[0])["rows"] == rows and page.ask("occlusion", klass=0)["map"]["shape"] == [1, 1, result.tokens]
    for kind in ("png", "sheet") if way == "whole" else ():                 # of the others only the surroundings of a crop are drawn
        assert "data" in page.ask("take", kind=kind, view=LAST)


def test_a_picture_smaller_than_a_patch_fills_the_whole_grid():
    loaded = looking((224, 224), (16, 16))
    for size in ((1, 1), (5, 5)):
        result = explain(busy(size), loaded, fit="whole")
        assert result.grid == (14, 14) and result.geometry == Geometry(size, (0, 0, *size), (224, 224), (16, 16))

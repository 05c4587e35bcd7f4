"""What travels to the browser: small, plain JSON, and no further from the numbers than it says."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import seeded
from PIL import Image

from vitdemo import checkpoint
from vitdemo.explain import explain
from vitdemo.payload import LENS_CLASSES, LONGEST_SIDE, data_url, in_view, lens, pack, payload, prefix_names


STEPS = 65535                                   # of a packed weight


def unpacked(packed: dict) -> np.ndarray:
    """What the browser makes of it: see unpack in the viewer's first part."""
    layers, heads, tokens = packed["shape"]
    shares = np.frombuffer(base64.b64decode(packed["data"]), "<u2").astype(np.float64).reshape(layers * heads, tokens)
    return (shares / STEPS * np.array(packed["highs"])[:, None]).reshape(layers, heads, tokens)


def image_of(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1])))


def test_packing_and_unpacking_is_off_by_at_most_half_a_step_of_the_heads_largest_weight():
    weights = np.random.default_rng(0).dirichlet(np.full(37, 0.1), size=(3, 5)).astype(np.float32)
    weights *= 10.0 ** np.arange(-6, 9).reshape(3, 5, 1).clip(-6, 0)                        # some heads are a million times fainter
    back = unpacked(json.loads(json.dumps(pack(weights))))
    assert back.shape == weights.shape
    assert (np.abs(back - weights) <= weights.max(2, keepdims=True) * (0.5 / STEPS + 1e-6)).all()
    assert np.array_equal(back.argmax(2), weights.argmax(2)) and np.allclose(back.max(2), weights.max(2), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.0625])
def test_an_even_head_stays_even_and_a_head_of_zeros_stays_zero(value):
    assert np.array_equal(unpacked(pack(np.full((2, 3, 16), value, np.float32))), np.full((2, 3, 16), value))


def test_eight_bits_are_enough_where_asked_for():
    weights = np.random.default_rng(1).dirichlet(np.ones(11), size=(2, 3)).astype(np.float32)
    packed = pack(weights, "u1")
    shares = np.frombuffer(base64.b64decode(packed["data"]), "u1").reshape(packed["shape"])
    assert (shares.max(2) == 255).all() and np.abs(shares / 255 * weights.max(2, keepdims=True) - weights).max() <= weights.max() * 0.5 / 255 + 1e-6


def test_layers_and_heads_are_not_confused_on_the_way():
    weights = np.zeros((2, 3, 4), np.float32)
    weights[1, 2, 3], weights[0, 1, 2] = 0.5, 0.25
    assert np.array_equal(unpacked(pack(weights)), weights)


def test_the_payload_holds_what_the_explanation_says(tiny, photo):
    result = explain(photo, tiny)
    value = payload(result, key="k1", about="tiny one", truth="red")
    assert (value["layers"], value["heads"], value["rows"], value["cols"]) == (3, 2, 3, 5)
    assert np.abs(unpacked(value["reads"]) - result.reads()).max() < 1e-5
    assert value["top"] == result.top() and value["knows"] == list(tiny.classes) and value["known"] == 3 and value["uniform"] == 1 / 16
    assert (value["key"], value["about"], value["truth"], value["model"], value["reader"]) == ("k1", "tiny one", "red", "tiny", "the class token")
    assert value["prefix_names"] == ["class token"] and value["pool"] == "cls" and value["patch"] == [4, 4] and value["seen_size"] == [12, 20]
    assert np.array_equal(np.asarray(image_of(value["seen"])), np.asarray(result.seen))
    assert image_of(value["picture"]).size == (value["width"], value["height"]) == (300, 200)
    assert np.allclose(value["crop"], result.geometry.crop)


@pytest.mark.parametrize("which", ["tiny", "box"])
def test_the_payload_is_plain_json_of_less_than_100_kilobytes(which, tiny, photo):
    noise = np.random.default_rng(0).integers(0, 255, (300, 450, 3)).astype(np.uint8)
    smooth = Image.fromarray(noise).resize((60, 40)).resize((1200, 800), Image.Resampling.BICUBIC)       # as busy as photos are
    for picture in (photo, smooth):
        text = json.dumps(payload(explain(picture, tiny if which == "tiny" else checkpoint.load())), allow_nan=False)
        assert len(text) < 100_000


def test_of_a_large_input_travels_what_the_eye_can_see_and_of_a_small_one_every_pixel():
    cat = Path(__file__).resolve().parent.parent / "vitdemo" / "ui" / "examples" / "cat.jpg"
    for side, kind in ((96, "PNG"), (100, "JPEG"), (320, "JPEG")):
        result = explain(cat, seeded(image=side, patch=20 if side > 96 else 12, depth=1))
        value = payload(result)
        sent = image_of(value["seen"])
        assert (sent.format, sent.size, value["seen_size"]) == (kind, (side, side), [side, side])
        apart = np.abs(np.asarray(sent).astype(int) - np.asarray(result.seen))
        assert apart.mean() < (4 if kind == "JPEG" else 1e-9) and len(json.dumps(value)) < 200_000


@pytest.mark.parametrize(("changes", "names"), [
    ({}, ["class token"]), ({"registers": 2}, ["class token", "register 1", "register 2"]), ({"distilled": True}, ["class token", "distillation token"]),
    ({"pool": "mean", "class_token": False}, []), ({"pool": "mean", "class_token": False, "registers": 1}, ["register 1"])])
def test_tokens_before_the_patches_are_named_in_the_models_own_order(changes, names, photo):
    loaded = seeded(**changes)
    assert prefix_names(loaded.config) == names
    value = payload(explain(photo, loaded))
    assert value["prefix_names"] == names and value["reads"]["shape"] == [3, 2, len(names) + 15]


def test_a_model_without_a_head_travels_without_classes(photo):
    value = payload(explain(photo, seeded(classes=0)))
    assert value["top"] == value["leading"] == value["knows"] == [] and value["known"] == 0 and value["lens"] == {"names": [], "shares": []}
    json.dumps(value, allow_nan=False)


def test_the_lens_shows_the_classes_that_lead_at_the_end_and_on_the_way(tiny, photo):
    result = explain(photo, tiny)
    found = lens(result)
    assert sorted(found["names"]) == sorted(tiny.classes) and found["names"][0] == result.top()[0][0]
    chosen = [tiny.classes.index(name) for name in found["names"]]
    assert np.allclose(found["shares"], result.lens[:, chosen], atol=1e-5) and np.allclose(found["shares"][-1], result.probabilities[chosen], atol=1e-5)


def test_the_lens_prefers_the_end_then_the_later_layers_and_names_few(photo):
    loaded = seeded(depth=12, classes=40)
    names = tuple(f"class {i}" for i in range(40))
    result = explain(photo, checkpoint.Loaded(loaded.model, names, loaded.preprocessing, {}, "many"))
    leaders = np.roll(np.arange(12), 3)
    rows = np.full((12, 40), 0.001, np.float32)
    rows[np.arange(12), 20 + leaders] = 0.9
    object.__setattr__(result, "lens", rows)
    object.__setattr__(result, "probabilities", np.linspace(0, 0.04, 40, dtype=np.float32))
    found = lens(result)
    assert found["names"] == ["class 39", "class 38", "class 37", *(f"class {20 + leaders[layer]}" for layer in (11, 10, 9))]
    assert len(found["names"]) == LENS_CLASSES and np.shape(found["shares"]) == (12, LENS_CLASSES)


@pytest.mark.parametrize("size", [(30, 20), (300, 200), (3000, 2000), (2000, 100), (100, 2000), (1, 1), (1900, 10)])
def test_the_crop_lies_on_the_picture_that_travels_as_on_the_original(size, tiny):
    x, y = np.meshgrid(np.linspace(0, 255, size[0]), np.linspace(0, 255, size[1]))
    result = explain(Image.fromarray(np.stack((x, y, 0 * x), 2).astype(np.uint8)), tiny)
    shown, crop = in_view(result.picture, result.geometry)
    assert max(shown.size) <= LONGEST_SIDE and min(shown.size) >= 1
    top, left, bottom, right = crop
    assert -1e-6 <= top < bottom <= shown.height + 1e-6 and -1e-6 <= left < right <= shown.width + 1e-6
    assert (bottom - top) / (right - left) == pytest.approx(12 / 20, rel=0.1)
    whole = result.geometry.crop
    if min(size) >= 20:                                                     # the colours say where on the original a point was
        at = np.asarray(shown)[min(round((top + bottom) / 2), shown.height - 1), min(round((left + right) / 2), shown.width - 1)]
        assert at[0] == pytest.approx(255 * (whole[1] + whole[3]) / 2 / size[0], abs=8) and at[1] == pytest.approx(255 * (whole[0] + whole[2]) / 2 / size[1], abs=8)


def test_of_a_very_long_picture_only_the_surroundings_of_the_crop_travel(tiny):
    result = explain(Image.new("RGB", (4000, 120)), tiny)
    shown, crop = in_view(result.picture, result.geometry)
    assert shown.size == (400, 120) and np.allclose(crop, (0, 100, 120, 300))


def test_names_travel_as_they_are_and_at_most_a_thousand(photo):
    loaded = seeded(classes=1200)
    names = tuple(f"<b>{i}</b>" for i in range(1200))
    value = payload(explain(photo, checkpoint.Loaded(loaded.model, names, loaded.preprocessing, {}, "many")))
    assert value["known"] == 1200 and value["knows"] == list(names[:1000])


def test_a_data_url_is_the_picture_itself():
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    assert data_url(image, "PNG").startswith("data:image/png;base64,") and np.array_equal(np.asarray(image_of(data_url(image, "PNG"))), np.asarray(image))
    assert data_url(image, "JPEG").startswith("data:image/jpeg;base64,")

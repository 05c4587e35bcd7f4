"""Pictures explained without a page: the maps, the figures, and the command."""

import numpy as np
import pytest
import torch
from matplotlib import colormaps
from PIL import Image

from vitdemo import checkpoint, figures
from vitdemo import explain as explain_module
from vitdemo.attention import weights
from vitdemo.explain import explain
from vitdemo.geometry import Geometry
from vitdemo.images import PictureError, to_input


def test_maps_have_the_grids_shape_and_each_head_sums_to_one_with_its_prefix(tiny, photo):
    result = explain(photo, tiny)
    assert result.attention.shape == (3, 2, 3, 5) and result.prefix_attention.shape == (3, 2, 1) and result.grid == (3, 5)
    assert np.allclose(result.attention.sum((2, 3)) + result.prefix_attention.sum(2), 1, atol=1e-6)
    assert result.probabilities.sum() == pytest.approx(1, abs=1e-6) and result.uniform == 1 / 16
    assert result.picture.size == (300, 200) and result.seen.size == (20, 12)


def test_the_maps_are_the_class_tokens_rows_of_the_models_own_attention(tiny, photo):
    result = explain(photo, tiny)
    trace = tiny.model.trace(to_input(Image.open(photo), tiny.preprocessing, tiny.config.patch).tensor)
    for layer in range(3):
        whole = weights(trace.queries[layer], trace.keys[layer])[0, :, 0]
        assert np.allclose(result.attention[layer].reshape(2, 15), whole[:, 1:].detach().numpy(), atol=1e-6)
    assert np.allclose(result.probabilities, trace.logits.softmax(-1)[0].detach().numpy(), atol=1e-6)


def test_top_is_in_order_and_never_longer_than_the_classes(tiny, photo):
    top = explain(photo, tiny).top(9)
    assert len(top) == 3 and [p for _, p in top] == sorted((p for _, p in top), reverse=True)
    assert dict(top) == pytest.approx(dict(zip(tiny.classes, explain(photo, tiny).probabilities.tolist(), strict=True)))


def test_a_turned_photo_gives_the_maps_of_the_upright_one(tiny, photo, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.open(photo)
    image.save(tmp_path / "upright.png")
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    one, two = explain(tmp_path / "upright.png", tiny), explain(tmp_path / "turned.png", tiny)
    assert np.array_equal(one.attention, two.attention)


def test_a_flat_picture_has_no_nan_anywhere(tiny):
    for colour in ("black", "white"):
        result = explain(Image.new("RGB", (64, 64), colour), tiny)
        assert np.isfinite(result.attention).all() and np.isfinite(result.probabilities).all()


def test_a_model_without_a_head_has_maps_and_no_classes(photo, tiny):
    from vitdemo.model import ViT

    headless = checkpoint.Loaded(ViT(tiny.config.with_(classes=0)).eval(), (), tiny.preprocessing, {}, "headless")
    result = explain(photo, headless)
    assert result.top() == [] and result.attention.shape == (3, 2, 3, 5)


def test_without_a_model_the_one_in_the_box_answers_and_it_knows_the_ten_classes(photo):
    result = explain(photo)
    assert len(result.classes) == 10 and "airplane" in result.classes and result.attention.shape[2:] == (8, 8)


def test_the_overlays_brightest_square_is_where_all_attention_was_put():
    picture = Image.new("RGB", (320, 80), (60, 60, 60))
    geometry = Geometry((80, 320), (0, 80, 80, 240), (8, 16), (4, 4))        # a 2 x 4 grid on the middle half
    hot = np.zeros((2, 4))
    hot[1, 2] = 0.5
    drawn = np.asarray(figures.overlay(picture, geometry, hot, high=0.5, opacity=1.0, least=320)).astype(int)
    bright = np.array(colormaps["cividis"](255, bytes=True)[:3], dtype=int)
    where = (np.abs(drawn - bright).sum(-1) < 6).nonzero()
    assert (where[0].min(), where[0].max() + 1, where[1].min(), where[1].max() + 1) == (40, 80, 160, 200)
    assert len(where[0]) == 40 * 40
    outside = drawn[:, :80]
    assert outside.min() > 120 and np.ptp(outside.mean((0, 1))) < 2         # pale grey: not seen


def test_a_constant_map_is_one_even_colour_and_a_zero_map_has_no_nan():
    picture, geometry = Image.new("RGB", (64, 64), (60, 60, 60)), Geometry((64, 64), (0, 0, 64, 64), (8, 8), (4, 4))
    for value in (0.25, 0.0):
        drawn = figures.overlay(picture, geometry, np.full((2, 2), value), high=value, opacity=1.0)
        assert len(drawn.getcolors()) == 1


@pytest.mark.parametrize("size", [(1, 1), (3, 300), (500, 20)])
def test_figures_of_tiny_and_long_pictures_stay_bounded(tiny, size):
    result = explain(Image.new("RGB", size, (9, 99, 199)), tiny)
    assert max(figures.patch_grid(result.picture, result.geometry).size) <= 2000


def test_the_command_writes_figures_and_maps(tiny, photo, tmp_path, capsys):
    path = tmp_path / "m.safetensors"
    checkpoint.save(path, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance={})
    assert explain_module.main([str(photo), "--out", str(tmp_path / "out"), "--checkpoint", str(path)]) == 0
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["all-heads.png", "layer-01.png", "layer-02.png", "layer-03.png", "maps.npz", "model-sees.png", "patches.png"]
    with np.load(tmp_path / "out" / "maps.npz") as maps:
        assert maps["attention"].shape == (3, 2, 3, 5) and maps["classes"].tolist() == list(tiny.classes)
        assert np.allclose(maps["attention"], explain(photo, tiny).attention) and maps["probabilities"].shape == (3,)
    assert tiny.classes[0] in capsys.readouterr().out


@pytest.mark.parametrize("what", ["photo", "checkpoint"])
def test_the_command_refuses_in_one_sentence(what, photo, tmp_path, capsys):
    (tmp_path / "bad").write_bytes(b"nothing of use")
    arguments = [str(tmp_path / "bad")] if what == "photo" else [str(photo), "--checkpoint", str(tmp_path / "bad")]
    with pytest.raises(SystemExit) as end:
        explain_module.main([*arguments, "--out", str(tmp_path / "out")])
    assert end.value.code == 1 and len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_picture_that_is_none_raises_its_own_error(tiny):
    with pytest.raises(PictureError):
        explain(b"nothing", tiny)


def test_explaining_leaves_no_gradients_and_no_state_on_the_model(tiny, photo):
    before = {name: set(vars(module)) for name, module in tiny.model.named_modules()}
    explain(photo, tiny)
    assert before == {name: set(vars(module)) for name, module in tiny.model.named_modules()}
    assert all(p.grad is None for p in tiny.model.parameters()) and torch.is_grad_enabled()

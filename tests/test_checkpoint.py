"""Files of our own: there and back bit by bit, written whole or not at all, refused when their header lies."""

import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors import safe_open

from vitdemo import checkpoint
from vitdemo.checkpoint import CheckpointError, list_checkpoints, load, save
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.model import ViT
from vitdemo.presets import SIZES

CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, classes=3)
PICTURES = Preprocessing(size=(12, 12), mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
NAMES = ("zebra", "ant", "猫 cat")


def lively(config: ViTConfig, seed: int = 0) -> ViT:
    """A model none of whose parameters is near a special value, as after training."""
    generator = torch.Generator().manual_seed(seed)
    model = ViT(config, generator).eval()
    for tensor in model.parameters():
        tensor.data.normal_(0.1, 0.5, generator=generator)
    return model


def saved(path: Path, model: ViT | None = None, **options) -> ViT:
    model = model or lively(CONFIG)
    size = Preprocessing(size=model.config.image, channels=model.config.channels,
                         mean=(0.5,) * model.config.channels, std=(0.5,) * model.config.channels)
    save(path, model, **{"classes": NAMES[:model.config.classes], "preprocessing": size, "provenance": {}, **options})
    return model


def edited(path: Path, **entries: str | None) -> Path:
    """The same file with other entries in its header; None removes one."""
    with safe_open(path, "pt") as file:
        metadata, state = dict(file.metadata()), {name: file.get_tensor(name).clone() for name in file.keys()}
    metadata = {key: value for key, value in {**metadata, **entries}.items() if value is not None}
    path.write_bytes(safetensors.torch.save(state, metadata))
    return path


# ---- our own files


def test_everything_comes_back_bit_equal_and_ready_for_use(tmp_path):
    model, provenance = lively(CONFIG), {"data": "synthetic", "seed": 3, "accuracy": 0.5, "notes": ["ä"]}
    save(tmp_path / "first try.safetensors", model.train(), classes=NAMES, preprocessing=PICTURES, provenance=provenance)
    loaded = load(tmp_path / "first try.safetensors")
    assert loaded.config == CONFIG and loaded.classes == NAMES and loaded.preprocessing == PICTURES
    assert loaded.provenance == provenance and loaded.name == "first try"
    assert not loaded.model.training and all(p.dtype == torch.float32 and p.requires_grad for p in loaded.model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.model.state_dict()[name]), name
    images = torch.randn(2, 3, 12, 12)
    assert torch.equal(model.eval()(images), loaded.model(images))


@pytest.mark.parametrize("changes", [
    {"classes": 0}, {"classes": 0, "pool": "mean", "class_token": False},
    {"positions": "sinusoidal"}, {"positions": "none"}, {"head": "mlp"},
    {"distilled": True},
    {"registers": 5, "prefix_positions": 1}, {"layer_scale": True, "qkv_bias": False}, {"channels": 1},
    {"pool": "mean", "norm_at": "pooled"}, {"image": (8, 12)}, {"mlp_dim": 7},
], ids=str)
@pytest.mark.parametrize("half", [False, True])
def test_every_kind_of_model_survives_the_trip(tmp_path, changes, half):
    model = saved(tmp_path / "x.safetensors", lively(CONFIG.with_(**changes)), half=half)
    loaded = load(tmp_path / "x.safetensors")
    assert loaded.config == model.config and len(loaded.classes) == model.config.classes
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor.half().float() if half else tensor, loaded.model.state_dict()[name]), name


def test_half_precision_halves_the_file_and_rounds_no_further(tmp_path):
    model = saved(tmp_path / "full.safetensors", lively(SIZES["vit-micro"].config.with_(classes=3)))
    saved(tmp_path / "half.safetensors", model, half=True)
    full, half = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "half"))
    assert 0.5 < half / full < 0.52


def test_the_fingerprint_is_that_of_the_rounded_weights(tmp_path):
    model = saved(tmp_path / "x.safetensors", half=True)
    with safe_open(tmp_path / "x.safetensors", "pt") as file:
        stored = json.loads(file.metadata()["fingerprint"])
    assert stored == pytest.approx(checkpoint.fingerprint(load(tmp_path / "x.safetensors").model), rel=1e-6)
    assert stored != pytest.approx(checkpoint.fingerprint(model), rel=1e-6)


def test_a_model_with_a_head_of_zeros_can_be_saved_and_still_has_a_telling_fingerprint(tmp_path):
    model = lively(CONFIG)
    torch.nn.init.zeros_(model.head.weight)
    saved(tmp_path / "x.safetensors", model)
    load(tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="does not answer as it did"):
        load(edited(tmp_path / "x.safetensors", config=json.dumps(CONFIG.with_(heads=5).to_json())))


@pytest.mark.parametrize("heads", [1, 5, 10])
@pytest.mark.parametrize("half", [False, True])
def test_a_wrong_head_count_in_our_own_file_is_noticed(tmp_path, heads, half):
    saved(tmp_path / "x.safetensors", half=half)
    with pytest.raises(CheckpointError, match="number of heads"):
        load(edited(tmp_path / "x.safetensors", config=json.dumps(CONFIG.with_(heads=heads).to_json())))


def test_a_wrong_head_count_is_noticed_even_in_a_model_that_has_learned_nothing(tmp_path):
    config = SIZES["vit-micro"].config.with_(classes=3)
    saved(tmp_path / "x.safetensors", ViT(config, torch.Generator().manual_seed(0)))
    with pytest.raises(CheckpointError, match="number of heads"):
        load(edited(tmp_path / "x.safetensors", config=json.dumps(config.with_(heads=6).to_json())))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, step):
    path = tmp_path / "x.safetensors"
    saved(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(CheckpointError, match="x.safetensors could not be written: No space left on device"):
        saved(path, lively(CONFIG, seed=1))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_loaded_model_does_not_hold_its_file_open(tmp_path):
    path = tmp_path / "x.safetensors"
    saved(path)
    loaded = load(path)
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(path) not in maps.read_text()
    before = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    path.write_bytes(b"\0" * path.stat().st_size)
    assert all(torch.equal(tensor, before[name]) for name, tensor in loaded.model.state_dict().items())


@pytest.mark.parametrize(("options", "message"), [
    ({"classes": NAMES[:2]}, "3 classes apart, so it needs as many names, not 2"),
    ({"preprocessing": Preprocessing(size=12, channels=1, mean=(0.5,), std=(0.5,))}, "1 channels do not fit a model of 3"),
    ({"preprocessing": Preprocessing(size=(12, 13))}, "13 pixels cannot be cut into patches of 4"),
    ({"provenance": {"loss": float("nan")}}, "plain JSON"),
    ({"provenance": {"model": object()}}, "plain JSON"),
], ids=str)
def test_parts_that_do_not_fit_are_not_saved(tmp_path, options, message):
    with pytest.raises(CheckpointError, match=message):
        saved(tmp_path / "x.safetensors", **options)
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    model = lively(CONFIG)
    model.norm.bias.data[3] = float("inf")
    with pytest.raises(CheckpointError, match="norm.bias holds numbers that are not finite"):
        saved(tmp_path / "x.safetensors", model)


def test_class_names_are_one_line_of_plain_text_each(tmp_path):
    rude = ("<b>\x1b[31m\nred\u202e\x00", "x" * 5000, "\t\r\n")
    saved(tmp_path / "x.safetensors", classes=("a", "b", "c"))
    loaded = load(edited(tmp_path / "x.safetensors", classes=json.dumps(rude)))
    assert loaded.classes == ("<b>[31mred", "x" * 200, "class 2")


DEEP = "[" * 100_000
MODEL, PICTURE = CONFIG.to_json(), Preprocessing(size=12).to_json()


@pytest.mark.parametrize(("entry", "value"), [
    ("vitdemo", "2"), ("vitdemo", ""), ("vitdemo", DEEP),
    ("config", None), ("config", ""), ("config", "[]"), ("config", "null"), ("config", "{"), ("config", DEEP), ("config", '{"x": 1}'),
    *(("config", json.dumps({**MODEL, **change})) for change in (
        {"dim": 10**9}, {"dim": 10**4000}, {"depth": 10**6}, {"depth": 3}, {"heads": 0}, {"heads": 3},
        {"heads": "2"}, {"heads": -2}, {"image": [10**6] * 2},
        {"image": [[12, 12], 12]}, {"image": [12]}, {"patch": [0, 0]}, {"patch": [-4, -4]}, {"mlp_dim": 10**9}, {"classes": 10**9},
        {"classes": 4}, {"registers": 10**9}, {"head": "exec"}, {"head": [DEEP]}, {"eps": "0"}, {"qkv_bias": 1}, {"unknown": DEEP})),
    ("config", json.dumps({**MODEL, "eps": 1}).replace('"eps": 1', '"eps": 1e999')),
    ("config", json.dumps({**MODEL, "eps": 1}).replace('"eps": 1', '"eps": NaN')),
    ("config", json.dumps({**MODEL, "heads": 1}).replace('"heads": 1', '"heads": 1e999')),
    ("classes", None), ("classes", '"abc"'), ("classes", '["a", "b"]'),
    ("classes", '["a", "b", 3]'), ("classes", '{"a": 1, "b": 2, "c": 3}'),
    ("preprocessing", None), ("preprocessing", "3"),
    *(("preprocessing", json.dumps({**PICTURE, **change})) for change in (
        {"size": [10**9] * 2}, {"size": [4096, 4096]}, {"size": [0, 0]}, {"size": [13, 12]}, {"channels": 1}, {"mean": [0.5]},
        {"std": [0, 0, 0]},
        {"std": ["a"] * 3}, {"mean": 5}, {"crop_fraction": 0}, {"interpolation": "x"})),
    ("provenance", None), ("provenance", "[]"), ("provenance", '{"a": NaN}'),
    ("fingerprint", None), ("fingerprint", "[]"), ("fingerprint", "[1, 2]"), ("fingerprint", "[1, 2, 3]"),
    ("fingerprint", '["1", "2", "3"]'),
    ("fingerprint", "[NaN, NaN, NaN]"), ("fingerprint", "[1e999, 1, 1]"), ("fingerprint", "[true, true, true]"), ("fingerprint", "5"),
    ("fingerprint", f"[1, 2, {10**4000}]"), ("fingerprint", "[[1], [2], [3]]"),
], ids=lambda value: str(value)[:60])
def test_a_header_that_lies_is_refused_in_one_short_sentence(tmp_path, entry, value):
    saved(tmp_path / "x.safetensors")
    edited(tmp_path / "x.safetensors", **{entry: value})
    with pytest.raises(CheckpointError) as refusal:
        load(tmp_path / "x.safetensors")
    assert len(str(refusal.value)) < 400 and "\n" not in str(refusal.value) and str(tmp_path) not in str(refusal.value)


def test_a_file_of_a_later_version_is_refused_politely(tmp_path):
    saved(tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="format '2', this version reads format 1: update"):
        load(edited(tmp_path / "x.safetensors", vitdemo="2", fingerprint=None))


def test_heads_given_for_a_file_that_says_them_must_agree(tmp_path):
    saved(tmp_path / "x.safetensors")
    assert load(tmp_path / "x.safetensors", heads=2).config.heads == 2
    with pytest.raises(CheckpointError, match="has 2 heads, not 5"):
        load(tmp_path / "x.safetensors", heads=5)


# ---- which files there are


def test_only_whole_checkpoints_are_listed(tmp_path):
    for name in ("b.pt", "a.safetensors", "c.pth", "d.pt.tmp", ".e.safetensors", "f.txt", "pt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.pt").mkdir()
    assert [path.name for path in list_checkpoints(tmp_path)] == ["a.safetensors", "b.pt", "c.pth"]
    assert list_checkpoints(tmp_path / "nowhere") == []


def test_the_box_is_the_checkpoints_folder_and_says_so_when_it_is_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "__file__", str(tmp_path / "vitdemo" / "checkpoint.py"))
    with pytest.raises(CheckpointError, match="no model in the folder 'checkpoints'"):
        load()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "a.pt").write_bytes(b"x")
    saved(tmp_path / "checkpoints" / "box.safetensors")
    assert load().name == "box"

"""Files of our own: there and back bit by bit, written whole or not at all, refused when their header lies."""

import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from vitdemo import checkpoint
from vitdemo.checkpoint import CheckpointError, Stated, list_checkpoints, load, save
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


def test_a_disk_that_is_full_is_said_as_safetensors_says_it(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(CheckpointError, match="^x.safetensors could not be written: No space left on device$"):
        saved(tmp_path / "x.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_may_be_read_by_whom_its_owner_lets_read_files(tmp_path):
    before = os.umask(0o027)
    try:
        saved(tmp_path / "x.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "x.safetensors").stat().st_mode & 0o777 == 0o640


def test_saving_leaves_the_model_as_it_was(tmp_path):
    model = lively(CONFIG).train()
    for tensor in model.parameters():
        tensor.grad = torch.ones_like(tensor)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    saved(tmp_path / "x.safetensors", model)
    assert model.training and all(p.requires_grad and p.grad is not None for p in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("kind", ["ours", "safetensors", "pt", "legacy"])
def test_a_loaded_model_does_not_hold_its_file_open(tmp_path, kind):
    path = tmp_path / "x.safetensors"
    model = saved(path)
    if kind == "safetensors":
        safetensors.torch.save_file(model.state_dict(), path)
    elif kind != "ours":
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=kind == "pt")
    loaded = load(path, heads=2)
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
    pytest.param({"provenance": {"model": object()}}, "plain JSON", id="an object"),
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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_found_among_many(tmp_path, value):
    state = dict(lively(CONFIG).state_dict())
    state["blocks.1.mlp.fc2.weight"][3, 5] = value
    torch.save(state, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="blocks.1.mlp.fc2.weight holds numbers that are not finite"):
        load(tmp_path / "x.pt", heads=2)


def test_numbers_whose_sum_is_too_large_are_finite_all_the_same(tmp_path):
    state = dict(lively(CONFIG).state_dict())
    state["head.weight"] = torch.full((3, 10), 3e38)
    torch.save(state, tmp_path / "x.pt")
    assert torch.equal(load(tmp_path / "x.pt", heads=2).model.head.weight, state["head.weight"])


def test_a_model_takes_no_more_memory_than_its_own_numbers(tmp_path):
    state = dict(lively(CONFIG).state_dict())
    state["head.weight"] = torch.randn(1000, 10)[7:10]                      # torch.save keeps all of what a part belongs to
    torch.save(state, tmp_path / "x.pt")
    loaded = load(tmp_path / "x.pt", heads=2)
    assert loaded.bytes == 4 * sum(tensor.numel() for tensor in loaded.model.parameters()) < 4 * 10_000
    assert torch.equal(loaded.model.head.weight, state["head.weight"])


def test_what_others_say_of_a_file_is_heard_for_another_programs_and_not_for_ours(tmp_path):
    model = lively(CONFIG.with_(eps=1e-3))
    torch.save(model.state_dict(), tmp_path / "theirs.pt")
    stated = Stated({"heads": 2, "eps": 1e-3, "image": 12}, NAMES, PICTURES, "a list")
    loaded = load(tmp_path / "theirs.pt", stated=stated)
    assert loaded.config == model.config.with_(mlp_dim=40) and loaded.classes == NAMES and loaded.preprocessing == PICTURES
    with pytest.raises(CheckpointError, match="a list and the tensors disagree: depth is 3 in one and 2 in the other"):
        load(tmp_path / "theirs.pt", stated=stated._replace(settings={"depth": 3}))
    with pytest.raises(CheckpointError, match="pictures of 1 channels do not fit a model of 3"):
        load(tmp_path / "theirs.pt", stated=stated._replace(preprocessing=PICTURES.with_(channels=1, mean=(0.5,), std=(0.5,))))
    saved(tmp_path / "ours.safetensors")
    assert load(tmp_path / "ours.safetensors", stated=stated).config == CONFIG


def test_names_for_a_model_without_classes_are_nothing_to_note(tmp_path):
    torch.save(lively(CONFIG.with_(classes=0)).state_dict(), tmp_path / "x.pt")
    loaded = load(tmp_path / "x.pt", heads=2, stated=Stated(classes=NAMES))
    assert loaded.classes == () and loaded.unnamed and not any("names" in note for note in loaded.provenance["notes"])


def test_class_names_are_one_line_of_plain_text_each(tmp_path):
    rude = ("<b>\x1b[31m\nred\u202e\x00", "x" * 5000, "\t\r\n")
    saved(tmp_path / "x.safetensors", classes=("a", "b", "c"))
    loaded = load(edited(tmp_path / "x.safetensors", classes=json.dumps(rude)))
    assert loaded.classes == ("<b>[31mred", "x" * 200, "class 2")


DEEP = "[" * 100_000
MODEL, PICTURE = CONFIG.to_json(), Preprocessing(size=12).to_json()


@pytest.mark.parametrize(("entry", "value"), [
    ("vitdemo", "3"), ("vitdemo", ""), ("vitdemo", DEEP),
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
    with pytest.raises(CheckpointError, match="format '3', this version reads 1 and 2: update"):
        load(edited(tmp_path / "x.safetensors", vitdemo="3", fingerprint=None))


BIG = CONFIG.with_(image=(36, 48))              # more than 8 patches a side


def test_a_large_models_fingerprint_is_of_a_small_image_and_the_format_says_so(tmp_path, monkeypatch):
    assert checkpoint.small(CONFIG) == CONFIG.image and checkpoint.small(BIG) == (32, 32)
    for config, version in ((CONFIG, "1"), (BIG, "2")):
        saved(tmp_path / "x.safetensors", lively(config))
        with safe_open(tmp_path / "x.safetensors", "pt") as file:
            assert file.metadata()["vitdemo"] == version
    seen = []
    monkeypatch.setattr(ViT, "encode", lambda model, images, encode=ViT.encode: seen.append(images.shape) or encode(model, images))
    load(tmp_path / "x.safetensors")
    assert seen == [(1, 3, 32, 32)]


@pytest.mark.parametrize("changes", [{}, {"classes": 0}, {"positions": "sinusoidal"}, {"registers": 2, "prefix_positions": 1}], ids=str)
def test_a_wrong_head_count_in_a_large_models_file_is_noticed(tmp_path, changes):
    config = BIG.with_(**changes)
    saved(tmp_path / "x.safetensors", lively(config))
    assert load(tmp_path / "x.safetensors").config == config
    for heads in (1, 5):
        with pytest.raises(CheckpointError, match="number of heads"):
            load(edited(tmp_path / "x.safetensors", config=json.dumps(config.with_(heads=heads).to_json())))


def test_files_of_the_first_format_whose_images_are_large_are_read_as_ever(tmp_path):
    model = saved(tmp_path / "x.safetensors", lively(BIG))
    older = edited(tmp_path / "x.safetensors", vitdemo="1", fingerprint=json.dumps(checkpoint.fingerprint(model)))
    assert load(older).config == BIG
    with pytest.raises(CheckpointError, match="does not answer as it did"):
        load(edited(older, vitdemo="2"))


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

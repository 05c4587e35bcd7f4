"""Files of our own there and back, what is refused and why, and the shared hard cases."""

import gzip
import json
import os
import time
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors import safe_open

from vitdemo import checkpoint
from vitdemo.checkpoint import CheckpointError, HeadsNeeded, list_checkpoints, load, save
from vitdemo.config import SIZES, Preprocessing, ViTConfig
from vitdemo.model import ViT

CASES = Path(os.environ["VITDEMO_CASES"]) / "checkpoints" if "VITDEMO_CASES" in os.environ else None
needs_cases = pytest.mark.skipif(CASES is None or not CASES.is_dir(), reason="VITDEMO_CASES does not name the folder of shared hard inputs")

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


def test_a_small_model_loads_in_less_than_fifty_milliseconds(tmp_path):
    saved(tmp_path / "x.safetensors", lively(SIZES["vit-micro"].config.with_(classes=3)))
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        load(tmp_path / "x.safetensors")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.05


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, step):
    path = tmp_path / "x.safetensors"
    saved(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.os, step, full)
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


# ---- files that are no checkpoint, or hostile


class Touch:
    """Unpickling this would leave a trace."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def state_of(config: ViTConfig = CONFIG) -> dict[str, torch.Tensor]:
    return dict(lively(config).state_dict())


def test_nothing_in_a_pickle_is_executed(tmp_path):
    torch.save({"model": state_of(), "x": Touch(tmp_path / "trace")}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"Python object \w+\.mkdir"):
        load(tmp_path / "x.pt", heads=2)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(("content", "message"), [
    (b"", "is empty"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git LFS pointer"),
    (b"\n <!DOCTYPE html><title>503</title>", "web page"),
    (gzip.compress(b"data"), "gzip archive"),
    (b"hello, this is text", "neither safetensors nor"),
    (b"PK\x03\x04" + b"\0" * 100, "cut off"),
    (b"\x80\x02}q\x00.", "damaged or cut off"),
    ((2**60).to_bytes(8, "little") + b"{}", "damaged or cut off"),
    ((10**5).to_bytes(8, "little") + b"{" * 10**5, "damaged or cut off"),
], ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_what_is_no_checkpoint_is_called_what_it_is_whatever_its_name(tmp_path, content, message, suffix):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"^x\.{suffix} .*{message}"):
        load(path)


def test_missing_files_and_folders_are_refused_without_their_path(tmp_path):
    for path in (tmp_path / "x.pt", tmp_path):
        with pytest.raises(CheckpointError, match=f"there is no file called {path.name}$"):
            load(path)


@pytest.mark.parametrize("kind", ["safetensors", "pt", "legacy"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path, kind):
    whole = tmp_path / "whole"
    if kind == "safetensors":
        saved(whole)
    else:
        torch.save(state_of(), whole, _use_new_zipfile_serialization=kind == "pt")
    load(whole, heads=2)
    content = whole.read_bytes()
    for cut in (1, 7, 8, 9, 50, 500, len(content) // 2, len(content) - 100, len(content) - 1):
        (tmp_path / "part").write_bytes(content[:cut])
        with pytest.raises(CheckpointError):
            load(tmp_path / "part", heads=2)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\0" * 10**7)
    with pytest.raises(CheckpointError, match="compressed zip"):
        load(tmp_path / "x.pt")


@pytest.mark.filterwarnings("ignore:Validating sparse")
@pytest.mark.parametrize(("name", "tensor", "message"), [
    ("head.weight", torch.zeros(1).expand(10**9, 10**9), "claim more numbers than it holds"),
    ("head.weight", torch.zeros(3, 10, dtype=torch.int64), "does not hold floating-point"),
    ("head.weight", torch.zeros(3, 10).to_sparse(), "not plain arrays"),
    ("head.weight", torch.zeros(3, 10, dtype=torch.complex64), "does not hold floating-point"),
    ("head.weight", torch.zeros(3, 10, device="meta"), "not plain arrays"),
    ("head.weight", torch.zeros(3), r"shape \(3,\), but the model's settings make it \(3, 10\)"),
    ("head.weight", torch.tensor(1.0), "unexpected 'head.weight'"),
    ("pos_embed", torch.zeros(7), "missing 'pos_embed'"),
    ("pos_embed", torch.zeros(1, 12, 10), "12 rows, which are not 1 tokens in front and a square"),
    ("pos_embed", torch.zeros(1, 10, 9), "pos_embed has the shape"),
    ("patch_embed.proj.weight", torch.zeros(10, 48), r"not \(width, channels, rows, cols\)"),
    ("patch_embed.proj.weight", torch.zeros(10, 3, 0, 0), r"not \(width, channels, rows, cols\)"),
    ("patch_embed.proj.weight", torch.zeros(10, 5, 4, 4), "5 channels"),
    ("dist_token", torch.zeros(7), "unexpected 'reg_token'"),
    ("blocks.999999.norm1.weight", torch.zeros(10), "depth must lie between 1 and 256, not 1000000"),
    ("blocks.1.attn.q_norm.weight", torch.zeros(5), r"unexpected 'blocks\.1\.attn\.q_norm\.weight'"),
    ("norm.weight", torch.full((10,), float("nan")), "norm.weight holds numbers that are not finite"),
    ("\x1b[31m\n" + "x" * 10**4, torch.zeros(1), r"unexpected '\\x1b\[31m\\nxxx"),
], ids=lambda value: str(value)[:30].replace("\n", " ").replace("\x1b", ""))
def test_tensors_that_do_not_fit_are_named(tmp_path, name, tensor, message):
    torch.save({**state_of(), name: tensor}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=message) as refusal:
        load(tmp_path / "x.pt", heads=2)
    assert len(str(refusal.value)) < 400


def test_a_distillation_token_never_takes_the_place_of_registers(tmp_path):
    torch.save({**state_of(CONFIG.with_(registers=2)), "dist_token": torch.zeros(1, 1, 10)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="pos_embed has 12 rows"):
        load(tmp_path / "x.pt", heads=2)


def test_queries_and_keys_without_a_shape_are_refused(tmp_path):
    state = {f"vit.layers.0.attention.{letter}_proj.weight": torch.tensor(1.0) for letter in "qkv"}
    torch.save({"vit.embeddings.patch_embeddings.projection.weight": torch.zeros(10, 3, 4, 4), **state}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="missing 'pos_embed'"):
        load(tmp_path / "x.pt", heads=2)


def test_tensors_that_share_their_numbers_do_not_multiply_in_memory(tmp_path):
    state, rows = state_of(), torch.randn(40, 10)
    torch.save({**state, **{f"blocks.{i}.mlp.fc1.weight": rows for i in range(2)}}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="claim more numbers"):
        load(tmp_path / "x.pt", heads=2)


def test_a_file_that_fits_nothing_known_says_what_it_holds(tmp_path):
    torch.save({"state_dict": {"layer1.0.conv1.weight": torch.zeros(3)}}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"among its names are 'layer1\.0\.conv1\.weight'"):
        load(tmp_path / "x.pt")
    for content in ({}, [], torch.zeros(3), "text", {"model": {}}, {3: torch.zeros(3)}):
        torch.save(content, tmp_path / "x.pt")
        with pytest.raises(CheckpointError, match="holds no weights"):
            load(tmp_path / "x.pt")


def test_of_many_missing_names_four_are_listed(tmp_path):
    state = {name: tensor for name, tensor in state_of().items() if "blocks.1.norm" not in name and "mlp" not in name}
    torch.save(state, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"missing ('[\w.]+'(, )?){4} and more$"):
        load(tmp_path / "x.pt", heads=2)


# ---- what stands beside foreign weights


CASE_CONFIG = {"image_size": 12, "patch_size": 4, "in_chans": 3, "dim": 10, "depth": 2, "num_heads": 2, "mlp_dim": 40, "num_classes": 3}


@pytest.mark.parametrize("wrap", [
    lambda state: state, lambda state: {"model": state}, lambda state: {"state_dict": state, "epoch": torch.tensor(3)},
    lambda state: {"model_state_dict": state}, lambda state: {"model": {"state_dict": state}},
    lambda state: {"student": {}, "teacher": state}, lambda state: {f"module.{name}": t for name, t in state.items()},
    lambda state: {f"module._orig_mod.model.{n}": t for n, t in state.items()},
    lambda state: {"teacher": {f"backbone.{name}": t for name, t in state.items() if "head" not in name}
                   | {name: t for name, t in state.items() if "head" in name} | {"head.mlp.0.weight": torch.zeros(7)}},
    lambda state: {name: torch.nn.Parameter(tensor) for name, tensor in state.items()},
    lambda state: {**state, "mask_token": torch.zeros(1, 10), "n_averaged": torch.tensor(5)},
])
@pytest.mark.parametrize("legacy", [False, True])
def test_weights_are_found_under_the_usual_keys_and_prefixes(tmp_path, wrap, legacy):
    torch.save(wrap(state_of()), tmp_path / "x.pt", _use_new_zipfile_serialization=not legacy)
    loaded, images = load(tmp_path / "x.pt", heads=2), torch.randn(2, 3, 12, 12)
    assert torch.equal(loaded.model(images), lively(CONFIG)(images))
    assert loaded.config == CONFIG.with_(mlp_dim=40)


def test_a_head_count_that_nobody_says_is_asked_for_with_likely_answers(tmp_path):
    torch.save(state_of(CONFIG.with_(dim=192, depth=12, heads=3, mlp_dim=7)), tmp_path / "x.pt")
    with pytest.raises(HeadsNeeded, match="a width of 192 does not tell") as question:
        load(tmp_path / "x.pt")
    assert question.value.choices[:3] == (3, 4, 2) and all(192 % heads == 0 for heads in question.value.choices)
    loaded = load(tmp_path / "x.pt", heads=3)
    assert loaded.config.heads == 3 and "whoever loaded the file said that its model has 3 heads" in loaded.provenance["notes"]
    with pytest.raises(CheckpointError, match="192 cannot be shared by 7 heads"):
        load(tmp_path / "x.pt", heads=7)


def test_nobody_is_asked_about_heads_when_the_file_does_not_fit_anyway(tmp_path):
    torch.save({**state_of(), "norm.weight": torch.zeros(7)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="norm.weight has the shape") as refusal:
        load(tmp_path / "x.pt")
    assert not isinstance(refusal.value, HeadsNeeded)


def test_a_config_beside_the_weights_gives_heads_and_class_names_in_order(tmp_path):
    torch.save({"model": state_of(), "config": CASE_CONFIG, "classes": list(NAMES)}, tmp_path / "x.pt")
    loaded = load(tmp_path / "x.pt")
    assert loaded.config == CONFIG.with_(mlp_dim=40) and loaded.classes == NAMES
    assert loaded.preprocessing == Preprocessing(size=12)
    assert any("0.5 are assumed" in note for note in loaded.provenance["notes"])
    with pytest.raises(CheckpointError, match="has 2 heads, not 5"):
        load(tmp_path / "x.pt", heads=5)


@pytest.mark.parametrize(("change", "message"), [
    ({"patch_size": 6}, r"patch is \(6, 6\) in one and \(4, 4\) in the other"), ({"in_chans": 1}, "channels is 1 in one and 3"),
    ({"dim": 20}, "dim is 20 in one and 10"), ({"depth": 3}, "depth is 3 in one and 2"), ({"mlp_dim": 39}, "mlp_dim is 39 in one and 40"),
    ({"num_classes": 10}, "classes is 10 in one and 3"), ({"image_size": 16}, "10 rows, .* 16 x 16 pixels"),
    ({"num_heads": 3}, "shared by 3 heads"),
    ({"num_heads": 0}, "heads must lie between 1"), ({"dim": 10**9}, "dim as a whole number from 0 to 8192"),
    ({"image_size": -4}, "image as a whole"),
    ({"num_heads": 10**300}, "heads as a whole"), ({"depth": "2"}, "depth as a whole"), ({"num_heads": True}, "heads as a whole"),
    ({"image_size": [12, 12, 12]}, "image as a whole"), ({"image_size": [[12], 12]}, "image as a whole"),
    ({"patch_size": torch.ones(2)}, "patch as a"),
    ({"num_heads": float("nan")}, "heads as a whole"),
], ids=lambda value: str(value)[:40])
def test_a_config_that_contradicts_the_tensors_is_refused_with_both_numbers(tmp_path, change, message):
    torch.save({"model": state_of(), "config": {**CASE_CONFIG, **change}}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path / "x.pt")


def test_a_stated_image_settles_a_grid_that_is_not_square(tmp_path):
    torch.save({"model": state_of(CONFIG.with_(image=(8, 12))), "config": {**CASE_CONFIG, "image_size": [8, 12]}}, tmp_path / "x.pt")
    assert load(tmp_path / "x.pt").config.grid == (2, 3)


def test_a_config_can_say_that_the_patches_are_averaged(tmp_path):
    model, images = lively(CONFIG.with_(pool="mean")), torch.randn(2, 3, 12, 12)
    torch.save({"model": model.state_dict(), "config": {**CASE_CONFIG, "global_pool": "avg"}}, tmp_path / "x.pt")
    assert torch.equal(load(tmp_path / "x.pt").model(images), model(images))


@pytest.mark.parametrize("classes", [["a", "b"], [1, 2, 3], "abc", 3, {"a": 0}, torch.ones(3)], ids=str)
def test_class_names_that_do_not_fit_are_left_out_with_a_note(tmp_path, classes):
    torch.save({"model": state_of(), "config": CASE_CONFIG, "classes": classes}, tmp_path / "x.pt")
    loaded = load(tmp_path / "x.pt")
    assert loaded.classes == ("class 0", "class 1", "class 2")
    assert any("class names are not 3 texts" in note for note in loaded.provenance["notes"])


# ---- the shared hard cases


TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
EQUAL = {  # equal logits to ck_good.pt; True: the head count must be given
    "ck_good.pt": False, "ck_good.safetensors": True, "ck_tagged_cuda0.pt": False, "ck_under_state_dict_key.pt": True,
    "ck_raw_state_dict.pt": True,
    "ck_config_missing.pt": True, "ck_prefix_module.pt": False, "ck_prefix_orig_mod.pt": False, "ck_prefix_module_orig_mod.pt": False,
    "ck_class_names_html.pt": False, "ck_class_order_reversed.pt": False,
}
OTHERS = {  # load, as something else
    "ck_fp16.pt": {}, "ck_heads_lie_8.pt": {"heads": 8}, "ck_4_registers_pos_21.pt": {"registers": 4, "prefix": 5, "position_rows": 5},
    "ck_extra_dist_token.pt": {"prefix": 2, "position_rows": 1}, "ck_image_64_pos_65.pt": {"image": (64, 64), "grid": (8, 8)},
    "ck_patch_4.pt": {"patch": (4, 4), "grid": (8, 8)}, "ck_classes_100.pt": {"classes": 100},
}
REFUSED = {
    "ck_missing_cls_token.pt": "missing 'cls_token'", "ck_missing_head.pt": "missing 'head.weight', 'head.bias'",
    "ck_empty_dict.pt": "holds no weights",
    "ck_nan_weight.pt": "not finite", "ck_config_hostile.pt": "image as a whole number from 0 to 4096",
    "ck_numpy_scalar.pt": "Python object numpy",
    "ck_pickle_exec.pt": "Python object", "ck_text.pt": "git LFS pointer", "ck_html_error_page.pt": "web page", "ck_zero_byte.pt": "empty",
    "ck_half_written.pt": "cut off", "ck_truncated.safetensors": "damaged or cut off", "cifar-10-python.tar.gz": "gzip archive",
}


@needs_cases
def test_no_shared_case_is_forgotten():
    assert {path.name for path in CASES.iterdir()} == {*EQUAL, *OTHERS, *REFUSED, "ck_leftover.pt.tmp"}
    assert "ck_leftover.pt.tmp" not in [path.name for path in list_checkpoints(CASES)]


@needs_cases
@pytest.mark.parametrize(("name", "asked"), EQUAL.items())
def test_a_shared_good_case_gives_the_same_logits(name, asked):
    if asked:
        with pytest.raises(HeadsNeeded):
            load(CASES / name)
    loaded, images = load(CASES / name, heads=4 if asked else None), torch.randn(2, 3, 32, 32)
    assert torch.equal(loaded.model(images), load(CASES / "ck_good.pt").model(images))
    assert loaded.config == ViTConfig(image=32, patch=8, dim=16, depth=2, heads=4, mlp_dim=32, classes=10)
    names = {"ck_class_names_html.pt": ("<img src=x onerror=alert(1)>", *TEN[1:]), "ck_class_order_reversed.pt": TEN[::-1]}.get(name, TEN)
    assert loaded.classes == (names if not asked else tuple(f"class {i}" for i in range(10)))


@needs_cases
@pytest.mark.parametrize(("name", "expected"), OTHERS.items())
def test_a_shared_unusual_case_loads_as_what_it_is(name, expected):
    loaded = load(CASES / name)
    assert {key: getattr(loaded.config, key) for key in expected} == expected
    assert all(p.dtype == torch.float32 for p in loaded.model.parameters())
    logits = loaded.model(torch.randn(1, 3, *loaded.config.image))
    assert logits.shape == (1, len(loaded.classes)) and logits.isfinite().all()


@needs_cases
@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_a_shared_bad_case_is_refused_by_name(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load(CASES / name)
    assert str(CASES) not in str(refusal.value) and len(str(refusal.value)) < 400 and "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())

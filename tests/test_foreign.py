"""Other programs' files: where their weights are found, what the tensors and a config beside them say, and what is refused."""

import pytest
import torch

from parity import CONFIG, HUGGING_FACE, TORCHVISION, lively, renamed, state_of
from vitdemo.checkpoint import CheckpointError, HeadsNeeded, load
from vitdemo.config import Preprocessing
from vitdemo.foreign import Stated, understand, with_heads

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
NAMES = ("zebra", "ant", "猫 cat")


# ---- tensors


@pytest.mark.filterwarnings("ignore:Validating sparse")
@pytest.mark.parametrize(("name", "tensor", "message"), [
    ("head.weight", torch.zeros(1).expand(10**9, 10**9), "claim more numbers than it holds"),
    ("head.weight", torch.zeros(3, 10, dtype=torch.int64), "does not hold floating-point"),
    ("head.weight", torch.zeros(3, 10).to_sparse(), "not plain arrays"),
    ("head.weight", torch.zeros(3, 10, dtype=torch.complex64), "does not hold floating-point"),
    ("head.weight", torch.zeros(3, 10, device="meta"), "not plain arrays"),
    ("head.weight", torch.zeros(3), r"shape \(3,\), but the model's settings make it \(3, 10\)"),
    ("head.weight", torch.tensor(1.0), "unexpected 'head.weight'"),
    ("pos_embed", torch.zeros(7), "missing 'pos_embed', a table of positions"),
    ("pos_embed", torch.zeros(10, 10), r"pos_embed has the shape \(10, 10\), not \(1, rows, width\)"),
    ("pos_embed", torch.zeros(1, 12, 10), "12 rows, which are not 1 tokens in front and a square"),
    ("pos_embed", torch.zeros(1, 10, 9), "pos_embed has the shape"),
    ("patch_embed.proj.weight", torch.zeros(10, 48), r"not \(width, channels, rows, cols\)"),
    ("patch_embed.proj.weight", torch.zeros(10, 3, 0, 0), r"not \(width, channels, rows, cols\)"),
    ("patch_embed.proj.weight", torch.zeros(10, 5, 4, 4), "5 channels"),
    ("dist_token", torch.zeros(7), "unexpected 'reg_token'"),
    ("blocks.999999.norm1.weight", torch.zeros(10), "depth must lie between 1 and 256, not 1000000"),
    ("blocks.1.attn.q_norm.weight", torch.zeros(5), r"not a plain ViT: norms of its queries and keys \('blocks\.1\.attn\.q_norm\.weight'"),
    ("blocks.1.attn.sinks", torch.zeros(5), r"unexpected 'blocks\.1\.attn\.sinks'"),
    ("norm.weight", torch.full((10,), float("nan")), "norm.weight holds numbers that are not finite"),
    ("\x1b[31m\n" + "x" * 10**4, torch.zeros(1), r"unexpected '\\x1b\[31m\\nxxx"),
], ids=lambda value: str(value)[:30].replace("\n", " ").replace("\x1b", ""))
def test_tensors_that_do_not_fit_are_named(tmp_path, name, tensor, message):
    torch.save({**state_of(), name: tensor}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=message) as refusal:
        load(tmp_path / "x.pt", heads=2)
    assert len(str(refusal.value)) < 400


def test_a_distillation_token_never_takes_the_place_of_registers(tmp_path):
    torch.save({**state_of(CONFIG.with_(registers=2, prefix_positions=1)), "dist_token": torch.zeros(1, 1, 10)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="missing 'head_dist.weight'"):
        load(tmp_path / "x.pt", heads=2)


def test_queries_and_keys_without_a_shape_are_refused(tmp_path):
    state = {f"vit.layers.0.attention.{letter}_proj.weight": torch.tensor(1.0) for letter in "qkv"}
    torch.save({"vit.embeddings.patch_embeddings.projection.weight": torch.zeros(10, 3, 4, 4), **state}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="missing 'pos_embed'"):
        load(tmp_path / "x.pt", heads=2)


def test_tensors_that_share_their_numbers_do_not_multiply_in_memory(tmp_path):
    state = state_of()
    for change in ({"blocks.0.mlp.fc1.weight": torch.randn(1, 10).expand(40, 10)},          # one row that poses as forty
                   {f"more.{i}": state["blocks.0.mlp.fc1.weight"] for i in range(100)}):     # shared more often than by any model
        torch.save({**state, **change}, tmp_path / "x.pt")
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


# ---- what stands beside them


CASE_CONFIG = {"image_size": 12, "patch_size": 4, "in_chans": 3, "dim": 10, "depth": 2, "num_heads": 2, "mlp_dim": 40, "num_classes": 3}


@pytest.mark.parametrize("wrap", [
    lambda state: state, lambda state: {"model": state}, lambda state: {"state_dict": state, "epoch": torch.tensor(3)},
    lambda state: {"model_state_dict": state}, lambda state: {"model": {"state_dict": state}},
    lambda state: {"student": {}, "teacher": state}, lambda state: {"predictor": {"x": torch.ones(3)}, "target_encoder": state},
    lambda state: {f"module.{name}": t for name, t in state.items()},
    lambda state: {f"module._orig_mod.model.{n}": t for n, t in state.items()},
    lambda state: {f"encoder.model.encoder.{n}": t for n, t in state.items()},
    lambda state: {f"{'net.' if n[:5] == 'block' else 'module.encoder.' if n[:4] == 'norm' else ''}{n}": t for n, t in state.items()},
    lambda state: {f"wrapped.inside.{n.replace('blocks.1.', 'blocks.1._orig_mod.module.')}": t for n, t in state.items()},
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


# ---- what files beside the weights state


def test_stated_settings_fill_in_what_no_tensor_shows():
    state = state_of(CONFIG.with_(image=(8, 12), pool="mean"))
    settings = {"image": [8, 12], "heads": 5, "eps": 1e-5, "pool": "mean", "dim": 10, "patch": 4, "mlp_dim": 0, "prefix_positions": -1}
    stated = Stated(settings, NAMES, Preprocessing(size=(8, 12), mean=(0.4,) * 3), "config.json")
    found = understand({"model": state, "classes": ["a"]}, stated)
    assert found.config == CONFIG.with_(image=(8, 12), heads=5, eps=1e-5, pool="mean", mlp_dim=40)
    assert found.heads == 5 and found.classes == NAMES and found.preprocessing == stated.preprocessing and found.notes == []
    assert with_heads(found, None)[0] == found.config


@pytest.mark.parametrize(("settings", "message"), [
    ({"dim": 20}, "config.json and the tensors disagree: dim is 20 in one and 10 in the other"),
    ({"depth": 3}, "depth is 3 in one and 2"), ({"classes": 4}, "classes is 4 in one and 3"),
    ({"mlp_dim": 39}, "mlp_dim is 39 in one and 40"), ({"registers": 4}, "registers is 4 in one and 0"),
    ({"layer_scale": True}, "layer_scale is True in one and False"),
    ({"qkv_bias": False}, "qkv_bias is False in one and True"), ({"patch": 6}, r"patch is \(6, 6\) in one and \(4, 4\)"),
    ({"prefix_positions": 0}, "prefix_positions is 0 in one and 1"), ({"norm_at": "pooled"}, "norm_at is pooled in one and tokens"),
    ({"distilled": True}, "distilled is True"), ({"image": 16}, "10 rows, .* an image of 16 x 16 pixels"),
    ({"heads": 3}, "shared by 3 heads"),
    ({"eps": 5.0}, "eps must lie between"),
], ids=str)
def test_stated_settings_that_contradict_the_tensors_are_refused_with_both_numbers(settings, message):
    with pytest.raises(CheckpointError, match=message):
        understand(state_of(), Stated(settings, source="config.json"))


def test_a_config_in_the_file_and_a_stated_one_must_agree():
    with pytest.raises(CheckpointError, match="the file's config and config.json disagree: heads is 2 and 5"):
        understand({"model": state_of(), "config": CASE_CONFIG}, Stated({"heads": 5}, source="config.json"))


def test_stated_pixels_that_fill_no_patch_do_not_count():
    found = understand(state_of(), Stated({"image": 15}, preprocessing=Preprocessing(size=(15, 14))))
    assert found.config.image == (12, 12) and found.preprocessing == Preprocessing(size=12)
    assert any("15 x 14 pixels" in note and "12 x 12" in note for note in found.notes)


@pytest.mark.parametrize(("state", "expected"), [
    (state_of(), Preprocessing(size=12)),
    (state_of(CONFIG.with_(image=96)), Preprocessing(size=96, crop_fraction=0.9)),
    (state_of(CONFIG.with_(registers=4)), Preprocessing(size=12)),
    (state_of(CONFIG.with_(channels=1)), Preprocessing(size=12, channels=1, mean=(0.5,), std=(0.5,))),
    (state_of(CONFIG.with_(classes=0)), Preprocessing(size=12, mean=IMAGENET[0], std=IMAGENET[1], crop_fraction=0.9)),
    (state_of(CONFIG.with_(classes=0, channels=1)), Preprocessing(size=12, channels=1, mean=(0.5,), std=(0.5,), crop_fraction=0.9)),
    (state_of(CONFIG.with_(distilled=True)), Preprocessing(size=12, mean=IMAGENET[0], std=IMAGENET[1], crop_fraction=0.9)),
    (state_of(CONFIG.with_(layer_scale=True)), Preprocessing(size=12, mean=IMAGENET[0], std=IMAGENET[1])),
    (renamed(TORCHVISION), Preprocessing(size=12, mean=IMAGENET[0], std=IMAGENET[1], crop_fraction=0.875, interpolation="bilinear")),
    (renamed(HUGGING_FACE), Preprocessing(size=12, interpolation="bilinear", fit="squash")),
], ids=["timm", "96 px", "registers", "grey", "dino", "grey dino", "deit", "dinov2", "torchvision", "hugging face"])
def test_preprocessing_that_nobody_states_is_what_such_models_usually_have_and_is_noted(state, expected):
    found = understand(state)
    assert found.preprocessing == expected
    values = "mean and deviation 0.5" if expected.mean[0] == 0.5 else "ImageNet's mean and deviation"
    assert [note for note in found.notes if "how pictures are prepared" in note and f"{values} are assumed" in note]


# ---- heads


@pytest.mark.parametrize(("dim", "depth", "first"), [(384, 12, 6), (1280, 32, 16), (320, 3, 5), (7, 2, 1), (48, 1, 1)])
def test_likely_head_counts_come_first_and_all_divide_the_width(dim, depth, first):
    found = understand(state_of(CONFIG.with_(dim=8)))._replace(config=CONFIG.with_(dim=dim, depth=depth, heads=1))
    with pytest.raises(HeadsNeeded) as question:
        with_heads(found, None)
    assert question.value.choices[0] == first and all(dim % heads == 0 for heads in question.value.choices)
    assert len(set(question.value.choices)) == len(question.value.choices)

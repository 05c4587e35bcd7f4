"""Folders as hubs lay them out: what config.json and preprocessor_config.json say, in our words, and which of them are refused."""

import json
import re
import warnings
from pathlib import Path

import pytest
import torch
from parity import Said, hold_equal, pictures, shaken

from vitdemo import repository
from vitdemo.architectures import heads_of
from vitdemo.config import Preprocessing
from vitdemo.loading import load
from vitdemo.processors import of_hugging_face, of_timm
from vitdemo.weightfile import CheckpointError

VIT = {"model_type": "vit", "hidden_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 14, "image_size": 12,
       "patch_size": 4, "num_channels": 3, "layer_norm_eps": 1e-12, "qkv_bias": True, "hidden_act": "gelu"}
TIMM = {"architecture": "vit_small_patch16_224", "num_classes": 3, "global_pool": "token",
        "pretrained_cfg": {"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9, "mean": [0.5] * 3, "std": [0.5] * 3}}
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def folder(path: Path, config=None, processor=None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "model.safetensors").write_bytes(b"x")
    for name, content in (("config.json", config), ("preprocessor_config.json", processor)):
        if content is not None:
            (path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return path


# ---- what configs say


def test_a_hugging_face_config_states_what_tensors_cannot_show(tmp_path):
    weights, stated = repository.read(folder(tmp_path, VIT))
    assert weights == tmp_path / "model.safetensors" and stated.source == "config.json of Hugging Face's ViT"
    assert stated.settings == {"image": (12, 12), "patch": (4, 4), "channels": 3, "dim": 10, "depth": 2, "heads": 2, "mlp_dim": 14,
        "eps": 1e-12, "qkv_bias": True}
    assert stated.classes is None and stated.preprocessing is None
    changed = VIT | {"model_type": "dinov2", "mlp_ratio": 3, "image_size": [12, 20]}
    settings = repository.read(folder(tmp_path, changed))[1].settings
    assert settings["mlp_dim"] == 30 and settings["image"] == (12, 20)


@pytest.mark.parametrize(("labels", "names"), [
    ({"1": "bee", "0": "ant"}, ("ant", "bee")), ({"0": "LABEL_0", "1": "LABEL_1"}, None), ({"0": "ant", "2": "bee"}, None),
    ({"0": "ant", "1": 3}, None),
    ({}, None), (["ant", "bee"], None), ({str(i): str(i) for i in range(12)}, tuple(map(str, range(12))))], ids=str)
def test_class_names_come_in_the_order_of_the_logits_and_placeholders_do_not_count(tmp_path, labels, names):
    assert repository.read(folder(tmp_path, VIT | {"id2label": labels}))[1].classes == names


@pytest.mark.parametrize(("changes", "settings"), [
    ({}, {"heads": 6, "classes": 3, "pool": "cls"}), ({"architecture": "deit3_large_patch16_224"},
    {"heads": 16, "classes": 3, "pool": "cls"}),
    ({"global_pool": "avg", "num_classes": 0}, {"heads": 6, "pool": "mean"}),
    ({"model_args": {"num_heads": 3, "global_pool": "avg"}}, {"heads": 3, "classes": 3, "pool": "mean"}),
    ({"model_args": {"img_size": [32, 48]}}, {"heads": 6, "classes": 3, "pool": "cls", "image": (32, 48)}),
    ({"architecture": "vit_odd_patch16_224"}, {"classes": 3, "pool": "cls"})], ids=str)
def test_a_timm_config_states_heads_by_the_architectures_name(tmp_path, changes, settings):
    stated = repository.read(folder(tmp_path, TIMM | changes))[1]
    assert stated.settings == settings and stated.source == f"config.json of timm's {(TIMM | changes)['architecture']}"


def test_an_older_timm_config_without_a_part_of_its_own_for_pretraining_is_read_too(tmp_path):
    stated = repository.read(folder(tmp_path, {"architecture": "vit_tiny_patch16_224", "num_classes": 2, "labels": ["ant", "bee"],
        **TIMM["pretrained_cfg"], "crop_pct": 0.5}))[1]
    assert stated.settings == {"heads": 3, "classes": 2} and stated.classes == ("ant", "bee") and stated.preprocessing.crop_fraction == 0.5


@pytest.mark.parametrize(("said", "names"), [
    ({"label_names": ["ant", "bee"]}, ("ant", "bee")), ({"label_names": {"1": "b", "0": "a"}, "label_descriptions": {"a": "ant"}},
    ("ant", "b")),
    ({"label_names": ["n01440764", "n01443537"]}, None), ({"label_names": ["n01440764"], "label_descriptions": {"n01440764": "tench"}},
    ("tench",)),
    ({"pretrained_cfg": {"label_names": ["ant"]}}, ("ant",)), ({"label_names": [["ant"]]}, None),
    ({"label_names": ["ant"], "label_descriptions": {"ant": 3}}, None)], ids=str)
def test_timms_class_names_go_by_their_descriptions_and_synset_numbers_are_none(tmp_path, said, names):
    assert repository.read(folder(tmp_path, TIMM | said))[1].classes == names


def test_the_architectures_that_timm_has_are_refused_or_plain_with_the_right_heads():
    timm, nn = pytest.importorskip("timm"), torch.nn
    plain = {*timm.list_models(module="vision_transformer"), *timm.list_models(module="deit")}
    known = 0
    for name in timm.list_models():
        try:
            repository.refuse({"architecture": name})
        except CheckpointError:
            continue
        assert name in plain, name
        with torch.device("meta"):
            model = timm.create_model(name, depth=1, num_classes=0)
        block = model.blocks[0]
        assert type(block).__name__ == "Block" and type(block.attn).__name__ == "Attention" and type(block.mlp).__name__ == "Mlp", name
        assert isinstance(block.mlp.act, nn.GELU) and block.mlp.act.approximate == "none" and isinstance(block.attn.q_norm,
            nn.Identity), name
        assert type(block.norm1).__name__ == "LayerNorm" and block.norm1.eps == 1e-6 and isinstance(model.norm_pre, nn.Identity), name
        assert model.attn_pool is None and model.global_pool in ("token", "avg"), name
        assert heads_of(name) == block.attn.num_heads, name
        known += 1
    assert known > 60                                                       # and not all are refused


# ---- what is refused


@pytest.mark.parametrize(("config", "said"), [
    *(({"model_type": kind}, "relative positions") for kind in ("beit", "swin", "swinv2", "data2vec-vision")),
    ({"model_type": "dinov3_vit"}, "rotary"),
    ({"model_type": "clip_vision_model"}, "a norm before the first block"), ({"model_type": "siglip"}, "pooling by attention"),
    ({"model_type": "convnextv2"}, "convolutions"),
    ({"architecture": "beit_base_patch16_224"}, "relative positions"),
    ({"architecture": "swin_tiny_patch4_window7_224"}, "relative positions"),
    ({"architecture": "vit_relpos_base_patch16_224"}, "relative positions"), ({"architecture": "vit_small_patch16_rope_224"}, "rotary"),
    ({"architecture": "vit_base_patch16_xp_224"}, "side by side"), ({"architecture": "vit_giant_patch14_dinov2"}, "SwiGLU"),
    ({"architecture": "vit_so400m_patch16_siglip_gap_256"}, "tanh form of GELU"),
    ({"architecture": "vit_base_patch16_rpn_224"}, "norms after"),
    (VIT | {"model_type": "dinov2", "use_swiglu_ffn": True}, "SwiGLU"), (TIMM | {"global_pool": "map"}, "pooling by attention"),
    (TIMM | {"global_pool": "avgmax"}, "pooling of another"),
    *((VIT | {"hidden_act": act}, "another activation than GELU")
    for act in ("quick_gelu", "gelu_new", "gelu_pytorch_tanh", "relu", None, ["gelu"])),
    *((TIMM | {"model_args": args}, "not a plain ViT") for args in (
        {"qk_norm": True}, {"act_layer": "quick_gelu"}, {"norm_layer": "rmsnorm"}, {"block_fn": "x"}, {"mlp_layer": "swiglu"},
        {"pool_include_prefix": True}, {"final_norm": False})),
], ids=lambda value: str(value)[-40:])
def test_what_is_no_plain_vit_is_refused_by_its_name(tmp_path, config, said):
    with pytest.raises(CheckpointError, match=r"^config.json describes '[\w-]+', which is not a plain ViT: \w") as refusal:
        repository.read(folder(tmp_path, config))
    assert said in str(refusal.value)
    with pytest.raises(CheckpointError):
        repository.check(tmp_path / "config.json")


@pytest.mark.parametrize("config", [{"model_type": "bert"}, {"architecture": "resmlp_12_224"}, {"architecture": "vitamin_base_224"}],
    ids=str)
def test_what_nobody_here_knows_is_not_guessed_at(tmp_path, config):
    with pytest.raises(CheckpointError, match="none of the plain ViTs that are known here"):
        repository.read(folder(tmp_path, config))


def test_exact_forms_of_gelu_are_let_through(tmp_path):
    repository.read(folder(tmp_path, VIT | {"hidden_act": "gelu_python"}))
    options = {"act_layer": "gelu", "norm_layer": "layernorm", "qk_norm": False, "drop_path_rate": 0.1}
    repository.read(folder(tmp_path, TIMM | {"model_args": options}))


DEEP = "[" * 100_000
HOSTILE = [
    "", "{", "[]", "3", "null", "NaN", DEEP, '{"a":' * 50_000, "\x00", '{"model_type": "vi', "\udcff".encode("utf-8", "surrogateescape"),
        '{"model_type": %s}' % ("9" * 5000),
    *(json.dumps(VIT | changes) for changes in (
        {"model_type": None}, {"model_type": ["vit"]}, {"model_type": "x" * 10**5}, {"model_type": "\u202evit\n"},
        {"num_attention_heads": 10**400}, {"num_attention_heads": "2"},
        {"num_attention_heads": -2}, {"num_attention_heads": 0}, {"num_attention_heads": 2.5}, {"num_attention_heads": True},
        {"num_attention_heads": [2]}, {"image_size": 10**9},
        {"image_size": [12]}, {"image_size": {"height": 12}}, {"image_size": "12"}, {"patch_size": 0}, {"layer_norm_eps": "x"},
        {"layer_norm_eps": 10**400},
        {"layer_norm_eps": float("nan")}, {"num_channels": 10**6}, {"hidden_act": {"a": 1}}, {"hidden_act": "x" * 10**5},
        {"model_type": "dinov2", "mlp_ratio": 1e300})),
    *(json.dumps(TIMM | changes) for changes in (
        {"architecture": None}, {"architecture": {"a": []}}, {"architecture": "vit" * 10**5}, {"num_classes": 10**9}, {"num_classes": "3"},
        {"global_pool": {"a": 1}}, {"global_pool": 7},
        {"model_args": {"num_heads": "six"}}, {"model_args": {"img_size": "big"}},
        {"model_args": {"in_chans": []}, "pretrained_cfg": {"input_size": ["a", 224, 224]}},
        {"pretrained_cfg": {"mean": "abc"}}, {"pretrained_cfg": {"mean": [1e300] * 3}}, {"pretrained_cfg": {"std": [0, 0, 0]}},
        {"pretrained_cfg": {"mean": [0.5, 0.5]}},
        {"pretrained_cfg": {"crop_pct": -1}}, {"pretrained_cfg": {"crop_pct": "x"}}, {"pretrained_cfg": {"input_size": [3, 0, 0]}})),
]


@pytest.mark.parametrize("config", HOSTILE, ids=lambda value: str(value)[-60:])
def test_a_config_that_lies_is_refused_in_one_short_sentence(tmp_path, config):
    folder(tmp_path, "x")
    (tmp_path / "config.json").write_bytes(config if isinstance(config, bytes) else config.encode("utf-8", "surrogatepass"))
    with pytest.raises(CheckpointError) as refusal:
        repository.read(tmp_path)
    said = str(refusal.value)
    assert len(said) < 300 and said.isprintable() and str(tmp_path) not in said


@pytest.mark.parametrize("processor", ["{", "[]", DEEP, *(json.dumps(said) for said in (
    {"size": "big"}, {"size": {"height": 0, "width": 12}}, {"size": {"shortest_edge": 10**9}}, {"size": {"longest_edge": 12}},
    {"size": [1, 2, 3]}, {"image_mean": [0.5, "a", 0.5]},
    {"image_mean": [0.5] * 10**4}, {"image_std": [0, 0, 0]}, {"image_std": 10**400}, {"rescale_factor": "x"}, {"rescale_factor": -1},
    {"do_center_crop": True, "crop_size": "x"}))],
    ids=lambda value: str(value)[:60])
def test_a_processor_that_lies_is_refused_in_one_short_sentence(tmp_path, processor):
    with pytest.raises(CheckpointError) as refusal:
        repository.read(folder(tmp_path, VIT, processor))
    assert len(str(refusal.value)) < 300 and str(refusal.value).isprintable()


def test_a_json_file_of_any_size_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(repository, "MAX_BYTES", 1000)
    with pytest.raises(CheckpointError, match="config.json has 0 MB, more than any such file"):
        repository.read(folder(tmp_path, VIT | {"x": "x" * 1000}))


# ---- which file holds the weights


@pytest.mark.parametrize(("files", "found"), [
    (["model.safetensors", "pytorch_model.bin", "other.pth"], "model.safetensors"),
    (["pytorch_model.bin", "training_args.bin"], "pytorch_model.bin"), (["mine.pth"], "mine.pth"),
    (["best.safetensors", "last.pt", "mistakes-test.safetensors"], "best.safetensors"), (["dino.pth", "a.txt"], "dino.pth")], ids=str)
def test_the_weights_go_by_the_name_that_hubs_give_them_or_are_the_only_ones(tmp_path, files, found):
    for name in files:
        (tmp_path / name).write_bytes(b"x")
    assert repository.read(tmp_path)[0].name == found


@pytest.mark.parametrize(("files", "said"), [
    ([], "should hold one file of weights and has none"), (["a.safetensors", "b.safetensors"],
    "several: name one of them, 'a.safetensors'"),
    (["model-00001-of-00002.safetensors", "model.safetensors.index.json"], "in several files"),
    (["notes.txt"], "has none, such as model.safetensors")], ids=str)
def test_a_folder_without_one_file_of_weights_is_refused(tmp_path, files, said):
    for name in files:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match=said):
        repository.read(tmp_path)


# ---- how pictures are prepared


@pytest.mark.parametrize(("said", "expected"), [
    ({"size": 224}, {"size": 224, "fit": "squash"}), ({"size": {"height": 224, "width": 192}}, {"size": (224, 192), "fit": "squash"}),
    ({"size": [24, 32]}, {"size": (24, 32), "fit": "squash"}), ({}, {"size": 12}),
    ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True},
    {"size": 224, "crop_fraction": 0.875}),
    ({"size": 256, "crop_size": 224, "do_center_crop": True}, {"size": 224, "crop_fraction": 0.875}),
    ({"size": {"shortest_edge": 224}, "crop_size": 256, "do_center_crop": True}, {"size": 256}),          # nothing to crop
    ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": False}, {"size": 256}),
    ({"size": 64, "resample": 3}, {"size": 64, "fit": "squash", "interpolation": "bicubic"}),
    ({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 28}, "crop_size": 14},
    {"size": 14, "crop_fraction": 0.5, "interpolation": "bicubic", **IMAGENET}),
    ({"size": 12, "image_mean": [0.1, 0.2, 0.3], "image_std": 0.25},
    {"size": 12, "fit": "squash", "mean": (0.1, 0.2, 0.3), "std": (0.25,) * 3}),
    ({"size": 12, "do_normalize": False}, {"size": 12, "fit": "squash", "mean": (0.0,) * 3, "std": (1.0,) * 3}),
    ({"size": 12, "do_rescale": False, "image_mean": [127.5] * 3, "image_std": [255] * 3},
    {"size": 12, "fit": "squash", "std": (1.0,) * 3}),
    ({"size": 12, "rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}, {"size": 12, "fit": "squash"}),
], ids=str)
def test_a_hugging_face_processor_is_read_as_what_it_does(said, expected):
    assert of_hugging_face(said, (12, 12)).preprocessing == Preprocessing(**{"interpolation": "bilinear", **expected})


@pytest.mark.parametrize(("said", "note"), [
    ({"size": 12, "resample": 1}, "lanczos"), ({"size": 12, "resample": 0}, "nearest"), ({"size": 12, "resample": "x"}, r"filter '\?'"), ({"size": 12, "resample": [3]}, r"filter '\?'"), ({"size": 12, "resample": {}}, r"filter '\?'"),
    ({"size": {"shortest_edge": 12}}, "does not crop"),
    ({"size": 12, "do_resize": False}, "does not resize"), ({"size": {"height": 256, "width": 256}, "crop_size": 224,
    "do_center_crop": True}, "presses a picture into a square")], ids=str)
def test_what_a_processor_does_otherwise_is_a_note(said, note):
    notes = of_hugging_face(said, (12, 12)).notes
    assert len(notes) == 1 and re.search(note, notes[0])


@pytest.mark.parametrize(("said", "expected"), [
    (TIMM["pretrained_cfg"], {"size": 224, "crop_fraction": 0.9}), ({}, {"size": 224, "crop_fraction": 0.875, **IMAGENET}),
    ({"input_size": [3, 32, 48], "crop_pct": 1.0, "crop_mode": "squash", **IMAGENET}, {"size": (32, 48), "fit": "squash", **IMAGENET}),
    ({"input_size": [3, 32, 32], "crop_pct": 0.95, "crop_mode": "squash", **IMAGENET}, {"size": 32, "crop_fraction": 0.95, **IMAGENET}),
    ({"interpolation": "bilinear", "crop_pct": None, **IMAGENET},
    {"size": 224, "crop_fraction": 0.875, "interpolation": "bilinear", **IMAGENET})], ids=str)
def test_timms_settings_are_read_as_what_they_do(said, expected):
    prepared = of_timm(said)
    assert prepared.preprocessing == Preprocessing(**expected) and len(prepared.notes) == (said.get("crop_mode") == "squash"
        and said["crop_pct"] < 1)


def test_a_grey_models_pictures_have_one_mean():
    assert of_timm({"mean": [0.25, 0.5, 0.75], "std": [0.25]}, 1, (12, 12)).preprocessing == Preprocessing(size=12, channels=1, mean=(0.5,),
        std=(0.25,), crop_fraction=0.875)
    assert of_hugging_face({"size": 12}, (12, 12), 1).preprocessing.mean == (0.5,)


# ---- with the libraries that write such folders


@pytest.mark.parametrize("kind", ["vit", "deit", "dinov2", "dinov2_with_registers"])
def test_what_hugging_face_saves_is_opened_with_nothing_more_said(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    names = {"vit": ("ViTForImageClassification", "ViTImageProcessor"),
        "deit": ("DeiTForImageClassificationWithTeacher", "DeiTImageProcessor"),
             "dinov2": ("Dinov2ForImageClassification", "BitImageProcessor"),
                 "dinov2_with_registers": ("Dinov2WithRegistersForImageClassification", "BitImageProcessor")}[kind]
    config = transformers.AutoConfig.for_model(kind, image_size=12, patch_size=4, hidden_size=10, num_hidden_layers=2,
        num_attention_heads=5, intermediate_size=14, mlp_ratio=3,
                                               num_register_tokens=2, id2label={0: "ant", 1: "bee", 2: "cat"},
                                                   label2id={"ant": 0, "bee": 1, "cat": 2})
    theirs = shaken(getattr(transformers, names[0])(config))
    theirs.save_pretrained(tmp_path)
    processor = getattr(transformers, names[1])()
    processor.save_pretrained(tmp_path)
    loaded, images = load(tmp_path), pictures((12, 12))
    with torch.no_grad():
        hold_equal(loaded.model, Said(theirs(images).logits, None), images, 1e-4)
    assert loaded.classes == ("ant", "bee", "cat") and loaded.config.heads == 5 and loaded.config.eps == config.layer_norm_eps
    crop = kind != "vit"
    assert loaded.preprocessing.fit == ("crop" if crop else "squash")
    assert loaded.preprocessing.mean == pytest.approx(tuple(processor.image_mean))
    assert loaded.preprocessing.interpolation == ("bicubic" if crop else "bilinear")


@pytest.mark.parametrize(("name", "options"), [
    ("vit_tiny_patch16_224", {"img_size": 32, "num_classes": 3}), ("vit_small_patch16_224", {"img_size": (32, 48), "num_classes": 3}),
    ("deit_tiny_distilled_patch16_224", {"num_classes": 3}),
    ("vit_wee_patch16_reg1_gap_256", {"num_classes": 5}), ("vit_small_patch14_reg4_dinov2", {"img_size": 28}),
    ("test_vit2", {"num_heads": 4}),
    ("vit_tiny_patch16_224", {"global_pool": "avg", "qkv_bias": False, "init_values": 0.1, "no_embed_class": True, "num_heads": 6})],
    ids=str)
def test_what_timm_saves_is_opened_with_nothing_more_said(name, options, tmp_path):
    timm = pytest.importorskip("timm")
    from timm.models._hub import save_for_hf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = shaken(timm.create_model(name, depth=1, **options))
    save_for_hf(theirs, tmp_path, safe_serialization=True, model_args={"depth": 1,
        **options})             # older ones write none by themselves
    loaded = load(tmp_path)
    images = pictures(loaded.config.image, 1)
    with torch.no_grad():
        features = theirs.forward_features(images)
        said = Said(theirs.forward_head(features) if loaded.config.classes else None, features)
        hold_equal(loaded.model, said, images, 1e-4)
    assert loaded.config.heads == theirs.blocks[0].attn.num_heads and loaded.preprocessing.size == loaded.config.image
    assert loaded.preprocessing.crop_fraction == theirs.pretrained_cfg["crop_pct"]
    assert loaded.preprocessing.mean == theirs.pretrained_cfg["mean"]

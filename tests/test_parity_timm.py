"""The same numbers as timm, through files with its names: logits, hidden states, and what its own AttentionExtract sees."""

from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from parity import Said, double, hold_equal, pictures, same, shaken
from vitdemo.checkpoint import load
from vitdemo.config import ViTConfig
from vitdemo.presets import SIZES

timm = pytest.importorskip("timm")
CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, mlp_dim=40, classes=3)
SIZE = {"img_size": 12, "patch_size": 4, "embed_dim": 10, "depth": 2, "num_heads": 2, "num_classes": 3}


def timm_model(kind: type | None = None, **options) -> nn.Module:
    return (kind or timm.models.vision_transformer.VisionTransformer)(**{**SIZE, **options})


def distilled(**options) -> nn.Module:
    return timm_model(timm.models.deit.VisionTransformerDistilled, **options)


def says(model: nn.Module, images: Tensor) -> Said:
    from timm.utils import AttentionExtract

    for block in model.blocks:
        block.attn.fused_attn = False                                       # the fused one has no weights to extract
    maps = AttentionExtract(model, method="hook")(images)
    return Said(model(images) if model.num_classes else None, model.forward_features(images), list(maps.values()))


AVERAGE = {"global_pool": "avg", "class_token": False}


@pytest.mark.parametrize(("options", "settings"), [
    ({}, {}),
    ({"mlp_ratio": 3.5}, {"mlp_dim": 35}),
    ({"mlp_ratio": 0.5, "depth": 5, "embed_dim": 14, "num_heads": 7}, {"mlp_dim": 7, "depth": 5, "dim": 14, "heads": 7}),
    ({"in_chans": 1}, {"channels": 1}),
    ({"qkv_bias": False}, {"qkv_bias": False}),
    ({"init_values": 1e-5}, {"layer_scale": True}),
    ({"reg_tokens": 4}, {"registers": 4}),
    ({"reg_tokens": 4, "no_embed_class": True}, {"registers": 4, "prefix_positions": 0}),
    ({"no_embed_class": True, "init_values": 1e-6}, {"prefix_positions": 0, "layer_scale": True}),
    ({"global_pool": "avg"}, {"pool": "mean", "norm_at": "pooled"}),
    (AVERAGE, {"pool": "mean", "norm_at": "pooled", "class_token": False}),
    ({**AVERAGE, "fc_norm": False}, {"pool": "mean", "class_token": False}),
    ({**AVERAGE, "reg_tokens": 3}, {"pool": "mean", "norm_at": "pooled", "class_token": False, "registers": 3}),
    ({**AVERAGE, "reg_tokens": 1, "no_embed_class": True, "qkv_bias": False},
     {"pool": "mean", "norm_at": "pooled", "class_token": False, "registers": 1, "prefix_positions": 0, "qkv_bias": False}),
    ({"img_size": 8, "reg_tokens": 4, "init_values": 1, "no_embed_class": True},
     {"image": (8, 8), "registers": 4, "layer_scale": True, "prefix_positions": 0}),
    ({"num_classes": 1000}, {"classes": 1000}), ({"num_classes": 21843}, {"classes": 21843}), ({"num_classes": 21841}, {"classes": 21841}),
    ({"num_classes": 0}, {"classes": 0}),
    ({"num_classes": 0, "reg_tokens": 4, "no_embed_class": True, "init_values": 1e-5},
     {"classes": 0, "registers": 4, "prefix_positions": 0, "layer_scale": True}),
], ids=str)
def test_timm_says_the_same(tmp_path, options, settings):
    loaded = same(timm_model(**options), tmp_path, settings.get("heads", 2), says)
    assert loaded.config == CONFIG.with_(**settings)


@pytest.mark.parametrize(("options", "beside", "settings"), [
    ({"img_size": (8, 20)}, {"img_size": [8, 20]}, {"image": (8, 20)}),
    ({"img_size": (12, 30), "patch_size": (4, 6)}, {"img_size": [12, 30]}, {"image": (12, 30), "patch": (4, 6)}),
    ({"global_pool": "avg", "fc_norm": False}, {"global_pool": "avg"}, {"pool": "mean"}),
    ({"fc_norm": True}, {"global_pool": "token"}, {"norm_at": "pooled"}),
    ({"img_size": 8, "reg_tokens": 5}, {"img_size": 8}, {"image": (8, 8), "registers": 5}),      # ten rows, which fit 3 x 3 patches too
], ids=str)
def test_what_a_config_beside_timm_s_weights_says_makes_it_the_same(tmp_path, options, beside, settings):
    def save(model: nn.Module, folder: Path) -> Path:
        torch.save({"state_dict": model.state_dict(), "config": beside}, folder / "theirs.pth")
        return folder / "theirs.pth"

    assert same(timm_model(**options), tmp_path, 2, says, save).config == CONFIG.with_(**settings)


def test_pixels_that_fill_no_patch_are_left_alone_as_timm_does(tmp_path):
    theirs, images = shaken(timm_model(img_size=(14, 21))), pictures((14, 21))
    torch.save({"state_dict": theirs.state_dict(), "config": {"img_size": [14, 21]}}, tmp_path / "x.pth")
    loaded = load(tmp_path / "x.pth", heads=2)
    assert loaded.config == CONFIG.with_(image=(12, 20))
    hold_equal(loaded.model, says(theirs, images), images[..., :12, :20], 1e-4)


@pytest.mark.parametrize("options", [{}, {"num_classes": 0}, {"init_values": 0.1}], ids=str)
def test_a_distilled_model_says_the_same(tmp_path, options):
    loaded = same(distilled(**options), tmp_path, 2, says)
    assert loaded.config == CONFIG.with_(distilled=True, classes=options.get("num_classes", 3), layer_scale="init_values" in options)


def test_the_real_tiny_model_of_timm_says_the_same(tmp_path):
    loaded = same(timm.create_model("vit_tiny_patch16_224", pretrained=False), tmp_path, 3, says, spread=0.1)
    assert loaded.config == SIZES["ti/16"].config.with_(mlp_dim=768)


def test_a_hidden_layer_in_the_head_as_older_versions_wrote_it_says_the_same(tmp_path):
    class Older(timm.models.vision_transformer.VisionTransformer):
        def __init__(self):
            super().__init__(**SIZE)
            self.pre_logits = nn.Sequential(OrderedDict(fc=nn.Linear(10, 10), act=nn.Tanh()))

        def forward(self, images):
            return self.head(self.pre_logits(self.forward_features(images)[:, 0]))

    assert same(Older(), tmp_path, 2, says).config == CONFIG.with_(head="mlp")


@pytest.mark.parametrize("image", [(20, 20), (8, 24), (4, 8), (28, 12)], ids=str)
@pytest.mark.parametrize(("options", "make"), [
    ({}, timm_model), ({"reg_tokens": 4}, timm_model), ({"no_embed_class": True, "reg_tokens": 4}, timm_model), (AVERAGE, timm_model),
    ({}, distilled),
], ids=lambda value: str(value) if isinstance(value, dict) else value.__name__)
def test_pictures_of_any_size_give_what_timm_gives_with_a_dynamic_image_size(tmp_path, options, make, image):
    same(make(**options, dynamic_img_size=True), tmp_path, 2, says, image=image)


# ---- the same model as others would store it


def saved(state: dict[str, Tensor], folder: Path) -> Path:
    torch.save(state, folder / "x.pth")
    return folder / "x.pth"


@pytest.mark.parametrize("chunk", [{"0": "0.0", "1": "0.1", "2": "1.2"}, {"0": "0.0", "1": "0.1", "2": "1.0"}, {"0": "0", "1": "1", "2": "2"}])
def test_dinov2_with_registers_under_its_own_names_and_in_chunks_says_the_same(tmp_path, chunk):
    """DINOv2 places registers after the class token's position is added; timm says the same with `no_embed_class` and a folded token."""
    def save(model: nn.Module, folder: Path) -> Path:
        token, row = torch.randint(-99, 99, (2, 1, 1, 10)) / 128            # whose sum is exact
        model.cls_token.data = token + row
        state = {**model.state_dict(), "cls_token": token, "mask_token": torch.zeros(1, 10)}
        state["pos_embed"], state["register_tokens"] = torch.cat((row, state["pos_embed"]), dim=1), state.pop("reg_token")
        return saved({f"teacher.backbone.blocks.{chunk[n.split('.')[1]]}.{n.split('.', 2)[2]}" if n.startswith("blocks.")
                      else f"teacher.backbone.{n}": t for n, t in state.items()}, folder)

    options = {"num_classes": 0, "reg_tokens": 4, "no_embed_class": True, "init_values": 1e-5, "depth": 3}
    loaded = same(timm_model(**options), tmp_path, 2, says, save)
    assert loaded.config == CONFIG.with_(classes=0, registers=4, prefix_positions=1, layer_scale=True, depth=3)


@pytest.mark.parametrize("letters", [("q", "k", "v"), ("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("to_q", "to_k", "to_v")])
def test_separate_queries_keys_and_values_say_the_same(tmp_path, letters):
    def save(model: nn.Module, folder: Path) -> Path:
        state = {}
        for name, tensor in model.state_dict().items():
            parts = zip(letters, tensor.chunk(3), strict=True) if ".qkv." in name else ()
            state |= {name.replace(".qkv.", f".{letter}."): part.clone() for letter, part in parts} or {name: tensor}
        return saved(state, folder)

    assert same(timm_model(), tmp_path, 2, says, save).config == CONFIG


@pytest.mark.parametrize("mark", [".", "_"])
def test_keys_without_a_bias_are_keys_with_a_bias_of_zeros(tmp_path, mark):
    """Whatever the keys' bias is, it adds the same to all scores of a query, and softmax takes it away: EVA and Whisper have none."""
    def save(model: nn.Module, folder: Path) -> Path:
        state = dict(model.state_dict())
        for name in [name for name in state if name.endswith(".qkv.bias")]:
            q, _, v = state.pop(name).chunk(3)
            state |= {name.replace("qkv.", letter + mark): part.clone() for letter, part in (("q", q), ("v", v))}
        return saved(state, folder)

    loaded = same(timm_model(), tmp_path, 2, says, save)
    assert not loaded.model.blocks[1].attn.qkv.bias[10:20].any() and loaded.model.blocks[1].attn.qkv.bias[20:].all()
    assert loaded.config == CONFIG and any("keys have no bias" in note for note in loaded.provenance["notes"])


@pytest.mark.parametrize("head", ["fc", "classifier", "head.fc", "heads.head", "linear", "model.head", "classifier.head", "head.0"])
@pytest.mark.parametrize("front", ["", "module.", "model.backbone.", "encoder.", "_orig_mod.module.net.vit."])
def test_heads_with_other_names_and_wrappers_say_the_same(tmp_path, front, head):
    theirs = shaken(timm_model(depth=1))
    state = {f"{front}{n}" if "head" not in n else n.replace("head", head): tensor for n, tensor in theirs.state_dict().items()}
    loaded, images = load(saved(state, tmp_path), heads=2), pictures((12, 12))
    hold_equal(loaded.model, Said(theirs(images), None), images, 1e-4)
    hold_equal(double(loaded.model), Said(theirs.double()(images.double()), None), images.double(), 1e-9)

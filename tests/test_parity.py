"""The same numbers as the published implementations, through files with their names: torch, torchvision, timm, Hugging Face.

Every parameter is drawn at random first: heads that start at zero, norms at one and biases at zero would let a wrong model pass.
"""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo.attention import weights
from vitdemo.checkpoint import Loaded, load
from vitdemo.config import ViTConfig
from vitdemo.model import Block, ViT, resize_positions
from vitdemo.presets import SIZES

CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, classes=3)


def shaken(module: nn.Module) -> nn.Module:
    """`module` in eval mode with every parameter drawn afresh: norms around one, all else around zero, nothing at either."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in module.named_parameters():
        noise = torch.randn(tensor.shape, generator=generator)
        tensor.data = 1 + 0.3 * noise if "norm" in name and name.endswith("weight") else 0.3 * noise
    return module.eval()


def pictures(image: tuple[int, int], count: int = 2) -> Tensor:
    return torch.randn(count, 3, *image, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def same(theirs: nn.Module, folder: Path, heads: int | None, answer=lambda model, images: model(images)) -> Loaded:
    """Save `theirs` under its own names, load it as ours, and hold the two equal: in float32 as loaded, then in float64."""
    torch.save(shaken(theirs).state_dict(), folder / "theirs.pt")
    loaded = load(folder / "theirs.pt", heads=heads)
    images = pictures(loaded.config.image)
    expected = answer(theirs, images)
    assert expected.std() > 0.1                                             # not a head of zeros
    torch.testing.assert_close(loaded.model(images), expected, rtol=1e-4, atol=1e-4)
    twin = ViT(loaded.config).double()
    twin.load_state_dict(loaded.model.state_dict())
    torch.testing.assert_close(twin(images.double()), answer(theirs.double(), images.double()), rtol=1e-9, atol=1e-9)
    return loaded


# ---- torch


@pytest.mark.parametrize("tokens", [1, 7])
def test_our_block_is_the_encoder_layer_of_torch(tokens):
    theirs = shaken(nn.TransformerEncoderLayer(10, 2, 40, dropout=0, activation="gelu", layer_norm_eps=1e-6, batch_first=True,
                                               norm_first=True))
    names = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj": "attn.proj", "linear1": "mlp.fc1", "linear2": "mlp.fc2"}
    state = theirs.double().state_dict()
    for old, new in names.items():
        state = {name.replace(old, new): tensor for name, tensor in state.items()}
    ours = Block(CONFIG).double()
    ours.load_state_dict(state)
    z = torch.randn(3, tokens, 10, dtype=torch.float64)
    torch.testing.assert_close(ours(z)[0], theirs(z), rtol=1e-12, atol=1e-12)


def test_weights_times_values_are_what_the_fused_attention_gives():
    q, k, v = torch.randn(3, 2, 5, 7, 11, dtype=torch.float64)
    torch.testing.assert_close(weights(q, k) @ v, F.scaled_dot_product_attention(q, k, v), rtol=1e-12, atol=1e-12)


# ---- torchvision


def torchvision_model(**options) -> nn.Module:
    vision_transformer = pytest.importorskip("torchvision").models.vision_transformer
    return vision_transformer.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2, hidden_dim=10, mlp_dim=28,
                                                num_classes=3, **options)


def test_torchvision_gives_the_same_logits(tmp_path):
    assert same(torchvision_model(), tmp_path, heads=2).config == CONFIG.with_(mlp_dim=28)


def test_torchvision_with_a_hidden_layer_in_its_head_gives_the_same_logits(tmp_path):
    assert same(torchvision_model(representation_size=10), tmp_path, heads=2).config.head == "mlp"


def test_names_of_older_torchvision_files_are_known(tmp_path):
    theirs = shaken(torchvision_model())
    state = {name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): tensor for name, tensor in theirs.state_dict().items()}
    torch.save({"model": {f"module.{name}": tensor for name, tensor in state.items()}}, tmp_path / "x.pth")
    loaded, images = load(tmp_path / "x.pth", heads=2), pictures((12, 12))
    torch.testing.assert_close(loaded.model(images), theirs(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "ours"), [("vit_b_16", "b/16"), ("vit_l_32", "l/32"), ("vit_h_14", "h/14")])
def test_the_published_sizes_of_torchvision_have_our_number_of_parameters(name, ours):
    models = pytest.importorskip("torchvision").models
    with torch.device("meta"):
        theirs, model = getattr(models, name)(), ViT(SIZES[ours].config)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in model.parameters())


def test_the_head_count_of_a_published_size_is_filled_in_and_noted(tmp_path):
    vision_transformer = pytest.importorskip("torchvision").models.vision_transformer
    theirs = vision_transformer.VisionTransformer(image_size=12, patch_size=4, num_layers=12, num_heads=3, hidden_dim=192, mlp_dim=8,
                                                  num_classes=3)
    loaded = same(theirs, tmp_path, heads=None)
    assert loaded.config.heads == 3
    assert any("published ones of this size have 3" in note for note in loaded.provenance["notes"])


# ---- timm


def timm_model(**options) -> nn.Module:
    module = pytest.importorskip("timm").models.vision_transformer
    size = {"img_size": 12, "patch_size": 4, "embed_dim": 10, "depth": 2, "num_heads": 2, "num_classes": 3}
    return module.VisionTransformer(**{**size, **options})


@pytest.mark.parametrize(("options", "settings"), [
    ({}, {}),
    ({"mlp_ratio": 3.5}, {"mlp_dim": 35}),
    ({"qkv_bias": False}, {"qkv_bias": False}),
    ({"init_values": 1e-5}, {"layer_scale": True}),
    ({"reg_tokens": 5}, {"registers": 5}),
    ({"reg_tokens": 5, "no_embed_class": True}, {"registers": 5, "prefix_positions": 0}),
    ({"no_embed_class": True}, {"prefix_positions": 0}),
    ({"global_pool": "avg"}, {"pool": "mean", "norm_at": "pooled"}),
    ({"global_pool": "avg", "class_token": False}, {"pool": "mean", "norm_at": "pooled", "class_token": False}),
    ({"global_pool": "avg", "class_token": False, "reg_tokens": 3},
     {"pool": "mean", "norm_at": "pooled", "class_token": False, "registers": 3}),
    ({"global_pool": "avg", "class_token": False, "fc_norm": False}, {"pool": "mean", "class_token": False}),
    ({"img_size": 8, "reg_tokens": 4, "init_values": 1, "no_embed_class": True},
     {"image": (8, 8), "registers": 4, "layer_scale": True, "prefix_positions": 0}),
], ids=str)
def test_timm_gives_the_same_logits(tmp_path, options, settings):
    loaded = same(timm_model(**options), tmp_path, heads=2)
    assert loaded.config == CONFIG.with_(**{"mlp_dim": 40, **settings})


def test_the_real_tiny_model_of_timm_gives_the_same_logits(tmp_path):
    timm = pytest.importorskip("timm")
    loaded = same(timm.create_model("vit_tiny_patch16_224", pretrained=False), tmp_path, heads=3)
    assert loaded.config == SIZES["ti/16"].config.with_(mlp_dim=768)


def test_a_distilled_model_gives_the_same_logits(tmp_path):
    deit = pytest.importorskip("timm").models.deit
    theirs = deit.VisionTransformerDistilled(img_size=12, patch_size=4, embed_dim=10, depth=2, num_heads=2, num_classes=3)
    assert same(theirs, tmp_path, heads=2).config == CONFIG.with_(distilled=True, mlp_dim=40)


def test_a_model_without_a_head_gives_the_same_hidden_states(tmp_path):
    theirs = shaken(timm_model(num_classes=0))
    torch.save(theirs.state_dict(), tmp_path / "x.pt")
    loaded = load(tmp_path / "x.pt", heads=2)
    images = pictures((12, 12))
    assert loaded.config.classes == 0 and loaded.classes == () and loaded.model(images).shape == (2, 0)
    torch.testing.assert_close(loaded.model.encode(images), theirs.forward_features(images), rtol=1e-4, atol=1e-4)


def test_dinov2_with_registers_under_its_own_names_gives_the_same_hidden_states(tmp_path):
    """DINOv2 places registers after the class token's position is added; timm says the same with `no_embed_class` and a folded token."""
    theirs = shaken(timm_model(num_classes=0, reg_tokens=4, no_embed_class=True, init_values=1e-5))
    state = dict(theirs.state_dict())
    state["register_tokens"], state["mask_token"] = state.pop("reg_token"), torch.zeros(1, 10)
    row = torch.randn(1, 1, 10)                                             # its class token has a position, which timm has folded in
    state["cls_token"], state["pos_embed"] = state["cls_token"] - row, torch.cat((row, state["pos_embed"]), dim=1)
    torch.save(state, tmp_path / "x.pth")
    loaded = load(tmp_path / "x.pth", heads=2)
    assert loaded.config.registers == 4 and loaded.config.prefix_positions == 1
    torch.testing.assert_close(loaded.model.encode(pictures((12, 12))), theirs.forward_features(pictures((12, 12))), rtol=1e-4, atol=1e-4)


def test_attention_is_what_a_block_of_timm_computes(tmp_path):
    theirs = timm_model(depth=3)
    loaded = same(theirs, tmp_path, heads=2)
    images = pictures((12, 12))
    trace, z = loaded.model.double().trace(images.double()), theirs._pos_embed(theirs.patch_embed(images.double()))
    for q, k, block in zip(trace.queries, trace.keys, theirs.blocks, strict=True):
        attn = block.attn
        their_q, their_k, _ = attn.qkv(block.norm1(z)).reshape(2, 10, 3, 2, 5).permute(2, 0, 3, 1, 4)
        torch.testing.assert_close(weights(q, k), (their_q * attn.scale @ their_k.transpose(-2, -1)).softmax(dim=-1), rtol=1e-9, atol=1e-9)
        z = block(z)


@pytest.mark.parametrize(("old", "new"), [((3, 3), (5, 5)), ((4, 6), (7, 2)), ((5, 5), (3, 3)), ((3, 4), (4, 3))])
def test_positions_are_resized_as_timm_does(old, new):
    layers = pytest.importorskip("timm.layers")
    table = torch.randn(1, 2 + old[0] * old[1], 10)
    expected = layers.resample_abs_pos_embed(table, list(new), list(old), num_prefix_tokens=2)
    torch.testing.assert_close(resize_positions(table, old, new), expected, rtol=1e-5, atol=1e-5)


# ---- Hugging Face


def hugging_face(kind: str, model: str, *, attention: str = "sdpa", **options) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    size = {"hidden_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 28, "image_size": 12, "patch_size": 4}
    config = getattr(transformers, f"{kind}Config")(**size, num_labels=3, attn_implementation=attention, **options)
    return getattr(transformers, f"{kind}{model}")(config)


def test_hugging_face_gives_the_same_logits(tmp_path):
    loaded = same(hugging_face("ViT", "ForImageClassification"), tmp_path, 2, answer=lambda model, images: model(images).logits)
    assert loaded.config == CONFIG.with_(mlp_dim=28, eps=1e-12)


def test_hugging_face_files_written_by_save_pretrained_give_the_same_logits(tmp_path):
    theirs = shaken(hugging_face("ViT", "ForImageClassification", qkv_bias=False))
    theirs.save_pretrained(tmp_path)
    loaded, images = load(tmp_path / "model.safetensors", heads=2), pictures((12, 12))
    assert not loaded.config.qkv_bias
    torch.testing.assert_close(loaded.model(images), theirs(images).logits, rtol=1e-4, atol=1e-4)


def test_attention_is_what_hugging_face_shows(tmp_path):
    theirs = shaken(hugging_face("ViT", "ForImageClassification", attention="eager"))
    torch.save(theirs.state_dict(), tmp_path / "x.pt")
    loaded, images = load(tmp_path / "x.pt", heads=2), pictures((12, 12)).double()
    trace, shown = loaded.model.double().trace(images), theirs.double()(images, output_attentions=True).attentions
    for q, k, expected in zip(trace.queries, trace.keys, shown, strict=True):
        torch.testing.assert_close(weights(q, k), expected, rtol=1e-6, atol=1e-6)                  # its softmax is always float32


@pytest.mark.parametrize(("model", "settings"), [
    ("ForImageClassificationWithTeacher", {"distilled": True}), ("ForImageClassification", {"registers": 1}),
])
def test_distilled_models_of_hugging_face_give_the_same_logits(tmp_path, model, settings):
    loaded = same(hugging_face("DeiT", model), tmp_path, 2, answer=lambda model, images: model(images).logits)
    assert loaded.config == CONFIG.with_(mlp_dim=28, eps=1e-12, **settings)


@pytest.mark.parametrize(("kind", "settings"), [("ViT", {"eps": 1e-12}), ("Dinov2", {"layer_scale": True}),
                                                ("Dinov2WithRegisters", {"layer_scale": True, "registers": 4, "prefix_positions": 1})])
def test_hugging_face_models_without_a_head_give_the_same_hidden_states(tmp_path, kind, settings):
    theirs = shaken(hugging_face(kind, "Model"))
    theirs.save_pretrained(tmp_path)
    loaded, images = load(tmp_path / "model.safetensors", heads=2), pictures((12, 12))
    assert loaded.config == CONFIG.with_(classes=0, mlp_dim=loaded.config.mlp_dim, **settings)
    torch.testing.assert_close(loaded.model.encode(images), theirs(images).last_hidden_state, rtol=1e-4, atol=1e-4)

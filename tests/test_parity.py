"""The same numbers as torch and torchvision, and comparisons that notice when they are not.

Every parameter is drawn at random first: heads that start at zero, norms at one and biases at zero would let a wrong model pass.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from parity import Said, double, hold_equal, pictures, same, shaken
from vitdemo.attention import weights
from vitdemo.checkpoint import load
from vitdemo.config import ViTConfig
from vitdemo.model import MLP, Block, ViT
from vitdemo.presets import SIZES

CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, classes=3)


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
    size = {"image_size": 12, "patch_size": 4, "num_layers": 2, "num_heads": 2, "hidden_dim": 10, "mlp_dim": 28, "num_classes": 3}
    return vision_transformer.VisionTransformer(**{**size, **options})


def torchvision_says(model: nn.Module, images: torch.Tensor) -> Said:
    x = model._process_input(images)
    tokens = model.encoder(torch.cat((model.class_token.expand(len(x), -1, -1), x), dim=1))
    z, maps = torch.cat((model.class_token.expand(len(x), -1, -1), x), dim=1) + model.encoder.pos_embedding, []
    for layer in model.encoder.layers:
        y = layer.ln_1(z)
        maps.append(layer.self_attention(y, y, y, need_weights=True, average_attn_weights=False)[1])
        z = layer(z)
    return Said(model(images), tokens, maps)


@pytest.mark.parametrize(("options", "settings"), [
    ({}, {}), ({"representation_size": 10}, {"head": "mlp"}), ({"image_size": 20, "num_layers": 3}, {"image": (20, 20), "depth": 3}),
    ({"mlp_dim": 10, "hidden_dim": 14, "num_classes": 21843}, {"mlp_dim": 10, "dim": 14, "classes": 21843}),
], ids=str)
def test_torchvision_says_the_same(tmp_path, options, settings):
    assert same(torchvision_model(**options), tmp_path, 2, torchvision_says).config == CONFIG.with_(**{"mlp_dim": 28, **settings})


def test_names_of_older_torchvision_files_are_known(tmp_path):
    def save(model: nn.Module, folder):
        state = {name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): t for name, t in model.state_dict().items()}
        torch.save({"model": {f"module.{name}": tensor for name, tensor in state.items()}}, folder / "x.pth")
        return folder / "x.pth"

    assert same(torchvision_model(), tmp_path, 2, torchvision_says, save).config == CONFIG.with_(mlp_dim=28)


@pytest.mark.parametrize(("name", "ours"), [("vit_b_16", "b/16"), ("vit_l_32", "l/32"), ("vit_h_14", "h/14")])
def test_the_published_sizes_of_torchvision_have_our_number_of_parameters(name, ours):
    models = pytest.importorskip("torchvision").models
    with torch.device("meta"):
        theirs, model = getattr(models, name)(), ViT(SIZES[ours].config)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in model.parameters())


def test_the_head_count_of_a_published_size_is_filled_in_and_noted(tmp_path):
    loaded = same(torchvision_model(num_layers=12, num_heads=3, hidden_dim=192, mlp_dim=8), tmp_path, None, torchvision_says)
    assert loaded.config.heads == 3
    assert any("published ones of this size have 3" in note for note in loaded.provenance["notes"])


# ---- what the comparisons notice


def exchanged(model: ViT) -> None:
    for block in model.blocks:
        q, k, v = block.attn.qkv.weight.data.chunk(3)
        block.attn.qkv.weight.data = torch.cat((k, q, v))


def other_eps(model: ViT) -> None:
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = 1e-12


def no_last_scale(model: ViT) -> None:
    model.norm.weight.data.fill_(1)


def positions_moved(model: ViT) -> None:
    model.pos_embed.data[:, 1:] = model.pos_embed.data[:, 1:].roll(1, 1)


@pytest.mark.parametrize("broken", [exchanged, other_eps, no_last_scale, positions_moved])
def test_a_model_that_differs_in_one_thing_is_noticed(tmp_path, broken):
    theirs = torchvision_model()
    ours, images = double(same(theirs, tmp_path, 2, torchvision_says).model), pictures((12, 12)).double()
    hold_equal(ours, torchvision_says(theirs, images), images, 1e-9)
    broken(ours)
    with pytest.raises(AssertionError, match="not close"):
        hold_equal(ours, torchvision_says(theirs, images), images, 1e-9)


def test_another_gelu_is_noticed(tmp_path, monkeypatch):
    theirs = torchvision_model()
    ours, images = double(same(theirs, tmp_path, 2, torchvision_says).model), pictures((12, 12)).double()
    said = torchvision_says(theirs, images)
    monkeypatch.setattr(MLP, "forward", lambda mlp, z: mlp.fc2(F.gelu(mlp.fc1(z), approximate="tanh")))
    with pytest.raises(AssertionError, match="not close"):
        hold_equal(ours, said, images, 1e-9)


def test_a_wrong_head_count_is_noticed(tmp_path):
    theirs = torchvision_model()
    same(theirs, tmp_path, 2, torchvision_says)
    with pytest.raises(AssertionError, match="not close"):
        hold_equal(double(load(tmp_path / "theirs.pt", heads=5).model), Said(theirs(pictures((12, 12)).double()), None),
                   pictures((12, 12)).double(), 1e-4)

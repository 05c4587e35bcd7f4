"""The same numbers as Hugging Face's transformers, through files it wrote: logits, hidden states, and its own `output_attentions`."""

from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from parity import Said, pictures, same, shaken
from vitdemo.checkpoint import CheckpointError, load
from vitdemo.config import ViTConfig
from vitdemo.model import resize_positions

transformers = pytest.importorskip("transformers")
CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, mlp_dim=28, classes=3)
OLD = {"eps": 1e-12}
HEADLESS = {"classes": 0}
DINOV2 = {"layer_scale": True, "mlp_dim": 40, "eps": 1e-6}
REGISTERS = {**DINOV2, "registers": 4, "prefix_positions": 1}


def hugging_face(kind: str, model: str, **options) -> nn.Module:
    size = {"hidden_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 28, "image_size": 12, "patch_size": 4}
    config = getattr(transformers, f"{kind}Config")(**{**size, "num_labels": 3, "attn_implementation": "eager", **options})
    return getattr(transformers, f"{kind}{model}")(config)


def says(model: nn.Module, images: Tensor) -> Said:
    """With its softmax in the precision of the rest, for it would round to float32 even in a model of float64."""
    whole = lambda scores, dim, dtype=None: torch.softmax(scores, dim)      # noqa: E731
    with mock.patch("torch.nn.functional.softmax", whole):
        out = model(images, output_attentions=True)
        body = getattr(model, model.base_model_prefix, model)
        return Said(getattr(out, "logits", None), body(images).last_hidden_state, out.attentions)


def written(model: nn.Module, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder / "model.safetensors"


def dumped(model: nn.Module, folder: Path) -> Path:
    torch.save({"state_dict": {f"module.{name}": tensor for name, tensor in model.state_dict().items()}}, folder / "theirs.pt")
    return folder / "theirs.pt"


@pytest.mark.parametrize("save", [written, dumped])
@pytest.mark.parametrize(("kind", "model", "options", "settings"), [
    ("ViT", "ForImageClassification", {}, OLD),
    ("ViT", "ForImageClassification", {"qkv_bias": False, "num_hidden_layers": 3}, {**OLD, "qkv_bias": False, "depth": 3}),
    ("ViT", "ForImageClassification", {"num_channels": 1, "num_labels": 21843}, {**OLD, "channels": 1, "classes": 21843}),
    ("ViT", "Model", {}, {**OLD, **HEADLESS}),
    ("DeiT", "ForImageClassificationWithTeacher", {}, {**OLD, "distilled": True}),
    ("DeiT", "ForImageClassification", {}, {**OLD, "registers": 1}),
    ("DeiT", "Model", {}, {**OLD, **HEADLESS, "distilled": True}),
    ("IJepa", "Model", {}, {**OLD, **HEADLESS, "class_token": False, "pool": "mean"}),
    ("IJepa", "ForImageClassification", {}, {**OLD, "class_token": False, "pool": "mean"}),
    ("Dinov2", "Model", {}, {**DINOV2, **HEADLESS}),
    ("Dinov2", "ForImageClassification", {}, {**DINOV2, "head": "both"}),
    ("Dinov2WithRegisters", "Model", {}, {**REGISTERS, **HEADLESS}),
    ("Dinov2WithRegisters", "ForImageClassification", {"num_register_tokens": 2}, {**REGISTERS, "head": "both", "registers": 2}),
], ids=str)
def test_hugging_face_says_the_same(tmp_path, kind, model, options, settings, save):
    loaded = same(hugging_face(kind, model, **options), tmp_path, 2, says, save)
    assert loaded.config == CONFIG.with_(**settings)


def test_a_head_that_reads_token_and_patches_reads_both_after_each_block(tmp_path):
    hugging_face("Dinov2", "ForImageClassification").save_pretrained(tmp_path)
    model, images = load(tmp_path / "model.safetensors", heads=2).model, pictures((12, 12))
    with torch.no_grad():
        trace, (z, _) = model.trace(images), model.blocks[0](model.embed(images))
        torch.testing.assert_close(trace.lens[:, 0], model.classify(model.norm(z)), rtol=1e-6, atol=1e-6)
    assert torch.equal(trace.lens[:, -1], trace.logits) and torch.equal(model(images), trace.logits)


def test_masked_autoencoders_say_the_same_when_nothing_is_masked(tmp_path):
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.vit = hugging_face("ViTMAE", "Model", mask_ratio=0.0)

        def forward(self, images):
            return self.vit(images, noise=torch.arange(9).expand(len(images), -1), output_attentions=True)

    def whole(model: nn.Module, images: Tensor) -> Said:
        with mock.patch("torch.nn.functional.softmax", lambda scores, dim, dtype=None: torch.softmax(scores, dim)):
            out = model(images)
            return Said(None, out.last_hidden_state, out.attentions)

    assert same(Whole(), tmp_path, 2, whole).config == CONFIG.with_(**OLD, **HEADLESS)


def test_a_decoder_beside_the_encoder_is_left_out_with_a_note(tmp_path):
    options = {"decoder_hidden_size": 8, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2, "decoder_intermediate_size": 6}
    theirs = shaken(hugging_face("ViTMAE", "ForPreTraining", **options))
    theirs.save_pretrained(tmp_path)
    loaded = load(tmp_path / "model.safetensors", heads=2)
    assert loaded.config == CONFIG.with_(**OLD, **HEADLESS)
    assert any("left out" in note and "decoder" in note for note in loaded.provenance["notes"])


# ---- positions for another size


@pytest.mark.parametrize(("old", "new"), [(3, (5, 5)), (5, (3, 3)), (4, (3, 6)), (6, (2, 9)), (37, (16, 16))], ids=str)
def test_positions_of_dinov2_with_registers_are_resized_as_it_does(old, new):
    theirs = shaken(hugging_face("Dinov2WithRegisters", "Model", image_size=4 * old)).embeddings
    table = theirs.position_embeddings.detach()
    expected = theirs.interpolate_pos_encoding(torch.zeros(1, 1 + new[0] * new[1], 10), 4 * new[0], 4 * new[1])
    torch.testing.assert_close(resize_positions(table, (old, old), new), expected.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["ViT", "DeiT", "Dinov2"])
def test_where_hugging_face_resizes_without_antialiasing_ours_stays_timm_s(kind):
    """Its ViT, DeiT and DINOv2 without registers resample without antialiasing, by another cubic (a = -0.75): alike, not equal."""
    theirs = shaken(hugging_face(kind, "Model", image_size=28)).embeddings
    prefix = theirs.position_embeddings.shape[1] - 49
    smooth = torch.linspace(-1, 1, 7)[:, None, None] + torch.linspace(-2, 2, 7)[None, :, None] * torch.linspace(0.5, 1, 10)
    table = torch.cat((torch.randn(1, prefix, 10), smooth.flatten(0, 1)[None]), dim=1)
    theirs.position_embeddings.data = table
    expected = theirs.interpolate_pos_encoding(torch.zeros(1, prefix + 80, 10), 32, 40).detach()
    mine = resize_positions(table, (7, 7), (8, 10))
    assert torch.equal(mine[:, :prefix], expected[:, :prefix])
    assert 1e-4 < (mine - expected).abs().max() < 0.15


@pytest.mark.parametrize("image", [(20, 20), (8, 16)], ids=str)
def test_pictures_of_any_size_give_what_dinov2_with_registers_gives(tmp_path, image):
    same(hugging_face("Dinov2WithRegisters", "Model"), tmp_path, 2, says, written, image=image)


# ---- what is no plain ViT


@pytest.mark.parametrize(("kind", "model", "options", "message"), [
    ("Beit", "ForImageClassification", {"use_relative_position_bias": True}, "relative positions, as in BEiT and Swin"),
    ("Beit", "Model", {"use_absolute_position_embeddings": True}, "BEiT's or EVA's kind"),
    ("Data2VecVision", "Model", {}, "BEiT's or EVA's kind"),
    ("Swin", "Model", {"embed_dim": 12, "depths": [1], "num_attention_heads": [2], "image_size": 32}, "relative positions"),
    ("CLIPVision", "Model", {}, "a norm before the first block, as in CLIP"),
    ("SiglipVision", "Model", {}, "pooling by attention, as in SigLIP"),
    ("DINOv3ViT", "Model", {"hidden_size": 16}, "DINOv3"),
    ("ConvNext", "Model", {"hidden_sizes": [8, 8, 8, 8]}, "stages of convolutions"),
    ("Dinov2", "Model", {"use_swiglu_ffn": True}, r"gated MLP \(SwiGLU\)"),
    ("VitDet", "Model", {}, "known"),
], ids=str)
def test_what_is_no_plain_vit_is_refused_by_name(tmp_path, kind, model, options, message):
    hugging_face(kind, model, **options).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load(tmp_path / "model.safetensors", heads=2)
    assert len(str(refusal.value)) < 400 and "\n" not in str(refusal.value)

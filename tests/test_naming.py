"""Whose names a file has: what wrappers put in front goes, several models in one file, and what is no plain ViT."""

import pytest
import torch

from parity import CONFIG, HUGGING_FACE, TORCHVISION, lively, renamed, state_of
from vitdemo import naming
from vitdemo.checkpoint import CheckpointError, load


# ---- several models in one file, and wrappers


@pytest.mark.parametrize(("kept", "dropped"), [
    ("teacher.backbone.", "student.backbone."), ("", "base_encoder_copy."), ("model_ema.", ""), ("target.", "online.net."),
    ("module.teacher.", "module.student."),
])
def test_of_several_models_in_one_file_one_is_read_with_a_note(tmp_path, kept, dropped):
    other = {f"{dropped}{name}": tensor + 1 for name, tensor in state_of().items() if "head" not in name}
    torch.save({"state_dict": {**other, **{f"{kept}{name}": tensor for name, tensor in state_of().items()}}}, tmp_path / "x.pt")
    loaded, images = load(tmp_path / "x.pt", heads=2), torch.randn(2, 3, 12, 12)
    assert torch.equal(loaded.model(images), lively()(images))
    assert any("the file holds 2 models" in note for note in loaded.provenance["notes"])


def test_projections_of_self_supervised_models_are_left_out_and_further_layers_of_a_head_are_not(tmp_path):
    encoder = {name: tensor for name, tensor in state_of().items() if "head" not in name}
    momentum = {f"module.momentum_encoder.{name}": tensor + 1 for name, tensor in encoder.items()}
    head = {"head.0.weight": torch.ones(5, 10), "head.1.weight": torch.ones(5), "head.1.running_mean": torch.ones(5)}
    moco = {f"module.base_encoder.{name}": tensor for name, tensor in {**encoder, **head}.items()}
    torch.save({"state_dict": {**momentum, **moco, "module.predictor.0.weight": torch.ones(5, 4)}}, tmp_path / "moco.pt")
    loaded, images = load(tmp_path / "moco.pt", heads=2), torch.randn(2, 3, 12, 12)
    assert loaded.config == CONFIG.with_(classes=0, mlp_dim=40)
    assert torch.equal(loaded.model.encode(images), lively().encode(images))
    torch.save({**encoder, "fc.fc1.weight": torch.ones(5, 10), "fc.bn1.running_mean": torch.ones(5)}, tmp_path / "msn.pt")
    assert load(tmp_path / "msn.pt", heads=2).config == CONFIG.with_(classes=0, mlp_dim=40)
    torch.save({**encoder, "head.0.weight": torch.ones(5, 10), "head.2.weight": torch.ones(3, 5)}, tmp_path / "mlp.pt")
    with pytest.raises(CheckpointError, match="unexpected 'head.0.weight', 'head.2.weight'"):
        load(tmp_path / "mlp.pt", heads=2)


def test_two_tensors_for_one_place_are_refused(tmp_path):
    torch.save({**state_of(), "model.norm.weight": torch.zeros(10)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="two tensors for 'norm.weight'"):
        load(tmp_path / "x.pt", heads=2)


@pytest.mark.parametrize("names", [HUGGING_FACE, TORCHVISION], ids=["hugging face", "torchvision"])
@pytest.mark.parametrize("front", ["", "encoder.", "module.encoder.model.", "vit.", "_orig_mod.module.backbone.vit.", "anything.at.all."])
@pytest.mark.parametrize("front_of_head", ["", "model.", None])
def test_wrappers_go_whatever_the_naming(tmp_path, names, front, front_of_head):
    state = {f"{front if front_of_head is None or 'classif' not in name and 'heads' not in name else front_of_head}{name}": tensor
             for name, tensor in renamed(names).items()}
    torch.save(state, tmp_path / "x.pt")
    loaded, images = load(tmp_path / "x.pt", heads=2), torch.randn(2, 3, 12, 12)
    torch.testing.assert_close(loaded.model(images), lively()(images), rtol=1e-4, atol=1e-4)


# ---- what is no plain ViT


@pytest.mark.parametrize(("name", "what"), [
    ("blocks.0.attn.relative_position_bias_table", "relative positions, as in BEiT and Swin"), ("rel_pos_bias.table", "relative positions"),
    ("blocks.0.attn.rel_pos_h", "relative positions"), ("layers.0.blocks.1.attn.cpb_mlp.0.weight", "relative positions"),
    ("rope.freqs", "rotary positions"), ("rope_embed.periods", "rotary positions"), ("norm_pre.weight", "a norm before the first block"),
    ("visual.ln_pre.weight", "a norm before the first block"), ("pre_layrnorm.bias", "a norm before the first block, as in CLIP"),
    ("attn_pool.latent", "pooling by attention"), ("blocks.0.attn.q_norm.weight", "norms of its queries and keys"),
    ("blocks.0.mlp.w12.weight", "gated MLP"), ("blocks.0.mlp.fc1_g.weight", "gated MLP"), ("blocks.1.mlp.w3.bias", "gated MLP"),
    ("blocks.0.attn.lambda_q1", "difference of two"), ("blocks.0.attns.1.norm.weight", "side by side"),
    ("blocks.0.in_proj.weight", "side by side"), ("blocks.1.gamma_1", "blocks of BEiT's or EVA's kind"),
    ("blocks.0.attn.proj_l.weight", "as in CaiT"), ("blocks.0.mlp.norm.weight", "more than two norms"),
    ("patch_embed.backbone.stem.conv.weight", "a convolutional network in place"), ("stages.0.blocks.0.conv_dw.weight", "as in ConvNeXt"),
])
def test_what_is_no_plain_vit_is_refused_by_what_is_special_about_it(tmp_path, name, what):
    for front in ("", "module.backbone."):
        torch.save({f"{front}{n}": t for n, t in {**state_of(), name: torch.zeros(3)}.items()}, tmp_path / "x.pt")
        with pytest.raises(CheckpointError, match=f"not a plain ViT: .*{what}") as refusal:
            load(tmp_path / "x.pt", heads=2)
        assert name.removeprefix("visual.") in str(refusal.value) and len(str(refusal.value)) < 300


@pytest.mark.parametrize("names", [
    ["stem.0.weight", "stages.0.blocks.0.conv_dw.weight"], ["features.0.0.weight", "features.1.0.attn.relative_position_bias_table"],
    ["vision_model.embeddings.patch_embedding.weight", "vision_model.pre_layrnorm.weight"], ["visual.conv1.weight", "visual.ln_pre.weight"],
])
def test_models_without_a_vit_s_names_are_refused_by_name_too(tmp_path, names):
    torch.save({name: torch.zeros(3) for name in names}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="the file is not a plain ViT: "):
        load(tmp_path / "x.pt")


@pytest.mark.parametrize(("change", "what"), [
    (lambda state: {**state, **{f"blocks.{i}.mlp.fc2.weight": torch.zeros(10, 20) for i in range(2)}}, "gated MLP"),
    (lambda state: {name: t for name, t in state.items() if not name.startswith("norm.")}, r"no norm after the last block \('norm.weight'"),
    (lambda state: {name: t for name, t in state.items() if "norm" not in name or "bias" not in name}, "norms without a bias"),
])
def test_what_is_no_plain_vit_by_its_shapes_is_refused_by_name(tmp_path, change, what):
    torch.save(change(state_of()), tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=f"not a plain ViT: .*{what}"):
        load(tmp_path / "x.pt", heads=2)


# ---- files made to hurt


def test_endless_names_and_endless_models_are_refused_at_once(tmp_path):
    state = {**state_of(), "model." * 200_000: torch.zeros(1)}
    with pytest.raises(CheckpointError, match="more than 50000 letters"):
        torch.save(state, tmp_path / "x.pt")
        load(tmp_path / "x.pt", heads=2)
    one = torch.zeros(1)
    with pytest.raises(CheckpointError, match="holds 30000 tensors"):
        naming.translate({f"x{i}": one for i in range(30_000)})
    with pytest.raises(CheckpointError, match="holds 900 models"):
        naming.translate({f"m{i}.patch_embed.proj.weight": one for i in range(900)})
    with pytest.raises(CheckpointError, match="more than 50000 letters"):
        naming.translate({"model." * 20_000 + name: tensor for name, tensor in state_of().items()})


# ---- odd, but all there


def test_layers_that_share_their_weights_load_and_are_apart_afterwards(tmp_path):
    state = state_of()
    state["blocks.1.mlp.fc1.weight"] = state["blocks.0.mlp.fc1.weight"]
    torch.save(state, tmp_path / "x.pt")
    model = load(tmp_path / "x.pt", heads=2).model
    first, second = (model.blocks[i].mlp.fc1.weight for i in range(2))
    assert torch.equal(first, second) and torch.equal(first, state["blocks.0.mlp.fc1.weight"]) and first.data_ptr() != second.data_ptr()


def test_a_tensor_stored_with_its_sign_turned_is_turned_back(tmp_path):
    state = state_of()
    torch.save({**state, "norm.bias": torch._neg_view(-state["norm.bias"])}, tmp_path / "x.pt")
    assert torch.equal(load(tmp_path / "x.pt", heads=2).model.norm.bias, state["norm.bias"])


def test_a_register_token_of_no_registers_is_none(tmp_path):
    torch.save({**state_of(), "reg_token": torch.zeros(1, 0, 10)}, tmp_path / "x.pt")
    assert load(tmp_path / "x.pt", heads=2).config.registers == 0


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_refused(tmp_path):
    torch.save({**state_of(), "norm.weight": torch.nested.nested_tensor([torch.ones(2)])}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match="not plain arrays|not loaded"):
        load(tmp_path / "x.pt", heads=2)


def test_a_name_too_long_for_a_file_is_a_sentence():
    with pytest.raises(CheckpointError, match="no file called"):
        load("a" * 5000 + ".pt")

"""What tests of foreign files share: models with every parameter drawn at random, other programs' names, and what both must say alike."""

import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitdemo.attention import weights
from vitdemo.checkpoint import Loaded, load
from vitdemo.config import ViTConfig
from vitdemo.model import ViT

CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, classes=3)


class Said(NamedTuple):
    """What one pass of a model says; None where it says nothing."""

    logits: Tensor | None           # (B, K)
    tokens: Tensor | None           # (B, T, D), the hidden states after the last norm
    attention: Sequence[Tensor] | None = None       # L tensors (B, H, T, T)


def shaken(module: nn.Module, spread: float = 0.3) -> nn.Module:
    """`module` in eval mode with every parameter drawn afresh: norms around one, all else around zero, nothing at either."""
    generator = torch.Generator().manual_seed(1)
    scales = {id(part.weight) for part in module.modules() if isinstance(part, nn.LayerNorm)}
    for tensor in module.parameters():
        tensor.data = spread * torch.randn(tensor.shape, generator=generator) + (id(tensor) in scales)
    return module.eval()


def pictures(image: tuple[int, int], count: int = 2, channels: int = 3) -> Tensor:
    return torch.randn(count, channels, *image, generator=torch.Generator().manual_seed(2))


def double(model: ViT) -> ViT:
    """The same model in float64."""
    twin = ViT(model.config).double().eval()
    twin.load_state_dict(model.state_dict())
    return twin


@torch.no_grad()
def hold_equal(ours: ViT, said: Said, images: Tensor, tolerance: float) -> None:
    """Raises AssertionError unless `ours` says of `images` what another model `said`, each number to `tolerance`."""
    trace = ours.trace(images)
    own = Said(trace.logits, trace.tokens, [weights(q, k) for q, k in zip(trace.queries, trace.keys, strict=True)])
    assert said.logits is not None or said.tokens is not None
    for mine, theirs in [(own.logits, said.logits), (own.tokens, said.tokens)]:
        if theirs is not None:
            assert theirs.std() > 0.1                                       # not a head of zeros
            torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)
    if said.attention is not None:
        assert len(said.attention) == len(own.attention)
        for mine, theirs in zip(own.attention, said.attention):
            assert theirs.std(dim=-1).mean() > 0.2 / theirs.shape[-1]       # not all tokens alike
            torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


@torch.no_grad()
def same(theirs: nn.Module, folder: Path, heads: int | None, says, save=None, image: tuple[int, int] | None = None,
         spread: float = 0.3) -> Loaded:
    """Save `theirs` under its own names (by `save(model, folder)`, which returns the file, or torch.save), load it as ours, and hold what
    both say equal: to 1e-4 in float32 as loaded, to 1e-9 in float64. `says(model, images)` is what `theirs` says, a `Said`."""
    shaken(theirs, spread)
    if save is None:
        torch.save(theirs.state_dict(), folder / "theirs.pt")
    loaded = load(save(theirs, folder) if save else folder / "theirs.pt", heads=heads)
    images = pictures(image or loaded.config.image, channels=loaded.config.channels)
    hold_equal(loaded.model, says(theirs, images), images, 1e-4)
    hold_equal(double(loaded.model), says(theirs.double(), images.double()), images.double(), 1e-9)
    return loaded


# ---- our own model, and as others would store it


def lively(config: ViTConfig = CONFIG) -> ViT:
    """A model none of whose parameters is near a special value, as after training."""
    generator = torch.Generator().manual_seed(0)
    model = ViT(config, generator).eval()
    for tensor in model.parameters():
        tensor.data.normal_(0.1, 0.5, generator=generator)
    return model


def state_of(config: ViTConfig = CONFIG) -> dict[str, Tensor]:
    return dict(lively(config).state_dict())


HUGGING_FACE = {
    "cls_token": "embeddings.cls_token", "pos_embed": "embeddings.position_embeddings",
    r"patch_embed\.proj": "embeddings.patch_embeddings.projection", r"^norm\.": "layernorm.", "^head": "classifier",
    r"blocks\.": "encoder.layer.",
    r"attn\.proj": "attention.output.dense", r"attn\.(query|key|value)\.": r"attention.attention.\1.", r"mlp\.fc1": "intermediate.dense",
    r"mlp\.fc2": "output.dense", "norm1": "layernorm_before", "norm2": "layernorm_after",
}
TORCHVISION = {
    "cls_token": "class_token", "pos_embed": "encoder.pos_embedding", r"patch_embed\.proj": "conv_proj", "^head": "heads.head",
    r"blocks\.": "encoder.layers.encoder_layer_", r"attn\.qkv\.": "self_attention.in_proj_", r"attn\.proj": "self_attention.out_proj",
    r"mlp\.fc1": "mlp.0", r"mlp\.fc2": "mlp.3", "norm1": "ln_1", "norm2": "ln_2", r"^norm\.": "encoder.ln.",
}


def renamed(names: dict[str, str]) -> dict[str, Tensor]:
    """The lively model as another program would store it."""
    state = state_of()
    if names is HUGGING_FACE:
        for name in [name for name in state if ".qkv." in name]:
            parts = state.pop(name).chunk(3)
            state |= {name.replace("qkv", letter): part.clone() for letter, part in zip(("query", "key", "value"), parts, strict=True)}
    return {reduce(lambda name, pair: re.sub(*pair, name), names.items(), name): tensor for name, tensor in state.items()}

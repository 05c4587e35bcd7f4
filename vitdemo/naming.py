"""Whose names a file's weights have, and the same weights under ours.

Known are timm, DeiT, DINO, DINOv2 and MAE (whose names are ours), torchvision, and Hugging Face's ViT, DeiT, MAE, MSN, I-JEPA and DINOv2.
What wrappers put in front (module., backbone., ...) goes. A model that is no plain ViT is refused by what is special about it.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from vitdemo.weightfile import CheckpointError

MOST_TENSORS, MOST_MODELS = 20_000, 8
LONGEST_NAME = 50_000


class Translated(NamedTuple):
    """Weights under our names."""

    state: dict[str, Tensor]        # as stored, but for queries, keys and values, which are joined
    source: str                     # whose names they were
    notes: list[str]                # what was left out or read as something else, one sentence each


_NAMINGS = {  # whose: (the patch projection's name, by which it is recognised; what to replace, in order)
    "timm": (r"patch_embed\.proj\.weight$", (
        (r"^register_tokens$", "reg_token"), (r"^pre_logits\.fc\.", "pre_logits."))),
    "torchvision": (r"conv_proj\.weight$", (
        (r"^class_token$", "cls_token"), (r"^conv_proj\.", "patch_embed.proj."), (r"^encoder\.pos_embedding$", "pos_embed"),
        (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."), (r"\.ln_([12])\.", r".norm\1."),
        (r"\.self_attention\.in_proj_", ".attn.qkv."), (r"\.self_attention\.out_proj\.", ".attn.proj."),
        (r"\.mlp\.(0|linear_1)\.", ".mlp.fc1."), (r"\.mlp\.(3|linear_2)\.", ".mlp.fc2."), (r"^encoder\.ln\.", "norm."),
        (r"^heads\.pre_logits\.", "pre_logits."))),
    "Hugging Face": (r"embeddings\.patch_embeddings\.projection\.weight$", (
        (r"^embeddings\.(cls|mask)_token$", r"\1_token"), (r"^embeddings\.distillation_token$", "dist_token"),
        (r"^embeddings\.register_tokens$", "reg_token"), (r"^embeddings\.position_embeddings$", "pos_embed"),
        (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."), (r"^(encoder\.)?layers?\.(\d+)\.", r"blocks.\2."),
        (r"\.attention\.(attention\.)?(query|key|value|[qkv]_proj|[qv]_bias)(?=\.|$)", r".attn.\2"),
        (r"\.attention\.(output\.dense|o_proj)\.", ".attn.proj."), (r"\.intermediate\.dense\.", ".mlp.fc1."),
        (r"\.output\.dense\.", ".mlp.fc2."), (r"\.layernorm_before\.", ".norm1."), (r"\.layernorm_after\.", ".norm2."),
        (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"), (r"^layernorm\.", "norm."),
        (r"^distillation_classifier\.", "head_dist."))),
}
_IN_ALL = (  # after each of them: queries, keys and values that stand apart, and what people call the head
    (r"\.attn\.(q|k|v)_bias$", r".attn.\1.bias"), (r"\.attn\.(?:to_)?(q|k|v)(?:uery|ey|alue|_proj)?\.", r".attn.\1."),
    (r"\.attn\.(?:in_proj_|(?:to_qkv|qkv_proj|in_proj)\.)", ".attn.qkv."), (r"\.attn\.(?:out_proj|o_proj|to_out\.0)\.", ".attn.proj."),
    (r"^(?:fc|linear|linear_head|(?:cls_)?(?:classifier|head)|heads)(?:\.(?:fc|linear|head|classifier))?\.(weight|bias)$", r"head.\1"))
_NUMBERED = r"^(?:head|fc|classifier)\.(\d+)\."                             # a head in a row of layers
_ANYWHERE = r"(?<![^.])(module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."        # put there by torch, also inside
_IN_FRONT = ("model", "backbone", "encoder", "net", "network", "vit", "visual", "student", "teacher")
_OWN_ENCODER = r"encoder\.(layers?\.(\d+|encoder_layer_\d+)\.|ln\.|pos_embedding$)"                  # no wrapper: a part of the model
_LEFT_OUT = (r"^mask_token$|^pooler\.|^n_averaged$|^head\.(mlp|last_layer\d?)\.|^fc\.(fc|bn)\d\."      # DINO's and MSN's heads
             r"|^(decoder|dino_head|ibot_head|predictor|projector|projection_head)")                 # another network beside it

_NOT_PLAIN = (  # what names show that no model here has, telling ones first
    (r"relative_position|rel_pos|rel_bias|cpb_mlp|attention_bias", "relative positions, as in BEiT and Swin"),
    (r"(^|\.)rope|rotary|inv_freq|rope_embed", "rotary positions, as in DINOv3 and EVA-02"),
    (r"patch_embed\.(backbone|stem|conv\d?|0)\.|^conv_proj\.\d", "a convolutional network in place of the cut into patches"),
    (r"(^|\.)(stages?|downsample_layers|features)\.\d|(^|\.)(dwconv|conv_dw|depthwise_conv|conv_stem)\.",
     "stages of convolutions or merged patches, as in ConvNeXt and Swin"),
    (r"(norm_pre|pre_layr?norm|ln_pre|patch_embed\.norm)\.", "a norm before the first block, as in CLIP"),
    (r"attn_?pool|\.probe$|^probe$", "pooling by attention, as in SigLIP"),
    (r"embeddings\.patch_embedding\.weight$", "a vision tower of CLIP's or SigLIP's kind"),
    (r"(\.|^)(q_norm|k_norm|norm_q|norm_k|query_norm|key_norm)\.", "norms of its queries and keys"),
    (r"\.(mlp|ffn)\.(w\d+|fc1_[gx]|gate_proj|weights_(in|out))\.", "a gated MLP (SwiGLU), as in the giant DINOv2"),
    (r"lambda_[qk]\d", "attention that is the difference of two, as in the Differential Transformer"),
    (r"\.(attns|ffns)\.\d|\.\d+\.in_(proj|norm)\.", "branches that work side by side in one block"),
    (r"\.attn\.(proj_[lw]|gating_param|temperature)|^blocks_token_only|^cls_attn_blocks", "attention of another kind, as in CaiT and XCiT"),
    (r"\.(gamma|lambda)_[12]$", "blocks of BEiT's or EVA's kind, with relative or rotary positions"),
    (r"\.(sub_norm|inner_attn_ln|ffn_ln)\.|\.(attn|mlp)\.norm\.", "more than two norms in a block"),
    (r"\.mlp\.(up|down)_proj\.", "blocks of DINOv3's kind, with rotary positions"),
)


def translate(raw: dict[str, Tensor]) -> Translated:
    """`raw` under our names. Raises CheckpointError if nobody's names are recognised, or if the model is no plain ViT."""
    if not raw:
        raise CheckpointError("the file holds no weights: nothing called patch_embed.proj.weight, for one")
    if len(raw) > MOST_TENSORS:
        raise CheckpointError(f"the file holds {len(raw)} tensors, more than any model that this program can use")
    if any(len(name) > LONGEST_NAME for name in raw):
        raise CheckpointError(f"the file names a tensor in more than {LONGEST_NAME} letters, as no program does")
    raw = _renamed(raw, lambda name: re.sub(_ANYWHERE, "", name))
    source, inner, others = _recognise(raw)
    notes = [f"the file holds {len(others) + 1} models; the one under {inner!r:.60} is read"] if others else []
    raw = _renamed({name: raw[name] for name in raw if not _of_others(name, inner, others)}, lambda name: _bare(name, inner))
    raw, projection = _one_head(raw)
    named = {name: _ours(name, source) for name in raw}
    left_out = [name for name, ours in named.items() if re.search(_LEFT_OUT, ours) or projection and re.match(_NUMBERED, name)]
    if left_out:
        notes.append(f"left out, being for training only or another network: {', '.join(f'{name:.60}' for name in left_out[:4])}")
    raw = {name: tensor for name, tensor in raw.items() if name not in set(left_out)}
    _refuse_by_name(raw)
    state = _counted(_renamed(raw, lambda name: named[name]))
    notes += _join(state)
    _refuse_by_shape(state)
    if "reg_token" in state and not state["reg_token"].numel():
        del state["reg_token"]                                              # a model of no registers
    if {"dist_token", "head.weight"} <= state.keys() and not {"head_dist.weight", "reg_token"} & state.keys():
        state["reg_token"] = state.pop("dist_token")
        notes.append("the distillation token has no head of its own: it is read as a register token")
    return Translated(state, source, notes)


def _renamed(state: dict[str, Tensor], rename: Callable[[str], str]) -> dict[str, Tensor]:
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        new = rename(name)
        if new in renamed:
            raise CheckpointError(f"the file holds two tensors for {new!r:.60}")
        renamed[new] = tensor
    return renamed


def _recognise(raw: dict[str, Tensor]) -> tuple[str, str, list[str]]:
    """Whose names these are, what stands in front of the patch projection's, and in front of further ones'."""
    for source, (anchor, _) in _NAMINGS.items():
        fronts = {name[:re.search(anchor, name).start()] for name in raw if re.search(r"(^|\.)" + anchor, name)}
        if len(fronts) > MOST_MODELS:
            raise CheckpointError(f"the file holds {len(fronts)} models, and nothing says which one to use: save one alone")
        if fronts:
            inner = min(fronts, key=lambda front: (not re.search(r"teacher|target|(^|[._])ema[._]", front), len(front)))
            return source, inner, sorted(fronts - {inner})
    _refuse_by_name(raw)
    raise CheckpointError(f"the file's weights are no Vision Transformer's whose names are known (patch_embed.proj.weight is missing); "
                          f"among its names are {', '.join(f'{name!r:.60}' for name in list(raw)[:4])}")


def _of_others(name: str, inner: str, others: Iterable[str]) -> bool:
    """Whether `name` belongs to one of the other models in the file: what stands in front of it starts as theirs and not as `inner`."""
    for other in others:
        ends = [match.end() for match in re.finditer(r"\.", other)]
        apart = next((other[:end] for end in ends if not inner.startswith(other[:end])), None)
        if name.startswith(apart) if apart else not name.startswith(inner):
            return True
    return False


def _bare(name: str, inner: str) -> str:
    """`name` without the words that wrappers put in front: those that stand in front of the patch projection, and usual ones."""
    words = {*_IN_FRONT, *inner.split(".")} - {""}
    while (word := name.partition(".")[0]) in words and not re.match(_OWN_ENCODER, name):
        name = name[len(word) + 1:]
    return name


def _one_head(raw: dict[str, Tensor]) -> tuple[dict[str, Tensor], bool]:
    """A head that is the only layer in its row, without its number; and whether the row has batch norms: a projection, for training."""
    numbers = {match[1] for name in raw if (match := re.match(_NUMBERED, name))}
    if len(numbers) == 1:
        return _renamed(raw, lambda name: re.sub(_NUMBERED, "head.", name)), False
    return raw, any(re.match(_NUMBERED, name) and name.endswith(".running_mean") for name in raw)


def _ours(name: str, source: str) -> str:
    for pattern, ours in (*_NAMINGS[source][1], *_IN_ALL):
        name = re.sub(pattern, ours, name)
    return name


def _refuse_by_name(names: Iterable[str]) -> None:
    for pattern, what in _NOT_PLAIN:
        name = next((name for name in names if re.search(pattern, name)), None)
        if name is not None:
            raise _not_plain(f"{what} ({name!r:.60})")


def _refuse_by_shape(state: dict[str, Tensor]) -> None:
    """What has usual names and is no plain ViT either."""
    first, second = (state.get(f"blocks.0.mlp.fc{i}.weight") for i in (1, 2))
    if first is not None and second is not None and first.ndim == second.ndim == 2 and first.shape[0] == 2 * second.shape[1] > 0:
        raise _not_plain(f"a gated MLP (SwiGLU), as in the giant DINOv2 (its first layer gives {first.shape[0]} numbers, its second takes "
                         f"{second.shape[1]})")
    if "blocks.0.norm1.weight" in state and "blocks.0.norm1.bias" not in state:
        raise _not_plain("norms without a bias ('blocks.0.norm1.bias' is missing)", "has one")
    if "blocks.0.norm1.weight" in state and not {"norm.weight", "norm.bias", "fc_norm.weight", "fc_norm.bias"} & state.keys():
        raise _not_plain("no norm after the last block ('norm.weight' is missing)", "has one")


def _not_plain(what: str, ours: str = "does not compute that") -> CheckpointError:
    return CheckpointError(f"the file is not a plain ViT: {what}; the model in this program {ours}, so it cannot show what that one does")


def _counted(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Blocks that are stored in chunks (DINOv2's "blocks.1.7.") counted through."""
    chunked = {match.groups() for name in state if (match := re.match(r"blocks\.(\d{1,6})\.(\d{1,6})\.", name))}
    number = {pair: index for index, pair in enumerate(sorted(chunked, key=lambda pair: (int(pair[0]), int(pair[1]))))}
    return _renamed(state, lambda name: re.sub(r"^blocks\.(\d{1,6})\.(\d{1,6})\.", lambda m: f"blocks.{number[m.groups()]}.", name))


def _join(state: dict[str, Tensor]) -> list[str]:
    """Queries, keys and values that stand apart become one tensor, in this order; a note if the keys alone have no bias."""
    notes = []
    for name in [name for name in state if re.search(r"\.attn\.q\.\w+$", name)]:
        parts = [re.sub(r"\.q\.(\w+)$", rf".{letter}.\1", name) for letter in "qkv"]
        shape = state[name].shape
        if name.endswith(".bias") and parts[1] not in state and len(shape) == 1:
            state[parts[1]] = torch.zeros_like(state[name])             # it would change all scores of a query alike: softmax drops it
            notes = ["its keys have no bias, which is the same as a bias of zeros"]
        if all(part in state and len(shape) and state[part].shape == shape for part in parts):
            state[name.replace(".q.", ".qkv.")] = torch.cat([state.pop(part) for part in parts])
    return notes

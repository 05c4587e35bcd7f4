"""Architectures by the names they have elsewhere: which are plain ViTs, what is special about those that are not, how many heads they have.

A name in a config.json decides what no tensor shows: timm's "rpn" models have a plain ViT's tensors and compute something else with them.
"""

import re
from collections.abc import Callable
from typing import Any

from vitdemo.weightfile import CheckpointError

TYPES = {"vit": "ViT", "deit": "DeiT", "vit_mae": "ViT MAE", "vit_msn": "ViT MSN", "ijepa": "I-JEPA", "dinov2": "DINOv2",
          "dinov2_with_registers": "DINOv2 with registers"}
_EXACT = ("gelu", "gelu_python")                # other names stand for approximations, which give other numbers

_TIMM = r"(vit|deit3?|flexivit|eva_large|test_vit\d?)(_|$)"                 # whose architectures may be plain
_HEADS = {"tiny": 3, "wee": 4, "xsmall": 4, "little": 5, "small": 6, "medium": 8, "mediumd": 8, "betwixt": 10, "base": 12, "so150m2": 13,
          "so150m": 14, "large": 16, "so400m": 16, "huge": 16, "giant": 16, "gigantic": 16}
_OTHER_HEADS = ((r"^vit_base_patch16_gap_224$", 16), (r"^vit_base_patch\d+_plus_", 14), (r"^test_vit2?$", 2))

_NOT_PLAIN = (  # what a type or an architecture is called -> what it has that no model here has
    (r"^beit3", "more than two norms in a block"),
    (r"beit|data2vec|swin|relpos|^samvit|maxx?vit|levit|layoutlm|^mvit|coat|focal", "relative positions"),
    (r"dinov3|rope|eva02|vit_pe_|lingbot|sapiens|^vjepa|pixtral", "rotary positions"),
    (r"naflex|siglip2", "positions of another kind"), (r"^eva(?!_large)", "blocks of another kind"),
    (r"siglip(?!_gap)|_map_|test_vit3", "pooling by attention"),
    (r"giantopt|(base_patch32|so400m_patch16)_siglip|large_patch16_siglip_gap_512", "the tanh form of GELU"),
    (r"clip", "a norm before the first block"),
    (r"_xp_|_\d+x[2-9]_|_d?pwee_", "branches that work side by side in one block"),
    (r"_dwee_|_dlittle_", "attention that is the difference of two"),
    (r"_rpn_", "norms after the branches of its blocks"),
    (r"giant_patch14_(reg\d_)?(dinov2|tipsv2)|aimv2", "a gated MLP (SwiGLU)"),
    (r"test_vit4", "norms without a mean (RMSNorm)"), (r"intern300m|radio", "no norm after the last block"),
    (r"_r\d*_|_resnet|_mci_|hybrid|^bit$|^dpt", "a convolutional network in place of the cut into patches"),
    (r"cait|xcit", "attention of another kind"),
    (r"convnext|resnet|efficientnet|mobile|^cvt|^pvt|poolformer|segformer|regnet", "stages of convolutions or merged patches"),
)
_CHANGED = {  # options of timm's that no tensor shows: what they may be -> what a model is like where they are anything else
    "act_layer": ((None, "gelu"), "another activation than GELU"), "norm_layer": ((None, "layernorm"), "another norm than LayerNorm"),
    "qk_norm": ((None, False), "norms of its queries and keys"), "block_fn": ((None,), "blocks of its own"),
    "mlp_layer": ((None,), "MLPs of its own"), "attn_layer": ((None,), "attention of its own"),
    "embed_layer": ((None,), "a cut into patches of its own"), "final_norm": ((None, True), "no norm after the last block"),
    "pool_include_prefix": ((None, False), "a mean that takes in the tokens before the patches"),
}


def refuse(said: dict[str, Any]) -> None:
    """Raises CheckpointError if this config.json describes a model that is no plain ViT, by what is special about it."""
    if "architecture" in said:
        name = _known(said["architecture"], lambda name: re.match(_TIMM, name))
        args, pool = options(said), pool_of(said)
        for option, (allowed, what) in _CHANGED.items():
            if args.get(option) not in allowed:
                raise _not_plain(name, what)
        if pool not in (None, "", "token", "avg"):
            raise _not_plain(name, "pooling by attention" if pool == "map" else "pooling of another kind")
    elif "model_type" in said:
        name = _known(said["model_type"], lambda name: name in TYPES)
        if said.get("use_swiglu_ffn"):
            raise _not_plain(name, "a gated MLP (SwiGLU)")
        if said.get("hidden_act", "gelu") not in _EXACT:
            raise _not_plain(name, "another activation than GELU" + f" ({said['hidden_act']!r:.30})" * isinstance(said["hidden_act"], str))


def _known(name: Any, plain: Callable[[str], Any]) -> str:
    """`name`, if it is that of a model that may be `plain`. Raises CheckpointError."""
    if not isinstance(name, str):
        raise CheckpointError("config.json does not name the model's architecture as a text: download it again")
    what = next((what for pattern, what in _NOT_PLAIN if re.search(pattern, name[:200])), None)
    if what:
        raise _not_plain(name, what)
    if not plain(name):
        raise CheckpointError(f"config.json describes {name[:200]!r:.60}, which is none of the plain ViTs that are known here")
    return name


def _not_plain(name: str, what: str) -> CheckpointError:
    return CheckpointError(f"config.json describes {name[:200]!r:.60}, which is not a plain ViT: {what}")


def heads_of(name: str) -> int | None:
    """How many heads timm's architecture of that name has; None where the name does not say it."""
    other = next((count for pattern, count in _OTHER_HEADS if re.search(pattern, name)), None)
    return other or next((_HEADS[word] for word in name.split("_") if word in _HEADS), None)


def pool_of(said: dict[str, Any]) -> Any:
    """What timm's classifier reads by this config.json: "token", "avg", ...; None where it does not say it."""
    return options(said).get("global_pool", said.get("global_pool"))


def options(said: dict[str, Any]) -> dict[str, Any]:
    """What a timm model was made with besides its architecture's own settings."""
    found = said.get("model_args")
    return found if isinstance(found, dict) else {}

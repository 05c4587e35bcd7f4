"""Other programs' weights in our words: whatever `torch.load` or safetensors gave -> (tensors under our names, ViTConfig, notes).

Known are timm, DeiT, DINO and DINOv2 (whose names are ours), torchvision, and Hugging Face's ViT, DeiT and DINOv2. All sizes are
read off the tensors; what a config beside them says must agree. The head count is in no tensor: it is stated, published or asked for.
"""

import math
import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vitdemo.config import LIMITS, ConfigError, ViTConfig
from vitdemo.weightfile import CheckpointError


class HeadsNeeded(CheckpointError):
    """The file does not say how many heads it was trained with. `choices` are the plausible answers, likely ones first."""

    def __init__(self, message: str, choices: tuple[int, ...]):
        super().__init__(message)
        self.choices = choices


class Foreign(NamedTuple):
    """A file of another program, understood."""

    state: dict[str, Tensor]        # under our names, as stored
    config: ViTConfig               # with one head as long as `heads` is not known
    heads: int | None
    classes: Any                    # what stands beside the weights as class names; not checked
    source: str                     # whose names they were
    notes: list[str]                # what had to be assumed or was left out, one sentence each


_NAMINGS = {  # whose: (the patch projection's name, by which it is recognised; what to replace, in order)
    "timm": (r"patch_embed\.proj\.weight$", (
        (r"^register_tokens$", "reg_token"), (r"^pre_logits\.fc\.", "pre_logits."))),
    "torchvision": (r"conv_proj\.weight$", (
        (r"^class_token$", "cls_token"), (r"^conv_proj\.", "patch_embed.proj."), (r"^encoder\.pos_embedding$", "pos_embed"),
        (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."), (r"\.ln_([12])\.", r".norm\1."),
        (r"\.self_attention\.in_proj_", ".attn.qkv."), (r"\.self_attention\.out_proj\.", ".attn.proj."),
        (r"\.mlp\.(0|linear_1)\.", ".mlp.fc1."), (r"\.mlp\.(3|linear_2)\.", ".mlp.fc2."), (r"^encoder\.ln\.", "norm."),
        (r"^heads\.pre_logits\.", "pre_logits."), (r"^heads\.((head|\d)\.)?", "head."))),
    "Hugging Face": (r"((vit|deit|dinov2|dinov2_with_registers)\.)?embeddings\.patch_embeddings\.projection\.weight$", (
        (r"^(vit|deit|dinov2|dinov2_with_registers)\.", ""), (r"^embeddings\.(cls|mask)_token$", r"\1_token"),
        (r"^embeddings\.distillation_token$", "dist_token"),
        (r"^embeddings\.register_tokens$", "reg_token"), (r"^embeddings\.position_embeddings$", "pos_embed"),
        (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."), (r"^(encoder\.layer|layers)\.(\d+)\.", r"blocks.\2."),
        (r"\.attention\.attention\.(q|k|v)\w+\.", r".attn.\1."), (r"\.attention\.(q|k|v)_proj\.", r".attn.\1."),
        (r"\.attention\.(output\.dense|o_proj)\.", ".attn.proj."), (r"\.intermediate\.dense\.", ".mlp.fc1."),
        (r"\.output\.dense\.", ".mlp.fc2."), (r"\.layernorm_before\.", ".norm1."), (r"\.layernorm_after\.", ".norm2."),
        (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"), (r"^layernorm\.", "norm."), (r"^(cls_)?classifier\.", "head."),
        (r"^distillation_classifier\.", "head_dist."))),
}
_LEFT_OUT = (r"^mask_token$|^pooler\.|^n_averaged$"                         # for training only, as is DINO's projection head
             r"|^head\.(mlp|last_layer)\.")
_PLACES = ("model", "state_dict", "model_state_dict", "teacher", "student", "model_ema")           # where training programs put them
_SAID = {  # our setting: the names under which config dicts hold it
    "image": ("image", "image_size", "img_size"), "patch": ("patch", "patch_size"), "channels": ("channels", "in_chans", "num_channels"),
    "dim": ("dim", "embed_dim", "hidden_size"), "depth": ("depth", "num_hidden_layers"),
    "heads": ("heads", "num_heads", "num_attention_heads"), "mlp_dim": ("mlp_dim", "intermediate_size"),
    "classes": ("classes", "num_classes"),
}
_PUBLISHED = {(192, 12): 3, (384, 12): 6, (768, 12): 12, (1024, 24): 16, (1280, 32): 16}           # (width, depth): heads


def understand(content: Any) -> Foreign:
    """What `content`, read from a foreign file, holds. Raises CheckpointError if that is no Vision Transformer with known names."""
    raw, beside = _weights(content)
    _check_memory(raw)
    source, raw = _recognise(raw)
    state, notes = _rename(raw, source)
    config = beside.get("config") if isinstance(beside.get("config"), dict) else {}
    said = _said(config)
    settings = _measure(state, said)
    for name, seen in settings.items():
        if said.get(name, seen) != seen:
            raise CheckpointError(f"the file's config and its tensors disagree: {name} is {said[name]} in one and {seen} in the other")
    if config.get("pool", config.get("global_pool")) in ("mean", "avg"):    # otherwise a class token that exists is what is read
        settings["pool"] = "mean"
    eps = 1e-12 if any(".layernorm_before." in name for name in raw) else 1e-6                      # Hugging Face's ViT and DeiT
    heads = said.get("heads")
    return Foreign(state, _config(**settings, eps=eps, heads=1 if heads is None else heads), heads, beside.get("classes"), source, notes)


def with_heads(found: Foreign, asked: int | None) -> tuple[ViTConfig, list[str]]:
    """The config with its head count, and all notes with one on where that comes from: the file, `asked`, or the published models.

    Raises HeadsNeeded if nobody says it, CheckpointError if the file says another one than `asked`.
    """
    width, depth = found.config.dim, found.config.depth
    published = _PUBLISHED.get((width, depth)) if found.source != "timm" else None
    if None not in (found.heads, asked) and found.heads != asked:
        raise CheckpointError(f"the file says that its model has {found.heads} heads, not {asked}")
    if found.heads is not None:
        heads, note = found.heads, f"the file says that its model has {found.heads} heads; nothing in it can confirm that"
    elif asked is not None:
        heads, note = asked, f"whoever loaded the file said that its model has {asked} heads"
    elif published:
        heads, note = published, f"the file does not say how many heads its model has; published ones of this size have {published}"
    else:
        divisors = [count for count in range(1, min(width // 2, LIMITS["heads"]) + 1) if width % count == 0] or [1]
        choices = tuple(sorted(divisors, key=lambda count: abs(math.log(width / count / 64)))[:12])          # most heads are 64 wide
        raise HeadsNeeded(f"the file does not say how many heads its model has, and a width of {width} does not tell: "
                          f"choose, for example {', '.join(map(str, choices[:3]))}", choices)
    return _config(**{**found.config.to_json(), "heads": heads}), [*found.notes, note]


def _config(**settings: Any) -> ViTConfig:
    try:
        return ViTConfig(**settings)
    except ConfigError as error:
        raise CheckpointError(f"the file describes a model that cannot be: {error!s:.200}") from None


def _weights(content: Any, depth: int = 3) -> tuple[dict[str, Tensor], dict[Any, Any]]:
    """The dict of tensors inside `content`, and all that stands beside it on the way there."""
    if not isinstance(content, dict) or not depth:
        return {}, {}
    for place in _PLACES:
        state, beside = _weights(content.get(place), depth - 1)
        if state:
            return state, {**content, **beside}
    return {name: value for name, value in content.items() if isinstance(name, str) and isinstance(value, Tensor)}, content


def _check_memory(state: dict[str, Tensor]) -> None:
    """Refuse tensors that claim more numbers than are stored (a few bytes can pose as any shape): copying them would fill the memory."""
    if any(tensor.layout != torch.strided or tensor.device.type != "cpu" for tensor in state.values()):
        raise CheckpointError("the file holds tensors that are not plain arrays of numbers")
    storages = [tensor.untyped_storage() for tensor in state.values()]
    stored = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    if sum(tensor.numel() * tensor.element_size() for tensor in state.values()) > stored:
        raise CheckpointError("the file's tensors claim more numbers than it holds")


def _recognise(state: dict[str, Tensor]) -> tuple[str, dict[str, Tensor]]:
    """Whose names these are, and the tensors without what wrappers put in front (module., _orig_mod., backbone., ...).

    The patch projection shows both: what stands before its name stands before all names, except that a head may sit one level higher.
    """
    if not state:
        raise CheckpointError("the file holds no weights: nothing called patch_embed.proj.weight, for one")
    for source, (anchor, _) in _NAMINGS.items():
        name = next((name for name in state if re.search(r"(^|\.)" + anchor, name)), None)
        if name is None:
            continue
        inner = name[:re.search(anchor, name).start()]
        outer = re.sub(r"[^.]+\.$", "", inner)
        return source, {name.removeprefix(inner if name.startswith(inner) else outer): tensor for name, tensor in state.items()}
    raise CheckpointError(f"the file's weights are no Vision Transformer's whose names are known (patch_embed.proj.weight is missing); "
                          f"among its names are {', '.join(f'{name!r:.60}' for name in list(state)[:4])}")


def _rename(raw: dict[str, Tensor], source: str) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors under our names, and a note on those left out."""
    state, left_out = {}, []
    for old, tensor in raw.items():
        new = old
        for pattern, ours in _NAMINGS[source][1]:
            new = re.sub(pattern, ours, new)
        if re.search(_LEFT_OUT, new):
            left_out.append(old)
        elif new in state:
            raise CheckpointError(f"the file holds two tensors for {new!r:.60}")
        else:
            state[new] = tensor
    for name in [name for name in state if re.search(r"\.attn\.q\.\w+$", name)]:
        parts = [re.sub(r"\.q\.(\w+)$", rf".{letter}.\1", name) for letter in "qkv"]
        if all(part in state and state[part].ndim and state[part].shape == state[name].shape for part in parts):
            state[name.replace(".q.", ".qkv.")] = torch.cat([state.pop(part) for part in parts])
    notes = [f"left out, being for training only: {', '.join(left_out[:4])}"] if left_out else []
    if {"dist_token", "head.weight"} <= state.keys() and not {"head_dist.weight", "reg_token"} & state.keys():
        state["reg_token"] = state.pop("dist_token")
        notes.append("the distillation token has no head of its own: it is read as a register token")
    return state, notes


def _said(config: dict[Any, Any]) -> dict[str, Any]:
    """What a config beside the weights says, under our names. Raises CheckpointError for values that are no sensible numbers."""
    said = {}
    for name, others in _SAID.items():
        value = next((config[other] for other in others if config.get(other) is not None), None)
        if value is None:
            continue
        values = value if isinstance(value, (list, tuple)) and len(value) == 2 and name in ("image", "patch") else [value]
        if any(type(number) is not int or not 0 <= number <= LIMITS[name] for number in values):
            raise CheckpointError(f"the file's config does not give {name} as a whole number from 0 to {LIMITS[name]}")
        said[name] = (values[0], values[-1]) if name in ("image", "patch") else value
    return said


def _measure(state: dict[str, Tensor], said: dict[str, Any]) -> dict[str, Any]:
    """The settings of ViTConfig that the tensors show; where they show nothing, a config's word is taken."""
    def size(name: str, axis: int = 0) -> int:
        return state[name].shape[axis] if name in state and state[name].ndim > axis else 0

    projection, rows = tuple(state["patch_embed.proj.weight"].shape), size("pos_embed", 1)
    if len(projection) != 4 or 0 in projection:
        raise CheckpointError(f"patch_embed.proj.weight has the shape {projection}, not (width, channels, rows, cols)")
    if not rows:
        raise CheckpointError("the weights do not fit the model: missing 'pos_embed', without which the size of its pictures is not known")
    patch, class_token = projection[2:], "cls_token" in state
    others = int("dist_token" in state) + size("reg_token", 1)
    layout = _layout(rows, class_token + others, patch, said.get("image"))
    if layout is None and not class_token:                                  # then it is the class token that is missing
        class_token, layout = True, _layout(rows, 1 + others, patch, said.get("image"))
    if layout is None:
        raise CheckpointError(f"pos_embed has {rows} rows, which are not {class_token + others} tokens in front and "
                              f"{'an image of {} x {} pixels'.format(*said['image']) if 'image' in said else 'a square of patches'}")
    pooled = "fc_norm.weight" in state
    return {
        "image": layout[0], "prefix_positions": layout[1], "patch": patch, "channels": projection[1], "dim": projection[0],
        "depth": max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d{1,6}\.", name)), default=-1) + 1,
        "mlp_dim": size("blocks.0.mlp.fc1.weight") or said.get("mlp_dim", 0), "classes": size("head.weight") or said.get("classes", 0),
        "head": "mlp" if "pre_logits.weight" in state else "linear", "pool": "mean" if pooled or not class_token else "cls",
        "class_token": class_token, "distilled": "dist_token" in state, "registers": size("reg_token", 1),
        "qkv_bias": "blocks.0.attn.qkv.bias" in state, "layer_scale": "blocks.0.ls1.gamma" in state,
        "norm_at": "pooled" if pooled else "tokens",
    }


def _layout(rows: int, prefix: int, patch: tuple[int, ...], image: tuple[int, int] | None) -> tuple[tuple[int, int], int] | None:
    """From the rows of pos_embed the image's (rows, cols) in pixels and `prefix_positions`; None if nothing fits.

    All prefix tokens have a position, or the class token alone (DINOv2's registers have none), or none of them (timm's
    `no_embed_class`). Without a stated image the grid is taken to be square.
    """
    for owned in dict.fromkeys((prefix, min(prefix, 1), 0)):
        side = math.isqrt(max(rows - owned, 0))
        pixels = image or (side * patch[0], side * patch[1])
        if side and (pixels[0] // patch[0]) * (pixels[1] // patch[1]) == rows - owned:
            return pixels, -1 if owned == prefix else owned
    return None

"""Other programs' weights in our words: whatever `torch.load` or safetensors gave -> (tensors under our names, ViTConfig, notes).

`vitdemo.naming` finds whose names they are. Here all sizes are read off the tensors; what is said beside them fills in what no tensor
shows, and must agree with the rest. The head count is in no tensor: it is stated, published or asked for.
"""

import math
import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vitdemo.config import LIMITS, ConfigError, Preprocessing, ViTConfig
from vitdemo.naming import translate
from vitdemo.weightfile import CheckpointError


class HeadsNeeded(CheckpointError):
    """The file does not say how many heads it was trained with. `choices` are the plausible answers, likely ones first."""

    def __init__(self, message: str, choices: tuple[int, ...]):
        super().__init__(message)
        self.choices = choices


class Stated(NamedTuple):
    """What files beside the weights say about them (a config.json, a list of published models)."""

    settings: dict[str, Any] = {}                   # of ViTConfig, only those that are said
    classes: tuple[str, ...] | None = None
    preprocessing: Preprocessing | None = None
    source: str = ""                                # who says so, in a few words: "config.json of a timm model"


class Foreign(NamedTuple):
    """A file of another program, understood."""

    state: dict[str, Tensor]        # under our names, as stored
    config: ViTConfig               # with one head as long as `heads` is not known
    heads: int | None
    classes: Any                    # what stands beside the weights as class names; not checked
    preprocessing: Preprocessing    # as stated, or as models with such names are usually shown pictures; then a note says so
    source: str                     # whose names they were
    notes: list[str]                # what had to be assumed or was left out, one sentence each


_PLACES = ("model", "state_dict", "model_state_dict", "teacher", "student", "model_ema", "ema", "target_encoder", "encoder", "backbone",
           "net", "network", "module", "weights", "params")                 # where training programs put them
_SAID = {  # our setting: the names under which config dicts hold it
    "image": ("image", "image_size", "img_size"), "patch": ("patch", "patch_size"), "channels": ("channels", "in_chans", "num_channels"),
    "dim": ("dim", "embed_dim", "hidden_size"), "depth": ("depth", "num_hidden_layers"),
    "heads": ("heads", "num_heads", "num_attention_heads"), "mlp_dim": ("mlp_dim", "intermediate_size"),
    "classes": ("classes", "num_classes"),
}
_POOLS = {"mean": "mean", "avg": "mean", "cls": "cls", "token": "cls"}
_PUBLISHED = {(192, 12): 3, (384, 12): 6, (768, 12): 12, (1024, 24): 16, (1280, 32): 16, (1408, 40): 16}      # (width, depth): heads


def understand(content: Any, stated: Stated = Stated()) -> Foreign:
    """What `content`, read from a foreign file, holds. What is `stated` settles what tensors cannot show, and must not contradict them.

    Raises CheckpointError if it is no plain Vision Transformer with known names.
    """
    raw, beside = _weights(content)
    _check_memory(raw)
    state, source, notes = translate(raw)
    said = _said(beside["config"]) if isinstance(beside.get("config"), dict) else {}
    for name, value in _pairs(stated.settings).items():
        if said.setdefault(name, value) != value:
            raise CheckpointError(f"the file's config and {stated.source or 'what is stated'} disagree: {name} is {said[name]} and {value}")
    seen = _measure(state, said)
    usual = {"heads": 1, "eps": 1e-12 if source == "Hugging Face" and not seen["layer_scale"] else 1e-6}            # its ViT and DeiT
    config = _config(**{**usual, **said, **seen})
    for name, value in said.items():
        shown = getattr(config, {"mlp_dim": "mlp_width", "prefix_positions": "position_rows"}.get(name, name))
        if shown != value and name != "image" and (name, value) not in (("mlp_dim", 0), ("prefix_positions", -1)):
            who = "the file's config" if name not in stated.settings else stated.source or "what is stated"
            raise CheckpointError(f"{who} and the tensors disagree: {name} is {value} in one and {shown} in the other")
    preprocessing, note = _preprocessing(stated.preprocessing, config, source, deit=any("dist" in name for name in raw))
    notes += [note] if note else []
    classes = beside.get("classes") if stated.classes is None else stated.classes
    return Foreign(state, config, said.get("heads"), classes, preprocessing, source, notes)


def with_heads(found: Foreign, asked: int | None) -> tuple[ViTConfig, list[str]]:
    """The config with its head count, and all notes with one on where that comes from: the file, `asked`, or the published models.

    Raises HeadsNeeded if nobody says it, CheckpointError if the file says another one than `asked`.
    """
    width, depth = found.config.dim, found.config.depth
    published = _PUBLISHED.get((width, depth))
    if None not in (found.heads, asked) and found.heads != asked:
        raise CheckpointError(f"the file says that its model has {found.heads} heads, not {asked}")
    if found.heads is not None:
        heads, note = found.heads, f"the file says that its model has {found.heads} heads; nothing in it can confirm that"
    elif asked is not None:
        heads, note = asked, f"whoever loaded the file said that its model has {asked} heads"
    elif published and found.source != "timm":                              # which has models of these sizes with other counts
        heads, note = published, f"the file does not say how many heads its model has; published ones of this size have {published}"
    else:
        divisors = [count for count in range(1, min(width // 2, LIMITS["heads"]) + 1) if width % count == 0] or [1]
        likely = sorted(divisors, key=lambda count: (count != published, abs(math.log(width / count / 64))))         # most are 64 wide
        choices = tuple(likely[:12])
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

MOST_SHARED = 4                         # times the numbers in a file may be used, by layers that share them


def _check_memory(state: dict[str, Tensor]) -> None:
    """Refuse tensors that claim more numbers than are stored (a few bytes can pose as any shape): copying them would fill the memory."""
    if any(tensor.is_nested or tensor.layout != torch.strided or tensor.device.type != "cpu" for tensor in state.values()):
        raise CheckpointError("the file holds tensors that are not plain arrays of numbers")
    storages = [tensor.untyped_storage() for tensor in state.values()]
    stored = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    claimed = [(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.numel() * tensor.element_size()) for tensor in state.values()]
    once = sum(size for *_, size in set(claimed))                           # layers may share their weights, which then count once
    if once > stored or sum(size for *_, size in claimed) > MOST_SHARED * stored:
        raise CheckpointError("the file's tensors claim more numbers than it holds")


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
    pool = config.get("pool", config.get("global_pool"))
    if isinstance(pool, str) and pool in _POOLS:                            # otherwise a class token that exists is what is read
        said["pool"] = _POOLS[pool]
    return said


def _pairs(settings: dict[str, Any]) -> dict[str, Any]:
    """Stated settings with sides as (rows, cols), as `_said` gives them."""
    def pair(value: Any) -> tuple[int, int]:
        return (value, value) if isinstance(value, int) else tuple(value)

    return {name: pair(value) if name in ("image", "patch") else value for name, value in settings.items()}


def _measure(state: dict[str, Tensor], said: dict[str, Any]) -> dict[str, Any]:
    """The settings of ViTConfig that the tensors show; where they show nothing, a config's word is taken."""
    def size(name: str, axis: int = 0) -> int:
        return state[name].shape[axis] if name in state and state[name].ndim > axis else 0

    projection, rows = tuple(state["patch_embed.proj.weight"].shape), size("pos_embed", 1)
    if len(projection) != 4 or 0 in projection:
        raise CheckpointError(f"patch_embed.proj.weight has the shape {projection}, not (width, channels, rows, cols)")
    if not rows:
        raise CheckpointError("the weights do not fit the model: missing 'pos_embed', a table of positions for each patch, which models "
                              "with relative or rotary positions do not have")
    if state["pos_embed"].ndim != 3:
        raise CheckpointError(f"pos_embed has the shape {tuple(state['pos_embed'].shape)}, not (1, rows, width)")
    patch, class_token = projection[2:], "cls_token" in state
    others = int("dist_token" in state) + size("reg_token", 1)
    layout = _layout(rows, class_token + others, patch, said)
    if layout is None and not class_token:                                  # then it is the class token that is missing
        class_token, layout = True, _layout(rows, 1 + others, patch, said)
    if layout is None:
        raise CheckpointError(f"pos_embed has {rows} rows, which are not {class_token + others} tokens in front and "
                              f"{'an image of {} x {} pixels'.format(*said['image']) if 'image' in said else _SQUARE}")
    pooled, head = "fc_norm.weight" in state, "mlp" if "pre_logits.weight" in state else "linear"
    return {
        "image": layout[0], "prefix_positions": layout[1], "patch": patch, "channels": projection[1], "dim": projection[0],
        "depth": max((int(name.split(".")[1]) for name in state if re.match(r"blocks\.\d{1,6}\.", name)), default=-1) + 1,
        "mlp_dim": size("blocks.0.mlp.fc1.weight") or said.get("mlp_dim", 0), "classes": size("head.weight") or said.get("classes", 0),
        "head": "both" if class_token and size("head.weight", 1) == 2 * projection[0] else head,
        "pool": said.get("pool", "mean" if pooled else "cls") if class_token else "mean",
        "class_token": class_token, "distilled": "dist_token" in state, "registers": size("reg_token", 1),
        "qkv_bias": "blocks.0.attn.qkv.bias" in state, "layer_scale": "blocks.0.ls1.gamma" in state,
        "norm_at": "pooled" if pooled else "tokens",
    }


_SQUARE = "a square of patches; where the grid is no square, a config beside the weights must say the image size"


def _layout(rows: int, prefix: int, patch: tuple[int, ...], said: dict[str, Any]) -> tuple[tuple[int, int], int] | None:
    """From the rows of pos_embed the image's (rows, cols) in pixels and `prefix_positions`; None if nothing fits.

    All prefix tokens have a position, or the class token alone (DINOv2's registers have none), or none of them (timm's
    `no_embed_class`). Without a stated image the grid is taken to be square, and of two that fit the larger.
    Pixels that fill no patch do not count.
    """
    stated = said.get("prefix_positions", 0)
    for owned in dict.fromkeys((prefix if stated == -1 else stated, 0, min(prefix, 1), prefix)):
        side = math.isqrt(max(rows - owned, 0))
        grid = tuple(pixels // step for pixels, step in zip(said["image"], patch)) if "image" in said else (side, side)
        if side and grid[0] * grid[1] == rows - owned:
            return (grid[0] * patch[0], grid[1] * patch[1]), -1 if owned == prefix else owned
    return None


_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def _preprocessing(stated: Preprocessing | None, config: ViTConfig, source: str, *, deit: bool) -> tuple[Preprocessing, str]:
    """How pictures are prepared, as `stated` or as is usual for models with such names, and a note on what was not said."""
    if config.channels not in (1, 3):
        raise CheckpointError(f"the model takes pictures of {config.channels} channels; only 1 (grey) and 3 (RGB) are known here")
    if stated:
        whole = tuple(side // step * step for side, step in zip(stated.size, config.patch))
        if whole == stated.size or 0 in whole:
            return stated, ""
        note = "pictures of {} x {} pixels are said to be its input; {} x {} of them fill patches".format(*stated.size, *whole)
        return stated.with_(size=whole), note
    if source == "torchvision":
        usual = {**_IMAGENET, "interpolation": "bilinear", "crop_fraction": 0.875}
    elif deit or config.layer_scale or not config.classes:                  # DeiT, DINO, DINOv2
        usual = {**_IMAGENET, "crop_fraction": 1.0 if config.layer_scale else 0.9}
    elif source == "Hugging Face":
        usual = {"interpolation": "bilinear", "fit": "squash"}
    else:
        usual = {"crop_fraction": 0.9 if min(config.image) >= 96 else 1.0}
    if config.channels == 1 or "mean" not in usual:
        usual |= {"mean": (0.5,) * config.channels, "std": (0.5,) * config.channels}
    values = "ImageNet's mean and deviation" if usual["mean"] == _IMAGENET["mean"] else "mean and deviation 0.5"
    note = f"the file does not say how pictures are prepared: {values} are assumed, as is usual for such models"
    return Preprocessing(size=config.image, channels=config.channels, **usual), note

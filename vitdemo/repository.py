"""A model's folder as hubs lay it out: weights, and config.json and preprocessor_config.json that say how to use them.

Known are timm's config.json and Hugging Face's of ViT, DeiT, MAE, MSN, I-JEPA and DINOv2. A model that is no plain ViT is refused by the
name it has there, before its weights are read or even fetched. The files come from anybody: whatever is in them is checked.
"""

import json
import re
from pathlib import Path
from typing import Any

from vitdemo.architectures import TYPES, heads_of, options, pool_of, refuse
from vitdemo.config import LIMITS
from vitdemo.foreign import Stated
from vitdemo.processors import Prepared, number, of_hugging_face, of_timm, sides, whole
from vitdemo.weightfile import CheckpointError

WEIGHTS = ("model.safetensors", "pytorch_model.bin")                        # what hubs call them
BEST = "best.safetensors"                       # in the folder of a training run of ours
CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
MAX_BYTES = 16 * 2**20                          # of a JSON file; 21,843 classes with their descriptions are 3 MB

_SETTINGS = (  # Hugging Face's names, and ours
    ("num_channels", "channels"), ("hidden_size", "dim"), ("num_hidden_layers", "depth"), ("num_attention_heads", "heads"),
    ("intermediate_size", "mlp_dim"))


def read(folder: str | Path) -> tuple[Path, Stated]:
    """The weights in `folder`, and what the files beside them say. Raises CheckpointError, also for what is no plain ViT by their word."""
    folder = Path(folder)
    found = next((folder / name for name in (*WEIGHTS, BEST) if (folder / name).is_file()), None)
    if found is None and any(folder.glob("*.index.json")):
        raise CheckpointError(f"the folder {folder.name!r:.80} holds its weights in several files: only one, {WEIGHTS[0]}, can be opened")
    others = [path for ending in ("*.safetensors", "*.pth", "*.pt", "*.bin") for path in sorted(folder.glob(ending))]
    kinds = [path for path in others if path.suffix == others[0].suffix]
    if found is None and len(kinds) != 1:
        several = f"several: name one of them, {kinds[0].name!r:.80} for example" if kinds else f"none, such as {WEIGHTS[0]}"
        raise CheckpointError(f"the folder {folder.name!r:.80} should hold one file of weights and has {several}")
    return found or kinds[0], beside(folder)


def beside(folder: Path) -> Stated:
    """What config.json and preprocessor_config.json in `folder` say; nothing where there are none, or none of a kind that is known."""
    said = _json(folder / CONFIG)
    refuse(said)
    if "architecture" in said:
        return Stated(_of_timm(said), _labels(said), _prepared(folder, said).preprocessing, f"{CONFIG} of timm's {said['architecture']}")
    if "model_type" not in said:
        return Stated()
    prepared = _prepared(folder, said)
    return Stated(_of_hugging_face(said), _named(said.get("id2label")), prepared and prepared.preprocessing,
                  f"{CONFIG} of Hugging Face's {TYPES[said['model_type']]}")


def remarks(folder: Path) -> list[str]:
    """How pictures are prepared there that cannot be done here, one sentence each."""
    prepared = _prepared(folder, _json(folder / CONFIG))
    return prepared.notes if prepared else []


def check(path: Path) -> None:
    """Raises CheckpointError if the config.json at `path` is that of a model that is no plain ViT."""
    refuse(_json(path))


def _json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is no such file. Raises CheckpointError."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CheckpointError(f"{path.name} has {path.stat().st_size / 2**20:.0f} MB, more than any such file")
        said = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path.name} beside the weights is not JSON: download it again") from None
    if not isinstance(said, dict):
        raise CheckpointError(f"{path.name} beside the weights is not a JSON object: download it again")
    return said


def _object(said: dict[str, Any], name: str) -> dict[str, Any]:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _prepared(folder: Path, said: dict[str, Any]) -> Prepared | None:
    """How pictures are prepared for the model whose config.json was `said`; None where nobody says."""
    if "architecture" in said:
        args, cfg = options(said), said if "pretrained_cfg" not in said else _object(said, "pretrained_cfg")
        size = cfg.get("input_size")
        channels = args.get("in_chans") or (size[0] if isinstance(size, list) and len(size) == 3 else 3)
        image = sides(args["img_size"], "img_size") if args.get("img_size") else None
        return of_timm(cfg, whole(channels, "in_chans", LIMITS["channels"]), image)
    processor = _json(folder / PROCESSOR)
    if not processor or "model_type" not in said:
        return None
    channels = whole(said.get("num_channels", 3), "num_channels", LIMITS["channels"])
    return of_hugging_face(processor, sides(said.get("image_size", 224), "image_size"), channels)


def _of_hugging_face(said: dict[str, Any]) -> dict[str, Any]:
    """The settings of ViTConfig that a Hugging Face config.json states."""
    settings: dict[str, Any] = {ours: whole(said[name], name, LIMITS[ours]) for name, ours in _SETTINGS if said.get(name) is not None}
    for name, ours in (("image_size", "image"), ("patch_size", "patch")):
        if said.get(name) is not None:
            settings[ours] = sides(said[name], name)
    if "dinov2" in said["model_type"] and "dim" in settings and said.get("mlp_ratio") is not None:          # there it alone counts
        settings["mlp_dim"] = whole(int(settings["dim"] * number(said["mlp_ratio"], "mlp_ratio")), "mlp_ratio", LIMITS["mlp_dim"])
    if said.get("layer_norm_eps") is not None:
        settings["eps"] = number(said["layer_norm_eps"], "layer_norm_eps")
    if isinstance(said.get("qkv_bias"), bool):
        settings["qkv_bias"] = said["qkv_bias"]
    return settings


def _of_timm(said: dict[str, Any]) -> dict[str, Any]:
    """The settings of ViTConfig that timm's config.json states, and the head count that its architecture's name stands for."""
    args, cfg, name = options(said), _object(said, "pretrained_cfg"), said["architecture"]
    settings: dict[str, Any] = {}
    heads = args.get("num_heads") or heads_of(name)
    classes = said.get("num_classes") or cfg.get("num_classes")
    if heads:
        settings["heads"] = whole(heads, "num_heads", LIMITS["heads"])
    if classes:
        settings["classes"] = whole(classes, "num_classes", LIMITS["classes"])
    if pool_of(said) in ("token", "avg"):
        settings["pool"] = "cls" if pool_of(said) == "token" else "mean"
    size = args.get("img_size") or (cfg or said).get("input_size")
    rows, cols = sides(size[-2:] if isinstance(size, list) else size or 224, "input_size")
    if rows != cols:                                                        # a square shows in the tensors
        settings["image"] = (rows, cols)
    return settings


def _named(labels: Any) -> tuple[str, ...] | None:
    """Class names from Hugging Face's {"0": name}, in the order of the logits; None where they are placeholders or not whole."""
    if not isinstance(labels, dict) or len(labels) > LIMITS["classes"]:
        return None
    names = [labels.get(str(index)) for index in range(len(labels))]
    return _texts(names) if names[:1] != ["LABEL_0"] else None


def _labels(said: dict[str, Any]) -> tuple[str, ...] | None:
    """Class names from timm's label_names, by their descriptions where it has them; None where they are numbers of ImageNet's synsets."""
    cfg = _object(said, "pretrained_cfg")
    labels = said.get("label_names") or said.get("labels") or cfg.get("label_names")
    described = _object(said, "label_descriptions") or _object(cfg, "label_descriptions")
    if isinstance(labels, dict):
        labels = [labels.get(str(index)) for index in range(min(len(labels), LIMITS["classes"]))]
    names = _texts(labels)
    if not names or not described and all(re.fullmatch(r"n\d{8}", name) for name in names):
        return None
    return _texts([described.get(name, name) for name in names])


def _texts(names: Any) -> tuple[str, ...] | None:
    whole_list = isinstance(names, list) and 0 < len(names) <= LIMITS["classes"] and all(isinstance(name, str) for name in names)
    return tuple(names) if whole_list else None

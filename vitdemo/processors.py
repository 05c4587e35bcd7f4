"""How a picture is prepared, as the files beside published weights say it: timm's pretrained_cfg, Hugging Face's preprocessor_config.json.

Both are JSON that nobody vouches for. What cannot be done here is read as the nearest thing that can, and a note says so.
"""

from typing import Any, NamedTuple

from vitdemo.config import LIMITS, ConfigError, Preprocessing
from vitdemo.weightfile import CheckpointError


class Prepared(NamedTuple):
    """What a processor does, as it can be done here."""

    preprocessing: Preprocessing
    notes: list[str]                # what it does otherwise, one sentence each


_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}               # PIL's numbers
_NEAREST = {"lanczos": "bicubic"}               # the rest is read as bilinear
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def whole(value: Any, name: str, most: int) -> int:
    """`value` from a JSON file, if it is a whole number from 1 to `most`. Raises CheckpointError."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 1 <= value <= most:
        raise CheckpointError(f"the file beside the weights does not give {name} as a whole number from 1 to {most}")
    return value


def number(value: Any, name: str) -> float:
    """`value` from a JSON file, if it is a number of a sensible size. Raises CheckpointError."""
    if type(value) not in (int, float) or not abs(value) < 1e6:              # nor does NaN pass
        raise CheckpointError(f"the file beside the weights does not give {name} as a number")
    return float(value)


def sides(value: Any, name: str, most: int = LIMITS["image"]) -> tuple[int, int]:
    """(rows, cols) from 224, [224, 224] or {"height": 224, "width": 224}. Raises CheckpointError."""
    if isinstance(value, dict):
        value = [value.get("height"), value.get("width")]
    rows, cols = value if isinstance(value, (list, tuple)) and len(value) == 2 else (value, value)
    return whole(rows, name, most), whole(cols, name, most)


def of_timm(said: dict[str, Any], channels: int = 3, image: tuple[int, int] | None = None) -> Prepared:
    """What timm's transform for testing does with a model's `pretrained_cfg`; `image` is its input where that was chosen otherwise."""
    size = said.get("input_size")
    size = image or sides(size[-2:] if isinstance(size, list) else 224, "input_size")
    mean, std = (_values(said.get(name) or usual, name, channels) for name, usual in zip(("mean", "std"), _IMAGENET))
    share = number(said.get("crop_pct") or 0.875, "crop_pct")
    interpolation, notes = _filter(said.get("interpolation") or "bicubic")
    mode = said.get("crop_mode") or "center"
    squash = mode == "squash" and share == 1
    if mode != "center" and not squash:
        notes.append(f"its pictures are said to be cut out in the way {mode!r:.20}; here it is a centred crop")
    return _prepared(notes, size=size, channels=channels, mean=mean, std=std, crop_fraction=min(share, 1.0), interpolation=interpolation,
                     fit="squash" if squash else "crop")


def of_hugging_face(said: dict[str, Any], image: tuple[int, int], channels: int = 3) -> Prepared:
    """What an image processor with these settings does for a model whose own pictures have the size `image`."""
    kind = str(said.get("image_processor_type") or said.get("feature_extractor_type") or "")
    crops = any(word in kind for word in ("DeiT", "Bit", "CLIP", "ConvNext"))                               # where nothing is said
    size, share, fit, notes = _looked_at(said, image, bool(said.get("do_center_crop", crops or "crop_size" in said)))
    resample = said.get("resample", 3 if crops else 2)
    interpolation, other = _filter(_FILTERS.get(resample, "?") if type(resample) is int else "?")
    usual = _IMAGENET if crops else ((0.5,), (0.5,))
    if said.get("do_normalize", True):
        names = ("image_mean", "image_std")
        mean, std = (_values(said.get(name) or values, name, channels) for name, values in zip(names, usual))
    else:
        mean, std = (0.0,) * channels, (1.0,) * channels
    # ours are of values between 0 and 1, theirs of values times `scale`
    scale = 255 * number(said.get("rescale_factor") or 1 / 255, "rescale_factor") if said.get("do_rescale", True) else 255
    mean, std = (tuple(value / scale for value in values) for values in (mean, std))
    return _prepared(notes + other, size=size, channels=channels, mean=mean, std=std, crop_fraction=share, interpolation=interpolation,
                     fit=fit)


def _looked_at(said: dict[str, Any], image: tuple[int, int], crop: bool) -> tuple[tuple[int, int], float, str, list[str]]:
    """(size, crop_fraction, fit, notes) of a Hugging Face processor that does or does not `crop` after resizing."""
    size, resize = said.get("size"), said.get("do_resize", True)
    edge = size.get("shortest_edge") if isinstance(size, dict) else size if crop and isinstance(size, int) else None
    if not resize:
        size = edge = None
    if crop:
        cut = sides(said.get("crop_size") or list(image), "crop_size")
        before = (edge,) * 2 if edge else sides(size, "size") if size else cut
        share = min(1.0, max(part / whole(side, "size", LIMITS["image"]) for part, side in zip(cut, before)))
        pressed = size and not edge and share < 1
        note = ["its processor presses a picture into a square before it crops it; here it is only cropped"] if pressed else []
        return cut, share, "crop", note
    if edge:
        edge = whole(edge, "size", LIMITS["image"])
        return (edge, edge), 1.0, "crop", ["its processor does not crop pictures; here it is shown the largest centred square"]
    if not resize:
        return image, 1.0, "crop", ["its processor does not resize pictures; here they get the size of those it learned from"]
    if not size:
        return image, 1.0, "crop", []
    return sides(size, "size"), 1.0, "squash", []


def _prepared(notes: list[str], **settings: Any) -> Prepared:
    try:
        return Prepared(Preprocessing(**settings), notes)
    except ConfigError as error:
        raise CheckpointError(f"the files beside the weights say how pictures are prepared, but that cannot be: {error!s:.200}") from None


def _filter(name: Any) -> tuple[str, list[str]]:
    """The interpolation that comes nearest to the one called `name`, and a note where it is another."""
    if name in ("bilinear", "bicubic"):
        return name, []
    near = _NEAREST.get(name, "bilinear") if isinstance(name, str) else "bilinear"
    return near, [f"its pictures are said to be resized by the filter {name!r:.20}; here it is {near}"]


def _values(value: Any, name: str, channels: int) -> tuple[float, ...]:
    """One number per channel; a single one stands for all, and of three for a grey picture the mean is taken."""
    found = value if isinstance(value, (list, tuple)) else [value]
    numbers = [number(one, name) for one in found[:8]]
    if len(numbers) == 1:
        numbers *= channels
    if channels == 1 and len(numbers) == 3:
        numbers = [sum(numbers) / 3]
    if len(numbers) != channels:
        raise CheckpointError(f"the file beside the weights gives {len(numbers)} numbers as {name} of {channels} channels")
    return tuple(numbers)

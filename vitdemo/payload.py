"""What a browser needs to draw an explanation, as plain JSON: the page sends it, and the report carries it inside.

Attention travels as 16-bit shares of each head's largest weight, base64; every name and sentence travels as text and is shown as text.
"""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

from vitdemo.config import ViTConfig
from vitdemo.explain import Explanation
from vitdemo.geometry import Geometry

LONGEST_SIDE = 640                              # of the picture that travels, in pixels
EXACT_SIDE = 96                                 # up to which the model's input travels without loss: there every pixel is seen
NAMES = 1000                                    # classes whose names travel
LENS_CLASSES = 6                                # classes drawn layer by layer


def payload(explanation: Explanation, *, key: str = "", about: str = "", truth: str = "") -> dict[str, Any]:
    """The value of the viewer: 50 to 100 kB for small models, and for large ones 3 bytes for each token, layer and head more. `key` is what
    the page asks more about this result by, `about` says which model, `truth` the true label if known. Without classes, `top`, `leading`,
    `knows` and the lens are empty and `known` is 0."""
    shown, crop = in_view(explanation.picture, explanation.geometry)
    layers, heads, rows, cols = explanation.attention.shape
    config = explanation.loaded.config
    return {
        "key": key, "picture": data_url(shown, "JPEG"), "height": shown.height, "width": shown.width,
        "seen": data_url(explanation.seen, "PNG" if max(explanation.seen.size) <= EXACT_SIDE else "JPEG"),
        "seen_size": [explanation.seen.height, explanation.seen.width], "crop": crop,
        "layers": layers, "heads": heads, "rows": rows, "cols": cols, "patch": list(config.patch),
        "prefix_names": prefix_names(config), "pool": config.pool, "positions": config.positions,
        "reads": pack(explanation.reads()), "uniform": explanation.uniform, "reader": explanation.reader,
        "top": explanation.top(), "leading": explanation.leading(), "knows": list(explanation.classes[:NAMES]),
        "known": len(explanation.classes), "lens": lens(explanation),
        "notes": list(explanation.notes), "about": about, "truth": truth, "model": explanation.model, "message": "",
    }


def pack(weights: np.ndarray, kind: str = "<u2") -> dict[str, Any]:
    """An array (layers, heads, T) of weights, in a fifth of the space: per head its largest weight, and shares of it as whole numbers of
    `kind`, 16 bits where nothing else is said."""
    layers, heads, tokens = weights.shape
    highs = weights.max(2)
    shares = weights / np.where(highs > 0, highs, 1)[..., None]
    data = np.round(shares.clip(0, 1) * np.iinfo(kind).max).astype(kind).tobytes()
    return {"shape": [layers, heads, tokens], "highs": highs.ravel().tolist(), "data": base64.b64encode(data).decode()}


def lens(explanation: Explanation) -> dict[str, Any]:
    """Class probabilities after every layer, for the classes that lead at the end or in some layer: `names`, and `shares` (layers, names)."""
    if not explanation.classes:
        return {"names": [], "shares": []}
    last = np.argsort(-explanation.probabilities, kind="stable")[:LENS_CLASSES // 2]
    leaders = [int(row.argmax()) for row in explanation.lens[::-1]]         # later layers first
    chosen = list(dict.fromkeys([*map(int, last), *leaders]))[:LENS_CLASSES]
    return {"names": [explanation.classes[i] for i in chosen], "shares": np.round(explanation.lens[:, chosen], 5).tolist()}


def prefix_names(config: ViTConfig) -> list[str]:
    """What the tokens before the first patch are called, in order."""
    names = ["class token"] * config.class_token + ["distillation token"] * config.distilled
    return names + [f"register {i + 1}" for i in range(config.registers)]


def in_view(picture: Image.Image, geometry: Geometry, longest: int = LONGEST_SIDE) -> tuple[Image.Image, list[float]]:
    """The picture as it travels, at most `longest` pixels a side, and the model's crop on it. Of a very long picture only the surroundings
    of the crop are shown."""
    first_row, first_col, last_row, last_col = geometry.window()
    shown = picture.crop((first_col, first_row, last_col, last_row))
    tall, wide = shown.height, shown.width
    shown.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    scale = shown.height / tall, shown.width / wide
    return shown, [(edge - start) * scale[i % 2] for i, (edge, start) in enumerate(zip(geometry.crop, (first_row, first_col) * 2, strict=True))]


def whole_picture(explanation: Explanation, longest: int = LONGEST_SIDE) -> dict[str, Any]:
    """All of the picture that was looked at, without margins, at most `longest` pixels a side."""
    shown = explanation.original.copy()
    shown.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    return {"picture": data_url(shown, "JPEG"), "height": shown.height, "width": shown.width}


def data_url(image: Image.Image, kind: str) -> str:
    """A picture as text that an <img> can show."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 88} if kind == "JPEG" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"

"""The viewer: one canvas component that shows a picture, its patches, its class and what every head of a layer reads.

The server sends one small value (`payload`) with the class token's maps of all layers and heads; layer, head, opacity, scale and hover are drawn
in the browser with no further request. Nothing in the value is ever pasted as HTML: the script writes text nodes and canvas pixels only.
"""

import base64
import io
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from PIL import Image

from vitdemo.explain import Explanation
from vitdemo.ui import words

LONGEST_SIDE = 640                              # of the picture that travels to the browser, in pixels
MARGIN = 0.5                                    # how far beyond the crop the picture is shown, in sides of the crop
STEPS = 65535                                   # attention travels as 16-bit shares of its layer's largest weight


class Viewer(gr.HTML):
    """Shows the value that `payload` or `message` made. `largest`: bytes of a file that may be uploaded."""

    def __init__(self, value: dict[str, Any] | None = None, *, largest: int = 20 * 10**6, **settings: Any):
        super().__init__(value, html_template=_part("html"), css_template=_part("css"),
                         js_on_load=_part("js").replace('"COLOURS"', _colours()).replace('"LIMIT"', str(largest)), apply_default_css=False, **settings)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


def payload(explanation: Explanation, *, about: str = "", truth: str = "") -> dict[str, Any]:
    """What the browser needs to draw `explanation`: about 50 to 100 kB. `about` says which model, `truth` the true label if known."""
    shown, crop = _in_view(explanation)
    layers, heads, rows, cols = explanation.attention.shape
    highs = explanation.attention.reshape(layers, -1).max(1)
    shares = explanation.attention / np.where(highs > 0, highs, 1)[:, None, None, None]
    return {
        "picture": _data_url(shown, "JPEG"), "height": shown.height, "width": shown.width,
        "seen": _data_url(explanation.seen, "PNG"), "seen_size": [explanation.seen.height, explanation.seen.width],
        "crop": crop,
        "layers": layers, "heads": heads, "rows": rows, "cols": cols,
        "attention": base64.b64encode(np.round(shares * STEPS).astype("<u2").tobytes()).decode(),
        "highs": highs.tolist(), "prefix": explanation.prefix_attention.sum(-1).tolist(), "uniform": explanation.uniform,
        "top": explanation.top(), "knows": list(explanation.classes[:100]), "known": len(explanation.classes),
        "notes": list(explanation.notes), "reader": explanation.reader, "about": about, "truth": truth, "message": "",
    }


def _in_view(explanation: Explanation) -> tuple[Image.Image, list[float]]:
    """The picture as it travels, and the model's crop on it. Of a very long picture only the surroundings of the crop are shown."""
    top, left, bottom, right = explanation.geometry.crop
    down, across = MARGIN * (bottom - top), MARGIN * (right - left)
    first_row, first_col = max(0, int(top - down)), max(0, int(left - across))
    box = (first_col, first_row, min(explanation.picture.width, round(right + across)), min(explanation.picture.height, round(bottom + down)))
    shown = explanation.picture.crop(box)
    tall, wide = shown.height, shown.width
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    scale = shown.height / tall, shown.width / wide
    return shown, [(edge - start) * scale[i % 2] for i, (edge, start) in enumerate(zip((top, left, bottom, right), (first_row, first_col) * 2, strict=True))]


def message(sentence: str = words.NO_PICTURE, *, failed: bool = False) -> dict[str, Any]:
    """A value without a picture: one sentence about why."""
    return {"message": sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith((".", "!", "?")) else "."), "failed": failed}


def _data_url(image: Image.Image, kind: str) -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 88} if kind == "JPEG" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _part(ending: str) -> str:
    return Path(__file__).with_name(f"viewer.{ending}").read_text(encoding="utf-8")


@cache
def _colours() -> str:
    """cividis as a JavaScript list of 256 [red, green, blue]."""
    from matplotlib import colormaps

    return str(colormaps["cividis"](np.arange(256), bytes=True)[:, :3].tolist())

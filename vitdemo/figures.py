"""Arrays -> pictures for export: PIL for overlays, matplotlib for sheets with scales.

Maps are (rows, cols) arrays of attention weights; `geometry` is a `vitdemo.geometry.Geometry`. Figures are made without pyplot, so
they are safe in threads and need no closing.
"""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from vitdemo.geometry import Geometry

COLOURS = "cividis"                             # reads the same with and without colour vision


def enlarge(image: Image.Image, side: int) -> Image.Image:
    """`image` with its longer side at `side` pixels or a little more, each pixel a whole square."""
    factor = max(1, -(-side // max(image.size)))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def patch_grid(picture: Image.Image, geometry: "Geometry", least: int = 640) -> Image.Image:
    """The picture, enlarged to at least `least` pixels where it is small, with the patches the model cuts; what was cropped away is greyed."""
    canvas, scale = _canvas(picture, geometry, least)
    draw = ImageDraw.Draw(canvas)
    for row in range(geometry.grid[0]):
        for col in range(geometry.grid[1]):
            top, left, bottom, right = (round(v * scale) for v in geometry.patch_rectangle(row, col))
            draw.rectangle((left, top, right, bottom), outline=(255, 255, 255), width=1)
    return canvas


def overlay(picture: Image.Image, geometry: "Geometry", weights: np.ndarray, *, high: float, opacity: float = 0.65,
            least: int = 320) -> Image.Image:
    """A map laid over the very pixels that were classified; colours run from 0 to `high`, each patch one even square."""
    canvas, scale = _canvas(picture, geometry, least)
    colours = colormaps[COLOURS](np.clip(weights / high if high > 0 else np.zeros_like(weights), 0, 1), bytes=True)[..., :3]
    layer = canvas.copy()
    draw = ImageDraw.Draw(layer)
    for row, col in np.ndindex(*weights.shape):
        top, left, bottom, right = (round(v * scale) for v in geometry.patch_rectangle(row, col))
        draw.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), fill=tuple(int(c) for c in colours[row, col]))
    return Image.blend(canvas, layer, opacity)


def layer_heads(picture: Image.Image, geometry: "Geometry", maps: np.ndarray, *, title: str, uniform: float) -> Figure:
    """All heads of one layer, `maps` (heads, rows, cols), over the picture on one scale, with a colour bar; the line marks 1/T."""
    high = float(maps.max())
    columns = min(4, len(maps))
    figure, axes = _sheet(-(-len(maps) // columns), columns, cell=2.6, title=title)
    for head, axis in enumerate(axes.flat):
        axis.axis("off")
        if head < len(maps):
            axis.imshow(overlay(picture, geometry, maps[head], high=high))
            axis.set_title(f"head {head + 1}: {maps[head].sum():.0%} on patches", fontsize=9)
    _colour_bar(figure, axes, high, uniform=uniform)
    return figure


def layers_by_heads(attention: np.ndarray, *, title: str) -> Figure:
    """Every map of a model, (layers, heads, rows, cols), raw and without the picture; one scale for each layer, named at its left."""
    layers, heads = attention.shape[:2]
    figure, axes = _sheet(layers, heads, cell=1.1, title=title)
    for layer, head in np.ndindex(layers, heads):
        axis, high = axes[layer, head], float(attention[layer].max())
        axis.imshow(attention[layer, head], cmap=COLOURS, vmin=0, vmax=high or 1, interpolation="nearest")
        axis.set_xticks([])
        axis.set_yticks([])
        if layer == 0:
            axis.set_title(f"head {head + 1}", fontsize=8)
        if head == 0:
            axis.set_ylabel(f"layer {layer + 1}\n0 to {high:.2f}", fontsize=7)
    return figure


def _canvas(picture: Image.Image, geometry: "Geometry", least: int) -> tuple[Image.Image, float]:
    """A copy of `picture` of drawable size, grey and pale where the model does not look, and its scale."""
    scale = min(max(1.0, least / max(picture.size)), 2000 / max(picture.size))
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    shown = picture.resize(size, Image.Resampling.NEAREST if scale >= 4 else Image.Resampling.BICUBIC)
    pale = Image.blend(shown.convert("L").convert("RGB"), Image.new("RGB", size, (235, 235, 235)), 0.7)
    top, left, bottom, right = (round(v * scale) for v in geometry.crop)
    pale.paste(shown.crop((left, top, right, bottom)), (left, top))
    return pale, scale


def _sheet(rows: int, columns: int, *, cell: float, title: str) -> tuple[Figure, np.ndarray]:
    figure = Figure(figsize=(columns * cell + 1.2, rows * cell + 0.6), dpi=120, layout="constrained")
    figure.suptitle(title, fontsize=10, parse_math=False)                   # a model's name may hold a dollar sign
    return figure, figure.subplots(rows, columns, squeeze=False)


def _colour_bar(figure: Figure, axes: np.ndarray, high: float, *, uniform: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.colorbar(ScalarMappable(Normalize(0, high or 1), COLOURS), ax=axes, shrink=0.8)
    bar.set_label("attention weight", fontsize=8)
    bar.ax.axhline(uniform, color="white", linewidth=1.5)
    bar.ax.axhline(uniform, color="black", linewidth=0.7)

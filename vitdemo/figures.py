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
            least: int = 320, colours: str = COLOURS) -> Image.Image:
    """A map laid over the very pixels that were classified; colours run from 0 to `high`, each patch one even square."""
    canvas, scale = _canvas(picture, geometry, least)
    cells = colormaps[colours](np.clip(weights / high if high > 0 else np.zeros_like(weights), 0, 1), bytes=True)[..., :3]
    layer = canvas.copy()
    draw = ImageDraw.Draw(layer)
    for row, col in np.ndindex(*weights.shape):
        top, left, bottom, right = (round(v * scale) for v in geometry.patch_rectangle(row, col))
        draw.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), fill=tuple(int(c) for c in cells[row, col]))
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


def layers_by_heads(attention: np.ndarray, *, title: str, prefix: np.ndarray | None = None, picture: Image.Image | None = None,
                    geometry: "Geometry | None" = None, colours: str = COLOURS, own_scale: bool = False) -> Figure:
    """Every map of a model, (layers, heads, rows, cols), raw; one scale for each layer, named at its left, or one for each head. With
    `prefix` (layers, heads, prefix) each map says how much goes to patches; with `picture` and `geometry` the picture stands beside."""
    layers, heads = attention.shape[:2]
    aside = picture is not None and geometry is not None
    figure, axes = _sheet(layers, heads + 2 * aside, cell=1.1, title=title)
    if aside:
        grid = axes[0, 0].get_gridspec()
        for axis in axes[:, :2].flat:
            axis.remove()
        axis = figure.add_subplot(grid[: max(1, min(2, layers)), :2])
        axis.imshow(patch_grid(picture, geometry, least=480))
        axis.axis("off")
    for layer, head in np.ndindex(layers, heads):
        axis, high = axes[layer, head + 2 * aside], float(attention[layer, head].max() if own_scale else attention[layer].max())
        axis.imshow(attention[layer, head], cmap=colours, vmin=0, vmax=high or 1, interpolation="nearest")
        axis.set_xticks([])
        axis.set_yticks([])
        if prefix is not None:
            axis.set_xlabel(f"{1 - prefix[layer, head].sum():.0%} on patches", fontsize=6, labelpad=2)
        if layer == 0:
            axis.set_title(f"head {head + 1}", fontsize=8)
        if head == 0:
            axis.set_ylabel(f"layer {layer + 1}" + ("" if own_scale else f"\n0 to {high:.2f}"), fontsize=7)
    return figure


def one_map(picture: Image.Image, geometry: "Geometry", weights: np.ndarray, *, high: float, uniform: float | None, title: str, subtitle: str,
            unit: str, foot: str, opacity: float = 0.65, colours: str = COLOURS) -> Figure:
    """One map (rows, cols) large over the picture with the patch grid, on colours from 0 to `high`; `uniform` is marked on the colour bar."""
    tall = picture.height / picture.width
    figure = Figure(figsize=(6.4, min(11.0, max(3.2, 5.2 * tall + 1.3))), dpi=120, layout="constrained")
    figure.suptitle(title, fontsize=12, parse_math=False)
    axis = figure.subplots()
    axis.set_title(subtitle, fontsize=9, parse_math=False)
    laid = overlay(picture, geometry, weights, high=high, opacity=opacity, least=900, colours=colours)
    axis.imshow(laid)
    scale = laid.width / geometry.original[1]
    top, left, bottom, right = (edge * scale for edge in geometry.crop)
    rows, cols = geometry.grid
    axis.hlines(np.linspace(top, bottom, rows + 1) - 0.5, left - 0.5, right - 0.5, colors="white", linewidth=0.6, alpha=0.7)
    axis.vlines(np.linspace(left, right, cols + 1) - 0.5, top - 0.5, bottom - 0.5, colors="white", linewidth=0.6, alpha=0.7)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_xlabel(foot, fontsize=8, parse_math=False)
    for edge in axis.spines.values():
        edge.set_visible(False)
    _colour_bar(figure, np.array([axis]), high, uniform=uniform, colours=colours, unit=unit)
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


def _colour_bar(figure: Figure, axes: np.ndarray, high: float, *, uniform: float | None, colours: str = COLOURS, unit: str = "attention weight") -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.colorbar(ScalarMappable(Normalize(0, high or 1), colours), ax=axes, shrink=0.8)
    bar.set_label(unit + ("" if uniform is None else f" (line: an even share, {uniform:.4f})"), fontsize=8)
    if uniform is not None and uniform <= (high or 1):
        bar.ax.axhline(uniform, color="white", linewidth=2.5)
        bar.ax.axhline(uniform, color="black", linewidth=1)

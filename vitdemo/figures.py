"""Arrays -> pictures for export: PIL for overlays, matplotlib for sheets with scales.

Maps are (rows, cols) arrays of attention weights; `geometry` is a `vitdemo.geometry.Geometry`. Figures are made without pyplot, so
they are safe in threads and need no closing. What draws them takes half a second to import, so that is done when the first one is asked for.
"""

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib import colormaps
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vitdemo.geometry import Geometry

COLOURS = "cividis"                             # reads the same with and without colour vision


def enlarge(image: Image.Image, side: int) -> Image.Image:
    """`image` with its longer side at `side` pixels or a little more, each pixel a whole square."""
    factor = max(1, -(-side // max(image.size)))
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def patch_grid(picture: Image.Image, geometry: "Geometry", least: int = 640) -> Image.Image:
    """The picture, enlarged to at least `least` pixels where it is small, with the patches the model cuts; what was cropped away is
    greyed, and of a very long picture only the surroundings of the crop are shown."""
    picture, geometry = _surroundings(picture, geometry)
    canvas, scale = _canvas(picture, geometry, least)
    draw = ImageDraw.Draw(canvas)
    for row, col in np.ndindex(*geometry.grid):
        top, left, bottom, right = (round(v * scale) for v in geometry.patch_rectangle(row, col))
        edges = left, top, min(right, canvas.width - 1), min(bottom, canvas.height - 1)
        draw.rectangle((min(left, edges[2]), min(top, edges[3]), *edges[2:]), outline=(255, 255, 255), width=1)
    return canvas


def overlay(picture: Image.Image, geometry: "Geometry", weights: np.ndarray, *, high: float, low: float = 0.0, opacity: float = 0.65,
            least: int = 320, colours: str = COLOURS) -> Image.Image:
    """A map laid over the very pixels that were classified, each patch one even square. Colours run from `low` to `high`; a map (rows, cols,
    3) holds colours of its own, from 0 to 1."""
    canvas, scale = _canvas(picture, geometry, least)
    if weights.ndim == 3:
        cells = np.round(255 * weights).astype(np.uint8)
    else:
        cells = colormaps[colours](np.clip((weights - low) / (high - low) if high > low else np.zeros_like(weights), 0, 1), bytes=True)[..., :3]
    layer = canvas.copy()
    draw = ImageDraw.Draw(layer)
    for row, col in np.ndindex(*weights.shape[:2]):
        top, left, bottom, right = (round(v * scale) for v in geometry.patch_rectangle(row, col))
        draw.rectangle((left, top, max(left, right - 1), max(top, bottom - 1)), fill=tuple(int(c) for c in cells[row, col]))
    return Image.blend(canvas, layer, opacity)


def layer_heads(picture: Image.Image, geometry: "Geometry", maps: np.ndarray, *, title: str, uniform: float) -> "Figure":
    """All heads of one layer, `maps` (heads, rows, cols), over the picture on one scale, with a colour bar; the line marks 1/T."""
    picture, geometry = _surroundings(picture, geometry)
    high, columns = float(maps.max()), min(4, len(maps))
    wide, tall = _within(picture.height / picture.width, 2.6, 3.6)
    rows = -(-len(maps) // columns)
    width = max(columns * (max(wide, 1.2) + 0.1) + 1.1, 3.6)
    figure = _figure(width, max(rows * (tall + 0.3) + 0.1, 1.6), title)
    axes = figure.subplots(rows, columns, squeeze=False)
    for head, axis in enumerate(axes.flat):
        axis.axis("off")
        if head < len(maps):
            axis.imshow(overlay(picture, geometry, maps[head], high=high))
            axis.set_title(f"head {head + 1}: {maps[head].sum():.0%} on patches", fontsize=8 if wide > 1.9 else 6)
    _colour_bar(figure, axes, high, uniform=uniform)
    return figure


def layers_by_heads(attention: np.ndarray, *, prefix: np.ndarray, picture: Image.Image, geometry: "Geometry", title: str,
                    colours: str = COLOURS, own_scale: bool = False) -> "Figure":
    """Every map of a model, (layers, heads, rows, cols), raw, the picture above; one scale for each layer, named at its left, or one for
    each head. Each map says how much goes to patches, by `prefix` (layers, heads, prefix)."""
    layers, heads, rows, cols = attention.shape
    stretch = geometry.patch[0] / geometry.patch[1]
    left, across, down = 0.55, 0.08, 0.36 if own_scale else 0.24                        # inches, and so is all that follows
    wide, tall = _within(stretch * rows / cols, max(1.1, min(1.9, (4.6 - left) / heads - across)), 2.2)
    across, down = max(across, 0.7 - wide), max(down, 0.7 - tall)           # words need room beside a single row or column of patches too
    right, bottom = left + heads * (wide + across) - across, layers * (tall + down) - down
    width = max(right + across, 4.6)
    told = "each map's own largest weight" if own_scale else "the largest weight on a patch in each layer, named at its left"
    head = _head(patch_grid(picture, geometry, least=480), width, title,
                 f"colours from 0 to {told}; an even share is {1 / (prefix.shape[2] + rows * cols):.2g}")
    band = head.height + 0.35
    height = band + bottom + down
    figure = _empty(width, height)
    _draw_head(figure, head, colours)
    axes = figure.subplots(layers, heads, squeeze=False, gridspec_kw={
        "left": left / width, "right": right / width, "top": 1 - band / height, "bottom": down / height,
        "wspace": across / wide, "hspace": down / tall})
    for layer, head in np.ndindex(layers, heads):
        axis, high = axes[layer, head], float(attention[layer, head].max() if own_scale else attention[layer].max())
        axis.imshow(attention[layer, head], cmap=colours, vmin=0, vmax=high or 1, interpolation="nearest", aspect="auto")
        axis.set(xticks=[], yticks=[])
        told = f"{1 - prefix[layer, head].sum():.0%} on patches" + f"\n0 to {high:.2g}" * own_scale
        axis.set_xlabel(told, fontsize=6 if wide > 0.7 else 5, labelpad=2)
        if layer == 0:
            axis.set_title(f"head {head + 1}", fontsize=8)
        if head == 0:
            axis.set_ylabel(f"layer {layer + 1}" + f"\n0 to {high:.2g}" * (not own_scale), fontsize=7 if tall > 0.7 else 5)
    return figure


def one_map(picture: Image.Image, geometry: "Geometry", weights: np.ndarray, *, high: float, uniform: float | None, title: str,
            subtitle: str, unit: str, foot: str, low: float = 0.0, mark: tuple[int, int] | None = None, opacity: float = 0.65,
            colours: str = COLOURS) -> "Figure":
    """One map (rows, cols) large over the picture with the patch grid, on colours from `low` to `high`; `uniform` is marked on the colour bar,
    and the patch `mark` (row, col) framed. `subtitle` and `foot` stand below. A map of colours, see `overlay`, has no bar."""
    from matplotlib.patches import Rectangle

    picture, geometry = _surroundings(picture, geometry)
    wide, tall = _within(picture.height / picture.width, 5.4, 6.4)
    width = max(wide + 1.2, 4.6)
    figure = _figure(width, max(tall, 2.2), title, "\n".join(filter(None, (subtitle, foot))), points=12)
    axis = figure.subplots()
    laid = overlay(picture, geometry, weights, high=high, low=low, opacity=opacity, least=900, colours=colours)
    axis.imshow(laid)
    scale = max(laid.size) / max(geometry.original)
    top, left, bottom, right = (edge * scale for edge in geometry.crop)
    rows, cols = geometry.grid
    axis.hlines(np.linspace(top, bottom, rows + 1) - 0.5, left - 0.5, right - 0.5, colors="white", linewidth=0.6, alpha=0.7)
    axis.vlines(np.linspace(left, right, cols + 1) - 0.5, top - 0.5, bottom - 0.5, colors="white", linewidth=0.6, alpha=0.7)
    if mark is not None:
        tall, across = (bottom - top) / rows, (right - left) / cols
        for colour, line in (("black", 4), ("white", 1.6)):
            axis.add_patch(Rectangle((left + mark[1] * across - 0.5, top + mark[0] * tall - 0.5), across, tall, fill=False, edgecolor=colour, linewidth=line))
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    if weights.ndim == 2:
        _colour_bar(figure, np.array([axis]), high, low=low, uniform=uniform, colours=colours, unit=unit)
    return figure


class _Head(NamedTuple):
    """The top of a sheet: the picture at the left, words and a scale beside it. Sizes are in inches."""

    shown: Image.Image
    size: tuple[float, float]       # of the picture, (width, height)
    title: str                      # in lines that fit, and so is the next
    told: str
    below: tuple[float, float]      # where the small print and where the scale begin
    height: float


def _head(shown: Image.Image, width: float, title: str, told: str) -> _Head:
    wide, tall = size = _within(shown.height / shown.width, 0.4 * width, 1.9)
    title, told = _wrapped(title, width - wide - 0.35, 11), _wrapped(told, width - wide - 0.35, 8)
    small = 0.2 + 11 * 1.3 / 72 * (title.count("\n") + 1)
    scale = small + 0.1 + 8 * 1.3 / 72 * (told.count("\n") + 1)
    return _Head(shown, size, title, told, (small, scale), max(tall + 0.1, scale + 0.35))


def _draw_head(figure: "Figure", head: _Head, colours: str) -> None:
    width, height = figure.get_size_inches()
    wide, tall = head.size
    small, scale = head.below
    axis = figure.add_axes((0.1 / width, 1 - (tall + 0.1) / height, wide / width, tall / height))
    axis.imshow(head.shown)
    axis.axis("off")
    left = (wide + 0.25) / width
    figure.text(left, 1 - 0.1 / height, head.title, fontsize=11, va="top", parse_math=False)
    figure.text(left, 1 - small / height, head.told, fontsize=8, va="top", parse_math=False)
    bar = figure.add_axes((left + 0.05 / width, 1 - (scale + 0.12) / height, min(1.6, width - wide - 0.7) / width, 0.12 / height))
    bar.imshow(np.linspace(0, 1, 256)[None], cmap=colours, aspect="auto")
    bar.set(xticks=[0, 255], xticklabels=["0", "largest"], yticks=[])
    bar.tick_params(labelsize=7, length=2, pad=2)


def _wrapped(text: str, inches: float, points: float) -> str:
    """Text in lines that fit; a letter is taken as 0.6 of its height, wider than most are; nobody reads on after six lines."""
    letters = max(12, int(inches * 72 / (0.6 * points)))
    text = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)    # a file's name may hold what no font and no SVG can
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, letters, max_lines=6, placeholder=" …"))


def _within(shape: float, width: float, height: float) -> tuple[float, float]:
    """The largest (width, height) of a thing `shape` times as tall as wide that fits."""
    wide = min(width, height / shape)
    return wide, wide * shape


def _surroundings(picture: Image.Image, geometry: "Geometry") -> tuple[Image.Image, "Geometry"]:
    """The part of a picture that is worth showing, and the geometry on it."""
    top, left, bottom, right = geometry.window()
    down, across, low, far = geometry.crop
    crop = down - top, across - left, low - top, far - left
    return picture.crop((left, top, right, bottom)), replace(geometry, original=(bottom - top, right - left), crop=crop)


def _canvas(picture: Image.Image, geometry: "Geometry", least: int) -> tuple[Image.Image, float]:
    """A copy of `picture` of drawable size, grey and pale where the model does not look, and its scale."""
    scale = min(max(1.0, least / max(picture.size)), 2000 / max(picture.size))
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    shown = picture.resize(size, Image.Resampling.NEAREST if scale >= 4 else Image.Resampling.BICUBIC)
    pale = Image.blend(shown.convert("L").convert("RGB"), Image.new("RGB", size, (235, 235, 235)), 0.7)
    top, left, bottom, right = (round(v * scale) for v in geometry.crop)
    pale.paste(shown.crop((left, top, right, bottom)), (left, top))
    return pale, scale


def _empty(width: float, height: float, layout: str | None = None) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=120, layout=layout)


def _figure(width: float, height: float, title: str, foot: str = "", points: float = 10) -> "Figure":
    """An empty figure with that many inches between title and foot. A model's or a class's name may hold a dollar sign, and be long."""
    words, below = _wrapped(title, width, points), _wrapped(foot, width, 8)
    lines = 1.4 * (points * (words.count("\n") + 1) + 8 * (below.count("\n") + 1) * bool(below))
    figure = _empty(width, height + lines / 72 + 0.15, layout="constrained")
    figure.suptitle(words, fontsize=points, parse_math=False)
    if below:
        figure.supxlabel(below, fontsize=8, parse_math=False)
    return figure


def _colour_bar(figure: "Figure", axes: np.ndarray, high: float, *, uniform: float | None, low: float = 0.0, colours: str = COLOURS,
                unit: str = "attention weight") -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.colorbar(ScalarMappable(Normalize(low, high if high > low else low + 1), colours), ax=axes, shrink=0.9, aspect=25)
    marked = uniform is not None and uniform <= (high or 1)
    even = "" if uniform is None else f"\n(line: an even share, {uniform:.2g})" if marked else f"\n(an even share is {uniform:.2g})"
    bar.set_label(unit + even, fontsize=8)
    bar.ax.tick_params(labelsize=8)
    if marked:
        bar.ax.axhline(uniform, color="white", linewidth=2.5)
        bar.ax.axhline(uniform, color="black", linewidth=1)

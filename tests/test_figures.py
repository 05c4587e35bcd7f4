"""Figures for export: squares where the patches lie, scales that say what they show, words that are neither cut off nor overlap."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from vitdemo import figures
from vitdemo.explain import explain
from vitdemo.geometry import Geometry

LONG = "a-model-with-a-rather-long-name-patch16-224: what speaks for a class of many words, Tinca tinca $x$, in every layer and head"
HOT = np.array(colormaps["cividis"](255, bytes=True)[:3], dtype=int)


def place(size: tuple[int, int], grid: tuple[int, int], *, patch=(16, 16), down=0.5, across=0.5, fraction=1.0) -> tuple[Image.Image, Geometry]:
    """A grey picture of `size` (rows, cols) and the largest crop for that grid, shrunk by `fraction` and put at (down, across)."""
    sides = grid[0] * patch[0], grid[1] * patch[1]
    scale = fraction * min(size[0] / sides[0], size[1] / sides[1])
    tall, wide = (side * scale for side in sides)
    top, left = (size[0] - tall) * down, (size[1] - wide) * across
    return Image.new("RGB", size[::-1], (60, 60, 60)), Geometry(size, (top, left, top + tall, left + wide), sides, patch)


PLACES = {
    "square": place((90, 90), (8, 8)), "aside": place((200, 300), (14, 14), down=0.1, across=0.9, fraction=0.6), "wide": place((20, 400), (8, 8)),
    "tall": place((400, 20), (8, 8)), "flat grid": place((60, 160), (4, 16)), "high grid": place((160, 60), (16, 4)),
    "flat patches": place((80, 80), (8, 4), patch=(8, 16)), "one patch": place((50, 40), (1, 1)),
    "one row": place((10, 640), (1, 64)), "one column": place((640, 10), (64, 1)),
}


def maps(layers: int, heads: int, grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    weights = np.random.default_rng(4).gamma(0.3, size=(layers, heads, *grid))
    weights *= 0.9 / weights.sum((2, 3), keepdims=True)
    return weights, np.full((layers, heads, 1), 0.1)


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).astype(int)


def hot_box(drawn: np.ndarray, far: int = 6) -> tuple[int, int, int, int]:
    """Edges of what has the colour map's last colour: top, bottom, left, right; all of the box has it."""
    rows, cols = (np.abs(drawn - HOT).sum(-1) < far).nonzero()
    assert len(rows) == (np.ptp(rows) + 1) * (np.ptp(cols) + 1)
    return rows.min(), rows.max() + 1, cols.min(), cols.max() + 1


def drawn(figure: Figure) -> tuple[np.ndarray, list[Text]]:
    """A figure's pixels, and the words that are seen on it."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    words = [*figure.texts, *(axis.title for axis in figure.axes)]
    for axis in (axis for axis in figure.axes if axis.axison):
        low, high = sorted(axis.get_ylim())
        words += [axis.xaxis.label, axis.yaxis.label, *axis.get_xticklabels(), *(tick for tick in axis.get_yticklabels() if low <= tick.get_position()[1] <= high)]
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int), [word for word in words if word.get_text().strip()]


def words_fit(figure: Figure) -> None:
    """No word is cut off by the figure's edge, none overlaps another, and none lies on a picture."""
    _, words = drawn(figure)
    boxes = [(word.get_text(), word.get_window_extent()) for word in words]
    assert len(boxes) > 1
    for text, box in boxes:
        assert box.x0 >= -0.5 and box.y0 >= -0.5 and box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5, f"cut off: {text!r}"
        for axis in figure.axes:
            inside = axis.get_window_extent()
            assert not axis.images or box.x1 <= inside.x0 + 1 or box.x0 >= inside.x1 - 1 or box.y1 <= inside.y0 + 1 or box.y0 >= inside.y1 - 1, f"on a picture: {text!r}"
    for (one, a), (two, b) in combinations(boxes, 2):
        across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 1 or up < 1, f"{one!r} overlaps {two!r}"


def test_the_overlays_brightest_square_is_where_all_attention_was_put():
    picture, geometry = Image.new("RGB", (320, 80), (60, 60, 60)), Geometry((80, 320), (0, 80, 80, 240), (8, 16), (4, 4))        # a 2 x 4 grid on the middle half
    weights = np.zeros((2, 4))
    weights[1, 2] = 0.5
    shown = pixels(figures.overlay(picture, geometry, weights, high=0.5, opacity=1.0, least=320))
    assert hot_box(shown) == (40, 80, 160, 200)
    outside = shown[:, :80]
    assert outside.min() > 120 and np.ptp(outside.mean((0, 1))) < 2         # pale grey: not seen


@pytest.mark.parametrize("name", PLACES)
def test_every_patch_is_drawn_on_its_own_rectangle_of_the_picture(name):
    picture, geometry = PLACES[name]
    rows, cols = geometry.grid
    for row, col in {(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 3)}:
        weights = np.zeros((rows, cols))
        weights[row, col] = 0.7
        shown = figures.overlay(picture, geometry, weights, high=0.7, opacity=1.0, least=900)
        top, left, bottom, right = (edge * max(shown.size) / max(picture.size) for edge in geometry.patch_rectangle(row, col))
        assert np.abs(np.array(hot_box(pixels(shown))) - (top, bottom, left, right)).max() <= 1


def test_a_constant_map_is_one_even_colour_and_a_zero_map_has_no_nan():
    picture, geometry = PLACES["square"]
    for value in (0.25, 0.0):
        assert len(figures.overlay(picture, geometry, np.full((8, 8), value), high=value, opacity=1.0).getcolors()) == 1


def test_without_opacity_the_picture_itself_is_seen_and_with_half_of_it_the_mean():
    picture, geometry = PLACES["square"]
    weights = np.full((8, 8), 0.4)
    assert (pixels(figures.overlay(picture, geometry, weights, high=0.4, opacity=0.0)) == 60).all()
    assert np.abs(pixels(figures.overlay(picture, geometry, weights, high=0.4, opacity=0.5)) - (HOT + 60) / 2).max() <= 1


@pytest.mark.parametrize("name", ["square", "aside", "flat grid", "high grid"])
def test_the_patch_grid_has_a_line_at_every_edge_also_the_last(name):
    picture, geometry = PLACES[name]
    shown = figures.patch_grid(picture, geometry)
    window, scale = geometry.window(), shown.width / (geometry.window()[3] - geometry.window()[1])
    white = (pixels(shown) == 255).all(-1)
    rows, cols = geometry.grid
    for row, col in np.ndindex(rows, cols):
        top, left, bottom, right = (round((edge - window[i % 2]) * scale) for i, edge in enumerate(geometry.patch_rectangle(row, col)))
        middle = (top + bottom) // 2, (left + right) // 2
        bottom, right = min(bottom, shown.height - 1), min(right, shown.width - 1)
        for lines, at in ((white[:, middle[1]], (top, bottom)), (white[middle[0]], (left, right))):
            assert all(lines[max(0, edge - 1):edge + 2].any() for edge in at), (row, col)
        assert not white[middle]


@pytest.mark.parametrize("size", [(1, 1), (3, 300), (500, 20)])
def test_figures_of_tiny_and_long_pictures_stay_bounded(tiny, size):
    result = explain(Image.new("RGB", size, (9, 99, 199)), tiny)
    assert max(figures.patch_grid(result.picture, result.geometry).size) <= 2000
    figure = figures.one_map(result.picture, result.geometry, result.attention[0, 0], high=1, uniform=0.1, title="t", subtitle="s", unit="u", foot="f")
    assert max(figure.get_size_inches()) < 12


def test_of_a_long_picture_only_the_surroundings_of_the_crop_are_drawn():
    picture, geometry = PLACES["wide"]                                      # 20 x 400 pixels, of which the middle 20 x 20 are seen
    assert geometry.window() == (0, 180, 20, 220)
    shown = figures.patch_grid(picture, geometry)
    assert shown.width == 2 * shown.height
    assert Geometry((10, 1), (4.45, 0, 4.55, 1), (1, 10), (1, 1)).window() == (4, 0, 5, 1)         # never empty


@pytest.mark.parametrize("name", PLACES)
def test_the_words_of_a_single_map_fit_and_its_hottest_square_is_where_it_belongs(name):
    picture, geometry = PLACES[name]
    weights = np.zeros(geometry.grid)
    weights[-1, -1] = 0.123
    figure = figures.one_map(picture, geometry, weights, high=0.123, uniform=0.0123, title=LONG, subtitle=f"{LONG}: the model says $y$, 88%", unit="attention weight",
                             foot="one scale for all heads of layer 12, 12.3% on tokens that are no patch", opacity=1.0)
    words_fit(figure)
    axis, bar = figure.axes
    assert "line: an even share, 0.012" in bar.get_ylabel() and bar.get_ylim() == (0, 0.123)
    laid = axis.images[0].get_array()
    top, left, bottom, right = geometry.patch_rectangle(*(side - 1 for side in geometry.grid))
    window = geometry.window()
    scale = max(laid.shape) / max(window[2] - window[0], window[3] - window[1])
    expected = (top - window[0]) * scale, (bottom - window[0]) * scale, (left - window[1]) * scale, (right - window[1]) * scale
    assert np.abs(np.array(hot_box(np.asarray(laid).astype(int))) - expected).max() <= 1
    grid_lines = [collection.get_segments() for collection in axis.collections]
    assert [len(lines) for lines in grid_lines] == [geometry.grid[0] + 1, geometry.grid[1] + 1]
    assert abs(grid_lines[0][-1][0][1] + 0.5 - expected[1]) < 1 and abs(grid_lines[1][-1][0][0] + 0.5 - expected[3]) < 1


def test_a_marked_patch_is_framed_where_it_lies():
    picture, geometry = PLACES["aside"]
    figure = figures.one_map(picture, geometry, np.zeros((14, 14)), high=1.0, uniform=None, title="t", subtitle="s", unit="u", foot="f", mark=(3, 9))
    shape, window = figure.axes[0].images[0].get_array().shape, geometry.window()
    scale = max(shape) / max(window[2] - window[0], window[3] - window[1])
    top, left, bottom, right = ((edge - window[i % 2]) * scale - 0.5 for i, edge in enumerate(geometry.patch_rectangle(3, 9)))
    for frame in figure.axes[0].patches:
        assert np.abs(np.array([*frame.get_xy(), frame.get_width(), frame.get_height()]) - (left, top, right - left, bottom - top)).max() < 1
    assert len(figure.axes[0].patches) == 2


def test_letters_that_no_font_and_no_svg_can_hold_are_replaced():
    picture, geometry = PLACES["square"]
    figure = figures.one_map(picture, geometry, np.zeros((8, 8)), high=1.0, uniform=None, title="a\x00b\ud800c", subtitle="s\x1b", unit="u", foot="f\nnext line")
    assert figure.get_suptitle() == "a\ufffdb\ufffdc" and figure.get_supxlabel() == "s\ufffd\nf\nnext line"
    words_fit(figure)


def test_the_even_share_is_marked_only_where_the_scale_reaches_it_and_named_in_either_case():
    picture, geometry = PLACES["square"]
    for uniform, lines, text in ((0.05, 2, "(line: an even share, 0.05)"), (0.5, 0, "(an even share is 0.5)"), (None, 0, "")):
        bar = figures.one_map(picture, geometry, np.full((8, 8), 0.1), high=0.1, uniform=uniform, title="t", subtitle="s", unit="u", foot="f").axes[1]
        assert len(bar.lines) == lines and bar.get_ylabel() == "\n".join(filter(None, ("u", text)))


@pytest.mark.parametrize(("name", "heads"), [("square", 3), ("aside", 12), ("wide", 2), ("tall", 1), ("high grid", 5), ("flat grid", 4), ("one row", 3), ("one column", 12)])
def test_the_words_of_a_layers_heads_fit_and_every_head_has_its_picture(name, heads):
    picture, geometry = PLACES[name]
    weights, _ = maps(1, heads, geometry.grid)
    figure = figures.layer_heads(picture, geometry, weights[0], title=f"{LONG[:40]}, layer 12", uniform=0.01)
    words_fit(figure)
    shown = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title() for axis in shown] == [f"head {i + 1}: 90% on patches" for i in range(heads)]
    assert figure.axes[-1].get_ylim()[1] == pytest.approx(weights.max())


@pytest.mark.parametrize(("name", "layers", "heads", "own"), [
    ("aside", 12, 12, True), ("square", 6, 3, False), ("wide", 2, 1, True), ("tall", 1, 2, False), ("flat grid", 3, 4, True), ("high grid", 2, 5, False), ("flat patches", 2, 2, False),
    ("one row", 6, 3, False), ("one row", 3, 2, True), ("one column", 3, 6, False), ("one column", 2, 12, True)])
def test_a_sheet_shows_every_map_under_its_own_scale_and_no_word_is_cut_off(name, layers, heads, own):
    picture, geometry = PLACES[name]
    weights, prefix = maps(layers, heads, geometry.grid)
    figure = figures.layers_by_heads(weights, prefix=prefix, picture=picture, geometry=geometry, title=LONG, own_scale=own)
    words_fit(figure)
    scale, axes = figure.axes[1], figure.axes[2:]                           # the first is the picture
    assert scale.images[0].get_array().shape == (1, 256) and [tick.get_text() for tick in scale.get_xticklabels()] == ["0", "largest"]
    assert f"an even share is {1 / (1 + geometry.grid[0] * geometry.grid[1]):.2g}" in figure.texts[1].get_text().replace("\n", " ")
    assert len(axes) == layers * heads
    for axis, one, (layer, _) in zip(axes, weights.reshape(-1, *geometry.grid), np.ndindex(layers, heads), strict=True):
        high = one.max() if own else weights[layer].max()
        assert np.array_equal(axis.images[0].get_array(), one) and axis.images[0].get_clim() == (0, pytest.approx(high))
        assert "90% on patches" in axis.get_xlabel() and (f"0 to {high:.2g}" in axis.get_xlabel()) == own
        box = axis.get_window_extent()
        assert box.height / box.width == pytest.approx(geometry.grid[0] * geometry.patch[0] / (geometry.grid[1] * geometry.patch[1]), rel=0.02)
    named = [axis.get_ylabel() for axis in axes[::heads]]
    assert named == [f"layer {i + 1}" + ("" if own else f"\n0 to {weights[i].max():.2g}") for i in range(layers)]


def test_the_hottest_square_of_a_sheet_is_seen_in_the_right_map_of_the_right_place():
    picture, geometry = PLACES["flat grid"]
    weights = np.zeros((3, 2, 4, 16))
    weights[2, 1, 3, 15] = 0.8
    figure = figures.layers_by_heads(weights, prefix=np.full((3, 2, 1), 0.2), picture=picture, geometry=geometry, title="sheet")
    shown, _ = drawn(figure)
    shown[:int(len(shown) - figure.axes[2].get_window_extent().y1)] = 0     # the scale above the maps ends in the same colour
    top, bottom, left, right = hot_box(shown, far=3)
    box = figure.axes[-1].get_window_extent()                               # the last layer's last head, from the lower left corner
    assert abs(right - box.x1) <= 2 and abs(len(shown) - bottom - box.y0) <= 2
    assert abs(right - left - box.width / 16) <= 2 and abs(bottom - top - box.height / 4) <= 2


def test_a_map_of_zeros_has_a_scale_and_a_figure():
    picture, geometry = PLACES["square"]
    zero = np.zeros((2, 2, 8, 8))
    for figure in (figures.layers_by_heads(zero, prefix=np.ones((2, 2, 1)), picture=picture, geometry=geometry, title="t"),
                   figures.layer_heads(picture, geometry, zero[0], title="t", uniform=0.1),
                   figures.one_map(picture, geometry, zero[0, 0], high=0.0, uniform=0.1, title="t", subtitle="s", unit="u", foot="f")):
        words_fit(figure)


def test_a_picture_is_enlarged_in_whole_squares():
    image = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    large = figures.enlarge(image, 9)
    assert large.size == (12, 9) and np.array_equal(np.asarray(large), np.kron(np.asarray(image), np.ones((3, 3), np.uint8)))

"""The page that an exported film is drawn on: attention over the picture, the loss beside it, and what the model says."""

import base64
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from vitdemo.figures import COLOURS, overlay
from vitdemo.geometry import Geometry

WIDTH, HEIGHT = 720, 450                        # pixels
BOX = 330                                       # side of the square that the picture is fitted into
RIGHT, BESIDE = 380, 224                        # where the words begin, and their room beside the small picture
INK, QUIET, PAST, AHEAD = "#1a1a1a", "#5f5f5f", "#1f5fa8", "#c3cbd6"


class Shot(NamedTuple):
    """One look, ready to be drawn."""

    weights: np.ndarray             # (rows, cols), attention weights
    answer: str
    told: str                       # whether it is right, and what came second
    caption: str
    step: int


class Sheet:
    """Draws one shot after another; only what changes is set anew. `subject` is the scene's entry, `high` where the colours end."""

    def __init__(self, scene: dict[str, Any], subject: dict[str, Any], losses: Sequence[tuple[int, float]], *, high: float, title: str):
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and only needed here
        from matplotlib.figure import Figure

        self.high, self.picture = high, _image(subject["picture"])
        size = scene["rows"] * scene["patch"][0], scene["cols"] * scene["patch"][1]
        self.geometry = Geometry((subject["height"], subject["width"]), tuple(subject["crop"]), size, tuple(scene["patch"]))
        self.figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self._pictures()
        self._words(title)
        self._scale(1 / (scene["prefix"] + scene["rows"] * scene["cols"]))
        self._curve(losses)

    def draw(self, shot: Shot) -> Image.Image:
        self.map.set_data(np.asarray(overlay(self.picture, self.geometry, shot.weights, high=self.high, opacity=0.72, least=BOX)))
        for text, words, points, room in ((self.answer, shot.answer, 21, BESIDE), (self.told, shot.told, 13, BESIDE),
                                          (self.caption, shot.caption, 13, WIDTH - RIGHT - 10)):
            text.set(text=words, fontsize=points)
            text.set_fontsize(points * min(1.0, room / max(1, text.get_window_extent().width)))
        self.past.set_data(*self.losses[self.losses[:, 0] <= shot.step].T)
        self.now.set_xdata([shot.step, shot.step])
        if len(self.losses):
            self.mark.set_data([shot.step], [np.interp(shot.step, *self.losses.T)])
        self.canvas.draw()
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3].copy())

    def _pictures(self) -> None:
        """The large picture under the map in the middle of its square, and a small one in the corner as it is."""
        wide, tall = (side * BOX / max(self.picture.size) for side in self.picture.size)
        large = self._axis(20 + (BOX - wide) / 2, 52 + (BOX - tall) / 2, wide, tall)
        large.axis("off")
        self.map = large.imshow(np.zeros((2, 2, 3)), aspect="auto", extent=(0, 1, 0, 1))
        wide, tall = (side * 84 / max(self.picture.size) for side in self.picture.size)
        small = self._axis(700 - wide, 52, wide, tall)
        small.axis("off")
        small.imshow(self.picture, aspect="auto")

    def _words(self, title: str) -> None:
        self._text(20, 14, title, 15, weight="bold")
        self.answer = self._text(RIGHT, 50, "", 21, weight="bold", color=PAST)
        self.told = self._text(RIGHT, 88, "", 13, color=QUIET)
        self.caption = self._text(RIGHT, 144, "", 13, linespacing=1.3)

    def _scale(self, even: float) -> None:
        axis = self._axis(20, 396, BOX, 12)
        axis.imshow(np.linspace(0, 1, 256)[None], cmap=COLOURS, aspect="auto", extent=(0, self.high, 0, 1))
        axis.set(yticks=[], xticks=[0, self.high], xticklabels=["0", f"{self.high:.2g}"])
        axis.tick_params(labelsize=12, length=0)
        for label, side in zip(axis.get_xticklabels(), ("left", "right"), strict=True):
            label.set_ha(side)
        axis.axvline(even, color="white", linewidth=2)
        self._text(20 + BOX / 2, 413, f"weight (line: even, {even:.2g})", 12, ha="center", color=QUIET)

    def _curve(self, losses: Sequence[tuple[int, float]]) -> None:
        self.losses = np.array(losses, dtype=float).reshape(-1, 2)
        axis = self._axis(424, 206, 276, 184)
        axis.plot(*self.losses.T, color=AHEAD, linewidth=2)
        self.past, = axis.plot([], [], color=PAST, linewidth=2.5)
        self.now = axis.axvline(0, color=QUIET, linewidth=1)
        self.mark, = axis.plot([], [], "o", color=PAST, markersize=11, markeredgecolor="white", markeredgewidth=2)
        axis.set_xlabel("training step", fontsize=13)
        axis.set_ylabel("loss", fontsize=13)
        axis.tick_params(labelsize=12)
        axis.locator_params(nbins=4)
        axis.spines[["top", "right"]].set_visible(False)

    def _axis(self, left: float, top: float, wide: float, tall: float) -> Any:
        """Axes at a place in pixels from the upper left corner."""
        return self.figure.add_axes((left / WIDTH, 1 - (top + tall) / HEIGHT, wide / WIDTH, tall / HEIGHT))

    def _text(self, left: float, top: float, words: str, points: float, **style: Any) -> Any:
        style = {"color": INK, "fontsize": points, "va": "top", "parse_math": False, **style}
        return self.figure.text(left / WIDTH, 1 - top / HEIGHT, words, **style)


def _image(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")

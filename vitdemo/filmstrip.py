"""A run's film as an animated picture for slides, look after look.

`scene`, `frames` and `rows` are what `vitdemo.film` and the log of a run hold. Needs no torch.
"""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from PIL import Image

from vitdemo.figures import COLOURS
from vitdemo.filmsheet import HEIGHT, WIDTH, Sheet, Shot

MOST_FRAMES = 60
MOST_BYTES = 4 * 2**20
KINDS = ("webp", "gif")


class FilmstripError(ValueError):
    """A film that cannot be shown as asked; the message is one sentence."""


def animate(scene: dict[str, Any], frames: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], *, subject: int = 0, layer: int = -1,
            head: int | str = "mean", kind: str = "webp", seconds_per_frame: float = 0.6) -> bytes:
    """An animated WebP or GIF of 720 x 450 pixels and at most 4 MB: attention over a picture beside the loss with a moving mark. Layers,
    heads and subjects are counted from 0 (a layer of -1 is the last), `head` may be "mean"; colours keep one scale over the whole film.
    Raises FilmstripError."""
    if kind not in KINDS:
        raise FilmstripError(f"a film is saved as {' or '.join(KINDS)}, not {kind!r:.20}")
    if not 0.05 <= seconds_per_frame <= 10:
        raise FilmstripError(f"a picture of the film stays 0.05 to 10 seconds, not {seconds_per_frame:g}")
    shots = shown(scene, frames, subject=subject, layer=layer, head=head)
    losses = [(row["step"], row["loss"]) for row in rows if row.get("loss") is not None]
    which = f"mean of {scene['heads']} heads" if head == "mean" else f"head {head + 1}"
    # three even shares at least, as in the page, so that random weights, which read from everywhere alike, do not glow
    least = 3 / (scene["prefix"] + scene["rows"] * scene["cols"])
    sheet = Sheet(scene, scene["subjects"][subject], losses, high=max(least, *(float(shot.weights.max()) for shot in shots)),
                  title=f"What {scene['reader']} reads: layer {layer % scene['layers'] + 1}, {which}")
    pictures, wait = [sheet.draw(shot) for shot in _thinned(shots, MOST_FRAMES)], seconds_per_frame * 1000
    while True:
        content = _encoded(pictures, kind, wait)
        if len(content) <= MOST_BYTES or len(pictures) <= 2:
            return content
        pictures, wait = _thinned(pictures, len(pictures) // 2 + 1), wait * 2


def shown(scene: dict[str, Any], frames: Sequence[dict[str, Any]], *, subject: int, layer: int, head: int | str) -> list[Shot]:
    """What `animate` draws, one shot for each frame. Raises FilmstripError."""
    if not frames:
        raise FilmstripError("the film has no pictures yet: wait for the first look")
    if not scene["layers"]:
        raise FilmstripError("this model has no attention that could be shown: only a Vision Transformer has")
    for name, index, count in (("picture", subject, len(scene["subjects"])), ("layer", 0 if layer == -1 else layer, scene["layers"]),
                               ("head", 0 if head == "mean" else head, scene["heads"])):
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            raise FilmstripError(f"the film has {count} {name}s, counted from 0; {index!r:.20} is none of them")
    drawn = []
    for frame in frames:
        of_layer = unpacked(frame["subjects"][subject]["reads"])[layer]     # (heads, T)
        weights = (of_layer.mean(0) if head == "mean" else of_layer[head])[scene["prefix"]:].reshape(scene["rows"], scene["cols"])
        when = f"after {frame['step']:,} steps" if frame["step"] else "before the first step"
        caption = f"{when}\nvalidation: {frame['accuracy']:.1%} of {frame['n']:,} right"
        drawn.append(Shot(weights, *_verdict(scene, frame, subject), caption, frame["step"]))
    return drawn


def unpacked(reads: dict[str, Any]) -> np.ndarray:
    """The weights (layers, heads, T) of a subject in a frame."""
    layers, heads, tokens = reads["shape"]
    shares = np.frombuffer(base64.b64decode(reads["data"]), np.uint8).reshape(layers, heads, tokens)
    return shares / 255 * np.array(reads["highs"]).reshape(layers, heads, 1)


def untold(scene: dict[str, Any], frames: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Scene and frames without the data set's own pictures, as a recorded run may be passed on: no watched pictures, and of the subjects
    only those that a person chose."""
    kept = [i for i, subject in enumerate(scene["subjects"]) if subject["truth"] is None]
    return ({**scene, "subjects": [scene["subjects"][i] for i in kept], "watched": []},
            [{**frame, "subjects": [frame["subjects"][i] for i in kept], "watched": []} for frame in frames])


def _verdict(scene: dict[str, Any], frame: dict[str, Any], subject: int) -> tuple[str, str]:
    """The answer, and lines about it."""
    (first, share), *others = frame["subjects"][subject]["top"]
    truth, names = scene["subjects"][subject]["truth"], scene["classes"]
    if others and share - others[-1][1] < 1e-4:                             # a head that starts at zero finds all classes alike
        return "no answer yet", "all classes are alike"
    told = [] if truth is None else ["right" if truth == first else f"wrong: it is {_short(names[truth])}"]
    told += [f"then {_short(names[i])} {part:.0%}" for i, part in others[:1]]
    return f"{_short(names[first])} {share:.0%}", "\n".join(told)


def _short(name: str, letters: int = 14) -> str:
    name = "".join(c if c.isprintable() else " " for c in name)
    return name if len(name) <= letters else name[:letters - 1] + "…"


def _thinned(things: list[Any], most: int) -> list[Any]:
    """At most `most` of them, evenly, the first and the last among them."""
    return [things[i] for i in np.unique(np.linspace(0, len(things) - 1, min(most, len(things))).round().astype(int))]


def _encoded(pictures: list[Image.Image], kind: str, wait: float) -> bytes:
    """The last picture stays four times as long."""
    buffer, waits = io.BytesIO(), [round(wait)] * (len(pictures) - 1) + [round(4 * wait)]
    options = {"quality": 85, "method": 3} if kind == "webp" else {}
    first, *others = pictures if kind == "webp" else _in_one_palette(pictures)
    first.save(buffer, kind.upper(), save_all=True, append_images=others, duration=waits, loop=0, **options)
    return buffer.getvalue()


def _in_one_palette(pictures: list[Image.Image]) -> list[Image.Image]:
    """A GIF has 256 colours; chosen once, from the whole film and the scale, they do not flicker."""
    ramp = colormaps[COLOURS](np.linspace(0, 1, WIDTH), bytes=True)[None, :, :3].repeat(HEIGHT // 3, 0)
    chosen = Image.fromarray(np.concatenate([*map(np.asarray, _thinned(pictures, 6)), ramp])).quantize(256)
    return [picture.quantize(palette=chosen, dither=Image.Dither.NONE) for picture in pictures]

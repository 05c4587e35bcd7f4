"""What a model looks at: at how many pixels, and at which part of a picture: its middle, all of it, or a part that a person chose."""

from dataclasses import replace
from math import isfinite, lcm, prod
from typing import Any

from vitdemo.checkpoint import Loaded
from vitdemo.geometry import Edges

MOST_TOKENS = 2500                              # of a square that is offered; the time attention takes grows with the square of it
MOST_WEIGHTS = 2**28                            # attention weights of one layer, all heads: a gigabyte of them
USUAL = (224, 384, 518)                         # pixels a side, of models for photos: what the field uses
FACTORS = (1.5, 2.0)                            # of a small model's own side
FITS = ("crop", "pad", "whole")               # its middle; all of it, on a plain ground of the input's shape; all of it, in its own shape
SMALL = 160                                     # pixels; models of smaller pictures are for no photos


class LookError(ValueError):
    """A size that a model is not offered at, or no part of a picture; the message is one sentence."""


def sides(loaded: Loaded) -> tuple[int, ...]:
    """The sides in pixels of the squares that a model may look at: its own first, then others in order of size, multiples of its patch with
    at most MOST_TOKENS tokens. Empty for a model whose pictures are no squares."""
    own, other = loaded.preprocessing.size
    if own != other:
        return ()
    (tall, wide), prefix = loaded.config.patch, loaded.config.prefix
    step = lcm(tall, wide)
    wanted = USUAL if own >= SMALL else [factor * own for factor in FACTORS]
    near = sorted({max(1, round(side / step)) * step for side in wanted} - {own})
    return own, *(side for side in near if prefix + (side // tall) * (side // wide) <= MOST_TOKENS)


def at(loaded: Loaded, side: int | None = None, fit: str | None = None, part: Any = None) -> Loaded:
    """The same model, its weights shared, looking at squares of `side` pixels (None: as it does anyway) and at what `fit` says of a picture
    (FITS; None: as it does anyway), or at a `part` of it. "whole" is cut into no more patches than such a square. Learned positions are
    resampled to the new grid (section 3.2 of the ViT paper). Raises LookError for what is not offered, and for a model whose attention would
    fill the memory."""
    own, offered = loaded.preprocessing, sides(loaded)
    if side is not None and side not in offered:
        known = f"squares of {', '.join(map(str, offered))} pixels" if offered else "pictures of {} x {} pixels only".format(*own.size)
        raise LookError(f"this model can look at {known}, not at squares of {side!r:.20}")
    if fit not in (None, *FITS):
        raise LookError(f"a picture can be looked at by {', '.join(map(repr, FITS))}, not by {fit!r:.20}")
    if part is not None:
        edges(part)
    preprocessing = own.with_(size=own.size if side is None else (side, side))
    if part is not None or fit == "pad":                                    # what is shown is in the input's shape already
        preprocessing = preprocessing.with_(fit="crop", crop_fraction=1.0)
    elif fit is not None:
        preprocessing = preprocessing.with_(fit=fit)
    tokens = loaded.config.prefix + prod(size // step for size, step in zip(preprocessing.size, loaded.config.patch, strict=True))
    if loaded.config.heads * tokens**2 > MOST_WEIGHTS:
        raise LookError(f"this model cuts its pictures into {tokens:,} tokens: the attention of its {loaded.config.heads} heads between them would fill the memory")
    return loaded if preprocessing == own else replace(loaded, preprocessing=preprocessing)


def edges(part: Any) -> Edges:
    """(top, left, bottom, right) of a part of a picture, as shares of its height and width. Raises LookError for what is none."""
    numbers = tuple(part) if isinstance(part, (list, tuple)) else ()
    if len(numbers) != 4 or not all(isinstance(n, (int, float)) and not isinstance(n, bool) and isfinite(n) for n in numbers):
        raise LookError("a part of a picture is given by its edges (top, left, bottom, right), each a share from 0 to 1")
    top, left, bottom, right = map(float, numbers)
    if not (0 <= top < bottom <= 1 and 0 <= left < right <= 1):
        raise LookError(f"a part of a picture lies within it, its top above its bottom and its left before its right: not {numbers!r:.90}")
    return top, left, bottom, right

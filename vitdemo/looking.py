"""What a model looks at: a picture of the size it was made for, a larger or smaller square, or the whole picture in its own shape."""

from dataclasses import replace
from math import lcm

from vitdemo.checkpoint import Loaded

MOST_TOKENS = 2500                              # of a square that is offered; the time attention takes grows with the square of it
USUAL = (224, 384, 518)                         # pixels a side, of models for photos: what the field uses
FACTORS = (1.5, 2.0)                            # of a small model's own side
SMALL = 160                                     # pixels; models of smaller pictures are for no photos


class SideError(ValueError):
    """A size that a model is not offered at; the message is one sentence."""


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


def at(loaded: Loaded, side: int | None = None, whole: bool = False) -> Loaded:
    """The same model, its weights shared, looking at squares of `side` pixels (None: as it does anyway), or with `whole` at the whole
    picture in its own shape, cut into no more patches than such a square. Learned positions are resampled to the new grid (section 3.2
    of the ViT paper). Raises SideError for a side that is not offered."""
    own, offered = loaded.preprocessing, sides(loaded)
    if side is not None and side not in offered:
        known = f"squares of {', '.join(map(str, offered))} pixels" if offered else "pictures of {} x {} pixels only".format(*own.size)
        raise SideError(f"this model can look at {known}, not at squares of {side!r:.20}")
    size = own.size if side is None else (side, side)
    preprocessing = own.with_(size=size, fit="whole" if whole else own.fit)
    return loaded if preprocessing == own else replace(loaded, preprocessing=preprocessing)

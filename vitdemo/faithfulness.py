"""Does a map tell which patches matter? Hide patches in its order, watch the class probability, and compare with chance.

    N patches · T tokens · M orders

Deletion hides the patches that a map calls important first, insertion shows them first (Petsiuk, Das and Saenko 2018, RISE, section 4.3);
the area under the curve says how well the order was chosen. Random orders say what area chance reaches for this very picture and class.
Misleads: a picture with holes is unlike anything the model was trained on, so compare the ways of hiding.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from vitdemo.checkpoint import Loaded

Hiding = Literal["mean", "blur", "drop"]        # the picture's mean colour, a strongly blurred copy, or the tokens left out
HIDING: tuple[str, ...] = get_args(Hiding)
LEVELS, RANDOM, BATCH = 16, 20, 64
RANGE = (5, 95)                                 # percentiles of the random orders' areas between which a map says no more than chance
ROUNDING = 1e-6                                 # areas that differ by less do not differ: probabilities are float32


class Curves(NamedTuple):
    """Class probabilities along orders; the first and the last level are the same for all."""

    shares: np.ndarray              # (levels + 1,), of the patches hidden (deletion) or shown (insertion), from 0 to 1
    probabilities: np.ndarray       # (M, levels + 1)


class Verdict(NamedTuple):
    """What the area of a map's curve says beside those of random orders."""

    kind: Literal["better", "chance", "worse"]
    sentence: str
    low: float                      # the 5 % and 95 % points of the random orders' areas
    high: float


def order_of(weights: np.ndarray, seed: int = 0) -> np.ndarray:
    """Patches (N,) from the most to the least important of a map, any shape. Ties are broken at random (by `seed`), so that a constant
    map is no order by position in disguise. Raises ValueError for a map that is not finite."""
    flat = np.asarray(weights, np.float64).ravel()
    if not np.isfinite(flat).all():
        raise ValueError("a map with values that are not finite cannot be put in order")
    shuffled = np.random.default_rng(seed).permutation(len(flat))
    return shuffled[np.argsort(-flat[shuffled], kind="stable")]


def random_orders(patches: int, count: int = RANDOM, seed: int = 0) -> np.ndarray:
    """`count` random orders of the patches, (count, N)."""
    generator = np.random.default_rng(seed)
    return np.stack([generator.permutation(patches) for _ in range(count)])


def counts(patches: int, levels: int = LEVELS) -> np.ndarray:
    """How many patches are hidden at each level, from none to all, in at most `levels` even steps. Raises ValueError for no step."""
    if levels < 1:
        raise ValueError(f"a curve needs at least 1 step, not {levels}")
    return np.unique(np.round(np.linspace(0, patches, min(levels, patches) + 1)).astype(int))


class Hider:
    """Answers for one picture and class what the model says when some patches are hidden. Holds the picture, changes nothing.

    Where all tokens are to be dropped, a model with a class token still answers; one that averages its patches keeps the last patch.
    Raises ValueError for an unknown way of hiding, and for a class the model does not know.
    """

    def __init__(self, loaded: Loaded, tensor: Tensor, klass: int, how: str):
        if how not in HIDING:
            raise ValueError(f"patches are hidden by {', '.join(HIDING)}, not by {how!r}")
        if isinstance(klass, bool) or not isinstance(klass, (int, np.integer)) or not 0 <= klass < loaded.config.classes:
            known = loaded.config.classes
            raise ValueError(f"the model knows {known} classes, numbered from 0; {klass!r} is none of them" if known else
                             "this model has no classes, so there is no probability to watch")
        self._model, self._klass, self._how, self._tensor = loaded.model, int(klass), how, tensor
        self._patch, self._prefix = loaded.config.patch, loaded.config.prefix
        self.grid = tensor.shape[2] // self._patch[0], tensor.shape[3] // self._patch[1]
        self.patches = self.grid[0] * self.grid[1]
        self._averages = loaded.config.pool == "mean" or loaded.config.head == "both"                      # and so needs one patch
        if how == "drop":
            with torch.inference_mode():
                self._embedded = loaded.model.embed(tensor)                 # (1, T, D)
        else:
            self._cover = cover(tensor, how)

    @torch.inference_mode()
    def probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """Class probabilities (M,) with the patches of `hidden` (M, N), true where hidden; for "drop" every row hides equally many."""
        mask = torch.from_numpy(np.ascontiguousarray(hidden))
        if self._how == "drop":
            logits = self._model.classify(self._model.transform(self._kept(mask)))
        else:
            rows = mask.unflatten(1, self.grid)[:, None].repeat_interleave(self._patch[0], 2).repeat_interleave(self._patch[1], 3)
            logits = self._model(torch.where(rows, self._cover, self._tensor))
        return logits.softmax(-1)[:, self._klass].numpy()

    def _kept(self, mask: Tensor) -> Tensor:
        """The embedded tokens that stay, (M, prefix + kept, D)."""
        if self._averages:
            mask = mask.clone()
            mask[mask.all(1), -1] = False
        kept = (~mask).nonzero()[:, 1].view(len(mask), -1) + self._prefix   # (M, kept)
        prefix = torch.arange(self._prefix).expand(len(mask), -1)
        index = torch.cat((prefix, kept), dim=1)[..., None].expand(-1, -1, self._embedded.shape[2])
        return self._embedded.expand(len(mask), -1, -1).gather(1, index)


def cover(tensor: Tensor, how: str) -> Tensor:
    """What stands in the place of hidden patches, broadcastable to `tensor` (1, C, height, width)."""
    if how == "mean":
        return tensor.mean(dim=(2, 3), keepdim=True)
    from torchvision.transforms.functional import gaussian_blur  # takes seconds to import

    for axis, side in enumerate(tensor.shape[:1:-1]):                       # width, then height: a wide kernel is cheaper one axis at a time
        reach = max(1, min(side // 2 | 1, 2 * ((side + 1) // 2) - 1))       # odd, and no longer than what can be reflected at the edges
        sizes, widths = [1, 1], [1.0, 1.0]
        sizes[axis], widths[axis] = reach, max(side / 4, 0.5)
        tensor = gaussian_blur(tensor, sizes, widths)
    return tensor


def curves(hider: Hider, orders: Sequence[np.ndarray], *, insertion: bool = False, levels: int = LEVELS,
           batch: int = BATCH) -> Iterator[tuple[int, int, Curves | None]]:
    """Hide (deletion) or show (insertion) patches in the given orders, level by level, many pictures at a time.

    Yields (done, total) pictures and, last, the Curves; whoever iterates may stop at any time. Raises ValueError for what is no order.
    """
    orders = np.asarray(orders)
    if orders.ndim != 2 or orders.shape[1] != hider.patches or (np.sort(orders, axis=1) != np.arange(hider.patches)).any():
        raise ValueError(f"orders are a list of orders, each with every patch from 0 to {hider.patches - 1} once")
    ranks = np.argsort(orders, axis=1)                                      # (M, N), the place of each patch in each order
    steps = counts(hider.patches, levels)
    found = np.empty((len(orders), len(steps)))
    total, done = len(orders) * (len(steps) - 2) + 2, 0
    for level, count in enumerate(steps):
        hidden = ranks >= count if insertion else ranks < count
        same = level in (0, len(steps) - 1)
        for first in range(0, 1 if same else len(orders), batch):
            part = slice(first, 1 if same else first + batch)
            answer = hider.probabilities(hidden[part])
            found[slice(None) if same else part, level] = answer
            done += len(answer)
            yield done, total, None
    yield total, total, Curves(steps / hider.patches, found)


def measure(hider: Hider, orders: Sequence[np.ndarray], **settings: int | bool) -> Curves:
    """`curves`, run to its end."""
    *_, (_, _, result) = curves(hider, orders, **settings)
    return result


def area(found: Curves) -> np.ndarray:
    """Area under each curve over the share of patches, (M,), by the trapezoid rule: the mean probability along the way."""
    widths = np.diff(found.shares)
    return ((found.probabilities[:, 1:] + found.probabilities[:, :-1]) / 2 * widths).sum(1)


def spread(random: np.ndarray) -> np.ndarray:
    """The 5 % and 95 % points of what random orders reached, (2, ...) over the first axis. Estimated by i / (n + 1), because with twenty
    values the usual interpolation cuts the range short: it would call one random order in ten better than chance, not one in twenty."""
    return np.percentile(random, RANGE, axis=0, method="weibull")


def judge(own: float, random: np.ndarray, *, insertion: bool = False) -> Verdict:
    """Is a map's area outside the 5 to 95 % range of the random orders' areas? Low is good for deletion, high for insertion."""
    low, high = map(float, spread(random))
    if low - ROUNDING <= own <= high + ROUNDING:
        return Verdict("chance", f"this map is no better than chance for this picture: its area of {_told(own)} lies inside the {_told(low)} to "
                                 f"{_told(high)} of random orders", low, high)
    good = own > high if insertion else own < low
    beyond = f"its area of {_told(own)} lies {'above' if own > high else 'below'} the {_told(low)} to {_told(high)} of random orders"
    if good:
        return Verdict("better", f"this map is better than chance for this picture: {beyond}", low, high)
    return Verdict("worse", f"this map is worse than chance for this picture: {beyond}", low, high)


def _told(number: float) -> str:
    """An area with three decimals, or three digits where it is small."""
    return f"{number:.3f}" if number >= 0.0995 else f"{number:.3g}"


def percentile(own: float, random: np.ndarray, *, insertion: bool = False) -> float:
    """Share of the random orders that the map beats, 0 to 1; ties count half."""
    ahead = (own - random) * (1 if insertion else -1)                       # by how much it is better than each
    return float((ahead > ROUNDING).mean() + (abs(ahead) <= ROUNDING).mean() / 2)


def occlusion(loaded: Loaded, tensor: Tensor, klass: int, how: str = "mean", batch: int = BATCH) -> np.ndarray:
    """How much the class probability falls when one patch alone is hidden, (rows, cols); negative where it rises (Zeiler and Fergus 2014).
    Misleads where two patches say the same: hiding either alone changes nothing."""
    *_, (_, _, drops) = occlusion_steps(Hider(loaded, tensor, klass, how), batch=batch)
    return drops


def occlusion_steps(hider: Hider, *, batch: int = BATCH) -> Iterator[tuple[int, int, np.ndarray | None]]:
    """`occlusion` step by step: yields (done, total) pictures and, last, the falls (rows, cols); whoever iterates may stop at any time."""
    one, total = np.eye(hider.patches, dtype=bool), hider.patches + 1
    whole = hider.probabilities(np.zeros((1, hider.patches), bool))[0]
    yield 1, total, None
    without: list[float] = []
    for first in range(0, hider.patches, batch):
        without.extend(hider.probabilities(one[first:first + batch]))
        yield 1 + len(without), total, None
    yield total, total, (whole - np.array(without)).reshape(hider.grid)

"""What chance alone does to shares of right answers: the error of one share, and whether two sets of runs lie further apart than that."""

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import NamedTuple

T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78}       # Student's t, two-sided 5 %, by degrees of freedom


def share_error(share: float, n: int) -> float:
    """Standard error of a share of n pictures, for pictures drawn anew, after adding two right and two wrong answers (Agresti and Coull
    1998): of many pictures the usual one, and not zero where a handful are all right."""
    adjusted = (share * n + 2) / (n + 4)
    return math.sqrt(adjusted * (1 - adjusted) / (n + 4))


class Welch(NamedTuple):
    """Welch's test of two means at 5 %."""

    difference: float               # of the first mean from the second
    error: float                    # standard error of that difference
    freedom: int                    # degrees of freedom, after Satterthwaite, rounded down
    needed: float                   # how many times `error` the difference has to be

    @property
    def told_apart(self) -> bool:
        return abs(self.difference) > self.needed * self.error


def welch(a: Sequence[float], b: Sequence[float], least: float = 0.0) -> Welch:
    """Whether the means of `a` and `b`, two to three values each, differ. `least`: a standard error known from elsewhere that the test
    must not fall below, because a few values may agree by luck."""
    errors = [variance(values) / len(values) for values in (a, b)]
    parts = sum(error ** 2 / (len(values) - 1) for error, values in zip(errors, (a, b), strict=True))
    fewest = min(len(a), len(b)) - 1
    freedom = max(fewest, min(int(sum(errors) ** 2 / parts + 1e-9), max(T))) if parts else fewest
    return Welch(fmean(a) - fmean(b), max(math.sqrt(sum(errors)), least), freedom, T[freedom])

"""A fair race: runs that share seed, data and the order of pictures, and differ in one thing; and what may be concluded from it.

Where the difference is in the architecture both sides get the same time; otherwise they take the same number of steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple

from vitdemo.chance import share_error, welch
from vitdemo.config import ConfigError
from vitdemo.plan import TITLE_LENGTH, Plan, looks, plan, upright
from vitdemo.runfolder import new_id

BESIDES = 25.0                                  # seconds, about, that a run takes besides its training: to start, to look, to be tested
RECIPE = "class"                                # that races are run with, whatever the pictures
SEEDS = (1, 3)                                  # over how many seeds a race may be repeated


class RaceError(ValueError):
    """Runs that cannot be compared; the message is one sentence."""


@dataclass(frozen=True)
class Kind:
    """What a race is about: the names of its two sides, what is changed for each, and what both get the same amount of."""

    title: str
    question: str
    a: str
    b: str
    budget: Literal["seconds", "steps"]
    changes: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    networks: tuple[str, str] = ("vit", "vit")
    both: dict[str, Any] = field(default_factory=dict)                      # changes of the recipe that hold for both sides


KINDS: dict[str, Kind] = {
    "patch": Kind("Large or small patches", "Does it help to cut a picture into smaller patches?",
                  "patches of 4 pixels", "patches of 8 pixels", "seconds", ({"patch": [4, 4]}, {"patch": [8, 8]})),
    "pool": Kind("Class token or mean", "Should the answer be read from a class token, or from the mean of all patches?",
                 "class token", "mean of all patches", "seconds", ({"pool": "cls"}, {"pool": "mean", "class_token": False})),
    "positions": Kind("With or without positions", "Do positions matter?", "learned positions", "no positions",
                      "seconds", ({"positions": "learned"}, {"positions": "none"})),
    "optimizer": Kind("Muon or AdamW", "Does the newer optimizer learn more from the same pictures?", "Muon", "AdamW",
                      "steps", ({"optimizer": "muon"}, {"optimizer": "adamw"})),
    "network": Kind("ViT or CNN", "Is attention better than convolution at this size?", "ViT", "small CNN",
                    "seconds", networks=("vit", "cnn"), both={"optimizer": "adamw"}),
    "augmentation": Kind("With or without augmentation", "Does it help to mirror and shift the pictures?",
                         "with augmentation", "without augmentation", "steps", ({"flip": True, "shift": 4}, {"flip": False, "shift": 0})),
}


def plans(kind: str, *, minutes: float, data: str, seeds: int, threads: int, pace: float | None = None) -> list[Plan]:
    """The runs of a race in the order in which they should start: both sides of seed 0, then of seed 1, and so on.

    pace: pictures per second measured for the recipe on this machine (see `pace`), which says how many steps `minutes` have; a race of equal
    times needs none. Raises ConfigError.
    """
    if kind not in KINDS:
        raise ConfigError(f"there is no race {kind!r:.40}; there are {', '.join(KINDS)}")
    if seeds not in SEEDS:
        raise ConfigError(f"a race is run with {' or '.join(map(str, SEEDS))} seeds, not with {seeds}")
    chosen, race, found = KINDS[kind], new_id(), []
    common = {**chosen.both, "threads": threads, "evaluations": looks(minutes)}
    for seed in range(seeds):
        for index, side in enumerate("ab"):
            made = plan(preset=RECIPE, data=data, minutes=minutes, changes={**common, "seed": seed, **chosen.changes[index], **upright(data)}, start="",
                        network=chosen.networks[index], title=f"{(chosen.a, chosen.b)[index]}, seed {seed}"[:TITLE_LENGTH],
                        race={"id": race, "side": side, "kind": kind, "seed": seed})
            if chosen.budget == "steps":
                steps = max(1, round(60 * minutes * _timed(pace) / made.train.batch))
                made = made._replace(train=made.train.with_(minutes=0.0, steps=steps))
            found.append(made)
    return found


def total_seconds(runs: Sequence[Plan], *, pace: float | None = None) -> float:
    """About how long the runs take one after the other, everything included. `pace` as for `plans`; raises ConfigError."""
    return sum(BESIDES + (60 * run.train.minutes or run.train.steps * run.train.batch / _timed(pace)) for run in runs)


def _timed(pace: float | None) -> float:
    """A pace that is known. Raises ConfigError for none."""
    if not pace:
        raise ConfigError("a race of equal steps needs the pace of its recipe on this machine")
    return pace


class Verdict(NamedTuple):
    """What a race showed. Shares from 0 to 1; `difference` is above 0 where side a is ahead."""

    winner: str | None              # "a" or "b" where seeds that differ by chance alone would rarely lie so far apart, else None
    difference: float               # mean accuracy of a minus that of b
    noise: float                    # standard error of that difference
    sentence: str


def verdict(rows: Sequence[tuple[str, int, float, int]], kind: str = "") -> Verdict:
    """What follows from runs that are over, each (side, seed, accuracy on its validation pictures, how many they are).

    With one run of a side only the pictures' chance is known. What another seed would have made of it cannot be told, so nobody wins. With
    more runs this is Welch's test of two means at 5 %, with degrees of freedom after Satterthwaite (rounded down); its standard error is at
    least what the pictures' chance alone makes of it. Raises RaceError where a side has no run.
    """
    sides = {side: [(accuracy, n) for s, _, accuracy, n in rows if s == side] for side in "ab"}
    names = (KINDS[kind].a, KINDS[kind].b) if kind in KINDS else ("side A", "side B")
    if not all(sides.values()) or any(not 0 <= accuracy <= 1 or n < 1 for side in sides.values() for accuracy, n in side):
        raise RaceError("a race needs a run of each side that looked at its validation pictures")
    means = [fmean(accuracy for accuracy, _ in sides[side]) for side in "ab"]
    difference = means[0] - means[1]
    ahead, behind = (0, 1) if difference >= 0 else (1, 0)
    lead = (f"{_capital(names[ahead])} got {means[ahead]:.1%} right and {names[behind]} {means[behind]:.1%}" if difference else
            f"Both sides got {means[0]:.1%} right")
    chance = math.sqrt(sum(share_error(accuracy, n) ** 2 / len(side) ** 2 for side in sides.values() for accuracy, n in side))
    if min(map(len, sides.values())) < 2:
        beyond = "beyond" if abs(difference) > 2 * chance else "not beyond"
        return Verdict(None, difference, chance, f"{lead}, {beyond} twice the chance of the pictures alone (standard error "
                       f"{100 * chance:.1f} points); one run each cannot tell what another seed would do: repeat it over three seeds.")
    found = {side: [accuracy for accuracy, _ in runs] for side, runs in sides.items()}
    test, first, second = welch(found["a"], found["b"], least=chance), "ab"[ahead], "ab"[behind]
    spreads = " and ".join(f"{100 * stdev(found[side]):.1f}" for side in (first, second))
    return Verdict(first if test.told_apart else None, difference, test.error,
                   f"{lead} on average of {len(found[first])} and {len(found[second])} runs, which spread by {spreads} points: a difference of "
                   f"{100 * abs(difference):.1f} points with a standard error of {100 * test.error:.1f}, of which {test.needed:.1f} times would be needed "
                   f"(Welch's test, {test.freedom} degrees of freedom, 5 %). "
                   f"{f'{_capital(names[ahead])} won.' if test.told_apart else 'These runs do not tell the two apart.'}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

"""What a run of so many minutes would come to on this machine: its pace is measured by a child process, and the outcome said from runs
that were measured."""

import json
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from vitdemo import data, words
from vitdemo.batches import batch_size
from vitdemo.budget import looks_made, pictures_tested, training_time
from vitdemo.child import environment
from vitdemo.precision import quick_at_bfloat16
from vitdemo.presets import MEASURED_ON, PRESETS, SIZES, Expected, expected, learned
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request, RequestError
from vitdemo.ui.orders import Order, by_clock, fitting, order
from vitdemo.ui.reach import Reach

KEPT = 64                                       # paces that are remembered
TIME_OUT = 90                                   # seconds a measurement may take, on a machine that is busy with a run
LASTS = 900                                     # seconds that a pace is believed: a laptop is plugged in, gets warm, has other work
FAILED_FOR = 20                                 # seconds before a measurement that failed is tried again
LADDER = (("quick", 2.5), ("class", 6.0), ("break", 40.0), ("hour", float("inf")))          # recipes by the most minutes they are for, until a pace is known
PASSES = 16                                     # over the same pictures: from so many on "break" comes further than "class", which hardly changes them
LOOK_FACTOR = 0.5                               # pictures looked at in the time of one learned from, where that was not measured: looks are float32, at full size
FAST = 2                                        # threads from which on the larger model of the last one comes far enough in an hour
# the settings of a recipe that a pace depends on
SLOW = ("batch", "optimizer", "freeze", "precision", "stages", "stage_ends", "flip", "shift", "crop_least", "crop_most", "tint", "erase", "mix")


class Measurement(NamedTuple):
    """What came of timing a recipe here."""

    speed: float                    # images per second; 0 where it could not be timed
    looks: float                    # pictures per second that are only looked at
    time: float = 0.0               # by the monotonic clock
    elsewhere: str = ""             # the machine that this was timed on, where it is another one


class Offers:
    """Times at most one recipe at once, none while a run is going on, which would be disturbed, and keeps what came out for all
    visitors."""

    def __init__(self, reach: Reach, command: Callable[[Order], list[str]] | None = None):
        self._reach = reach
        self._command = command or measuring
        self._known: OrderedDict[str, Measurement] = OrderedDict()
        self._lock = threading.Lock()
        self._measuring = False

    def offer(self, request: Request) -> Answer:
        """What so many minutes would come to, or {"measuring": true} while that is found out."""
        most = self._reach.owner.max_minutes
        minutes = fields.number(request, "minutes", most, least=0.02, default=min(3.0, most))
        preset, busy = suggested(request, minutes, self._reach.threads), self._reach.scheduler.busy()
        made, found = self._timed(request, preset, minutes)
        tried, free = {preset}, request.get("preset") is None and not fitting(request)
        while free and found and not found.elsewhere and (better := further(made, found)) not in tried:
            tried.add(better)
            try:
                made, found = self._timed(request, better, minutes)
            except RequestError:                                            # too large for this host, or not to be timed
                break
            preset = better
        clocked = by_clock(minutes, made.source.pictures)
        if found is None:
            return {"measuring": True, "preset": preset, "busy": busy, "by_clock": clocked, "sentence": words.MEASURING}
        pace, training = found.speed, training_seconds(made, found)
        images = round(training * pace)
        likely = expected(images, preset) if images and not found.elsewhere and usual(made) else None
        return {"preset": preset, "minutes": minutes, "by_clock": clocked, "images_per_second": pace or None, "images": images,
                "passes": images / learned_from(made), "expected": likely and likely.accuracy, "busy": busy, "training_seconds": training,
                "sentence": said(made, found, training, likely, busy)}

    def _timed(self, request: Request, preset: str, minutes: float) -> tuple[Order, Measurement | None]:
        made = order({**request, "preset": preset, "minutes": minutes, "epochs": None, "steps": None}, self._reach)
        return made, self.pace(made)

    def pace(self, made: Order, *, old: bool = False) -> Measurement | None:
        """How fast an order is here; None while that is timed, which begins now if nothing else is. While a run is going on, what was timed
        before, or what the recipe did on another machine, or 0 where nobody knows. `old`: what was timed long ago will do. Raises
        RequestError where it could not be timed."""
        busy, key = self._reach.scheduler.busy(), key_of(made)
        with self._lock:
            known = self._known.get(key)
            if known and known.speed and (old or busy or time.monotonic() - known.time < LASTS):
                self._known.move_to_end(key)
                return known
            if known and not known.speed and time.monotonic() - known.time < FAILED_FOR:
                raise RequestError("the pace of these settings could not be measured: try a smaller model or batch")
            if busy:
                return elsewhere(made)
            if not self._measuring:
                self._measuring = True
                threading.Thread(target=self._measure, args=(key, made), name="pace", daemon=True).start()
            return None

    def _measure(self, key: str, made: Order) -> None:
        found = Measurement(0.0, 0.0, 0.0)
        try:
            done = subprocess.run(self._command(made), capture_output=True, text=True, timeout=TIME_OUT, stdin=subprocess.DEVNULL,
                                  env=environment(), check=False)
            told = json.loads(done.stdout.splitlines()[-1])
            speed = float(told["images_per_second"])
            if 0 < speed < 1e9:
                found = Measurement(speed, float(told.get("looks_per_second", LOOK_FACTOR * speed)), 0.0)
        except (OSError, ValueError, KeyError, IndexError, TypeError, subprocess.SubprocessError):
            pass                                                            # said as "could not be measured"
        finally:
            with self._lock:
                self._measuring = False
                before = self._known.get(key)
                if not found.speed and before and before.speed:             # what was timed long ago is better than nothing
                    self._known[key] = before._replace(time=time.monotonic() - LASTS + FAILED_FOR)
                elif not (found.speed and self._reach.scheduler.busy()):    # a run that began meanwhile slowed it down: timed anew
                    self._known[key] = found._replace(time=time.monotonic())
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)


def measuring(made: Order) -> list[str]:
    """The command that measures an order's pace. A start brings its own shape along."""
    shape = ["--start", made.plan.start] if made.start else _sets(made.vit.to_json())
    recipe = _sets({**({} if made.plan.train.minutes else {"minutes": 0, "steps": 1000}), **slow(made)})
    return [sys.executable, "-m", "vitdemo.pace", "--preset", "class", "--threads", str(made.plan.train.threads), *shape, *recipe]


def slow(made: Order) -> dict[str, Any]:
    """The settings of an order's recipe that its pace depends on, the batch as large as its pictures allow."""
    train = made.plan.train.with_(batch=max(1, batch_size(learned_from(made), made.plan.train.batch)))
    return {name: value for name, value in train.to_json().items() if name in SLOW}


def learned_from(made: Order) -> int:
    """How many of an order's pictures a run learns from, at least one: the others are held out."""
    return max(1, round(made.source.pictures * (1 - data.held_share(made.source.pictures, made.plan.train.validation))))


def _sets(values: dict[str, Any]) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={json.dumps(value)}")]


def suggested(request: Request, minutes: float, threads: int) -> str:
    """The recipe that a request names, or the one for its pictures, minutes and threads."""
    if request.get("preset") is not None:
        return fields.choice(request, "preset", tuple(PRESETS))
    rungs = LADDER if threads >= FAST else LADDER[:-1]
    return fitting(request) or next((name for name, most in rungs if minutes <= most), rungs[-1][0])


def further(made: Order, found: Measurement) -> str:
    """The recipe of LADDER that comes further in the time of an order than its own, at the pace that was found here; or its own."""
    preset, passes = made.plan.preset, training_seconds(made, found) * found.speed / learned_from(made)
    (quick, short), (longer, _), (changing, _), _ = LADDER
    if preset in (quick, longer):
        return changing if passes > PASSES else preset
    if falls_short(made, found):
        return changing
    return (quick if made.plan.train.minutes <= short else longer) if preset == changing and passes < PASSES else preset


def falls_short(made: Order, found: Measurement) -> bool:
    """Whether an order is the last recipe of LADDER on a machine too slow for its larger model, where the one before it comes further."""
    if made.plan.preset != LADDER[-1][0]:
        return False
    images = training_seconds(made, found) * found.speed
    likely, before = expected(images, made.plan.preset), learned(LADDER[-2][0])[-1]
    return images < learned(made.plan.preset)[-1].images and (likely is None or likely.accuracy <= before.accuracy)


def key_of(made: Order) -> str:
    """Equal for orders that learn at one pace."""
    return json.dumps([made.vit.to_json(), made.start is not None, bool(made.plan.train.minutes), made.plan.train.threads, slow(made)])


def elsewhere(made: Order) -> Measurement:
    """How fast an order's recipe was where it was measured, on a processor and with a number of threads like its own; 0 where the
    order is not the recipe as it stands, or that was never measured."""
    row = PRESETS[made.plan.preset].nearest(made.plan.train.threads, quick_at_bfloat16()) if unchanged(made) else None
    speed = row.images_per_second if row else 0.0
    return Measurement(speed, LOOK_FACTOR * speed, elsewhere=MEASURED_ON + (f" of {row.machine.name}" if row else ""))


def training_seconds(made: Order, found: Measurement) -> float:
    """How long a run of minutes trains: all of its time but for its looks and its test, as `vitdemo.budget` counts them."""
    train, pictures = made.plan.train, made.source.pictures
    one = 1 / found.looks if found.looks else 0.0                           # seconds that a picture is looked at
    each = one * pictures * data.held_share(pictures, train.validation)
    return training_time(train, (1 + looks_made(train, each)) * each, one * pictures_tested(made.source.tested, train, one))


def unchanged(made: Order) -> bool:
    """Whether an order is its recipe but for the length, the random choices and the pictures."""
    own = PRESETS[made.plan.preset]
    free = {"clock": "training", "validation": 0.05, "minutes": 3.0, "epochs": 0, "steps": 0, "evaluations": 1, "seed": 0, "threads": 1}
    return made.start is None and made.plan.vit == SIZES[own.size].config and made.plan.train.with_(**free) == own.train.with_(**free)


def usual(made: Order) -> bool:
    """Whether an order is the recipe on the pictures that the measured runs had."""
    return made.plan.preset in dict(LADDER) and made.source.name == "cifar10" and unchanged(made)


def said(made: Order, found: Measurement, training: float, likely: Expected | None, busy: bool) -> str:
    """An offer in words."""
    pace = found.speed
    if not pace:
        return "How fast these settings are on this computer cannot be timed while another run is going on."
    images, clock = training * pace, f"{round(training) // 60}:{round(training) % 60:02d}"
    passes = f"{images / learned_from(made):.1f} passes over {made.source.title.split(':')[0]}"
    if found.elsewhere:
        return (f"While another run is going on, this computer cannot be timed, and yours may have to wait. At the pace that was measured on {found.elsewhere}, "
                f"such a run would learn from about {round(images, -2):,.0f} pictures in {clock} minutes ({pace:,.0f} a second, {passes}).")
    parts = [f"About {round(images, -2):,.0f} pictures in {clock} minutes of training ({pace:,.0f} a second, {passes}); the rest of the "
             "time goes into looks at pictures it never learns from and the test."]
    if likely is not None:
        parts.append(f"From {likely.n} run{'s' * (likely.n != 1)} of such a recipe, about {likely.accuracy:.0%} of the test pictures right can be expected.")
    elif usual(made):
        parts.append("No run of this length was measured.")
    if busy:
        parts.append("Another run is going on here, so yours may have to wait.")
    return " ".join(parts)

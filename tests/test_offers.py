"""Offers: a pace is timed once by a child process and never beside a run; what is promised is what was measured."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from conftest import coloured, picture_bytes, pretend
from lab_visitor import UNKNOWN, Visitor

from vitdemo import settings, words
from vitdemo.presets import PRESETS, expected
from vitdemo.ui import offers
from vitdemo.ui.offers import Offers
from vitdemo.ui.orders import order
from vitdemo.ui.reach import Reach


class Timed:
    """An Offers whose child only prints what it is told to, and counts how often it was started."""

    def __init__(self, box, home: Path, prints: str = '{"images_per_second": 500.0, "looks_per_second": 638.8889}', **owner):
        self.visitor = Visitor(home, box, **owner)
        self.reach = Reach(self.visitor.scheduler, self.visitor.lab.reach.models, self.visitor.sets, self.visitor.owner)
        self.prints, self.started = prints, home / "started"
        self.offers = Offers(self.reach, self._command)

    def _command(self, made):
        with self.started.open("a") as file:
            file.write(made.plan.preset + "\n")
        return [sys.executable, "-c", f"print({self.prints!r})"]

    def until_timed(self, **request):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            answer = self.offers.offer(request)
            if not answer.get("measuring"):
                return answer
            time.sleep(0.02)
        raise AssertionError("still measuring")

    @property
    def starts(self) -> int:
        return len(self.started.read_text().split()) if self.started.exists() else 0


@pytest.fixture
def timed(tiny, tmp_path):
    (tmp_path / "runs").mkdir()
    return Timed(tiny, tmp_path / "runs")


def test_an_offer_says_pictures_passes_and_what_was_measured_for_as_many(timed):
    first = timed.offers.offer({"minutes": 3, "data": "cifar10"})
    assert first["measuring"] and first["sentence"] == words.MEASURING
    offer = timed.until_timed(minutes=3, data="cifar10")
    assert (offer["preset"], offer["images_per_second"], offer["images"], offer["passes"]) == ("class", 500.0, 72_000, pytest.approx(72_000 / 49_000))      # 1,000 are held out
    likely = expected(72_000)
    assert offer["expected"] == likely.accuracy and not offer["busy"]
    config = order({"preset": "class", "data": "cifar10", "minutes": 3}, timed.reach).plan.train
    assert offer["by_clock"] == first["by_clock"] == {"evaluations": config.evaluations, "validation": config.validation} and config.validation == 0.02
    assert "72,000 pictures in 2:24 minutes of training (500 a second, 1.5 passes over CIFAR-10)" in offer["sentence"]
    assert f"{likely.accuracy:.0%}" in offer["sentence"] and f"From {likely.n} runs" in offer["sentence"]


@pytest.mark.parametrize(("threads", "names"), [(1, ["quick", "quick", "class", "break", "break", "break"]), (2, ["quick", "quick", "class", "break", "break", "hour"])])
def test_the_recipe_fits_the_minutes_and_the_larger_model_wants_more_than_one_thread(threads, names):
    assert [offers.suggested({"data": "cifar10"}, minutes, threads) for minutes in (1, 2.5, 3, 10, 40, 60)] == names
    assert offers.suggested({"data": "cifar10", "preset": "hour"}, 1, threads) == "hour" and offers.suggested({"data": "mnist"}, 60, threads) == "mnist"


def test_a_pace_is_timed_once_for_all_lengths_of_a_recipe(timed, monkeypatch):
    monkeypatch.setattr(settings, "training_threads", lambda runs: 2)
    timed.prints = '{"images_per_second": 2500, "looks_per_second": 3000}'
    for minutes, preset in ((1, "quick"), (3, "class"), (10, "break"), (2, "quick"), (2.6, "class"), (40, "break"), (60, "hour")):
        assert timed.until_timed(minutes=minutes, data="cifar10")["preset"] == preset
    assert timed.started.read_text().split() == ["quick", "break", "hour"]        # quick and class are one recipe
    timed.until_timed(minutes=3, data="cifar10", changes={"depth": 2})
    timed.until_timed(minutes=3, data="cifar10", changes={"batch": 64})
    timed.until_timed(minutes=3, data="cifar10", changes={"seed": 7, "lr": 0.01})
    assert timed.starts == 5
    for changes in ({"precision": "float32"}, {"mix": 0.5}, {"crop_least": 0.5}, {"tint": 0.2}, {"erase": 0.2}):
        timed.until_timed(minutes=3, data="cifar10", changes=changes)
    assert timed.starts == 10


def test_a_pace_is_timed_again_after_a_while_but_not_beside_a_run(timed, monkeypatch):
    timed.until_timed(minutes=3, data="cifar10")
    made = order({"preset": "class", "data": "cifar10", "minutes": 3}, timed.reach)
    later = time.monotonic() + offers.LASTS + 1
    pretend(monkeypatch, offers, "time", monotonic=lambda: later)
    assert timed.offers.pace(made, old=True).speed == 500.0 and timed.starts == 1
    monkeypatch.setattr(timed.visitor.scheduler, "busy", lambda: True)
    assert timed.offers.pace(made).speed == 500.0 and timed.starts == 1
    monkeypatch.setattr(timed.visitor.scheduler, "busy", lambda: False)
    timed.prints = timed.prints.replace("500", "800")
    assert timed.offers.pace(made) is None
    deadline = time.perf_counter() + 20
    while (found := timed.offers.pace(made)) is None and time.perf_counter() < deadline:
        time.sleep(0.02)
    assert found.speed == 800.0 and timed.starts == 2
    pretend(monkeypatch, offers, "time", monotonic=lambda: later + offers.LASTS + 1)
    timed.prints = "nothing"
    assert timed.offers.pace(made) is None
    deadline = time.perf_counter() + 20
    while timed.offers._measuring and time.perf_counter() < deadline:
        time.sleep(0.02)
    assert timed.offers.pace(made).speed == 800.0 and timed.starts == 3     # one that fails does not take what was known


def test_the_command_that_times_a_recipe_names_all_that_a_step_does(timed):
    made = order({"minutes": 3, "data": "cifar10", "preset": "hour", "changes": {"precision": "float32"}}, timed.reach)
    told = dict(part.split("=", 1) for part in offers.measuring(made) if "=" in part)
    for name in ("batch", "crop_least", "crop_most", "tint", "erase", "mix", "shift"):
        assert json.loads(told[name]) == getattr(PRESETS["hour"].train, name), name
    assert json.loads(told["precision"]) == "float32"


def test_a_step_over_few_pictures_is_timed_with_as_many_as_it_will_see(timed):
    made = order({"minutes": 3, "data": "cifar10"}, timed.reach)
    few = made._replace(source=made.source._replace(pictures=90), plan=made.plan._replace(train=made.plan.train.with_(batch=64)))
    assert offers.slow(few)["batch"] == 36                                  # a fifth of them is held out, and two steps share the rest
    assert offers.key_of(few) != offers.key_of(few._replace(source=few.source._replace(pictures=60)))


def test_only_what_was_measured_is_promised(timed):
    for request in ({"data": "mnist"}, {"data": "cifar10", "changes": {"depth": 2}}, {"data": "cifar10", "changes": {"lr": 0.5}},
                    {"data": "cifar10", "model": "vit-notebook"}, {"data": "cifar10", "preset": "plain"},
                    {"data": "cifar10", "start": "box"}):
        offer = timed.until_timed(minutes=3, **request)
        assert offer["expected"] is None and "test pictures" not in offer["sentence"], request
    assert timed.until_timed(minutes=3, data="cifar10", changes={"seed": 3, "evaluations": 5})["expected"] is not None
    timed.prints = '{"images_per_second": 5}'
    far = timed.until_timed(minutes=3, data="cifar10", preset="hour")
    assert far["expected"] is None and "No run of this length was measured" in far["sentence"]


@pytest.mark.parametrize(("speed", "preset"), [(100, "class"), (330, "break"), (650, "hour"), (2000, "hour")])
def test_a_machine_that_is_slow_is_offered_an_hour_of_the_smaller_model(timed, monkeypatch, speed, preset):
    monkeypatch.setattr(settings, "training_threads", lambda runs: 2)
    timed.prints = f'{{"images_per_second": {speed}}}'
    assert timed.until_timed(minutes=60, data="cifar10")["preset"] == preset
    assert timed.until_timed(minutes=60, data="cifar10", preset="hour")["preset"] == "hour"        # who asks for it gets it


@pytest.mark.parametrize(("minutes", "speed", "preset"), [
    (1, 500, "quick"), (1, 50_000, "break"), (3, 500, "class"), (3, 20_000, "break"), (10, 500, "class"), (10, 2000, "break"), (60, 20, "class"), (60, 5000, "hour")])
def test_a_recipe_is_proposed_by_how_often_it_will_see_the_same_pictures(timed, monkeypatch, minutes, speed, preset):
    monkeypatch.setattr(settings, "training_threads", lambda runs: 2)
    timed.prints = f'{{"images_per_second": {speed}}}'
    assert timed.until_timed(minutes=minutes, data="cifar10")["preset"] == preset
    asked = timed.until_timed(minutes=minutes, data="cifar10", preset="quick")
    assert asked["preset"] == "quick"                                       # who asks for one gets it


def test_few_pictures_of_ones_own_are_changed_while_they_are_learned_from(timed):
    own = timed.visitor.sets.create("mugs")
    for colour in ("red", "green"):
        for seed in range(3):
            timed.visitor.sets.add(own, colour, picture_bytes(coloured(colour, seed, (6, 6))))
    assert timed.until_timed(minutes=1, data=own)["preset"] == "break" and timed.until_timed(minutes=1, data=own, preset="class")["preset"] == "class"


def test_recipes_fit_the_pictures_and_the_time(timed):
    assert (timed.until_timed(minutes=1, data="mnist")["preset"] == "mnist"
            and timed.until_timed(minutes=1, data="cifar10", start="box")["preset"] == "tune")
    assert timed.until_timed(data="cifar10")["minutes"] == 3


def test_nothing_is_timed_beside_a_run(timed):
    run = timed.visitor.ask("start", data="cifar10", minutes=1)["run"]
    offer = timed.offers.offer({"minutes": 3, "data": "cifar10"})
    assert (offer["busy"] and offer["images_per_second"] in [row.images_per_second for row in PRESETS["class"].of_recipe]
            and "At the pace that was measured on two virtual cores of " in offer["sentence"] and "may have to wait" in offer["sentence"] and offer["expected"] is None)
    unknown = timed.offers.offer({"minutes": 3, "data": "cifar10", "changes": {"depth": 2}})
    assert unknown["images_per_second"] is None and "cannot be timed" in unknown["sentence"] and unknown["expected"] is None
    assert timed.starts == 0
    timed.visitor.ask("stop", run=run)
    assert timed.until_timed(minutes=3, data="cifar10")["images_per_second"] == 500 and timed.starts == 1


@pytest.mark.parametrize("prints",
                         ["", "no json", "[]", '{"images_per_second": null}', '{"images_per_second": -1}', '{"images_per_second": 1e999}'])
def test_a_measurement_that_fails_is_said_and_tried_again_later(tiny, tmp_path, prints, monkeypatch):
    timed = Timed(tiny, tmp_path, prints)
    with pytest.raises(ValueError, match="could not be measured"):
        timed.until_timed(minutes=3, data="cifar10")
    assert timed.starts == 1
    timed.prints = '{"images_per_second": 10}'
    monkeypatch.setattr(offers, "FAILED_FOR", 0)
    assert timed.until_timed(minutes=3, data="cifar10")["images_per_second"] == 10


def test_a_child_that_never_ends_is_ended(tiny, tmp_path, monkeypatch):
    timed = Timed(tiny, tmp_path)
    monkeypatch.setattr(offers, "TIME_OUT", 0.2)
    timed.offers._command = lambda made: [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ValueError, match="could not be measured"):
        timed.until_timed(minutes=3, data="cifar10")


def test_the_owners_limit_holds_for_offers(tiny, tmp_path):
    timed = Timed(tiny, tmp_path, max_minutes=3.0)
    for minutes in (3.5, 0, -1, float("nan"), "3", True):
        with pytest.raises(ValueError, match="minutes"):
            timed.offers.offer({"minutes": minutes, "data": "cifar10"})
    assert timed.starts == 0


@pytest.mark.parametrize("request_",
                         [{"data": "cifar10"},
                          {"data": "cifar10", "changes": {"depth": 1, "pool": "mean", "class_token": False, "batch": 8}},
                                     {"data": "cifar10", "start": "box", "freeze": True}])
def test_the_real_child_times_the_order_as_it_stands(tiny, tmp_path, monkeypatch, request_):
    """Its own small model is the one in the box here, so that it takes a moment only."""
    from vitdemo import checkpoint, pace

    visitor = Visitor(tmp_path, tiny)
    made = order({**request_, "minutes": 1}, visitor.lab.reach)
    command = offers.measuring(made)
    assert command[1:3] == ["-m", "vitdemo.pace"] and Path(offers.environment()["PYTHONPATH"].split(os.pathsep)[0], "vitdemo").is_dir()
    seen = []
    monkeypatch.setattr(pace, "measure", lambda wanted, **options: seen.append((wanted, options))
                        or pace.Pace(5.0, 9.0, ((32, 5.0),), 1, 0.1, 7))
    monkeypatch.setattr(checkpoint, "box_path", lambda: tmp_path / "none")
    assert pace.main(command[3:]) == 0
    wanted, options = seen[0]
    assert options["threads"] == made.plan.train.threads and wanted.start == made.plan.start
    assert all(getattr(wanted.train, name) == getattr(made.plan.train, name) for name in offers.SLOW)
    few = made._replace(source=made.source._replace(pictures=5))
    assert "batch=4" in offers.measuring(few)                               # as in the run, where a step sees what is not held out
    assert made.start or wanted.vit == made.vit


def test_the_childs_answer_is_read_from_its_last_line(tiny, tmp_path):
    timed = Timed(tiny, tmp_path, 'a warning\n{"images_per_second": 7.5}')
    assert timed.until_timed(minutes=1, data="cifar10")["images_per_second"] == 7.5


def test_an_unknown_set_of_pictures_is_refused(timed):
    with pytest.raises(ValueError):
        timed.offers.offer({"minutes": 1, "data": UNKNOWN})
    assert json.dumps(timed.visitor.refused("offer", minutes=1, data=UNKNOWN))

"""Races: two sides that differ in one thing, and verdicts that do not read noise as a win. No training here."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from vitdemo.config import ConfigError
from vitdemo.plan import Plan
from vitdemo.chance import share_error
from vitdemo.races import BESIDES, KINDS, RaceError, plans, total_seconds, verdict

ROOT = Path(__file__).resolve().parent.parent


def race(kind, **given):
    return plans(kind, **{"minutes": 1, "data": "cifar10", "seeds": 1, "threads": 1, "pace": 500.0, **given})


def test_planning_a_race_loads_no_torch():
    code = "import sys, vitdemo.races; sys.exit(' '.join({'torch', 'numpy', 'gradio'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "differs"), [
    ("patch", {"patch": ([4, 4], [8, 8])}), ("pool", {"pool": ("cls", "mean"), "class_token": (True, False)}),
    ("positions", {"positions": ("learned", "none")}), ("optimizer", {"optimizer": ("muon", "adamw")}), ("network", {"network": ("vit", "cnn")}),
    ("augmentation", {"flip": (True, False), "shift": (4, 0)})])
def test_the_two_sides_differ_in_one_thing_only(kind, differs):
    a, b = race(kind)
    left, right = ({**side.train.to_json(), **side.vit.to_json(), "network": side.network, "data": side.data, "preset": side.preset, "start": side.start}
                   for side in (a, b))
    assert {name: (left[name], right[name]) for name in left if left[name] != right[name]} == differs
    assert (a.race["side"], b.race["side"]) == ("a", "b") and a.race["id"] == b.race["id"] and a.race["kind"] == kind
    assert kind != "network" or a.train.optimizer == b.train.optimizer == "adamw"


def test_every_kind_is_tried_above_and_has_words():
    assert set(KINDS) == {"patch", "pool", "positions", "optimizer", "network", "augmentation"}
    for kind in KINDS.values():
        assert kind.question.endswith("?") and kind.a != kind.b and kind.title


def test_equal_seconds_where_the_architecture_differs_and_equal_steps_otherwise():
    for kind, chosen in KINDS.items():
        budgets = {(run.train.minutes, run.train.steps) for run in race(kind, minutes=2)}
        assert budgets == {(2.0, 0) if chosen.budget == "seconds" else (0.0, round(120 * 500 / 128))}
    assert {kind for kind, chosen in KINDS.items() if chosen.budget == "steps"} == {"optimizer", "augmentation"}


def test_equal_steps_need_a_pace_that_was_measured_on_this_machine():
    for kind, chosen in KINDS.items():
        if chosen.budget == "seconds":
            assert total_seconds(race(kind, pace=None)) == 2 * (60 + BESIDES)
            continue
        with pytest.raises(ConfigError, match="needs the pace of its recipe on this machine"):
            race(kind, pace=None)
        with pytest.raises(ConfigError, match="needs the pace"):
            total_seconds(race(kind))


def test_three_seeds_run_side_by_side_under_one_race_and_survive_json():
    runs = race("patch", seeds=3, threads=2, data="x.zip")
    assert [(run.race["side"], run.race["seed"], run.train.seed) for run in runs] == [(s, n, n) for n in range(3) for s in "ab"]
    assert len({run.race["id"] for run in runs}) == 1 and {run.train.threads for run in runs} == {2} and {run.data for run in runs} == {"x.zip"}
    assert [run.title for run in runs[:2]] == ["patches of 4 pixels, seed 0", "patches of 8 pixels, seed 0"]
    for run in runs:
        assert Plan.from_json(run.to_json()) == run
    assert race("patch")[0].race["id"] != runs[0].race["id"]


def test_digits_are_not_mirrored_in_a_race():
    assert all(run.train.flip for run in race("patch")) and not any(run.train.flip for run in race("patch", data="mnist"))
    assert [(run.train.flip, run.train.shift) for run in race("augmentation", data="mnist")] == [(False, 4), (False, 0)]


def test_the_total_time_holds_everything():
    assert total_seconds(race("patch", seeds=3)) == 6 * (60 + BESIDES)
    assert total_seconds(race("optimizer", minutes=2), pace=500.0) == pytest.approx(2 * (120 + BESIDES), abs=1)


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"seeds": 2}, {"seeds": 11}, {"minutes": 0}, {"minutes": -1}])
def test_a_race_that_cannot_be_is_one_sentence(wrong):
    with pytest.raises(ConfigError):
        race("patch", **wrong)
    with pytest.raises(ConfigError, match="there is no race 'x'; there are patch"):
        race("x")


def test_one_run_each_names_the_chance_of_the_pictures_and_no_winner():
    found = verdict([("a", 0, 0.6, 2500), ("b", 0, 0.5, 2500)], "patch")
    noise = math.hypot(share_error(0.6, 2500), share_error(0.5, 2500))
    assert noise == pytest.approx(math.sqrt(0.6 * 0.4 / 2500 + 0.5 * 0.5 / 2500), rel=1e-3)
    assert (found.winner, round(found.difference, 9)) == (None, 0.1) and found.noise == pytest.approx(noise)
    assert found.sentence == ("Patches of 4 pixels got 60.0% right and patches of 8 pixels 50.0%, beyond twice the chance of the pictures alone (standard error "
                              "1.4 points); one run each cannot tell what another seed would do: repeat it over three seeds.")
    near = verdict([("a", 0, 0.50, 100), ("b", 0, 0.52, 100)])
    assert near.difference < 0 and near.sentence.startswith("Side B got 52.0% right and side A 50.0%, not beyond twice the chance")
    assert verdict([("a", 0, 0.5, 100), ("b", 0, 0.5, 100)]).sentence.startswith("Both sides got 50.0% right, not beyond")
    assert verdict([("a", 0, 1.0, 9), ("b", 0, 1.0, 9)]).noise > 0.1        # all of a few pictures is no certainty


def rows(a, b):
    return [("a", i, x, 2500) for i, x in enumerate(a)] + [("b", i, x, 2500) for i, x in enumerate(b)]


def test_three_seeds_have_a_winner_where_welchs_test_tells_them_apart():
    a, b = (0.60, 0.62, 0.64), (0.50, 0.51, 0.55)
    found = verdict(rows(a, b), "positions")
    # the sample variances by hand: 0.0004, and 0.0007
    assert found.noise == pytest.approx(math.sqrt(0.0004 / 3 + 0.0007 / 3)) and found.difference == pytest.approx(0.1) and found.winner == "a"
    assert "on average of 3 and 3 runs, which spread by 2.0 and 2.6 points: a difference of 10.0 points with a standard error of 1.9" in found.sentence
    assert found.sentence.endswith("(Welch's test, 3 degrees of freedom, 5 %). Learned positions won.")
    assert verdict(rows(b, a)).winner == "b" and verdict(rows(b, a)).sentence.startswith("Side B got 62.0% right and side A 52.0%")


def test_three_seeds_within_the_noise_have_no_winner():
    found = verdict(rows((0.60, 0.64, 0.68), (0.58, 0.62, 0.66)))
    assert found.winner is None and found.sentence.endswith("These runs do not tell the two apart.")
    assert verdict(rows((0.6, 0.6, 0.6), (0.6, 0.6, 0.6))).winner is None
    assert verdict(rows((0.6, 0.6, 0.6), (0.7, 0.7, 0.7))).winner == "b"
    assert verdict([(side, seed, share, 8) for side, share in (("a", 1.0), ("b", 7 / 8)) for seed in range(3)]).winner is None
    assert verdict(rows((0.6, 0.7), (0.5,))).winner is None                 # one run of a side cannot tell


@pytest.mark.parametrize("broken", [[], [("a", 0, 0.5, 100)], [("a", 0, 0.5, 100), ("b", 0, math.nan, 100)], [("a", 0, 0.5, 0), ("b", 0, 0.5, 9)],
                                    [("a", 0, 0.5, 9), ("c", 0, 0.5, 9)]])
def test_runs_that_cannot_be_compared_are_one_sentence(broken):
    with pytest.raises(RaceError, match="needs a run of each side"):
        verdict(broken)

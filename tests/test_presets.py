"""Named sizes and recipes, what was measured of them, and the plans made from them."""

import itertools
import json
import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitdemo import presets
from vitdemo.config import ConfigError, TrainConfig, ViTConfig
from vitdemo.plan import BUDGETS, EXPLAINED, Plan, plan
from vitdemo.presets import PRESETS, SIZES, learned


def test_presets_make_plans_that_go_into_json_and_back_and_changes_are_checked():
    for name in PRESETS:
        wanted = plan(preset=name)
        assert Plan.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
    wanted = plan(preset="class", model="VIT-MICRO", minutes=1.5, changes={"dim": 48, "lr": 1e-3})
    assert (wanted.train.minutes, wanted.vit.dim, wanted.train.lr) == (1.5, 48, 1e-3)
    for wrong in ({"preset": "x"}, {"model": "x"}, {"minutes": 1, "epochs": 1}, {"changes": {"colour": 1}}, {"minutes": -1.0}, {"minutes": float("nan")}):
        with pytest.raises(ConfigError):
            plan(**wrong)


def test_digits_are_not_mirrored_unless_somebody_wants_it():
    assert plan(preset="class").train.flip and not plan(preset="class", data="mnist").train.flip
    assert plan(preset="class", data="mnist", changes={"flip": True}).train.flip


def test_every_setting_is_explained_in_one_line_and_nothing_else_is():
    assert set(EXPLAINED) == {spec.name for kind in (TrainConfig, ViTConfig) for spec in fields(kind)}
    assert all(line.endswith(".") and "\n" not in line and 20 < len(line) < 140 for line in EXPLAINED.values())


def test_every_preset_says_where_it_comes_from_and_names_a_size_that_exists():
    for name, preset in PRESETS.items():
        assert preset.size in SIZES and len(preset.source) > 20 and "\n" not in preset.source, name
    assert {name for name, preset in PRESETS.items() if preset.reported} == {"plain", "mnist"}
    assert PRESETS["plain"].reported == 0.7182 and PRESETS["mnist"].reported == 0.83
    notebook = SIZES[PRESETS["notebook"].size].config
    assert (notebook.dim, notebook.depth, notebook.heads, notebook.patch, notebook.image, notebook.classes) == (64, 4, 4, (4, 4), (32, 32), 10)


def test_the_expected_accuracy_meets_the_measured_points_rises_and_is_silent_far_outside():
    points, others = learned("class"), (*learned("break"), *learned("hour"))
    assert len(points) >= 4 and len(others) >= 5 and not set(others) & set(points)              # another recipe: a curve of its own
    assert learned("quick") == points and PRESETS["quick"].train.minutes != PRESETS["class"].train.minutes       # one recipe, of another length
    for point in points:
        assert presets.expected(point.images).accuracy == pytest.approx(point.accuracy)
    low, high = points[0].images, points[-1].images
    between = [presets.expected(images).accuracy for images in range(low, high, 5_000)]
    assert between == sorted(between) and points[0].accuracy < presets.expected((low + high) / 2).accuracy < points[-1].accuracy
    for left, right in itertools.pairwise(points):                          # only the runs nearest to it speak for a number of pictures
        assert presets.expected((left.images + right.images) / 2).n == left.n + right.n
    assert presets.expected(low / 1.6) is None and presets.expected(high * 1.6) is None and presets.expected(0) is None
    slopes = [(right.accuracy - left.accuracy) / math.log(right.images / left.images) for left, right in itertools.pairwise(points)]
    assert slopes[0] < 2 * max(slopes[1:])                                  # the line goes on downwards soberly
    assert points[0].accuracy - 0.25 < presets.expected(low / 1.4).accuracy < points[0].accuracy
    assert presets.expected(high * 1.4) == presets.expected(high) == (points[-1].accuracy, points[-1].n)        # no more than was measured


@given(st.lists(st.builds(presets.Learned, st.integers(1, 10**7), st.floats(0.1, 0.99), st.integers(1, 9)), min_size=1, max_size=9))
def test_what_was_learned_rises_and_no_run_is_left_out(points):
    found = presets._rising(points)
    assert all(left.images * 1.1 < right.images and left.accuracy < right.accuracy for left, right in itertools.pairwise(found))
    assert sum(point.n for point in found) == sum(point.n for point in points)
    assert sum(point.n * point.accuracy for point in found) == pytest.approx(sum(point.n * point.accuracy for point in points))


def test_what_was_measured_on_processors_like_this_one_and_with_as_many_threads_comes_first():
    row = presets.Measured
    preset = presets.Preset(TrainConfig(minutes=1), "vit-micro", "cifar10", "", (
        row(2, 0.7, 3, 60, 2000), row(1, 0.6, 1, 60, 1500), row(1, 0.61, 2, 60, 1400), row(2, 0.5, 3, 60, 900, presets.XEON), row(1, 0.4, 1, 60, 500, presets.XEON)))
    assert [one.accuracy for one in preset.near(preset.measured, 1, False)] == [0.4, 0.5, 0.61, 0.6, 0.7]
    assert preset.nearest(1, True).accuracy == 0.61 and preset.nearest(8, True).accuracy == 0.7 and preset.nearest(8, False).accuracy == 0.5
    assert preset.nearest(1).accuracy == 0.61 and PRESETS["tune"].nearest(1) is None
    hours = presets.Preset(TrainConfig(minutes=60), "vit-micro", "cifar10", "", (row(1, 0.7, 3, 600, 900), row(1, 0.8, 1, 3600, 800)))
    assert hours.nearest(1).accuracy == 0.8                                 # of the length that is nearest
    assert {*PRESETS["class"].of_recipe} == {*PRESETS["quick"].of_recipe} == {*PRESETS["class"].measured, *PRESETS["quick"].measured}        # one recipe


def test_a_single_measured_run_speaks_for_its_own_length_only():
    (point,) = learned("notebook")
    assert presets.expected(point.images * 1.05, "notebook") == presets.expected(point.images / 1.05, "notebook") == (point.accuracy, point.n)
    assert presets.expected(point.images * 1.2, "notebook") is presets.expected(point.images / 1.2, "notebook") is None
    assert presets.expected(point.images, "plain") is None


@pytest.mark.parametrize("name", BUDGETS)
def test_one_budget_takes_the_place_of_the_presets_own_also_among_the_changes(name):
    for asked in ({name: 2}, {"changes": {name: 2}}, {"changes": {**dict.fromkeys(BUDGETS, 0), name: 2}}):
        train = plan(preset="plain", **asked).train
        assert {other: getattr(train, other) for other in BUDGETS} == {**dict.fromkeys(BUDGETS, 0), name: 2}
    for wrong in ({name: 0}, {name: -1}, {"changes": {name: "many"}}, {"changes": {name: True}}, {"changes": dict.fromkeys(BUDGETS, 1)}):
        with pytest.raises(ConfigError):
            plan(**wrong)


def test_a_run_has_exactly_one_budget():
    for wrong in ({}, {"minutes": 1, "steps": 1}, {"epochs": 1, "steps": 1}, {"minutes": 1, "epochs": 1}, {"steps": -1}):
        with pytest.raises(ConfigError):
            TrainConfig(**wrong)
    with pytest.raises(ConfigError, match="warmup is a share of the run"):
        TrainConfig(minutes=1, warmup=2.0)


def test_a_plan_of_an_older_version_is_read_and_new_parts_are_checked():
    old = {name: value for name, value in plan().to_json().items() if name not in ("start", "network", "title", "race")}
    for name in ("steps", "freeze"):
        del old["train"][name]
    assert Plan.from_json(old) == plan()
    race = {"id": "0a1b", "side": "b", "kind": "patch", "seed": 3}
    wanted = plan(network="cnn", title="  my   net ", race=race)
    assert wanted.title == "my net" and Plan.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
    for wrong in ({"network": "rnn"}, {"title": "x" * 61}, {"race": {**race, "side": "c"}}, {"race": {"id": "0a"}}, {"race": {**race, "id": "../x"}},
                  {"network": "cnn", "start": "box"}):
        with pytest.raises(ConfigError):
            plan(**wrong)


def test_a_run_that_starts_from_a_model_keeps_its_shape():
    assert plan(start="box").preset == "tune" and plan(preset="tune").start == "box" and plan(preset="tune", start="").start == ""
    assert plan(preset="class", start="a/b/mine.safetensors").model == "mine"
    for wrong in ({"changes": {"dim": 48}}, {"model": "vit-micro"}):
        with pytest.raises(ConfigError, match="keeps its shape"):
            plan(start="box", **wrong)

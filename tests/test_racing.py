"""Races and sets of one's own pictures through the lab's door."""

import base64
import io
import os
import zipfile
from pathlib import Path

import pytest
from conftest import COLOURS, coloured, picture_bytes
from gradio.utils import get_upload_folder
from lab_visitor import UNKNOWN, Visitor, uploaded
from PIL import Image

from vitdemo import data, races, settings, words
from vitdemo.ui.offers import Measurement


@pytest.fixture
def visitor(tiny, tmp_path):
    Path(get_upload_folder()).mkdir(parents=True, exist_ok=True)
    made = Visitor(tmp_path / "runs", tiny)
    # of steps, not of minutes
    made.lab.offers.pace = lambda order, **_: Measurement(0.0 if order.plan.train.minutes else 500.0, 1500.0, 0.0)
    return made


def finish(visitor, runs, accuracies, n=2500):
    for one, accuracy in zip(runs, accuracies, strict=True):
        folder = visitor.folder(one["run"])
        folder.log({"step": 9, "seconds": 1.0, "loss": 1.0, "accuracy": accuracy, "look": {"n": n, "standard_error": 0.01, "ece": 0.1}})
        folder.write_status(state="finished", best_accuracy=accuracy)


@pytest.mark.parametrize("kind", list(races.KINDS))
@pytest.mark.parametrize("seeds", [1, 3])
def test_the_price_is_said_first_and_the_sides_differ_in_one_thing(visitor, kind, seeds):
    wish = {"kind": kind, "minutes": 1, "seeds": seeds, "data": "cifar10"}
    price = visitor.ask("race", **wish, dry=True)
    assert (price["seconds"] >= 2 * seeds * 60 and price["sides"] == [races.KINDS[kind].a, races.KINDS[kind].b]
            and f"{2 * seeds} runs of 1 minute" in price["sentence"])
    assert not visitor.home.exists() or not [name for name in os.listdir(visitor.home) if len(name) == 32]
    race = visitor.ask("race", **wish, mine=[])
    assert [(one["side"], one["seed"]) for one in race["runs"]] == [(side, seed) for seed in range(seeds) for side in "ab"]
    configs = [visitor.folder(one["run"]).config() for one in race["runs"]]
    assert {config["race"]["id"] for config in configs} == {race["race"]} and configs[0]["train"]["seed"] == configs[1]["train"]["seed"]
    differ = {name for part in ("vit", "train") for name in configs[0][part] if configs[0][part][name] != configs[1][part][name]}
    assert len(differ | ({"network"} if configs[0]["network"] != configs[1]["network"] else set())) in (1, 2)
    steps = races.KINDS[kind].budget == "steps"
    assert (configs[0]["train"]["steps"] == (round(60 * 500 / 128) if steps else 0)
            and configs[0]["train"]["threads"] == settings.training_threads())


@pytest.mark.parametrize("data", ["cifar10", "mnist"])
def test_a_race_of_equal_steps_is_timed_with_the_model_and_recipe_that_run_it(visitor, data):
    timed = []
    visitor.lab.offers.pace = lambda order, **_: timed.append(order) or Measurement(500.0, 1500.0, 0.0)
    runs = visitor.ask("race", kind="optimizer", minutes=1, seeds=1, data=data)["runs"]
    config = visitor.folder(next(one["run"] for one in runs if one["side"] == "a")).config()
    assert [order.plan.preset for order in timed] == [config["preset"]] and timed[0].plan.vit.to_json() == config["vit"]
    assert timed[0].plan.train.batch == config["train"]["batch"]


def test_a_race_of_equal_steps_waits_for_the_pace(visitor):
    visitor.lab.offers.pace = lambda order, **_: None
    assert visitor.ask("race", kind="optimizer", minutes=1, seeds=1, data="cifar10",
                       dry=True) == {"measuring": True, "sentence": words.MEASURING}
    assert "seconds" in visitor.ask("race", kind="patch", minutes=1, seeds=1, data="cifar10", dry=True)
    started = visitor.ask("race", kind="optimizer", minutes=1, seeds=1, data="cifar10")        # the server was started anew since the price was said
    assert started == {"error": words.MEASURING, "again": True} and not visitor.home.exists()


def test_all_runs_of_a_race_or_none(visitor):
    visitor.scheduler.queue = 3
    assert "6 runs need 6 places" in visitor.refused("race", kind="patch", minutes=1, seeds=3, data="cifar10", mine=[])
    assert not [name for name in os.listdir(visitor.home) if len(name) == 32]
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    refused = visitor.lab.ask({"question": "race", "kind": "patch", "minutes": 1, "seeds": 1, "data": "cifar10", "mine": [run]})
    assert "still going on" in refused["error"] and refused["runs"] == [run]


def test_the_standing_comes_from_the_runs_and_not_from_the_request(visitor):
    runs = visitor.ask("race", kind="patch", minutes=1, seeds=1, data="cifar10")["runs"]
    standing = visitor.ask("standing", runs=runs)
    assert not standing["done"] and standing["verdict"] is None and [row["state"] for row in standing["rows"]] == ["queued", "queued"]
    finish(visitor, runs, [0.6, 0.5])
    lied = [{**one, "side": "b" if one["side"] == "a" else "a", "seed": 7} for one in runs]
    standing = visitor.ask("standing", runs=lied)
    assert [(row["side"], row["seed"], row["accuracy"], row["n"]) for row in standing["rows"]] == [("a", 0, 0.6, 2500), ("b", 0, 0.5, 2500)]
    assert standing["done"] and standing["verdict"]["winner"] is None and standing["verdict"]["difference"] == pytest.approx(0.1)
    assert "one run each cannot tell" in standing["verdict"]["sentence"] and "atches of 4 pixels" in standing["verdict"]["sentence"]


def test_three_seeds_may_have_a_winner(visitor):
    runs = visitor.ask("race", kind="positions", minutes=1, seeds=3, data="cifar10")["runs"]
    finish(visitor, runs, [0.60, 0.50, 0.61, 0.51, 0.62, 0.49])
    verdict = visitor.ask("standing", runs=runs)["verdict"]
    assert verdict["winner"] == "a" and verdict["difference"] == pytest.approx(0.11) and verdict["noise"] < 0.01


def test_a_race_that_was_stopped_has_no_winner(visitor):
    runs = visitor.ask("race", kind="patch", minutes=1, seeds=1, data="cifar10")["runs"]
    finish(visitor, runs, [0.6, 0.5])
    visitor.folder(runs[1]["run"]).write_status(state="stopped")             # after a look, so it has an accuracy
    standing = visitor.ask("standing", runs=runs)
    assert standing["done"] and standing["verdict"] == {"winner": None, "difference": None, "noise": None, "sentence": words.NO_VERDICT}


def test_runs_that_are_no_race_are_refused(visitor):
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    one, two = (visitor.ask("race", kind="patch", minutes=1, seeds=1, data="cifar10")["runs"] for _ in range(2))
    for runs in ([], [{"run": run}], [one[0], two[1]], [one[0], {"run": run}]):
        assert "no race" in visitor.refused("standing", runs=runs)
    assert ("no such run" in visitor.refused("standing", runs=[one[0], {"run": UNKNOWN}])
            and "at most 6" in visitor.refused("standing", runs=[one[0]] * 7))


def test_a_race_of_equal_steps_waits_until_this_computer_can_be_timed(visitor, monkeypatch):
    steps = next(kind for kind, known in races.KINDS.items() if known.budget == "steps")
    monkeypatch.setattr(visitor.lab.offers, "pace", lambda made, **_: Measurement(1000.0, 500.0, elsewhere="another machine"))
    assert visitor.refused("race", kind=steps, minutes=1, seeds=1, data="cifar10", dry=True) == words.RACE_UNTIMED
    assert visitor.ask("race", kind=steps, minutes=1, seeds=1, data="cifar10", dry=True)["again"]
    other = next(kind for kind, known in races.KINDS.items() if known.budget != "steps")
    assert visitor.ask("race", kind=other, minutes=1, seeds=1, data="cifar10", dry=True)["seconds"]


@pytest.mark.parametrize("wrong", [{"seeds": 2}, {"seeds": 4}, {"kind": "speed"}, {"minutes": 61}, {"minutes": 0}, {"data": UNKNOWN}])
def test_races_that_cannot_be_are_refused(visitor, wrong):
    assert visitor.refused("race", **{"kind": "patch", "minutes": 1, "seeds": 1, "data": "cifar10", "dry": True, **wrong})


# ---- one's own pictures -------------------------------------------------------------------------------------------------


def packed(**counts) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, count in counts.items():
            for i in range(count):
                archive.writestr(f"{name}/{i}.png", picture_bytes(coloured(name, 7 * i + len(name), (24, 36))))
        archive.writestr("red/notes.txt", "no picture")
    return buffer.getvalue()


def as_url(image: Image.Image, kind: str = "PNG") -> str:
    return f"data:image/{kind.lower()};base64,{base64.b64encode(picture_bytes(image, kind)).decode()}"


def test_a_zip_becomes_a_set_to_train_on(visitor):
    made = visitor.ask("set", do="zip", path=uploaded("my colours.zip", packed(red=4, green=3)))["set"]
    assert (made["title"] == "my colours" and made["classes"] == [["green", 3], ["red", 4]] and made["pictures"] == 7
            and any("notes.txt" in name for name in made["skipped"]))
    assert len(made["thumbnails"]["red"]) == 4 and made["thumbnails"]["red"][0].startswith("data:image/jpeg;base64,")
    told = visitor.ask("check", data=made["id"], minutes=1, start="box", freeze=True)
    assert "2 classes" in told["sentence"] and "7 pictures" in told["sentence"]
    run = visitor.ask("start", data=made["id"], minutes=1, start="box")["run"]
    config = visitor.folder(run).config()
    assert data.load(config["data"], size=(12, 20)).classes == ("green", "red")
    assert visitor.ask("follow", run=run)["plan"]["data"] == "my colours"
    assert visitor.ask("set", do="delete", set=made["id"]) == {"set": None}
    assert visitor.ask("follow", run=run)["plan"]["data"] == words.OWN_PICTURES and visitor.refused("start", data=made["id"], minutes=1)


def test_a_set_is_collected_picture_by_picture(visitor):
    made = visitor.ask("set", do="new", title="Mine")["set"]
    assert made["classes"] == [] and made["title"] == "Mine"
    for i, name in enumerate(COLOURS):
        made = visitor.ask("set", do="add", set=made["id"], klass=name, data=as_url(coloured(name, i)))["set"]
    made = visitor.ask("set", do="add", set=made["id"], klass="red",
                       path=uploaded("one.jpg", picture_bytes(coloured("red", 9), "JPEG")))["set"]
    assert dict(made["classes"]) == {"blue": 1, "green": 1, "red": 2}
    made = visitor.ask("set", do="drop", set=made["id"], klass="red", index=0)["set"]
    made = visitor.ask("set", do="rename", set=made["id"], klass="blue", title="sky")["set"]
    made = visitor.ask("set", do="rename", set=made["id"], title="Ours")["set"]
    assert dict(made["classes"]) == {"green": 1, "red": 1, "sky": 1} and made["title"] == "Ours"
    assert set(visitor.ask("set", do="get", set=made["id"])["set"]["thumbnails"]) == {"green", "red", "sky"}


@pytest.mark.parametrize(("data_", "said"), [("data:image/png;base64,!!!", "base64"), ("data:image/png;base64,aGVsbG8=", "picture"),
                                             ("data:text/html;base64,aGk=", "data URL"),
                                            ("http://127.0.0.1/x.png", "data URL"), (7, "data URL"), (None, "data URL"),
                                            ("data:image/png," + "x" * 13_000_000, "data URL")])
def test_what_is_no_picture_is_not_added(visitor, data_, said):
    made = visitor.ask("set", do="new")["set"]
    assert said in visitor.refused("set", do="add", set=made["id"], klass="red", data=data_)
    assert visitor.ask("set", do="get", set=made["id"])["set"]["pictures"] == 0


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "a/b", "..", "x" * 41, "", None, 7])
def test_a_class_is_never_a_path(visitor, name):
    made = visitor.ask("set", do="new")["set"]
    answer = visitor.ask("set", do="add", set=made["id"], klass=name, data=as_url(coloured("red", 1)))
    assert "error" in answer or all("/" not in known and known not in ("", "..") for known, _ in answer["set"]["classes"])
    assert sorted(os.listdir(visitor.home / "sets"))[-1] == f"{made['id']}.zip"


def test_near_copies_are_said_before_a_run_and_beside_its_accuracy(visitor):
    made = visitor.ask("set", do="new")["set"]
    for i, (name, together) in enumerate((("red", False), ("red", True), ("blue", False), ("blue", True))):
        made = visitor.ask("set", do="add", set=made["id"], klass=name, data=as_url(coloured(name, i)), together=together)["set"]
    assert (made["flatters"].startswith("2 of these 4 pictures are near-copies")
            and visitor.ask("check", data=made["id"], minutes=1)["flatters"] == made["flatters"])
    run = visitor.ask("start", data=made["id"], minutes=1)["run"]
    visitor.ask("set", do="delete", set=made["id"])                         # the run has learned from them all the same
    said = visitor.ask("follow", run=run)["flatters"]
    assert said.startswith("2 of its 4 pictures are near-copies") and visitor.ask("list", mine=[run])["runs"][0]["flatters"] == said
    visitor.ask("stop", run=run)
    plain = visitor.ask("start", data="cifar10", minutes=1)["run"]
    assert visitor.ask("follow", run=plain)["flatters"] == visitor.ask("list", mine=[plain])["runs"][0]["flatters"] == ""
    assert visitor.ask("check", data="cifar10", minutes=1)["flatters"] == ""


@pytest.mark.parametrize("public", [True, False])
def test_on_a_public_host_a_browser_has_a_quarter_of_the_place_for_sets(tiny, tmp_path, public):
    visitor, secret, other = Visitor(tmp_path, tiny, public=public, sets_megabytes=2), "ab" * 16, "cd" * 16
    zipped = {"do": "zip", "path": uploaded("x.zip", packed(red=2, green=2))}
    # 7 of 7.6
    ids = [visitor.ask("set", **request, browser=secret)["set"]["id"] for request in [{"do": "new"}] * 5 + [zipped, {"do": "new"}]]
    assert len({name[:8] for name in ids}) == 1 and secret[:8] not in ids[0]             # the secret itself is not kept
    for request in ({"do": "new"}, zipped, {"do": "add", "set": ids[0], "klass": "red", "data": as_url(coloured("red", 1))}):
        if public:
            assert "One browser's sets may take 0 MB" in visitor.refused("set", **request, browser=secret)
        else:
            assert "set" in visitor.ask("set", **request, browser=secret)
    assert "set" in visitor.ask("set", do="new", browser=other) and "set" in visitor.ask("set", do="new")
    if public:
        for wrong in ("x" * 101, 7, ["a"]):
            assert visitor.refused("set", do="new", browser=wrong)


@pytest.mark.parametrize("do", ["get", "add", "drop", "rename", "delete"])
def test_the_set_of_somebody_else_is_unknown(visitor, do):
    for name in (UNKNOWN, "../runs", "sets", "", 7):
        assert visitor.refused("set", do=do, set=name, klass="red", index=0, title="x", data=as_url(coloured("red", 1)))


def test_a_zip_that_is_none_or_too_small_leaves_nothing(visitor):
    for content in (b"", b"hello", packed(red=4), packed(red=4)[:200]):
        assert visitor.refused("set", do="zip", path=uploaded("x.zip", content))
    assert not [name for name in os.listdir(visitor.home / "sets") if name.endswith(".zip")] if (visitor.home / "sets").exists() else True


def test_too_few_pictures_are_said_before_the_start(visitor):
    made = visitor.ask("set", do="new")["set"]
    for i, name in enumerate(("red", "blue")):
        assert "two classes" in visitor.refused("check", data=made["id"], minutes=1)
        visitor.ask("set", do="add", set=made["id"], klass=name, data=as_url(coloured(name, i)))
    assert "two pictures" in visitor.refused("start", data=made["id"], minutes=1)
    visitor.ask("set", do="add", set=made["id"], klass="red", data=as_url(coloured("red", 9)))
    assert "3 pictures" in visitor.ask("check", data=made["id"], minutes=1)["sentence"]

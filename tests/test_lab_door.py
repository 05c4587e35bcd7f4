"""The training lab's door: every question answered as promised, refused in one sentence, within the owner's limits, from what is on
disk."""

import base64
import dataclasses
import io
import json
import os
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes, seeded
from lab_visitor import UNKNOWN, Visitor, uploaded
from gradio.utils import get_upload_folder
from PIL import Image

from vitdemo import checkpoint, filmstrip, mistakes, settings, words
from vitdemo.cnn import vit_parameters
from vitdemo.config import TrainConfig
from vitdemo.data import Split
from vitdemo.explain import explain
from vitdemo.filmstrip import unpacked
from vitdemo.model import ViT
from vitdemo.plan import EXPLAINED, plan
from vitdemo.presets import PRESETS, SIZES
from vitdemo.runstatus import Status
from vitdemo.trainer import carry_out
from vitdemo.ui import catalogue, models, room
from vitdemo.ui.following import left, thinned
from vitdemo.ui.reach import title_of
from vitdemo.ui.slots import Slots

SMALL = {"image": [12, 20], "patch": [4, 4], "dim": 10, "depth": 3, "heads": 2, "mlp_dim": 14, "batch": 16, "stages": [], "stage_ends": []}


@pytest.fixture(scope="module", autouse=True)
def environment(colour_zip):
    before = dict(os.environ)
    os.environ["VITDEMO_DATA"] = str(colour_zip.parent)
    Path(get_upload_folder()).mkdir(parents=True, exist_ok=True)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    """(visitor, run): a visitor with a run that has ended, really trained on three colours, and filmed with one picture of theirs."""
    visitor = Visitor(tmp_path_factory.mktemp("runs"), tiny)
    wanted = plan(data="cifar10", steps=24, changes={**SMALL, "evaluations": 3, "threads": 1}, title="My first <run>")
    run = visitor.scheduler.submit(wanted.to_json(), {"film/subject-0.png": picture_bytes(coloured("red", 5, (60, 100)))})
    carry_out(visitor.folder(run), wanted, quiet=True)
    return visitor, run


@pytest.fixture
def visitor(tiny, tmp_path):
    return Visitor(tmp_path / "runs", tiny)


# ---- what is offered, and what a run would be ---------------------------------------------------------------------------


def test_hello_says_what_this_host_offers(visitor):
    hello = visitor.ask("hello")
    assert hello["training"] and hello["off"] == "" and hello["max_minutes"] == 60 and not hello["public"]
    assert {one["name"] for one in hello["presets"]} == set(PRESETS) and all(one["source"] for one in hello["presets"])
    assert [one["reported"] for one in hello["presets"] if one["name"] == "mnist"] == [0.83]
    assert {one["name"]: one["here"] for one in hello["data"]} == {"cifar10": True, "mnist": False}
    assert hello["limits"]["classes"] == [2, 100] and hello["recorded"] is models.RECORDED_FOLDER.joinpath("config.json").is_file()
    assert all(one["a"] and one["b"] and one["budget"] in ("seconds", "steps") for one in hello["races"]) and len(hello["races"]) == 6


def test_every_explained_setting_is_offered_with_a_range_that_the_configs_keep():
    listed = {one["name"]: one for one in catalogue.settings()}
    assert set(listed) == set(EXPLAINED) - catalogue.ELSEWHERE
    for one in listed.values():
        assert one["kind"] in ("number", "whole", "choice", "switch", "list") and one["line"] and set(one["defaults"]) == set(PRESETS)
        assert (one["kind"] in ("number", "whole", "list")) == (one["low"] is not None)
        assert (one["kind"] == "choice") == bool(one["choices"])
    free = TrainConfig(minutes=1, stages=(), stage_ends=())
    for name in ("batch", "lr", "momentum", "weight_decay", "warmup", "label_smoothing", "clip", "shift", "validation", "seed"):
        for edge in (listed[name]["low"], listed[name]["high"]):
            free.with_(**{name: edge})
        with pytest.raises(ValueError):
            free.with_(**{name: listed[name]["high"] * 1.01 + 1})


def test_off_means_off(trained, tiny, tmp_path):
    visitor = Visitor(tmp_path, tiny, training=False)
    assert visitor.ask("hello")["off"] == words.TRAIN_OFF
    for question, deed in (("offer", None), ("check", None), ("start", None), ("resume", None), ("race", None), ("set", "zip"),
                           ("set", "new"), ("set", "add")):
        assert visitor.refused(question, kind="patch", run=UNKNOWN, minutes=1, data="cifar10", do=deed) == words.TRAIN_OFF
    other, run = trained
    shutil.copytree(other.folder(run).path, tmp_path / run)
    assert (visitor.ask("follow", run=run)["frames"] and visitor.ask("checkpoint", run=run)["bytes"]
            and visitor.ask("delete", run=run)["state"] == "deleted")


@pytest.mark.parametrize("changes", [{}, {"depth": 3}, {"pool": "mean", "class_token": False}, {"patch": [8, 8]}])
def test_check_counts_the_models_own_parameters_and_tokens(visitor, changes):
    answer = visitor.ask("check", data="cifar10", minutes=3, changes=changes)
    config = plan(changes=changes).vit.with_(classes=10)
    assert answer["parameters"] == sum(p.numel() for p in ViT(config).parameters()) and answer["tokens"] == config.tokens
    assert f"{answer['parameters']:,}" in answer["sentence"] and "3 minutes" in answer["sentence"]


def test_check_of_a_fine_tuning_is_about_the_start(visitor, tiny):
    answer = visitor.ask("check", data="cifar10", minutes=1, start="box", freeze=True)
    assert answer["parameters"] == sum(p.numel() for p in ViT(tiny.config.with_(classes=10)).parameters())
    assert "only its new head" in answer["sentence"] and "1 minute " in answer["sentence"] and "10 classes" in answer["sentence"]
    assert "start from" in visitor.refused("check", data="cifar10", minutes=1, freeze=True)
    assert "keeps its shape" in visitor.refused("check", data="cifar10", minutes=1, start="box", changes={"depth": 2})


NONSENSE = [None, True, -1, 1.5, 10**400, float("nan"), "", "x" * 5000, "../../etc/passwd", "<b>", "\ud800", [], [[]], ["a"] * 1000, {},
            {"a": {"b": [1]}}]
FIELDS = {
    "offer": ["minutes", "data", "preset", "model", "changes"],
    "check": ["preset", "model", "data", "minutes", "epochs", "steps", "changes", "start", "freeze"],
    "start": ["preset", "model", "data", "minutes", "epochs", "changes", "start", "freeze", "film", "title", "mine"],
    "stop": ["run"], "resume": ["run"], "delete": ["run"], "follow": ["run", "log", "film"], "list": ["mine"], "curves": ["runs"],
    "cell": ["run", "part", "truth", "answer"], "export": ["run", "kind", "subject", "layer", "head", "seconds"], "checkpoint": ["run"],
    "open": ["path", "heads"], "race": ["kind", "minutes", "seeds", "data", "mine", "dry"], "standing": ["runs"],
    "set": ["do", "set", "path", "klass", "index", "title", "data"],
}
GOOD = {
    "offer": {"minutes": 1, "data": "cifar10"}, "check": {"minutes": 1, "data": "cifar10"},
    "start": {"minutes": 1, "data": "cifar10", "mine": [UNKNOWN]},
    "cell": {"part": "validation", "truth": 0, "answer": 0}, "export": {"kind": "webp"},
    "race": {"kind": "patch", "minutes": 1, "data": "cifar10", "dry": True},
    "set": {"do": "get", "set": UNKNOWN}, "follow": {"log": 0, "film": 0},
}


@pytest.mark.parametrize(("question", "field"), [(question, field) for question, named in FIELDS.items() for field in named])
def test_nonsense_in_any_field_gets_an_answer_or_one_sentence(trained, question, field, monkeypatch):
    visitor, run = trained
    monkeypatch.setattr(filmstrip, "animate", lambda *args, **options: b"")             # drawn elsewhere; here it only takes time
    visitor.scheduler.queue = 10**6
    for value in NONSENSE:
        fields = {**GOOD.get(question, {}), field: value}
        if field != "run" and question in ("follow", "cell", "export", "checkpoint"):
            fields["run"] = run
        if "error" in visitor.ask(question, **fields):
            visitor.refused(question, **fields)
    for name in os.listdir(visitor.home):
        if name != run and len(name) == 32:
            shutil.rmtree(visitor.home / name)
    visitor.scheduler.queue = 8


@pytest.mark.parametrize("request_", [None, 7, "follow", [], {}, {"question": None}, {"question": "password"}, {"question": ["follow"]},
                                      {"question": {"a": 1}}])
def test_what_is_no_question_gets_one_sentence(visitor, request_):
    answer = visitor.lab.ask(request_)
    assert list(answer) == ["error"] and "server's log" not in answer["error"]


def test_what_nobody_expected_gets_a_number_and_nothing_else(visitor, monkeypatch):
    monkeypatch.setitem(visitor.lab._answers, "hello", lambda request: 1 / 0)
    assert words.LAB_UNEXPECTED.split("(")[0] in visitor.ask("hello")["error"]
    monkeypatch.setitem(visitor.lab._answers, "hello", lambda request: int("/srv/secret"))
    assert "secret" not in visitor.ask("hello")["error"]


WORK = {  # by the work that a question makes: nothing to wait for, a slot, or the slot of the zips
    "light": [("hello", {}), ("check", {}), ("check", {"start": ""}), ("offer", {}), ("race", {"dry": True}), ("stop", {}), ("resume", {}),
              ("list", {}), ("follow", {}),
              ("follow", {"do": "zip"}), ("check", {"do": "zip"})],
    "slots": [("check", {"start": "box"}), ("offer", {"start": UNKNOWN}), ("race", {}), ("race", {"dry": 1}), ("start", {}),
              ("delete", {}), ("curves", {}),
              ("standing", {}), ("cell", {}), ("cell", {"do": "zip"}), ("export", {"do": "zip"}), ("checkpoint", {}), ("open", {}),
              ("set", {"do": "add"}),
              ("set", {"do": "get"}), ("set", {})],
    "zips": [("set", {"do": "zip"})],
}


def test_who_stands_in_line_is_decided_by_the_work_that_a_question_makes(visitor, monkeypatch):
    assert {question for asked in WORK.values() for question, _ in asked} == set(visitor.lab._answers)
    for question in visitor.lab._answers:
        monkeypatch.setitem(visitor.lab._answers, question, lambda request: {"answered": True})
    for full in ("slots", "zips"):
        lines = {"slots": Slots(working=1, waiting=0, patience=0.01), "zips": Slots(working=1, waiting=0, patience=0.01)}
        visitor.lab._slots, visitor.lab._zips = lines["slots"], lines["zips"]
        with lines[full].one(threading.Lock()):
            for line, asked in WORK.items():
                for question, given in asked:
                    answer = visitor.ask(question, **given)
                    busy, answered = answer.get("busy", False), answer.get("answered", False)
                    assert (busy, answered) == (line == full, line != full), (full, question, given)
        assert visitor.ask(WORK[full][0][0], **WORK[full][0][1]) == {"answered": True}      # and the line moves on


# ---- orders and the owner's limits --------------------------------------------------------------------------------------


def test_start_leaves_a_plan_and_the_film_pictures_in_a_queued_run(visitor):
    films = [uploaded("one.png", picture_bytes(coloured("red", 1))),
             uploaded("photo.txt", picture_bytes(coloured("blue", 2, (3000, 900)), "JPEG"))]
    run = visitor.ask("start", preset="class", data="cifar10", minutes=2, changes={"depth": 3, "seed": 5}, film=films,
                      title="  Two \n words ", mine=[])["run"]
    folder = visitor.folder(run)
    config = folder.config()
    assert (config["vit"]["depth"], config["train"]["seed"], config["train"]["minutes"], config["title"]) == (3, 5, 2.0, "Two words")
    assert (config["train"]["threads"] == settings.training_threads() and config["train"]["evaluations"] == 8
            and folder.status().state == "queued")
    kept = [Image.open(path) for path in sorted(folder.film.iterdir())]
    assert [image.format for image in kept] == ["PNG", "PNG"] and max(kept[1].size) == 1024
    assert np.array_equal(np.asarray(kept[0]), np.asarray(coloured("red", 1)))


def test_a_second_run_of_the_same_browser_is_refused_until_the_first_is_over(visitor):
    wish = {"data": "cifar10", "minutes": 1}
    run = visitor.ask("start", **wish, mine=[])["run"]
    refused = visitor.lab.ask({"question": "start", **wish, "mine": [UNKNOWN, run]})
    assert "still going on" in refused["error"] and refused["runs"] == [run]
    assert visitor.ask("stop", run=run) == {"run": run, "state": "stopped"}
    assert "run" in visitor.ask("start", **wish, mine=[run])


def test_a_run_whose_start_was_never_answered_is_told_to_the_browser_that_asked_for_it_and_to_nobody_else(visitor):
    wish, secret = {"question": "start", "data": "cifar10", "minutes": 1}, "5" * 32
    lost = visitor.lab.ask({**wish, "mine": [secret]})["run"]               # the answer that never arrives
    again = visitor.lab.ask({**wish, "mine": [secret]})
    assert "still going on" in again["error"] and again["runs"] == [lost]
    other = visitor.lab.ask({**wish, "mine": ["6" * 32]})
    assert lost not in str(other) and "run" in other


def test_who_knows_an_old_run_of_a_browser_learns_nothing_of_its_next(visitor):
    wish, secret = {"question": "start", "data": "cifar10", "minutes": 1}, "5" * 32
    old = visitor.lab.ask({**wish, "mine": [secret]})["run"]
    visitor.ask("stop", run=old)
    new = visitor.lab.ask({**wish, "mine": [secret, old]})["run"]
    stranger = visitor.lab.ask({**wish, "mine": [old]})
    assert new not in str(stranger) and "run" in stranger
    visitor.ask("stop", run=stranger["run"])
    assert visitor.lab.ask({**wish, "mine": [secret]})["runs"] == [new]     # and the stranger's is not the browser's


def test_one_wrong_film_picture_and_nothing_is_started(visitor, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture_bytes(coloured("red", 1)))
    link = Path(get_upload_folder(), "link.png")
    link.unlink(missing_ok=True)
    link.symlink_to(secret)
    good = uploaded("good.png", picture_bytes(coloured("red", 1)))
    for film in ([str(secret)], [str(link)], [good, "/etc/passwd"], [f"{get_upload_folder()}/../../etc/passwd"], ["\0"],
                 [get_upload_folder()]):
        assert visitor.refused("start", data="cifar10", minutes=1, film=film) == words.NOT_UPLOADED
    assert "picture" in visitor.refused("start", data="cifar10", minutes=1, film=[uploaded("bad.png", b"hello")])
    assert "at most 6" in visitor.refused("start", data="cifar10", minutes=1, film=[good] * 7)
    assert not [name for name in (os.listdir(visitor.home) if visitor.home.exists() else []) if len(name) == 32]


@pytest.mark.parametrize(("fields", "said"), [
    ({"minutes": 61}, "60"), ({"minutes": 0}, "0.02"), ({"minutes": 1, "epochs": 1}, "not both"), ({"epochs": 1.5}, "whole"),
    ({"epochs": 0}, "whole"),
    ({"minutes": 1, "changes": {"threads": 64}}, "no setting 'threads'"),
    ({"minutes": 1, "changes": {"minutes": 600}}, "no setting 'minutes'"),
    ({"minutes": 1, "changes": {"classes": 5}}, "no setting 'classes'"),
    ({"minutes": 1, "changes": {"password": 5}}, "no setting 'password'"),
    ({"minutes": 1, "changes": {"evaluations": 500}}, "200 times"), ({"minutes": 1, "changes": {"heads": 5}}, "heads"),
    ({"minutes": 1, "model": "h/14"}, "memory"), ({"minutes": 1, "changes": {"image": [4096, 4096], "patch": [64, 64]}}, "memory"),
    ({"minutes": 1, "preset": "nope"}, "preset"), ({"minutes": 1, "model": "nope"}, "model"), ({"minutes": 1, "data": UNKNOWN}, ""),
    ({"minutes": 1, "start": UNKNOWN}, "no such run"),
    ({"minutes": 1, "data": "/etc"}, ""), ({"minutes": 1, "title": "x" * 61}, "60"),
])
def test_what_may_not_be_is_refused_by_the_server(visitor, fields, said):
    for question in ("check", "start"):
        assert said in visitor.refused(question, **{"data": "cifar10", **fields})


def test_a_public_host_counts_minutes_few_looks_and_its_own_limit(tiny, tmp_path):
    visitor = Visitor(tmp_path, tiny, public=True, max_minutes=3.0)
    for fields in ({"epochs": 1}, {"steps": 1}, {"preset": "mnist", "data": "mnist"}):
        assert visitor.refused("start", **{"data": "cifar10", **fields}) == words.ONLY_MINUTES
    assert "3" in visitor.refused("start", data="cifar10", minutes=3.5)
    assert "40 times" in visitor.refused("start", data="cifar10", minutes=1, changes={"evaluations": 41})
    assert "6 minutes in all" in visitor.refused("race", kind="patch", minutes=3, seeds=3, data="cifar10", dry=True)
    assert visitor.ask("hello")["public"]


def test_where_the_disk_is_shared_one_run_may_keep_an_eighth_of_it(tiny, tmp_path):
    visitor = Visitor(tmp_path, tiny, runs_megabytes=100)
    assert "parameters" in visitor.ask("check", data="cifar10", minutes=1)
    for question in ("check", "start"):
        assert "on the disk" in visitor.refused(question, data="cifar10", minutes=1, changes={"dim": 192, "heads": 3})
    narrow = Visitor(tmp_path, tiny, runs_megabytes=40)
    assert "on the disk" in narrow.refused("race", kind="patch", minutes=1, seeds=1, data="cifar10", dry=True)


@pytest.mark.parametrize(("size", "batch", "took"), [("vit-micro", 128, 1.21e9), ("vit-micro", 512, 2.63e9), ("s/16", 16, 2.31e9)])
def test_the_memory_that_is_foreseen_is_what_such_runs_took(size, batch, took):
    """`took`: the highest resident size of steps on `batch` pictures, by `python -m vitdemo.pace` with one thread."""
    vit, train = SIZES[size].config, TrainConfig(minutes=1, batch=batch)
    assert room.needed(vit, train, parameters=vit_parameters(vit), pictures=batch) == pytest.approx(took, rel=0.15)
    more = room.needed(vit, train, parameters=0, pictures=10**6) - room.needed(vit, train, parameters=0, pictures=batch)
    assert more >= 10**6 * 3 * vit.image[0] * vit.image[1]


def test_memory_that_nobody_tells_refuses_nothing(monkeypatch):
    assert room.memory() > 5e8
    monkeypatch.setattr(room, "memory", lambda: 0)
    room.check(10**15, 1)
    monkeypatch.setattr(room, "memory", lambda: 10**10)
    room.check(5 * 10**9, 1)
    with pytest.raises(ValueError, match=r"5\.0 GB.* 3\.0"):
        room.check(5 * 10**9, 2)


def test_a_run_that_starts_from_another_names_it_but_not_its_path(trained):
    visitor, run = trained
    made = visitor.ask("start", data="cifar10", minutes=1, start=run, title="tuned")["run"]
    assert visitor.folder(made).config()["start"] == str(visitor.folder(run).best)
    told = visitor.ask("follow", run=made)
    assert told["plan"]["start"] == "My first <run>" and told["plan"]["preset"] == "tune"
    visitor.ask("delete", run=made)
    assert "no such run" in visitor.refused("follow", run=made)


# ---- following ----------------------------------------------------------------------------------------------------------


def test_the_first_answer_holds_everything_and_the_next_only_what_is_new(trained):
    visitor, run = trained
    first = visitor.ask("follow", run=run, log=0, film=0)
    assert first["status"]["over"] and first["status"]["state"] == "finished" and first["status"]["progress"] == 1
    assert [frame["step"] for frame in first["frames"]] == [0, 8, 16, 24] and len(first["scene"]["subjects"]) == 1
    assert [row["step"] for row in first["rows"] if row["accuracy"] is not None] == [0, 8, 16, 24]
    assert (first["plan"]["title"] == "My first <run>" and dict(first["plan"]["settings"])["depth"] == 3
            and first["plan"]["data"].startswith("CIFAR-10"))
    assert first["can"] == {"open": True, "download": True, "resume": False} and first["test"]["n"] == 30
    again = visitor.ask("follow", run=run, log=first["log"], film=first["film"])
    assert again["rows"] == again["frames"] == [] and not {"scene", "plan", "test", "skipped"} & set(again)
    assert (again["log"], again["film"]) == (first["log"], first["film"])


def test_an_answer_without_news_is_small(trained):
    visitor, run = trained
    first = visitor.ask("follow", run=run)
    request = {"question": "follow", "run": run, "log": first["log"], "film": first["film"]}
    assert len(json.dumps(visitor.lab.ask(request))) < 1000


def test_a_row_that_comes_later_arrives_alone(visitor):
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    folder = visitor.folder(run)
    before = visitor.ask("follow", run=run)
    assert before["status"]["position"] == 1 and before["status"]["queue_sentence"] and before["rows"] == [] and "scene" not in before
    folder.log({"step": 1, "seconds": 0.5, "loss": 2.0, "accuracy": None})
    folder.log({"skipped": ["a/<b>.jpg"] * 100, "skipped_count": 137, "duplicates": ["twice.png"], "duplicates_count": 1})
    answer = visitor.ask("follow", run=run, log=before["log"], film=0)
    assert [row["step"] for row in answer["rows"]] == [1] and answer["skipped"] == ["a/<b>.jpg"] * 100
    assert (answer["skipped_count"], answer["duplicates_count"]) == (137, 1)


def test_a_failed_run_shows_its_last_lines_without_paths(visitor):
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    folder = visitor.folder(run)
    folder.output.write_text(f"reading\nFile \"{folder.path}/log.jsonl\"\nMemoryError: too much\n")
    folder.write_status(state="failed", message="there was too little memory")
    status = visitor.ask("follow", run=run)["status"]
    assert status["over"] and status["output"][-1] == "MemoryError: too much" and "too little memory" in status["head"]


def test_the_runs_of_others_are_unknown(trained, tmp_path):
    visitor, run = trained
    for question in ("follow", "stop", "resume", "delete", "cell", "export", "checkpoint"):
        for name in (UNKNOWN, run[:-1], run.upper() if run.upper() != run else "F" * 32, "../" + run, "sets", "."):
            assert "no such run" in visitor.refused(question, run=name, truth=0, answer=0)
    assert visitor.ask("list", mine=[UNKNOWN, run])["gone"] == [UNKNOWN]
    assert visitor.ask("list", mine=[])["runs"] == []


def test_thinning_keeps_looks_and_the_last_row():
    rows = [{"step": i, "accuracy": 0.5 if i % 999 == 7 else None} for i in range(5000)]
    kept = thinned(rows, 100)
    assert len(kept) < 110 and kept[-1]["step"] == 4999 and {r["step"] for r in rows if r["accuracy"]} <= {r["step"] for r in kept}
    assert thinned(rows[:80], 100) == rows[:80]


def test_the_list_is_newest_first_and_has_every_setting(visitor):
    runs = []
    for seed, patch in ((0, 4), (1, 8)):
        run = visitor.ask("start", data="cifar10", minutes=1, changes={"seed": seed, "patch": [patch, patch]}, title=f"run {seed}")["run"]
        visitor.folder(run).write_status(state="finished", best_accuracy=0.5 + seed / 10)
        runs.append(run)
    answer = visitor.ask("list", mine=[*runs, runs[0]])
    assert [one["title"] for one in answer["runs"]] == ["run 1", "run 0"] and set(answer) == {"runs", "gone"}
    assert (answer["runs"][0]["settings"]["patch"] == [8, 8] and answer["runs"][1]["settings"]["depth"] == 6
            and answer["runs"][0]["accuracy"] == pytest.approx(0.6))


def test_curves_are_the_logs(trained):
    visitor, run = trained
    drawn = visitor.ask("curves", runs=[run])["runs"][run]
    records = [row for row in visitor.folder(run).records()[0] if "step" in row]
    assert drawn["accuracy"] == [[r["seconds"], r["step"], r["accuracy"]] for r in records if r["accuracy"] is not None]
    assert drawn["loss"][-1][2] == records[-1]["loss"] and len(drawn["loss"]) <= 300
    assert "at most 8" in visitor.refused("curves", runs=[run] * 9) and "no such run" in visitor.refused("curves", runs=[run, UNKNOWN])


def test_curves_of_a_run_that_was_resumed_drop_the_steps_that_were_taken_again(visitor):
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    folder = visitor.folder(run)
    for step, loss in ((0, 2.0), (10, 1.5), (20, 1.2), (30, 1.1), (15, 1.4), (20, 1.3)):
        folder.log({"step": step, "seconds": step / 2, "loss": loss, "accuracy": None})
    drawn = visitor.ask("curves", runs=[run])["runs"][run]["loss"]
    assert [(step, loss) for _, step, loss in drawn] == [(0, 2.0), (10, 1.5), (15, 1.4), (20, 1.3)]


@pytest.mark.parametrize(("config", "title"), [
    ({"title": "Mine", "train": {"minutes": 3}, "data": "cifar10"}, "Mine"),
    ({"train": {"minutes": 3.0}, "data": "cifar10"}, "3 minutes of CIFAR-10"),
    ({"train": {"minutes": 1}, "data": "mnist"}, "1 minute of MNIST"),
    ({"train": {"minutes": 0, "epochs": 5}, "data": "mnist"}, "5 passes over MNIST"),
    ({"train": {"steps": 500, "epochs": 0}, "data": "mnist"}, "500 steps of MNIST"),
    ({"preset": "class", "data": "mnist"}, "class, MNIST"), ({}, "a model")])
def test_a_run_without_a_name_is_called_by_its_length_and_its_pictures(config, title):
    assert title_of(config) == title


# ---- a closer look ------------------------------------------------------------------------------------------------------


def image_of(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_the_film_is_what_explain_says_of_the_same_weights(trained):
    visitor, run = trained
    answer = visitor.ask("follow", run=run)
    kept = checkpoint.load(visitor.folder(run).best)
    steps = [row["step"] for row in answer["rows"] if round(row.get("epoch", -1), 3) == kept.provenance["epochs"]]
    best = next(frame for frame in answer["frames"] if frame["step"] in steps)
    result = explain(image_of(answer["scene"]["subjects"][0]["seen"]), kept)
    assert [[i, share] for i, share in best["subjects"][0]["top"]] == [[i, pytest.approx(float(result.probabilities[i]), abs=2e-5)]
                                                                       for i in result.leading(3)]
    reads = unpacked(best["subjects"][0]["reads"])
    assert reads.shape == (3, 2, 16) and np.abs(reads - result.reads()).max() < reads.max() / 255


@pytest.mark.parametrize("part", ["validation", "test"])
def test_the_pictures_of_a_cell_are_counted_by_the_report_and_their_maps_are_those_of_explain(trained, part):
    visitor, run = trained
    answer = visitor.ask("follow", run=run)
    confusion = answer["test"]["confusion"] if part == "test" else answer["frames"][-1]["report"]["confusion"]
    loaded = checkpoint.load(visitor.folder(run).best)
    seen = 0
    for truth in range(3):
        for called in range(3):
            cell = visitor.ask("cell", run=run, part=part, truth=truth, answer=called)
            assert (cell["count"] == confusion[truth][called] and cell["shown"] == len(cell["pictures"]) <= 12 and cell["layer"] == 3
                    and cell["sentence"])
            for one in cell["pictures"]:
                result = explain(image_of(one["picture"]), loaded)
                shares = np.frombuffer(base64.b64decode(one["map"]["data"]), np.uint8).reshape(one["map"]["rows"], one["map"]["cols"])
                assert np.abs(shares / 255 * one["map"]["high"] - result.attention[-1].mean(0)).max() <= one["map"]["high"] / 255
                if part == "test":              # the test part is seen through the best weights
                    assert result.leading(1) == [called] and one["confidence"] == pytest.approx(float(result.probabilities.max()), abs=1e-4)
                seen += 1
    assert seen
    assert "classes" in visitor.refused("cell", run=run, part=part, truth=3, answer=0) and visitor.refused("cell", run=run, truth=0)


def test_the_maps_of_a_cell_are_the_mean_of_the_last_layers_heads(visitor, tiny):
    """With a model whose heads differ, which the little that three colours teach does not make."""
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    folder, pictures = visitor.folder(run), torch.randint(0, 256, (5, 3, 12, 20), dtype=torch.uint8)
    shutil.copyfile(saved(tiny, folder.path), folder.best)
    logits = torch.zeros(5, 3)
    logits[:, 2] = torch.arange(5.0) + 1
    mistakes.save(folder.mistakes("validation"), Split(pictures, torch.ones(5, dtype=torch.long)), logits, tuple(COLOURS))
    cell = visitor.ask("cell", run=run, truth=1, answer=2)
    assert cell["count"] == 5 and "5 pictures" in cell["sentence"] and "layer 3" in cell["sentence"]
    for one, image in zip(cell["pictures"], reversed(pictures), strict=True):           # the most confident first
        assert np.array_equal(np.asarray(image_of(one["picture"])), image.permute(1, 2, 0).numpy())
        maps = explain(image_of(one["picture"]), tiny).attention
        drawn = np.frombuffer(base64.b64decode(one["map"]["data"]), np.uint8).reshape(3, 5) / 255 * one["map"]["high"]
        assert np.abs(drawn - maps[-1].mean(0)).max() < one["map"]["high"] / 500
        assert (np.abs(drawn - maps[-1].max(0)).max() > one["map"]["high"] / 50
                and np.abs(drawn - maps[0].mean(0)).max() > one["map"]["high"] / 50)


def saved(loaded, folder: Path) -> Path:
    path = folder / "saved.safetensors"
    checkpoint.save(path, loaded.model, classes=loaded.classes, preprocessing=loaded.preprocessing, provenance={})
    return path


def test_a_run_without_a_look_has_no_cells_film_or_weights_yet(visitor):
    run = visitor.ask("start", data="cifar10", minutes=1)["run"]
    assert "not written yet" in visitor.refused("cell", run=run, truth=0, answer=0)
    assert visitor.refused("export", run=run) == words.NO_FILM and visitor.refused("checkpoint", run=run) == words.NO_WEIGHTS
    assert visitor.refused("check", data="cifar10", minutes=1, start=run) == words.NO_WEIGHTS


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_the_film_is_taken_home(trained, kind):
    visitor, run = trained
    taken = visitor.ask("export", run=run, kind=kind, subject=0, layer=1, head=1)
    image = Image.open(io.BytesIO(base64.b64decode(taken["data"])))
    assert (image.format == kind.upper() and image.n_frames == 4 and taken["name"] == f"vitdemo-my-first-run-film.{kind}"
            and taken["type"] == f"image/{kind}")
    for wrong in ({"layer": 3}, {"head": 2}, {"subject": 1}, {"head": "max"}, {"kind": "mp4"}):
        assert visitor.refused("export", run=run, **wrong)


# ---- models in and out --------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_copy_that_the_file_route_serves_and_that_loads(trained, tiny):
    visitor, run = trained
    given = visitor.ask("checkpoint", run=run)
    path = Path(unquote(given["url"].removeprefix("gradio_api/file=")))
    assert path.is_relative_to(Path(get_upload_folder()).resolve()) and path.name == given["name"] == visitor.folder(run).checkpoint_name
    assert path.read_bytes() == visitor.folder(run).best.read_bytes() and given["bytes"] == path.stat().st_size
    assert checkpoint.load(path).classes == tuple(sorted(COLOURS)) and given["name"].startswith("vitdemo-my-first-run-")
    os.utime(path.parent, (0, 0))
    visitor.ask("checkpoint", run=uploaded_again(visitor, path))
    assert not path.exists()


def test_however_often_a_checkpoint_is_asked_for_there_is_one_copy_of_the_same_weights(trained):
    visitor, run = trained
    urls = {visitor.ask("checkpoint", run=run)["url"] for _ in range(5)}
    assert len(urls) == 1 and run not in str(urls)
    best = visitor.folder(run).best
    before, kept = best.read_bytes(), best.stat()
    shutil.copyfile(best, best.with_name("next"))
    os.replace(best.with_name("next"), best)                               # a later look was better
    os.utime(best, ns=(kept.st_atime_ns, kept.st_mtime_ns + 1))
    assert visitor.ask("checkpoint", run=run)["url"] not in urls and best.read_bytes() == before


def uploaded_again(visitor, path):
    """Another run with the weights of a file."""
    return visitor.ask("open", path=uploaded(path.name, path.read_bytes()))["run"]


def test_a_downloaded_checkpoint_comes_back_as_a_run(trained):
    visitor, run = trained
    content = visitor.folder(run).best.read_bytes()
    answer = visitor.ask("open", path=uploaded("mine <1>.safetensors", content))
    back = visitor.lab.ask({"question": "list", "mine": [answer["run"]]})["runs"][0]
    assert back["imported"] and back["state"] == "finished" and back["title"] == "mine <1>" and "3 classes" in answer["sentence"]
    assert back["can"] == {"open": True, "download": True, "resume": False}
    one, two = (checkpoint.load(visitor.folder(name).best).model.state_dict() for name in (run, answer["run"]))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert visitor.refused("export", run=answer["run"]) == words.NO_FILM and visitor.refused("resume", run=answer["run"])
    told = visitor.ask("follow", run=answer["run"])["plan"]
    assert told["imported"] and "cifar10" in told["about"] and "test pictures right" in told["about"]


def test_a_file_that_does_not_say_its_heads_is_asked_about(visitor):
    made = seeded(image=(12, 12))
    buffer = io.BytesIO()
    torch.save(made.model.state_dict(), buffer)
    path = uploaded("foreign.pt", buffer.getvalue())
    asked = visitor.ask("open", path=path)
    assert asked["heads_needed"] and asked["sentence"]
    run = visitor.ask("open", path=path, heads=2)["run"]
    assert checkpoint.load(visitor.folder(run).best).config.heads == 2
    assert visitor.refused("open", path=path, heads=3)


def test_a_run_of_passes_has_the_recipe_of_what_it_learns_from_or_begins_with(visitor):
    for wish, preset in (({"data": "mnist"}, "mnist"), ({"data": "cifar10", "start": "box"}, "tune"), ({"data": "cifar10"}, "class")):
        run = visitor.ask("start", epochs=1, **wish)["run"]
        assert visitor.folder(run).config()["preset"] == preset
        visitor.ask("stop", run=run)


def test_pictures_of_two_channels_are_refused_before_the_start(visitor):
    assert visitor.refused("start", data="cifar10", minutes=1, changes={"channels": 2}) == "Pictures have 1 channel (grey) or 3 (colours), not 2."


def test_the_time_left_is_that_of_now_and_not_of_when_it_was_written():
    status = Status(state="running", seconds_left=60.0, time=time.time() - 20)
    assert left(status) == pytest.approx(40, abs=1) and left(dataclasses.replace(status, seconds_left=5.0)) == 0
    assert left(dataclasses.replace(status, state="queued")) == 60 and left(dataclasses.replace(status, seconds_left=None)) is None
    assert left(dataclasses.replace(status, state="finished")) is None


def test_a_file_whose_attention_would_fill_the_memory_is_refused(visitor, tmp_path):
    made, path = seeded(image=(1024, 1024), patch=(4, 4), positions="none", pool="mean", class_token=False, dim=8, heads=1, depth=1), tmp_path / "big.safetensors"
    checkpoint.save(path, made.model, classes=made.classes, preprocessing=made.preprocessing, provenance={})
    assert "would fill the memory" in visitor.refused("open", path=uploaded("big.safetensors", path.read_bytes()))


def test_a_checkpoint_that_lies_about_its_data_reveals_no_file(visitor, tmp_path):
    made, path = seeded(), tmp_path / "lies.safetensors"
    checkpoint.save(path, made.model, classes=made.classes, preprocessing=made.preprocessing,
                    provenance={"data": "/etc/passwd", "model": ["x"], "test_accuracy": 7.5, "train": {"minutes": "x"},
                                "date": "\u202e<i>"})
    run = visitor.ask("open", path=uploaded("lies.safetensors", path.read_bytes()))["run"]
    [entry] = visitor.ask("list", mine=[run])["runs"]
    assert entry["data"] == entry["preset"] == "" and entry["test"] is None and "passwd" not in json.dumps(entry)
    assert "\u202e" not in visitor.ask("follow", run=run)["plan"]["about"]


@pytest.mark.parametrize(("name", "content"),
                         [("empty.safetensors", b""), ("text.pt", b"hello"), ("cut.safetensors", b"\x10\0\0\0\0\0\0\0{\"a\":"),
                          ("page.pt", b"<!doctype html>")])
def test_a_file_that_is_no_checkpoint_gets_one_sentence(visitor, name, content):
    assert name in visitor.refused("open", path=uploaded(name, content)).lower()


def test_no_file_outside_the_uploads_is_opened(trained, visitor):
    other, run = trained
    for path in (str(other.folder(run).best), "/etc/passwd", get_upload_folder(), "best.safetensors"):
        assert visitor.refused("open", path=path) == words.NOT_UPLOADED
        assert visitor.refused("set", do="zip", path=path) == words.NOT_UPLOADED


# ---- stop, go on, delete ------------------------------------------------------------------------------------------------


def test_a_stopped_run_can_go_on_and_be_deleted(trained, tiny):
    visitor, done = trained
    run = visitor.ask("start", data="cifar10", minutes=1, mine=[done])["run"]
    assert visitor.refused("resume", run=run)
    shutil.copyfile(visitor.folder(done).last, visitor.folder(run).last)
    visitor.ask("stop", run=run)
    assert visitor.ask("follow", run=run)["can"]["resume"]
    assert visitor.ask("resume", run=run) == {"run": run, "state": "queued"}
    assert visitor.ask("delete", run=run) == {"run": run, "state": "deleted"} and run not in os.listdir(visitor.home)
    assert visitor.refused("resume", run=done)


def test_the_recorded_run_is_followed_like_any_other_but_stays(trained, tiny, tmp_path, monkeypatch):
    visitor, run = trained
    monkeypatch.setattr(models, "RECORDED_FOLDER", tmp_path / "recorded")
    assert not visitor.ask("hello")["recorded"] and visitor.refused("follow", run="recorded") == words.NO_RECORDED
    shutil.copytree(visitor.folder(run).path, tmp_path / "recorded")
    assert visitor.ask("hello")["recorded"]
    answer = visitor.ask("follow", run="recorded")
    assert len(answer["frames"]) == 4 and answer["can"] == {"open": True, "download": True, "resume": False}
    assert visitor.ask("cell", run="recorded", truth=0, answer=0)["layer"] == 3 and visitor.ask("export", run="recorded")["data"]
    assert visitor.ask("checkpoint", run="recorded")["bytes"] and visitor.ask("curves", runs=["recorded"])["runs"]["recorded"]["loss"]
    for question in ("stop", "resume", "delete"):
        assert visitor.refused(question, run="recorded") == words.RECORDED_STAYS

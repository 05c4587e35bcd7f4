"""The page's handlers as plain functions, with a tiny real model."""

import base64
import io
import json
import re
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vitdemo import checkpoint, data, settings, words
from vitdemo.config import LIMITS
from vitdemo.explain import explain
from vitdemo.looking import FITS
from vitdemo.model import ViT
from vitdemo.payload import payload
from vitdemo.runs import RunError, Scheduler, Status
from vitdemo.ui import analysis, explore, viewer
from vitdemo.ui.look import Look, PageLook, look_of
from vitdemo.ui.models import Models, describe_box
from vitdemo.ui.results import Gone, Results
from vitdemo.ui.run_status import describe as describe_run

UI = Path(viewer.__file__).parent


@pytest.fixture
def scheduler(tmp_path):
    return Scheduler(tmp_path / "runs", queue=2)                            # never started: nothing is trained here


@pytest.fixture
def models(tiny, scheduler):
    return Models(tiny, scheduler)


@pytest.fixture
def results():
    return Results()


def run_with_model(scheduler, tiny, **provenance) -> str:
    run_id = scheduler.submit({})
    checkpoint.save(scheduler.read(run_id).best, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance=provenance)
    return run_id


def test_the_viewers_value_holds_the_very_maps_in_few_bytes(tiny, photo):
    result = explain(photo, tiny)
    value = payload(result)
    sent, highs = np.frombuffer(base64.b64decode(value["reads"]["data"]), "<u2").reshape(value["reads"]["shape"]), np.array(value["reads"]["highs"]).reshape(3, 2, 1)
    assert sent.shape == (3, 2, 16) and np.abs(sent / 65535 * highs - result.reads()).max() < 1e-5
    assert np.array_equal(sent.argmax(2), result.reads().argmax(2)) and value["uniform"] == 1 / 16
    assert [name for name, _ in value["top"]] == [name for name, _ in result.top()]
    picture = Image.open(io.BytesIO(base64.b64decode(value["picture"].split(",")[1])))
    assert picture.size == (value["width"], value["height"]) and len(str(value)) < 100_000
    seen = Image.open(io.BytesIO(base64.b64decode(value["seen"].split(",")[1])))
    assert np.array_equal(np.asarray(seen), np.asarray(result.seen))


def test_the_crop_is_scaled_with_the_picture_that_travels(tiny):
    value = payload(explain(Image.new("RGB", (2000, 500), (9, 9, 9)), tiny))
    assert (value["width"], value["height"]) == (640, 192)                  # the crop, 833 x 500, and half of it on either side
    top, left, bottom, right = value["crop"]
    assert (top, bottom) == (0, 192) and right - left == pytest.approx(320, abs=1) and left == pytest.approx(640 - right, abs=1)


@pytest.mark.parametrize("content", [b"", b"text", picture_bytes(coloured("red", 1))[:60], picture_bytes(Image.new("RGBA", (5, 5)))])
def test_a_bad_picture_clears_the_answer_and_says_one_sentence(models, results, tmp_path, content):
    (tmp_path / "x.png").write_bytes(content)
    value = analysis.analyse(str(tmp_path / "x.png"), Look(), models, results)
    assert value["failed"] and "picture" not in value and value["message"][0].isupper() and value["message"].endswith(".")
    assert str(tmp_path) not in value["message"] and len(results) == 0


def test_an_unexpected_error_shows_a_number_and_the_log_has_the_trace(models, results, photo, monkeypatch, caplog):
    monkeypatch.setattr(models, "explain", lambda *_, **how: 1 / 0)
    value = analysis.analyse(str(photo), Look(), models, results)
    number = re.search(r"number (\w+) in", value["message"])[1]
    assert "ZeroDivisionError" in caplog.text and number in caplog.text and "division" not in value["message"]


def test_an_answer_is_kept_for_later_questions_and_its_key_travels(models, results, photo, tiny):
    value = analysis.analyse(str(photo), Look(), models, results, truth="red")
    kept = results.get(value["key"]).explanation
    assert value["truth"] == "red" and np.array_equal(kept.attention, explain(photo, tiny).attention)
    small = Results(limit_bytes=1)
    first, second = (analysis.analyse(str(photo), Look(), models, small, stays=stays)["key"] for stays in (True, False))
    third = analysis.analyse(str(photo), Look(), models, small)["key"]
    assert small.get(first) and small.get(third) and len({first, second, third}) == 3
    with pytest.raises(Gone):
        small.get(second)


def test_the_model_of_a_run_is_looked_through_and_named(models, results, scheduler, tiny, photo):
    run_id = run_with_model(scheduler, tiny, validation_accuracy=0.625)
    value = analysis.analyse(str(photo), Look(run_id), models, results)
    assert "right on 62% of its validation pictures" in value["about"]
    assert models.get(run_id) is models.get(run_id) and models.get(None) is tiny
    assert value["own_model"] and not analysis.analyse(str(photo), Look(), models, results)["own_model"]
    assert "right on 81% of its test pictures" in describe_box(checkpoint.Loaded(tiny.model, (), tiny.preprocessing, {"test_accuracy": 0.81}, ""))


@pytest.mark.parametrize("run_id", ["0" * 32, "../..", "x", 7, ["a"]])
def test_the_model_of_a_foreign_or_unknown_run_is_a_sentence(models, results, photo, run_id):
    assert analysis.analyse(str(photo), Look(run_id), models, results)["failed"]


def test_a_run_without_weights_yet_is_a_sentence(models, results, scheduler, tiny, photo):
    assert analysis.analyse(str(photo), Look(scheduler.submit({})), models, results)["message"] == words.RUN_MODEL_GONE


@pytest.mark.parametrize("sent", [None, [], {}, {"model": 7, "side": None}, {"model": "box", "side": "9"}, {"model": "box", "side": True},
                                  {"model": "box", "fit": 1}, {"model": "box", "fit": "squash"}])
def test_a_choice_of_a_model_that_the_bar_never_makes_is_a_sentence(sent):
    with pytest.raises(RunError, match="no such model"):
        look_of(sent)


@given(st.builds(Look, st.text(), st.none() | st.integers(1, LIMITS["image"]), st.sampled_from([None, *FITS]), st.sampled_from([None, (0.0, 0.25, 1.0, 1.0)])))
def test_a_page_keeps_its_look_and_sends_it_along_as_it_was(look):
    held = PageLook(look, visible=False)
    assert held.preprocess(json.loads(held.postprocess(look).model_dump_json())) == look


@pytest.mark.parametrize("sent", [None, [], "box", {"model": 7}, {"model": "box", "side": "9"}, {"model": "box", "side": 10**30},
                                  {"model": "box", "side": 0}, {"model": "box", "part": [0, 0, 0, 0]}])
def test_what_poses_as_a_pages_look_is_refused_in_a_sentence(sent):
    with pytest.raises(gr.Error) as refusal:
        PageLook(visible=False).preprocess(sent)
    assert re.match("There is no such model|A part of a picture", refusal.value.message)


def test_a_size_that_is_not_offered_is_a_sentence(models, results, photo):
    value = analysis.analyse(str(photo), Look(side=7777), models, results)
    assert value["failed"] and "7777" in value["message"]


def test_the_whole_picture_is_looked_at_in_its_own_shape(models, results, photo):
    value = analysis.analyse(str(photo), Look(fit="whole"), models, results)
    assert value["cols"] > value["rows"] and value["crop"] == [0, 0, value["height"], value["width"]]


def test_a_random_test_picture_comes_with_its_true_label(colour_zip):
    part = data.load_part(colour_zip, "test")
    for seed in range(5):
        image, label = analysis.random_test_picture(part, torch.Generator().manual_seed(seed))
        assert np.abs(np.asarray(image).mean((0, 1)) - COLOURS[label]).max() < 12


def test_examples_are_small_credited_and_mostly_of_the_ten_classes():
    shown = analysis.examples()
    credits = (UI / "examples" / "CREDITS.md").read_text(encoding="utf-8")
    known = set(checkpoint.load().classes)
    inside = [caption for path, caption in shown if not Path(path).name.startswith("out-")]
    assert len(inside) >= 6 and set(inside) <= known and 1 <= len(shown) - len(inside) <= 3
    for path, _ in shown:
        assert Path(path).stat().st_size < 60_000 and f"`{Path(path).name}`" in credits



def test_settings_that_make_no_sense_name_their_variable():
    for name, value in (("VITDEMO_MAX_MINUTES", "many"), ("VITDEMO_QUEUE", "-1"), ("VITDEMO_UPLOAD_MB", "nan")):
        with pytest.raises(ValueError, match=name):
            settings.read({name: value, "HOME": "/tmp"})
    public, home = settings.read({"SPACE_ID": "a/b"}), settings.read({})
    assert public.public and public.max_minutes < home.max_minutes and public.keep_hours > 0


def test_a_runs_status_is_told_in_words():
    running = Status(state="running", seconds=61, seconds_left=119, images_per_second=1234.4, best_accuracy=0.5, epoch=1.25, progress=0.34)
    assert describe_run(running) == {"state": "running", "head": "Training.", "progress": 0.34}
    assert describe_run(Status(state="queued"), 3)["head"] == "Waiting: 2 in line before yours."
    assert describe_run(Status(state="queued"), 1)["head"] == "Waiting: yours starts next."
    assert describe_run(running, stopping=True)["head"].startswith("Stopping")
    assert describe_run(Status(state="failed", message="the disk is full"))["head"] == "Failed: the disk is full"


def test_scripts_paste_nothing_as_markup_and_templates_read_no_value():
    scripts = [*sorted(UI.rglob("*.js")), UI / "run_status.py"]
    assert len(scripts) > 10
    for script in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script.read_text(encoding="utf-8")), script.name
    for template in [*UI.rglob("page.html"), *UI.rglob("*.css")]:
        assert not re.search(r"\$\{|\{\{", template.read_text(encoding="utf-8")), template.name


def test_the_api_explains_by_the_box_or_by_a_run_and_says_why_not(models, scheduler, tiny, photo):
    generator = torch.Generator().manual_seed(9)
    trained = checkpoint.Loaded(ViT(tiny.config, generator), tiny.classes, tiny.preprocessing, {}, "run")
    run_id = run_with_model(scheduler, trained)
    box, run = (analysis.explain_for_api(str(photo), model, models) for model in ("box", run_id))
    assert np.allclose(box["attention"], explain(photo, tiny).attention) and analysis.explain_for_api(str(photo), "", models) == box
    assert np.allclose(run["attention"], explain(photo, models.get(run_id)).attention) and not np.allclose(run["attention"], box["attention"])
    assert np.allclose(np.sum(run["attention"], (2, 3)) + np.sum(run["prefix_attention"], 2), 1, atol=1e-5)


@pytest.mark.parametrize("model", ["0" * 32, "../..", "/etc/passwd", "Box", "x" * 10_000, "a\0b", 7, None, True, ["box"], {"a": 1}])
def test_a_model_that_is_none_is_a_sentence_for_the_api(models, photo, model):
    with pytest.raises(gr.Error) as refusal:
        analysis.explain_for_api(str(photo), model, models)
    text = str(refusal.value.message)
    assert text.endswith(".") and len(text) < 200 and "Error" not in text and "/" not in text


def test_no_picture_is_a_sentence_for_the_api(models):
    with pytest.raises(gr.Error, match="Drop, paste or pick"):
        analysis.explain_for_api(None, "box", models)


def test_building_the_page_warns_of_nothing_and_can_be_done_twice(tiny, monkeypatch, tmp_path):
    import warnings

    from vitdemo.ui import build_app

    monkeypatch.setenv("VITDEMO_RUNS", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_app(tiny)
        build_app(tiny)


def test_where_the_input_is_empty_another_model_looks_at_the_picture_that_is_shown_or_says_that_it_is_gone(models, results, scheduler, tiny):
    on, run = explore.Handlers(models, results), run_with_model(scheduler, tiny)
    key = analysis.analyse(coloured("red", 3), Look(), models, results, truth="a red thing")["key"]
    through = gr.EventData(None, {"model": run, "side": None, "fit": None, "part": None, "serial": 1, "key": key})
    look, _, value, _ = on.model(None, through)
    assert look == Look(run) and value["truth"] == "a red thing" and value["input"] is None and value["own_model"]
    assert np.asarray(results.get(value["key"]).explanation.picture).tolist() == np.asarray(results.get(key).explanation.picture).tolist()
    for shown, said in (("", words.NO_PICTURE), ("made up", words.NOT_HELD), (7, words.NO_PICTURE)):
        assert on.model(None, gr.EventData(None, {**through._data, "key": shown}))[2]["message"] == said

"""What of a picture is looked at: its middle, all of it on a plain ground, or a part that a person frames."""

import base64
import io
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
from conftest import answered, coloured, picture_bytes, seeded, upload
from gradio.utils import get_upload_folder
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from playwright.sync_api import expect

from vitdemo import explain_command, images
from vitdemo.explain import explain
from vitdemo.images import PADDED, padded
from vitdemo.looking import LookError, at, edges
from vitdemo.runs import RunError, Scheduler
from vitdemo.ui import explore
from vitdemo.ui.look import Look, look_of
from vitdemo.ui.models import Models
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results

LEFT, RIGHT = (250, 40, 40), (40, 40, 250)
SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True).map(sorted)


def halves(width: int = 120, height: int = 40) -> Image.Image:
    """A wide picture, red on the left and blue on the right."""
    image = Image.new("RGB", (width, height), LEFT)
    image.paste(RIGHT, (width // 2, 0, width, height))
    return image


@pytest.fixture
def models(tiny, tmp_path):
    return Models(tiny, Scheduler(tmp_path / "runs", queue=2))


@pytest.mark.parametrize(("size", "shape", "expected"), [((120, 40), (32, 32), (120, 120)), ((40, 120), (32, 32), (120, 120)), ((50, 50), (8, 8), (50, 50)),
                                                         ((120, 40), (12, 20), (120, 72)), ((10, 72), (12, 20), (120, 72)), ((7, 5), (32, 32), (7, 7))])
def test_a_plain_ground_has_the_inputs_shape_and_all_of_the_picture_in_its_middle(size, shape, expected):
    image = Image.effect_noise(size, 90).convert("RGB")
    ground, (top, left, bottom, right) = padded(image, shape)
    assert ground.size == expected
    box = tuple(round(v) for v in (left * ground.width, top * ground.height, right * ground.width, bottom * ground.height))
    assert np.array_equal(np.asarray(ground.crop(box)), np.asarray(image))
    assert abs(box[0] + box[2] - ground.width) <= 1 and abs(box[1] + box[3] - ground.height) <= 1


def test_a_plain_ground_that_would_be_very_large_is_made_smaller_with_all_of_the_picture_on_it(monkeypatch):
    monkeypatch.setattr(images, "MOST_PADDED", 10_000)
    thin = Image.new("RGB", (3000, 15), (200, 10, 30))
    ground, (top, left, bottom, right) = padded(thin, (32, 32))
    assert ground.size == (100, 100) and (left, right) == (0, 1) and 0.4 < top < bottom <= 0.6 and bottom - top == pytest.approx(0.01)
    assert padded(thin.resize((100, 7)), (32, 32))[0].size == (100, 100)    # no larger than that: as it is
    result = explain(thin, seeded(image=(32, 32), patch=(8, 8)), fit="pad")
    assert result.picture.size == (100, 100) and result.original.size == (100, 1)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_plain_ground_has_the_colour_that_is_most_usual_at_the_edge(mode):
    image = Image.new("RGB", (60, 20), (10, 200, 30))
    image.paste((255, 255, 255), (10, 5, 50, 15))
    image.paste((0, 0, 0), (0, 0, 5, 20))                                   # a few other pixels at the edge
    image = image.convert(mode)
    ground, _ = padded(image, (32, 32))
    assert ground.mode == mode and ground.getpixel((30, 2)) == image.getpixel((30, 1))


def test_all_of_a_picture_on_a_plain_ground_is_explained_like_any_square_one(tiny):
    loaded, image = seeded(image=(32, 32), patch=(8, 8)), halves()
    result, ground = explain(image, loaded, fit="pad"), padded(image, (32, 32))[0]
    assert np.array_equal(np.asarray(result.picture), np.asarray(ground)) and result.geometry.crop == (0, 0, 120, 120)
    assert np.array_equal(np.asarray(result.original), np.asarray(image)) and PADDED in result.notes
    assert np.array_equal(result.attention, explain(ground, loaded).attention)
    square = explain(coloured("red", 1), loaded, fit="pad")
    assert square.notes == () and square.original is square.picture


def test_of_a_part_nothing_else_is_seen(tiny):
    for part, colour in (((0, 0, 1, 0.5), LEFT), ((0.2, 0.6, 0.9, 0.95), RIGHT), ([0, 0.999, 1, 1], RIGHT), ((0.5, 0, 0.5001, 0.0001), LEFT)):
        result = explain(halves(), tiny, part=part)
        inner = np.asarray(result.seen, int)[2:-2, 3:-3]                    # at its edge the filter reads a little beside it, as of any crop
        assert np.abs(inner - np.array(colour)).max() <= 1 and result.seen.size == (20, 12)
    top, left, bottom, right = explain(halves(), tiny, part=(0.25, 0.5, 0.75, 1)).geometry.crop
    assert (top, left, bottom, right) == (10, 60, 30, 120)


@settings(max_examples=60, deadline=None)
@given(SHARES, SHARES)
def test_any_part_gives_an_answer_and_patches_that_lie_in_it(tiny, down, across):
    result = explain(halves(60, 20), tiny, part=(down[0], across[0], down[1], across[1]))
    top, left, bottom, right = result.geometry.crop
    assert 0 <= top < bottom <= 20 and 0 <= left < right <= 60 and bottom - top >= 1 - 1e-9 and right - left >= 1 - 1e-9
    assert result.geometry.patch_rectangle(0, 0)[:2] == (top, left) and np.isfinite(result.probabilities).all()


@pytest.mark.parametrize("part", [(), (0, 0, 1), (0, 0, 1, 1, 1), "0011", (0, 0, 1, "1"), (0, 0, True, 1), (0, 0, float("nan"), 1), (0, 0, float("inf"), 1),
                                  (0.5, 0, 0.5, 1), (0.6, 0, 0.5, 1), (-0.1, 0, 1, 1), (0, 0, 1, 1.01), (0, 0.3, 1, 0.2), None, 7, {"top": 0}])
def test_what_is_no_part_of_a_picture_is_refused_in_a_sentence(tiny, part):
    with pytest.raises(LookError, match="^a part of a picture "):
        edges(part)
    if part is not None:
        with pytest.raises(LookError, match="^a part of a picture "):
            explain(halves(), tiny, part=part)
        with pytest.raises(RunError, match="part of a picture"):
            look_of({"model": "box", "part": part})


@pytest.mark.parametrize("fit", ["squash", "middle", "", 3, ["crop"]])
def test_a_way_to_look_that_there_is_not_is_refused_with_those_there_are(tiny, fit):
    with pytest.raises(LookError, match="'crop', 'pad', 'whole'"):
        at(tiny, fit=fit)


def test_a_model_that_wants_pictures_squeezed_looks_at_their_middle_all_the_same_when_asked(tiny):
    squashing = tiny.__class__(tiny.model, tiny.classes, tiny.preprocessing.with_(fit="squash"), {}, "squashing")
    assert explain(halves(), squashing).geometry.crop == (0, 0, 40, 120)
    assert explain(halves(), squashing, fit="crop").geometry.crop == explain(halves(), tiny).geometry.crop
    assert explain(halves(), squashing, part=(0, 0, 1, 0.5)).geometry.crop == (0, 0, 40, 60)


def test_at_the_shell_a_part_is_named_by_its_edges(tmp_path, photo, monkeypatch, capsys):
    monkeypatch.setattr(explain_command, "pictures", lambda result, klass: iter(()))
    given = [str(photo), "--out", str(tmp_path / "out")]
    assert explain_command.main([*given, "--part", "0", "0", "1", "0.5"]) == 0 and explain_command.main([*given, "--fit", "pad"]) == 0
    assert PADDED in capsys.readouterr().out
    with pytest.raises(SystemExit):
        explain_command.main([*given, "--part", "0", "0", "1", "2"])
    assert "lies within it" in capsys.readouterr().err


def test_the_page_holds_a_part_to_the_picture_it_was_chosen_of(models, tmp_path):
    results, path = Results(), tmp_path / "wide.png"
    halves().save(path)
    on, questions = explore.Handlers(models, results), Questions(results, models.box)
    asked = {"model": "box", "side": None, "fit": None, "part": [0, 0.5, 1, 1], "serial": 3}
    look, _, value, echo = on.model(str(path), gr.EventData(None, asked))
    assert look == Look() and echo == {"echo": 3, "key": value["key"]} and value["link"]["part"] is True               # the next picture is looked at as a whole
    assert not on.picture(str(path), look)["link"]["part"]
    answer = questions.ask({"question": "picture", "key": value["key"]})
    shown = Image.open(io.BytesIO(base64.b64decode(answer["picture"].split(",")[1])))
    assert answer["part"] == (0, 0.5, 1, 1) and shown.size == (answer["width"], answer["height"]) == (120, 40)
    beside = questions.ask({"question": "box", "key": value["key"]})         # the model in the box beside it looks at the same part
    assert results.get(beside["key"]).explanation.geometry.crop == (0, 60, 40, 120)
    refused = on.model(str(path), gr.EventData(None, {**asked, "part": [0, 0, 2, 1]}))
    assert refused[2]["failed"] and "lies within it" in refused[2]["message"]


def test_a_frame_is_drawn_on_the_picture_without_the_margins_that_another_way_laid_around_it(models, tmp_path):
    results, path = Results(), tmp_path / "wide.png"
    halves().save(path)
    on, questions = explore.Handlers(models, results), Questions(results, models.box)
    value = on.picture(str(path), Look(fit="pad"))
    answer = questions.ask({"question": "picture", "key": value["key"]})
    assert (answer["width"], answer["height"], answer["part"]) == (120, 40, None)
    asked = {"model": "box", "fit": "pad", "key": value["key"]}
    again = on.model(None, gr.EventData(None, {**asked, "serial": 1}))[2]    # through the key, the margins are not laid around twice
    assert (again["width"], again["height"]) == (value["width"], value["height"])



def near(tab, colour) -> None:
    tab.wait_for_function("""colour => { const c = document.querySelector('.vd-seen'), got = c.getContext('2d').getImageData(c.width / 2, c.height / 2, 1, 1).data;
        return colour.every((value, i) => Math.abs(value - got[i]) < 30); }""", arg=list(colour))


def test_a_part_is_framed_by_mouse_keys_and_slider_and_shown_as_the_model_gets_it(visit):
    tab = visit()
    answered(tab, "wide.png", picture_bytes(halves(1200, 400)))
    fits, frame, key = tab.locator(".vm-fits"), tab.locator(".vm-frame"), "() => document.querySelector('.vd').dataset.key"
    fits.select_option("pad")
    expect(tab.locator(".vd-seen-text")).to_contain_text("colour of its edge")
    fits.select_option("part")
    expect(frame).to_be_visible()
    expect(tab.locator(".vd-seen-text")).not_to_contain_text("colour of its edge")
    expect(tab.locator(".vm-small-text").first).to_have_text("20 × 12 pixels: all that the model gets of it.")
    box = frame.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for where, colour in ((-0.4, LEFT), (0.8, RIGHT)):                       # as far as it goes
        before = tab.evaluate(key)
        tab.mouse.move(x, y)
        tab.mouse.down()
        tab.mouse.move(x + where * box["width"], y, steps=5)
        assert tab.evaluate(key) == before                                  # nothing is asked while it is dragged
        tab.mouse.up()
        near(tab, colour)
    assert tab.locator(".vm-small").evaluate("c => [c.width, c.height]") == [20, 12]
    frame.focus()
    for _ in range(30):
        tab.keyboard.press("ArrowLeft")
    near(tab, LEFT)
    tab.wait_for_timeout(400)                                               # as long as a pause between keys is
    before = tab.evaluate(key)
    tab.keyboard.press("-")
    tab.wait_for_function("before => document.querySelector('.vd').dataset.key !== before", arg=before)
    expect(tab.locator(".vm-reach")).to_have_value("91")
    before = tab.evaluate(key)
    tab.locator(".vm-reach").fill("50")
    tab.wait_for_function("before => document.querySelector('.vd').dataset.key !== before", arg=before)
    assert fits.input_value() == "part"
    upload(tab, "green.png", picture_bytes(Image.new("RGB", (64, 48), (20, 180, 60))))           # the next picture: its middle is framed
    expect(tab.locator(".vm-reach")).to_have_value("100")
    near(tab, (20, 180, 60))
    fits.select_option("")
    expect(frame).to_be_hidden()
    assert tab.complaints == []


def test_a_corner_changes_the_size_and_the_frame_stays_within_the_picture(visit):
    tab = visit()
    answered(tab, "wide.png", picture_bytes(halves(1200, 400)))
    tab.locator(".vm-fits").select_option("part")
    expect(tab.locator(".vm-frame")).to_be_visible()
    box = tab.locator(".vm-frame").bounding_box()
    wide = box["height"] * 20 / 12                                          # the frame is as tall as the picture
    left, top = box["x"] + (box["width"] - wide) / 2, box["y"]
    tab.mouse.move(left + wide - 3, top + box["height"] - 3)                # its lower right corner
    tab.mouse.down()
    tab.mouse.move(left + wide - 3 - wide / 2, top + box["height"] - 3 - box["height"] / 2, steps=5)
    tab.mouse.up()
    expect(tab.locator(".vm-reach")).to_have_value("50")
    tab.mouse.move(left + wide / 2 - 3, top + box["height"] / 2 - 3)
    tab.mouse.down()
    tab.mouse.move(left + 5000, top + 5000, steps=5)                        # far outside: as large as the picture allows, from the same corner
    tab.mouse.up()
    expect(tab.locator(".vm-reach")).to_have_value("100")
    near(tab, RIGHT)
    assert tab.complaints == []


def test_on_a_phone_the_page_does_not_scroll_away_from_the_frame(visit):
    tab = visit(width=390, height=844, has_touch=True)
    answered(tab, "wide.png", picture_bytes(halves(1200, 400)))
    tab.locator(".vm-fits").select_option("part")
    frame = tab.locator(".vm-frame")
    expect(frame).to_be_visible()
    frame.scroll_into_view_if_needed()
    before = frame.bounding_box()
    tab.touchscreen.tap(before["x"] + 20, before["y"] + before["height"] / 2)                    # the frame comes to the finger
    near(tab, LEFT)
    expect(tab.locator(".vm-verdict")).to_have_text(tab.locator(".vd-verdict").inner_text())
    assert frame.bounding_box()["y"] == before["y"] and tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_way_it_looks_travels_in_a_link_and_a_part_is_said_to_stay(visit, page):
    tab = visit(page[0] + "?example=dog&fit=pad")
    expect(tab.locator(".vm-fits")).to_have_value("pad")
    tab.locator(".vm-fits").select_option("part")
    expect(tab.locator(".vm-frame")).to_be_visible()
    tab.wait_for_function("() => !document.querySelector('.vd').dataset.look.includes('pad')")     # one answer after the other
    tab.locator(".vm-frame").press("ArrowLeft")
    tab.wait_for_function("() => document.querySelector('.vd').dataset.look.endsWith(']]')")
    tab.get_by_role("button", name="Copy link").click()
    expect(tab.locator(".vd-copied, .vd-copy, .vd").filter(has_text="stays here").first).to_be_visible()


def test_a_picture_that_left_the_server_is_said_and_the_next_one_is_looked_at_as_the_bar_says(visit):
    tab = visit()
    answered(tab, "wide.png", picture_bytes(halves(1200, 400)))
    for path in Path(get_upload_folder()).rglob("wide.png"):                # an hour later
        path.unlink()
    tab.locator(".vm-fits").select_option("pad")
    expect(tab.locator(".vd-message")).to_contain_text("no longer on the server")
    tab.wait_for_timeout(1500)
    upload(tab, "tall.png", picture_bytes(halves(400, 1200)))
    expect(tab.locator(".vd-seen-text")).to_contain_text("colour of its edge")
    expect(tab.locator(".vm-fits")).to_have_value("pad")


def test_an_answer_that_was_on_its_way_while_something_else_was_chosen_is_asked_for_anew(visit):
    tab = visit()
    answered(tab, "wide.png", picture_bytes(halves(1200, 400)))
    tab.locator(".vm-fits").select_option("pad")
    expect(tab.locator(".vd-seen-text")).to_contain_text("colour of its edge")
    tab.wait_for_timeout(500)                                               # the choice was heard
    for look, asks in (('["box",null,"whole",null]', False), ('["box",null,null,null]', True)):            # neither chosen nor what was before; what was before
        tab.evaluate("look => Object.assign(document.querySelector('.vd').dataset, { look, key: 'late' })", look)
        tab.wait_for_timeout(1500)
        assert (tab.evaluate("document.querySelector('.vd').dataset.key") != "late") == asks
    expect(tab.locator(".vd-seen-text")).to_contain_text("colour of its edge")
    assert tab.complaints == []

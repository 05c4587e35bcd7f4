"""The model bar on a real page: a published model fetched from a stand-in hub, cancelled, refused, another size, one's own file."""

import json
import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from conftest import answered, clear, drawn, picture_bytes, seeded, serving, upload, watched
from hub_stand_in import HubStandIn
from parity import state_of
from PIL import Image
from playwright.sync_api import expect
from safetensors.torch import save

from vitdemo import checkpoint, zoo
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.model import ViT
from vitdemo.ui.models import Models
from vitdemo.zoo import Hub

CONFIG = ViTConfig(image=32, patch=8, dim=24, depth=3, heads=4, classes=0, registers=2)
ENTRY = zoo.Entry(name="small-one", title="A small one", line="It is as good as any for a test.", where=Hub("lab/small-one"), megabytes=1, parameters=1234, licence="CC0",
                  learned_from="random numbers", reported=None, reported_as="nothing is reported", config=CONFIG, preprocessing=Preprocessing(size=32), naming="timm")


def weights(config: ViTConfig) -> bytes:
    return save(state_of(config))


@pytest.fixture
def stand(monkeypatch, tmp_path):
    with HubStandIn() as stand:
        stand.settle(monkeypatch, tmp_path)
        stand.put("lab/small-one", {"model.safetensors": weights(CONFIG), "config.json": b"{}"})
        stand.put("lab/beit", {"model.safetensors": b"x" * 1000, "config.json": json.dumps({"model_type": "beit"}).encode()})
        monkeypatch.setattr(zoo, "ENTRIES", (ENTRY, replace(ENTRY, name="gone", title="A gone one", where=Hub("lab/gone"))))
        yield stand


@pytest.fixture
def square():
    """A small model that looks at squares."""
    config = ViTConfig(image=16, patch=4, dim=10, depth=2, heads=2, classes=3)
    return checkpoint.Loaded(ViT(config, torch.Generator().manual_seed(1)).eval(), ("ant", "bee", "cow"), Preprocessing(size=16), {}, "square")


@pytest.fixture
def tab(stand, square, browser, monkeypatch, tmp_path):
    monkeypatch.setenv("VITDEMO_RUNS", str(tmp_path / "runs"))
    with serving(square) as (url, _):
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        tab = watched(context)
        tab.goto(url)
        expect(tab.locator(".vm-models option[value='zoo:small-one']")).to_have_count(1)
        expect(tab.locator(".vm-sides option")).not_to_have_count(0)
        yield tab
        assert tab.complaints == []
        context.close()


def choose(tab, value):
    tab.locator(".vm-models").select_option(value)


def test_a_published_model_says_what_it_costs_is_fetched_and_looks_at_the_same_picture(tab, stand):
    choose(tab, "zoo:small-one")
    expect(tab.locator(".vm-told")).to_have_text("A small one is not on this computer yet.")
    assert stand.asked == []                                                # choosing alone fetches nothing
    tab.get_by_role("button", name="Download 1 MB").click()
    expect(tab.locator(".vd-verdict")).to_contain_text("No classes")
    expect(tab.locator(".vd-tokens, .vd-controls").first).to_contain_text("register 2")
    expect(tab.locator(".vm-models optgroup").first).to_have_attribute("label", "On this computer")
    tab.locator(".vm-about summary").click()
    expect(tab.locator(".vm-about dl")).to_contain_text("random numbers")
    tab.get_by_role("button", name="Back to the model in the box").click()
    expect(tab.locator(".vd-verdict")).not_to_contain_text("No classes")


def test_a_link_to_a_published_model_offers_it_and_shows_what_it_says_once_somebody_fetched_it(tab, stand):
    tab.goto(tab.url + "?model=zoo:small-one&layer=2&head=4")
    expect(tab.locator(".vm-told")).to_have_text("A small one is not on this computer yet.")
    expect(tab.locator(".vd-layer-name")).to_have_text("Layer 2 of 2")
    assert stand.asked == []                                                # a link alone fetches nothing
    tab.get_by_role("button", name="Download 1 MB").click()
    expect(tab.locator(".vd-layer-name")).to_have_text("Layer 2 of 3")
    expect(tab.locator(".vd-chip[data-head='3']")).to_have_attribute("aria-pressed", "true")


def test_a_download_shows_how_far_it_is_and_ends_when_it_is_cancelled_and_the_model_stays(tab, stand):
    stand.script["model.safetensors"], before = ["hang"], tab.locator(".vd-verdict").inner_text()
    choose(tab, "zoo:small-one")
    tab.get_by_role("button", name="Download 1 MB").click()
    expect(tab.locator(".vm-progress")).to_be_visible()
    tab.get_by_role("button", name="Cancel").click()
    expect(tab.locator(".vm-wait")).to_be_hidden()
    expect(tab.locator(".vm-models")).to_have_value("box")
    assert tab.locator(".vd-verdict").inner_text() == before


@pytest.mark.parametrize("name, said", [("lab/beit", "relative positions"), ("lab/gone", "lab/gone"), ("not a name", "user/name")])
def test_a_repository_that_cannot_be_shown_gets_one_sentence_and_the_model_stays(tab, name, said):
    choose(tab, "repository")
    tab.get_by_role("textbox", name="Repository").fill(name)
    tab.keyboard.press("Enter")
    expect(tab.locator(".vm-told")).to_contain_text(said)
    expect(tab.locator(".vm-wait")).to_have_attribute("data-failed", "true")
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    tab.get_by_role("button", name="Close", exact=True).click()
    expect(tab.locator(".vm-models")).to_have_value("box")


def test_another_size_and_the_whole_picture_change_the_grid(tab):
    before, sides = drawn(tab), tab.locator(".vm-sides option").all_text_contents()
    assert len(sides) > 1 and "its own" in sides[0]
    tab.locator(".vm-sides").select_option(index=1)
    expect(tab.locator(".vd-seen-text")).not_to_contain_text("16 × 16")
    larger = drawn(tab)
    assert larger != before
    tab.locator(".vm-fits").select_option("whole")
    tab.wait_for_function("before => document.querySelector('.vd-main').toDataURL() !== before", arg=larger)
    tab.locator(".vm-fits").select_option("")
    tab.locator(".vm-sides").select_option(index=0)
    expect(tab.locator(".vd-seen-text")).to_contain_text("16 × 16 pixels, cut into 4 × 4 patches")


def test_a_cleared_input_stays_empty_when_another_size_is_chosen(tab):
    clear(tab)
    expect(tab.locator(".vd-message")).to_contain_text("Drop, paste or pick a picture")
    tab.locator(".vm-sides").select_option(index=1)
    tab.wait_for_timeout(700)
    expect(tab.locator(".vd-message")).to_contain_text("Drop, paste or pick a picture")
    tab.locator("#vd-examples button").nth(2).click()
    expect(tab.locator(".vd-seen-text")).not_to_contain_text("16 × 16")     # what was chosen meanwhile looks now


@pytest.fixture
def looks(monkeypatch):
    """(side, colour in the middle) of every look of the server's, as they end. The first at another size than the model's own, which sets `begun`,
    waits for `go_on`."""
    explain, done = Models.explain, SimpleNamespace(begun=threading.Event(), go_on=threading.Event(), made=[])

    def slow(models, picture, loaded, **how):
        if how.get("side") and not done.begun.is_set():
            done.begun.set()
            done.go_on.wait(60)
        result = explain(models, picture, loaded, **how)
        done.made.append((how.get("side"), NAMES.get(result.picture.getpixel((9, 9)))))
        return result

    monkeypatch.setattr(Models, "explain", slow)
    yield done
    done.go_on.set()


NAMES = {(255, 0, 0): "red", (0, 0, 255): "blue"}


def flat(colour):
    return picture_bytes(Image.new("RGB", (40, 40), colour))


def settled(tab, side, blue):
    """Wait until a picture of that kind is shown at that size, and for half a second after it; it is still there."""
    shown = """([side, blue]) => { const root = document.querySelector('.vd'), canvas = root.querySelector('.vd-seen');
        const [red, , other] = canvas.getContext('2d').getImageData(1, 1, 1, 1).data;
        return root.dataset.state === 'shown' && JSON.parse(root.dataset.look)[1] === side && (other > red) === blue; }"""
    tab.wait_for_function(shown, arg=[side, blue])
    tab.wait_for_timeout(500)
    assert tab.evaluate(shown, [side, blue])


def release(tab, looks):
    """Let the look that waits go on, and wait for it and for what it leads to."""
    looks.go_on.set()
    while (24, "red") not in looks.made:
        tab.wait_for_timeout(50)
    tab.wait_for_timeout(1000)


def test_a_picture_that_came_while_the_one_before_was_looked_at_otherwise_is_what_stays(tab, looks):
    answered(tab, "red.png", flat("red"))
    tab.locator(".vm-sides").select_option(index=1)
    assert looks.begun.wait(30)
    answered(tab, "blue.png", flat("blue"))
    looks.go_on.set()
    settled(tab, 24, blue=True)
    assert looks.made[-4:] == [(None, "red"), (None, "blue"), (24, "red"), (24, "blue")]


def test_a_picture_that_came_between_two_choices_is_what_stays(tab, looks):
    answered(tab, "red.png", flat("red"))
    tab.locator(".vm-sides").select_option(index=1)
    assert looks.begun.wait(30)
    answered(tab, "blue.png", flat("blue"))
    tab.locator(".vm-sides").select_option(index=2)
    looks.go_on.set()
    settled(tab, 32, blue=True)
    assert looks.made[-2:] == [(24, "red"), (32, "blue")]


def test_two_choices_at_once_cost_two_looks(tab, looks):
    answered(tab, "red.png", flat("red"))
    tab.locator(".vm-sides").select_option(index=1)
    assert looks.begun.wait(30)
    tab.locator(".vm-sides").select_option(index=2)
    looks.go_on.set()
    settled(tab, 32, blue=False)
    assert looks.made[-3:] == [(None, "red"), (24, "red"), (32, "red")]


def test_an_unreadable_file_that_came_meanwhile_is_what_is_spoken_of(tab, looks):
    answered(tab, "red.png", flat("red"))
    tab.locator(".vm-sides").select_option(index=1)
    assert looks.begun.wait(30)
    upload(tab, "broken.png", flat("blue")[:60])
    expect(tab.locator(".vd")).to_have_attribute("data-state", "failed")
    tab.wait_for_timeout(1500)                                              # the bar has given that choice up by then
    said = tab.locator(".vd-message").text_content()
    release(tab, looks)
    expect(tab.locator(".vd-message")).to_have_text(said)


def test_an_input_that_was_cleared_while_its_picture_was_looked_at_otherwise_stays_empty(tab, looks):
    answered(tab, "red.png", flat("red"))
    tab.locator(".vm-sides").select_option(index=1)
    assert looks.begun.wait(30)
    clear(tab)
    expect(tab.locator(".vd-message")).to_contain_text("Drop, paste or pick a picture")
    release(tab, looks)
    expect(tab.locator(".vd")).to_have_attribute("data-state", "empty")


def test_a_file_of_ones_own_asks_for_its_heads_and_is_looked_through(tab, tmp_path):
    path = tmp_path / "mine.safetensors"
    path.write_bytes(weights(CONFIG.with_(classes=3, registers=0, heads=2)))
    choose(tab, "file")
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(path)
    tab.get_by_role("button", name=re.compile("^2 heads$")).click()
    expect(tab.locator(".vm-models option:checked")).to_have_text("mine")
    expect(tab.locator(".vd-answer")).to_contain_text("class 2")
    tab.get_by_role("tab", name="Train").click()
    expect(tab.locator(".vl-run-title").first).to_have_text("mine")        # one list of one's own models


def test_a_file_that_is_no_checkpoint_gets_one_sentence(tab, tmp_path):
    path = tmp_path / "photo.pt"
    path.write_bytes(b"<html>not found</html>")
    choose(tab, "file")
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(path)
    expect(tab.locator(".vm-told")).to_contain_text("web page")


def test_a_run_opened_from_the_train_tab_is_named_in_the_bar(tab, tmp_path):
    path = tmp_path / "trained.safetensors"
    checkpoint.save(path, seeded(5).model, classes=seeded(5).classes, preprocessing=seeded(5).preprocessing, provenance={})
    tab.get_by_role("tab", name="Train").click()
    tab.locator("#vl-checkpoint").set_input_files(path)
    tab.locator(".vl-run-item").get_by_role("button", name="Explore").click()
    expect(tab.locator(".vm-models option:checked")).to_have_text("trained")
    expect(tab.get_by_role("button", name="Back to the model in the box")).to_be_visible()


def test_a_phone_needs_no_sideways_scroll_for_the_bar(tab):
    tab.set_viewport_size({"width": 390, "height": 844})
    choose(tab, "zoo:small-one")
    expect(tab.locator(".vm-told")).to_be_visible()
    widest = tab.evaluate("Math.max(...[...document.querySelectorAll('#vd-model *')].filter(n => n.offsetParent && !n.matches('.vm-hidden, option, optgroup')).map(n => n.getBoundingClientRect().right))")
    assert widest <= 390

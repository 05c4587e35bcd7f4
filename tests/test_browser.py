"""The page in a real Chromium: what a visitor sees, does, and may do wrong. By role and label, waiting on conditions."""

import re
import threading
from contextlib import closing

import numpy as np
import pytest
from conftest import WAIT, answered, cell_colours, clear, coloured, colours_of, drawn, picture_bytes, serving, slide, upload, watched
from playwright.sync_api import expect

from vitdemo import checkpoint, words
from vitdemo.explain import explain
from vitdemo.ui import explore


def test_the_page_answers_before_it_is_asked_and_asks_nobody_else(visit, page):
    tab = visit()
    expect(tab.locator(".vd-top li")).to_have_count(3)
    expect(tab.locator(".vd-limit")).to_contain_text("knows only these")
    expect(tab.get_by_text(words.PRIVACY)).to_be_visible()
    expect(tab.get_by_test_id("json")).to_have_count(0)                     # what the page holds for itself
    outside = [url for url in tab.asked if not url.startswith((page[0], "data:", "blob:"))]
    assert outside == [] and tab.complaints == []


def test_an_upload_shows_the_class_and_the_maps_of_explain_for_every_head(visit, tiny, photo):
    tab = visit()
    upload(tab, "photo.jpg", photo.read_bytes())
    result = explain(photo, tiny)
    name, share = result.top()[0]
    expect(tab.locator(".vd-verdict")).to_contain_text(f"{name}, {100 * share:.0f}" if share >= 0.0995 else name)
    expect(tab.locator(".vd-main")).to_have_attribute("aria-label", re.compile("layer 3"))
    expect(tab.locator(".vd-heads button")).to_have_count(3)                 # the mean and two heads
    tab.locator(".vd-heads").get_by_role("button", name="head 2").click()
    slide(tab, ".vd-opacity", 100)
    tab.locator(".vd-grid").uncheck()
    last = result.attention[2]
    assert np.abs(cell_colours(tab) - colours_of(last[1].ravel(), last.max())).max() <= 3


def test_layer_opacity_grid_scale_and_head_change_the_picture_with_the_network_cut(visit):
    tab = visit()
    tab.wait_for_function("document.querySelectorAll('.vd-heads canvas').length === 3")
    tab.context.set_offline(True)
    before = [drawn(tab)]
    for change in (lambda: slide(tab, ".vd-layer", 1), lambda: slide(tab, ".vd-opacity", 30), lambda: tab.locator(".vd-grid").uncheck(),
                   lambda: tab.locator(".vd-heads").get_by_role("button", name="head 2").click(), lambda: tab.locator(".vd-own").check()):
        change()
        assert drawn(tab) not in before
        before.append(drawn(tab))
    expect(tab.get_by_text("All heads of layer 1")).to_be_visible()
    tab.locator(".vd-main").hover(position={"x": 200, "y": 200})
    expect(tab.locator(".vd-readout")).to_contain_text(re.compile(r"Row \d, column \d: weight"))


def test_a_bad_file_clears_the_answer_and_says_one_sentence_and_the_next_good_one_works(visit, photo):
    tab = visit()
    upload(tab, "notes.png", b"this is text")
    expect(tab.locator(".vd-message")).to_contain_text("text and not a picture")
    expect(tab.locator(".vd-body")).to_be_hidden()
    upload(tab, "photo.jpg", photo.read_bytes())
    expect(tab.locator(".vd-body")).to_be_visible()
    assert tab.complaints == []


def test_a_picture_without_a_suffix_is_taken_by_content_and_a_file_that_is_too_large_is_refused_in_words(visit, photo):
    tab = visit()
    answered(tab, "photo_without_suffix", photo.read_bytes(), kind="")
    expect(tab.locator(".vd-seen-text")).to_contain_text("20 × 12 pixels")
    clear(tab)
    expect(tab.locator(".vd-message")).to_contain_text("Drop, paste or pick a picture")
    tab.locator("#vd-picture input[type=file]").evaluate("""field => {                      // made there: to send so much to the browser takes long
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(21e6)], 'large.png', { type: 'image/png' }));
        field.files = data.files;
        field.dispatchEvent(new Event('change', { bubbles: true })); }""")
    expect(tab.locator(".vd-message")).to_contain_text("21 MB; at most 20 MB")
    expect(tab.locator(".vd-body")).to_be_hidden()
    assert tab.complaints == []


def test_what_the_page_says_of_a_file_stays_however_slow_the_line_is(visit, photo):
    """An input that was cleared says so itself; what the server answers to that comes after the next file was refused."""
    tab = visit()
    answered(tab, "photo.jpg", photo.read_bytes())
    tab.evaluate("""() => { window.said = []; const line = document.querySelector('.vd-message');
        new MutationObserver(() => window.said.push(line.textContent)).observe(line, { childList: true, characterData: true, subtree: true }); }""")
    slow, arrived, told = [], [], []

    def pass_on(route) -> None:
        if not arrived:
            slow.append(route)
        elif "queue/data" in route.request.url:                             # a stream, whose text the browser does not keep
            answer = route.fetch(max_retries=3)
            route.fulfill(response=answer)
            told.append(answer.text())
        else:
            route.continue_()

    tab.route("**/gradio_api/**", pass_on)
    clear(tab)
    expect(tab.locator(".vd-message")).to_contain_text("Drop, paste or pick a picture")
    tab.locator("#vd-picture").evaluate("""box => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(21e6)], 'large.png', { type: 'image/png' }));
        box.querySelector('input[type=file]').files = data.files;
        box.querySelector('input[type=file]').dispatchEvent(new Event('change', { bubbles: true })); }""")
    expect(tab.locator(".vd-message")).to_contain_text("21 MB; at most 20 MB")
    with tab.expect_response(lambda answer: "queue/data" in answer.url, timeout=WAIT):
        arrived.append(True)
        for route in slow:
            route.continue_()
    tab.wait_for_timeout(500)                                               # until the page has made of it what it makes
    assert "process_completed" in told[0]
    assert [re.findall("Drop, paste|21 MB", said) for said in tab.evaluate("said")] == [["Drop, paste"], ["21 MB"]]
    assert tab.complaints == []


def test_a_pasted_picture_is_analysed(visit):
    tab = visit()
    before = drawn(tab, ".vd-seen")
    tab.evaluate("""async () => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 40, height: 24 });
        Object.assign(canvas.getContext('2d'), { fillStyle: 'rgb(250, 10, 200)' }).fillRect(0, 0, 40, 24);
        const blob = await new Promise((done) => canvas.toBlob(done)), data = new DataTransfer();
        data.items.add(new File([blob], 'image.png', { type: 'image/png' }));
        document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); }""")
    tab.wait_for_function("before => document.querySelector('.vd-seen').toDataURL() !== before", arg=before)
    assert tab.locator(".vd-seen").evaluate("c => Array.from(c.getContext('2d').getImageData(5, 5, 1, 1).data)") == [250, 10, 200, 255]


@pytest.mark.parametrize("size", [(500, 4000), (4000, 500)])
def test_a_very_long_picture_stays_on_one_screen(visit, size):
    tab = visit(width=1024)
    answered(tab, "long.png", picture_bytes(coloured("red", 1, size)))
    box = tab.locator(".vd-main").bounding_box()
    assert 60 < box["height"] <= 620 and 100 < box["width"] <= 720


def test_an_example_and_a_random_test_picture_are_one_click_each(visit):
    tab = visit()
    before = tab.locator(".vd-seen").evaluate("canvas => canvas.toDataURL()")
    tab.locator("#vd-examples button.thumbnail-item, #vd-examples .grid-wrap button").last.click()
    tab.wait_for_function("before => document.querySelector('.vd-seen').toDataURL() !== before", arg=before)
    tab.get_by_role("button", name=words.RANDOM_TEST).click()
    expect(tab.locator(".vd-limit")).to_contain_text(re.compile("True label: (blue|green|red)"))


@pytest.fixture
def held(monkeypatch):
    """Holds back the answer of a handler of the tab: `held(name)` gives (begun, let_go), two events."""
    events = []

    def hold(name):
        answer, begun, let_go = getattr(explore, name), threading.Event(), threading.Event()

        def late(*given, **settings):
            first = not begun.is_set()
            begun.set()
            if first:
                let_go.wait(WAIT / 1000)
            return answer(*given, **settings)

        monkeypatch.setattr(explore, name, late)
        events.append(let_go)
        return begun, let_go

    yield hold
    for let_go in events:
        let_go.set()


def of_colour(tab, name):
    """Wait until a picture of that one colour is shown, and for half a second after it; it is still there."""
    shown = """name => { const [r, , b] = document.querySelector('.vd-seen').getContext('2d').getImageData(3, 3, 1, 1).data;
        return document.querySelector('.vd').dataset.state === 'shown' && (name === 'blue' ? b > r + 60 : r > b + 60); }"""
    tab.wait_for_function(shown, arg=name)
    tab.wait_for_timeout(500)
    assert tab.evaluate(shown, name)


def test_a_picture_that_came_while_a_random_one_was_fetched_is_what_stays(visit, held):
    tab = visit()
    begun, let_go = held("test_picture")
    tab.get_by_role("button", name=words.RANDOM_TEST).click()
    assert begun.wait(WAIT / 1000)
    answered(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    let_go.set()
    expect(tab.locator(".vd")).to_have_attribute("data-late", "random")     # its answer has come, and was dropped
    of_colour(tab, "blue")
    expect(tab.locator(".vd-limit")).not_to_contain_text("True label")
    expect(tab.locator("#vd-picture img")).to_be_visible()                  # the input still holds it
    tab.get_by_role("button", name=words.RANDOM_TEST).click()               # and the button works as before
    expect(tab.locator(".vd-limit")).to_contain_text("True label")
    expect(tab.locator("#vd-picture img")).to_have_count(0)
    assert tab.complaints == []


def test_a_random_picture_that_was_asked_for_while_another_one_was_looked_at_is_what_stays(visit, held):
    tab = visit()
    begun, let_go = held("analyse")
    upload(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    assert begun.wait(WAIT / 1000)
    tab.get_by_role("button", name=words.RANDOM_TEST).click()
    expect(tab.locator(".vd-limit")).to_contain_text("True label")
    let_go.set()
    expect(tab.locator(".vd")).to_have_attribute("data-late", "input")
    expect(tab.locator(".vd-limit")).to_contain_text("True label")
    upload(tab, "red.png", picture_bytes(coloured("red", 1, (60, 100))))    # and the next one is looked at as ever
    of_colour(tab, "red")
    assert tab.complaints == []


def test_a_random_picture_is_shown_though_the_input_was_cleared_while_it_was_fetched(visit, held):
    tab = visit()
    answered(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    begun, let_go = held("test_picture")
    tab.get_by_role("button", name=words.RANDOM_TEST).click()
    assert begun.wait(WAIT / 1000)
    clear(tab)
    expect(tab.locator("#vd-picture img")).to_have_count(0)
    let_go.set()
    expect(tab.locator(".vd-limit")).to_contain_text("True label")
    assert tab.complaints == []


@pytest.mark.parametrize("query", ["fit=pad&layer=2", "example=dog&fit=pad"])
def test_a_picture_that_came_while_a_link_opened_is_what_stays_and_is_looked_at_as_the_link_says(visit, held, page, query):
    tab = visit()
    begun, let_go = held("look_for")
    tab.goto(f"{page[0]}?{query}")
    assert begun.wait(WAIT / 1000)
    tab.locator("#vd-picture input[type=file]").wait_for(state="attached")
    upload(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    of_colour(tab, "blue")
    expect(tab.locator(".vd")).not_to_have_attribute("data-look", re.compile("pad"))
    let_go.set()
    expect(tab.locator(".vd")).to_have_attribute("data-look", re.compile("pad"))
    of_colour(tab, "blue")
    expect(tab.locator("#vd-picture img")).to_be_visible()
    expect(tab.locator("#vd-picture img")).to_have_attribute("src", re.compile("blue.png$"))
    assert tab.complaints == []


def test_a_picture_that_came_while_a_runs_model_was_opened_is_what_stays_and_that_model_looks_at_it(visit, held, page):
    tab = visit(f"{page[0]}?run=recorded")
    begun, let_go = held("analyse")
    tab.get_by_role("button", name="Open this model in Explore").click()
    assert begun.wait(WAIT / 1000)
    tab.get_by_role("tab", name="Explore").click()
    upload(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    of_colour(tab, "blue")
    let_go.set()
    expect(tab.locator(".vd")).to_have_attribute("data-look", re.compile("recorded"))
    of_colour(tab, "blue")
    expect(tab.locator("#vm-models")).to_have_value("recorded")
    assert tab.complaints == []


def test_the_example_that_is_shown_is_marked_and_no_other_one(visit):
    tab = visit()
    marked, examples = tab.locator("#vd-examples [aria-current=true]"), tab.locator("#vd-examples button.thumbnail-item")
    expect(marked).to_have_text("cat")
    examples.last.click()
    expect(marked).to_have_text(examples.last.inner_text())
    answered(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    expect(marked).to_have_count(0)
    examples.last.click()
    expect(marked).to_have_count(1)
    tab.get_by_role("button", name=words.RANDOM_TEST).click()
    expect(tab.locator(".vd-limit")).to_contain_text("True label")
    expect(marked).to_have_count(0)


def test_two_visitors_see_their_own_pictures(visit, tiny):
    tabs = [visit(), visit()]
    images = [coloured("red", 1, (60, 100)), coloured("blue", 2, (60, 100))]
    for tab, image in zip(tabs, images, strict=True):
        upload(tab, "x.png", picture_bytes(image))
    for tab, image in zip(tabs, images, strict=True):
        expected = np.asarray(explain(image, tiny).seen).astype(int).mean((0, 1))
        tab.wait_for_function("""want => { const c = document.querySelector('.vd-seen'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const sum = [0, 0, 0]; for (let i = 0; i < d.length; i++) if (i % 4 < 3) sum[i % 4] += d[i];
            return sum.every((s, i) => Math.abs(s / (d.length / 4) - want[i]) < 2); }""", arg=expected.tolist())


def test_a_lesson_of_ten_links_can_be_open_in_ten_tabs(browser, page):
    """A browser grants one host six connections over plain HTTP: a page that is only open must hold none."""
    with closing(browser.new_context()) as context:
        for number in range(10):
            tab = watched(context)
            tab.goto(f"{page[0]}?layer={1 + number % 3}")
            expect(tab.locator(".vd-layer")).to_have_value(str(1 + number % 3))
            assert tab.complaints == []


def test_names_from_a_checkpoint_are_text_and_never_markup(visit, tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("VITDEMO_RUNS", str(tmp_path))
    names = ("<img src=x onerror=window.hit=1>", "${window.hit=1}", "{{7*7}}")
    hostile = checkpoint.Loaded(tiny.model, names, tiny.preprocessing, {"test_accuracy": 0.5, "test_pictures": 3, "training_pictures": 3, "seconds": 1.0, "seed": 0,
                                "hardware": "<img src=x onerror=window.hit=1>", "test_per_class": dict.fromkeys(names, 0.5)}, "<i>model</i>")
    with serving(hostile) as (url, _):
        tab = visit(url)
        assert sorted(tab.locator(".vd-name").all_inner_texts()) == sorted(names)
        tab.get_by_role("button", name="Class relevance").click()
        assert sorted(tab.locator(".vd-klass option").all_inner_texts()) == sorted(names)
        tab.locator(".vd-klass-two").select_option(label=names[1])
        expect(tab.locator(".vd-second figcaption")).to_have_text(names[1])
        tab.get_by_role("button", name="Pin this result").click()
        expect(tab.locator(".vd-compare option").last).to_contain_text("<i>model</i>")
        tab.get_by_role("button", name="Test this map").click()
        sheet = tab.locator("#vd-sheet-test")
        expect(sheet.locator(".vd-chart")).to_contain_text("probability of ")
        sheet.get_by_role("button", name="Rank five kinds of maps").click()
        expect(sheet.locator("tbody tr")).to_have_count(5)
        tab.get_by_role("tab", name="Layer by layer").click()
        expect(tab.locator("#vd-sheet-lens .vd-chart")).to_contain_text("${window.hit=1}")
        tab.get_by_role("tab", name="Patch surgery").click()
        tab.get_by_role("button", name="Shuffle all patches").click()
        expect(tab.locator("#vd-sheet-surgery table")).to_be_visible()
        tab.get_by_role("tab", name="About").click()
        expect(tab.get_by_text("It knows 3 things")).to_be_visible()
        assert tab.evaluate("window.hit") is None and tab.locator("img[src=x], .vd i:not([class])").count() == 0 and tab.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scroll_on_any_tab(visit, scheme):
    """But in the row of heads, which is swiped."""
    tab = visit(width=390, height=844, color_scheme=scheme)
    for name in ("Explore", "Train", "About"):
        tab.get_by_role("tab", name=name).click()
        expect(tab.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.evaluate("""[...document.querySelectorAll('.gradio-container *')].filter(e => e.getBoundingClientRect().width
            && e.getBoundingClientRect().right > 391 && getComputedStyle(e).visibility !== 'hidden' && !e.closest('.vd-heads')).map(e => e.tagName + '.' + e.className)""") == []
    assert tab.complaints == []

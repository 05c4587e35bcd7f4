"""The projector mode: one idea per screen, large enough for the back row, stepped by keys; and nothing of it stays behind."""

import re

import pytest
from conftest import WAIT, drawn, watched
from playwright.sync_api import expect

EXPLORE = ["the picture", "cut into patches", "the answer", "where it looks", "all heads", "the whole model", "what speaks for it", "does the map matter"]
TRAIN = ["the run", "the accuracy", "the loss", "the film", "all layers and heads"]            # the recorded run has no watched pictures
WIDE, OLD = (1920, 1080), (1024, 768)

# every piece of text that can be seen in the open dialog, with its size on the screen in CSS pixels: letters in a drawing are as large as it is stretched
TEXTS = """() => {
    const out = [], box = document.querySelector('dialog[open]'), walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode, at = node.parentElement, text = node.textContent.trim(), style = getComputedStyle(at);
        if (!text || !at.checkVisibility({ checkVisibilityCSS: true }) || at.closest('.vd-show-live, title')) continue;
        out.push([text, parseFloat(style.fontSize) * (at.ownerSVGElement ? Math.abs(at.getScreenCTM().a) || Math.abs(at.getScreenCTM().b) : 1)]);
    }
    return out; }"""
SPILLS = """() => {
    const page = document.querySelector('dialog[open] .vd-show-page'), { right, bottom } = page.getBoundingClientRect();
    const out = [...page.querySelectorAll('h2, p, canvas, button, svg, li, progress')].filter(e => e.checkVisibility() && !e.closest('.vd-show-live')).filter(e => {
        const box = e.getBoundingClientRect(); return box.right > right + 1 || box.bottom > bottom + 1 || box.left < -1 || box.top < -1; }).map(e => e.className);
    return [...out, ...(page.scrollWidth > page.clientWidth || page.scrollHeight > page.clientHeight + 1 ? ['page'] : []),
        ...(document.documentElement.scrollWidth > innerWidth || getComputedStyle(document.documentElement).overflowY !== 'hidden' ? ['document'] : [])]; }"""


@pytest.fixture(scope="module")
def opened(browser, page):
    """Opens the page at an address, as wide and high as a projector; the module's pages are closed at its end."""
    contexts = []

    def open_page(query: str = "", size: tuple[int, int] = WIDE, **options):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        tab = watched(context)
        tab.goto(page[0] + query)
        return tab

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def explore(opened):
    tab = opened("?present=1")
    on_screen(tab, "the picture")
    return tab


@pytest.fixture
def first(explore):
    """The Explore tab on its first screen."""
    if not explore.locator("dialog[open]").count():
        explore.get_by_role("button", name="Present").click()
    explore.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    explore.keyboard.press("Home")
    on_screen(explore, "the picture")
    return explore


def on_screen(tab, name: str) -> None:
    expect(tab.locator("dialog[open] .vd-show-page")).to_have_attribute("data-screen", name, timeout=WAIT)


def title(tab):
    return tab.locator("dialog[open] .vd-show-title")


def go(tab, name: str) -> None:
    names = EXPLORE if name in EXPLORE else TRAIN
    tab.keyboard.press("Home")
    for step in names[:names.index(name) + 1]:
        on_screen(tab, step)
        if step != name:
            tab.keyboard.press("ArrowRight")


def check_size(tab, *, smallest: float) -> None:
    """What stands on the screen is large enough and, once it is drawn at the window's size, spills nowhere."""
    tab.wait_for_function(f"({SPILLS})().length === 0")
    assert [one for one in tab.evaluate(TEXTS) if one[1] < smallest] == []


def test_every_screen_of_explore_shows_one_idea_in_letters_of_28_pixels_and_maps_over_half_the_height(first):
    tab, seen = first, []
    for i, name in enumerate(EXPLORE):
        on_screen(tab, name)
        expect(tab.locator("dialog[open] .vd-show-count")).to_have_text(f"{i + 1} / {len(EXPLORE)}")
        expect(tab.locator("dialog[open] .vd-show-words")).not_to_contain_text("Asking")
        check_size(tab, smallest=28)
        seen.append(title(tab).inner_text())
        boxes = [box.bounding_box() for box in tab.locator("dialog[open] .vd-show-stage canvas:visible:not([width='256'])").all()]
        kinds = tab.locator("dialog[open] .vd-show-stage > *:visible").count()
        assert kinds == (2 if name == "the answer" else 1)                   # the picture and its bars are one answer
        if name in ("the picture", "cut into patches", "where it looks", "what speaks for it", "does the map matter"):
            assert [box["height"] >= 0.55 * WIDE[1] or box["width"] >= 0.8 * WIDE[0] for box in boxes] == [True]
        elif name in ("all heads", "the whole model"):
            assert max(box["y"] + box["height"] for box in boxes) - min(box["y"] for box in boxes) >= 0.3 * WIDE[1]
        tab.keyboard.press("ArrowRight")
    on_screen(tab, EXPLORE[-1])                                              # the end is an end
    assert seen[1] == "3 × 5 = 15 patches" and seen[3].startswith("Layer") and len(set(seen)) == len(seen)
    verdict = tab.locator(".vd-verdict").text_content()
    assert seen[2] == "It says: " + verdict.rpartition(",")[0]
    assert tab.complaints == []


def test_an_old_projector_shows_every_screen_without_scrolling(first):
    first.set_viewport_size({"width": OLD[0], "height": OLD[1]})
    for name in EXPLORE:
        on_screen(first, name)
        check_size(first, smallest=28 * 768 / 1080 - 0.5)
        first.keyboard.press("ArrowRight")


def test_arrows_a_clicker_space_and_taps_at_the_edges_step(first):
    tab = first
    for key, name in (("PageDown", 1), (" ", 2), ("Shift+ ", 1), ("PageUp", 0), ("ArrowLeft", 0), ("Enter", 1), ("End", -1), ("Backspace", -2), ("Home", 0), ("ArrowDown", 1), ("ArrowUp", 0)):
        tab.keyboard.press("Shift+Space" if key == "Shift+ " else key)
        on_screen(tab, EXPLORE[name])
    tab.mouse.click(WIDE[0] - 40, 540)
    on_screen(tab, EXPLORE[1])
    tab.mouse.click(40, 540)
    on_screen(tab, EXPLORE[0])
    for chord in ("Control+ArrowRight", "Alt+PageDown", "Meta+n"):
        tab.keyboard.press(chord)
    on_screen(tab, EXPLORE[0])
    tab.get_by_role("button", name="Next screen").click()
    on_screen(tab, EXPLORE[1])
    expect(tab.locator("dialog[open] [role=status]")).to_have_text(re.compile("Screen 2 of 8: cut into patches. 3 × 5 = 15 patches"))


def test_black_out_hides_everything_until_any_key_or_click_and_that_does_nothing_else(first):
    tab = first
    black = tab.locator("dialog[open] .vd-show-black")
    for key, back in (("b", "ArrowRight"), (".", "b"), ("B", "Escape")):
        tab.keyboard.press(key)
        expect(black).to_be_visible()
        assert black.bounding_box() == {"x": 0, "y": 0, "width": WIDE[0], "height": WIDE[1]}
        tab.keyboard.press(back)
        expect(black).to_be_hidden()
        on_screen(tab, EXPLORE[0])
    tab.keyboard.press("b")
    tab.mouse.click(WIDE[0] - 40, 540)
    expect(black).to_be_hidden()
    on_screen(tab, EXPLORE[0])


def test_layer_head_and_patch_chosen_by_keys_and_clicks_are_kept_when_leaving(first):
    tab = first
    go(tab, "where it looks")
    expect(title(tab)).to_have_text("Layer 3, mean of the heads")
    for key, text in (("ArrowDown", "Layer 2, mean of the heads"), ("]", "Layer 2, head 1"), ("]", "Layer 2, head 2"), ("[", "Layer 2, head 1"), ("2", "Layer 2, head 2"), ("ArrowUp", "Layer 3, head 2"), ("ArrowDown", "Layer 2, head 2")):
        tab.keyboard.press(key)
        expect(title(tab)).to_have_text(text)
    canvas = tab.locator("dialog[open] .vd-show-panes canvas").first
    before, box = drawn(tab, "dialog[open] .vd-show-panes canvas"), canvas.bounding_box()
    canvas.click(position={"x": 0.9 * box["width"], "y": 0.1 * box["height"]})
    expect(tab.locator("dialog[open] .vd-show-words")).to_contain_text("row 1, column 5")
    assert drawn(tab, "dialog[open] .vd-show-panes canvas") != before
    tab.keyboard.press("u")
    expect(tab.locator("dialog[open] .vd-show-panes canvas:visible")).to_have_count(2)
    tab.keyboard.press("u")
    go(tab, "all heads")
    tab.locator("dialog[open]").get_by_role("button", name="head 1").click()
    on_screen(tab, "where it looks")
    expect(title(tab)).to_have_text("Layer 2, head 1")
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog[open]")).to_have_count(0)
    expect(tab.get_by_role("button", name="Present")).to_have_attribute("aria-pressed", "false")
    expect(tab.locator(".vd-readout")).to_contain_text("Layer 2, head 1: the patch in row 1, column 5 reads")
    assert tab.evaluate("document.body.classList.contains('vd-present')") is False
    assert tab.locator(".vd-side .vd-wall-frame").count() == 1               # what was lent is back in its place
    tab.locator(".vd-focus").focus()
    tab.keyboard.press("c")
    expect(tab.locator(".vd-readout")).to_contain_text("the class token reads")


def test_keys_belong_to_the_page_again_after_leaving_and_the_switch_says_what_it_does(first):
    tab = first
    tab.keyboard.press("Escape")
    switch = tab.get_by_role("button", name="Present")
    expect(switch).to_have_attribute("title", re.compile("Esc leaves"))
    expect(switch).to_have_attribute("aria-pressed", "false")
    field = tab.locator(".vd-controls select").first
    field.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("b")
    expect(tab.locator("dialog[open]")).to_have_count(0)
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert tab.evaluate("document.body.classList.contains('vd-present')") is True
    on_screen(tab, EXPLORE[0])
    assert tab.evaluate("document.activeElement.className") == "vd-show-page"
    assert tab.complaints == []


def test_the_next_example_comes_by_a_key_and_the_test_of_a_map_too(first):
    tab = first
    before = drawn(tab, "dialog[open] .vd-show-stage canvas")
    tab.keyboard.press("n")
    tab.wait_for_function("before => document.querySelector('dialog[open] .vd-show-stage canvas').toDataURL() !== before", arg=before)
    on_screen(tab, EXPLORE[0])
    go(tab, "does the map matter")
    tab.keyboard.press("t")
    expect(title(tab)).to_contain_text("This map: ")
    expect(tab.locator("dialog[open] .vd-chart")).to_be_visible()
    check_size(tab, smallest=28)
    tab.keyboard.press("Home")
    tab.keyboard.press("Shift+n")
    tab.wait_for_function("before => document.querySelector('dialog[open] .vd-show-stage canvas').toDataURL() === before", arg=before)


def test_everything_that_was_loaded_is_shown_with_the_network_cut(first):
    tab = first
    tab.context.set_offline(True)
    for name in EXPLORE[:6]:
        on_screen(tab, name)
        tab.keyboard.press("ArrowRight")
    tab.context.set_offline(False)


def test_the_screens_of_a_run_show_it_in_large_letters_and_give_its_parts_back(opened):
    tab = opened("?present=1&tab=train&run=recorded", color_scheme="dark")
    on_screen(tab, "the run")
    expect(title(tab)).to_have_text("Finished")
    for size in (WIDE, OLD):
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.keyboard.press("Home")
        for name in TRAIN:
            on_screen(tab, name)
            check_size(tab, smallest=(28 if size == WIDE else 28 * 768 / 1080) - 0.5)
            tab.keyboard.press("ArrowRight")
    go(tab, "the run")
    figures = tab.locator("dialog[open] .vl-value:visible")
    assert all(box["height"] >= 100 for box in (one.bounding_box() for one in figures.all()))
    go(tab, "the film")
    expect(tab.locator("dialog[open] .vd-show-words")).to_have_text("Layer 6, mean of the heads")
    assert tab.locator("dialog[open] .vd-show-stage canvas").bounding_box()["height"] >= 0.55 * OLD[1]
    before, last = drawn(tab, "dialog[open] .vd-show-stage canvas"), title(tab).inner_text()
    tab.keyboard.press("Shift+ArrowLeft")
    expect(title(tab)).not_to_have_text(last)
    assert drawn(tab, "dialog[open] .vd-show-stage canvas") != before
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("]")
    expect(tab.locator("dialog[open] .vd-show-words")).to_have_text("Layer 5, head 1")
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog[open]")).to_have_count(0)
    assert tab.locator(".vl-status .vl-figures, .vl-status .vl-progress, .vl-film-wall .vl-wall").count() == 3
    expect(tab.locator(".vl-film-main")).to_have_attribute("aria-label", re.compile("layer 5, head 1", re.I))
    assert tab.complaints == []


def test_a_phone_can_step_by_swiping_and_leave_and_nothing_spills(opened):
    tab = opened("?present=1", size=(390, 844), has_touch=True)
    on_screen(tab, EXPLORE[0])
    tab.wait_for_function(f"({SPILLS})().length === 0")
    tab.locator("dialog[open] .vd-show-page").evaluate("""page => {
        for (const [kind, x] of [['pointerdown', 300], ['pointerup', 120]]) page.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerType: 'touch', clientX: x, clientY: 400 })); }""")
    on_screen(tab, EXPLORE[1])
    tab.get_by_role("button", name="Leave").click()
    expect(tab.locator("dialog[open]")).to_have_count(0)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390

"""The viewer in a real Chromium: every kind of map beside `explain`, by pointer, touch and keys; its panels; and what may go wrong."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import cell_colours, coloured, colours_of, drawn, picture_bytes, serving, slide, tiny_config, upload
from playwright.sync_api import Page, expect

from vitdemo import checkpoint, surgery
from vitdemo.config import Preprocessing
from vitdemo.explain import explain
from vitdemo.faithfulness import occlusion
from vitdemo.model import ViT
from vitdemo.surgery import Surgery
from vitdemo.ui import explore
from vitdemo.ui.results import Results


@pytest.fixture(scope="module")
def result(tiny, photo):
    return explain(photo, tiny)


@pytest.fixture
def look(visit, page, photo):
    """Opens the page with the photo in it. At the end nothing may have complained or asked another host."""
    tabs = []

    def open_photo(url: str = page[0], **options) -> Page:
        tab = visit(url, **options)
        tabs.append(tab)
        show(tab, photo.read_bytes(), "image/jpeg")
        return tab

    yield open_photo
    for tab in tabs:
        assert tab.complaints == []
        assert [url for url in tab.asked if not url.startswith(("http://127.0.0.1", "http://localhost", "data:", "blob:"))] == []


def show(tab: Page, content: bytes, kind: str = "image/png") -> None:
    before = drawn(tab, ".vd-seen")
    upload(tab, "picture", content, kind)
    tab.wait_for_function("before => document.querySelector('.vd-body').hidden === false && document.querySelector('.vd-seen').toDataURL() !== before", arg=before)


def bare(tab: Page) -> Page:
    """Only the map's colours over the crop, to be read from the canvas."""
    slide(tab, ".vd-opacity", 100)
    tab.locator(".vd-grid").uncheck()
    return tab


def spot(tab: Page, row: int, col: int, selector: str = ".vd-main") -> dict[str, float]:
    """The middle of a patch on a canvas that shows the photo (rows 10 to 190 of 200 are seen), in CSS pixels."""
    box = tab.locator(selector).bounding_box()
    return {"x": box["width"] * (col + 0.5) / 5, "y": box["height"] * (10 + 180 * (row + 0.5) / 3) / 200}


def click_patch(tab: Page, row: int, col: int, selector: str = ".vd-main") -> None:
    tab.locator(selector).scroll_into_view_if_needed()
    tab.locator(selector).click(position=spot(tab, row, col, selector))
    tab.mouse.move(1, 1)                                                    # so that nothing is under the pointer


def says(tab: Page, text: str | re.Pattern) -> None:
    expect(tab.locator(".vd-readout")).to_contain_text(text)


def shows(tab: Page, vector: np.ndarray, high: float | None = None, selector: str = ".vd-main") -> None:
    """The canvas has the colours of these patch weights (15,)."""
    assert np.abs(cell_colours(tab, selector) - colours_of(vector, high or vector.max())).max() <= 3


def named(tab: Page, name: str):
    return tab.locator(".vd").get_by_role("button", name=name, exact=True)


def test_every_kind_shows_its_own_map_and_line(look, tiny, result):
    tab, best = bare(look()), int(result.probabilities.argmax())
    falls = np.maximum(occlusion(tiny, result.tensor, best), 0).ravel()
    wanted = {"Attention": ("Layer 3, mean of the heads", result.reads()[2].mean(0)[1:], result.attention[2].max()),
              "Mean attention": ("Mean attention of all", result.reads().mean((0, 1))[1:], None), "Rollout": ("Rollout up to layer 3, mean", result.rollout()[1:], None),
              "Class relevance": (f"What speaks for {result.top()[0][0]}", result.relevance(best)[1:], None), "Occlusion": (f"What {result.top()[0][0]} loses", falls, None)}
    assert [button.inner_text() for button in tab.locator(".vd-kinds button").all()] == list(wanted)
    for name, (title, weights, high) in wanted.items():
        named(tab, name).click()
        says(tab, title)
        shows(tab, weights, high)
        expect(named(tab, name)).to_have_attribute("aria-pressed", "true")
        expect(tab.locator(".vd-about-kind summary")).to_contain_text(name + ": ")
        assert tab.locator(".vd-kinds [aria-pressed=true]").count() == 1
    named(tab, "Rollout").click()
    slide(tab, ".vd-layer", 2)
    tab.locator(".vd-fusion").select_option("max")
    slide(tab, ".vd-discard", 40)
    says(tab, "Rollout up to layer 2, max of the heads")
    tab.wait_for_function("!document.querySelector('.vd-readout').textContent.startsWith('Asking')")
    shows(tab, result.rollout(2, fusion="max", discard=0.4)[1:])


def test_heads_are_joined_by_mean_least_and_most_and_colours_can_be_chosen(look, result):
    tab, last = bare(look()), result.attention[2]
    for chip, joined in (("min", last.min(0)), ("max", last.max(0)), ("mean", last.mean(0)), ("head 2", last[1])):
        tab.locator(".vd-head-chips").get_by_role("button", name=chip, exact=True).click()
        shows(tab, joined.ravel(), last.max())
    tab.locator(".vd-own").check()
    shows(tab, last[1].ravel())
    seen = {drawn(tab)}
    for colours in ("viridis", "gray"):
        tab.locator(".vd-colours").select_option(colours)
        seen.add(drawn(tab))
        reds = cell_colours(tab)
    assert len(seen) == 3 and (reds[:, 0] == reds[:, 2]).all() and reds.max() == 255


def test_hovering_tells_row_column_weight_and_times_an_even_share(look, result):
    tab, weights = look(), result.reads()[2].mean(0)
    for row, col in ((0, 4), (2, 1)):
        tab.locator(".vd-main").hover(position=spot(tab, row, col))
        w = weights[1 + 5 * row + col]
        says(tab, f"Row {row + 1}, column {col + 1}: weight {w:.4f}, {16 * w:.1f} times an even share (1/16 = 0.0625).")
    tab.locator(".vd-main").hover(position={"x": 100, "y": 2})               # above what the model sees
    says(tab, "the class token reads most from")


def test_a_click_pins_a_patch_and_a_second_click_or_c_or_escape_goes_back(look, result):
    tab = bare(look())
    before, sentence = drawn(tab), tab.locator(".vd-readout").inner_text()
    token = 1 + 5 * 0 + 4
    for back in ("click", "c", "Escape"):
        click_patch(tab, 0, 4)
        says(tab, "the patch in row 1, column 5 reads")
        shows(tab, result.reads(token)[2].mean(0)[1:], result.reads(token)[2, :, 1:].max())
        expect(named(tab, "row 1, column 5 ×")).to_have_attribute("aria-pressed", "true")
        click_patch(tab, 0, 4) if back == "click" else tab.keyboard.press(back)
        expect(tab.locator(".vd-readout")).to_have_text(sentence)
        assert drawn(tab) == before
    click_patch(tab, 2, 0)
    named(tab, "row 3, column 1 ×").click()
    expect(tab.locator(".vd-readout")).to_have_text(sentence)


def test_who_reads_a_token_shows_its_column_and_prints_its_total(look, result):
    tab = bare(look())
    click_patch(tab, 1, 1)
    for name, token in (("", 7), ("class token", 0)):
        if name:
            tab.locator(".vd-token-chips").get_by_role("button", name=name, exact=True).click()
        named(tab, "who reads it").click()
        for layer in (3, 1):
            slide(tab, ".vd-layer", layer)
            column = result.read_by(token)[layer - 1]
            says(tab, f"all readers together give it {column.mean(0).sum():.2f} (an even share would be 1.00)")
            says(tab, "is read most by")
            shows(tab, column.mean(0)[1:], column[:, 1:].max())
    named(tab, "what it reads").click()
    says(tab, "the class token reads")


def test_keys_move_the_patch_the_layer_and_the_head_and_say_so(look, result):
    tab = look()
    live = tab.locator(".vd-live")
    tab.locator(".vd-focus").focus()
    tab.keyboard.press("ArrowRight")
    says(tab, "the patch in row 2, column 3 reads")                          # the first arrow goes to the middle
    for key, where in (("ArrowRight", "row 2, column 4"), ("ArrowDown", "row 3, column 4"), ("ArrowDown", "row 3, column 4"), ("ArrowLeft", "row 3, column 3"), ("ArrowUp", "row 2, column 3")):
        tab.keyboard.press(key)
        says(tab, f"the patch in {where} reads")
    expect(live).to_contain_text("the patch in row 2, column 3 reads")
    for key, title in (("[", "Layer 2, mean"), ("[", "Layer 1, mean"), ("[", "Layer 1, mean"), ("]", "Layer 2, mean"), ("2", "Layer 2, head 2"), ("3", "Layer 2, head 2"), ("m", "Layer 2, mean")):
        tab.keyboard.press(key)
        says(tab, title)
    tab.keyboard.press("r")
    says(tab, f"all readers together give it {result.read_by(8)[1].mean(0).sum():.2f}")
    expect(live).to_contain_text("all readers together")
    tab.keyboard.press("c")
    says(tab, "the class token reads most")
    tab.keyboard.press("ControlOrMeta+c")
    expect(live).to_contain_text("Layer 2, mean of the heads: the class token reads")


def test_keys_do_nothing_while_a_field_or_another_tab_has_the_focus(look):
    tab = look()
    click_patch(tab, 1, 1)
    says(tab, "row 2, column 2 reads")
    sentence = tab.locator(".vd-readout").inner_text()

    def press_all() -> None:
        for key in ("[", "2", "m", "r", "c", "Escape"):
            tab.keyboard.press(key)

    for field in (tab.locator(".vd-compare"), tab.get_by_role("button", name="A random test picture"), tab.get_by_role("tab", name="Explore")):
        field.focus()
        expect(field).to_be_focused()
        press_all()
        expect(tab.locator(".vd-readout")).to_have_text(sentence)
    tab.locator(".vd-opacity").focus()
    tab.keyboard.press("ArrowRight")                                         # moves the slider and not the patch
    expect(tab.locator(".vd-readout")).to_have_text(sentence)
    assert tab.locator(".vd-opacity").input_value() == "66"
    tab.get_by_role("tab", name="Train").click()
    tab.get_by_label("Minutes, as a slider").focus()
    press_all()
    tab.evaluate("document.activeElement.blur()")
    press_all()
    tab.get_by_role("tab", name="Explore").click()
    expect(tab.locator(".vd-readout")).to_have_text(sentence)
    expect(tab.locator(".vd-layer-name")).to_have_text("Layer 3 of 3")


def test_the_wall_and_the_strip_select_layer_and_head(look, result):
    tab = bare(look())
    wall = tab.locator(".vd-wall")
    wall.scroll_into_view_if_needed()
    box = wall.bounding_box()
    for layer, head in ((0, 1), (1, 0)):
        wall.click(position={"x": box["width"] * (head + 0.5) / 2, "y": box["height"] * (layer + 0.5) / 3})
        says(tab, f"Layer {layer + 1}, head {head + 1}: ")
        shows(tab, result.attention[layer, head].ravel(), result.attention[layer].max())
        expect(tab.locator(".vd-heads").get_by_role("button", name=f"head {head + 1}")).to_have_attribute("aria-pressed", "true")
    named(tab, "Rollout").click()
    expect(tab.locator(".vd-heads-box")).to_be_hidden()
    wall.click(position={"x": 5, "y": 5})                                    # a wall of attention leads back to attention
    says(tab, "Layer 1, head 1: ")
    tab.locator(".vd-heads").get_by_role("button", name="mean").click()
    says(tab, "Layer 1, mean of the heads: ")


def test_the_untrained_twin_stands_beside_on_one_scale_and_flickers(look, result):
    tab, twin = bare(look()), result.twin()
    tab.locator(".vd-compare").select_option("twin")
    panes = tab.locator(".vd-pane figcaption")
    trained, untrained = (re.compile(f"^{title}: {one.top()[0][0]} {100 * one.top()[0][1]:.0f}%$") for title, one in (("trained", result), ("untrained twin", twin)))
    expect(panes).to_have_text([trained, untrained])                         # each with its own answer
    panes.last.evaluate("node => { const text = node.textContent; node.textContent = 'a long name '.repeat(12); node.was = text; }")
    one, two = tab.evaluate("['.vd-main', '.vd-other'].map((name) => document.querySelector(name).getBoundingClientRect().toJSON())")      # at one moment: the page may be scrolling
    assert one["y"] == pytest.approx(two["y"], abs=1) and one["x"] + one["width"] < two["x"]          # a long caption moves neither picture
    panes.last.evaluate("node => { node.textContent = node.was; }")
    says(tab, "Untrained twin: Layer 3, mean of the heads: ")
    high = max(result.attention[2].max(), twin.attention[2].max())
    shows(tab, result.attention[2].mean(0).ravel(), high)
    shows(tab, twin.attention[2].mean(0).ravel(), high, ".vd-other")
    expect(tab.locator(".vd-unit")).to_contain_text("and both pictures")
    click_patch(tab, 0, 0, ".vd-other")                                      # the other picture takes part
    says(tab, re.compile("the patch in row 1, column 1 reads.*Untrained twin: .*the patch in row 1, column 1 reads", re.S))
    named(tab, "Rollout").click()
    says(tab, re.compile("Rollout up to layer 3.*Untrained twin: Rollout up to layer 3", re.S))
    shows(tab, twin.rollout()[1:], max(twin.rollout()[1:].max(), result.rollout()[1:].max()), ".vd-other")
    tab.locator(".vd-flicker").check()
    expect(tab.locator(".vd-second")).to_be_hidden()
    for title in (untrained, trained, untrained):
        expect(panes.first).to_have_text(title)
    tab.locator(".vd-compare").select_option("none")
    expect(panes.first).to_be_empty()


def test_a_pinned_result_stays_for_the_next_picture_and_two_classes_stand_side_by_side(look, tiny, result):
    tab, other = bare(look()), coloured("blue", 2, (200, 300))
    named(tab, "Pin this result").click()
    show(tab, picture_bytes(other))
    tab.locator(".vd-compare").select_option("pinned")
    expect(tab.locator(".vd-pane figcaption")).to_have_text([re.compile(f"this result: {explain(other, tiny).top()[0][0]}"), re.compile(f"pinned: {result.top()[0][0]}")])
    now = explain(other, tiny).attention[2]
    high = max(now.max(), result.attention[2].max())
    shows(tab, now.mean(0).ravel(), high)
    shows(tab, result.attention[2].mean(0).ravel(), high, ".vd-other")
    tab.locator(".vd-compare").select_option("none")
    expect(tab.locator(".vd-second")).to_be_hidden()
    named(tab, "Class relevance").click()
    tab.locator(".vd-klass").select_option(label="red")
    tab.locator(".vd-klass-two").select_option(label="green")
    expect(tab.locator(".vd-pane figcaption")).to_have_text(["red", "green"])
    says(tab, re.compile("What speaks for red: .*Green: What speaks for green: ", re.S))
    red, green = (explain(other, tiny).relevance(name)[1:] for name in ("red", "green"))
    shows(tab, red, max(red.max(), green.max()))
    shows(tab, green, max(red.max(), green.max()), ".vd-other")


def test_a_pinned_result_with_another_grid_can_be_pointed_at(look, tiny, monkeypatch):
    fine = ViT(tiny_config(patch=(2, 2)), torch.Generator().manual_seed(5)).eval()                # 6 x 10 patches
    loaded = checkpoint.Loaded(fine, tiny.classes, Preprocessing(size=(12, 20)), {}, "fine")
    with monkeypatch.context() as patched:
        patched.setattr(explore, "explain", lambda picture, _: explain(picture, loaded))
        tab = look()
        expect(tab.locator(".vd-seen-text")).to_contain_text("10 × 6 patches")
    named(tab, "Pin this result").click()
    show(tab, picture_bytes(coloured("blue", 2, (200, 300))))
    expect(tab.locator(".vd-seen-text")).to_contain_text("5 × 3 patches")
    tab.locator(".vd-compare").select_option("pinned")
    expect(tab.locator(".vd-second")).to_be_visible()
    tab.locator(".vd-other").hover(position=spot(tab, 2, 4, ".vd-other"))
    says(tab, re.compile("^Row 3, column 5: weight .*Pinned: .*Row 6, column 10: weight", re.S))
    click_patch(tab, 2, 4, ".vd-other")
    says(tab, re.compile("the patch in row 3, column 5 reads.*Pinned: .*the patch in row 6, column 10 reads", re.S))


def test_a_map_is_tested_by_one_click_and_five_are_ranked(look):
    tab = look()
    named(tab, "Test this map").click()
    sheet = tab.locator("#vd-sheet-test")
    expect(sheet.locator(".vd-judgement")).to_have_text(re.compile(r"^[A-Z].{20,}\.$"))
    assert sheet.locator("svg.vd-chart polyline").count() == 3 and sheet.locator("svg.vd-chart polygon").count() == 1
    expect(sheet).to_contain_text(re.compile(r"Area under the curve: this map 0\.\d{3}; random orders 0\.\d{3}"))
    before = drawn(tab, ".vd-hidden-view")
    slide(tab, "#vd-sheet-test .vd-test-row input[type=range]", 10)
    expect(sheet).to_contain_text("of 15 patches hidden")
    assert drawn(tab, ".vd-hidden-view") != before
    sheet.get_by_label("Way").select_option("in")
    sheet.get_by_label("Hidden by").select_option("drop")
    named(tab, "Test the map that is shown").click()
    expect(sheet).to_contain_text("patches shown")
    expect(sheet).to_contain_text("Higher is better.")
    named(tab, "Rank five kinds of maps").click()
    expect(sheet.locator("tbody tr")).to_have_count(5)
    areas = [float(cell.inner_text()) for cell in sheet.locator("tbody td:nth-child(3)").all()]
    assert areas == sorted(areas, reverse=True)                              # insertion: more is better
    sheet.get_by_role("button", name="rollout").click()
    says(tab, "Rollout up to layer 3")


def test_a_test_can_be_cancelled_and_gone_on_with(look):
    tab, held = look(), []
    tab.route("**/component_server**", lambda route: route.continue_() if held else held.append(route))
    named(tab, "Test this map").click()
    sheet = tab.locator("#vd-sheet-test")
    sheet.get_by_role("button", name="Cancel").click()
    expect(sheet).to_contain_text("Cancelled")
    with tab.expect_response("**/component_server**"):
        held[0].continue_()                                                  # its answer comes too late
    expect(sheet.locator(".vd-judgement")).to_have_count(0)
    named(tab, "Test the map that is shown").click()
    expect(sheet.locator(".vd-judgement")).to_be_visible()
    expect(sheet).not_to_contain_text("Cancelled")


def test_layer_by_layer_and_head_facts_follow_the_layer_and_select_heads(look, result):
    tab = look()
    tab.get_by_role("tab", name="Layer by layer").click()
    lens, (name, share) = tab.locator("#vd-sheet-lens"), result.top()[0]
    expect(lens).to_contain_text(f"After layer 3: {name} {100 * share:.{1 if share < 0.0995 else 0}f}%")
    assert lens.locator("polyline").count() == len(tab.locator(".vd-top li").all())
    slide(tab, ".vd-layer", 1)
    early = {klass: float(p) for klass, p in zip(result.classes, result.lens[0], strict=True)}
    best = max(early, key=early.get)
    expect(lens).to_contain_text(f"After layer 1: {best} {100 * early[best]:.{1 if early[best] < 0.0995 else 0}f}%")
    tab.get_by_role("tab", name="Head facts").click()
    facts = tab.locator("#vd-sheet-facts")
    expect(facts.locator("circle")).to_have_count(6)
    named_dot = facts.get_by_role("button", name=f"layer 1, head 2: {result.facts().entropy[0, 0, 1]:.2f}")
    named_dot.click()
    says(tab, "Layer 1, head 2: ")
    facts.get_by_label("Fact").select_option("distance")
    dot = facts.get_by_role("button", name=f"layer 3, head 1: {result.facts().distance[0, 2, 0]:.1f}")
    dot.focus()
    tab.keyboard.press("Enter")
    says(tab, "Layer 3, head 1: ")
    expect(dot).to_be_focused()                                              # drawn anew, and still under the keys
    expect(dot).to_have_attribute("aria-pressed", "true")


def changed_by(tab: Page) -> float:
    sheet = tab.locator(".vd-here")
    expect(sheet).to_contain_text("changed by at most")
    return float(re.search(r"changed by at most ([\d.e+-]+?)(?: against|\.(?:\s|$|[A-Z]))", sheet.inner_text())[1])


def test_surgery_hides_swaps_and_shuffles_and_without_positions_order_does_not_matter(look, tiny, result):
    tab = bare(look())
    before = drawn(tab)
    tab.get_by_role("tab", name="Patch surgery").click()
    sheet = tab.locator("#vd-sheet-surgery")
    click_patch(tab, 0, 1)
    click_patch(tab, 2, 3)
    says(tab, "the class token reads")                                       # a click chooses, and pins nothing
    assert drawn(tab) != before
    named(tab, "Hide the chosen").click()
    expect(tab.locator(".vd-here")).to_contain_text("2 patches hidden.")
    assert changed_by(tab) == pytest.approx(surgery.difference(tiny, result.tensor, Surgery(15, (1, 13)))[0], abs=1e-3)
    expect(tab.locator(".vd-pane figcaption")).to_have_text([re.compile("^before: "), re.compile("^after surgery: ")])
    expect(sheet.locator("tr")).to_have_count(2)
    named(tab, "Undo everything").click()
    expect(tab.locator(".vd-second")).to_be_hidden()
    assert drawn(tab) == before

    named(tab, "Swap two chosen").click()
    expect(tab.locator(".vd-here")).to_contain_text("exactly two patches to swap; 0 are chosen")
    click_patch(tab, 0, 0)
    click_patch(tab, 2, 4)
    named(tab, "Swap two chosen").click()
    expect(tab.locator(".vd-here")).to_contain_text("Patches moved.")
    order = (14, *range(1, 14), 0)
    assert changed_by(tab) == pytest.approx(surgery.difference(tiny, result.tensor, Surgery(15, (), order))[0], abs=1e-3) and changed_by(tab) > 1e-3
    named(tab, "Shuffle all patches").click()
    expect(sheet.locator("tr")).to_have_count(2)
    tab.get_by_label("Remove the position embeddings").check()
    expect(tab.locator(".vd-here")).to_contain_text("a Vision Transformer sees a bag of patches")
    assert changed_by(tab) < 1e-3
    expect(sheet.locator("th").first).to_contain_text("before, without positions")


def test_patches_are_chosen_by_keys_while_surgery_is_open(look):
    tab = look()
    tab.get_by_role("tab", name="Patch surgery").click()
    tab.locator(".vd-focus").focus()
    for key in ("ArrowRight", "x", "ArrowRight", "x"):
        tab.keyboard.press(key)
    named(tab, "Hide the chosen").click()
    expect(tab.locator(".vd-here")).to_contain_text("2 patches hidden.")
    tab.get_by_role("tab", name="Patch surgery").click()                     # closed: a click pins again
    expect(tab.locator(".vd-here")).to_be_hidden()
    click_patch(tab, 0, 0)
    says(tab, "the patch in row 1, column 1 reads")


def test_filters_and_positions_are_shown_and_can_be_pointed_at(look):
    tab = look()
    tab.get_by_role("tab", name="Filters and positions").click()
    sheet = tab.locator("#vd-sheet-embedding")
    expect(sheet.get_by_role("img", name=re.compile("component"))).not_to_have_count(0)
    assert sheet.locator("img").evaluate_all("images => images.every(image => image.complete && image.naturalWidth === 4)")
    sheet.get_by_label("Filters").select_option("filters")
    expect(sheet.get_by_role("img", name=re.compile("filter"))).to_have_count(10)
    box = sheet.locator(".vd-similar").bounding_box()
    sheet.locator(".vd-similar").hover(position={"x": box["width"] * 0.5 / 29, "y": box["height"] * 0.5 / 11})
    expect(sheet).to_contain_text("Position row 1, column 1 and position row 1, column 1: similarity 1.00.")


def test_what_is_shown_is_taken_home_as_figures_numbers_and_a_report(look, visit, result, tmp_path):
    tab = look()
    click_patch(tab, 1, 1)
    says(tab, "row 2, column 2 reads")
    tab.get_by_role("tab", name="Take it home").click()

    def taken(name: str) -> tuple[str, bytes]:
        with tab.expect_download() as download:
            named(tab, name).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        expect(tab.locator("#vd-sheet-take")).to_contain_text(f"Saved as {path.name}")
        return path.suffix, path.read_bytes()

    for name, suffix, start in (("This figure (PNG)", ".png", b"\x89PNG"), ("This figure (SVG)", ".svg", b"<?xml"), ("All heads in one sheet (PNG)", ".png", b"\x89PNG")):
        found, data = taken(name)
        assert found == suffix and data.startswith(start) and len(data) > 5000
    suffix, data = taken("Raw maps (.npz)")
    with np.load(io.BytesIO(data), allow_pickle=False) as maps:
        assert suffix == ".npz" and np.allclose(maps["attention"], result.attention) and np.allclose(maps["shown"], result.patches(result.reads(7)[2].mean(0)), atol=1e-6)
    suffix, data = taken("Report (HTML, works offline)")
    assert suffix == ".html" and data.startswith(b"<!doctype html>")
    (tmp_path / "report.html").write_bytes(data)
    report = visit((tmp_path / "report.html").as_uri())
    says(report, "the class token reads most")
    assert report.complaints == [] and [url for url in report.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_tap_pins_on_a_touch_screen(look):
    tab = look(has_touch=True, width=390, height=844)
    tab.locator(".vd-main").tap(position=spot(tab, 2, 2))
    says(tab, "the patch in row 3, column 3 reads")
    tab.locator(".vd-main").tap(position=spot(tab, 2, 2))
    says(tab, "the class token reads")


def test_a_lost_server_is_a_sentence_and_the_earlier_view_stays(look):
    tab = look()
    before = drawn(tab)
    tab.context.set_offline(True)
    click_patch(tab, 1, 1)
    says(tab, "The server does not answer: is the program still running, and the network there? Layer 3, mean of the heads: the class token reads")
    assert drawn(tab) == before                                             # not only the words: the map itself
    named(tab, "Test this map").click()
    expect(tab.locator("#vd-sheet-test .vd-trouble")).to_contain_text("The server does not answer")
    tab.locator(".vd-compare").select_option("twin")
    expect(tab.locator(".vd-compare-note")).to_contain_text("The server does not answer")
    tab.keyboard.press("Tab")                                                # out of the field, to the keys
    tab.locator(".vd-focus").focus()
    tab.keyboard.press("c")
    expect(tab.locator(".vd-readout")).not_to_contain_text("does not answer")
    tab.context.set_offline(False)
    click_patch(tab, 0, 3)
    says(tab, "the patch in row 1, column 4 reads")
    assert all("ERR_INTERNET_DISCONNECTED" in text for text in tab.complaints), tab.complaints
    tab.complaints.clear()                                                   # the browser's own words about the network


def test_a_failed_upload_under_a_flickering_comparison_complains_of_nothing(look):
    tab = look()
    tab.clock.install()
    named(tab, "Class relevance").click()
    tab.locator(".vd-klass-two").select_option(index=2)
    tab.locator(".vd-flicker").check()
    upload(tab, "notes.png", b"this is text")
    expect(tab.locator(".vd-body")).to_be_hidden()
    tab.clock.run_for(3000)
    show(tab, picture_bytes(coloured("blue", 2)))
    tab.clock.run_for(1000)
    expect(tab.locator(".vd-main")).to_be_visible()


def test_a_result_that_had_to_make_room_asks_for_the_picture_again(look, tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("VITDEMO_RUNS", str(tmp_path))
    monkeypatch.setattr(explore, "Results", lambda: Results(limit_bytes=1))
    with serving(tiny) as (url, _):
        tab, other = look(url), look(url)
        click_patch(tab, 1, 1)
        says(tab, "This result is no longer kept: please upload the picture again.")
        named(tab, "Test this map").click()
        expect(tab.locator("#vd-sheet-test")).to_contain_text("please upload the picture again")
        click_patch(other, 1, 1)
        says(other, "the patch in row 2, column 2 reads")


def test_a_hot_corner_is_drawn_and_told_at_its_own_place(look, monkeypatch):
    real = explore.payload

    def crafted(explanation, **more):
        attention, rest = np.zeros((3, 2, 3, 5), np.float32), np.zeros((3, 2, 1), np.float32)
        attention[2, 0, 0, 4], attention[2, 1, 2, 0], attention[:2, :, 1, 2] = 1, 1, 1
        return real(replace(explanation, attention=attention, prefix_attention=rest), **more)

    monkeypatch.setattr(explore, "payload", crafted)
    tab = bare(look())
    for head, row, col, name in ((1, 0, 4, "upper right"), (2, 2, 0, "lower left")):
        tab.locator(".vd-heads").get_by_role("button", name=f"head {head}").click()
        says(tab, f"the class token reads most from row {row + 1}, column {col + 1} (100%, 16.0 times an even share); the {name} of the picture holds 100%")
        hot = np.zeros((3, 5))
        hot[row, col] = 1
        shows(tab, hot.ravel())
        tab.locator(".vd-main").hover(position=spot(tab, row, col))
        says(tab, f"Row {row + 1}, column {col + 1}: weight 1.0000, 16.0 times")


def test_the_first_answer_needs_no_question_and_a_change_of_view_none_either(look):
    tab = look()
    asked = len(tab.asked)
    for change in (lambda: slide(tab, ".vd-layer", 1), named(tab, "min").click, named(tab, "Mean attention").click, tab.locator(".vd-wall").click, tab.locator(".vd-main").hover):
        change()
    assert [url for url in tab.asked[asked:] if "component_server" in url] == []

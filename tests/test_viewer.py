"""The viewer in a real Chromium: every kind of map beside `explain`, by pointer, touch and keys; its panels; and what may go wrong."""

import io
import re
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import cell_colours, coloured, colours_of, drawn, picture_bytes, seeded, serving, slide, tiny_config, upload
from PIL import Image
from playwright.sync_api import Page, expect

from vitdemo import checkpoint, features, surgery
from vitdemo.config import Preprocessing
from vitdemo.explain import explain
from vitdemo.faithfulness import occlusion
from vitdemo.model import ViT
from vitdemo.surgery import Surgery
from vitdemo.ui import analysis, explore
from vitdemo.ui.models import Models
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
    """The middle of a patch on a canvas that shows the photo (resized to 13 rows, of which the first 12 are seen), in CSS pixels."""
    box = tab.locator(selector).bounding_box()
    return {"x": box["width"] * (col + 0.5) / 5, "y": box["height"] * 12 / 13 * (row + 0.5) / 3}


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
    wanted = {"Attention": ("Layer 3, mean of the heads", result.reads()[2].mean(0)[1:], None),
              "Mean attention": ("Mean attention of all", result.reads().mean((0, 1))[1:], None), "Rollout": ("Rollout up to layer 3, mean", result.rollout()[1:], None),
              "Class relevance": (f"What speaks for {result.top()[0][0]}", result.relevance(best)[1:], None), "Occlusion": (f"What {result.top()[0][0]} loses", falls, None)}
    assert [button.inner_text() for button in tab.locator(".vd-kinds button").all()] == [*wanted, "Similarity", "Colours", "Norms"]
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
        shows(tab, joined.ravel(), last.max() if chip == "head 2" else None)          # heads have one scale; joined, they have their own
        expect(tab.locator(".vd-unit")).to_contain_text("one scale for layer 3" if chip == "head 2" else "scale of this map")
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
    tab.locator(".vd-main").hover(position={"x": 100, "y": tab.locator(".vd-main").bounding_box()["height"] - 4})         # below what the model sees
    says(tab, "the class token reads most from")


def test_a_click_pins_a_patch_and_a_second_click_or_c_or_escape_goes_back(look, result):
    tab = bare(look())
    before, sentence = drawn(tab), tab.locator(".vd-readout").inner_text()
    token = 1 + 5 * 0 + 4
    for back in ("click", "c", "Escape"):
        click_patch(tab, 0, 4)
        says(tab, "the patch in row 1, column 5 reads")
        shows(tab, result.reads(token)[2].mean(0)[1:])
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
            shows(tab, column.mean(0)[1:])
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
    trained, untrained = (re.compile(f"^{title}: {one.top()[0][0]} {100 * one.top()[0][1]:.0f}%$") for title, one in (("trained", result), ("the untrained twin", twin)))
    expect(panes).to_have_text([trained, untrained])                         # each with its own answer
    panes.last.evaluate("node => { const text = node.textContent; node.textContent = 'a long name '.repeat(12); node.was = text; }")
    one, two = tab.evaluate("['.vd-main', '.vd-other'].map((name) => document.querySelector(name).getBoundingClientRect().toJSON())")      # at one moment: the page may be scrolling
    assert one["y"] == pytest.approx(two["y"], abs=1) and one["x"] + one["width"] < two["x"]          # a long caption moves neither picture
    panes.last.evaluate("node => { node.textContent = node.was; }")
    says(tab, "The untrained twin: Layer 3, mean of the heads: ")
    high = max(one.attention[2].mean(0).max() for one in (result, twin))
    shows(tab, result.attention[2].mean(0).ravel(), high)
    shows(tab, twin.attention[2].mean(0).ravel(), high, ".vd-other")
    expect(tab.locator(".vd-unit")).to_contain_text("and both pictures")
    click_patch(tab, 0, 0, ".vd-other")                                      # the other picture takes part
    says(tab, re.compile("the patch in row 1, column 1 reads.*The untrained twin: .*the patch in row 1, column 1 reads", re.S))
    named(tab, "Rollout").click()
    says(tab, re.compile("Rollout up to layer 3.*The untrained twin: Rollout up to layer 3", re.S))
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
    high = max(now.mean(0).max(), result.attention[2].mean(0).max())
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
        patched.setattr(Models, "explain", lambda _, picture, __, **how: explain(picture, loaded))
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


def cosines(result, token: int, others=None) -> np.ndarray:
    """Of a token's features with every token's of the same or another picture, (16,)."""
    query, tokens = (one.trace.tokens[0].double().numpy() for one in (result, others or result))
    return tokens @ query[token] / np.sqrt((tokens**2).sum(1) * (query[token]**2).sum())


def numeral(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if abs(value) >= 0.005 else "0.00"


def test_a_patchs_similarity_to_all_others_is_drawn_from_minus_one_to_one_and_told(look, result):
    tab = bare(look())
    named(tab, "Similarity").click()
    says(tab, "Similarity to the class token: most alike ")
    click_patch(tab, 0, 4)
    found = cosines(result, 5)
    says(tab, f"Similarity to the patch in row 1, column 5: most alike row {1 + int(np.argsort(found[1:])[-2]) // 5}, ")
    says(tab, f"class token {numeral(found[0])}.")
    shows(tab, (found[1:] + 1) / 2, 1)
    expect(tab.locator(".vd-low")).to_have_text("−1.00")
    expect(tab.locator(".vd-high")).to_have_text("1.00")
    expect(tab.locator(".vd-even")).to_have_attribute("style", "left: 50%;")
    expect(tab.locator(".vd-unit")).to_contain_text("the mark is 0")
    tab.locator(".vd-main").hover(position=spot(tab, 2, 1))
    says(tab, f"Row 3, column 2: similarity {numeral(found[12])} to the patch in row 1, column 5.")
    tab.mouse.move(1, 1)
    tab.get_by_label("Stretch the colours").check()
    low, high = found[1:].min(), found[1:].max()
    shows(tab, (found[1:] - low) / (high - low), 1)
    expect(tab.locator(".vd-low")).to_have_text(numeral(low))
    for control in (".vd-head-chips", ".vd-direction", ".vd-layer", ".vd-actions", ".vd-heads-box"):
        expect(tab.locator(control)).to_be_hidden()
    click_patch(tab, 0, 4)
    says(tab, "Similarity to the class token: ")


def test_keys_and_clicks_stay_with_features_once_there(look, result):
    tab = look()
    named(tab, "Norms").click()
    click_patch(tab, 1, 1)
    says(tab, "Similarity to the patch in row 2, column 2: ")
    tab.locator(".vd-focus").focus()
    for key, text in (("ArrowDown", "Similarity to the patch in row 3, column 2"), ("c", "Similarity to the class token"), ("2", "Layer 3, head 2")):
        tab.keyboard.press(key)
        says(tab, text)
    named(tab, "Norms").click()
    tab.keyboard.press("[")
    says(tab, "Length after layer 2 of 3: ")


def test_patches_are_coloured_by_their_principal_components_and_the_foreground_alone(look, result):
    tab, patches = bare(look()), result.trace.tokens[0, 1:]
    named(tab, "Colours").click()
    for part in features.PARTS:
        tab.locator(".vd-controls").get_by_role("button", name=part, exact=True).click()
        found = features.colours([patches], [result.grid], part)
        rgb, kept = 255 * found.rgb[0].numpy(), found.kept[0].numpy()
        says(tab, f"together {100 * found.explained.sum():.0f}% of how the patches differ.")
        assert np.abs(cell_colours(tab) - np.where(kept[:, None], rgb, 0)).max() <= 1
        if part != "all":
            says(tab, f"{kept.sum()} of 15 patches are taken for {part}; ")
    tab.locator(".vd-main").hover(position=spot(tab, *divmod(int(kept.argmax()), 5)))
    says(tab, re.compile(r"Row \d, column \d: red [\d.]+%, green [\d.]+%, blue [\d.]+% of the way"))
    tab.locator(".vd-main").hover(position=spot(tab, *divmod(int(kept.argmin()), 5)))
    says(tab, "taken for foreground.")
    expect(tab.locator(".vd-scale")).to_be_hidden()
    expect(tab.locator(".vd-colours")).to_be_hidden()
    show(tab, picture_bytes(Image.new("RGB", (50, 30), (120, 120, 120))))    # positions still tell its patches apart
    says(tab, re.compile("Feature colours of the background: .* of 15 patches are taken for background; "))


@pytest.fixture
def norms_of(tiny):
    def lengths(picture) -> np.ndarray:
        with torch.inference_mode():
            return features.norms(tiny.model, explain(picture, tiny).embedded()).numpy()
    return lengths


def test_norms_are_drawn_from_zero_and_told_for_every_layer(look, photo, norms_of):
    tab, lengths = bare(look()), norms_of(photo)
    named(tab, "Norms").click()
    for layer in (3, 1):
        slide(tab, ".vd-layer", layer)
        row = lengths[layer - 1]
        median = float(np.sort(row[1:])[7])
        says(tab, f"Length after layer {layer} of 3: the median patch {median:.1f}, the longest {row[1:].max():.1f} (row {1 + row[1:].argmax() // 5}, column {1 + row[1:].argmax() % 5}); "
                  f"no patch is three times as long, so there are no artifacts. Besides the patches: class token {row[0]:.1f}.")
        shows(tab, row[1:])
        expect(tab.locator(".vd-high")).to_have_text(f"{row[1:].max():.1f}")
    tab.locator(".vd-main").hover(position=spot(tab, 1, 2))
    says(tab, f"Row 2, column 3: length {row[8]:.1f}, {row[8] / median:.1f} times the median patch.")
    expect(tab.locator(".vd-layer-name")).to_have_text("After layer 1 of 3")


def test_a_patch_of_another_picture_is_looked_for_in_the_pinned_one(look, tiny, result):
    tab, picture = bare(look()), coloured("blue", 2, (200, 300))
    named(tab, "Similarity").click()
    named(tab, "Pin this result").click()
    show(tab, picture_bytes(picture))
    tab.locator(".vd-compare").select_option("pinned")
    click_patch(tab, 1, 3)
    now = explain(picture, tiny)
    found, far = cosines(now, 9), cosines(now, 9, result)
    says(tab, re.compile("^Similarity to the patch in row 2, column 4: .*Pinned: .*Similarity to the patch in row 2, column 4 of the first picture: most alike "
                         f"row {1 + far[1:].argmax() // 5}, column {1 + far[1:].argmax() % 5} \\({numeral(far[1:].max())}\\)", re.S))
    shows(tab, (found[1:] + 1) / 2, 1)
    shows(tab, (far[1:] + 1) / 2, 1, ".vd-other")
    tab.locator(".vd-other").hover(position=spot(tab, 2, 2, ".vd-other"))
    says(tab, f"Row 3, column 3: similarity {numeral(far[13])} to the patch in row 2, column 4 of the first picture.")
    tab.mouse.move(1, 1)
    named(tab, "Colours").click()
    says(tab, "of how the patches of both pictures differ. A colour means the same in both.")
    joint = features.colours([one.trace.tokens[0, 1:] for one in (now, result)], [(3, 5), (3, 5)])
    for canvas, rgb in zip((".vd-main", ".vd-other"), joint.rgb, strict=True):
        assert np.abs(cell_colours(tab, canvas) - 255 * rgb.numpy()).max() <= 1


def test_features_of_two_models_are_not_compared_but_each_is_shown_by_itself(look, result):
    tab, twin = bare(look()), result.twin()
    tab.locator(".vd-compare").select_option("twin")
    named(tab, "Similarity").click()
    click_patch(tab, 2, 2)
    says(tab, re.compile("The untrained twin: Similarity to the patch in row 3, column 3: .*Features of two models cannot be compared, so each picture is compared with itself.$", re.S))
    shows(tab, (cosines(twin, 13)[1:] + 1) / 2, 1, ".vd-other")
    named(tab, "Colours").click()
    says(tab, "a colour does not mean the same in both.")
    alone = features.colours([twin.trace.tokens[0, 1:]], [(3, 5)])
    assert np.abs(cell_colours(tab, ".vd-other") - 255 * alone.rgb[0].numpy()).max() <= 1


def test_a_pinned_result_of_another_model_is_found_out_by_asking(look, tiny, result, photo, monkeypatch):
    other = seeded(7)
    with monkeypatch.context() as patched:
        patched.setattr(Models, "explain", lambda _, picture, __, **how: explain(picture, other))
        tab = look()
    named(tab, "Similarity").click()
    named(tab, "Pin this result").click()
    show(tab, picture_bytes(coloured("red", 4, (200, 300))))
    tab.locator(".vd-compare").select_option("pinned")
    says(tab, "Features of two models cannot be compared, so each picture is compared with itself.")
    shows(bare(tab), (cosines(explain(photo, other), 0)[1:] + 1) / 2, 1, ".vd-other")


def test_features_are_no_map_to_test_but_numbers_to_take_home(look, result):
    tab = look()
    named(tab, "Similarity").click()
    tab.get_by_role("tab", name="Believe it or test it").click()
    sheet = tab.locator("#vd-sheet-test")
    expect(sheet).to_contain_text("choose another kind of map to test it")
    expect(named(tab, "Test the map that is shown")).to_be_disabled()
    expect(named(tab, "Rank five kinds of maps")).to_be_enabled()
    named(tab, "Rollout").click()
    expect(sheet).to_contain_text("Map: Rollout up to layer 3")
    expect(named(tab, "Test the map that is shown")).to_be_enabled()


@pytest.fixture
def opened(look, monkeypatch, tmp_path):
    """Opens a page of its own around a model."""
    monkeypatch.setenv("VITDEMO_RUNS", str(tmp_path))
    with ExitStack() as stack:
        yield lambda loaded, **options: look(stack.enter_context(serving(loaded))[0], **options)


def test_a_model_without_a_head_says_so_and_offers_what_it_has(opened, photo):
    loaded = seeded(classes=0, registers=2)
    tab, result = opened(loaded), explain(photo, loaded)
    expect(tab.locator(".vd-verdict")).to_have_text("No classes: this model has no head")
    expect(tab.locator(".vd-limit")).to_contain_text("It describes pictures and names nothing.")
    expect(tab.locator(".vd-seen-text")).to_contain_text("joined by the class token and 2 registers: 18 tokens.")
    assert [button.inner_text() for button in tab.locator(".vd-kinds button").all() if button.is_visible()] == ["Attention", "Mean attention", "Rollout", "Similarity", "Colours", "Norms"]
    expect(named(tab, "Test this map")).to_be_hidden()
    for panel, words in (("Believe it or test it", "neither a test nor a ranking can be made"), ("Layer by layer", "This model has no classes")):
        tab.get_by_role("tab", name=panel).click()
        expect(tab.locator(".vd-sheets")).to_contain_text(words)
    expect(named(tab, "Rank five kinds of maps")).to_be_hidden()
    assert [chip.inner_text() for chip in tab.locator(".vd-token-chips button").all()][:3] == ["class token", "register 1", "register 2"]
    with torch.inference_mode():
        last = features.norms(loaded.model, result.embedded())[2]
    named(tab, "Norms").click()
    says(tab, f"Besides the patches: class token {last[0]:.1f}, register 1 {last[1]:.1f}, register 2 {last[2]:.1f}.")
    named(tab, "Similarity").click()
    named(tab, "register 2").click()
    says(tab, "Similarity to register 2: ")
    shows(bare(tab), (cosines(result, 2)[3:] + 1) / 2, 1)


def test_the_average_patch_is_asked_about_where_patches_are_averaged(opened, photo):
    loaded = seeded(pool="mean", class_token=False)
    tab, patches = bare(opened(loaded)), explain(photo, loaded).trace.tokens[0].numpy()
    named(tab, "Similarity").click()
    says(tab, "Similarity to the average patch: ")
    mean = patches.mean(0)
    shows(tab, (patches @ mean / np.sqrt((patches**2).sum(1) * (mean @ mean)) + 1) / 2, 1)
    named(tab, "Norms").click()
    says(tab, re.compile("no artifacts\\.$|than three times as long: [^.]*\\.$"))


def test_artifacts_are_counted_named_and_marked_on_the_scale(opened):
    loaded = seeded(pool="mean", class_token=False, positions="none")
    with torch.no_grad():
        loaded.model.patch_embed.proj.bias.zero_()
        loaded.model.patch_embed.proj.weight.copy_(200 * loaded.model.patch_embed.proj.weight)
    tab, pixels = opened(loaded), np.full((12, 20, 3), 128, np.uint8)
    show(tab, picture_bytes(Image.fromarray(pixels)))
    named(tab, "Colours").click()
    says(tab, "Feature colours: there is nothing to colour, because these patches are all alike.")
    pixels[4:8, 16:] = 255                                                  # row 2, column 5: the one patch with anything in it
    show(tab, picture_bytes(Image.fromarray(pixels)))
    named(tab, "Norms").click()
    slide(tab, ".vd-layer", 1)
    says(tab, "1 of 15 patches is an artifact, more than three times as long: row 2, column 5.")
    expect(tab.locator(".vd-unit")).to_contain_text("the mark is three times the median patch")
    tab.locator(".vd-main").hover(position={"x": tab.locator(".vd-main").bounding_box()["width"] * 0.9, "y": tab.locator(".vd-main").bounding_box()["height"] * 0.5})
    says(tab, re.compile(r"Row 2, column 5: length [\d.]+, [\d.]+ times the median patch, an artifact\."))


def test_the_kinds_stand_in_three_rows_at_most_on_a_phone_and_two_on_a_desk(look):
    for width, most in ((1440, 2), (390, 3)):
        tab = look(width=width, height=844)
        tops = {round(button.bounding_box()["y"]) for button in tab.locator(".vd-kinds button").all()}
        assert len(tops) <= most and tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


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
    monkeypatch.setattr(explore, "Results", lambda **settings: Results(limit_bytes=1, **settings))
    with serving(tiny) as (url, _):
        tab, other = look(url), look(url)
        click_patch(tab, 1, 1)
        says(tab, "This result is no longer kept: please upload the picture again.")
        named(tab, "Test this map").click()
        expect(tab.locator("#vd-sheet-test")).to_contain_text("please upload the picture again")
        click_patch(other, 1, 1)
        says(other, "the patch in row 2, column 2 reads")


def test_a_hot_corner_is_drawn_and_told_at_its_own_place(look, monkeypatch):
    real = analysis.payload

    def crafted(explanation, **more):
        attention, rest = np.zeros((3, 2, 3, 5), np.float32), np.zeros((3, 2, 1), np.float32)
        attention[2, 0, 0, 4], attention[2, 1, 2, 0], attention[:2, :, 1, 2] = 1, 1, 1
        return real(replace(explanation, attention=attention, prefix_attention=rest), **more)

    monkeypatch.setattr(analysis, "payload", crafted)
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
    tab, asked = look(), []
    tab.on("request", lambda request: asked.append(request.post_data) if "component_server" in request.url and '"key"' in (request.post_data or "") else None)                # the model bar's have none
    for change in (lambda: slide(tab, ".vd-layer", 1), named(tab, "min").click, named(tab, "Mean attention").click, tab.locator(".vd-wall").click, tab.locator(".vd-main").hover):
        change()
    assert asked == []
    click_patch(tab, 0, 0)                                                   # while another token's rows are asked for
    says(tab, "the patch in row 1, column 1 reads")
    assert len(asked) == 1

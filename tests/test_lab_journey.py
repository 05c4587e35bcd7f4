"""One journey through the whole training lab, on the page as people get it: from three seconds of training to a model that is loaded
again."""

import re

from conftest import drawn
from playwright.sync_api import Page, expect


def at_the_lab(tab: Page) -> Page:
    tab.get_by_role("tab", name="Train").click()
    return tab


def test_a_model_is_trained_watched_questioned_opened_beside_the_box_taken_home_loaded_and_deleted(visit, tmp_path):
    tab = at_the_lab(visit())
    tab.locator(".vl-amount").fill("0.05")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-state")).to_have_text("Finished", timeout=120_000)
    expect(tab.locator(".vl-figure-right")).to_contain_text("of 30 test pictures right")

    film = tab.locator(".vl-film")                                          # the film: from the random weights to the end
    assert tab.locator(".vl-film-main").bounding_box()["y"] < 700           # it begins on the first screen of a projector
    ended = drawn(tab, ".vl-film-main")
    film.get_by_role("button", name="First look").click()
    expect(tab.locator(".vl-when")).to_contain_text("Start, random weights")
    expect(tab.locator(".vl-film-answer .vl-verdict")).to_contain_text("No answer yet")
    assert drawn(tab, ".vl-film-main") != ended
    film.get_by_role("button", name="Play").click()
    expect(tab.locator(".vl-when")).to_contain_text("End")
    expect(film.get_by_role("button", name="Play")).to_be_visible()

    cell = tab.get_by_role("gridcell").first                                # what it makes of one class, by the keyboard alone
    cell.focus()
    cell.press("Enter")
    expect(tab.locator(".vl-cell-head h4")).to_contain_text("blue named rightly")
    if "No pictures" not in (tab.locator(".vl-cell-pane [role=status]").text_content() or ""):
        expect(tab.locator(".vl-wrong-pictures canvas").first).to_be_visible()
    tab.get_by_role("region", name="Pictures of one cell").get_by_role("button", name="Close").press("Enter")
    expect(cell).to_be_focused()

    tab.get_by_role("button", name="Open this model in Explore").click()    # the same picture through it and through the model in the box
    expect(tab.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    expect(tab.locator("#vd-viewer .vd-other")).to_be_visible()
    expect(tab.locator("#vd-viewer .vd-pane figcaption")).to_have_text([re.compile(r"^your model: \w+ [\d.]+%$"),
                                                                        re.compile(r"^the model in the box: \w+ [\d.]+%$")])
    at_the_lab(tab)

    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Download the model").click()
    path = tmp_path / saved.value.suggested_filename
    saved.value.save_as(path)
    tab.locator("#vl-checkpoint").set_input_files(path)
    runs = tab.locator(".vl-run-item")
    expect(runs).to_have_count(2)
    expect(runs.first).to_contain_text("loaded from a file")

    way = tab.get_by_role("navigation", name="Parts of this page")
    way.get_by_role("button", name="Your runs").click()
    expect(way).to_be_in_viewport()                                         # it stays in sight, however far down
    for left in (1, 0):
        runs.first.get_by_role("button", name=re.compile("^More")).click()
        runs.first.get_by_role("button", name="Delete …").click()
        runs.first.get_by_role("button", name="Delete it").click()
        expect(runs).to_have_count(left)
    expect(tab.get_by_role("button", name="Start training")).to_be_visible()
    assert tab.complaints == []

"""The training lab's film and mistakes in a real Chromium, on a page whose server is played by the test: what is drawn, said and asked."""

import base64
import json
import re

import numpy as np
import pytest
from conftest import COLOURS, cell_colours, coloured, colours_of, drawn, slide, watched
from matplotlib import colormaps
from PIL import Image
from playwright.sync_api import Page, expect

from vitdemo import front
from vitdemo.payload import data_url

ID, L, H, T, LOOKS = "a" * 32, 3, 2, 16, 4
NAMES = list(COLOURS)
CONFUSION = [[[9, 1, 0], [2, 5, 3], [0, 7, 3]], [[8, 1, 1], [1, 8, 1], [0, 2, 8]]]        # at the looks before the last, and at the last
FAKE = """
window.asked = []; window.trigger = () => {};
const clip = (list, from, to) => structuredClone(list.slice(from, to));
window.ask = async (r) => {
  asked.push(r);
  const w = window.world;
  if (r.question === "hello") return { training: true, off: "", max_minutes: 60, threads: 1, machine: "", public: false, presets: [],
    sizes: [], data: [], settings: [], races: [], recorded: w.recorded };
  if (r.question === "follow") return { status: { over: w.over, state: w.over ? "finished" : "running", progress: 1, seconds: 9, head: "" },
    rows: clip(w.rows, r.log), log: w.rows.length,
    frames: clip(w.frames, r.film, w.upto), film: w.upto, scene: r.film ? undefined : structuredClone(w.scene),
    plan: { title: r.run, settings: [] }, can: {}, skipped: [], test: w.over ? w.test : null };
  if (r.question === "cell" && !w.broken) return w.cell;
  if (r.question === "export" && !w.broken) return { name: "film." + r.kind, type: "image/" + r.kind, data: btoa("film") };
  if (r.question === "list") return { runs: [], gone: [] };
  return { error: "That cannot be had: try later." };
};
"""


def reads(look: int, subject: int) -> np.ndarray:
    """What every layer and head reads at a look, (L, H, T): even at first, then ever more one-sided."""
    noise = np.random.default_rng(10 * look + subject).random((L, H, T))
    weights = np.exp(1.6 * look * noise)
    return weights / weights.sum(-1, keepdims=True)


def packed(weights: np.ndarray) -> dict:
    highs = weights.max(-1, keepdims=True)
    return {"shape": list(weights.shape), "highs": highs.ravel().tolist(),
            "data": base64.b64encode(np.round(255 * weights / highs).astype(np.uint8).tobytes()).decode()}


def report(confusion: list) -> dict:
    return {"confusion": confusion, "per_class": [row[i] / sum(row) for i, row in enumerate(confusion)], "ece": 0.071,
            "calibration": [[0, None, None]] * 3
            + [[10, 0.35, 0.5], [0, None, None], [12, 0.55, 0.5], [0, None, None], [0, None, None], [8, 0.85, 0.75], [0, None, None]]}


def frame(look: int) -> dict:
    confusion = CONFUSION[look == LOOKS - 1]
    accuracy = sum(row[i] for i, row in enumerate(confusion)) / 30
    shares = [1 / 3] * 3 if look == 0 else [0.2 + 0.1 * look, 0.3, 0.5 - 0.1 * look]
    top = sorted(enumerate(shares), key=lambda pair: -pair[1])
    return {"step": 20 * look, "epoch": 0.5 * look, "seconds": 3.0 * look, "progress": look / (LOOKS - 1),
            "loss": 2 - 0.4 * look if look else None, "accuracy": accuracy, "standard_error": 0.08, "n": 30,
            "subjects": [{"top": [list(pair) for pair in top], "reads": packed(reads(look, i))} for i in range(2)], "watched": [],
            "filters": None, "positions": None, "report": report(confusion)}


@pytest.fixture(scope="module")
def world(photo) -> dict:
    """A finished run of four looks at the photo, of which rows 10 to 190 of 200 are seen, and at a green square."""
    square = coloured("green", 1)
    subjects = [{"name": "four quarters", "picture": data_url(Image.open(photo), "JPEG"), "height": 200, "width": 300,
                 "crop": [10, 0, 190, 300], "seen": data_url(square, "PNG"), "truth": 0},
                {"name": "square", "picture": data_url(square, "PNG"), "height": 32, "width": 32, "crop": [0, 0, 32, 32],
                 "seen": data_url(square, "PNG"), "truth": None}]
    scene = {"classes": NAMES, "layers": L, "heads": H, "rows": 3, "cols": 5, "prefix": 1, "prefix_names": ["class token"],
             "reader": "the class token", "patch": [4, 4], "subjects": subjects, "watched": []}
    tested = report([[20, 0, 0], [0, 15, 5], [0, 5, 15]])
    tested |= {"accuracy": 50 / 60, "standard_error": 0.048, "n": 60, "classes": NAMES, "per_class": {}}
    cell = {"count": 7, "shown": 2, "layer": 3, "sentence": "Two of them are shown.", "pictures": [
        {"picture": data_url(square, "PNG"), "confidence": confidence,
         "map": {"rows": 2, "cols": 4, "high": high,
                 "data": base64.b64encode(bytes([255, 0, 0, 0, 0, 0, 0, 128])).decode()}}
        for confidence, high in ((0.91, 0.4), (0.62, 0.2))]}
    frames = [frame(look) for look in range(LOOKS)]
    rows = [{"step": step, "images": step, "epoch": step / 40, "progress": step / 60, "seconds": step * 0.15, "loss": 2 - step / 60,
             "accuracy": None} for step in range(1, 61)]
    return {"scene": scene, "frames": frames, "rows": rows, "test": tested, "cell": cell, "over": True, "upto": LOOKS, "recorded": True,
            "broken": False}


@pytest.fixture
def lab(browser, world):
    """Opens a page with the lab's core, the film and the mistakes alone; `changes` to the world the server tells of. Nothing may
    complain."""
    tabs = []

    def open_lab(width: int = 1440, shown: str | None = ID, **changes) -> Page:
        tab = watched(browser.new_context(viewport={"width": width, "height": 900}))
        tabs.append(tab)
        tab.route("http://lab.test/",
                  lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=page({**world, **changes}, shown)))
        tab.goto("http://lab.test/")
        return tab

    yield open_lab
    for tab in tabs:
        assert [text for text in tab.complaints if "favicon" not in text and "404" not in text and "ERR_" not in text] == []
        assert {url for url in tab.asked if not url.startswith(("http://lab.test/", "data:", "blob:"))} == set()
        tab.context.close()


def page(world: dict, shown: str | None) -> str:
    own = [path for path in sorted((front.FOLDER / front.LAB).glob("*.js"))
           if path.name[:2] in ("00", "05", "40", "41", "42", "50", "51", "52", "80", "85", "99")]
    script = "\n".join(path.read_text(encoding="utf-8") for path in [*sorted((front.FOLDER / "shared").glob("*.js")), *own])
    tables = {name: colormaps[name](np.linspace(0, 1, 256), bytes=True)[:, :3].tolist() for name in front.COLOURS}
    script = script.replace('"COLOURS"', json.dumps(tables)).replace('"SAID"', json.dumps(front.words_of(front.LAB)))
    stored = json.dumps([shown] if shown else [])
    return f"""<!doctype html><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>:root {{ {front.LIGHT} --body-text-color: #111; --body-text-color-subdued: #555; --border-color-primary: #ddd;
--background-fill-primary: #fff; --background-fill-secondary: #f4f4f4; }} #e {{ {front.style(front.LAB)} }}</style>
<div id="e">{front.page(front.LAB)}</div>
<script>localStorage.setItem("vitdemo-runs", {json.dumps(stored)}); localStorage.setItem("vitdemo-shown", {json.dumps(shown or "")});
window.world = {json.dumps(world)}; {FAKE}
(function (element, props, server, watch, trigger, upload) {{ {script}
window.lab = lab; window.lookNow = lookNow; }})(document.getElementById("e"), {{ value: null }}, {{ ask: window.ask }},
() => {{}}, () => {{}}, () => {{}});</script>"""


def at(tab: Page, look: int) -> None:
    expect(track(tab)).to_have_attribute("aria-valuenow", str(look + 1))


def track(tab: Page):
    return tab.get_by_role("slider", name="Look of the film")


def bare(tab: Page) -> Page:
    """Only the map's colours over the crop, to be read from the canvas."""
    slide(tab, ".vl-film [aria-label=Opacity]", 100)
    return tab


def shows(tab: Page, vector: np.ndarray, high: float) -> None:
    assert np.abs(cell_colours(tab, ".vl-film-main") - colours_of(vector[1:], high)).max() <= 4


def test_every_look_is_drawn_on_one_scale_over_the_whole_film(lab):
    tab, all_looks = bare(lab()), np.stack([reads(look, 0) for look in range(LOOKS)])
    at(tab, LOOKS - 1)
    for key, layer in (("Home", 2), ("ArrowRight", 2), ("End", 2), ("End", 0)):
        if layer != 2:
            slide(tab, ".vl-film [aria-label=Layer]", layer + 1)
        track(tab).press(key)
        look = int(track(tab).get_attribute("aria-valuenow")) - 1
        high = max(all_looks[:, layer].mean(1)[:, 1:].max(), 3 / T)
        shows(tab, all_looks[look, layer].mean(0), high)
        expect(tab.locator(".vl-film-room .vl-bar")).to_contain_text(f"{high:.3f}")
        expect(tab.locator(".vl-film-room .vl-bar")).to_contain_text("over all looks")
    tab.get_by_role("button", name="head 2", exact=True).click()
    shows(tab, all_looks[3, 0, 1], max(all_looks[:, 0, 1, 1:].max(), 3 / T))
    tab.get_by_label("Own scale for every look").check()
    shows(tab, all_looks[3, 0, 1], all_looks[3, 0, 1, 1:].max())
    expect(tab.locator(".vl-film-room .vl-bar")).to_contain_text("scale of this look alone")


def test_the_film_says_the_answer_the_step_and_what_is_not_seen(lab):
    tab = lab()
    at(tab, LOOKS - 1)
    expect(tab.locator(".vl-verdict")).to_have_text("blue 50%")
    expect(tab.locator(".vl-film-answer")).to_contain_text("True label: blue, so this is right.")
    expect(tab.locator(".vl-when")).to_contain_text("End: step 60, 0:09 of training")
    expect(tab.get_by_text("The pale part is cropped away")).to_be_visible()
    corner = tab.locator(".vl-film-main").evaluate("c => Array.from(c.getContext('2d').getImageData(4, 2, 1, 1).data).slice(0, 3)")
    assert min(corner) > 180                                                # a veil over (220, 40, 40)
    track(tab).press("Home")
    expect(tab.locator(".vl-verdict")).to_have_text("No answer yet: every class 33%")
    expect(tab.locator(".vl-when")).to_contain_text("Start, random weights")
    tab.get_by_role("button", name=re.compile("^square")).click()
    expect(tab.locator(".vl-film-answer")).to_contain_text("must name one of its 3 classes")
    expect(tab.get_by_text("The pale part is cropped away")).to_be_hidden()


def test_a_chosen_picture_that_is_called_like_a_class_is_of_that_class(lab, world):
    first, second = world["scene"]["subjects"]
    tab = lab(scene={**world["scene"], "subjects": [first, {**second, "name": NAMES[2].upper()}]})
    at(tab, LOOKS - 1)
    tab.get_by_role("button", name=re.compile("^" + NAMES[2].upper())).click()
    expect(tab.locator(".vl-film-answer")).to_contain_text(f"The picture is called {NAMES[2]}, so this is wrong.")


def test_words_tell_what_changed_and_a_chip_shows_the_head_that_moved_most(lab):
    tab, first, last = lab(), reads(0, 0), reads(LOOKS - 1, 0)
    moved = np.abs(first - last).sum(-1) / 2
    layer, head = np.unravel_index(moved.argmax(), moved.shape)
    told = tab.locator(".vl-told")
    expect(told).to_contain_text("at the start every class alike (33%), at the end blue 50%; it changed its answer once in between.")
    expect(told).to_contain_text("read from about 15 of 15 patches")
    map_ = last[2].mean(0)[1:] / last[2].mean(0)[1:].sum()
    expect(told).to_contain_text(f"at the end from about {round(np.exp(-(map_ * np.log(map_)).sum()))} of 15 patches")
    tab.get_by_role("button", name=re.compile(f"^layer {layer + 1}, head {head + 1}")).click()
    assert tab.locator(".vl-film [aria-label=Layer]").input_value() == str(layer + 1)
    expect(tab.get_by_role("button", name=f"head {head + 1}", exact=True)).to_have_attribute("aria-pressed", "true")


def test_keys_and_pointer_move_through_the_film_and_play_it(lab):
    tab = bare(lab())
    at(tab, 3)
    track(tab).focus()
    for key, look in (("ArrowLeft", 2), ("ArrowLeft", 1), ("ArrowRight", 2), ("Home", 0), ("ArrowLeft", 0), ("End", 3), ("ArrowRight", 3)):
        tab.keyboard.press(key)
        at(tab, look)
    tab.keyboard.press("2")
    expect(tab.get_by_role("button", name="head 2", exact=True)).to_have_attribute("aria-pressed", "true")
    tab.keyboard.press("[")
    tab.keyboard.press("m")
    expect(tab.get_by_text("Layer 2 of 3")).to_be_visible()
    expect(tab.locator(".vl-time [aria-live]")).to_contain_text("Layer 2, mean of the heads reads from about")
    box = track(tab).bounding_box()
    tab.mouse.click(box["x"] + 10 + (box["width"] - 20) / 3, box["y"] + 30)
    at(tab, 1)
    tab.get_by_label("Speed").select_option("12")
    track(tab).press("End")
    # it plays faster than anybody can ask where it is
    track(tab).evaluate("""track => { window.played = [];
        new MutationObserver(() => played.push(track.ariaValueNow)).observe(track, { attributeFilter: ["aria-valuenow"] }); }""")
    track(tab).press(" ")                                                   # from the end it starts anew
    tab.wait_for_function("played.at(-1) === '4'")
    assert tab.evaluate("played.filter((look, i) => look !== played[i - 1])") == ["1", "2", "3", "4"]
    expect(tab.get_by_role("button", name="Play")).to_be_visible()
    wall = tab.locator(".vl-wall").bounding_box()
    tab.locator(".vl-wall").click(position={"x": wall["width"] * 0.75, "y": wall["height"] * 0.9})
    shows(tab, reads(3, 0)[2, 1], max(reads(3, 0)[2, :, 1:].max(), 3 / T))


def test_a_running_film_follows_the_run_unless_somebody_looks_back(lab):
    tab = lab(over=False, upto=2)
    at(tab, 1)
    expect(tab.locator(".vl-when")).to_contain_text("Now: step 20")
    more = "upto => { world.upto = upto; lookNow(); }"
    tab.evaluate(more, 3)
    at(tab, 2)
    track(tab).press("ArrowLeft")
    tab.evaluate(more, 4)
    expect(track(tab)).to_have_attribute("aria-valuemax", "4")
    at(tab, 1)
    tab.get_by_role("button", name="Back to now").click()
    at(tab, 3)
    expect(tab.get_by_role("button", name="Back to now")).to_be_hidden()


def test_the_film_is_saved_as_it_is_shown(lab):
    tab = lab()
    at(tab, 3)
    tab.get_by_role("button", name=re.compile("^square")).click()
    tab.get_by_role("button", name="head 1", exact=True).click()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save as GIF").click()
    assert download.value.suggested_filename == "film.gif" and open(download.value.path(), "rb").read() == b"film"
    asked = tab.evaluate("asked.find((one) => one.question === 'export')")
    assert asked == {"question": "export", "run": ID, "kind": "gif", "subject": 1, "layer": 2, "head": 0, "seconds": 0.5}
    tab.evaluate("world.broken = true")
    tab.get_by_role("button", name="Save as WebP").click()
    expect(tab.get_by_text("That cannot be had: try later.")).to_be_visible()
    expect(tab.get_by_role("button", name="Save as WebP")).to_be_enabled()


def test_a_recorded_run_is_one_click_away(lab):
    tab = lab(shown=None)
    tab.get_by_role("button", name="Watch a recorded run").click()
    at(tab, 3)
    assert tab.evaluate("lab.id") == "recorded"
    expect(tab.get_by_role("button", name="Watch a recorded run")).to_be_hidden()
    expect(lab(shown=None, recorded=False).get_by_role("button", name="Watch a recorded run")).to_be_hidden()


def test_a_network_without_attention_has_a_film_of_its_answers(lab, world):
    frames = [{**one, "subjects": [{**seen, "reads": None} for seen in one["subjects"]]} for one in world["frames"]]
    tab = lab(frames=frames, scene={**world["scene"], "layers": 0, "heads": 0, "prefix": 0, "prefix_names": [], "reader": ""})
    expect(tab.get_by_text("This network has no attention")).to_be_visible()
    for selector in (".vl-wall", ".vl-film-room .vl-bar", ".vl-film [aria-label=Layer]", ".vl-export"):
        expect(tab.locator(selector)).to_be_hidden()
    track(tab).press("ArrowLeft")
    expect(tab.locator(".vl-verdict")).to_have_text("blue 40%")


def test_accuracy_comes_with_its_error_and_classes_with_theirs(lab):
    tab = lab()
    expect(tab.locator(".vl-big")).to_have_text("80.0% ± 8.0 right")
    expect(tab.locator(".vl-share")).to_contain_text("6 of 30 validation pictures were named wrongly")
    expect(tab.locator(".vl-share")).to_contain_text("Guessing would be right 33% of the time")
    assert tab.locator(".vl-bars li").all_inner_texts()[0].split("\n")[:2] == ["blue", "80% ± 13, n = 10"]
    track(tab).press("Home")                                                # the mistakes follow the film
    expect(tab.locator(".vl-bar-number")).to_have_text(["90% ± 9, n = 10", "50% ± 16, n = 10", "30% ± 14, n = 10"])
    tab.get_by_label("Worst first").check()
    assert tab.locator(".vl-bar-name").all_inner_texts() == ["red", "green", "blue"]


def test_the_matrix_is_walked_by_keys_and_opens_the_pictures_of_a_cell(lab):
    tab = lab()
    cells = tab.get_by_role("gridcell")
    expect(cells).to_have_count(9)
    assert [text.split()[0] for text in cells.all_inner_texts()] == [str(count) for row in CONFUSION[1] for count in row]
    expect(cells.nth(7)).to_have_attribute("aria-label", "red taken for green: 2 of 10 (20%)")
    colour = "c => getComputedStyle(c).backgroundColor"
    assert cells.nth(1).evaluate(colour) != cells.nth(7).evaluate(colour)
    cells.first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    expect(cells.nth(7)).to_be_focused()
    expect(tab.locator(".vl-matrix-readout")).to_have_text("red taken for green: 2 of 10 (20%).")
    assert tab.locator("td[role=gridcell][tabindex='0']").count() == 1
    tab.keyboard.press("Enter")
    pictures = tab.locator(".vl-wrong-pictures figure")
    expect(pictures).to_have_count(2)
    assert tab.evaluate("asked.find((one) => one.question === 'cell')") == {"question": "cell", "run": ID, "part": "validation",
                                                                            "truth": 2, "answer": 1}
    assert pictures.all_inner_texts() == ["91% sure", "62% sure"]
    expect(tab.locator(".vl-cell-pane .vl-bar")).to_contain_text("0.400")
    corner = "canvas => Array.from(canvas.getContext('2d').getImageData(8, 8, 1, 1).data).slice(0, 3)"
    first, second = (pictures.nth(i).locator("canvas").evaluate(corner) for i in range(2))
    assert first[0] > second[0] + 20                                        # on one scale the second map is half as bright
    with_maps = drawn(tab, ".vl-wrong-pictures canvas")
    tab.get_by_label("Show what it reads").uncheck()
    assert drawn(tab, ".vl-wrong-pictures canvas") != with_maps
    tab.get_by_role("button", name="green taken for blue: 1").click()
    tab.wait_for_function("asked.filter((one) => one.question === 'cell').at(-1).answer === 0")
    tab.evaluate("world.broken = true")
    cells.nth(1).click()
    expect(tab.locator(".vl-cell-pane .vl-trouble")).to_have_text("That cannot be had: try later.")
    tab.locator(".vl-cell-pane").get_by_role("button", name="Close").click()
    expect(tab.locator(".vl-cell-pane")).to_be_hidden()
    expect(cells.nth(1)).to_be_focused()                                    # keys go on where they were


def test_the_test_part_stays_closed_until_the_run_is_over(lab):
    tab = lab(over=False)
    button = tab.get_by_role("button", name="Test, once at the end")
    expect(tab.locator(".vl-big")).to_contain_text("80.0%")
    expect(button).to_be_disabled()
    expect(tab.get_by_text("The test part stays closed until the run is over")).to_be_visible()
    tab.evaluate("world.over = true; lookNow()")
    button.click()
    expect(tab.locator(".vl-big")).to_have_text("83.3% ± 4.8 right")
    expect(tab.get_by_role("gridcell").nth(5)).to_have_attribute("aria-label", "green taken for red: 5 of 20 (25%)")
    tab.get_by_role("gridcell").nth(5).click()
    tab.wait_for_function("asked.some((one) => one.question === 'cell' && one.part === 'test')")
    expect(lab(test=None).get_by_text("The test part was not looked at")).to_be_visible()


def test_the_reliability_diagram_has_its_counts_and_the_calibration_error(lab):
    tab = lab()
    pane = tab.locator(".vl-reliability-pane")
    expect(pane).to_contain_text("On average it is 56% sure and 80% right: it is better than it believes. "
                                 "Expected calibration error (ECE): 7.1 percentage points.")
    assert tab.locator(".vl-rel-number").all_text_contents() == ["0", "0", "0", "10", "0", "12", "0", "0", "8", "0"]
    bars = [float(bar.get_attribute("height")) for bar in tab.locator(".vl-rel-bar").all()]
    assert len(bars) == 3 and bars[2] / bars[0] == pytest.approx(1.5)
    pane.get_by_text("The same in numbers").click()
    expect(pane.get_by_role("row").nth(9)).to_have_text(re.compile("80 to 90%.*8.*85%.*75%"))


def many(world: dict, K: int) -> dict:
    """The world with K classes."""
    confusion = [[5 if i == j else 3 if j == i + 1 else 0 for j in range(K)] for i in range(K)]
    frames = [{**one, "report": report(confusion)} for one in world["frames"]]
    return {"frames": frames, "scene": {**world["scene"], "classes": [f"kind {i}" for i in range(K)]}, "test": None}


def test_many_classes_make_a_small_matrix_that_keys_can_walk(lab, world):
    tab = lab(**many(world, 40))
    small = tab.locator(".vl-small-box")
    small.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        tab.keyboard.press(key)
    expect(tab.locator(".vl-matrix-readout")).to_have_text("kind 2 taken for kind 3: 3 of 8 (38%).")
    tab.keyboard.press("Enter")
    tab.wait_for_function("asked.some((one) => one.question === 'cell' && one.truth === 2 && one.answer === 3)")
    expect(tab.locator(".vl-bars li")).to_have_count(40)
    assert lab(**many(world, 20)).get_by_role("gridcell").count() == 400
    phone = lab(width=390, **many(world, 20))                               # twenty columns leave no room for numbers on a phone
    expect(phone.locator(".vl-small-box")).to_be_visible()


def test_a_phone_sees_all_of_it_without_scrolling_sideways(lab):
    tab = lab(width=390)
    tab.get_by_role("button", name="green taken for blue: 1").click()
    expect(tab.locator(".vl-wrong-pictures figure")).to_have_count(2)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    low = [(button.inner_text(), box["height"]) for button in tab.locator(".vl-under button").all() if (box := button.bounding_box())
           and box["height"] < 36]
    assert low == []
    assert track(tab).bounding_box()["y"] < tab.locator(".vl-wall").bounding_box()["y"]      # the scrubber stands under the picture


def test_names_are_text_and_nothing_else(lab, world):
    nasty = '<img src=x onerror="document.body.dataset.hit=1">'
    scene = {**world["scene"], "classes": [nasty, "${alert(1)}", "c" * 200],
             "subjects": [{**one, "name": nasty} for one in world["scene"]["subjects"]]}
    tab = lab(scene=scene, cell={**world["cell"], "sentence": nasty})
    tab.get_by_role("gridcell").nth(1).click()
    expect(tab.locator(".vl-cell-pane")).to_contain_text(nasty)
    expect(tab.locator(".vl-verdict")).to_contain_text(nasty)
    assert tab.evaluate("document.body.dataset.hit") is None and tab.locator(".vl img").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1440

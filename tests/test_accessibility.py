"""Everybody can read and use the page: axe-core finds nothing in any state of any tab, in both modes, on a desk and on a phone; nothing is
too small for a thumb, too wide for a phone, or without words."""

import json
from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from conftest import CAMERA, clear, coloured, drawn, driving, picture_bytes, serving, upload, watched
from playwright.sync_api import Page, expect

from vitdemo.ui.offers import Measurement, Offers

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "rules": {"target-size": {"enabled": True}},
         "resultTypes": ["violations"], "preload": False}
RUNS = ["a" * 32, "b" * 32]

# What of a page no thumb can hit (44 x 44 CSS pixels), what has no words, and how far it can be scrolled sideways.
CHECK = """(narrow) => {
  const seen = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !node.closest("[inert], [aria-hidden=true]");
  const told = (node) => node.tagName.toLowerCase() + "." + String(node.className.baseVal ?? node.className).trim().split(/\\s+/).join(".") + " " +
    (node.getAttribute("aria-label") ?? node.textContent ?? "").trim().slice(0, 40);
  const out = [];
  const targets = "button, select, summary, a[href], [role=button], [role=tab], [role=slider], [role=gridcell], [tabindex='0'], input, textarea";
  for (const node of document.querySelectorAll(targets)) {
    if (!seen(node) || node.disabled || !narrow) continue;
    let box = node.getBoundingClientRect();
    if (box.width < 3 || getComputedStyle(node).clipPath !== "none") continue;              // a file input behind its label
    if (node.matches("[type=checkbox], [type=radio], [type=text]") && node.closest("label")) box = node.closest("label").getBoundingClientRect();
    if (node.matches("a") && node.closest("p, li")) continue;               // a link in a sentence, as WCAG has it
    if (node.closest("[data-small-targets]")) continue;                     // there is another way to the same, as WCAG has it
    if (box.width < 43.5 || box.height < 43.5) out.push("small: " + told(node) + " " + Math.round(box.width) + "x" + Math.round(box.height));
  }
  for (const node of document.querySelectorAll("canvas, img, svg[role=img], video")) {
    if (!seen(node)) continue;
    const words = node.getAttribute("aria-label") ?? node.getAttribute("alt");
    const spoken = words?.trim() || words === "" && node.closest("button, figure, a") || node.closest("button[aria-label], [role=slider]");
    if (!spoken) out.push("no words: " + told(node));
    if (/^Thumbnail \\d/.test(node.closest("button")?.getAttribute("aria-label") ?? "")) out.push("no name: " + told(node.closest("button")));
  }
  const rolls = (node) => node && (/auto|scroll/.test(getComputedStyle(node).overflowX) || rolls(node.parentElement));
  for (const node of document.querySelectorAll(".gradio-container *")) {    // the page clips what is too wide, so its width does not tell
    const { right, width } = node.getBoundingClientRect();
    if (width > 1 && right > window.innerWidth + 1 && seen(node) && !rolls(node)) out.push("cut off: " + told(node) + " at " + Math.round(right));
  }
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  if (wide > 0) out.push("sideways: " + wide + " px");
  return out;
}"""


@pytest.fixture(scope="module")
def browser(chromium):
    with driving(chromium, *CAMERA) as engine:
        yield engine


@pytest.fixture(scope="module")
def served(tiny, colour_zip, tmp_path_factory):
    """The address of a page that trains nothing and times nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITDEMO_DATA", str(colour_zip.parent))
        patch.setenv("VITDEMO_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setattr(Offers, "pace", lambda self, order, **_: Measurement(500.0, 1.0, 1.0))
        with serving(tiny) as (url, _):
            yield url


class World:
    """What the server is said to answer about runs: none of these states needs a training."""

    def __init__(self):
        self.measuring, self.state, self.race_over = False, "", False

    def answer(self, asked: dict, real: dict) -> dict:
        question = asked.get("question")
        if question == "offer" and self.measuring and "preset" in real:
            return {**real, "measuring": True, "sentence": None}
        if question == "follow" and self.state and "status" in real:
            output = ["epoch 1", "RuntimeError: out of memory"] if self.state == "failed" else []
            changes = {"state": self.state, "over": self.state == "failed", "seconds_left": 95.0, "progress": 0.4, "output": output}
            return {**real, "status": {**real["status"], **changes}, "test": None}
        if question == "list":
            known = [run for run in RUNS if run in asked.get("mine", [])]
            return {"runs": [entry(run, i) for i, run in enumerate(known)], "gone": []}
        if question == "curves":
            return {"runs": {run: curves(i) for i, run in enumerate(asked["runs"])}}
        if question == "race":
            started = {"race": "c" * 32, "runs": [{"run": run, "side": side, "seed": 1} for run, side in zip(RUNS, "ab")]}
            return {"seconds": 130.0, "sentence": "Takes about 2 minutes in all."} if asked.get("dry") else started
        if question == "standing":
            rows = [{"run": run, "side": side, "seed": 1, "state": "finished" if self.race_over else "running", "progress": 0.5,
                     "accuracy": 0.41 + 0.1 * i, "standard_error": 0.01, "n": 2500} for i, (run, side) in enumerate(zip(RUNS, "ab"))]
            verdict = {"sentence": "B did better than A, by more than chance.", "winner": "b"} if self.race_over else None
            return {"rows": rows, "done": self.race_over, "verdict": verdict}
        return real

    def serve(self, route) -> None:
        body = route.request.post_data_json or {}
        asked = (body.get("data") or {})
        response = route.fetch(max_retries=3)                               # a quiet connection may be closed just as it is used again
        if not isinstance(asked, dict) or not response.ok:
            return route.fulfill(response=response)
        return route.fulfill(response=response, json=self.answer(asked, response.json()))


def entry(run: str, i: int) -> dict:
    return {"id": run, "title": ("patch 4", "patch 8")[i], "state": "finished", "created": 1_700_000_000, "seconds": 60.0, "progress": 1.0,
            "accuracy": 0.41 + 0.1 * i, "test": None, "preset": "class", "model": "tiny", "data": "cifar10", "race": None, "imported": False,
            "can": {"open": True, "download": True, "resume": True}, "settings": {"patch": [4 + 4 * i] * 2, "lr": 0.001}, "flatters": ""}


def curves(i: int) -> dict:
    return {"loss": [[s, s, 2.3 - 0.02 * s + 0.2 * i] for s in range(1, 60)],
            "accuracy": [[s, s, 0.1 + 0.006 * s + 0.05 * i] for s in range(0, 60, 20)]}


def leave(tab: Page) -> None:
    """Close the tab, whatever it was still asking for."""
    tab.unroute_all(behavior="ignoreErrors")
    tab.context.close()


def choose_kind(tab: Page, name: str) -> None:
    tab.locator(f".vd-kinds button[data-kind='{name}']").click()


def explore_sheets(tab: Page) -> Iterator[str]:
    """The sheets under the picture, and the twin beside it."""
    sheet = lambda title: tab.locator(".vd-tabs").get_by_role("tab", name=title).click()
    tab.locator(".vd-try").click()
    expect(tab.locator(".vd-judgement")).to_be_visible()
    yield "test"
    tab.get_by_role("button", name="Rank five kinds").click()
    expect(tab.locator(".vd-sheet table tbody tr")).to_have_count(5)
    yield "rank"
    sheet("Layer by layer")
    yield "lens"
    sheet("Head facts")
    expect(tab.locator(".vd-dot").first).to_be_visible()
    yield "facts"
    sheet("Patch surgery")
    tab.locator(".vd-main").click()
    tab.get_by_role("button", name="Hide the chosen").click()
    expect(tab.locator(".vd-second")).to_be_visible()
    yield "surgery"
    sheet("Filters and positions")
    expect(tab.locator(".vd-filters img").first).to_be_visible()
    yield "filters"
    sheet("Take it home")
    tab.get_by_role("button", name="Pin this result").click()
    tab.locator(".vd-compare").select_option("twin")
    expect(tab.locator(".vd-second figcaption")).to_contain_text("twin")
    yield "take and twin"


def explore_kinds(tab: Page) -> Iterator[str]:
    """The kinds of maps, two pictures in turn."""
    tab.locator(".vd-flicker").check()
    choose_kind(tab, "relevance")
    tab.locator(".vd-klass-two").select_option(index=2)
    yield "flicker and relevance"
    choose_kind(tab, "rollout")
    yield "rollout"
    choose_kind(tab, "similarity")
    yield "similarity"
    choose_kind(tab, "colours")
    yield "colours"
    choose_kind(tab, "norms")
    yield "norms"


def explore(tab: Page) -> Iterator[str]:
    """The Explore tab's states, by name, one after the other."""
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    thumbnails = tab.locator("#vd-examples button.thumbnail-item")
    expect(thumbnails).not_to_have_count(0)                                 # they come on their own, and are named afterwards
    expect(tab.locator("#vd-examples button.thumbnail-item[aria-label^='Example']")).to_have_count(thumbnails.count())
    for part in ("vd-about-kind", "vd-names", "vm-about"):
        tab.locator(f".{part} > summary").click()
    yield "loaded"
    far = tab.locator("#vm-models optgroup[label='To download'] option").first
    if far.count():
        tab.locator("#vm-models").select_option(far.get_attribute("value"))
        expect(tab.locator(".vm-wait")).to_be_visible()
        yield "model to download"
    tab.locator("#vm-models").select_option("file")
    expect(tab.get_by_role("button", name="Choose a file")).to_be_visible()
    yield "own file"
    if tab.locator("#vm-models option[value=repository]").count():
        tab.locator("#vm-models").select_option("repository")
        yield "repository"
    tab.get_by_role("button", name="Not now").click()
    yield from explore_sheets(tab)
    yield from explore_kinds(tab)
    choose_kind(tab, "attention")
    upload(tab, "notes.txt", b"no picture", "text/plain")
    expect(tab.locator(".vd-message")).not_to_be_empty()
    yield "failed"
    clear(tab)
    expect(tab.locator(".vd[data-state=empty] .vd-message")).not_to_be_empty()
    yield "empty"


def train(tab: Page, world: World) -> Iterator[str]:
    """The Train tab's states."""
    fold = lambda title: tab.locator(".vl-runs > details > summary", has_text=title).click()
    world.measuring = True
    tab.get_by_role("tab", name="Train").click()
    expect(tab.locator(".vl-offer")).not_to_be_empty()
    yield "measuring"
    world.measuring = False
    expect(tab.locator(".vl-run-item")).to_have_count(2)
    yield "start page"
    tab.locator(".vl-setup > details > summary").click()
    for group in tab.locator(".vl-group > summary").all():
        group.click()
    yield "advanced"
    tab.locator(".vl-setup > details > summary").click()
    for tick in tab.locator(".vl-tick input").all():
        tick.check()
    expect(tab.locator(".vl-overlaid svg.vd-chart")).to_have_count(2)
    tab.locator(".vl-run-item").first.get_by_role("button", name="More").click()
    yield "runs"
    fold("A fair race")
    tab.get_by_role("button", name="Start the race").click()
    expect(tab.locator(".vl-vote").first).to_be_visible()
    yield "ballot"
    world.race_over = True
    tab.get_by_role("button", name="Side A").click()
    expect(tab.locator(".vl-race .vl-judgement")).to_be_visible()
    yield "race"
    fold("Your own pictures")
    card = tab.locator(".vl-class").first
    red = {"name": "red.png", "mimeType": "image/png", "buffer": picture_bytes(coloured("red", 1, (60, 90)))}
    card.locator("input[type=file]").set_input_files(red)
    expect(card.locator(".vl-thumb")).to_have_count(1)
    card.get_by_role("button", name="Camera").click()
    expect(card.locator("video")).to_be_visible()
    yield "own pictures and camera"
    card.get_by_role("button", name="Close the camera").click()
    world.state = "running"
    tab.get_by_role("button", name="Watch a recorded run").click()
    expect(tab.locator(".vl-film-main")).to_be_visible()
    yield "running"
    world.state = "failed"
    expect(tab.locator(".vl-output")).to_be_visible()
    yield "run failed"
    world.state = ""
    tab.get_by_role("button", name="New run").click()
    tab.get_by_role("button", name="Watch a recorded run").click()
    expect(tab.locator(".vl-state")).to_have_text("Finished")
    tab.get_by_role("button", name="All settings").click()
    tab.locator(".vl-matrix td[role=gridcell].vl-wrong, .vl-small").first.click()
    yield "finished"


def about(tab: Page) -> Iterator[str]:
    tab.get_by_role("tab", name="About").click()
    yield "about"


def visit(browser, url: str, world: World, **options) -> Page:
    """The page as somebody sees it who has two runs and wants no motion; what the server says of runs is the world's."""
    context = browser.new_context(permissions=["camera"], reduced_motion="reduce", **options)
    kept = json.dumps({"vitdemo-runs": json.dumps(RUNS), "vitdemo-shown": ""})
    context.add_init_script(f"if (!localStorage.length) for (const [name, value] of Object.entries({kept})) localStorage.setItem(name, value)")
    tab = watched(context)
    tab.route("**/component_server/", world.serve)
    tab.goto(url)
    return tab


def states(tab: Page, world: World) -> Iterator[str]:
    yield from explore(tab)
    yield from train(tab, world)
    yield from about(tab)


def faults(tab: Page) -> list[str]:
    """What axe-core finds, one line for each."""
    if not tab.evaluate("typeof axe === 'object'"):
        tab.evaluate(AXE)
    found = tab.evaluate("(rules) => axe.run(rules)", RULES)["violations"]
    return [f"{one['id']}: {node['target'][0]} {node['failureSummary'][:160]}" for one in found for node in one["nodes"]]


def test_on_a_desk_no_state_of_any_tab_has_a_fault_and_canvases_follow_the_scheme(browser, served):
    world = World()
    tab = visit(browser, served, world, viewport={"width": 1440, "height": 900}, color_scheme="light")
    found = {name: faults(tab) + tab.evaluate(CHECK, False) for name in states(tab, world)}
    assert {name: list_ for name, list_ in found.items() if list_} == {}
    assert len(found) > 25 and tab.complaints == []
    tab.get_by_role("tab", name="Train").click()
    expect(tab.locator(".vl-track-canvas")).to_be_visible()
    light = drawn(tab, ".vl-track-canvas")
    tab.emulate_media(color_scheme="dark")
    expect(tab.locator("body.dark")).to_have_count(1)
    tab.wait_for_function("(light) => document.querySelector('.vl-track-canvas').toDataURL() !== light", arg=light)
    leave(tab)


def test_on_a_phone_in_the_dark_nothing_is_too_small_too_wide_or_without_words_and_nothing_moves_by_itself(browser, served):
    world = World()
    tab = visit(browser, served + "?__theme=dark", world, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    found, looked = {}, ("loaded", "test", "facts", "surgery", "empty", "advanced", "race", "finished", "about")
    for name in states(tab, world):
        found[name] = tab.evaluate(CHECK, True) + (faults(tab) if name in looked else [])
        if name == "loaded":
            tab.locator(".vd-main").tap()
            expect(tab.locator(".vd-token-chips [data-token=patch]")).to_have_attribute("aria-pressed", "true")
            tab.locator(".vd-main").tap()
        if name == "flicker and relevance":
            before = drawn(tab)
            tab.get_by_role("button", name="Show the other one").click()
            tab.wait_for_function("(before) => document.querySelector('.vd-main').toDataURL() !== before", arg=before)
        if name == "about":
            tab.set_viewport_size({"width": 320, "height": 700})
            found["about, 320 px"] = tab.evaluate(CHECK, True)
    for place in ("Train", "Explore"):
        tab.get_by_role("tab", name=place).click()
        found[f"{place}, 320 px"] = tab.evaluate(CHECK, True)
    assert {name: list_ for name, list_ in found.items() if list_} == {} and tab.complaints == []
    leave(tab)


def test_the_keyboard_reaches_everything_sees_where_it_is_and_closes_what_it_opened(browser, served):
    tab = visit(browser, served, World(), viewport={"width": 1440, "height": 900})
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    expect(tab.get_by_role("button", name="Example: cat")).to_be_visible()
    reached = []
    for _ in range(90):
        tab.keyboard.press("Tab")
        at = tab.evaluate("""() => { const at = document.activeElement, css = getComputedStyle(at), box = at.getBoundingClientRect();
            return at === document.body ? null : [at.className.split(" ")[0] + "|" + (at.getAttribute("aria-label") ?? at.textContent).trim(),
                css.outlineStyle !== "none" && parseFloat(css.outlineWidth) >= 2 && css.clipPath === "none" &&
                box.bottom > 0 && box.top < innerHeight]; }""")
        if at is None:
            break
        assert at[1], f"nobody sees the focus on {at[0]}"
        reached.append(at[0])
    for part in ("vd-skip", "vm-models", "vd-focus", "vd-primary", "vd-layer", "vd-wall-frame", "thumbnail-item"):
        assert any(name.startswith(part) for name in reached), part
    assert reached[0].startswith("vd-skip")
    tab.locator(".vd-skip").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(".vd-focus")).to_be_focused()
    for key, title in ((".", "head 1"), (".", "head 2"), (".", "head 2"), (",", "head 1"), ("m", "mean")):
        tab.keyboard.press(key)
        expect(tab.locator(".vd-readout")).to_contain_text(f"Layer 3, {title}")
    expect(tab.locator(".vd-layer")).to_have_attribute("aria-valuetext", "Layer 3 of 3")
    tab.keyboard.press("?")
    expect(tab.locator(".vd-keys > summary")).to_be_focused()
    tab.get_by_label("Letters and digits work as keys").uncheck()
    tab.locator(".vd-focus").focus()
    tab.keyboard.press("2")
    tab.keyboard.press("ArrowRight")                                         # arrows are no letters
    expect(tab.locator(".vd-readout")).to_contain_text("Layer 3, mean of the heads: the patch in row 2")
    tab.get_by_label("Letters and digits work as keys").check()
    tab.keyboard.press("Escape")
    expect(tab.locator(".vd-keys")).not_to_have_attribute("open", "")
    tab.locator(".vd-wall-frame").focus()
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".vd-readout")).to_contain_text("Layer 2, head 1")
    tab.locator(".vd-tabs").get_by_role("tab", name="Take it home").click()
    tab.get_by_role("button", name="This figure (SVG)").focus()
    tab.keyboard.press("Escape")
    expect(tab.locator(".vd-tabs").get_by_role("tab", name="Take it home")).to_be_focused()
    expect(tab.locator(".vd-sheet:visible")).to_have_count(0)
    tab.locator("#vm-models").select_option("file")
    tab.get_by_role("button", name="Choose a file").focus()
    tab.keyboard.press("Escape")
    expect(tab.locator("#vm-models")).to_be_focused()
    assert tab.locator(".vm-wait").is_hidden() and tab.complaints == []
    leave(tab)

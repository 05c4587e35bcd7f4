"""The training lab's runs, race and own pictures in a real Chromium against the real server, whose runs are queued and never started."""

import io
import json
import re
import zipfile

import pytest
from conftest import CAMERA, COLOURS, coloured, driving, picture_bytes, watched
from playwright.sync_api import Page, expect

from vitdemo import checkpoint
from vitdemo.plan import plan
from vitdemo.ui.offers import Measurement, Offers

HOSTILE = "<img src=x onerror=window.hit=1>"


@pytest.fixture(scope="module")
def browser(chromium):
    with driving(chromium, *CAMERA) as engine:
        yield engine


@pytest.fixture(scope="module")
def server(tiny, colour_zip, tmp_path_factory):
    """The page as it is served, (url, App); its scheduler sleeps and nothing is timed."""
    from vitdemo.ui import build_app, launch_settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITDEMO_DATA", str(colour_zip.parent))
        patch.setenv("VITDEMO_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("VITDEMO_QUEUE", "100")
        patch.setattr(Offers, "pace", lambda self, order, **_: Measurement(500.0, 1500.0))
        app = build_app(tiny)
        _, url, _ = app.blocks.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
        yield url, app
        app.blocks.close()
        app.scheduler.close()


@pytest.fixture
def lab(browser, server):
    """Opens the Train tab as a visitor of their own who has the `runs`."""
    contexts = []

    def open_tab(runs=(), *, race=None, **options) -> Page:
        context = browser.new_context(permissions=["camera"], **({"viewport": {"width": 1440, "height": 900}} | options))
        contexts.append(context)
        kept = {"vitdemo-runs": list(runs)} | ({"vitdemo-race": race} if race else {})
        context.add_init_script(f"if (!localStorage.getItem('seeded')) {{ const kept = {json.dumps(kept)}; "
                                "for (const name in kept) localStorage.setItem(name, JSON.stringify(kept[name])); "
                                "localStorage.setItem('vitdemo-shown', ''); localStorage.setItem('seeded', 'once'); }")
        tab = watched(context)
        tab.goto(server[0])
        show(tab)
        return tab

    yield open_tab
    for context in contexts:
        context.close()


def show(tab: Page) -> None:
    tab.get_by_role("tab", name="Train").click()
    expect(tab.locator("#vd-lab .vl-runs")).to_be_visible()


def unfold(tab: Page, title: str) -> None:
    tab.locator(".vl-runs > details > summary", has_text=title).click()


def made(server, tiny, title, accuracy=0.5, *, state="finished", race=None, **changes) -> str:
    """The id of a run as it is when it is over."""
    scheduler = server[1].scheduler
    run = scheduler.submit(plan(preset="class", data="cifar10", minutes=1, changes={"threads": 1, **changes}, title=title,
                                race=race).to_json())
    end(scheduler.read(run), tiny, accuracy, state)
    return run


def end(folder, tiny, accuracy, state="finished") -> None:
    for look in range(1, 4):
        folder.log({"step": 10 * look, "seconds": 20.0 * look, "loss": 2.0 / look, "accuracy": accuracy * look / 3,
                    "look": {"n": 2500, "standard_error": 0.01, "ece": 0.1}})
    checkpoint.save(folder.best, tiny.model, classes=list(COLOURS), preprocessing=tiny.preprocessing, provenance={})
    folder.write_status(state=state, seconds=60.0, best_accuracy=accuracy, progress=1.0)


def item(tab: Page, title: str):
    return tab.locator(".vl-run-item", has=tab.get_by_text(title, exact=True))


def picture(seed: int, name: str = "red") -> dict:
    return {"name": f"{name}{seed}.png", "mimeType": "image/png", "buffer": picture_bytes(coloured(name, seed, (300, 200)))}


def class_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in COLOURS:
            for i in range(4):
                archive.writestr(f"{name}/{i}.png", picture_bytes(coloured(name, 50 + i)))
        archive.writestr("red/notes.txt", "no picture")
    return buffer.getvalue()


def test_a_run_says_its_state_in_words_its_accuracy_and_what_is_its_own(lab, server, tiny):
    runs = [made(server, tiny, "small", 0.612, seed=4), made(server, tiny, "stopped early", 0.4, state="stopped", seed=4, patch=[8, 8]),
            made(server, tiny, HOSTILE, 0.3, seed=4)]
    tab = lab(runs)
    expect(tab.locator(".vl-run-item")).to_have_count(3)
    expect(item(tab, "small")).to_contain_text("61.2%")
    expect(item(tab, "small")).to_contain_text("Finished · 1:00 trained")
    expect(item(tab, "small").locator(".vl-tags li")).to_have_count(0)
    expect(item(tab, "stopped early")).to_contain_text("Stopped")
    expect(item(tab, "stopped early").locator(".vl-tags")).to_have_text("patch 8 × 8")
    assert tab.evaluate("window.hit") is None and tab.locator("img[src=x]").count() == 0 and tab.complaints == []


def test_ticked_runs_lie_over_each_other_by_seconds_or_steps_and_eight_are_the_most(lab, server, tiny):
    tab = lab([made(server, tiny, f"run {i}", 0.3 + i / 20) for i in range(9)])
    expect(tab.locator(".vl-run-item")).to_have_count(9)
    for i in range(9):
        item(tab, f"run {i}").get_by_role("checkbox").click()
    expect(tab.locator(".vl-say")).to_contain_text("At most 8 runs")
    expect(item(tab, "run 8").get_by_role("checkbox")).not_to_be_checked()
    expect(tab.locator(".vl-overlaid .vd-chart")).to_have_count(2)
    lines = tab.locator(".vl-overlaid .vd-chart").nth(1).locator("polyline")
    expect(lines).to_have_count(8)
    looks = lines.evaluate_all("nodes => nodes.map((node) => node.getAttribute('class') + node.getAttribute('stroke-dasharray'))")
    assert len(set(looks)) == 8
    expect(tab.locator(".vl-overlaid .vd-chart").first).to_contain_text("seconds of training")
    tab.locator(".vl-overlaid").get_by_role("button", name="steps").click()
    expect(tab.locator(".vl-overlaid .vd-chart").first).to_contain_text("steps")


def test_deleting_asks_once_and_takes_the_run_from_the_disk_and_the_list(lab, server, tiny):
    runs = [made(server, tiny, "to keep"), made(server, tiny, "to delete")]
    tab = lab(runs)
    row = item(tab, "to delete")
    row.get_by_role("button", name="More").click()
    row.get_by_role("button", name="Delete …").click()
    expect(row.get_by_role("button", name="Keep it")).to_be_focused()
    tab.keyboard.press("Escape")
    expect(row.get_by_role("button", name="Delete …")).to_be_focused()
    assert server[1].scheduler.read(runs[1]).path.is_dir()
    tab.keyboard.press("Enter")
    row.get_by_role("button", name="Delete it").click()
    expect(tab.locator(".vl-run-item")).to_have_count(1)
    assert tab.evaluate("JSON.parse(localStorage.getItem('vitdemo-runs'))") == runs[:1]
    expect(item(tab, "to keep").get_by_role("button").first).to_be_focused()


def test_a_checkpoint_is_downloaded_and_loaded_again_as_a_run_and_another_file_is_refused_in_a_sentence(lab, server, tiny):
    tab = lab([made(server, tiny, "mine")])
    row = item(tab, "mine")
    row.get_by_role("button", name="More").click()
    with tab.expect_download() as download:
        row.get_by_role("button", name="Download").click()
    path = download.value.path()
    assert checkpoint.load(path).classes == tuple(COLOURS)
    box = tab.locator("#vl-checkpoint")
    box.set_input_files({"name": "notes.pt", "mimeType": "", "buffer": b"text"})
    expect(tab.locator(".vl-loading .vl-trouble")).to_contain_text(re.compile(r"\.$"))
    box.set_input_files({"name": "again.safetensors", "mimeType": "", "buffer": path.read_bytes()})
    expect(item(tab, "again")).to_contain_text("loaded from a file")
    expect(item(tab, "again").get_by_role("button", name="Explore")).to_be_enabled()


def test_a_race_says_its_time_first_hides_every_number_until_the_vote_and_survives_a_refresh(lab, server, tiny):
    tab = lab()
    unfold(tab, "A fair race")
    expect(tab.locator(".vl-total")).to_contain_text(re.compile("2 runs .*in all"))
    tab.get_by_label("Three seeds").check()
    expect(tab.locator(".vl-total")).to_contain_text(re.compile("6 runs .*in all"))
    tab.get_by_label("Three seeds").uncheck()
    expect(tab.locator(".vl-total")).to_contain_text("2 runs")
    tab.get_by_role("button", name="Start the race").click()
    expect(tab.locator(".vl-vote")).to_have_count(3)
    a, b = (server[1].scheduler.read(one["run"]) for one in tab.evaluate("JSON.parse(localStorage.getItem('vitdemo-race'))")["runs"])
    end(a, tiny, 0.71)
    end(b, tiny, 0.64)
    expect(tab.locator(".vl-race")).to_contain_text("now vote, then look")
    tab.reload()
    show(tab)
    expect(tab.locator(".vl-race")).to_contain_text("now vote, then look")
    expect(tab.locator(".vl-run-item").first).to_contain_text("hidden until you vote")
    expect(tab.locator(".vl-run-item").first.get_by_role("button", name="Watch")).to_be_disabled()
    assert "71" not in tab.locator("#vd-lab").inner_text() and tab.locator(".vl-race .vd-chart").count() == 0
    names, bar = re.compile("patches of . pixels, seed 0"), tab.locator(".vm-models")
    tab.get_by_role("tab", name="Explore").click()                          # which would say how good they are
    expect(bar).to_be_visible()
    tab.wait_for_timeout(1000)
    assert bar.locator("option").count() and not names.search(bar.text_content())
    show(tab)
    tab.locator(".vl-race-title").focus()
    tab.keyboard.press("b")                                                 # black on a projector, not a vote
    expect(tab.locator(".vl-vote").first).to_be_visible()
    tab.get_by_role("button", name="Back to your run").click()              # no way leads around the vote
    expect(tab.locator(".vl-say")).to_contain_text("vote first")
    expect(tab.locator(".vl-run")).to_be_hidden()
    tab.locator(".vl-vote").first.focus()
    tab.keyboard.press("b")
    expect(tab.locator(".vl-judgement")).to_contain_text("one run each cannot tell")
    expect(tab.locator(".vl-race")).to_contain_text("You voted for B")
    tab.get_by_role("tab", name="Explore").click()
    expect(bar.locator("option", has_text=names)).to_have_count(2)
    show(tab)
    expect(tab.locator(".vl-race .vd-chart")).to_have_count(3)
    expect(tab.locator(".vl-race")).to_contain_text("71.0%")
    expect(tab.locator(".vl-run-item").first).to_contain_text("%")
    assert tab.complaints == []


def raced(server, tiny, name):
    """The runs of a race that is over, and the race as a browser keeps it before the vote."""
    race = {"id": name * 32, "kind": "patch", "seed": 0}
    runs = [made(server, tiny, side, 0.5, race={**race, "side": side}) for side in "ab"]
    return runs, {"race": race["id"], "kind": "patch", "question": "Which?", "a": "one", "b": "other", "budget": "seconds", "minutes": 1,
                  "seeds": 1, "data": "cifar10", "vote": None, "looked": False,
                  "runs": [{"run": run, "side": side, "seed": 0} for run, side in zip(runs, "ab", strict=True)]}


def test_a_race_can_be_shown_without_voting_and_one_whose_runs_are_gone_gives_way_to_another(lab, server, tiny):
    runs, kept = raced(server, tiny, "f")
    tab = lab(race=kept)
    tab.get_by_role("button", name="Show without voting").click()
    expect(tab.locator(".vl-race")).to_contain_text("You looked without voting")
    server[1].scheduler.delete(runs[0])
    tab.reload()
    show(tab)
    tab.get_by_role("button", name="Another race").click()
    expect(tab.get_by_role("button", name="Start the race")).to_be_visible()


def test_a_race_that_one_tab_began_is_sealed_in_the_other_and_opened_by_its_vote(lab, server, tiny):
    runs, kept = raced(server, tiny, "e")
    one = lab(runs)
    other = one.context.new_page()
    other.goto(server[0])
    show(other)
    expect(other.locator(".vl-run-item").first).to_contain_text("50.0%")
    one.evaluate("race => localStorage.setItem('vitdemo-race', JSON.stringify(race))", kept)
    expect(other.locator(".vl-run-item").first).to_contain_text("hidden until you vote")
    expect(other.locator(".vl-vote")).to_have_count(3)
    one.evaluate("race => localStorage.setItem('vitdemo-race', JSON.stringify(race))", {**kept, "vote": "a"})
    expect(other.locator(".vl-race")).to_contain_text("You voted for A")
    expect(other.locator(".vl-run-item").first).to_contain_text("50.0%")


def test_a_zip_becomes_classes_with_pictures_that_can_be_removed_and_a_run_that_fine_tunes_from_the_box(lab, server):
    tab = lab()
    unfold(tab, "Your own pictures")
    tab.locator("input[accept*='.zip']").set_input_files({"name": "colours.zip", "mimeType": "application/zip", "buffer": class_zip()})
    cards = tab.locator(".vl-class")
    expect(cards).to_have_count(3)
    expect(tab.get_by_text("1 file was left out")).to_be_visible()
    cards.first.get_by_role("button", name="Remove picture 2 of blue").click()
    expect(cards.first).to_contain_text("3 pictures")
    name = cards.first.get_by_label("Name of the class")
    name.fill("sea / sky")
    name.press("Tab")
    expect(name).to_have_value("sea - sky")
    cards.first.locator("input[type=file]").set_input_files([picture(1), picture(2), picture(1),
                                                             {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"text"}])
    expect(cards.first).to_contain_text("5 pictures")
    expect(cards.first.locator(".vl-trouble")).to_contain_text("red1.png: this picture is in the class")
    expect(cards.first.locator(".vl-trouble")).to_contain_text("notes.txt")
    form = tab.locator(".vl-own-training")
    expect(form).to_contain_text("with a new head for 3 classes")
    form.get_by_label("Keep its encoder frozen").check()
    expect(form).to_contain_text("only its new head learns")
    form.get_by_role("button", name="Fine-tune").click()
    expect(tab.locator(".vl-run-item")).to_contain_text("colours, fine-tuned")
    config = server[1].scheduler.read(tab.evaluate("JSON.parse(localStorage.getItem('vitdemo-runs'))")[0]).config()
    assert config["start"] == "box" and config["train"]["freeze"] and config["vit"]["classes"] in (0, 3, 10)
    assert tab.complaints == []


def test_a_picture_that_is_removed_twice_in_haste_takes_no_other_one_along(lab):
    tab = lab()
    unfold(tab, "Your own pictures")
    tab.locator("input[accept*='.zip']").set_input_files({"name": "colours.zip", "mimeType": "application/zip", "buffer": class_zip()})
    card = tab.locator(".vl-class").first
    expect(card).to_contain_text("4 pictures")
    kept = card.locator(".vl-thumb img").evaluate_all("images => images.map((image) => image.src)")
    card.evaluate("""card => { const [one, , three] = card.querySelectorAll('.vl-thumb');
        one.click(); one.click(); three.click(); }""")
    expect(card).to_contain_text("2 pictures")
    tab.wait_for_timeout(300)
    assert card.locator(".vl-thumb img").evaluate_all("images => images.map((image) => image.src)") == [kept[1], kept[3]]
    assert tab.complaints == []


def test_pictures_are_shrunk_in_the_browser_and_found_again_after_a_refresh(lab):
    tab = lab()
    sent = []
    tab.on("request", lambda request: sent.append(request.post_data_json) if "component_server" in request.url else None)
    unfold(tab, "Your own pictures")
    card = tab.locator(".vl-class").first
    card.locator("input[type=file]").set_input_files({"name": "large.png", "mimeType": "image/png",
                                                      "buffer": picture_bytes(coloured("blue", 3, (600, 900)))})
    expect(card).to_contain_text("1 picture")
    size = card.locator(".vl-thumb img").evaluate("image => [image.naturalWidth, image.naturalHeight, image.src.slice(0, 15)]")
    assert size == [384, 256, "data:image/jpeg"]
    expect(tab.locator(".vl-own-training")).to_contain_text("Give at least two classes two pictures each")
    tab.reload()
    show(tab)
    unfold(tab, "Your own pictures")
    expect(tab.locator(".vl-class").first).to_contain_text("1 picture")
    expect(tab.locator(".vl-class").first.locator(".vl-thumb")).to_have_count(1)


def test_the_camera_takes_pictures_while_a_key_is_held_and_is_let_go_of(lab):
    tab = lab()
    unfold(tab, "Your own pictures")
    tab.evaluate("""() => {
        const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        navigator.mediaDevices.getUserMedia = async (wish) => window.stream = await open(wish); }""")
    card = tab.locator(".vl-class").first
    card.get_by_role("button", name="Camera", exact=True).click()
    expect(card.locator("video")).to_have_css("transform", re.compile("matrix\\(-1"))           # mirrored, as people know themselves
    tab.wait_for_function("document.querySelector('.vl-video video').videoWidth > 0")
    expect(card.get_by_role("button", name="Hold to take pictures")).to_be_focused()
    expect(card.locator(".vl-lens")).to_contain_text("near-copies of each other")
    tab.keyboard.down("Enter")
    expect(card.locator(".vl-thumb").nth(2)).to_be_visible()
    tab.keyboard.up("Enter")
    expect(tab.locator(".vl-own-classes ~ .vl-caution")).to_contain_text(re.compile(r"^\d of these \d pictures are near-copies"))
    sides = card.locator(".vl-thumb img").first.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert sides == [256, 256]
    tab.evaluate("window.scrollTo(0, 0); document.querySelector('.vl-video').style.marginTop = '4000px'")      # far out of sight
    tab.get_by_role("tab", name="About").click()                            # the camera is let go of where nobody sees its picture
    tab.wait_for_function("window.stream.getTracks().every((track) => track.readyState === 'ended')")
    show(tab)
    expect(card.locator("video")).to_have_count(0)


def test_near_copies_in_a_zip_are_said_with_the_set_and_go_when_they_are_removed(lab):
    tab, content = lab(), io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in COLOURS:
            for i in range(3):
                archive.writestr(f"{name}/{i}.png", picture_bytes(coloured(name, 10 * len(name) + i)))
        archive.writestr("red/copy.jpg", picture_bytes(coloured("red", 30), "JPEG", quality=95))       # of red/0.png
    unfold(tab, "Your own pictures")
    tab.locator("input[accept*='.zip']").set_input_files({"name": "c.zip", "mimeType": "application/zip", "buffer": content.getvalue()})
    caution = tab.locator(".vl-own-classes ~ .vl-caution")
    expect(caution).to_contain_text("1 of these 10 pictures is a near-copy of another")
    tab.get_by_role("button", name="Remove picture 1 of red").click()
    expect(caution).to_be_hidden()


@pytest.mark.parametrize(("name", "said"),
                         [("NotAllowedError", "was not allowed to use the camera"), ("NotFoundError", "No camera was found")])
def test_a_camera_that_cannot_be_had_is_one_sentence(lab, name, said):
    tab = lab()
    unfold(tab, "Your own pictures")
    tab.evaluate("(name) => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', name); }; }", name)
    tab.locator(".vl-class").first.get_by_role("button", name="Camera", exact=True).click()
    expect(tab.locator(".vl-lens .vl-trouble")).to_contain_text(said)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scroll_and_every_button_is_large_enough_for_a_finger(lab, server, tiny, scheme):
    tab = lab([made(server, tiny, "a run with a name that is as long as a name may ever be", 0.5)], viewport={"width": 390, "height": 800},
              color_scheme=scheme)
    unfold(tab, "A fair race")
    unfold(tab, "Your own pictures")
    tab.locator(".vl-run-item").get_by_role("button", name="More").click()
    tab.locator(".vl-run-item").get_by_role("checkbox").check()
    expect(tab.locator(".vl-overlaid .vd-chart").first).to_be_visible()
    expect(tab.locator(".vl-class")).to_have_count(2)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    small = tab.locator(".vl-runs button:visible, .vl-runs .vl-file:visible").evaluate_all(
        "nodes => nodes.filter((node) => node.getBoundingClientRect().height < 36).map((node) => node.textContent)")
    assert small == []


@pytest.fixture
def phone(lab, server, tiny):
    """A phone that opens the Train tab with a race of two runs that are over and not voted on; gives (tab, runs)."""
    race = {"id": "e" * 32, "kind": "patch", "seed": 0}
    runs = [made(server, tiny, side, accuracy, race={**race, "side": side}) for side, accuracy in (("a", 0.5), ("b", 0.4))]
    kept = {"race": race["id"], "kind": "patch", "question": "Which?", "a": "patches of 4 pixels", "b": "patches of 8 pixels",
            "budget": "seconds", "minutes": 1, "seeds": 1, "data": "cifar10", "vote": None, "looked": False,
            "runs": [{"run": run, "side": side, "seed": 0} for run, side in zip(runs, "ab", strict=True)]}
    return lab(runs, race=kept, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True), runs


def test_a_race_is_voted_on_and_read_with_a_finger(phone):
    tab, _ = phone
    expect(tab.locator(".vl-vote")).to_have_count(3)
    expect(tab.locator(".vl-vote kbd").first).to_be_hidden()                # a finger has no keys
    tab.locator(".vl-vote[data-side=a]").tap()
    expect(tab.locator(".vl-race")).to_contain_text("You voted for A")
    tab.get_by_text("Every run of the race").tap()
    table = tab.locator(".vl-race .vl-scroll")
    expect(table.get_by_role("row")).to_have_count(3)
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth") and tab.evaluate("document.documentElement.scrollWidth") <= 390
    fingers = tab.locator(".vl-runs button:visible, .vl-runs .vl-file:visible, .vl-runs input[type=number]:visible").evaluate_all(
        "nodes => nodes.map((node) => node.getBoundingClientRect().height)")
    assert min(fingers) >= 44 and tab.complaints == []


def test_who_goes_to_a_run_with_a_finger_sees_its_top(phone):
    tab, _ = phone
    tab.get_by_role("button", name="Show without voting").tap()
    tab.locator(".vl-run-item").first.get_by_role("button", name="Watch").tap()
    expect(tab.locator(".vl-state")).to_have_text("Finished")
    way = tab.get_by_role("navigation", name="Parts of this page")
    expect(way).to_be_in_viewport()
    tab.wait_for_function("""() => {
        const [way, name] = [".vl-way", ".vl-run-name"].map((one) => document.querySelector(one).getBoundingClientRect());
        return name.top >= way.bottom && name.bottom < innerHeight; }""")
    for figure in tab.locator(".vl-figure:visible").all():                  # both columns begin at their left edge
        value, what = figure.locator(".vl-value").bounding_box(), figure.locator(".vl-what").bounding_box()
        assert figure.evaluate("box => getComputedStyle(box).textAlign") == "left" and abs(value["x"] - what["x"]) < 1

"""The training lab in a real Chromium: beginning a run, following it, and what is said when something goes wrong.

Most journeys use the real front end before a server that is told what to answer, so that time and failures are at hand; the last ones use
the page.
"""

import json
import re
from pathlib import Path

import pytest
from conftest import watched
from playwright.sync_api import Page, expect

from vitdemo import front

RUN = "a" * 32
CLASSES = ["blue", "green", "red"]
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
SETTING = {"choices": None, "low": 1, "high": 64, "line": "What it does.", "group": "training", "defaults": {"class": 8}}
HELLO = {
    "training": True, "off": "", "max_minutes": 60, "public": False, "races": [], "recorded": False,
    "presets": [{"name": "class", "about": "three minutes", "source": "made here", "reported": None, "minutes": 3, "epochs": None,
                 "data": "cifar10", "size": "micro",
                 "start": "", "note": "",
                 "measured": [{"threads": 1, "accuracy": 0.624, "n": 2, "seconds": 180, "images_per_second": 511, "machine": "an AMD EPYC"},
                              {"threads": 2, "accuracy": 0.751, "n": 3, "seconds": 180, "images_per_second": 1273, "machine": "an Intel Xeon"}]},
                {"name": "mnist", "about": "digits", "source": "a tutorial", "reported": 0.83, "minutes": None, "epochs": 5,
                 "data": "mnist", "size": "micro",
                 "start": "", "note": "", "measured": []},
                {"name": "tune", "about": "from a trained model", "source": "made here", "reported": None, "minutes": 0.5, "epochs": None,
                 "data": "", "size": "micro",
                 "start": "box", "note": "", "measured": []}],
    "sizes": [{"name": "micro", "about": "a small one", "settings": {}}],
    "data": [{"name": "cifar10", "title": "CIFAR-10: ten kinds of things", "here": True, "note": ""},
             {"name": "mnist", "title": "MNIST: handwritten digits", "here": False, "note": "Start downloads them first."}],
    "settings": [{**SETTING, "name": "batch", "kind": "whole"},
                 {**SETTING, "name": "patch", "kind": "list", "pair": True, "defaults": {"class": [4, 4]}, "group": "model"},
                 {**SETTING, "name": "optimizer", "kind": "choice", "choices": ["muon", "adam"], "defaults": {"class": "muon"}}],
    "limits": {"pictures": 100, "megabytes": 10, "classes": [2, 100], "zip_megabytes": 5, "film": 6},
}
SCENE = {"classes": CLASSES, "layers": 1, "heads": 1, "rows": 2, "cols": 2, "prefix": 1, "prefix_names": ["class token"],
         "reader": "the class token", "patch": [4, 4],
         "subjects": [], "watched": [{"picture": PIXEL, "truth": 2}, {"picture": PIXEL, "truth": 0}]}

# A server that answers from `fake`: how it stands, what it has logged, and what fails.
FAKE = """
window.asked = [];
window.fake = { state: "running", seconds: 20, left: 100, rows: [], frames: [], down: false, errors: {}, measuring: 0,
  extra: {}, entries: {} };
window.server = { ask: async (request) => {
  asked.push(request);
  if (fake.down) throw new Error("no network");
  if (fake.errors[request.question]) return { error: fake.errors[request.question] };
  const over = ["finished", "stopped", "failed"].includes(fake.state);
  switch (request.question) {
    case "hello": return HELLO;
    case "offer": return fake.measuring-- > 0 ? { measuring: true, preset: "class" } :
      { preset: request.preset ?? "class", sentence: "About " + Math.round(30000 * request.minutes) + " pictures." };
    case "check": return { parameters: 10, tokens: 5, sentence: "A ViT of 10 parameters." };
    case "start": return { run: RUN };
    case "stop": fake.state = "stopped"; return { run: RUN, state: "stopped" };
    case "resume": fake.state = "queued"; return { run: RUN, state: "queued" };
    case "list": return fake.errors.follow ? { runs: [], gone: request.mine } :
      { runs: request.mine.map((id) => entry(id, fake.entries[id])), gone: [] };
    case "follow": return { status: { state: fake.state, head: "Training.", over, progress: 0.2, seconds: fake.seconds,
      seconds_left: over ? null : fake.left, images_per_second: 511, epoch: 1, position: 0, output: ["last words"] },
      rows: fake.rows.slice(request.log), log: fake.rows.length, frames: fake.frames.slice(request.film), film: fake.frames.length,
      ...(request.film ? {} : { scene: SCENE }),
      ...(request.log ? {} : { plan: { title: "mine", model: "micro", preset: "class", data: "CIFAR-10",
        settings: [["batch", 8], ["epochs", 0]], network: "vit", start: "" } }),
      can: { open: true, resume: over, download: true }, ...fake.extra };
  }
  return { error: "The test's server does not know " + request.question + "." };
} };
window.entry = (id, more = {}) => ({ id, title: "run " + id[0], state: fake.state, created: 1, seconds: fake.seconds, progress: 0.2,
  accuracy: 0.5, test: null, preset: "class", model: "micro",
  data: "CIFAR-10: ten kinds of things", race: null, imported: false, can: { open: true, download: true, resume: false },
  settings: { network: "vit", data: "CIFAR-10: ten kinds of things", batch: 8 }, ...more });
window.row = (step, accuracy) => ({ step, images: step * 8, epoch: step / 10, progress: step / 100, seconds: step,
  loss: step ? 2 / step : null, accuracy, ...(accuracy === null ? {} : { look: { n: 100, standard_error: 0.02 } }) });
window.frame = (step) => ({ ...row(step, 0.5), standard_error: 0.02, n: 100, subjects: [], watched: [[2, 0.6, 0.6], [1, 0.5, 0.2]],
  filters: { count: 2, rows: 1, cols: 2, channels: 1, data: btoa(String.fromCharCode(0, 255, step, 128)) }, positions: null,
  report: { confusion: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], calibration: [], ece: 0, per_class: [1, 1, 1] } });
"""


@pytest.fixture
def lab(browser, tmp_path):
    """Opens the front end before a fake server; gives a function of (width)."""
    contexts = []
    start = ('new Function("element", "props", "server", "watch", "trigger", "upload", '
             'SCRIPT + "\\nObject.assign(window, { lab, choose, emit, mine, form, say });")')
    script = json.dumps(front.script("lab_front")).replace("</", "<\\/")
    body = f"""<!doctype html><meta charset="utf-8"><body><div id="lab">{front.page("lab_front")}</div>
        <style>{front.style("lab_front")}</style>
        <script>const HELLO = {json.dumps(HELLO)}, SCENE = {json.dumps(SCENE)}, RUN = "{RUN}", SCRIPT = {script};{FAKE}
        window.events = [];
        window.begin = () => {start}(document.getElementById("lab"), {{ value: null }}, server, () => {{}},
          (name, data) => events.push([name, data]), async (file) => ({{ path: "/uploads/" + file.name }}));
        </script>"""

    def opened(width: int = 1440, before: str = "") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        tab = watched(context)
        tab.route("http://lab.test/", lambda route: route.fulfill(body=body, content_type="text/html"))
        tab.goto("http://lab.test/")
        tab.evaluate(before + "; begin()")
        expect(tab.locator(".vl")).to_have_attribute("data-state", re.compile("none|run"))
        return tab

    yield opened
    for context in contexts:
        context.close()


def following(lab, **options) -> Page:
    """A tab that follows a run with two looks."""
    tab = lab(**options, before="fake.rows = [row(0, 0.3), row(10, null), row(20, 0.5)]; fake.frames = [frame(0), frame(20)]")
    tab.evaluate("mine.add(RUN); choose(RUN)")
    expect(tab.locator(".vl-state")).to_have_text("Training")
    return tab


def asked(tab: Page, question: str) -> list[dict]:
    return tab.evaluate("question => asked.filter((one) => one.question === question)", question)


def test_who_opens_the_tab_sees_one_number_and_one_button(lab):
    tab = lab()
    hero = tab.locator(".vl-hero")
    expect(hero).to_contain_text("You have")
    expect(hero.locator(".vl-offer")).to_have_text("About 90000 pictures.")
    assert hero.get_by_role("textbox").count() == 1 and hero.get_by_role("button", name="Start training").count() == 1
    expect(tab.locator(".vl-advanced")).to_be_hidden()
    expect(tab.locator(".vl-run")).to_be_hidden()
    assert tab.complaints == []


@pytest.mark.parametrize(("typed", "minutes"), [("3,5", 3.5), ("0.5", 0.5), (" 12 ", 12)])
def test_minutes_are_read_as_people_write_them(lab, typed, minutes):
    tab = lab()
    tab.locator(".vl-amount").fill(typed)
    tab.locator(".vl-amount").press("Enter")
    expect(tab.locator(".vl-status")).to_be_visible()
    sent = asked(tab, "start")[0]
    assert sent["minutes"] == minutes and sent["preset"] == "class" and sent["data"] == "cifar10" and "epochs" not in sent
    assert json.loads(tab.evaluate("localStorage.getItem('vitdemo-runs')")) == [RUN]


@pytest.mark.parametrize(("typed", "sentence"), [("abc", "such as 3 or 3.5"), ("", "such as 3"), ("-2", "such as 3"), ("0", "such as 3"),
                                                 ("99", "up to 60 minutes"), ("1e9", "up to 60")])
def test_nonsense_is_refused_with_a_sentence_and_starts_nothing(lab, typed, sentence):
    tab = lab()
    tab.locator(".vl-amount").fill(typed)
    tab.get_by_role("button", name="Start training").click()
    expect(tab.get_by_role("alert").first).to_contain_text(sentence)
    expect(tab.locator(".vl-amount")).to_have_attribute("aria-invalid", "true")
    assert asked(tab, "start") == []


def test_the_slider_and_the_number_are_one_and_the_pace_is_waited_for(lab):
    tab = lab(before="fake.measuring = 2")
    expect(tab.locator(".vl-offer")).to_contain_text("Timing")
    expect(tab.locator(".vl-offer")).to_have_text("About 90000 pictures.")
    tab.locator(".vl-minutes").focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".vl-amount")).to_have_value("4")
    expect(tab.locator(".vl-offer")).to_have_text("About 120000 pictures.")


def test_what_is_to_be_kept_in_mind_stands_beside_the_accuracy_of_that_run_alone(lab):
    tab = following(lab)
    expect(tab.locator(".vl-status .vl-caution")).to_be_hidden()
    tab.evaluate("fake.extra = { flatters: 'Two of its pictures are near-copies, and <b>so on</b>.' }; choose(RUN)")
    expect(tab.locator(".vl-status .vl-caution")).to_have_text("Two of its pictures are near-copies, and <b>so on</b>.")
    expect(tab.locator(".vl-share .vl-hint")).to_contain_text("Two of its pictures are near-copies")
    tab.evaluate("fake.extra = {}; choose(RUN)")
    expect(tab.locator(".vl-state")).to_have_text("Training")
    expect(tab.locator(".vl-status .vl-caution")).to_be_hidden()
    expect(tab.locator(".vl-share .vl-hint")).not_to_contain_text("near-copies")


def test_while_the_test_is_made_nothing_counts_down(lab):
    tab = following(lab)
    tab.evaluate("fake.extra = { status: { state: 'running', head: 'Trained; now counting right answers on the test pictures.', "
                 "over: false, progress: 1, seconds: 9, seconds_left: null, images_per_second: 511, epoch: 1, position: 0, output: [] } }")
    expect(tab.locator(".vl-sentence-now")).to_contain_text("now counting")
    expect(tab.locator(".vl-figure-left")).to_be_hidden()


def test_a_run_that_is_over_shows_the_accuracy_of_the_weights_that_are_kept_and_the_speed_of_the_whole_run(lab):
    tab = lab(before="fake.rows = [row(0, 0.1), row(20, 0.6), row(40, null), row(60, 0.4)]; fake.frames = [frame(0)]")
    tab.evaluate("mine.add(RUN); choose(RUN)")
    accuracy, speed = tab.locator(".vl-figure-right"), tab.locator(".vl-figure-speed")
    expect(accuracy).to_contain_text("40.0%")                               # while it runs: the last look, and the speed of late
    expect(speed).to_contain_text("511")
    tab.evaluate("fake.state = 'stopped'")
    expect(accuracy).to_contain_text("60.0%")
    expect(speed).to_contain_text("8images a second")                       # 480 pictures in 60 seconds
    tab.evaluate("fake.state = 'queued'; choose(RUN)")
    expect(tab.locator(".vl-state")).to_have_text("Waiting")
    expect(speed).to_be_hidden()


def test_a_start_that_was_never_answered_shows_the_run_that_it_made(lab):
    tab = lab()
    tab.evaluate("""() => { const usual = server.ask; server.ask = (request) => request.question === "start" ?
      { error: "One of your runs is still going on.", runs: [RUN] } : usual(request); }""")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-run")).to_be_visible()
    expect(tab.locator(".vl-say")).to_contain_text("still going on")
    assert tab.evaluate("[lab.id, mine.list()]") == [RUN, [RUN]]


def test_what_is_said_of_a_moment_is_asked_again_until_the_moment_is_over(lab):
    tab = lab()
    offer = tab.locator(".vl-offer")
    expect(offer).to_have_text("About 90000 pictures.")
    tab.clock.install()
    tab.evaluate("fake.down = true")
    tab.locator(".vl-amount").fill("2")
    tab.clock.run_for(1000)
    expect(offer).to_contain_text("The server does not answer")
    tab.evaluate("fake.down = false")
    tab.clock.run_for(6000)
    expect(offer).to_have_text("About 60000 pictures.")
    tab.evaluate("fake.errors.offer = 'Choose a smaller model.'")
    tab.locator(".vl-amount").fill("4")
    tab.clock.run_for(1000)
    expect(offer).to_have_text("Choose a smaller model.")
    before = len(asked(tab, "offer"))
    tab.clock.run_for(20_000)
    assert len(asked(tab, "offer")) == before                               # what holds is not asked again


def test_the_note_that_pictures_are_fetched_first_goes_once_a_run_has_them(lab):
    tab = lab(before="fake.rows = [row(0, 0.1), row(10, null)]; fake.extra = { plan: { title: 'x', data: 'MNIST: handwritten digits', settings: [] } }")
    tab.evaluate("form.data = 'mnist'; emit('start-from', { data: 'mnist' })")
    expect(tab.locator(".vl-hero")).to_contain_text("Start downloads them first.")
    tab.evaluate("mine.add(RUN); choose(RUN)")
    expect(tab.locator(".vl-state")).to_have_text("Training")
    tab.evaluate("choose(null)")
    expect(tab.locator(".vl-hero")).to_contain_text("MNIST")
    expect(tab.locator(".vl-hero")).not_to_contain_text("Start downloads them first.")


def test_a_race_is_not_given_up_because_the_server_is_busy(lab):
    tab = lab(before="""localStorage.setItem('vitdemo-race', JSON.stringify({ race: 'r', kind: 'patch', question: 'Which?', a: 'one', b: 'other',
      minutes: 1, seeds: 1, data: 'cifar10', vote: 'a', looked: false, runs: [{ run: RUN, side: 'a', seed: 0 }] }));
      window.busy = true; const usual = server.ask; server.ask = (request) => request.question !== 'standing' ? usual(request) :
      (asked.push(request), busy ? { error: 'Many people are asking.', busy: true } : { rows: [], done: false, verdict: null })""")
    tab.evaluate("document.querySelector('.vl-runs').hidden = false; document.querySelector('.vl-race').closest('details').hidden = false")
    expect(tab.locator(".vl-race")).to_contain_text("Many people are asking.", timeout=60_000)
    assert tab.locator(".vl-race-bar").is_visible() and tab.get_by_role("button", name="Another race").count() == 0
    tab.evaluate("busy = false")
    expect(tab.locator(".vl-race")).not_to_contain_text("Many people are asking.", timeout=20_000)
    assert tab.evaluate("localStorage.getItem('vitdemo-race')")


def test_back_to_your_run_never_leads_to_the_recorded_one(lab):
    tab = following(lab)
    tab.evaluate("choose('recorded')")
    expect(tab.locator(".vl-state")).to_have_text("Training")
    tab.evaluate("choose(null)")
    tab.get_by_role("button", name="Back to your run").click()
    assert tab.evaluate("lab.id") == RUN


def test_a_refused_start_says_why_and_can_be_tried_again(lab):
    tab = lab(before="fake.errors.start = 'Your run is still going.'")
    go = tab.get_by_role("button", name="Start training")
    go.click()
    expect(tab.get_by_role("alert").first).to_have_text("Your run is still going.")
    tab.evaluate("fake.errors = {}")
    go.click()
    expect(tab.locator(".vl-status")).to_be_visible()


def test_every_setting_is_within_reach_checked_and_sent_only_where_it_differs(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    expect(tab.locator(".vl-checked")).to_have_text("A ViT of 10 parameters.")
    for summary in tab.locator(".vl-group:not([hidden]) summary").all():
        summary.click()
    batch, patch = tab.get_by_role("textbox", name="batch"), tab.get_by_role("textbox", name="patch")
    expect(batch).to_have_attribute("placeholder", "8")
    batch.fill("999")
    expect(tab.get_by_text("Give a number from 1 to 64.")).to_be_visible()
    batch.fill("16")
    patch.fill("2")
    tab.get_by_role("combobox", name="optimizer").select_option(label="adam")
    expect(tab.get_by_text("3 settings changed")).to_be_visible()
    tab.get_by_role("button", name="Start with these settings").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    assert asked(tab, "start")[0]["changes"] == {"batch": 16, "patch": [2, 2], "optimizer": "adam"}


def test_what_a_run_of_minutes_has_otherwise_than_its_recipe_stands_in_the_empty_field(lab):
    tab = lab(before="""const usual = server.ask; server.ask = async (request) => ({ ...await usual(request),
      ...(request.question === "offer" ? { by_clock: { batch: 12 } } : {}) })""")
    tab.locator(".vl-setup summary").first.click()
    for summary in tab.locator(".vl-group:not([hidden]) summary").all():
        summary.click()
    batch = tab.get_by_role("textbox", name="batch")
    expect(batch).to_have_attribute("placeholder", "12")
    tab.get_by_role("button", name="passes (epochs)").click()
    expect(batch).to_have_attribute("placeholder", "8")


def test_a_recipe_tells_reported_from_measured_and_brings_its_pictures_and_length(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    expect(tab.locator(".vl-recipe").nth(1)).to_contain_text(
        "62% of test pictures right after 3:00 with 1 thread, 511 images/s (mean of 2 runs, an AMD EPYC)")
    digits = tab.locator(".vl-recipe").filter(has_text="mnist")
    expect(digits).to_contain_text("Reported83% of test pictures right (by the source, not by us)")
    digits.get_by_role("radio").check()
    expect(tab.locator(".vl-sentence")).to_contain_text("passes over the pictures")
    expect(tab.locator(".vl-amount")).to_have_value("5")
    expect(tab.locator(".vl-hero")).to_contain_text("Start downloads them first.")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    sent = asked(tab, "start")[0]
    assert (sent["preset"], sent["data"], sent["epochs"]) == ("mnist", "mnist", 5) and "minutes" not in sent


def test_the_measurement_nearest_to_this_host_is_in_sight_and_the_others_unfold_without_a_choice(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    card = tab.locator(".vl-recipe").nth(1)
    expect(card.get_by_text("511 images/s")).to_be_visible()
    expect(card.get_by_text("1273 images/s")).to_be_hidden()
    card.get_by_text("1 more measurement").click()
    expect(card.get_by_text("75% of test pictures right after 3:00 with 2 threads, 1273 images/s (mean of 3 runs, an Intel Xeon)")).to_be_visible()
    expect(card.get_by_role("radio")).not_to_be_checked()


def test_passes_leave_the_recipe_to_the_server_which_knows_what_goes_with_the_pictures(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    tab.get_by_role("button", name="passes (epochs)").click()
    expect(tab.locator(".vl-sentence")).to_contain_text("passes over the pictures")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    sent = asked(tab, "start")[0]
    assert "preset" not in sent and "minutes" not in sent and sent["epochs"] >= 1


def test_a_start_right_after_the_choice_of_passes_takes_nothing_of_the_proposal_for_minutes_along(lab):
    tab = lab()
    expect(tab.locator(".vl-offer")).to_contain_text("pictures")
    tab.locator(".vl-setup summary").first.click()
    tab.evaluate("""() => { document.querySelector('[data-unit=epochs]').click(); document.querySelector('.vl-go').click(); }""")
    expect(tab.locator(".vl-status")).to_be_visible()
    sent = asked(tab, "start")[0]
    assert "preset" not in sent and "minutes" not in sent and sent["epochs"] >= 1


@pytest.mark.parametrize(("data", "recipe", "then"), [("f" * 32, "mnist", "f" * 32), ("f" * 32, "class", "f" * 32), ("cifar10", "mnist", "mnist"), ("mnist", "class", "cifar10")])
def test_a_recipe_brings_published_pictures_but_takes_nobodys_own_away(lab, data, recipe, then):
    tab = lab()
    tab.evaluate(f"emit('start-from', {{ start: '', title: '', data: {data!r}, dataTitle: 'My mugs', minutes: 1, freeze: false }})")
    tab.locator(".vl-setup summary").first.click()
    tab.locator(f".vl-recipe input[value={recipe}]").check()
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    assert (asked(tab, "start")[0]["data"], asked(tab, "start")[0]["preset"]) == (then, recipe)


def test_nothing_starts_while_a_setting_is_no_value_and_a_start_takes_no_shape_along(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    for summary in tab.locator(".vl-group:not([hidden]) summary").all():
        summary.click()
    tab.get_by_role("textbox", name="patch").fill("2")
    batch = tab.get_by_role("textbox", name="batch")
    batch.fill("nonsense")
    expect(batch).to_have_attribute("aria-invalid", "true")
    tab.locator(".vl-setup summary").first.click()                          # folded away
    tab.get_by_role("button", name="Start training").click()
    expect(batch).to_be_focused()
    assert asked(tab, "start") == []
    batch.fill("16")
    tab.get_by_role("combobox", name="Begin with").select_option("box")
    tab.get_by_role("button", name="Start fine-tuning").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    assert asked(tab, "start")[0]["changes"] == {"batch": 16} and asked(tab, "start")[0]["start"] == "box"


def test_pictures_for_the_film_are_uploaded_with_the_start_and_at_most_six(lab, photo):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    tab.locator("input[type=file][aria-label='Pictures for the attention film']").set_input_files([str(photo)] * 7)
    expect(tab.get_by_text("A film has at most 6 pictures.")).to_be_visible()
    expect(tab.locator(".vl-picks img")).to_have_count(6)
    tab.locator(".vl-picks").get_by_role("button").first.click()
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    assert asked(tab, "start")[0]["film"] == ["/uploads/photo.jpg"] * 5


def test_another_part_can_prepare_a_fine_tuning(lab):
    tab = lab()
    tab.evaluate("emit('start-from', { start: 'box', title: 'the model in the box', data: 'f'.repeat(32), dataTitle: 'My mugs', "
                 "minutes: 0.5, freeze: true })")
    expect(tab.locator(".vl-hero")).to_contain_text(
        "It learns from My mugs. It begins with the model in the box, whose encoder stays as it is.")
    tab.get_by_role("button", name="Start fine-tuning").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    sent = asked(tab, "start")[0]
    assert (sent["start"], sent["data"], sent["freeze"], sent["minutes"], sent["title"]) == ("box", "f" * 32, True, 0.5, "")


def test_what_a_run_can_begin_with_are_models_that_can_be_opened_and_a_race_stays_hidden(lab):
    runs = {name: name * 32 for name in "bcde"}
    race = {"race": "x", "kind": "patch", "question": "?", "a": "one", "b": "two", "minutes": 1, "seeds": 1, "data": "cifar10",
            "runs": [{"run": runs["e"], "side": "a", "seed": 0}]}
    tab = lab(before=f"""
        for (const id of {json.dumps(list(runs.values()))})
          localStorage.setItem('vitdemo-runs', JSON.stringify([id, ...JSON.parse(localStorage.getItem('vitdemo-runs') ?? '[]')]));
        localStorage.setItem('vitdemo-race', JSON.stringify({json.dumps(race)}));
        fake.state = 'finished';
        fake.entries['{runs["c"]}'] = {{ title: 'a CNN', can: {{ open: false, download: false, resume: false }},
          settings: {{ network: 'cnn' }} }};
        fake.entries['{runs["d"]}'] = {{ title: 'from a file', accuracy: null, imported: true, settings: {{}} }};""")
    tab.locator(".vl-setup summary").first.click()
    begin = tab.get_by_role("combobox", name="Begin with")
    expect(begin.locator("option")).to_have_count(5)
    assert sorted(begin.locator("option").all_inner_texts()[2:]) == ["from a file", "run b, 50.0%", "run e"]
    begin.select_option(label="from a file")
    expect(tab.locator(".vl-hero")).to_contain_text("It begins with from a file.")


def test_what_only_a_recipe_chose_to_begin_with_goes_with_it(lab):
    tab = lab()
    tab.locator(".vl-setup summary").first.click()
    begin, recipe = tab.get_by_role("combobox", name="Begin with"), lambda name: tab.locator(f".vl-recipe input[value='{name}']")
    recipe("tune").check()
    expect(begin).to_have_value("box")
    recipe("class").check()
    expect(begin).to_have_value("")
    expect(tab.get_by_role("button", name="Start training")).to_be_visible()
    begin.select_option("box")                                              # what a person chose stays
    recipe("tune").check()
    recipe("mnist").check()
    expect(begin).to_have_value("box")


def test_a_checkpoint_may_be_as_large_as_an_upload_and_is_not_measured_by_the_room_for_sets(lab):
    tab = lab(before="HELLO.limits.megabytes = 1; fake.errors.open = 'The server has seen it.'")
    tab.locator("#vl-checkpoint").set_input_files({"name": "six.safetensors", "mimeType": "application/octet-stream",
                                                   "buffer": bytes(6 * 10**6)})
    expect(tab.get_by_text("six.safetensors has 6 MB; at most 5 MB can be sent here.")).to_be_visible()
    tab.locator("#vl-checkpoint").set_input_files({"name": "two.safetensors", "mimeType": "application/octet-stream",
                                                   "buffer": bytes(2 * 10**6)})
    expect(tab.get_by_text("The server has seen it.")).to_be_visible()


def test_what_was_left_out_is_counted_and_pictures_that_are_there_twice_are_one_line(lab):
    tab = following(lab)
    tab.evaluate("fake.extra = { skipped: Array.from({ length: 100 }, (_, i) => i + '.txt'), skipped_count: 137, duplicates_count: 1 }")
    left = tab.locator(".vl-skipped")
    expect(left.locator("summary")).to_have_text("137 files were left out; 1 picture that was there already is counted once")
    expect(left.locator("p")).to_contain_text("99.txt, and 37 more")
    tab.evaluate("fake.extra = { skipped: [], skipped_count: 0, duplicates_count: 1200 }")
    expect(left.locator("summary")).to_have_text("1,200 pictures that were there already are counted once")


def test_the_countdown_runs_between_answers_and_bears_a_server_that_is_away(lab):
    tab = following(lab)
    tab.evaluate("fake.down = true")
    expect(tab.locator(".vl-say")).to_contain_text("A run goes on without this page")
    before = tab.locator(".vl-figure-left .vl-value").inner_text()
    expect(tab.locator(".vl-figure-left .vl-value")).not_to_have_text(before)
    expect(tab.locator(".vl-figure-right")).to_contain_text("50.0%")
    expect(tab.locator(".vl-figure-right")).to_contain_text("± 2.0")
    tab.evaluate("fake.down = false")
    expect(tab.locator(".vl-say")).to_contain_text("The server is back.")


def test_only_what_is_new_is_asked_for_and_charts_rest_where_nothing_is(lab):
    tab = following(lab)
    tab.evaluate("window.drawn = 0; new MutationObserver(() => drawn++).observe(document.querySelector('.vl-curves'), { childList: true })")
    many = len(asked(tab, "follow"))
    tab.wait_for_function("many => asked.filter((one) => one.question === 'follow').length > many + 2", arg=many)
    assert asked(tab, "follow")[-1] | {"log": 3, "film": 2} == asked(tab, "follow")[-1] and tab.evaluate("drawn") == 0
    tab.evaluate("fake.rows.push(row(30, null))")
    tab.wait_for_function("drawn === 1 && lab.rows.length === 4")


def test_a_resumed_run_takes_back_the_steps_after_its_last_look(lab):
    tab = following(lab)
    tab.evaluate("fake.rows.push(row(25, null), row(30, null))")
    tab.wait_for_function("lab.rows.length === 5")
    tab.evaluate("fake.rows.push(row(22, null), row(26, 0.6))")
    tab.wait_for_function("lab.rows.map((one) => one.step).join() === '0,10,20,22,26'")


def test_stop_and_go_on_and_open_and_new_run(lab):
    tab = following(lab)
    tab.get_by_role("button", name="Open this model in Explore").click()
    tab.wait_for_function("JSON.stringify(events) === JSON.stringify([['select', { run: RUN }]])")
    tab.get_by_role("button", name="Stop").click()
    expect(tab.locator(".vl-state")).to_have_text("Stopped")
    expect(tab.get_by_role("button", name="Stop")).to_be_hidden()
    tab.get_by_role("button", name="Go on training").click()
    expect(tab.locator(".vl-state")).to_have_text("Waiting")
    tab.evaluate("fake.state = 'failed'")
    expect(tab.locator(".vl-output")).to_have_text("last words")
    tab.locator(".vl-status").get_by_role("button", name="New run").click()
    expect(tab.locator(".vl-amount")).to_be_focused()
    tab.get_by_role("button", name="Back to your run").click()
    expect(tab.locator(".vl-state")).to_have_text("Failed")


def test_a_run_that_is_gone_is_let_go_with_a_sentence(lab):
    tab = following(lab)
    tab.evaluate("fake.errors.follow = 'That run is no longer on this computer.'")
    expect(tab.locator(".vl-say")).to_contain_text("That run is no longer on this computer.")
    expect(tab.locator(".vl-hero")).to_be_visible()
    assert tab.evaluate("mine.list()") == []


def test_arrows_on_the_curves_move_the_film_and_every_picture_with_it(lab):
    tab = following(lab)
    expect(tab.locator(".vl-count")).to_contain_text("1 of 2 right after 0:20")
    tab.locator(".vl-curves").focus()
    tab.keyboard.press("Home")
    expect(tab.locator(".vl-count")).to_contain_text("right before any training")
    assert tab.evaluate("lab.index") == 0
    tab.evaluate("fake.rows.push(row(40, 0.6)); fake.frames.push(frame(40))")
    tab.wait_for_function("lab.frames.length === 3")
    assert tab.evaluate("lab.index") == 0                                   # whoever looks back is left there
    tab.keyboard.press("End")
    tab.evaluate("fake.rows.push(row(50, 0.7)); fake.frames.push(frame(50))")
    tab.wait_for_function("lab.index === 3")
    expect(tab.locator(".vl-watched li").first).to_contain_text("right")
    expect(tab.locator(".vl-watched li").nth(1)).to_contain_text("it is: blue")


def test_a_run_that_comes_without_watched_pictures_has_no_empty_place_for_them(lab):
    tab = following(lab)
    expect(tab.locator(".vl-watched")).to_be_visible()
    tab.evaluate("SCENE.watched = []; fake.frames.forEach((one) => one.watched = []); choose(RUN)")
    expect(tab.get_by_text("Inside the first layer").last).to_be_visible()
    expect(tab.locator(".vl-watched")).to_be_hidden()


def test_the_way_through_the_page_names_what_is_there_stays_in_sight_and_takes_one_there(lab):
    tab = following(lab)
    way = tab.get_by_role("navigation", name="Parts of this page")
    expect(way.get_by_role("button", name="How it learns")).to_be_visible()
    way.get_by_role("button", name="What it got wrong").press("Enter")
    expect(tab.locator(".vl-section summary", has_text="What it got wrong")).to_be_focused()
    expect(way).to_be_in_viewport()
    assert tab.locator(".vl-section summary", has_text="What it got wrong").bounding_box()["y"] >= way.bounding_box()["height"] - 1
    tab.evaluate("choose(null)")
    expect(way).to_be_hidden()


def test_what_was_sent_is_text_and_never_markup(lab):
    tab = following(lab)
    tab.evaluate("fake.extra = { skipped: ['<img src=x onerror=events.push(1)>.png'], "
                 "plan: { title: '<b>${1+1}</b>', settings: [['<i>', '<script>']], model: '', data: '' } }; fake.rows = []")
    expect(tab.locator(".vl-run-name")).to_contain_text("<b>${1+1}</b>")
    expect(tab.locator(".vl-skipped summary")).to_contain_text("1 file was left out")
    assert tab.evaluate("events") == [] and tab.complaints == []


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_page(lab, width):
    tab = following(lab, width=width)
    expect(tab.locator(".vl-plot")).to_have_count(2)
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    tab.evaluate("choose(null)")
    tab.locator(".vl-setup summary").first.click()
    expect(tab.locator(".vl-checked")).not_to_be_empty()
    assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_no_template_syntax_that_the_page_would_run_stands_in_the_markup_or_the_styles():
    for path in Path(front.FOLDER, "lab_front").glob("*"):
        if path.suffix in (".html", ".css"):
            assert not re.search(r"\$\{|\{\{", path.read_text(encoding="utf-8")), path.name


def test_a_run_on_the_page_is_started_followed_found_again_after_a_refresh_and_opened(visit):
    tab = visit()
    tab.get_by_role("tab", name="Train").click()
    tab.locator(".vl-amount").fill("0,05")
    tab.get_by_role("button", name="Start training").click()
    state = tab.locator(".vl-state")
    expect(state).to_have_text(re.compile("Waiting|Getting ready|Training"))
    tab.reload()
    tab.get_by_role("tab", name="Train").click()
    expect(state).to_have_text("Finished", timeout=120_000)
    expect(tab.locator(".vl-figure-right")).to_contain_text("test pictures right")
    expect(tab.locator(".vl-watched li")).to_have_count(16)
    tab.get_by_role("button", name="Open this model in Explore").click()
    expect(tab.get_by_role("tab", name="Explore")).to_have_attribute("aria-selected", "true")
    assert tab.complaints == []

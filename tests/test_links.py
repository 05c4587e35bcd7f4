"""Links that open a prepared state: any address is safe, what is sound of it holds, and what is copied opens the same again."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import asdict

import pytest
from conftest import WAIT, drawn, upload, watched
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect

from vitdemo import front, hub, looking
from vitdemo.runs import RunFolder, Scheduler
from vitdemo.ui import analysis, links
from vitdemo.ui.links import Known, Link
from vitdemo.ui.look import Look
from vitdemo.ui.models import RECORDED_FOLDER, Models

KNOWN = Known(links.examples(), {"box", "recorded", "zoo:dino-s16"})
COUNTS = st.integers(1, 999)
NAMES = st.text(min_size=1, max_size=100).filter(str.isprintable)
SOUND = {
    "example": st.sampled_from(sorted(KNOWN.examples)), "model": st.sampled_from(sorted(KNOWN.models)), "size": st.integers(1, 9999), "fit": st.sampled_from(looking.FITS),
    "tab": st.sampled_from(links.TABS), "kind": st.sampled_from(["attention", "mean-attention", "rollout", "relevance", "occlusion", "similarity", "colours", "norms"]),
    "layer": COUNTS, "head": COUNTS | st.sampled_from(["mean", "min", "max"]), "token": st.sampled_from(["cls", "dist", "mean", "7", "reg4", "r3c5", "r37c12"]),
    "direction": st.sampled_from(["reads", "read-by"]), "fusion": st.sampled_from(["mean", "min", "max"]), "discard": st.integers(0, 95), "klass": NAMES, "second": NAMES,
    "patches": st.sampled_from(["all", "foreground", "background"]), "opacity": st.integers(0, 100), "colours": st.sampled_from(front.COLOURS), "grid": st.booleans(), "own": st.booleans(),
    "stretch": st.booleans(), "compare": st.sampled_from(links.BESIDE), "flicker": st.booleans(), "open": st.sampled_from(links.SHEETS), "run": st.just("recorded"), "look": st.integers(1, 9999),
    "picture": NAMES,
}
NONSENSE = {
    "example": "../../etc/passwd", "model": "hub:some/one", "size": "-1", "fit": "squash", "tab": "/", "kind": "<b>", "layer": "0", "head": "1e3", "token": "r0c1", "direction": "up", "fusion": "sum",
    "discard": "96", "class": "a\nb", "second": "", "patches": "none", "opacity": "٣", "colours": "jet", "grid": "true", "own": "2", "stretch": " 1", "compare": "pinned", "flicker": "01",
    "open": "javascript:alert(1)", "run": "0123456789abcdef", "look": "9" * 400, "picture": "x" * 101,
}


@pytest.fixture
def models(tiny, tmp_path):
    return Models(tiny, Scheduler(tmp_path / "runs", queue=2))


@given(st.text() | st.lists(st.tuples(st.sampled_from([*links.PARAMETERS, "present", "__theme", ""]), st.text())).map(lambda pairs: "&".join("=".join(pair) for pair in pairs)))
def test_any_query_at_all_gives_a_link_with_nothing_but_sound_parts(query):
    link = links.read(query, KNOWN)
    assert isinstance(link, Link) and links.read("?" + link.query(), KNOWN) == link


@given(st.none() | st.integers() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_what_is_no_text_is_an_empty_link(query):
    assert links.read(query, KNOWN) == Link()


@given(st.fixed_dictionaries({}, optional=SOUND))
def test_a_link_that_was_written_is_read_as_it_was(wanted):
    link = Link(**wanted)
    assert links.read(link.query(), KNOWN) == link and link.to_json() == wanted


@pytest.mark.parametrize("name", links.PARAMETERS)
def test_one_wrong_part_is_left_out_and_the_others_hold(name):
    sound = Link(example="dog", layer=3, head="max", token="r3c5") if name not in ("example", "layer", "head", "token") else Link(kind="norms", opacity=7)
    assert links.read(f"{name}={urllib.parse.quote(NONSENSE[name])}&{sound.query()}", KNOWN) == sound


def test_of_a_part_that_is_there_twice_the_first_sound_one_counts():
    assert links.read("layer=0&layer=2&layer=3&class=cat&class=dog", KNOWN) == Link(layer=2, klass="cat")


def test_a_flood_of_parts_and_an_endless_part_are_nothing():
    assert links.read("&".join(["layer=3"] * 101), KNOWN) == Link()
    assert links.read("picture=" + "x" * 10**6, KNOWN) == links.read("%" * 5000, KNOWN) == Link()


def test_readable_links_say_what_they_open():
    link = links.read("?example=cat&model=zoo:dino-s16&layer=3&head=2&token=r3c5&class=polar+bear&present=1&__theme=dark", KNOWN)
    assert link == Link(example="cat", model="zoo:dino-s16", layer=3, head=2, token="r3c5", klass="polar bear")
    assert link.query() == "example=cat&model=zoo:dino-s16&layer=3&head=2&token=r3c5&class=polar+bear"
    assert Link(run="recorded").opens == "train" and Link(tab="explore").opens == Link().opens == ""


def test_the_browser_and_the_server_know_the_same_names():
    script = front.script()
    (listed,) = re.findall(r"const LINKED = (\[[^\]]+\])", script)
    assert tuple(json.loads(listed)) == links.PARAMETERS and {("klass" if name == "class" else name) for name in links.PARAMETERS} == set(asdict(Link()))
    assert set(re.findall(r'panel\(\{\s*key: "(\w+)"', script)) == set(links.SHEETS)
    (kinds,) = re.findall(r"const KINDS = (\[[^\]]+\])", script)
    assert {kind.replace(" ", "-") for kind in json.loads(kinds)} == {kind for kind in SOUND["kind"].elements}


def test_a_link_names_ones_own_runs_only_where_the_browser_knows_them(models):
    asked = links.asked({"query": "model=0123456789abcdef&layer=2", "mine": []}, models)
    own = links.asked({"query": "model=0123456789abcdef&layer=2", "mine": ["0123456789abcdef", 7, None]}, models)
    assert asked == Link(layer=2) and own == Link(model="0123456789abcdef", layer=2)
    assert analysis.look_for(own, models) == (Look(), "")                    # gone since: the model in the box
    assert links.asked(None, models) == links.asked({"query": 1, "mine": "x"}, models) == Link()


def test_a_model_that_is_not_on_this_computer_is_offered_and_not_fetched(models, monkeypatch):
    monkeypatch.setattr(hub, "cached", lambda where: None)
    monkeypatch.setattr(hub, "fetch", lambda *args, **more: pytest.fail("a link fetches nothing"))
    assert analysis.look_for(Link(model="zoo:dino-s16", size=384), models) == (Look(), "zoo:dino-s16")


def test_a_size_is_one_that_the_model_has(models):
    assert analysis.look_for(Link(model="recorded", size=48, fit="pad"), models) == (Look("recorded", 48, "pad"), "")
    assert analysis.look_for(Link(model="recorded", size=47), models) == analysis.look_for(Link(model="recorded", size=32), models) == (Look("recorded"), "")


def test_examples_are_known_by_what_they_show_and_pictures_of_ones_own_have_no_name(tmp_path, photo):
    same, other = tmp_path / "holiday.jpg", tmp_path / "cat.jpg"
    same.write_bytes(KNOWN.examples["coffee"].read_bytes())
    other.write_bytes(photo.read_bytes())
    named = [links.names(picture, model) for picture, model in
             ((str(same), "box"), (str(other), "zoo:dino-s16"), (None, "hub:some/one"), (str(tmp_path / "gone.jpg"), "0123456789abcdef"))]
    assert named == [{"example": "coffee", "model": "box"}, {"example": "", "model": "zoo:dino-s16"}, {"example": "", "model": ""}, {"example": "", "model": ""}]


HOSTILE = ["example=" + "A" * 9000, "%00%ff=%fe&layer=%F0%9F%98%80", "tab=<script>alert(1)</script>", "model=../../../etc/passwd&example=file:///etc/passwd", "&".join(f"layer={i}" for i in range(2000)), "=&=&;&&?#%"]


def test_hostile_addresses_get_the_page_and_hostile_questions_get_a_link(page):
    url, app = page
    plain = urllib.request.urlopen(url, timeout=20).read()
    (viewer,) = [block._id for block in app.blocks.blocks.values() if getattr(block, "elem_id", None) == "vd-viewer"]
    for query in HOSTILE:
        shown = urllib.request.urlopen(f"{url}?{urllib.parse.quote(query, safe='=&%?;')}", timeout=20)
        assert shown.status == 200 and b"<script>alert(1)" not in (content := shown.read()) and abs(len(content) - len(plain)) < 30000
    for asked in [*({"query": query, "mine": []} for query in HOSTILE), None, [], 7, {"query": {"a": 1}, "mine": {"b": 2}}]:
        body = json.dumps({"data": asked, "component_id": viewer, "fn_name": "link", "session_hash": "x"}).encode()
        answer = urllib.request.urlopen(urllib.request.Request(f"{url}gradio_api/component_server/", body, {"Content-Type": "application/json"}), timeout=20)
        told = json.loads(answer.read())
        assert (told["example"], told["model"], told["opens"]) == ("cat", "box", False), asked


def asked_of(tab):
    """What the page asks of the server from now on, by what it does: linked, or events."""
    posts = []
    tab.on("request", lambda request: posts.append("link" if '"fn_name":"link"' in (request.post_data or "") else "event" if "/queue/join" in request.url else "") if request.method == "POST" else None)
    return posts


def test_links_open_what_they_say_once_and_a_plain_page_asks_for_nothing(visit, page):
    url = page[0]
    tab = visit()
    posts = asked_of(tab)
    tab.reload()
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    expect(tab.locator(".vm-sides option, .vm-about dt").first).to_be_attached()
    assert "link" not in posts and "event" not in posts

    posts.clear()
    tab.add_init_script("""(() => { window.seen = new Set(); const look = () => { const shown = document.querySelector('.vd-body'), photo = document.querySelector('#vd-picture img');
        if (shown && !shown.hidden) seen.add(document.querySelector('.vd-layer-name').textContent);
        if (photo && getComputedStyle(photo).visibility === 'visible') seen.add(photo.src.split('/').pop());
        requestAnimationFrame(look); }; look(); })()""")
    tab.goto(f"{url}?example=dog&layer=2&head=1&token=r2c4&opacity=80&colours=gray&grid=0&compare=twin&open=facts&size=9&kind=nonsense")
    expect(tab.locator(".vd-layer-name")).to_have_text("Layer 2 of 3")
    expect(tab.locator(".vd-second figcaption")).to_contain_text("untrained twin")
    assert tab.locator(".vd-chip[data-token=patch]").inner_text().startswith("row 2, column 4") and tab.locator(".vd-chip[data-head='0']").get_attribute("aria-pressed") == "true"
    assert (tab.locator(".vd-opacity").input_value(), tab.locator(".vd-colours").input_value(), tab.locator(".vd-grid").is_checked()) == ("80", "gray", False)
    expect(tab.get_by_role("tab", name="Head facts")).to_have_attribute("aria-selected", "true")
    assert set(tab.evaluate("[...seen]")) == {"Layer 2 of 3", "dog.jpg"} and posts.count("link") == 1 and posts.count("event") == 2     # the link, and one analysis

    tab.locator(".vd-layer").fill("3")
    tab.get_by_role("button", name="frog").first.click()
    expect(tab.locator("#vd-picture img")).to_have_attribute("src", re.compile("frog"))
    expect(tab.locator(".vd-main")).to_have_attribute("aria-label", re.compile("layer 3"))
    assert tab.url.endswith("kind=nonsense") and tab.evaluate("history.length") <= 3
    assert tab.complaints == []


def test_a_link_of_nothing_but_nonsense_opens_the_page_as_it_is(visit, page):
    plain = visit()
    tab = visit(page[0] + "?" + "&".join(f"{name}={urllib.parse.quote(value)}" for name, value in NONSENSE.items()) + "&head=<img src=x onerror=alert(1)>&model=zoo:<b>x</b>")
    assert tab.locator(".vd-readout").inner_text() == plain.locator(".vd-readout").inner_text() and drawn(tab) == drawn(plain)
    assert tab.get_by_role("tab", name="Explore").get_attribute("aria-selected") == "true" and tab.complaints == []


def test_a_copied_link_opens_the_same_view_and_says_what_stays_behind(visit, page, photo):
    tab = visit(page[0] + "?example=ship&__theme=dark&__sign=ticket", permissions=["clipboard-read", "clipboard-write"])
    copy, told = tab.get_by_role("button", name="Copy link to this view"), tab.locator(".vd-copy [role=status]")
    tab.locator(".vd-chip[data-kind=relevance]").click()
    tab.locator(".vd-klass").select_option(label="green")
    tab.locator(".vd-klass-two").select_option(label="red")
    expect(tab.locator(".vd-second")).to_be_visible()
    copy.focus()
    tab.keyboard.press("Enter")
    expect(told).to_have_text("Copied the link to What speaks for green.")
    link = tab.evaluate("navigator.clipboard.readText()")
    assert link == page[0] + "?example=ship&kind=relevance&class=green&second=red&__theme=dark"
    again = visit(link)
    expect(again.locator(".vd-readout")).to_have_text(tab.locator(".vd-readout").inner_text(), use_inner_text=True)
    assert drawn(again) == drawn(tab) and drawn(again, ".vd-other") == drawn(tab, ".vd-other") and again.complaints == []

    upload(again, "cat.jpg", photo.read_bytes(), "image/jpeg")
    expect(again.locator("#vd-picture img")).to_have_attribute("src", re.compile("cat.jpg"))
    again.evaluate("""() => { Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false; }""")    # as over plain http
    again.get_by_role("button", name="Copy link to this view").click()
    field = again.get_by_role("textbox", name="The link")
    expect(field).to_be_focused()
    assert re.fullmatch(re.escape(page[0]) + r"\?kind=relevance&class=\w+&second=red&__theme=dark", field.input_value())
    expect(again.locator(".vd-copy [role=status]")).to_contain_text("This picture stays with you: the link opens the example cat instead.")
    again.evaluate("document.body.classList.add('vd-present')")
    again.locator(".vd-copy button").first.evaluate("button => button.click()")
    expect(again.locator(".vd-address").first).to_have_value(re.compile("&present=1&__theme=dark$"))


def test_a_link_opens_a_look_of_the_recorded_run(browser, page):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    tab, query = watched(context), "?tab=train&run=recorded&look=5&picture=airplane&layer=2&head=3"
    tab.goto(page[0] + query)
    expect(tab.locator(".vl-when")).to_contain_text(f"Look 5 of {len(RunFolder(RECORDED_FOLDER).frames()[0])}:", timeout=WAIT)
    expect(tab.locator(".vl-film-main")).to_have_attribute("aria-label", re.compile("airplane: Layer 2, head 3"))
    tab.get_by_role("button", name="Copy link to this look").click()
    expect(tab.locator(".vl-film .vd-copy [role=status]")).to_have_text("Copied the link to Layer 2, head 3, look 5.")
    assert tab.evaluate("navigator.clipboard.readText()") == page[0] + query and tab.complaints == []
    context.close()

"""The report: one file that holds what it says, asks nobody, keeps every name as text, and stays within its limit."""

import json
import re
import time
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from conftest import cell_colours, colours_of, drawn, seeded, slide, watched
from playwright.sync_api import Page, expect

from vitdemo import answers, checkpoint, front, report as report_module
from vitdemo.explain import Explanation, explain
from vitdemo.payload import payload
from vitdemo.report import canonical, report

HOSTILE = ("</script><img src=x onerror=window.hit=1>", "\u2028$name ${window.hit=1} $$ \"q\" 'q' <!-- &amp; \\u003c", "]]><svg onload=window.hit=1>\u2029\x00")
MISSING = "This is a saved report: what was not in it when it was saved needs the program."


@pytest.fixture(scope="module")
def result(tiny, photo) -> Explanation:
    return explain(photo, tiny)


def hostile(tiny: checkpoint.Loaded) -> checkpoint.Loaded:
    return checkpoint.Loaded(tiny.model, HOSTILE, tiny.preprocessing, {}, "<i>model</i> $title $data </title>")


def data_of(page: str) -> dict:
    """What the page carries."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def left_out(page: str) -> list[str]:
    """What it says is not in it."""
    return re.search(r"<p>Left out, because the file would grow too large or take too long to make: (.*?)\.</p>", unescape(page))[1].split("; ")


def test_everything_the_viewer_may_ask_of_a_small_model_is_inside_and_equals_the_answers(result):
    held, twin = data_of(report(result, about="About it.")), result.twin()
    assert held["value"] == json.loads(json.dumps(payload(result, key="picture", about="About it.")))
    found = held["answers"]
    assert found[canonical("picture", "facts")] == answers.facts(result) and found[canonical("picture", "embedding")] == answers.embedding(result.loaded)
    assert found[canonical("picture", "twin")]["reads"] == json.loads(json.dumps(payload(twin, key="twin")["reads"]))
    for key, one in (("picture", result), ("twin", twin)):
        for token in range(16):
            assert found[canonical(key, "token", token=token)] == answers.token(one, token)
        for up_to in (1, 2, 3):
            assert found[canonical(key, "rollout", up_to=up_to, fusion="mean", discard=0)] == answers.rollout(one, up_to=up_to)
        for klass in range(3):
            assert found[canonical(key, "relevance", klass=klass)] == answers.relevance(one, klass)
    assert all(found[canonical("picture", "occlusion", klass=klass)] == answers.occlusion(result, klass) for klass in range(3))
    for key, one in (("picture", result), ("twin", twin)):
        assert found[canonical(key, "norms")] == answers.norms(one) and found[canonical(key, "colours", part="foreground")] == answers.colours(one, "foreground")
        assert all(found[canonical(key, "similarity", token=token)] == answers.similarity(one, token) for token in range(16))
    assert len(found) == 3 + 2 * (16 + 3 + 3) + 3 + 2 * (1 + 3 + 16)


def test_it_says_which_model_when_and_what_needs_the_program(result):
    page = report(result)
    name, share = result.top()[0]
    weights = sum(p.numel() for p in result.loaded.model.parameters())
    assert f"<title>{name}, {share:.0%}</title>" in page and f"{weights:,} parameters, 3 layers of 2 heads, 5 × 3 patches, 16 tokens" in page
    assert time.strftime("%Y-%m-%d") in page and "testing maps and patch surgery need the program" in page and "Left out" not in page


def test_it_says_where_the_model_comes_from_and_shows_no_fact_of_the_wrong_kind(tiny, photo):
    facts = {"data": "a <b>&amp; b", "training_pictures": 47500, "seconds": 3135.2, "hardware": "AMD EPYC", "test_accuracy": 0.8412, "validation_accuracy": "high"}
    page = report(explain(photo, replace(tiny, provenance=facts)))
    assert "<p>Trained on a &lt;b&gt;&amp;amp; b, 47,500 training pictures, 3,135 seconds, AMD EPYC, 84.1% of its test pictures right.</p>" in page
    odd = report(explain(photo, replace(tiny, provenance={"data": ["x"], "training_pictures": True, "seconds": None, "hardware": {"x": 1}, "test_accuracy": "<i>"})))
    assert "rained on" not in odd.split("</header>")[0] and "&lt;i&gt;" not in odd
    assert len(report(explain(photo, replace(tiny, provenance={"hardware": "h" * 10**5})))) < len(page) + 1000


def test_half_a_letter_in_a_name_does_not_stop_the_file(tiny, photo):
    page = report(explain(photo, replace(tiny, name="model\ud800", classes=("a\udcff", "b", "c"))), about="\ud800")
    assert b"model?" in page.encode() and data_of(page)["value"]["knows"][0] == "a\udcff"


def test_the_shell_holds_no_address_and_forbids_every_other_source(result):
    shell = report(result)
    assert "default-src 'none'" in shell
    assert not re.search(r"""(src|href|action|data)\s*=\s*["']?(https?:)?//""", shell) and "@import" not in shell
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", shell)
    assert "</script" not in front.script() and "<!--" not in front.script() and "</style" not in front.style()


def test_hostile_names_neither_close_the_script_nor_leave_the_json_nor_fill_the_template(tiny, photo):
    page = report(explain(photo, hostile(tiny)), about="</script><b>$script")
    assert page.count("</script>") == report(explain(photo, tiny)).count("</script>") and "<img" not in page and "<svg onload" not in page
    held = data_of(page)
    assert held["value"]["knows"] == list(HOSTILE) and held["value"]["about"] == "</script><b>$script" and held["value"]["model"] == "<i>model</i> $title $data </title>"
    assert "\u2028" not in page.split("<body>")[1].split("<script type")[1] and "&lt;i&gt;model&lt;/i&gt; $title $data" in page


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_the_limit_is_kept_and_what_was_left_out_is_said(result, share):
    whole, bare = len(report(result).encode()), len(report(result, limit=0).encode())
    limit = round(bare + share * (whole - bare))
    page = report(result, limit=limit)
    assert bare < len(page.encode()) <= limit
    left = left_out(page)
    found = data_of(page)["answers"]
    assert canonical("picture", "facts") in found                           # the most wanted first
    most_read = [0, *(1 + np.argsort(-result.attention.mean((0, 1)).ravel()))]
    for key, what in (("picture", "tokens (kept: those before the patches, then the patches that are read most)"), ("twin", "tokens of the twin")):
        held = [canonical(key, "token", token=int(i)) in found for i in most_read]
        missing = 16 - sum(held)
        assert held == sorted(held, reverse=True) and (f"{missing} of 16 {what}" in left) == (missing > 0)
    assert len(left) == len(set(left)) and sum("16 tokens" in one for one in left) <= 2


def test_a_part_that_fits_is_kept_also_when_a_larger_one_before_it_did_not(result, monkeypatch):
    whole = len(report(result).encode())
    monkeypatch.setattr(answers, "token", lambda found, index: {"large": "x" * whole})
    page = report(result, limit=whole)
    found = data_of(page)["answers"]
    assert not any('["question","token"]' in key for key in found) and canonical("twin", "relevance", klass=0) in found
    assert [one.split(" (")[0] for one in left_out(page)] == ["16 of 16 tokens", "16 of 16 tokens of the twin"]


def test_the_bare_viewer_is_all_that_is_left_where_nothing_fits(result):
    page = report(result, limit=1000)
    assert data_of(page)["answers"] == {} and data_of(page)["value"]["reads"] and page.count("Left out") == 1
    for part in ("head facts", "the untrained twin", "3 of 3 layers of rollout", "3 of 3 classes of relevance", "3 of 3 classes of occlusion",
                 "filters and positions", "3 of 3 layers of the twin's rollout", "3 of 3 classes of the twin's relevance", "16 of 16 tokens of the twin"):
        assert part in left_out(page)


def test_many_tokens_stay_under_the_limit_and_are_not_computed_in_vain(photo, monkeypatch):
    result = explain(photo, seeded(image=(96, 160), depth=6))               # 24 x 40 patches: one token's answer is 62 kB
    asked = []
    monkeypatch.setattr(answers, "token", lambda found, index, token=answers.token: asked.append(index) or token(found, index))
    monkeypatch.setattr(answers, "occlusion", lambda found, klass: pytest.fail("960 passes over 961 tokens"))
    start = time.process_time()
    page = report(result, limit=2_500_000)
    assert 2_300_000 < len(page.encode()) <= 2_500_000 and f"{961 - len(asked) + 2} of 961 tokens (kept" in page and time.process_time() - start < 20
    assert 3 < len(asked) < 20                                              # the last of the picture's and the first of the twin's were too large
    assert asked[:2] == [0, 1 + int(result.attention.mean((0, 1)).argmax())]


def test_a_heavy_model_leaves_occlusion_out_and_keeps_relevance_for_few_classes(result, monkeypatch):
    monkeypatch.setattr(report_module, "HEAVY", 10)
    page = report(result)
    found = data_of(page)["answers"]
    assert left_out(page) == ["1 of 3 classes of relevance", "3 of 3 classes of occlusion", "2 of 3 classes of the twin's relevance"] and not any('occlusion' in key for key in found)
    best = int(result.probabilities.argmax())
    assert [canonical("twin", "relevance", klass=k) in found for k in range(3)] == [k == best for k in range(3)]
    last = int(result.probabilities.argmin())
    assert [canonical("picture", "relevance", klass=k) in found for k in range(3)] == [k != last for k in range(3)]


@pytest.mark.parametrize("changes", [{"classes": 0}, {"pool": "mean", "class_token": False}, {"registers": 2}, {"positions": "none"}])
def test_every_kind_of_model_has_a_report(changes, photo):
    page = report(explain(photo, seeded(**changes)))
    found = data_of(page)["answers"]
    assert any('"relevance"' in key for key in found) == ("classes" not in changes) == ("no classes, as it has no head, 5 × 3 patches" not in page)
    assert (found[canonical("picture", "embedding")]["positions"] is None) == ("positions" in changes)


# In a browser, from a file, with the network off.

@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report as a file, offline; what the browser complains of, and every request but the file's own, is collected."""
    contexts = []

    def open_report(text: str, **options) -> Page:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, **options)
        contexts.append(context)
        tab = watched(context)
        tab.goto(path.as_uri())
        expect(tab.locator(".vd-verdict")).not_to_be_empty()
        tab.alone = lambda: [url for url in tab.asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()] and tab.complaints == []
        return tab

    yield open_report
    for context in contexts:
        context.close()


def bare(tab: Page) -> None:
    """Only the map's colours on the picture: no grid lines, nothing shining through, no marks."""
    slide(tab, ".vd-opacity", 100)
    tab.locator(".vd-grid").uncheck()


def shows(tab: Page, vector: np.ndarray, high: float, selector: str = ".vd-main") -> bool:
    """Whether a canvas shows a map's patches (15,) in the right colours."""
    return bool(np.abs(cell_colours(tab, selector) - colours_of(vector, high)).max() <= 3)


def test_a_report_opened_from_a_file_answers_from_inside(opened, result):
    tab = opened(report(result, about="A tiny one."))
    bare(tab)
    expect(tab.locator(".vd-verdict")).to_contain_text(result.top()[0][0])
    assert tab.locator(".vd-top li").count() == 3 and tab.locator(".vd-actions").is_hidden()
    joined = result.reads()[2, :, 1:].mean(0)                               # has a scale of its own
    assert shows(tab, joined, joined.max())

    tab.locator(".vd-main").click(position={"x": tab.locator(".vd-main").bounding_box()["width"] * 0.7, "y": tab.locator(".vd-main").bounding_box()["height"] * 0.5})
    tab.mouse.move(0, 0)
    expect(tab.locator(".vd-readout")).to_contain_text("row 2, column 4 reads")
    tab.get_by_role("button", name="head 2", exact=True).first.click()
    token = 1 + 1 * 5 + 3
    read = result.reads(token)[2]
    found, expected = cell_colours(tab), colours_of(read[1, 1:], read[:, 1:].max())
    others = [i for i in range(15) if i != token - 1]                       # the chosen patch has a frame
    assert np.abs(found[others] - expected[others]).max() <= 3
    tab.get_by_role("button", name="who reads it").click()
    column = result.read_by(token)[2]
    assert np.abs(cell_colours(tab)[others] - colours_of(column[1, 1:], column[:, 1:].max())[others]).max() <= 3

    for kind, vector in (("Rollout", result.rollout()), ("Class relevance", result.relevance(result.top()[0][0])), ("Mean attention", result.reads().mean((0, 1)))):
        tab.get_by_role("button", name=kind, exact=True).click()
        expect(tab.locator(".vd-readout")).not_to_contain_text("Asking")
        assert shows(tab, vector[1:], vector[1:].max()), kind
    tab.get_by_role("button", name="Occlusion", exact=True).click()
    expect(tab.locator(".vd-readout")).to_contain_text("loses when a patch is hidden")
    assert tab.alone()


def test_a_report_shows_similarity_colours_and_norms_also_of_an_averaging_model_without_a_head(opened, photo):
    result = explain(photo, seeded(classes=0, pool="mean", class_token=False))
    tab = opened(report(result))
    for name, words in (("Similarity", "Similarity to the average patch: most alike"), ("Norms", "Length after layer 3 of 3: "), ("Colours", "Feature colours: the components hold")):
        tab.get_by_role("button", name=name, exact=True).click()
        expect(tab.locator(".vd-readout")).to_contain_text(words)
    tab.get_by_role("button", name="foreground", exact=True).click()
    expect(tab.locator(".vd-readout")).to_contain_text("taken for foreground")
    tab.locator(".vd-compare").select_option("twin")
    expect(tab.locator(".vd-readout")).to_contain_text("a colour does not mean the same in both")
    tab.get_by_role("button", name="Norms", exact=True).click()
    expect(tab.locator(".vd-readout")).to_contain_text("The untrained twin: Length after layer 3 of 3")
    tab.locator(".vd-main").click(position={"x": 20, "y": 100})
    expect(tab.locator(".vd-readout")).to_contain_text("The untrained twin: Similarity to the patch in row")
    assert tab.alone()


def test_a_reports_twin_and_panels_answer_from_inside(opened, result):
    tab, twin = opened(report(result)), result.twin()
    bare(tab)
    tab.get_by_role("button", name="Rollout", exact=True).click()
    tab.locator(".vd-compare").select_option("twin")
    expect(tab.locator(".vd-second figcaption")).to_contain_text(f"the untrained twin: {twin.top()[0][0]} ")
    expect(tab.locator(".vd-readout")).to_contain_text("The untrained twin: Rollout")
    vectors = [one.rollout()[1:] for one in (result, twin)]
    high = max(vector.max() for vector in vectors)
    assert shows(tab, vectors[0], high) and shows(tab, vectors[1], high, ".vd-other")
    tab.get_by_role("button", name="Attention", exact=True).click()
    tab.locator(".vd-token-chips button").first.click()
    expect(tab.locator(".vd-readout")).to_contain_text("The untrained twin: Layer 3")

    titles = tab.get_by_role("tab").all_inner_texts()
    assert "Head facts" in titles and "Filters and positions" in titles and not {"Believe it or test it", "Take it home"} & set(titles)
    tab.get_by_role("tab", name="Head facts").click()
    expect(tab.locator("#vd-sheet-facts circle")).to_have_count(6)
    expect(tab.locator("#vd-sheet-facts")).to_contain_text("even attention would give")
    tab.get_by_role("tab", name="Filters and positions").click()
    tab.wait_for_function("[...document.querySelectorAll('#vd-sheet-embedding img')].length > 3 && [...document.querySelectorAll('#vd-sheet-embedding img')].every((i) => i.complete && i.naturalWidth > 0)")
    tab.get_by_role("tab", name="Layer by layer").click()
    expect(tab.locator("#vd-sheet-lens")).to_contain_text("After layer 3")
    assert tab.alone()


def test_what_is_not_inside_is_said_in_a_sentence_and_the_rest_still_works(opened, result):
    tab = opened(report(result))
    tab.get_by_role("button", name="Rollout", exact=True).click()
    tab.locator(".vd-fusion").select_option("max")
    expect(tab.locator(".vd-readout")).to_contain_text(MISSING)
    tab.locator(".vd-fusion").select_option("mean")
    expect(tab.locator(".vd-readout")).to_contain_text("gathers")
    assert tab.alone()


def test_the_bare_viewer_still_shows_its_maps_and_says_what_is_missing(opened, result):
    tab = opened(report(result, limit=0))
    bare(tab)
    joined = result.reads()[2, :, 1:].mean(0)                               # has a scale of its own
    assert shows(tab, joined, joined.max())
    tab.locator(".vd-compare").select_option("twin")
    expect(tab.locator(".vd-compare-note")).to_have_text(MISSING)
    tab.get_by_role("tab", name="Head facts").click()
    expect(tab.locator("#vd-sheet-facts")).to_contain_text(MISSING)
    expect(tab.locator("header")).to_contain_text("Left out")
    assert tab.alone()


def test_hostile_names_are_text_in_a_reports_page(opened, tiny, photo):
    tab = opened(report(explain(photo, hostile(tiny)), about="<img src=x onerror=window.hit=1>"))
    assert sorted(tab.locator(".vd-name").evaluate_all("all => all.map((one) => one.textContent)")) == sorted(HOSTILE)
    tab.get_by_role("button", name="Class relevance", exact=True).click()
    for panel in tab.get_by_role("tab").all():
        panel.click()
    expect(tab.locator("header")).to_contain_text("<i>model</i> $title $data </title>")
    assert tab.evaluate("window.hit === undefined && document.querySelectorAll('img[src=\"x\"], svg[onload], header i').length === 0") and tab.alone()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_is_drawn_on_the_readers_own_ground(opened, result, scheme):
    tab = opened(report(result), color_scheme=scheme)
    ground, ink = (tab.evaluate(f"getComputedStyle(document.body).{name}.match(/\\d+/g).slice(0, 3).map(Number)") for name in ("backgroundColor", "color"))
    assert (np.mean(ground) < 60 and np.mean(ink) > 200) == (scheme == "dark") and abs(np.mean(ground) - np.mean(ink)) > 150
    assert len(set(drawn(tab))) > 20 and tab.alone()

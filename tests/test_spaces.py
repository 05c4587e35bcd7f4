"""The page where others host it: a Space's front matter, a lent GPU, a path below somebody else's, a frame, a browser that remembers nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gradio
import httpx
import pytest
import torch
from conftest import WAIT, drawn, picture_bytes, seeded, serving, upload, watched
from PIL import Image
from lab_visitor import Visitor
from playwright.sync_api import expect
from prefix_proxy import embedding, proxied
from test_app import door

from vitdemo import settings
from vitdemo.explain import explain
from vitdemo.ui import gpu

ROOT = Path(__file__).resolve().parent.parent
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}            # the Hub's list
# the Hub's reference of a Space's configuration
KEYS = {"title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file", "short_description", "license", "pinned", "tags",
        "suggested_hardware", "startup_duration_timeout", "disable_embedding", "models", "datasets", "thumbnail", "preload_from_hub", "header"}


def front_matter() -> dict[str, str]:
    text = re.match(r"---\n(.+?)\n---\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
    return dict(line.split(": ", 1) for line in text.splitlines())


def test_the_front_matter_says_what_a_space_needs_and_nothing_else():
    said = front_matter()
    assert set(said) <= KEYS and {"title", "emoji", "sdk", "sdk_version", "python_version", "app_file", "short_description", "license"} <= set(said)
    assert {said["colorFrom"], said["colorTo"]} <= COLOURS and said["sdk"] == "gradio" and said["pinned"] in ("true", "false")
    assert len(said["short_description"]) <= 60 and (ROOT / said["app_file"]).is_file() and said["disable_embedding"] == "false"
    assert said["python_version"] in ('"3.10"', '"3.12"')                   # quoted, or it is a number; and what ZeroGPU has
    assert said["suggested_hardware"] in ("cpu-basic", "cpu-upgrade") and re.fullmatch(r"\d+[mh]", said["startup_duration_timeout"])


def test_the_front_matter_s_gradio_is_one_that_the_requirements_allow():
    version = tuple(map(int, front_matter()["sdk_version"].split(".")))
    low, high = re.search(r"^gradio>=([\d.]+),<(\d+)$", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M).groups()
    assert tuple(map(int, low.split("."))) <= version < (int(high),) and version <= tuple(map(int, gradio.__version__.split(".")))


def test_a_host_that_lends_a_gpu_trains_nothing_and_keeps_its_models_on_the_cpu(monkeypatch):
    lent = settings.read({"SPACE_ID": "a/b", "SPACES_ZERO_GPU": "true"})
    assert lent.zero_gpu and lent.public and not lent.training and settings.read({"SPACES_ZERO_GPU": "1", "VITDEMO_TRAINING": "1"}).training
    assert not settings.read({"SPACE_ID": "a/b"}).zero_gpu and settings.read({"SPACE_ID": "a/b"}).training
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert settings.device({"SPACES_ZERO_GPU": "true"}) == "cpu" and settings.device({}) == "cuda"


def test_elsewhere_nothing_is_lent_and_the_lender_is_not_even_imported():
    assert gpu.explainer(settings.read({"SPACE_ID": "a/b"})) is explain and "spaces" not in sys.modules


STAND_IN = '''
import functools, sys
assert "torch" not in sys.modules, "it must come before torch"
calls = []
def GPU(task=None, *, duration=None):
    if task is None:
        return functools.partial(GPU, duration=duration)
    @functools.wraps(task)
    def lent(*given):
        calls.append((task.__name__, duration))
        if len(calls) > 1:
            raise RuntimeError("your share is used up")
        return task(*given)
    return lent
'''
ON_LOAN = '''
import app, spaces, sys
sys.path.insert(0, "tests")
from conftest import seeded, coloured
from gradio.context import LocalContext
from vitdemo import settings
from vitdemo.explain import explain
from vitdemo.ui import build_app, gpu
small = seeded()
build_app(small)
assert spaces.calls == [], "a small model stays where it is"
gpu.LARGE = 1
on_a_loan, plain = gpu.explainer(settings.read()), explain(coloured("red", 3), small)
on_a_loan(coloured("red", 3), small)
assert spaces.calls == [], "nobody asks"
LocalContext.request.set("somebody's")
for loans in (1, 2):
    result = on_a_loan(coloured("red", 3), small)
    assert spaces.calls == [("traced", 30)] * loans and result.loaded is small
    assert (result.probabilities == plain.probabilities).all() and (result.attention == plain.attention).all() and result.facts()
print("lent")
'''


def test_where_a_gpu_is_lent_only_the_pass_of_a_large_model_goes_there_and_where_none_is_the_cpu_answers_the_same(tmp_path):
    (tmp_path / "spaces.py").write_text(STAND_IN, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))), "SPACES_ZERO_GPU": "true", "SPACE_ID": "a/b", "VITDEMO_RUNS": str(tmp_path / "runs"),
                        "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", ON_LOAN], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith("lent"), done.stderr


@pytest.fixture(scope="module")
def below(colour_zip, tmp_path_factory):
    """(address below a prefix, paths asked for outside it, address at the root) of one page; its proxy strips the prefix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITDEMO_DATA", str(colour_zip.parent))
        patch.setenv("VITDEMO_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("VITDEMO_ROOT_PATH", "/lab/vitdemo")
        with serving(seeded()) as (url, _), proxied(url, "/lab/vitdemo") as (address, outside):
            yield address, outside, url


@pytest.fixture
def opened(browser):
    """Opens an address in a context of its own, whatever its script says first."""
    contexts = []

    def open_page(url: str, script: str = ""):
        context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
        contexts.append(context)
        if script:
            context.add_init_script(script)
        tab = watched(context)
        tab.goto(url)
        return tab

    yield open_page
    for context in contexts:
        context.close()


def use(page, tab) -> None:
    """What a visitor does on each part of the page, `page` being the tab or a frame of it."""
    expect(page.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
    changed = "before => document.querySelector('.vd-seen').toDataURL() !== before"
    before = drawn(page, ".vd-seen")
    upload(page, "x.png", picture_bytes(Image.new("RGB", (60, 40), "red")))
    page.wait_for_function(changed, arg=before)
    before = drawn(page, ".vd-seen")
    page.locator("#vd-examples button.thumbnail-item, #vd-examples .grid-wrap button").nth(1).click()
    page.wait_for_function(changed, arg=before)
    page.get_by_role("button", name="Rollout").first.click()                # a question to the server
    expect(page.locator(".vd-main")).to_have_attribute("aria-label", re.compile("rollout", re.I))
    page.get_by_role("tab", name="Train").click()
    expect(page.locator("#vd-lab").get_by_role("button", name=re.compile("^Start", re.I)).first).to_be_visible()
    page.get_by_role("tab", name="Explore").click()
    assert tab.complaints == [], tab.complaints


def test_below_a_prefix_every_part_works_and_asks_for_nothing_outside(below, opened):
    address, outside, _ = below
    assert httpx.get(f"{address}healthz").json() == {"status": "ok"}
    tab = opened(address)
    expect(tab.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
    assert outside == []
    use(tab, tab)
    assert outside == [] and [url for url in tab.asked if not url.startswith((address, "data:", "blob:"))] == []


def test_inside_a_frame_of_another_host_it_works_and_does_not_grow(page, opened):
    with embedding(page[0]) as outer:
        tab = opened(outer)
        frame = tab.frame_locator("iframe")
        expect(frame.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
        inner = next(frame for frame in tab.frames if frame.parent_frame)
        use(inner, tab)
        heights = [inner.evaluate("() => new Promise(done => setTimeout(() => done(document.documentElement.scrollHeight), 300))") for _ in range(3)]
        assert max(heights) - min(heights) <= 2 and heights[0] < 6000


def test_a_browser_that_keeps_nothing_still_gets_the_whole_page(page, opened):
    tab = opened(page[0], "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } });")
    use(tab, tab)


def test_a_disk_that_cannot_be_written_costs_training_and_nothing_else(monkeypatch, tmp_path, colour_zip, tiny):
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    for name in ("VITDEMO_RUNS", "VITDEMO_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "file" / name))
    monkeypatch.setenv("VITDEMO_DATA", str(colour_zip.parent))
    with serving(tiny) as (url, _):
        refused = door(url, "vd-lab", {"question": "start", "data": "cifar10", "minutes": 1, "film": [], "mine": []})
        assert list(refused) == ["error"] and "not writable" in refused["error"]
        assert door(url, "vd-lab", {"question": "list", "mine": []}) == {"runs": [], "gone": []}
        assert httpx.get(url, timeout=20).status_code == httpx.get(f"{url}healthz").status_code == 200
        assert "cannot be written" in door(url, "vd-lab", {"question": "set", "do": "new", "name": "mine"})["error"]
        parts = httpx.get(f"{url}config", timeout=20).json()["components"]
        first = next(part["props"]["value"] for part in parts if part["props"].get("elem_id") == "vd-viewer")
        assert first["key"] and first["top"] and not first["message"]       # the example is analysed all the same


def test_a_run_whose_folder_vanished_is_gone_and_a_new_one_is_taken_in(tmp_path, colour_zip, monkeypatch):
    monkeypatch.setenv("VITDEMO_DATA", str(colour_zip.parent))
    visitor, training = Visitor(tmp_path / "runs", seeded()), {"data": "cifar10", "minutes": 5, "film": []}
    run = visitor.ask("start", mine=[], **training)["run"]
    shutil.rmtree(tmp_path / "runs")
    visitor.scheduler.tick()
    assert visitor.ask("list", mine=[run]) == {"runs": [], "gone": [run]} and "no such run" in visitor.refused("follow", run=run)
    assert visitor.ask("start", mine=[run], **training)["run"] != run

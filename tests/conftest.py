"""What several test files share: where the shared folders are, a tiny seeded model, a small data set, and a running page."""

import io
import os
import shutil
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
_SCRATCH = tempfile.TemporaryDirectory(prefix="vitdemo-tests-")
os.environ["GRADIO_TEMP_DIR"] = str(Path(_SCRATCH.name, "uploads"))          # before gradio is imported anywhere
os.environ["VITDEMO_CACHE"] = os.environ.get("VITDEMO_TEST_CACHE") or str(Path(_SCRATCH.name, "cache"))

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from vitdemo import checkpoint
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.model import ViT

torch.set_num_threads(1)

SHARED_DATA = os.environ.get("VITDEMO_DATA")    # as it was; the running page of the tests has a folder of its own
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
CAMERA = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]               # for tests of the camera
WAIT = 20_000                                   # ms a browser is given for anything: other programs may be at work
expect.set_options(timeout=WAIT)
CLEAR = "#vd-picture button[aria-label*='emove'], #vd-picture button[aria-label*='lear']"       # of the picture input
COLOURS = {"blue": (40, 60, 200), "green": (50, 180, 60), "red": (200, 50, 40)}


def pytest_collection_modifyitems(config, items):
    """With VITDEMO_NO_SKIP set (continuous integration), a test that would be skipped fails instead."""
    if os.environ.get("VITDEMO_NO_SKIP"):
        for item in items:
            item.add_marker(pytest.mark.usefixtures("no_skip"))


@pytest.fixture
def no_skip():
    """Only its presence counts; see pytest_runtest_makereport."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.skipped and "no_skip" in item.fixturenames and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped where nothing may be skipped: {report.longrepr}"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of hard inputs."""
    folder = os.environ.get("VITDEMO_CASES")
    if not folder:
        pytest.skip("VITDEMO_CASES does not name the folder of hard inputs")
    return Path(folder)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real cifar10.zip and mnist.zip."""
    folder = SHARED_DATA
    if not folder or not Path(folder, "cifar10.zip").is_file():
        pytest.skip("VITDEMO_DATA does not name a folder with cifar10.zip")
    return Path(folder)


@pytest.fixture(scope="session")
def chromium() -> str:
    """A Chromium to drive: the system's."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium on this machine")
    return found


def tiny_config(**changes) -> ViTConfig:
    return ViTConfig(image=(12, 20), patch=(4, 4), dim=10, depth=3, heads=2, mlp_dim=14, classes=3).with_(**changes)


def seeded(seed: int = 1, **changes) -> checkpoint.Loaded:
    """A seeded model like `tiny` but for some settings; its maps are far from even."""
    generator = torch.Generator().manual_seed(seed)
    model = ViT(tiny_config(**changes), generator).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.4 * torch.randn(p.shape, generator=generator))
    names = tuple(COLOURS)[:model.config.classes]
    return checkpoint.Loaded(model, names, Preprocessing(size=model.config.image), {}, "seeded")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> checkpoint.Loaded:
    """A seeded model with a 3 x 5 grid, three layers, two heads and three classes, saved and loaded."""
    made = seeded()
    path = tmp_path_factory.mktemp("tiny") / "tiny.safetensors"
    checkpoint.save(path, made.model, classes=list(COLOURS), preprocessing=made.preprocessing, provenance={})
    return checkpoint.load(path)


def coloured(name: str, seed: int, size: tuple[int, int] = (32, 32)) -> Image.Image:
    """A picture of one of COLOURS with noise, (rows, cols) pixels."""
    noise = np.random.default_rng(seed).integers(-30, 30, (*size, 3))
    return Image.fromarray((np.array(COLOURS[name]) + noise).clip(0, 255).astype(np.uint8))


def picture_bytes(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def colour_zip(tmp_path_factory) -> Path:
    """A data set in the shape of the real one: train/ and test/ with three easy classes, in a file named cifar10.zip."""
    path = tmp_path_factory.mktemp("data") / "cifar10.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part, count in (("train", 60), ("test", 10)):
            for name in COLOURS:
                for i in range(count):
                    archive.writestr(f"{part}/{name}/{i}.png", picture_bytes(coloured(name, 1000 * len(part) + i)))
    return path


@pytest.fixture(scope="session")
def photo(tmp_path_factory) -> Path:
    """A JPEG whose four quarters differ, 300 x 200 pixels."""
    pixels = np.zeros((200, 300, 3), np.uint8)
    pixels[:100, :150], pixels[:100, 150:], pixels[100:, :150], pixels[100:, 150:] = (220, 40, 40), (40, 200, 60), (40, 60, 220), (230, 220, 60)
    path = tmp_path_factory.mktemp("photo") / "photo.jpg"
    Image.fromarray(pixels).save(path, quality=92)
    return path


def pretend(monkeypatch, module: ModuleType, known: str, /, **facts) -> None:
    """Have `module`, and no other, find `facts` in the module that it knows under that name. Changed for all, they would meet the threads of a running
    page: its event loop waits by the clock, and goes on waiting until a made-up time after the test."""
    monkeypatch.setattr(module, known, SimpleNamespace(**{**vars(getattr(module, known)), **facts}))


@contextmanager
def serving(loaded: checkpoint.Loaded):
    """A running page around a model, launched with the settings users get; gives (url, App)."""
    from vitdemo.ui import build_app, launch_settings

    app = build_app(loaded)
    app.scheduler.start()
    _, url, _ = app.blocks.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    try:
        yield url, app
    finally:
        app.blocks.close()
        app.scheduler.close()


@pytest.fixture(scope="session")
def page(tiny, colour_zip, tmp_path_factory):
    """A running page around the tiny model; yields (url, App)."""
    before = dict(os.environ)
    os.environ["VITDEMO_DATA"] = str(colour_zip.parent)
    os.environ["VITDEMO_RUNS"] = str(tmp_path_factory.mktemp("runs"))
    os.environ["VITDEMO_UPLOAD_MB"] = "20"                                  # small enough to be passed by a test
    with serving(tiny) as served:
        yield served
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def driving(chromium: str, *flags: str):
    """A Chromium that tests drive, started with `flags` besides."""
    with sync_playwright() as play:
        engine = play.chromium.launch(executable_path=chromium, args=[*FLAGS, *flags])
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def browser(chromium):
    with driving(chromium) as engine:
        yield engine


def watched(context) -> Page:
    """A new tab; what the browser complains of in `complaints`, and the addresses it asks for in `asked`."""
    context.set_default_timeout(WAIT)
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("request", lambda request: tab.asked.append(request.url))
    return tab


@pytest.fixture
def visit(browser, page):
    """Opens the page as a visitor of their own; what the browser complains of or asks of other hosts is collected."""
    contexts = []

    def open_page(url: str = page[0], width: int = 1440, height: int = 900, **options) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        tab = watched(context)
        tab.goto(url)
        expect(tab.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
        return tab

    yield open_page
    for context in contexts:
        context.close()


def clear(tab: Page) -> None:
    """Empty the picture input."""
    tab.locator(CLEAR).first.click()


def upload(tab: Page, name: str, content: bytes, kind: str = "image/png") -> None:
    if tab.locator(CLEAR).count():
        clear(tab)
    tab.locator("#vd-picture input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": content})


def answered(tab: Page, name: str, content: bytes, kind: str = "image/png") -> None:
    """Upload a picture and wait for its own answer: in words the one before may be the same."""
    before = tab.locator(".vd").get_attribute("data-key")
    upload(tab, name, content, kind)
    tab.wait_for_function("""before => { const { key, state } = document.querySelector('.vd').dataset;
        return key && key !== before && state === 'shown'; }""", arg=before)


def drawn(tab: Page, selector: str = ".vd-main") -> str:
    """A canvas as text: two are equal when every pixel is."""
    return tab.locator(selector).first.evaluate("canvas => canvas.toDataURL()")


def slide(tab: Page, selector: str, value: int) -> None:
    tab.locator(selector).evaluate("(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); input.dispatchEvent(new Event('change')); }", value)


def cell_colours(tab: Page, selector: str = ".vd-main") -> np.ndarray:
    """The colour in the middle of every patch, (15, 3), of a canvas that shows the 300 x 200 photo, cropped to 300 x 180, on the 3 x 5 grid."""
    return np.array(tab.locator(selector).evaluate("""canvas => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, out = [];
        for (let r = 0; r < 3; r++) for (let c = 0; c < 5; c++) {
            const y = Math.floor(canvas.height * (10 + 180 * (r + 0.5) / 3) / 200), x = Math.floor(canvas.width * (c + 0.5) / 5);
            out.push(Array.from(data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)));
        }
        return out; }"""))


def colours_of(vector: np.ndarray, high: float) -> np.ndarray:
    """What `cell_colours` gives where the map hides the picture: patches' weights (15,) on a scale that ends at `high`."""
    from matplotlib import colormaps

    return colormaps["cividis"](np.round(255 * vector / high).clip(0, 255).astype(int), bytes=True)[:, :3].astype(int)

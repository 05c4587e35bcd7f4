"""The server is killed under open pages and started again on the same port: nobody's picture is replaced, and what happened is said."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import COLOURS, coloured, drawn, picture_bytes, upload, watched
from playwright.sync_api import expect

from vitdemo import checkpoint

ROOT = Path(__file__).resolve().parents[1]
SERVER = """
import sys
import torch
from vitdemo import checkpoint
from vitdemo.ui import build_app, launch_settings
torch.set_num_threads(1)
app = build_app(checkpoint.load(sys.argv[1]))
print("built", flush=True)
sys.stdin.readline()
app.blocks.launch(server_port=int(sys.argv[2]), quiet=True, **launch_settings())
"""


class Server:
    """A server that is built, and serves once it is told to."""

    def __init__(self, weights: Path, port: int, home: Path):
        places = {"VITDEMO_RUNS": home / "runs", "GRADIO_TEMP_DIR": home / "uploads"}                      # uploads of its own, as app.py has them
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, str(weights), str(port)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **{name: str(place) for name, place in places.items()}})

    def serve(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        self.process.wait()


@pytest.fixture(scope="module")
def servers(tiny, tmp_path_factory):
    """(the address, two servers of it)."""
    home = tmp_path_factory.mktemp("restart")
    checkpoint.save(home / "tiny.safetensors", tiny.model, classes=list(tiny.classes), preprocessing=tiny.preprocessing, provenance={})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = [Server(home / "tiny.safetensors", port, home / name) for name in ("first", "second")]
    for one in made:
        assert one.process.stdout.readline() == "built\n"
    yield f"http://127.0.0.1:{port}/", made
    for one in made:
        if one.process.poll() is None:
            one.kill()
        one.process.stdin.close()
        one.process.stdout.close()


def opened(browser, url: str):
    tab = watched(browser.new_context(viewport={"width": 1280, "height": 900}))
    for _ in range(100):
        try:
            tab.goto(url)
            break
        except Exception as error:                                          # it does not listen yet
            if "ERR_CONNECTION_REFUSED" not in str(error):
                raise
            tab.wait_for_timeout(100)
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    return tab


def seen(tab, name: str) -> None:
    """Waits until a picture of that colour, noise apart, is shown and is what the model sees."""
    tab.wait_for_function("""want => { const canvas = document.querySelector('.vd-seen'), { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return document.querySelector('.vd').dataset.state === 'shown' && data.every((value, i) => i % 4 === 3 || Math.abs(value - want[i % 4]) < 40); }""", arg=COLOURS[name])


def test_pages_outlive_a_server_that_is_killed_and_started_again(browser, servers):
    url, (first, second) = servers
    first.serve()
    own, opening = opened(browser, url), opened(browser, url)
    upload(own, "red.png", picture_bytes(coloured("red", 1, (60, 100))))
    seen(own, "red")
    before, example, notice = drawn(own), opening.locator(".vd-wall").get_attribute("data-stamp"), own.locator(".vd-server")
    first.kill()

    own.locator(".vd-main").click(position={"x": 30, "y": 30})              # asks for that patch
    expect(notice).to_contain_text("The server does not answer; trying again")
    expect(own.locator(".vd-readout")).to_contain_text("The server does not answer")
    own.mouse.move(0, 0)
    own.locator("#vd-examples button").last.click()                         # an event that breaks: Gradio would reload the page for it
    own.evaluate("window.same = true")
    opening.evaluate("window.same = true")
    assert drawn(own) == before

    second.serve()
    expect(notice).to_contain_text("upload it again")
    opening.evaluate("dispatchEvent(new Event('online'))")                  # it need not wait for its next look
    expect(opening.locator(".vd-server")).to_contain_text("looks at this example again")
    assert drawn(own) == before and own.evaluate("window.same")
    expect(own.locator("#vd-picture img")).to_have_count(0)
    own.get_by_role("button", name="Close").last.click()
    expect(notice).to_be_hidden()
    own.get_by_role("button", name="Class relevance").click()
    expect(own.locator(".vd-readout")).to_contain_text("upload the picture again")
    assert own.locator(".toast-body").count() == 0

    expect(opening.locator(".vd-wall")).not_to_have_attribute("data-stamp", example)                       # its key is of the new server
    opening.get_by_role("button", name="Class relevance").click()
    expect(opening.locator(".vd-readout")).to_contain_text("What speaks for")
    assert opening.evaluate("window.same") and opening.locator("#vd-picture img").count() == 1

    upload(own, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    seen(own, "blue")
    own.get_by_role("button", name="Rollout").click()
    expect(own.locator(".vd-readout")).not_to_contain_text("upload")

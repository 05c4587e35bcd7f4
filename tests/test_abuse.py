"""A page on a host that anybody reaches: what hand-made requests get, and what a stranger learns of others. Pictures' own doors have other tests."""

import asyncio
import itertools
import json
import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlparse

import gradio as gr
import httpx
import pytest
from conftest import coloured, picture_bytes, seeded, serving
from fuzzing import MARK, Fuzzer
from gradio.utils import get_upload_folder
from PIL.PngImagePlugin import PngInfo
from test_api import image_value

from vitdemo import words
from vitdemo.ui import gate
from vitdemo.ui.serving import tidying
from vitdemo.ui.upload import UploadedImage

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def host(colour_zip, tmp_path_factory):
    """(address, App, path of a picture that nobody uploaded) of a page that trains nothing and fetches nothing."""
    home = tmp_path_factory.mktemp("host")
    info = PngInfo()
    info.add_text("x", MARK)
    secret = home / "secret.png"
    secret.write_bytes(picture_bytes(coloured("red", 1), pnginfo=info))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("DATA", colour_zip.parent), ("RUNS", home / "runs"), ("MODELS", "none"), ("HUB", "0"), ("UPLOAD_MB", "20"), ("QUEUE", "3")):
            patch.setenv(f"VITDEMO_{name}", str(value))
        with serving(seeded()) as (url, app):
            app.scheduler.close()
            yield url, app, secret


def test_nothing_that_is_sent_brings_a_trace_a_path_or_a_strangers_file(host):
    url, app, secret = host
    fuzzer = Fuzzer(url, 20261128, secret, (secret.parent, ROOT))
    assert len(fuzzer.doors) == 3 and len(fuzzer.events) == len(app.blocks.fns) and all(len(names) >= 4 for names in fuzzer.questions.values())
    wrong = [(str(request)[:900], said) for request in itertools.islice(fuzzer.requests(), 250) if (said := fuzzer.wrong(request))]
    assert wrong == []
    assert httpx.get(url, timeout=20).status_code == httpx.get(f"{url}healthz", timeout=20).status_code == 200


def holds_files(block) -> bool:
    """Whether a browser's value of a component may name a file."""
    model = getattr(block, "data_model", None)
    return model is not None and '"path"' in json.dumps(model.model_json_schema())


def unguarded(blocks: gr.Blocks) -> list[str]:
    """The components that would take a file from anywhere: whatever may hold one is ours, or is only looked at."""
    inputs = {block._id for fn in blocks.fns.values() for block in fn.inputs}
    return [type(block).__name__ for block in blocks.blocks.values() if holds_files(block) and not isinstance(block, UploadedImage)
            and (block._id in inputs or getattr(block, "interactive", None) is not False)]


def test_every_component_that_takes_a_file_is_one_that_checks_where_it_lies(host):
    assert unguarded(host[1].blocks) == []
    assert sum(isinstance(block, UploadedImage) for block in host[1].blocks.blocks.values()) >= 2


@pytest.mark.parametrize("kind", [gr.Image, gr.File, gr.Gallery, gr.Audio, gr.Video, gr.MultimodalTextbox, gr.ImageEditor, gr.Model3D, gr.Chatbot])
def test_an_unguarded_one_would_be_noticed(kind):
    with gr.Blocks() as blocks:
        kind()
    assert unguarded(blocks) == [kind.__name__]


def test_a_link_in_the_upload_folder_leads_nowhere(host):
    url, _, secret = host
    link = Path(get_upload_folder(), "link.png")
    link.unlink(missing_ok=True)
    try:
        os.symlink(secret, link)
    except OSError:
        pytest.skip("this machine makes no links")
    event = httpx.post(f"{url}gradio_api/call/explain", json={"data": [image_value(str(link), meta={"_type": "gradio.FileData"}), "box"]}, timeout=20).json()["event_id"]
    text = httpx.get(f"{url}gradio_api/call/explain/{event}", timeout=20).text
    link.unlink()
    assert "event: error" in text and "did not arrive as an upload" in text and "probabilities" not in text


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/x.png", "HTTP://127.0.0.1:{port}/x.png", "https://127.0.0.1:{port}/x.png"])
def test_nothing_is_fetched_for_a_visitor_from_anywhere(host, address):
    url = host[0]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        address = address.format(port=listener.getsockname()[1])
        for value in (image_value(address, meta={"_type": "gradio.FileData"}), image_value(address), image_value(None, url=address, meta={"_type": "gradio.FileData"})):
            answer = httpx.post(f"{url}gradio_api/call/explain", json={"data": [value, "box"]}, timeout=20)
            if answer.status_code == 200:
                assert "event: error" in httpx.get(f"{url}gradio_api/call/explain/{answer.json()['event_id']}", timeout=20).text
        assert httpx.get(f"{url}gradio_api/file={address}", timeout=20).status_code in (403, 404)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert gate.ELSEWHERE.search("/gradio_api/file=http://example.org/x.png") and not gate.ELSEWHERE.search("/gradio_api/file=/tmp/http/x.png")


def test_a_stranger_reads_and_ends_nothing_of_others(host):
    url, _, secret = host
    path = httpx.post(f"{url}gradio_api/upload", files={"files": ("mine.png", picture_bytes(coloured("blue", 5)))}, timeout=20).json()[0]
    event = httpx.post(f"{url}gradio_api/call/explain", json={"data": [image_value(path, meta={"_type": "gradio.FileData"}), "box"], "session_hash": "mine-and-secret"}, timeout=20).json()["event_id"]
    guesses = (event[:-1], event.upper(), "mine", "mine-and-secret ", "*", "", "null", event[:-1] + "0")
    for guess in guesses:
        with httpx.stream("GET", f"{url}gradio_api/queue/data", params={"session_hash": guess}, timeout=20) as stream:
            assert "probabilities" not in next(stream.iter_text(), "")
        httpx.post(f"{url}gradio_api/cancel", json={"session_hash": guess, "fn_index": 0, "event_id": guess}, timeout=20)
        httpx.post(f"{url}gradio_api/stream/{guess or 'x'}/close", timeout=20)
    own = httpx.get(f"{url}gradio_api/call/explain/{event}", timeout=20).text
    assert "event: complete" in own and "probabilities" in own                # it was neither read away nor ended
    assert event not in httpx.get(f"{url}gradio_api/queue/status", timeout=20).text and path not in httpx.get(f"{url}config", timeout=20).text


@pytest.mark.parametrize(("length", "path", "status"), [(gate.MESSAGE + 1, "component_server", 413), (gate.MESSAGE + 1, "queue/join", 413), (10**15, "upload", 507), (10**15, "run/predict", 413)])
def test_a_request_that_is_too_long_is_not_read(host, length, path, status):
    with socket.create_connection((urlparse(host[0]).hostname, urlparse(host[0]).port), timeout=20) as line:
        line.sendall(f"POST /gradio_api/{path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n".encode())
        assert line.recv(100).startswith(f"HTTP/1.1 {status}".encode())            # with nothing of it sent


def test_a_request_of_unknown_length_is_refused_and_one_without_a_body_is_not(host):
    def parts():
        yield b"{}"

    assert httpx.post(f"{host[0]}gradio_api/component_server", content=parts(), timeout=20).status_code == 411
    assert httpx.post(f"{host[0]}gradio_api/component_server", timeout=20).status_code == 400


def test_what_lies_longest_gives_way_and_never_what_is_on_its_way_or_the_pages_own(tmp_path):
    uploads = gate.Uploads(tmp_path, 1000, young=5)
    for number in range(5):
        (tmp_path / f"{number}").mkdir()
        file = tmp_path / f"{number}" / "x.png"
        file.write_bytes(b"x" * 200)
        os.utime(file, (time.time() - 100 + number,) * 2)
    own, fresh = tmp_path / "0" / "x.png", tmp_path / "4" / "x.png"
    os.utime(fresh)
    with uploads.room(300, {str(own)}):
        assert [path.parent.name for path in sorted(tmp_path.rglob("*.png"))] == ["0", "3", "4"]
        with uploads.room(200, {str(own)}):
            assert [path.parent.name for path in sorted(tmp_path.rglob("*.png"))] == ["0", "4"]
            with pytest.raises(gate.Full, match="no room for uploads"), uploads.room(300, {str(own)}):
                pass
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    with uploads.room(600, {str(own)}):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "4"]      # empty folders go too
    os.utime(own, (1, 1))
    os.utime(fresh, (1, 1))
    with uploads.room(0, {str(own)}):
        assert [path.parent.name for path in tmp_path.rglob("*.png")] == ["0"]  # an hour is enough, whether there is room or not


def test_what_nobody_looks_after_goes_by_the_clock_too(tmp_path):
    """A picture that was cut off on its way is no upload that Gradio knows."""
    uploads, left = gate.Uploads(tmp_path, 1000), tmp_path / "left"
    left.write_bytes(b"x")
    uploads.tidy(())
    assert left.exists()
    os.utime(left, (1, 1))

    async def serve() -> None:
        async with tidying(uploads, every=0.01)(SimpleNamespace(get_blocks=lambda: gr.Blocks())):
            while left.exists():
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(serve(), 10))


def test_what_a_visitor_looks_at_is_not_kept_under_an_address(host):
    url = host[0]
    for path in ("gradio_api/deep_link?session_hash=any", "gradio_api/deep_link/?session_hash=any", "config?deep_link=abc", "?x=1&DEEP_LINK=abc"):
        answer = httpx.get(url + path, timeout=20)
        assert answer.status_code == 404 and answer.text == words.NO_STATE, path
    assert httpx.get(f"{url}?example=dog&compare=deep_link", timeout=20).status_code == 200


def test_who_sends_nothing_keeps_nobody_out_for_long(tmp_path):
    uploads, started, ended = gate.Uploads(tmp_path, 1000, young=0.1), threading.Event(), threading.Event()

    def waits() -> None:
        with uploads.room(900, ()):
            started.set()
            ended.wait()

    thread = threading.Thread(target=waits)
    thread.start()
    started.wait()
    with pytest.raises(gate.Full), uploads.room(200, ()):
        pass
    time.sleep(0.15)
    with uploads.room(200, ()):
        pass
    ended.set()
    thread.join()


def test_uploads_that_nobody_looks_at_fill_no_disk(monkeypatch, colour_zip, tmp_path):
    for name, value in (("UPLOADS_MB", "3"), ("UPLOAD_MB", "1"), ("RUNS", tmp_path / "runs"), ("DATA", colour_zip.parent)):
        monkeypatch.setenv(f"VITDEMO_{name}", str(value))
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    monkeypatch.setattr(gate.Uploads.__init__, "__defaults__", (0.0,))
    with serving(seeded()) as (url, _):
        shown = {path for path in Path(get_upload_folder()).rglob("*") if path.is_file()}
        most = 0
        for number in range(12):
            answer = httpx.post(f"{url}gradio_api/upload", files={"files": ("x.bin", bytes([number]) * 900_000)}, timeout=20)
            assert answer.status_code == 200
            most = max(most, sum(path.stat().st_size for path in Path(get_upload_folder()).rglob("*") if path.is_file()))
        assert most <= 3 * 10**6 and all(path.is_file() for path in shown)
        assert httpx.post(f"{url}gradio_api/upload", files=[("files", (f"{i}", b"x" * 900_000)) for i in range(4)], timeout=20).status_code == 507

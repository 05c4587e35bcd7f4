"""Errors that nobody foresaw, put into every handler there is: the visitor reads one sentence with a number, the log has the trace."""

import json
import re

import httpx
import pytest
from conftest import WAIT, seeded, serving
from playwright.sync_api import expect
from test_api import image_value

from vitdemo.ui.look import Look, PageLook
from vitdemo.ui.viewer import Viewer

SAID = re.compile(r"Something unexpected went wrong \(number ([0-9a-f]{6}) in the server's log\): please try (again|another picture)\.")
SECRET = "a secret of the server: /srv/secret"


def breaks(*given):
    raise RuntimeError(SECRET)


@pytest.fixture(scope="module")
def broken(page, colour_zip, tmp_path_factory):
    """(address, App) of a page of its own, in which things may be broken; the shared page, which `visit` needs, keeps its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITDEMO_DATA", str(colour_zip.parent))
        patch.setenv("VITDEMO_RUNS", str(tmp_path_factory.mktemp("runs")))
        with serving(seeded()) as served:
            yield served


def event(url: str, number: int, data: list, session: str = "guard") -> dict:
    """The last message that a page gets for an event."""
    joined = httpx.post(f"{url}gradio_api/queue/join", json={"data": data, "fn_index": number, "session_hash": session, "event_data": None}, timeout=20)
    assert joined.status_code == 200, joined.text
    with httpx.stream("GET", f"{url}gradio_api/queue/data", params={"session_hash": session}, timeout=20) as stream:
        for line in stream.iter_lines():
            message = json.loads(line[6:]) if line.startswith("data: ") else {}
            if message.get("msg") == "process_completed":
                return message
    raise AssertionError("no answer")


def numbers(text: str, caplog) -> None:
    """There is the sentence in an answer, nothing else of the error, and the trace in the log under the same number."""
    found = SAID.search(text)
    assert found and "secret" not in text and "Traceback" not in text and "RuntimeError" not in text, text[:500]
    record = next(record for record in caplog.records if found[1] in record.getMessage())
    assert record.exc_info and SECRET in str(record.exc_info[1])


def sent_by_a_page(fn):
    """What an event comes with where nothing was chosen."""
    return [Look()._asdict() if isinstance(block, PageLook) else None for block in fn.inputs]


def test_every_event_s_error_has_a_number_and_stands_where_people_look(broken, caplog, monkeypatch):
    url, app = broken
    assert len(app.blocks.fns) > 10
    for number, fn in app.blocks.fns.items():
        if fn.fn is None:
            continue
        monkeypatch.setattr(fn, "fn", breaks)
        caplog.clear()
        message = event(url, number, sent_by_a_page(fn))
        in_viewer = any(isinstance(block, Viewer) for block in fn.outputs)
        assert in_viewer or fn.queue is not False, "Gradio shows no sentence for an event without queue: give it the viewer as an output"
        assert message["success"] is in_viewer, (number, message)
        if in_viewer:
            place = next(place for place, block in enumerate(fn.outputs) if isinstance(block, Viewer))
            shown = message["output"]["data"][place]
            assert shown["failed"] is True, shown
            numbers(shown["message"], caplog)
        numbers(json.dumps(message), caplog)


def test_errors_before_and_after_a_handler_have_a_number_too(broken, caplog, monkeypatch):
    url, app = broken
    for number, fn in app.blocks.fns.items():
        made = [Look() if isinstance(block, PageLook) else None for block in fn.outputs]
        for blocks, method in ((fn.inputs, "preprocess"), (fn.outputs, "postprocess")):
            for block in blocks:
                with monkeypatch.context() as patch:
                    patch.setattr(fn, "fn", lambda *given, made=made: made if len(made) > 1 else made[0] if made else None)
                    patch.setattr(block, method, breaks)
                    if method == "preprocess" and not fn.preprocess:
                        continue
                    caplog.clear()
                    text = json.dumps(event(url, number, sent_by_a_page(fn)))
                    found = SAID.search(text)
                    assert found and "secret" not in text and any(found[1] in record.getMessage() and record.exc_info for record in caplog.records), (number, method, text)


def doors(app) -> list[tuple[int, str]]:
    return [(number, name) for number, block in app.blocks.blocks.items() for name in vars(block) if getattr(getattr(block, name), "_is_server_fn", False)]


def test_every_server_function_s_error_has_a_number(broken, caplog, monkeypatch):
    url, app = broken
    assert len(doors(app)) == 5                                             # the viewer's two, the model bar's two, the lab's
    for number, name in doors(app):
        door = getattr(app.blocks.blocks[number], name)
        inner = dict(zip(door.__code__.co_freevars, door.__closure__ or ())).get("door")
        assert inner is not None, f"{name} is not wrapped by fields.answering"
        monkeypatch.setattr(inner, "cell_contents", breaks)
        caplog.clear()
        answer = httpx.post(f"{url}gradio_api/component_server", timeout=20, json={"session_hash": "x", "component_id": number, "fn_name": name, "data": {}})
        assert answer.status_code == 200 and list(answer.json()) == ["error"]
        numbers(answer.text, caplog)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, OSError, RecursionError, UnicodeDecodeError])
def test_what_the_doors_call_may_raise_anything(broken, caplog, monkeypatch, kind):
    def fails(*given, **more):
        raise UnicodeDecodeError("utf-8", b"", 0, 0, SECRET) if kind is UnicodeDecodeError else kind(SECRET)

    url, app = broken
    for place in ("vitdemo.ui.fields.choice", "vitdemo.ui.links.asked"):
        monkeypatch.setattr(place, fails)
    for number, name in doors(app):
        caplog.clear()
        answer = httpx.post(f"{url}gradio_api/component_server", timeout=20, json={"session_hash": "x", "component_id": number, "fn_name": name, "data": {}})
        numbers(answer.text, caplog)


def test_an_analysis_and_the_documented_endpoint_say_it_too(broken, caplog, monkeypatch, photo):
    url, app = broken
    for module in ("analysis", "gpu"):
        monkeypatch.setattr(f"vitdemo.ui.{module}.{'payload' if module == 'analysis' else 'explain'}", breaks)
    monkeypatch.setattr("vitdemo.ui.models.Models.get", breaks)
    path = httpx.post(f"{url}gradio_api/upload", files={"files": ("photo.jpg", photo.read_bytes())}, timeout=20).json()[0]
    number = next(number for number, fn in app.blocks.fns.items() if fn.api_name == "explain")
    message = event(url, number, [image_value(path, meta={"_type": "gradio.FileData"}), "box"])
    assert message["success"] is False and message["output"]["error"]
    numbers(json.dumps(message), caplog)


def test_a_person_reads_it_and_the_page_goes_on(broken, monkeypatch, visit):
    url, app = broken
    tab = visit(url)
    gallery = next(fn for fn in app.blocks.fns.values() if fn.targets[0][1] == "select" and app.blocks.blocks[fn.targets[0][0]].elem_id == "vd-examples")
    with monkeypatch.context() as patch:
        patch.setattr(gallery, "fn", breaks)
        tab.locator("#vd-examples button").nth(1).click()
        expect(tab.locator("#vd-viewer")).to_contain_text(SAID)
    before = tab.locator(".vd-seen").evaluate("canvas => canvas.toDataURL()")
    tab.locator("#vd-examples button").nth(2).click()
    tab.wait_for_function("before => document.querySelector('.vd-seen').toDataURL() !== before", arg=before, timeout=WAIT)
    monkeypatch.setattr("vitdemo.ui.analysis.payload", breaks)
    tab.locator("#vd-examples button").nth(1).click()
    expect(tab.locator("#vd-viewer")).to_contain_text(SAID)

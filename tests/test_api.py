"""What reaches the page from outside: the documented endpoint by gradio_client, and hand-made requests over plain HTTP."""

import json

import httpx
import numpy as np
import pytest
from conftest import coloured, picture_bytes
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from vitdemo.explain import explain
from vitdemo.ui.viewer import Viewer


@pytest.fixture(scope="module")
def client(page):
    return Client(page[0], verbose=False)


def call(url: str, endpoint: str, *values) -> tuple[str, str]:
    """(event, data) of the last message that a raw request to an endpoint gets."""
    event = httpx.post(f"{url}gradio_api/call/{endpoint}", json={"data": list(values)}, timeout=20)
    if event.status_code != 200:
        return "refused", event.text
    text = httpx.get(f"{url}gradio_api/call/{endpoint}/{event.json()['event_id']}", timeout=20).text
    kinds = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    datas = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return kinds[-1], datas[-1]


def test_the_documented_endpoint_gives_the_class_and_maps_of_explain(client, tiny, photo):
    answer = client.predict(handle_file(str(photo)), api_name="/explain")
    result = explain(photo, tiny)
    assert answer["classes"] == list(result.classes) and answer["grid"] == [3, 5]
    assert np.allclose(answer["probabilities"], result.probabilities, atol=1e-6)
    maps = np.array(answer["attention"])
    assert maps.shape == (3, 2, 3, 5) and np.allclose(maps, result.attention, atol=1e-6)
    assert np.allclose(maps.sum((2, 3)) + np.array(answer["prefix_attention"]).sum(2), 1, atol=1e-5)


def test_a_picture_that_was_uploaded_is_explained_over_plain_http_too(page, photo):
    path = httpx.post(f"{page[0]}gradio_api/upload", files={"files": ("photo.jpg", photo.read_bytes())}, timeout=20).json()[0]
    kind, text = call(page[0], "explain", image_value(path, meta={"_type": "gradio.FileData"}), "box")
    assert kind == "complete" and json.loads(text)[0]["grid"] == [3, 5]       # else the refusals below would mean nothing


@pytest.mark.parametrize("model", ["0" * 32, "../../etc/passwd", "Box", "x" * 5000, 7, None, ["box"], {"a": [1]}, True])
def test_a_model_that_is_none_gets_one_sentence(page, photo, model):
    path = httpx.post(f"{page[0]}gradio_api/upload", files={"files": ("photo.jpg", photo.read_bytes())}, timeout=20).json()[0]
    kind, text = call(page[0], "explain", image_value(path, meta={"_type": "gradio.FileData"}), model)
    assert kind in ("error", "refused") and "attention" not in text and "Traceback" not in text and "site-packages" not in text and "/tmp" not in text
    if isinstance(model, str):
        assert "There is no such model" in text


def test_the_client_may_name_the_model(client, photo):
    named, plain = (client.predict(handle_file(str(photo)), *more, api_name="/explain") for more in (("box",), ()))
    assert named == plain
    with pytest.raises(AppError, match="There is no such model"):
        client.predict(handle_file(str(photo)), "0" * 32, api_name="/explain")


def test_it_is_the_only_documented_endpoint(client):
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == {"/explain"}


@pytest.mark.parametrize(("name", "content"), [("zero.png", b""), ("text.png", b"hello"), ("cut.png", picture_bytes(coloured("red", 1))[:70]),
                                              ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")])
def test_a_bad_file_gets_one_sentence(client, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AppError) as refusal:
        client.predict(handle_file(str(tmp_path / name)), api_name="/explain")
    text = str(refusal.value)
    assert "picture" in text.lower() or "file" in text.lower() or "drawing" in text.lower()
    assert "Traceback" not in text and str(tmp_path) not in text and "/" not in text.replace("https://", "")


def image_value(path: str, **more) -> dict:
    return {"path": path, **more}


@pytest.mark.parametrize("shape", ["plain", "with meta", "dots", "file url", "missing", "folder", "empty", "number"])
def test_a_file_that_was_not_uploaded_is_never_opened(page, tmp_path, shape):
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture_bytes(coloured("red", 1)))
    value = {
        "plain": image_value(str(secret)), "with meta": image_value(str(secret), meta={"_type": "gradio.FileData"}),
        "dots": image_value(f"/tmp/gradio/../..{secret}"), "file url": image_value(f"file://{secret}"), "missing": image_value("/nowhere.png"),
        "folder": image_value("/"), "empty": image_value(""), "number": 7,
    }[shape]
    kind, text = call(page[0], "explain", value, "box")
    assert kind in ("error", "refused") and "attention" not in text and "Traceback" not in text and str(tmp_path) not in text


def test_inline_pictures_and_foreign_addresses_are_refused(page):
    for value in (image_value(None, url="data:image/png;base64,iVBORw0KGgo="), {"url": "data:image/png;base64,iVBORw0KGgo=", "path": None},
                  image_value("http://127.0.0.1:9/x.png"), {"url": "http://127.0.0.1:9/x.png"}):
        kind, text = call(page[0], "explain", value, "box")
        assert kind in ("error", "refused") and "Traceback" not in text


def test_nobody_reads_files_or_monitoring_and_a_large_upload_is_refused(page):
    url = page[0]
    for path in ("/etc/passwd", "../../etc/passwd", "/proc/self/environ"):
        assert httpx.get(f"{url}gradio_api/file={path}").status_code in (403, 404)
    assert httpx.get(f"{url}monitoring").status_code in (401, 403, 404)
    assert httpx.get(f"{url}gradio_api/monitoring/summary").status_code in (401, 403, 404)
    large = httpx.post(f"{url}gradio_api/upload", files={"files": ("large.png", b"\0" * (21 * 2**20))}, timeout=60)
    assert large.status_code == 413


def test_private_handlers_answer_nonsense_without_a_trace_and_the_page_lives_on(page):
    url, app = page
    for number in range(len(app.blocks.fns)):
        for values in ([], [None] * 6, ["x"] * 6, [{"a": 1}] * 6, [float(10**9)] * 6, [["../../etc"]] * 6):
            body = {"data": values, "fn_index": number, "session_hash": "nobody"}
            answer = httpx.post(f"{url}gradio_api/run/predict", content=json.dumps(body), headers={"content-type": "application/json"}, timeout=20)
            assert "Traceback" not in answer.text and "site-packages" not in answer.text
    assert not list(app.scheduler.home.glob("*/output.txt"))               # no run was started
    assert httpx.get(url).status_code == 200


def test_settings_of_the_launch_are_the_safe_ones(page):
    config = httpx.get(f"{page[0]}config").json()
    assert not config.get("run_history", False) and not config.get("analytics_enabled", True) and not config.get("show_error", True)


@pytest.fixture(scope="module")
def door(page):
    """Asks the viewer as the page does, by plain HTTP; the answer as it came."""
    viewer = next(number for number, block in page[1].blocks.blocks.items() if isinstance(block, Viewer))

    def ask(data, *, fn_name="ask", component=viewer, session="anybody"):
        body = json.dumps({"session_hash": session, "component_id": component, "fn_name": fn_name, "data": data})          # NaN travels as NaN
        return httpx.post(f"{page[0]}gradio_api/component_server", content=body, headers={"content-type": "application/json"}, timeout=20)

    return ask


@pytest.fixture(scope="module")
def key(page):
    """The key of the result that the page opens with."""
    components = httpx.get(f"{page[0]}config").json()["components"]
    return next(part["props"]["value"]["key"] for part in components if isinstance(part["props"].get("value"), dict) and "key" in part["props"]["value"])


def test_the_door_answers_whoever_has_the_key(door, key, tiny):
    answer = door({"question": "token", "key": key, "token": 3}).json()
    assert set(answer) == {"reads", "read_by", "total"} and len(answer["total"]) == 6
    assert "error" not in door({"question": "twin", "key": key}, session="another").json()


NONSENSE = [[], [1], 7, 10**30, float("nan"), float("inf"), "NaN", "", "x" * 100_000, None, True, {}, [[[]]] * 50, {"question": "token"}, {"question": None}, {"question": ["token"]},
            {"question": "token", "key": 5}, {"question": "token", "key": None}, {"question": "__init__", "key": "x"}, {"question": "ask", "key": "x"}]
FIELDS = [{"token": 10**40}, {"token": -1}, {"token": float("nan")}, {"token": "NaN"}, {"token": True}, {"token": [1]}, {"token": 1.0},
          {"question": "rollout", "up_to": 10**40}, {"question": "rollout", "discard": float("nan")}, {"question": "rollout", "discard": 1}, {"question": "rollout", "fusion": "sum"},
          {"question": "relevance", "klass": 3}, {"question": "occlusion", "klass": -1}, {"question": "surgery", "masked": [10**40]}, {"question": "surgery", "masked": [0] * 10**5},
          {"question": "surgery", "order": [0] * 15}, {"question": "surgery", "order": "NaN"}, {"question": "surgery", "positions": "no"}, {"question": "test", "view": "attention", "klass": 0},
          {"question": "test", "view": {"kind": "attention", "layer": float("nan")}, "klass": 0}, {"question": "rank", "klass": None}, {"question": "rank", "klass": 0, "how": "..x"},
          {"question": "take", "kind": "exe", "view": {"kind": "attention"}}, {"question": "take", "kind": "png", "view": {"kind": "attention"}, "opacity": float("inf")},
          {"question": "take", "kind": "png", "view": {"kind": "attention"}, "colours": "jet"}]


@pytest.mark.parametrize("number", range(len(NONSENSE) + len(FIELDS)))
def test_nonsense_at_the_door_is_one_sentence_and_never_a_trace(door, key, number):
    data = NONSENSE[number] if number < len(NONSENSE) else {"question": "token", "key": key, **FIELDS[number - len(NONSENSE)]}
    answer = door(data)
    assert answer.status_code == 200 and set(answer.json()) <= {"error", "gone"}, answer.text[:200]
    sentence = answer.json()["error"]
    assert sentence.endswith(".") and len(sentence) < 300 and "Unexpected" not in sentence and "unexpected" not in sentence and "/" not in sentence


def test_nobody_gets_a_result_without_its_key(door, key):
    for guess in ("", key[:-1], key + "a", key.swapcase(), "first", "../" + key):
        for session in ("anybody", "another", "x" * 1000):
            answer = door({"question": "twin", "key": guess}, session=session).json()
            assert set(answer) == {"error", "gone"} and answer["gone"] is True


@pytest.mark.parametrize("name", ["nothing", "__init__", "__class__", "postprocess", "api_info", "ask.__globals__", "_ask", "constructor", ""])
def test_nothing_but_the_door_is_a_door(door, name):
    answer = door({"question": "token"}, fn_name=name)
    assert answer.status_code == 404 and "Traceback" not in answer.text


def test_a_body_that_is_no_question_gives_no_trace_and_the_page_lives_on(page, door):
    for content in (b"", b"[]", b"7", b"null", b"{}", b"{", b'{"session_hash": 1}', b'{"session_hash": "a", "component_id": "x", "fn_name": "ask", "data": 1}'):
        for kind in ("application/json", "multipart/form-data; boundary=x", "text/plain"):
            answer = httpx.post(f"{page[0]}gradio_api/component_server", content=content, headers={"content-type": kind}, timeout=20)
            assert "Traceback" not in answer.text and "site-packages" not in answer.text and "/work" not in answer.text and answer.status_code != 200
    for component in (10**9, -1):
        assert "Traceback" not in door({}, component=component).text
    assert httpx.get(page[0]).status_code == 200

"""What reaches the page from outside: the documented endpoint by gradio_client, and hand-made requests over plain HTTP."""

import json

import httpx
import numpy as np
import pytest
from conftest import coloured, picture_bytes
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from vitdemo.explain import explain


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


def test_the_hard_pictures_go_through_the_endpoint_without_a_traceback(page, client, cases):
    for path in sorted((cases / "images").iterdir()):
        try:
            answer = client.predict(handle_file(str(path)), api_name="/explain")
            assert np.isfinite(answer["probabilities"]).all()
        except AppError as refusal:
            assert "Traceback" not in str(refusal) and str(path.parent) not in str(refusal) and len(str(refusal)) > 20, path.name
    assert httpx.get(page[0]).status_code == 200


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
    kind, text = call(page[0], "explain", value)
    assert kind in ("error", "refused") and "attention" not in text and "Traceback" not in text and str(tmp_path) not in text


def test_inline_pictures_and_foreign_addresses_are_refused(page):
    for value in (image_value(None, url="data:image/png;base64,iVBORw0KGgo="), {"url": "data:image/png;base64,iVBORw0KGgo=", "path": None},
                  image_value("http://127.0.0.1:9/x.png"), {"url": "http://127.0.0.1:9/x.png"}):
        kind, text = call(page[0], "explain", value)
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
    assert all(status.over or status.state == "queued" for _, status in app.scheduler._runs()) or not app.scheduler._runs()
    assert httpx.get(url).status_code == 200


def test_settings_of_the_launch_are_the_safe_ones(page):
    config = httpx.get(f"{page[0]}config").json()
    assert not config.get("run_history", False) and not config.get("analytics_enabled", True) and not config.get("show_error", True)

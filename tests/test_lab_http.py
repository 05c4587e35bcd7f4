"""The training lab's door from outside: hand-made requests over plain HTTP, and a checkpoint that is fetched where its address says."""

import httpx
import pytest
from conftest import coloured, picture_bytes

from vitdemo import checkpoint
from vitdemo.plan import plan


@pytest.fixture(scope="module")
def component(page):
    """The number of the lab's component."""
    parts = httpx.get(f"{page[0]}config", timeout=20).json()["components"]
    return next(part["id"] for part in parts if part["props"].get("elem_id") == "vd-lab")


def post(page, component: int, data, name: str = "ask"):
    body = {"session_hash": "any", "component_id": component, "fn_name": name, "data": data}
    return httpx.post(f"{page[0]}gradio_api/component_server", json=body, timeout=60)


@pytest.mark.parametrize("data", [None, 7, "x", [], {}, {"question": "follow"}, {"question": "follow", "run": "../../etc"},
                                  {"question": "open", "path": "/etc/passwd"},
                                 {"question": "start", "film": ["/etc/passwd"], "data": "cifar10", "minutes": 1},
                                 {"question": "cell", "run": "0" * 32, "truth": -1}])
def test_whatever_is_posted_gets_a_sentence(page, component, data):
    answer = post(page, component, data)
    assert answer.status_code == 200 and list(answer.json()) == ["error"]
    assert not any(word in answer.text for word in ("Traceback", "site-packages", "/tmp", "root:", "server's log"))


def test_only_the_door_can_be_called(page, component):
    for name in ("lab", "__init__", "postprocess", "_answer", "ask.__globals__"):
        assert post(page, component, {"question": "hello"}, name).status_code == 404


def test_a_film_picture_is_uploaded_started_with_and_the_weights_fetched(page, component, tiny):
    url, app = page
    path = httpx.post(f"{url}gradio_api/upload", files={"files": ("one.png", picture_bytes(coloured("red", 1)))}, timeout=20).json()[0]
    config = plan(data="cifar10", minutes=1).to_json()
    app.scheduler.close()                                                   # nothing is to be trained here
    try:
        run = post(page, component, {"question": "start", "data": "cifar10", "minutes": 1, "film": [path], "mine": []}).json()["run"]
        folder = app.scheduler.read(run)
        assert (folder.film / "subject-0.png").is_file() and folder.config()["vit"] == config["vit"]
        checkpoint.save(folder.best, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance={})
        given = post(page, component, {"question": "checkpoint", "run": run}).json()
        answer = httpx.get(url + given["url"], timeout=20)
        assert (answer.status_code == 200 and answer.content == folder.best.read_bytes()
                and given["name"] in answer.headers["content-disposition"])
        assert post(page, component, {"question": "delete", "run": run}).json()["state"] == "deleted"
    finally:
        app.scheduler.start()

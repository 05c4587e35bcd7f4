"""A visitor over plain HTTP, for measurements and tests: does what the page does, without a browser."""

import base64
import json
import os
import random
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TURNS = 12                                      # how often a page asks again where others are before it


class Visitor:
    """One open page. Every message that is waited for raises RuntimeError with the page's own words where there is no answer."""

    def __init__(self, url: str, timeout: float = 120):
        self._url, self._session = url.rstrip("/"), uuid.uuid4().hex
        self._client = httpx.Client(timeout=timeout, limits=httpx.Limits(max_connections=None))
        config = self._client.get(f"{self._url}/config").json()
        self._ids = {part["props"].get("elem_id"): part["id"] for part in config["components"]}
        self._change = next(event["id"] for event in config["dependencies"] if [self._ids["vd-picture"], "change"] in event["targets"])
        self.refused = 0                        # joins that the queue refused

    def show(self, content: bytes) -> dict[str, Any]:
        """The viewer's value for a picture."""
        number = self.join(self.upload(content))
        if number is None:
            raise RuntimeError("the queue is full")
        with self._client.stream("GET", f"{self._url}/gradio_api/queue/data", params={"session_hash": self._session}) as events:
            for line in events.iter_lines():
                message = json.loads(line[5:]) if line.startswith("data:") else {}
                if message.get("msg") == "process_completed" and message["event_id"] == number:
                    if not message["success"]:
                        raise RuntimeError(f"no answer: {message['output'].get('error')}")
                    return message["output"]["data"][0]
        raise RuntimeError("the stream ended without an answer")

    def upload(self, content: bytes) -> str:
        return self._client.post(f"{self._url}/gradio_api/upload", files={"files": ("picture.jpg", content, "image/jpeg")}).json()[0]

    def join(self, path: str) -> str | None:
        """The number of the change event of an uploaded picture; None where the queue refuses it."""
        value = {"path": path, "meta": {"_type": "gradio.FileData"}}
        body = {"data": [value, None], "fn_index": self._change, "session_hash": self._session}
        joined = self._client.post(f"{self._url}/gradio_api/queue/join", json=body)
        if joined.status_code == 503:
            self.refused += 1
            return None
        return joined.raise_for_status().json()["event_id"]

    def ask(self, request: dict[str, Any], component: str = "vd-viewer") -> dict[str, Any]:
        """What `ask` of a component says; asked again while others are before this visitor, as the page does."""
        body = {"session_hash": self._session, "component_id": self._ids[component], "fn_name": "ask", "data": request}
        for turn in range(1, TURNS + 1):
            answer = self._client.post(f"{self._url}/gradio_api/component_server", json=body).raise_for_status().json()
            if not (answer.get("busy") and "error" in answer) or turn == TURNS:
                return answer
            time.sleep(0.12 * turn * (1 + random.random()))
        raise AssertionError("unreachable")

    def ask_lab(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self.ask(request, "vd-lab")
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def right(got: Any, want: Any, tolerance: float) -> bool:
    """Whether an answer holds everything that is wanted: numbers within `tolerance` of their list's largest, all else the very same."""
    if isinstance(want, dict) and set(want) == {"shape", "highs", "data"}:
        return isinstance(got, dict) and got.get("shape") == want["shape"] and bool(np.abs(_weights(got) - _weights(want)).max() <= tolerance)
    if isinstance(want, dict):
        return isinstance(got, dict) and all(right(got.get(name), value, tolerance) for name, value in want.items() if name not in ("key", "about"))
    if isinstance(want, (list, tuple)):
        return isinstance(got, list) and len(got) == len(want) and all(right(one, other, tolerance) for one, other in zip(got, want, strict=True))
    if isinstance(want, float):
        return isinstance(got, (int, float)) and abs(got - want) <= tolerance * max(1, abs(want))
    return got == want


def _weights(packed: dict[str, Any]) -> np.ndarray:
    """Weights (layers, heads, T) as shares of the largest of all."""
    highs = np.array(packed["highs"]).reshape(*packed["shape"][:2], 1)
    return np.frombuffer(base64.b64decode(packed["data"]), "<u2").reshape(packed["shape"]) / 65535 * highs / max(highs.max(), 1e-12)


@contextmanager
def served(scratch: Path, data: str, *, port: int | None = None) -> Iterator[tuple[str, subprocess.Popen]]:
    """`app.py` as on a public host, with folders of its own; (its address, its process). Ended on the way out."""
    if port is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    places = {"VITDEMO_CACHE": scratch / "cache", "VITDEMO_RUNS": scratch / "runs", "GRADIO_TEMP_DIR": scratch / "uploads"}
    environment = {**os.environ, **{name: str(folder) for name, folder in places.items()}, "VITDEMO_DATA": data, "SPACE_ID": "some/space"}
    server = subprocess.Popen([sys.executable, "app.py", "--host", "127.0.0.1", "--port", str(port), "--no-browser"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(900):
            try:
                httpx.get(f"{url}/config").raise_for_status()
                break
            except httpx.HTTPError:
                if server.poll() is not None:
                    raise SystemExit("app.py ended before it answered") from None
                time.sleep(0.1)
        yield url, server
    finally:
        server.terminate()
        server.wait(20)

"""Thirty visitors change their pictures at once: is every answer the visitor's own, and how long does it take?

    python tests/benchmarks/visitors.py [--visitors 30] [--rounds 5] [--photo]

Starts `app.py` on this machine and speaks to it as the page does (upload, then the picture's change event through the queue). Each visitor
shows pictures of their own; every answer is compared with `explain` of that picture. With `--photo` one visitor shows a JPEG of 12
megapixels and the server's own time is printed.
"""

import argparse
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import httpx
import numpy as np
from PIL import Image

from vitdemo import checkpoint, settings
from vitdemo.explain import explain


def picture(seed: int, size: tuple[int, int] = (240, 320), kind: str = "JPEG") -> bytes:
    """A picture of soft blobs, different for every seed, (rows, cols) pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize(size[::-1], Image.Resampling.BICUBIC).save(buffer, kind, quality=90)
    return buffer.getvalue()


class Visitor:
    """One open page: uploads pictures and waits for what the viewer would show."""

    def __init__(self, url: str, change: int):
        self._url, self._change, self._session = url, change, uuid.uuid4().hex
        self._client = httpx.Client(timeout=120)

    def show(self, content: bytes) -> tuple[dict, float]:
        """(the viewer's value, seconds from the upload to the answer)."""
        start = time.perf_counter()
        path = self._client.post(f"{self._url}/gradio_api/upload", files={"files": ("picture.jpg", content, "image/jpeg")}).json()[0]
        value = {"path": path, "meta": {"_type": "gradio.FileData"}}
        joined = self._client.post(f"{self._url}/gradio_api/queue/join", json={"data": [value, None], "fn_index": self._change, "session_hash": self._session})
        joined.raise_for_status()
        with self._client.stream("GET", f"{self._url}/gradio_api/queue/data", params={"session_hash": self._session}) as events:
            for line in events.iter_lines():
                if line.startswith("data:"):
                    message = json.loads(line[5:])
                    if message["msg"] == "process_completed":
                        return message["output"]["data"][0], time.perf_counter() - start
        raise RuntimeError("no answer")


def visit(url: str, change: int, contents: list[bytes], expected: list, found: list) -> None:
    visitor = Visitor(url, change)
    for content, right in zip(contents, expected, strict=True):
        try:
            value, seconds = visitor.show(content)
            name, share = value["top"][0]
            found.append((seconds, name == right[0] and abs(share - right[1]) < 1e-4))
        except Exception as error:
            found.append((float("nan"), False))
            print(f"  a visitor got no answer: {type(error).__name__} {error}")


def change_event(url: str) -> int:
    """The number of the event that the page fires when its picture changes."""
    config = httpx.get(f"{url}/config").json()
    picture_id = next(part["id"] for part in config["components"] if part["props"].get("elem_id") == "vd-picture")
    return next(event["id"] for event in config["dependencies"] if [picture_id, "change"] in event["targets"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photo", action="store_true")
    args = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as scratch:
        server = subprocess.Popen([sys.executable, "app.py", "--port", str(port), "--no-browser"], cwd=ROOT, stdout=subprocess.DEVNULL,
                                  env={**os.environ, "VITDEMO_RUNS": scratch, "GRADIO_TEMP_DIR": f"{scratch}/uploads"})
        try:
            for _ in range(600):
                try:
                    httpx.get(f"{url}/config").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            print(f"{settings.machine()}")
            measure(url, args)
        finally:
            server.terminate()
            server.wait(20)


def measure(url: str, args: argparse.Namespace) -> None:
    change, box = change_event(url), checkpoint.load()
    contents = [[picture(1000 * visitor + number) for number in range(args.rounds)] for visitor in range(args.visitors)]
    expected = [[explain(content, box).top(1)[0] for content in mine] for mine in contents]
    Visitor(url, change).show(picture(7))                                   # the first request of a fresh server loads what it needs
    found: list[tuple[float, bool]] = []
    threads = [threading.Thread(target=visit, args=(url, change, mine, right, found)) for mine, right in zip(contents, expected, strict=True)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = sorted(s for s, _ in found)
    print(f"{args.visitors} visitors at once, {args.rounds} pictures each: {sum(right for _, right in found)} of {len(found)} answers right, "
          f"median {statistics.median(seconds):.2f} s, 95 % below {seconds[int(0.95 * len(seconds)) - 1]:.2f} s, all in {time.perf_counter() - start:.1f} s")
    if args.photo:
        content = picture(3, (3000, 4000))
        times = [Visitor(url, change).show(content)[1] for _ in range(7)]
        print(f"a JPEG of 12 megapixels ({len(content) / 1e6:.1f} MB), upload and answer: median {statistics.median(times):.3f} s, n = {len(times)}")


if __name__ == "__main__":
    main()

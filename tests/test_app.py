"""The program as a person starts it: `python app.py`, its end, and what it says when it cannot start."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from vitdemo.runfolder import RunFolder

ROOT = Path(__file__).resolve().parent.parent


def start(tmp_path, *arguments: str, **environment: str) -> subprocess.Popen:
    own = {"TMPDIR": str(tmp_path), "VITDEMO_CACHE": str(tmp_path / "cache"), "VITDEMO_RUNS": str(tmp_path / "cache" / "runs")}
    env = {k: v for k, v in os.environ.items() if k != "GRADIO_TEMP_DIR"} | own | environment
    return subprocess.Popen([sys.executable, "app.py", "--no-browser", *arguments], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextlib.contextmanager
def answering(tmp_path, *arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """(process, address) of the program once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process, url = start(tmp_path, "--port", str(port), *arguments, **environment), f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if httpx.get(f"{url}healthz").status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield process, url
    finally:
        process.kill()
        process.communicate()


def door(url: str, element: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of one of the page's components, as its front end asks."""
    parts = httpx.get(f"{url}config", timeout=20).json()["components"]
    number = next(part["id"] for part in parts if part["props"].get("elem_id") == element)
    body = {"session_hash": "any", "component_id": number, "fn_name": "ask", "data": request}
    return httpx.post(f"{url}gradio_api/component_server", json=body, timeout=30).json()


def until(asked: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not asked():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
def test_it_says_that_it_is_well_and_a_sigterm_ends_it_with_its_run_and_deletes_the_uploads(tmp_path, colour_zip):
    with answering(tmp_path, VITDEMO_DATA=str(colour_zip.parent)) as (process, url):
        for answer in (httpx.get(f"{url}healthz"), httpx.head(f"{url}healthz")):
            assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
        assert httpx.get(f"{url}healthz").json() == {"status": "ok"}
        uploads = list(tmp_path.glob("vitdemo-uploads-*"))
        assert len(uploads) == 1 and any(uploads[0].rglob("*.jpg"))          # the examples as they are served
        run = RunFolder(tmp_path / "cache" / "runs" / door(url, "vd-lab", {"question": "start", "data": "cifar10", "minutes": 5, "film": [], "mine": []})["run"])
        until(lambda: run.status().state == "running")
        child = run.status().pid
        with httpx.stream("GET", f"{url}gradio_api/heartbeat/any", timeout=30):          # a browser that stays connected
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        assert not list(tmp_path.glob("vitdemo-uploads-*"))
        until(lambda: run.status().over)
        until(lambda: not alive(child))


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def test_a_port_that_cannot_be_used_is_said_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for port in (taken.getsockname()[1], 80_000):
            process = start(tmp_path, "--port", str(port))
            output, _ = process.communicate(timeout=60)
            assert process.returncode == 1 and f"port {port}" in output and len(output.strip().splitlines()) == 1


@pytest.mark.parametrize(("environment", "said"), [({"VITDEMO_MAX_MINUTES": "soon"}, "VITDEMO_MAX_MINUTES must be a number"),
                                                 ({"VITDEMO_CHECKPOINT": "missing.safetensors"}, "missing.safetensors")])
def test_what_keeps_it_from_starting_is_said_in_one_line(tmp_path, environment, said):
    process = start(tmp_path, **environment)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and said in output and len(output.strip().splitlines()) == 1


LIGHT_START = """
import sys
import app
from vitdemo import loading
from vitdemo.ui import build_app, launch_settings
build_app(loading.shown()); launch_settings()
slow = [name for name in ("torchvision", "torch._dynamo", "matplotlib.figure", "transformers", "timm", "scipy", "sympy", "spaces") if name in sys.modules]
print(slow)
"""


def test_nothing_that_is_slow_to_import_is_imported_before_it_is_needed(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIGHT_START], cwd=ROOT, env=os.environ | {"VITDEMO_RUNS": str(tmp_path)}, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


EVENTS = """
import app
from gradio_client import Client, handle_file
from vitdemo import loading
from vitdemo.ui import build_app, launch_settings
shown = build_app(loading.shown()).blocks
_, url, _ = shown.launch(**launch_settings(), prevent_thread_lock=True, quiet=True)
client = Client(url, verbose=False)
for _ in range(3):
    client.predict(handle_file("vitdemo/ui/examples/cat.jpg"), "box", api_name="/explain")
print(len(shown._queue.event_analytics), shown._queue.cached_event_analytics_summary)
"""


def test_no_table_of_past_events_is_kept_or_worked_out(tmp_path):
    done = subprocess.run([sys.executable, "-c", EVENTS], cwd=ROOT, env=os.environ | {"VITDEMO_RUNS": str(tmp_path)}, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "1 {'functions': {}}", done.stdout + done.stderr


POOR = """
# what Windows does not have
import os, signal, sys
for name in ("fork", "forkpty", "killpg", "getpgid", "setsid", "sched_getaffinity", "getuid", "geteuid", "chown", "mkfifo", "nice", "getloadavg", "statvfs"):
    if hasattr(os, name) and "subprocess" not in sys.modules:
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGALRM", "SIGCHLD"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in ("resource", "grp"):
    sys.modules[name] = None
"""


def test_a_run_is_started_stopped_and_resumed_without_what_only_posix_has(tmp_path, colour_zip):
    (tmp_path / "poor").mkdir()
    (tmp_path / "poor" / "sitecustomize.py").write_text(POOR, encoding="utf-8")
    path = os.pathsep.join((str(tmp_path / "poor"), str(ROOT)))
    with answering(tmp_path, VITDEMO_DATA=str(colour_zip.parent), PYTHONPATH=path, USERNAME="student") as (process, url):
        asked = {"question": "start", "data": "cifar10", "minutes": 5, "film": [], "mine": []}
        name = door(url, "vd-lab", asked)["run"]
        run = RunFolder(tmp_path / "cache" / "runs" / name)
        until(lambda: run.status().state == "running" and run.best.exists())
        door(url, "vd-lab", {"question": "stop", "run": name})
        until(lambda: run.status().over)
        assert run.status().state == "stopped"
        until(lambda: "error" not in door(url, "vd-lab", {"question": "resume", "run": name, "mine": [name]}))       # its process may still be ending
        until(lambda: run.status().state == "running")
        door(url, "vd-lab", {"question": "stop", "run": name})
        until(lambda: run.status().over)

"""The program as a person starts it: `python app.py`, its end, and what it says when it cannot start."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parent.parent


def start(tmp_path, *arguments: str, **environment: str) -> subprocess.Popen:
    env = {k: v for k, v in os.environ.items() if k != "GRADIO_TEMP_DIR"} | {"TMPDIR": str(tmp_path), "VITDEMO_CACHE": str(tmp_path / "cache")} | environment
    return subprocess.Popen([sys.executable, "app.py", "--no-browser", *arguments], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
def test_it_answers_and_a_sigterm_ends_it_and_deletes_the_uploads(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(tmp_path, "--port", str(port))
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/").status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        uploads = list(tmp_path.glob("vitdemo-uploads-*"))
        assert len(uploads) == 1 and any(uploads[0].rglob("*.jpg"))          # the examples as they are served
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert not list(tmp_path.glob("vitdemo-uploads-*"))
    finally:
        process.kill()
        process.communicate()


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

"""How long the program takes from its start to its first answer, beside a bare Gradio page of one button. By hand, on a quiet machine.

    python tests/benchmarks/start.py [--runs 7]

The two are started in turns, each in a fresh process with its own folders; "first answer" is the first 200 for `/`, asked every 10 ms.
Prints a table in Markdown, with the median and all values; ends with 1 where ours takes more than 1.3 times the other's time.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from vitdemo import settings

MOST = 1.3                                      # times the bare page's time
BARE = """
import os, sys
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
import torch, gradio
with gradio.Blocks() as blocks:
    gradio.Button("one")
blocks.launch(server_port=int(sys.argv[1]), quiet=True)
"""


def first_answer(command: list[str], paths: tuple[str, ...]) -> dict[str, float]:
    """Seconds from the start of `command`, which gets a port as its last argument, to the first 200 for each of `paths`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    taken: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        own = {"GRADIO_TEMP_DIR": home, "VITDEMO_CACHE": home, "GRADIO_ANALYTICS_ENABLED": "False"}
        start = time.perf_counter()
        process = subprocess.Popen([*command, str(port)], cwd=ROOT, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while len(taken) < len(paths):
                if process.poll() is not None or time.perf_counter() - start > 120:
                    raise SystemExit(f"{command} did not answer")
                for path in paths:
                    if path not in taken and _answers(f"http://127.0.0.1:{port}{path}"):
                        taken[path] = time.perf_counter() - start
                time.sleep(0.01)
        finally:
            process.terminate()
            process.wait(30)
    return taken


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    bare, ours = [sys.executable, "-c", BARE], [sys.executable, "app.py", "--no-browser", "--port"]
    seconds: dict[str, list[float]] = {"torch, gradio, one button: /": [], "this program: /": [], "this program: /healthz": []}
    for run in range(args.runs + 1):
        alone, own = first_answer(bare, ("/",)), first_answer(ours, ("/", "/healthz"))
        rows = (alone["/"], own["/"], own["/healthz"])
        for name, value in zip(seconds, rows, strict=True):
            seconds[name] += [value] * (run > 0)                            # the first one reads everything from a cold disk
    print(f"{settings.machine()}, load average {os.getloadavg()[0]:.1f} at the end, n = {args.runs}\n")
    print("| what | median, s | all |\n|---|---|---|")
    for name, values in seconds.items():
        print(f"| {name} | {statistics.median(values):.2f} | {', '.join(f'{value:.2f}' for value in sorted(values))} |")
    alone, page, _ = (statistics.median(values) for values in seconds.values())
    print(f"\n{page / alone:.2f} times the bare page's time")
    return page > MOST * alone


if __name__ == "__main__":
    raise SystemExit(main())

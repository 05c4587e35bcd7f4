"""Sends a real page hand-made requests for some minutes; prints each one whose answer is wrong, and ends with 1 then. Starts no training.

    python tests/benchmarks/fuzz.py --minutes 5 --seed 1
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as home:
        os.environ.update(GRADIO_TEMP_DIR=f"{home}/uploads", VITDEMO_RUNS=f"{home}/runs", VITDEMO_CACHE=f"{home}/cache", VITDEMO_MODELS="none", VITDEMO_HUB="0",
                          VITDEMO_UPLOAD_MB="20", VITDEMO_QUEUE="3", GRADIO_ANALYTICS_ENABLED="False")
        return fuzz(Path(home), args.minutes, args.seed)


def fuzz(home: Path, minutes: float, seed: int) -> int:
    import logging

    import httpx
    from fuzzing import MARK, Fuzzer
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    from vitdemo import loading
    from vitdemo.ui import build_app, launch_settings

    logging.disable(logging.CRITICAL)                                       # thousands of traces, each under its number
    info, secret = PngInfo(), home / "secret.png"
    info.add_text("x", MARK)
    Image.new("RGB", (40, 30), "red").save(secret, pnginfo=info)
    app = build_app(loading.shown())
    _, url, _ = app.blocks.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    fuzzer = Fuzzer(url, seed, secret, (home / "runs", home / "cache", ROOT))          # uploads and examples are called by their paths
    sent, wrong, slowest, until = 0, 0, 0.0, time.monotonic() + 60 * minutes
    for request in fuzzer.requests():
        began = time.monotonic()
        said = fuzzer.wrong(request)
        slowest, sent = max(slowest, time.monotonic() - began), sent + 1
        if said:
            wrong += 1
            print(f"{request}\n  -> {said}\n", flush=True)
        if time.monotonic() > until:
            break
    alive = httpx.get(f"{url}healthz", timeout=20).status_code == 200
    runs = [path.name for path in (home / "runs").glob("*/output.txt")]
    print(f"{sent} requests (seed {seed}), {wrong} wrong answers, the slowest {slowest:.1f} s; the page {'lives on' if alive else 'is dead'}; {len(runs)} runs trained")
    app.blocks.close()
    return int(bool(wrong or runs) or not alive)


if __name__ == "__main__":
    sys.exit(main())

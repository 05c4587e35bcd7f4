"""Does the disk stay bounded? A page with small limits, so that they are reached within minutes, gets hundreds of different pictures and analyses each;
then as many again that nobody looks at. Prints the bytes of the upload folder, the cache and the runs; ends with 1 where one passes its bound.

    python tests/benchmarks/disk.py --pictures 500
"""

import argparse
import io
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--megabytes", type=int, default=50, help="what uploads may take, all together")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="disk-") as home:
        os.environ.update(GRADIO_TEMP_DIR=f"{home}/uploads", VITDEMO_RUNS=f"{home}/runs", VITDEMO_CACHE=f"{home}/cache", VITDEMO_UPLOADS_MB=str(args.megabytes),
                          VITDEMO_UPLOAD_MB="20", GRADIO_ANALYTICS_ENABLED="False")
        return measure(Path(home), args.pictures, args.megabytes * 10**6)


def used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(home: Path, pictures: int, bound: int) -> int:
    import time

    import httpx
    import numpy as np
    from gradio.route_utils import delete_files_created_by_app
    from PIL import Image

    from vitdemo import loading
    from vitdemo.ui import build_app, gate, launch_settings

    app = build_app(loading.shown())
    settings = launch_settings()
    settings["app_kwargs"]["middleware"][0].args[0]._young = 1.0            # nothing is old yet within these minutes
    _, url, _ = app.blocks.launch(prevent_thread_lock=True, quiet=True, **settings)
    client, noise, wrong = httpx.Client(timeout=60), np.random.default_rng(0), []

    def look(told: str) -> None:
        sizes = [used(home / name) for name in ("uploads", "cache", "runs")]
        print(f"{told:>28}: uploads {sizes[0] / 1e6:7.1f} MB, cache {sizes[1] / 1e6:5.1f} MB, runs {sizes[2] / 1e6:5.1f} MB", flush=True)
        if sizes[0] > bound or sum(sizes[1:]) > 10**6:
            wrong.append(told)

    def send(content: bytes) -> str | None:
        answer = client.post(f"{url}gradio_api/upload", files={"files": ("photo.png", content)})
        return answer.json()[0] if answer.status_code == 200 else None

    look("before")
    for number in range(1, pictures + 1):
        buffer = io.BytesIO()
        Image.fromarray(noise.integers(0, 255, (250, 250, 3), dtype=np.uint8)).save(buffer, "PNG")          # about 190 kB
        path = send(buffer.getvalue())
        event = client.post(f"{url}gradio_api/call/explain", json={"data": [{"path": path, "meta": {"_type": "gradio.FileData"}}, "box"]}).json()["event_id"]
        if "event: complete" not in client.get(f"{url}gradio_api/call/explain/{event}").text:
            wrong.append(f"picture {number} was not analysed")
        if number % 100 == 0 or number == pictures:
            look(f"{number} analyses")
    for number in range(1, 31):
        send(noise.bytes(10 * 10**6))
        if number % 10 == 0:
            look(f"{number} files of 10 MB unseen")
    time.sleep(2)
    delete_files_created_by_app(app.blocks, 1)                              # what Gradio does every ten minutes, with 3,000 seconds
    look("after the sweep")
    left = used(home / "uploads")
    app.blocks.close()
    print(f"bound {bound / 1e6:.0f} MB, left {left / 1e6:.1f} MB (the page's own examples), a file is gone after {gate.KEEP} s at most" + "".join(f"\nWRONG: {what}" for what in wrong))
    return int(bool(wrong) or left > 5 * 10**6)


if __name__ == "__main__":
    sys.exit(main())

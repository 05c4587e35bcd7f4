"""Trains the run that ships with the program, for the day when a live demonstration fails, and writes it to vitdemo/ui/recorded.

    python tests/benchmarks/recorded_run.py --data PATH/cifar10.zip

It is the run that the page starts for a class of three minutes, about three of the example photos. No picture of the data set goes along: the
watched pictures and the pictures of mistakes are left out, and the weights are stored in 16 bits.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from vitdemo import checkpoint, filmstrip, jsonfile, settings, trainer
from vitdemo.plan import plan
from vitdemo.runs import RunFolder
from vitdemo.ui import desk, models, orders


def recorded(data: str, minutes: float, threads: int, home: Path) -> RunFolder:
    """The folder of a run that was carried out in `home`."""
    wanted = plan(preset="class", data=data, minutes=minutes, title="the recorded run",
                  changes={"threads": threads, "clock": "all", **orders.by_clock(minutes, orders.MANY)})
    folder = RunFolder(home / "run").create(wanted.to_json())
    folder.film.mkdir()
    for i, name in enumerate(desk.STARS):
        (folder.film / f"subject-{i}-{name}.png").write_bytes(desk.kept(str(models.EXAMPLES / f"{name}.jpg")))
    trainer.carry_out(folder, wanted)
    return folder


def ship(folder: RunFolder, home: Path) -> None:
    """Copy what may be passed on of a run."""
    shutil.rmtree(home, ignore_errors=True)
    config = {**folder.config(), "data": "cifar10"}                         # not where it was read from
    target = RunFolder(home).create(config)
    scene, frames = filmstrip.untold(folder.scene(), folder.frames()[0])
    target.write_scene(scene)
    for frame in frames:
        target.add_frame(frame)
    for record in folder.records()[0]:
        target.log(record)
    jsonfile.write(target.path / "status.json", {**jsonfile.read(folder.path / "status.json"), "pid": None})
    kept = checkpoint.load(folder.best)
    checkpoint.save(target.best, kept.model, classes=kept.classes, preprocessing=kept.preprocessing, provenance={**kept.provenance, "data": "cifar10"}, half=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--threads", type=int, default=settings.training_threads())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = recorded(args.data, args.minutes, args.threads, Path(scratch))
        ship(folder, models.RECORDED_FOLDER)
    shipped = RunFolder(models.RECORDED_FOLDER)
    size = sum(path.stat().st_size for path in shipped.path.rglob("*") if path.is_file())
    print(json.dumps({"test_accuracy": shipped.status().test_accuracy, "frames": len(shipped.frames()[0]), "bytes": size, "machine": settings.machine()}))


if __name__ == "__main__":
    main()

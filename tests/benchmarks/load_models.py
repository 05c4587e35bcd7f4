"""How long a ViT-B/16 takes to load with all checks, and how much memory beside its weights, by whose names and in which kind of file.

    python tests/benchmarks/load_models.py [--threads 2] [--repeat 5] [--folder FOLDER]

Random weights are written to a temporary folder (2 GB) and read once before, so that the disk is warm; every row is a process of its own,
whose imports do not count. Processor seconds stand beside those on the clock: other programs make the latter longer. Memory is the peak of
the process in the first load, above what it held before and above the weights that are kept in the end; it needs Linux. The last row asks
for all the files in turn through the page's stock with room for one model and a half.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import safetensors.torch
import torch

from vitdemo import loading, settings, zoo
from vitdemo.checkpoint import save
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.model import ViT
from vitdemo.ui.stock import Stock

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
ROOM = 520 * 10**6                              # bytes of the stock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the files are kept for the next time")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        torch.set_num_threads(args.threads)
        print(json.dumps(measured(args.measure, args.repeat)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        paths = written(args.folder or Path(scratch))
        print(f"{settings.machine()}, torch {torch.__version__}, {args.threads} threads, median of {args.repeat}\n")
        print("| file | MB | seconds | processor seconds | peak above the weights, MB |\n|---|---|---|---|---|")
        for files in ([path] for path in paths):
            row(files[0].name, files, args)
        row(f"all {len(paths)} in turn, through a stock of {ROOM / 1e6:.0f} MB", paths, args)


def row(name: str, files: list[Path], args: argparse.Namespace) -> None:
    command = [sys.executable, __file__, "--threads", str(args.threads), "--repeat", str(args.repeat), "--measure", *map(str, files)]
    seconds, processor, memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    above = "not measured" if memory is None else f"{memory / 1e6:.0f}"
    print(f"| {name} | {megabytes:.0f} | {seconds:.2f} | {processor:.2f} | {above} |", flush=True)


def written(folder: Path) -> list[Path]:
    """A ViT-B/16 of random weights by each of the namings, in each kind of file."""
    paths = [folder / name for name in ("ours.safetensors", "timm.safetensors", "timm.pth", "torchvision.safetensors", "torchvision.pth")]
    if not all(path.is_file() for path in paths):
        from torchvision.models import vit_b_16

        ours, theirs = ViT(ViTConfig(), torch.Generator().manual_seed(0)).eval(), vit_b_16().state_dict()
        save(paths[0], ours, classes=[f"class {i}" for i in range(1000)], preprocessing=Preprocessing(size=224), provenance={})
        for path, state in zip(paths[1:], (ours.state_dict(),) * 2 + (theirs,) * 2, strict=True):
            safetensors.torch.save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    for path in paths:
        path.read_bytes()                                                   # now the disk is warm
    return paths


def measured(files: list[str], repeat: int) -> tuple[float, float, int | None]:
    """(seconds, processor seconds, bytes of memory beside the weights) of loading one file, or several in turn."""
    zoo.class_names(ViTConfig())                                            # imports torchvision
    loading.load()
    rows = []
    for _ in range(repeat):
        before, wall, processor = memory(reset=True), time.perf_counter(), time.process_time()
        if len(files) == 1:
            kept = weights = loading.load(Path(files[0]), num_heads=12).bytes
        else:
            stock = Stock(ROOM)
            for file in files:
                stock.get(file, lambda: loading.load(Path(file), num_heads=12), Path(file).stat().st_size)         # noqa: B023, used at once
            kept, weights, stock = stock.bytes, stock.bytes, None
        assert kept
        rows.append((time.perf_counter() - wall, time.process_time() - processor, memory() - before - weights if before else None))
    seconds, processor, above = zip(*rows, strict=True)
    return statistics.median(seconds), statistics.median(processor), above[0]                               # later ones find memory to use again


def memory(*, reset: bool = False) -> int:
    """Bytes this process has held at most since the last reset, or now where it is reset; 0 where the system does not say."""
    if not RESET.exists():
        return 0
    if reset:
        RESET.write_text("5")
    kind = "VmRSS" if reset else "VmHWM"
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(kind))


if __name__ == "__main__":
    main()

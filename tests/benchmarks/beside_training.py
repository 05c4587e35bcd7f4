"""How long an answer of Explore takes while a training run goes on beside it, and alone. By hand, on a machine that does nothing else.

    python tests/benchmarks/beside_training.py --data PATH/cifar10.zip

As in the page: this process answers with all threads but one core's, and the run is a child with the threads that the page gives it.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

import vitdemo
from vitdemo import settings
from vitdemo.explain import explain
from vitdemo.payload import payload
from vitdemo.plan import plan
from vitdemo.runs import Scheduler

PHOTO = Path(__file__).resolve().parents[2] / "vitdemo" / "ui" / "examples" / "cat.jpg"


def answers(count: int) -> list[float]:
    """Seconds of `count` answers, from the file to what the browser gets, one every tenth of a second as a person's clicks never are."""
    loaded, taken = vitdemo.load(), []
    for _ in range(count):
        start = time.perf_counter()
        payload(explain(PHOTO, loaded))
        taken.append(time.perf_counter() - start)
        time.sleep(0.1)
    return taken


def said(name: str, taken: list[float]) -> float:
    middle = statistics.median(taken)
    print(f"{name}: median {1000 * middle:.1f} ms, 95 % below {1000 * sorted(taken)[int(0.95 * len(taken))]:.1f} ms (n = {len(taken)})", flush=True)
    return middle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--count", type=int, default=100)
    args = parser.parse_args()
    threads = settings.training_threads()
    torch.set_num_threads(threads)
    answers(10)
    print(f"{settings.machine()}; {threads} thread(s) for answers and for the run")
    idle = said("alone", answers(args.count))
    with tempfile.TemporaryDirectory() as scratch:
        scheduler = Scheduler(Path(scratch))
        run = scheduler.submit(plan(preset="class", data=args.data, minutes=5, changes={"threads": threads}).to_json())
        scheduler.start()
        try:
            while scheduler.read(run).status().step < 10:
                if scheduler.read(run).status().over:
                    raise SystemExit(scheduler.read(run).status().message)
                time.sleep(0.5)
            busy = said("beside a run", answers(args.count))
        finally:
            scheduler.close()
    print(f"{busy / idle:.2f} times as long")


if __name__ == "__main__":
    main()

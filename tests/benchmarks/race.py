"""Runs fair races as the page does and prints their verdicts. By hand, on a machine that does nothing else.

    python tests/benchmarks/race.py --data PATH/cifar10.zip --kinds optimizer positions --minutes 1 --seeds 3
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vitdemo import pace, races, settings
from vitdemo.plan import plan
from vitdemo.runs import Scheduler
from vitdemo.ui import racing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--kinds", nargs="+", default=["optimizer"], choices=races.KINDS)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    threads = settings.training_threads()
    speed = pace.measure(plan(data=args.data, steps=1000), threads=threads).images_per_second
    print(f"{settings.machine()}, {threads} thread(s), {speed:.0f} images/s measured before\n", flush=True)
    for kind in args.kinds:
        with tempfile.TemporaryDirectory() as scratch:
            scheduler = Scheduler(Path(scratch), queue=2 * args.seeds)
            wanted = races.plans(kind, minutes=args.minutes, data=args.data, seeds=args.seeds, threads=threads, pace=speed)
            began = time.monotonic()
            runs = [scheduler.read(run) for run in scheduler.submit_all([made.to_json() for made in wanted])]
            scheduler.start()
            try:
                while not all(run.status().over for run in runs):
                    time.sleep(1)
            finally:
                scheduler.close()
            rows = [racing.row(run) for run in runs]
            print(f"{races.KINDS[kind].title}: {time.monotonic() - began:.0f} s, said before: {races.total_seconds(wanted, pace=speed):.0f} s")
            for row in rows:
                print(f"  {row['side']} seed {row['seed']}: {row['accuracy']:.1%} of {row['n']} validation pictures")
            print(f"  {racing.verdict(rows)['sentence']}\n", flush=True)


if __name__ == "__main__":
    main()

"""How long one map against random takes, and the full ranking, for the model in the box, by each way of hiding.

    python tests/benchmarks/faithfulness.py [--runs 7]

One map, its reverse and 20 random orders, 16 levels, for each of the example pictures' most probable class.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch

from vitdemo import checkpoint, faithfulness, settings
from vitdemo.explain import Explanation, explain

PICTURES = sorted((ROOT / "vitdemo" / "ui" / "examples").glob("[a-n]*.jpg"))


def one_map(result: Explanation, how: str) -> faithfulness.Verdict:
    """The last layer's class-token map against chance."""
    hider = faithfulness.Hider(result.loaded, result.tensor, int(result.probabilities.argmax()), how)
    order = faithfulness.order_of(result.attention[-1].mean(0))
    areas = faithfulness.area(faithfulness.measure(hider, [order, order[::-1], *faithfulness.random_orders(hider.patches)]))
    return faithfulness.judge(areas[0], areas[2:])


def ranking(result: Explanation, how: str) -> dict[str, str]:
    """The five kinds of maps, each judged against the same random orders."""
    klass = int(result.probabilities.argmax())
    hider = faithfulness.Hider(result.loaded, result.tensor, klass, how)
    maps = {
        "CLS attention": result.attention[-1].mean(0), "mean attention": result.attention.mean((0, 1)), "rollout": result.patches(result.rollout()),
        "relevance": result.patches(result.relevance(klass)), "occlusion": faithfulness.occlusion(result.loaded, result.tensor, klass, how),
    }
    areas = faithfulness.area(faithfulness.measure(hider, [*map(faithfulness.order_of, maps.values()), *faithfulness.random_orders(hider.patches)]))
    return {name: faithfulness.judge(own, areas[len(maps):]).kind for name, own in zip(maps, areas, strict=False)}


def timed(call, *arguments) -> tuple[float, object]:
    start = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - start, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    box = checkpoint.load()
    results = [explain(path, box) for path in PICTURES]
    print(f"{settings.machine()}, torch {torch.__version__}, {box.name}, {len(results)} pictures, median of {args.runs} runs over them")
    for threads in (2, 1):
        torch.set_num_threads(threads)
        for how in faithfulness.HIDING:
            one_map(results[0], how)
            singles, alls = ([timed(call, results[n % len(results)], how)[0] for n in range(args.runs)] for call in (one_map, ranking))
            print(f"  {threads} threads, {how:5}: one map {statistics.median(singles):.2f} s (slowest {max(singles):.2f}), ranking of five {statistics.median(alls):.2f} s")
    for how in faithfulness.HIDING:
        found = [ranking(result, how) for result in results]
        print(f"  {how:5}: better than chance in " + ", ".join(f"{name} {sum(one[name] == 'better' for one in found)}" for name in found[0]) + f" of {len(found)} pictures")


if __name__ == "__main__":
    main()

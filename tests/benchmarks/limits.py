"""How much of this machine a training step and an answer use: their floating-point operations a second beside a large matrix product.

    python tests/benchmarks/limits.py [--threads 2] [--rounds 5]

Operations are counted by PyTorch's own FlopCounterMode (matrix products and attention; a multiplication and an addition are two). The
matrix product, 2048 x 2048 x 2048 in float32, is what this machine can do at best. A number is the best of the rounds.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch.utils.flop_counter import FlopCounterMode

from vitdemo import heap, presets, settings, train
from vitdemo.config import TrainConfig
from vitdemo.model import ViT

CASES = (("vit-micro", 128, 0.5), ("vit-micro", 128, 0.75), ("vit-micro", 128, 1.0), ("vit-tiny-9.5m", 64, 1.0))       # size, batch, share of the side


def counted(act: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        act()
    return counter.get_total_flops()


def seconds(act: Callable[[], object], rounds: int) -> float:
    act()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    heap.keep()                                                             # as the training command does
    torch.set_num_threads(args.threads or settings.cores())
    torch.manual_seed(0)
    left, right = torch.randn(2, 2048, 2048)
    most = 2 * 2048**3 / seconds(lambda: left @ right, args.rounds)
    print(f"{settings.machine()}, {torch.get_num_threads()} threads; a 2048 matrix product: {most / 1e9:.0f} GFLOP/s\n")
    print("| model | pixels | batch | what | images/s | GFLOP/s | of the matrix product |\n|---|---|---|---|---|---|---|")
    for size, batch, share in CASES:
        config = presets.SIZES[size].config
        side = round(share * config.image[0])
        model, images, labels = ViT(config), torch.randn(batch, config.channels, side, side), torch.randint(config.classes, (batch,))
        state = train.State(model, TrainConfig(steps=1))
        acts = {"training step": lambda: train.learn(state, model, images, labels, 1.0),
                "answer": torch.inference_mode()(lambda: model.eval()(images))}
        for what, act in acts.items():
            flops, taken = counted(act), seconds(act, args.rounds)
            print(f"| {size} | {side} | {batch} | {what} | {batch / taken:.0f} | {flops / taken / 1e9:.0f} | {flops / taken / most:.0%} |")


if __name__ == "__main__":
    main()

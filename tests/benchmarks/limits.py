"""How much of this machine a training step and an answer use: their floating-point operations a second beside a large matrix product.

    python tests/benchmarks/limits.py [--threads 2] [--rounds 5]

Operations are counted by PyTorch's own FlopCounterMode (matrix products, those of attention and of Muon among them; a multiplication and an
addition are two). A matrix product, 2048 x 2048 x 2048, is what this machine can do at best; a row is set beside the one in its own numbers,
bfloat16 or float32. A figure is the best of the rounds. A second table has whole training steps, by turns with attention by the fused step and
written out, which is why `vitdemo.model.attend` chooses between them.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from vitdemo import heap, model, precision, presets, settings, train
from vitdemo.config import TrainConfig

CASES = (("vit-micro", 128, 0.5), ("vit-micro", 128, 0.75), ("vit-micro", 128, 1.0), ("vit-tiny-9.5m", 64, 1.0))       # size, batch, share of the side


def counted(act: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):       # it does not know the fused attention of a CPU
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


def product(dtype: torch.dtype, rounds: int) -> float:
    """Operations a second of a large matrix product."""
    left, right = torch.randn(2, 2048, 2048).to(dtype)
    return 2 * 2048**3 / seconds(lambda: left @ right, rounds)


def attention(rounds: int) -> None:
    """Print how fast whole training steps are with either way to compute attention."""
    print("\n| model | pixels | numbers | fused, images/s | written out, images/s |\n|---|---|---|---|---|")
    few = model.FEW_TOKENS
    for size, side in (("vit-micro", 16), ("vit-micro", 32), ("vit-small-3.6m", 16), ("vit-small-3.6m", 32)):
        config = presets.SIZES[size].config
        vit, images, labels = model.ViT(config), torch.randn(128, config.channels, side, side), torch.randint(config.classes, (128,))
        for kind in ("float32", "auto") if precision.quick_at_bfloat16() else ("float32",):
            state, taken = train.State(vit, TrainConfig(steps=1, precision=kind)), {0: 1e9, few: 1e9}
            for _ in range(rounds):
                for way in taken:                                           # by turns, since a machine's speed changes
                    model.FEW_TOKENS = way
                    taken[way] = min(taken[way], seconds(lambda: train.learn(state, vit, images, labels, 1e-3), 1))
            model.FEW_TOKENS = few
            print(f"| {size} | {side} | {'bfloat16' if kind == 'auto' else kind} | {128 / taken[0]:.0f} | {128 / taken[few]:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    heap.keep()                                                             # as the training command does
    torch.set_num_threads(args.threads or settings.cores())
    torch.manual_seed(0)
    most = {dtype: product(dtype, args.rounds) for dtype in (torch.float32, torch.bfloat16)[:1 + precision.quick_at_bfloat16()]}
    print(f"{settings.machine()}, {torch.get_num_threads()} threads; a 2048 matrix product: "
          + ", ".join(f"{speed / 1e9:.0f} GFLOP/s in {str(dtype).removeprefix('torch.')}" for dtype, speed in most.items()) + "\n")
    print("| model | pixels | batch | what | numbers | images/s | GFLOP/s | of the matrix product |\n|---|---|---|---|---|---|---|---|")
    for size, batch, share in CASES:
        config = presets.SIZES[size].config
        side = round(share * config.image[0])
        vit, images, labels = model.ViT(config), torch.randn(batch, config.channels, side, side), torch.randint(config.classes, (batch,))
        state = train.State(vit, TrainConfig(steps=1))
        acts = {"training step": lambda: train.learn(state, vit, images, labels, 1.0),
                "answer": torch.inference_mode()(lambda: vit.eval()(images))}
        half = precision.in_bfloat16(torch.device("cpu"), (side, side), config.patch, state.config.precision)
        for (what, act), dtype in zip(acts.items(), (torch.bfloat16 if half else torch.float32, torch.float32), strict=True):
            flops, taken = counted(act), seconds(act, args.rounds)
            print(f"| {size} | {side} | {batch} | {what} | {str(dtype).removeprefix('torch.')} | {batch / taken:.0f} | {flops / taken / 1e9:.0f} | "
                  f"{flops / taken / most[dtype]:.0%} |")
    attention(args.rounds)


if __name__ == "__main__":
    main()

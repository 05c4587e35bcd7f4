"""Training images per second of our ViT beside its peers: one architecture, one batch, one optimizer, in interleaved runs.

    pip install -r tests/requirements-peers.txt
    python tests/benchmarks/speed_train.py [--size vit-micro] [--batch 256] [--threads 2] [--rounds 7] [--compile]

Every peer is built to the same shape (width, blocks, heads, MLP, patch, class token, learned positions, no dropout) and takes the same
steps: forward, backward, AdamW as its users write it (`loss.backward(); optimizer.step()`). Ours is measured by that same step, and
as the training command runs it (`vitdemo.heap`, `vitdemo.train.learn`), with the same AdamW. Full-size images of random numbers in memory;
nothing is augmented. What the command gains in float32 are exact means (AdamW in one fused step, memory that is kept); bfloat16 is not exact, and is
taken where the processor has instructions for it, so the peers have rows in bfloat16 too (the same autocast, memory kept), and each row is set beside the fastest
peer with the same numbers. Each has a process of its own, of which one works at a time; a round is `--steps` steps of each, one after the
other; a number is the median over the rounds, with the lowest and the highest, a share that of the shares round by round. With --compile each model is compiled first (needs a C++
compiler) and takes the step of the peers in float32, which is reported apart.
"""

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo import heap, precision, presets, settings, train
from vitdemo.config import TrainConfig, ViTConfig
from vitdemo.model import ViT


def ours(c: ViTConfig) -> nn.Module:
    return ViT(c)


def timm(c: ViTConfig) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(img_size=c.image, patch_size=c.patch, embed_dim=c.dim, depth=c.depth, num_heads=c.heads, mlp_ratio=c.mlp_width / c.dim, num_classes=c.classes)


def vit_pytorch(c: ViTConfig) -> nn.Module:
    from vit_pytorch import ViT as Peer

    return Peer(image_size=c.image, patch_size=c.patch, num_classes=c.classes, dim=c.dim, depth=c.depth, heads=c.heads, dim_head=c.head_dim, mlp_dim=c.mlp_width)


def torchvision(c: ViTConfig) -> nn.Module:
    from torchvision.models import VisionTransformer

    return VisionTransformer(c.image[0], c.patch[0], c.depth, c.heads, c.dim, c.mlp_width, num_classes=c.classes)


class TransformerEncoder(nn.Module):
    """What most people write first: PyTorch's own encoder behind a patch projection."""

    def __init__(self, c: ViTConfig):
        super().__init__()
        self.patches = nn.Conv2d(c.channels, c.dim, c.patch, c.patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, c.dim))
        self.positions = nn.Parameter(0.02 * torch.randn(1, c.tokens, c.dim))
        layer = nn.TransformerEncoderLayer(c.dim, c.heads, c.mlp_width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, c.depth, norm=nn.LayerNorm(c.dim), enable_nested_tensor=False)
        self.head = nn.Linear(c.dim, c.classes)

    def forward(self, images: Tensor) -> Tensor:
        z = self.patches(images).flatten(2).transpose(1, 2)
        z = torch.cat((self.cls.expand(len(z), -1, -1), z), dim=1) + self.positions
        return self.head(self.encoder(z)[:, 0])


PEERS: dict[str, Callable[[ViTConfig], nn.Module]] = {
    "timm": timm, "vit-pytorch": vit_pytorch, "torchvision VisionTransformer": torchvision, "nn.TransformerEncoder": TransformerEncoder}


def plain(model: nn.Module, images: Tensor, labels: Tensor, half: bool = False) -> Callable[[], None]:
    """One step as everybody writes it, or with what our command has beside that: bfloat16 and memory that is kept."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if half:
        heap.keep()

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = model(images)
        F.cross_entropy(logits.float(), labels).backward()
        optimizer.step()

    return step


def learning(model: ViT, images: Tensor, labels: Tensor, precision: str = "auto") -> Callable[[], None]:
    """One step as the training command makes it, with AdamW for everything."""
    heap.keep()
    state = train.State(model, TrainConfig(steps=1, optimizer="adamw", label_smoothing=0.0, zero_head=False, clip=0.0, precision=precision))
    return lambda: train.learn(state, model, images, labels, 1.0)


COMMAND, HALF = "vitdemo, as the training command runs it", "bfloat16" if precision.quick_at_bfloat16() else "float32"
PLAIN = {"vitdemo, the step of the peers": (ours, plain), **{name: (build, plain) for name, build in PEERS.items()}}
RUNS = {f"{COMMAND} ({HALF})": (ours, learning), "vitdemo, the same in float32": (ours, partial(learning, precision="float32")), **PLAIN,
        **{f"{name} (bfloat16)": (build, partial(plain, half=True)) for name, (build, _) in PLAIN.items() if HALF == "bfloat16"}}


def work(pipe: Connection, name: str, size: str, batch: int, threads: int, compiled: bool) -> None:
    """A process that takes so many steps as it is told, and tells the seconds; first it tells its parameters, or what is missing, after one
    step to see that it can."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    build, stepping = RUNS[name]
    config = presets.SIZES[size].config
    try:
        model = build(config).train()
        images, labels = torch.randn(batch, config.channels, *config.image), torch.randint(config.classes, (batch,))
        step = stepping(torch.compile(model) if compiled else model, images, labels)
        step()
    except ImportError as error:
        pipe.send(f"missing: {name} ({error.name})")
        return
    except Exception as error:                  # a peer of another version, or no compiler
        pipe.send(f"cannot be measured: {name} ({type(error).__name__}: {next(iter(str(error).splitlines()), '')})")
        return
    pipe.send(sum(p.numel() for p in model.parameters()))
    while steps := pipe.recv():
        start = time.perf_counter()
        for _ in range(steps):
            step()
        pipe.send(time.perf_counter() - start)


def measure(size: str, batch: int, threads: int, rounds: int, steps: int, compiled: bool) -> None:
    spawn, pipes, counts = multiprocessing.get_context("spawn"), {}, {}
    for name in RUNS:
        if compiled and name not in PLAIN:
            continue
        pipe, other = spawn.Pipe()
        spawn.Process(target=work, args=(other, name, size, batch, threads, compiled), daemon=True).start()
        other.close()                                                       # one that dies is noticed
        counts[name] = pipe.recv()
        if isinstance(counts[name], str):
            print(counts[name])
        else:
            pipes[name] = pipe
    speeds: dict[str, list[float]] = {name: [] for name in pipes}
    for warm in (True, *[False] * rounds):
        for name, pipe in pipes.items():
            pipe.send(2 if warm else steps)
            taken = pipe.recv()
            if not warm:
                speeds[name].append(batch * steps / taken)
    for pipe in pipes.values():
        pipe.send(0)
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    best = {half: max((name for name in medians if name.removesuffix(" (bfloat16)") in PEERS and ("bfloat16" in name) == half), key=medians.get, default="")
            for half in (False, True)}

    def beside(name: str) -> str:                                           # round by round, since a host's speed changes
        peer = speeds.get(best["bfloat16" in name])
        return f"{statistics.median(own / other for own, other in zip(speeds[name], peer, strict=True)):.2f} ×" if peer else "-"

    print(f"\n{size}, batch {batch}, {threads} threads, {rounds} rounds of {steps} steps{', compiled' if compiled else ''}; {settings.machine()}, torch {torch.__version__}\n")
    print("| implementation | parameters | images/s, median | lowest to highest | to the fastest peer with such numbers |\n|---|---|---|---|---|")
    for name, median in sorted(medians.items(), key=lambda item: -item[1]):
        print(f"| {name} | {counts[name]:,} | {median:.0f} | {min(speeds[name]):.0f} to {max(speeds[name]):.0f} | {beside(name)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="vit-micro", choices=[name for name, size in presets.SIZES.items() if size.config.tokens < 100 and size.config.channels == 3])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    measure(args.size, args.batch, args.threads or settings.cores(), args.rounds, args.steps, args.compile)


if __name__ == "__main__":
    main()

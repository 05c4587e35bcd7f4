"""What looking costs: our trace beside our own logits-only pass and beside peers, in seconds and in peak memory.

    python tests/benchmarks/trace.py [--runs 20] [--threads 2]

ViT-S/14 at 518 px (1370 tokens, batch 1, random weights): time by interleaved runs in one process; peak memory above the process's own
before the pass, each in a process of its own. ViT-B/16 at 224 px with every class-token map, beside torchvision's plain forward.
Peers: timm's AttentionExtract and transformers' output_attentions, with attention, and both without.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import torch

from vitdemo import attention, settings
from vitdemo.config import ViTConfig
from vitdemo.model import ViT

SMALL = ViTConfig(image=(518, 518), patch=(14, 14), dim=384, depth=12, heads=6, classes=1000)
BASE = ViTConfig(image=(224, 224), patch=(16, 16), dim=768, depth=12, heads=12, classes=1000)


def looked(model: ViT, images: torch.Tensor) -> None:
    """Logits, queries and keys of every block, and all class-token rows."""
    trace = model.trace(images)
    attention.class_maps(trace.queries, trace.keys, prefix=model.config.prefix, grid=model.config.grid)


def ours(config: ViTConfig, trace: bool):
    model = ViT(config).eval()
    return (lambda images: looked(model, images)) if trace else model


def timm(attention_too: bool):
    import timm as peer
    from timm.layers import set_fused_attn
    from timm.utils import AttentionExtract

    set_fused_attn(not attention_too)                                       # it finds no softmax to extract where attention is fused
    model = peer.create_model("vit_small_patch14_dinov2", pretrained=False, num_classes=1000, img_size=518).eval()
    return AttentionExtract(model, method="fx") if attention_too else model


def transformers(attention_too: bool):
    from transformers import ViTConfig as TheirConfig
    from transformers import ViTForImageClassification

    config = TheirConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536, image_size=518, patch_size=14, num_labels=1000,
                         attn_implementation="eager" if attention_too else "sdpa")
    model = ViTForImageClassification(config).eval()
    return lambda images: model(images, output_attentions=attention_too)


def torchvision():
    from torchvision.models import vit_b_16

    return vit_b_16(weights=None).eval()


WAYS = {
    "ours, logits only": lambda: ours(SMALL, False), "ours, trace": lambda: ours(SMALL, True),
    "timm, logits only": lambda: timm(False), "timm, AttentionExtract": lambda: timm(True),
    "transformers, logits only": lambda: transformers(False), "transformers, output_attentions": lambda: transformers(True),
}


def peak(way: str, threads: int) -> None:
    """Prints by how many MB the process grew at most during one pass, after one small pass that loads the libraries."""
    torch.set_num_threads(threads)
    call = WAYS[way]()
    with torch.inference_mode():
        torch.nn.functional.scaled_dot_product_attention(*torch.zeros(3, 1, 1, 64, 64))
        torch.zeros(64, 64) @ torch.zeros(64, 64)
        images = torch.randn(1, 3, 518, 518)
        Path("/proc/self/clear_refs").write_text("5")                       # the peak starts afresh (Linux)
        before = memory("VmHWM")
        call(images)
        print(f"{memory('VmHWM') - before:.1f}")


def memory(field: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def times(calls: dict, images: torch.Tensor, runs: int) -> dict[str, list[float]]:
    """Seconds of each call, interleaved, after one round that is not counted."""
    found = {name: [] for name in calls}
    with torch.inference_mode():
        for number in range(runs + 1):
            for name, call in calls.items():
                start = time.perf_counter()
                call(images)
                if number:
                    found[name].append(time.perf_counter() - start)
    return found


def report(found: dict[str, list[float]], base: str, extra: dict[str, str] | None = None) -> None:
    least = statistics.median(found[base])
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        print(f"  {name:34} {1000 * middle:8.1f} ms  {middle / least:5.2f} x  {(extra or {}).get(name, '')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=settings.cores())
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.peak:
        return peak(args.peak, args.threads)
    print(f"{settings.machine()}, torch {torch.__version__}, {args.threads} threads, median of {args.runs} interleaved runs")
    print("ViT-S/14 at 518 px, 1370 tokens, batch 1")
    grown = {}
    for way in WAYS:
        done = subprocess.run([sys.executable, __file__, "--peak", way, "--threads", str(args.threads)], capture_output=True, text=True)
        grown[way] = f"+{float(done.stdout):6.1f} MB" if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"
    report(times({way: make() for way, make in WAYS.items()}, torch.randn(1, 3, 518, 518), args.runs), "ours, logits only", grown)
    print("ViT-B/16 at 224 px, batch 1")
    report(times({"torchvision, plain forward": torchvision(), "ours, logits only": ours(BASE, False), "ours, every class-token map": ours(BASE, True)},
                 torch.randn(1, 3, 224, 224), args.runs), "torchvision, plain forward")


if __name__ == "__main__":
    main()

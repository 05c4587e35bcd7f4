"""In which numbers a model multiplies while it learns."""

import math
from collections.abc import Sequence
from functools import cache

import torch

from vitdemo.model import FEW_TOKENS


def computing(device: torch.device, size: Sequence[int], patch: tuple[int, int], precision: str) -> torch.autocast:
    """How a model computes while it learns from images of `size` (rows, cols): products of matrices in bfloat16 where the processor has
    instructions for it; weights, their gradients and the loss stay float32."""
    kind = "cuda" if device.type == "cuda" else "cpu"
    return torch.autocast(kind, torch.bfloat16, enabled=in_bfloat16(device, size, patch, precision))


def in_bfloat16(device: torch.device, size: Sequence[int], patch: tuple[int, int], precision: str) -> bool:
    """Whether a model that learns from images of `size` (rows, cols) multiplies its matrices in bfloat16."""
    few = device.type == "cpu" and math.prod(size) // math.prod(patch) < FEW_TOKENS        # of more, attention is slow in bfloat16
    return precision == "auto" and (device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) or few and quick_at_bfloat16())


@cache
def quick_at_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices by instructions of their own; others need several times as long as for float32."""
    if not hasattr(torch.cpu, "get_capabilities"):                          # older versions of PyTorch tell by another name
        return getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    known = torch.cpu.get_capabilities()
    return any(known.get(name) for name in ("avx512_bf16", "amx_bf16"))

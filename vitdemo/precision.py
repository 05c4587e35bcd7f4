"""In which numbers a model and its optimizer multiply while it learns."""

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
    many = device.type == "cpu" and math.prod(size) // math.prod(patch) >= FEW_TOKENS      # of so many, attention is slow in bfloat16
    return not many and products_in_bfloat16(device, precision)


def products_in_bfloat16(device: torch.device, precision: str) -> bool:
    """Whether matrices are multiplied in bfloat16 on `device`: where that is quick, unless a recipe forbids it."""
    quick = torch.cuda.is_bf16_supported(including_emulation=False) if device.type == "cuda" else device.type == "cpu" and quick_at_bfloat16()
    return precision == "auto" and quick


@cache
def quick_at_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices by instructions of their own; others need several times as long as for float32."""
    if not hasattr(torch.cpu, "get_capabilities"):                          # older versions of PyTorch tell by another name
        return getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    known = torch.cpu.get_capabilities()
    return any(known.get(name) for name in ("avx512_bf16", "amx_bf16"))

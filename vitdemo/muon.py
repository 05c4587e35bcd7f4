"""Muon for the matrices of all blocks at once."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Muon(torch.optim.Muon):
    """`torch.optim.Muon` (Jordan et al. 2024), but all matrices of one shape go through the Newton-Schulz iteration together, as a Vision
    Transformer's blocks are alike and a small matrix alone costs more in calls than in arithmetic; and in float32 or bfloat16 (`numbers`),
    see `orthogonal`.

    `stacked` says by a parameter's id() how many matrices it holds below each other, where it holds several, as the layer for queries, keys and
    values does. Each is a matrix of its own then, as Jordan et al. advise: made orthogonal together, the queries' and keys', whose gradients are
    the smaller ones by far, would get the smaller part of a step. It is by identity, so copies of this optimizer are of no use.
    """

    def __init__(self, *args: Any, stacked: Mapping[int, int] | None = None, numbers: torch.dtype = torch.float32, **settings: Any):
        super().__init__(*args, **settings)
        self.stacked, self.numbers = dict(stacked or {}), numbers
        if settings.get("adjust_lr_fn") not in (None, "original"):
            raise ValueError(f"this optimizer scales its steps as the original does, not by adjust_lr_fn={settings['adjust_lr_fn']!r}")

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        if closure is not None:
            raise ValueError("this optimizer takes gradients that are there already, not a closure")
        for group in self.param_groups:
            matrices: list[Tensor] = []
            gradients: list[Tensor] = []
            momenta: list[Tensor] = []
            self._init_group(group, matrices, gradients, momenta)
            if not matrices:
                continue
            torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
            updates = torch._foreach_lerp(gradients, momenta, group["momentum"]) if group["nesterov"] else momenta
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            alike = defaultdict(list)
            for parameter, change in zip(matrices, updates, strict=True):
                parts = self.stacked.get(id(parameter), 1)
                for matrix, update in zip(parameter.chunk(parts), change.chunk(parts), strict=True):
                    alike[tuple(sorted(matrix.shape))].append((matrix, update))
            for pairs in alike.values():
                wide = torch.stack([update if update.shape[0] <= update.shape[1] else update.T for _, update in pairs])
                directions = orthogonal(wide, group["ns_coefficients"], group["ns_steps"], group["eps"], self.numbers)
                for (matrix, _), direction in zip(pairs, directions, strict=True):
                    rows, cols = matrix.shape
                    matrix.add_(direction if rows <= cols else direction.T, alpha=-group["lr"] * max(1, rows / cols) ** 0.5)


def orthogonal(matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float, numbers: torch.dtype = torch.float32) -> Tensor:
    """Near each of `matrices` (N, rows, cols), rows <= cols, the one with the same directions, all of about the same length: Muon's quintic
    Newton-Schulz iteration X <- (a + b A + c A²) X with A = X Xᵀ, in `numbers`. Float32.

    In bfloat16, as Muon is elsewhere, only processors with instructions for it are quick. In float32, matrices that are wider than high take
    another way: all these factors are polynomials of the first A, so they commute, the next A is factor A factor, and the wide X is met only
    at the beginning and the end, which is fewer products, but lets errors grow.
    """
    a, b, c = coefficients
    X = matrices.float()
    X = (X / torch.linalg.matrix_norm(X, keepdim=True).clamp(min=eps)).to(numbers)
    if numbers != torch.float32 or X.shape[1] == X.shape[2]:
        for _ in range(steps):
            A = X @ X.mT
            X = torch.baddbmm(X, torch.baddbmm(A, A, A, beta=b, alpha=c), X, beta=a)
        return X.float()
    A, product = X @ X.mT, None                                             # (N, rows, rows)
    for left in reversed(range(steps)):
        factor = torch.baddbmm(A, A, A, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        product = factor if product is None else factor @ product
        if left:
            A = factor @ A @ factor
    return X if product is None else product @ X

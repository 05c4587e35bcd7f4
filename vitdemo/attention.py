"""Attention as a value: pure functions from queries and keys to weights.

    B images · H heads · T tokens · d head width · L blocks

Letters as in the paper's appendix A. All functions take queries and keys of one block, (B, H, T, d), or of all blocks, a sequence
of them; `prefix` is the model's own number of tokens before the first patch and `grid` its patches as (rows, cols).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Maps(NamedTuple):
    """What one token reads: patches laid out as the grid, prefix tokens apart. Together each head's weights sum to 1."""

    patches: Tensor                 # (B, L, H, rows, cols)
    prefix: Tensor                  # (B, L, H, prefix)


def weights(q: Tensor, k: Tensor) -> Tensor:
    """A of equation (6): softmax(q kᵀ / √d), (B, H, T, T). Row i says what token i reads and sums to 1; column j who reads j."""
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)


def row(q: Tensor, k: Tensor, token: int) -> Tensor:
    """What `token` reads: its row of equation (6), (B, H, T), without forming the other rows."""
    return weights(q[..., _index(token, q), None, :], k)[..., 0, :]


def column(q: Tensor, k: Tensor, token: int) -> Tensor:
    """Who reads `token`: its column of equation (6), (B, H, T). Columns do not sum to 1."""
    return weights(q, k)[..., _index(token, k)]


def class_maps(queries: Sequence[Tensor], keys: Sequence[Tensor], *, prefix: int, grid: tuple[int, int], class_token: bool = True) -> Maps:
    """What the class token reads, for every block and head.

    A model that averages its patches instead (`class_token=False`) has no such row; then it is the mean over the rows of all
    patches, which is what the average the classifier sees was gathered from.
    """
    rows = torch.stack([
        row(q, k, 0) if class_token else weights(q, k)[..., prefix:, :].mean(dim=-2)
        for q, k in zip(queries, keys, strict=True)
    ], dim=1)                                                               # (B, L, H, T)
    if rows.shape[-1] != prefix + grid[0] * grid[1]:
        raise ValueError(f"{rows.shape[-1]} tokens are not {prefix} prefix tokens and a grid of {grid[0]} x {grid[1]} patches")
    return Maps(rows[..., prefix:].unflatten(-1, grid), rows[..., :prefix])


def _index(token: int, q: Tensor) -> int:
    tokens = q.shape[-2]
    if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < tokens:
        raise ValueError(f"token must be a whole number from 0 to {tokens - 1}, not {token!r}")
    return token

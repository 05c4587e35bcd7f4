"""Attention as a value: pure functions from queries and keys to weights, and from weights to what they are said to explain.

    B images · H heads · T tokens (prefix + N) · N patches · d head width · L blocks · K classes

Letters as in the paper's appendix A. Functions of one block take its queries and keys, (B, H, T, d); those of all blocks a sequence of
them; `prefix` is the model's own number of tokens before the first patch and `grid` its patches as (rows, cols). `start` (T,) says
who reads, see `reader`. No function holds the T x T weights of more than one block at a time. Bad arguments raise ValueError.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from vitdemo.model import Branches

FUSIONS = {"mean": torch.mean, "min": torch.amin, "max": torch.amax}        # how `rollout` makes one head of all


class Maps(NamedTuple):
    """What one token reads: patches laid out as the grid, prefix tokens apart. Together each head's weights sum to 1."""

    patches: Tensor                 # (B, L, H, rows, cols)
    prefix: Tensor                  # (B, L, H, prefix)


class HeadFacts(NamedTuple):
    """Four numbers per head, each (B, L, H): see `facts`."""

    entropy: Tensor                 # of the reader's row, in nats: 0 if it reads one token, log T if all alike
    effective: Tensor               # e to the entropy: how many tokens, weighed alike, would be as spread out; 1 to T
    distance: Tensor                # mean distance from a patch to the patches it reads, in pixels of the model's input
    prefix: Tensor                  # the reader's share on prefix tokens, 0 to 1


def weights(q: Tensor, k: Tensor) -> Tensor:
    """A of equation (6): softmax(q kᵀ / √d), (B, H, T, T). Row i says what token i reads and sums to 1; column j who reads j."""
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)


def row(q: Tensor, k: Tensor, token: int) -> Tensor:
    """What `token` reads: its row of equation (6), (B, H, T), without forming the other rows."""
    return weights(q[..., _index(token, q), None, :], k)[..., 0, :]


def column(q: Tensor, k: Tensor, token: int) -> Tensor:
    """Who reads `token`: its column of equation (6), (B, H, T). Columns do not sum to 1."""
    return weights(q, k)[..., _index(token, k)].clone()                     # a view would keep the whole T x T alive


def rows(queries: Sequence[Tensor], keys: Sequence[Tensor], token: int) -> Tensor:
    """What `token` reads in every block, (B, L, H, T): rows of equation (6). Misleads where token is taken for picture: after the first
    block every token has mixed with others."""
    return torch.stack([row(q, k, token) for q, k in zip(queries, keys, strict=True)], dim=1)


def columns(queries: Sequence[Tensor], keys: Sequence[Tensor], token: int) -> Tensor:
    """Who reads `token` in every block, (B, L, H, T): columns of equation (6). Misleads where heads are compared by brightness: a
    column may sum to anything from 0 to T."""
    return torch.stack([column(q, k, token) for q, k in zip(queries, keys, strict=True)], dim=1)


def reader(T: int, prefix: int, class_token: bool = True) -> Tensor:
    """Who reads, as weights (T,) over the tokens that sum to 1: token 0, or every patch alike where the classifier averages patches."""
    if not int(class_token) <= prefix < T:
        raise ValueError(f"prefix must lie between {int(class_token)} and {T - 1} for {T} tokens, not {prefix}")
    start = torch.zeros(T)
    if class_token:
        start[0] = 1
    else:
        start[prefix:] = 1 / (T - prefix)
    return start


def class_maps(queries: Sequence[Tensor], keys: Sequence[Tensor], *, prefix: int, grid: tuple[int, int], class_token: bool = True) -> Maps:
    """What the class token reads, for every block and head.

    A model that averages its patches instead (`class_token=False`) has no such row; then it is the mean over the rows of all
    patches, which is what the average the classifier sees was gathered from.
    """
    T = _tokens(queries, prefix, grid)
    start = reader(T, prefix, class_token)
    found = torch.stack([_read(q, k, start) for q, k in zip(queries, keys, strict=True)], dim=1)            # (B, L, H, T)
    return Maps(found[..., prefix:].unflatten(-1, grid), found[..., :prefix])


def rollout(queries: Sequence[Tensor], keys: Sequence[Tensor], *, start: Tensor, up_to: int | None = None, fusion: str = "mean",
            discard: float = 0.0, class_token: bool = True) -> Tensor:
    """Attention rollout of Abnar and Zuidema 2020, section 3, (B, T): what `start` gathered from the input by block `up_to` (1 to L).

    Each block becomes a = (A + I) / 2, A over its heads by `fusion` and I for the residual connection, rows brought back to sum 1; the
    result is start a_up_to ... a_1, so it sums to what `start` does. `discard` (0 to below 1) sets that share of a block's lowest A to 0
    before I is added, as common implementations do; the column of the class token, if there is one, stays. Misleads: it knows no class,
    no values and no MLP, and takes each residual for exactly half of a token.
    """
    if up_to is not None and (isinstance(up_to, bool) or not isinstance(up_to, int) or not 1 <= up_to <= len(queries)):
        raise ValueError(f"up_to must be a whole number from 1 to {len(queries)}, the number of layers, not {up_to!r}")
    if not isinstance(fusion, str) or fusion not in FUSIONS:
        raise ValueError(f"fusion must be one of {', '.join(FUSIONS)}, not {fusion!r}")
    if not isinstance(discard, (int, float)) or not 0 <= discard < 1:
        raise ValueError(f"discard must be a share from 0 to below 1, not {discard!r}")
    r = _checked(start, queries[0])                                         # (T,), from the first block on (B, T)
    for q, k in reversed(list(zip(queries, keys, strict=True))[:up_to]):
        A = FUSIONS[fusion](weights(q, k), dim=1)                           # (B, T, T)
        if discard:
            A = _without_lowest(A, discard, class_token)
        r = r / (A.sum(-1) + 1)                                             # the row sums of A + I; the halves cancel
        r = r + _through(r, A)                                              # r (A + I) without forming I
    return r


def relevance(blocks: Iterable[tuple[Tensor, Tensor]], *, start: Tensor) -> Tensor:
    """Class relevance of Chefer et al., ICCV 2021, equations (5) and (6), (B, T), from `blocks`: A and the gradient by it, each
    (B, H, T, T), of the LAST block first.

    R = R + Ā R from R = I, block by block, read as start R; multiplying from the last block down needs no T x T product.
    What I adds is still in it: `start` itself. Misleads: it shows only what speaks for the class, never against it, in no unit.
    """
    r = start
    for A_bar in starmap(_speaking, blocks):                                # starmap lets go of a block before it asks for the next
        r = r + _through(r, A_bar)                                          # (6)
    return r


def class_gradients(branches: "Branches", klass: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A of each block and the gradient of the logit of `klass` by it, both (B, H, T, T), the last block first, each made when asked for.

    `sa = A v` of equation (7), so the gradient by A is that by sa times vᵀ, exactly. Leaves no `.grad` on any parameter; `branches`
    can be asked again. Misleads as all gradients do: it says what a tiny change of A would do, not what A did.
    """
    K = branches.logits.shape[-1]
    if isinstance(klass, bool) or not isinstance(klass, int) or not 0 <= klass < K:
        raise ValueError(f"the model has {K} classes, numbered from 0; {klass!r} is none of them")
    if not branches.logits.requires_grad:
        raise ValueError("this pass kept no gradients: make it under torch.enable_grad() from tokens or weights that require them")
    with torch.enable_grad():
        by_sa = torch.autograd.grad(branches.logits[:, klass].sum(), branches.gathered, retain_graph=True)
    for q, k, v, g in reversed(list(zip(branches.queries, branches.keys, branches.values, by_sa, strict=True))):
        yield weights(q.detach(), k.detach()), g @ v.detach().transpose(-2, -1)


def class_relevance(branches: "Branches", klass: int, *, start: Tensor) -> Tensor:
    """How much each token speaks for class `klass` in a pass of `model.branches`, (B, T): `relevance` of `class_gradients`. Misleads in
    distilled models: the distillation token's own way to the logit is not followed."""
    return relevance(class_gradients(branches, klass), start=_checked(start, branches.queries[0]))


def facts(queries: Sequence[Tensor], keys: Sequence[Tensor], *, prefix: int, grid: tuple[int, int], patch: tuple[int, int],
          start: Tensor) -> HeadFacts:
    """Entropy, effective tokens, mean attention distance and prefix share of every head, each (B, L, H); `patch` is (rows, cols) in pixels.

    Distance as in the ViT paper's figure 7 right (section 4.5, appendix D.7): all patches as queries, their rows renormalised over the
    patches, centre to centre. Misleads: reading everything alike already is a distance of half the picture's side, and one picture is
    no average over many.
    """
    T = _tokens(queries, prefix, grid)
    centres = torch.cartesian_prod(*(torch.arange(n, dtype=queries[0].dtype, device=queries[0].device) * side
                                     for n, side in zip(grid, patch, strict=True)))
    apart = (centres[:, None] - centres).norm(dim=-1) / (T - prefix)        # (N, N), the mean over queries taken ahead
    entropy, distance, share = [], [], []
    for q, k in zip(queries, keys, strict=True):
        found = _read(q, k, start)                                          # (B, H, T)
        entropy.append(torch.special.entr(found).sum(-1).clamp(min=0))             # a sum of 1 may round to more
        share.append(found[..., :prefix].sum(-1))
        # softmax over the patches alone is the row renormalised, also where a head reads nothing but prefix tokens
        distance.append(torch.einsum("bhij,ij->bh", weights(q[..., prefix:, :], k[..., prefix:, :]), apart))
    nats = torch.stack(entropy, dim=1)
    return HeadFacts(nats, nats.exp(), torch.stack(distance, dim=1), torch.stack(share, dim=1))


def _read(q: Tensor, k: Tensor, start: Tensor) -> Tensor:
    """start A for every head, (B, H, T), forming only the rows that `start` uses."""
    start = _checked(start, q)
    used = start.nonzero()[:, 0]
    return start[used] @ weights(q[..., used, :], k)


def _through(r: Tensor, A: Tensor) -> Tensor:
    """r A for each image: r (T,) or (B, T), A (B, T, T), result (B, T)."""
    return (r[..., None, :] @ A)[..., 0, :]


def _speaking(A: Tensor, gradient: Tensor) -> Tensor:
    """Ā of equation (5) in Chefer et al.: (B, T, T) from (B, H, T, T) each."""
    return (gradient * A).clamp_(min=0).mean(dim=1)


def _without_lowest(A: Tensor, share: float, class_token: bool) -> Tensor:
    """A (B, T, T) with that share of each image's lowest weights at 0. Whatever ties with the lowest that stays, stays."""
    flat = A.flatten(1)
    lowest = flat.kthvalue(1 + min(int(share * flat.shape[1]), flat.shape[1] - 1)).values
    low = A < lowest[:, None, None]
    if class_token:
        low[..., 0] = False
    return A.masked_fill(low, 0)


def _checked(start: Tensor, x: Tensor) -> Tensor:
    """`start` in the type and on the device of `x` (B, H, T, ...)."""
    if start.shape != x.shape[2:3] or not start.isfinite().all():
        raise ValueError(f"start must be {x.shape[2]} finite numbers, one per token, not {tuple(start.shape)} of them")
    return start.to(x)


def _tokens(queries: Sequence[Tensor], prefix: int, grid: tuple[int, int]) -> int:
    T = queries[0].shape[2]
    if T != prefix + grid[0] * grid[1]:
        raise ValueError(f"{T} tokens are not {prefix} prefix tokens and a grid of {grid[0]} x {grid[1]} patches")
    return T


def _index(token: int, q: Tensor) -> int:
    tokens = q.shape[-2]
    if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < tokens:
        raise ValueError(f"token must be a whole number from 0 to {tokens - 1}, not {token!r}")
    return token

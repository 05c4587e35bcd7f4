"""What a model makes of the patches: how alike they are, their principal components as colours, and how long tokens grow.

    T tokens (prefix + N) · N patches · D width · L blocks

None of it needs a class, so a self-supervised model without a head shows as much as any other. Tokens are hidden states after the last
norm, (T, D), as `ViT.encode` gives them for one picture. Bad arguments raise ValueError.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vitdemo.model import ViT

PARTS = ("all", "foreground", "background")     # which patches `colours` looks at
HIGH = 3.0                                      # a patch this many times as long as the median patch counts as an artifact
ALIKE = 1e-5                                    # spread, as a share of the tokens' size, that rounding in float32 may make of nothing
HEADS = ("head.", "head_dist.", "pre_logits.", "fc_norm.", "pos_embed")     # of a model's tensors: what does not turn tokens into features


class Colours(NamedTuple):
    """Patches as colours, for each picture in turn."""

    rgb: tuple[Tensor, ...]         # (N, 3) from 0 to 1: first, second and third component; 0 where the patch is not looked at
    kept: tuple[Tensor, ...]        # (N,) whether a patch is looked at
    explained: Tensor               # (3,) share of the variance of the patches that are looked at; 0 for a component they do not have


def similarity(query: Tensor, tokens: Tensor) -> Tensor:
    """The cosine of the angle between `query` (D,) and every token (T, D), (T,) from -1 to 1; 0 for a token without length.

    Misleads: all tokens share a direction in many models, so that everything looks alike, and a few channels with huge values may decide
    alone.
    """
    return (F.normalize(tokens, dim=-1) @ F.normalize(query, dim=-1)).clamp(-1, 1)


def feature(tokens: Tensor, token: int | None, prefix: int) -> Tensor:
    """The hidden state (D,) of one token, or of the average patch for None."""
    return tokens[prefix:].mean(dim=0) if token is None else tokens[token]


def colours(patches: Sequence[Tensor], grids: Sequence[tuple[int, int]], part: str = "all") -> Colours:
    """The first three principal components of the patches as red, green and blue (Oquab et al. 2024, DINOv2, figure 1).

    `patches` holds (N, D) of each picture and `grids` their (rows, cols). All pictures are taken together, so that a colour means the
    same in each; every component runs from its least value to its most. With `part` "foreground" only patches with a positive score on
    the first component stay, and the components of those are worked out anew, as in the paper's figure 9; "background" keeps the others.
    A component has no sign of its own: its direction's largest entry is made positive, and the side of the first one that has more of the
    pictures' edges is called background. Misleads: three of D directions, and colours of different runs do not mean the same.
    """
    if part not in PARTS:
        raise ValueError(f"the part must be one of {', '.join(PARTS)}, not {part!r}")
    for one, (rows, cols) in zip(patches, grids, strict=True):
        if len(one) != rows * cols:
            raise ValueError(f"{len(one)} patches are not a grid of {rows} x {cols}")
    stacked, sizes = torch.cat(list(patches)), [len(one) for one in patches]
    kept = torch.ones(len(stacked), dtype=torch.bool)
    if part != "all":
        front = _foreground(stacked, torch.cat([_edge(*grid) for grid in grids]))
        kept = front if part == "foreground" else ~front
    rgb = torch.zeros(len(stacked), 3, dtype=stacked.dtype)
    explained = torch.zeros(3, dtype=stacked.dtype)
    if kept.any():
        scores, explained = _components(stacked[kept])
        rgb[kept] = _between(scores)
    return Colours(rgb.split(sizes), kept.split(sizes), explained)


def norms(model: ViT, z: Tensor) -> Tensor:
    """The length of every token after each block, before the last norm, (L, T), from the embedded tokens `z` (1, T, D): one more pass."""
    found = []
    for block in model.blocks:
        z, _ = block(z)
        found.append(z[0].norm(dim=-1))
    return torch.stack(found)


def limits(lengths: Tensor, prefix: int) -> Tensor:
    """From which length on a patch counts as an artifact, after each block, (L,): HIGH times the median patch, from `lengths` (L, T).

    Darcet et al. 2024, Vision Transformers Need Registers, section 2.1, find patches of plain background with far longer vectors than all
    others, and cut where each model's histogram parts in two (150 for DINOv2's ViT-g). A multiple of the median needs no histogram and no
    unit; like any rule it calls some patch at the border wrong.
    """
    return HIGH * lengths[:, prefix:].median(dim=1).values


def same_encoder(one: ViT, two: ViT) -> bool:
    """Whether two models turn tokens into features in the same way, so that features of one may be compared with the other's: equal
    weights, whatever their heads and positions."""
    if one == two:
        return True
    if any(getattr(one.config, name) != getattr(two.config, name) for name in ("dim", "depth", "heads")):
        return False                                                        # the number of heads is in no tensor
    mine, theirs = ({name: tensor for name, tensor in model.state_dict().items() if not name.startswith(HEADS)} for model in (one, two))
    return mine.keys() == theirs.keys() and all(_equal(tensor, theirs[name]) for name, tensor in mine.items())


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and (a.data_ptr() == b.data_ptr() or torch.equal(a.cpu(), b.cpu()))


def _components(x: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (n, 3) of the rows of `x` (n, D) on their first three principal components, and the shares of the variance (3,); 0 where
    the rows have no such component."""
    centred = x - x.mean(dim=0)
    _, spread, directions = torch.linalg.svd(centred, full_matrices=False)
    count = min(3, int((spread > ALIKE * x.norm()).sum()))
    directions = directions[:count]
    directions = directions * directions.gather(1, directions.abs().argmax(dim=1, keepdim=True)).sign()
    explained = spread[:count]**2 / spread.square().sum() if count else spread[:0]
    return F.pad(centred @ directions.T, (0, 3 - count)), F.pad(explained, (0, 3 - count))


def _foreground(x: Tensor, edge: Tensor) -> Tensor:
    """Which patches have a positive score on the first component, (n,); `edge` (n,) says which lie on the edge of their picture."""
    score = _components(x)[0][:, 0]
    outwards = score[edge].mean() > score[~edge].mean()                     # of no inner patches at all the mean is NaN, and nothing turns
    return (-score if outwards else score) > 0


def _edge(rows: int, cols: int) -> Tensor:
    inside = torch.zeros(rows, cols, dtype=torch.bool)
    inside[1:-1, 1:-1] = True
    return ~inside.flatten()


def _between(scores: Tensor) -> Tensor:
    """Every column from its least to its most as 0 to 1; 0.5 where all are the same."""
    least, most = scores.min(dim=0).values, scores.max(dim=0).values
    return torch.where(most > least, (scores - least) / (most - least).clamp(min=torch.finfo(scores.dtype).tiny), 0.5)

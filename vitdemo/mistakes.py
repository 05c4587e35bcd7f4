"""Which pictures a model got right and wrong, as a file of a run: every answer, and some pictures of each cell of the confusion matrix.

The file is replaced whole at each look, so whoever opens it sees one state of the model.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from vitdemo.atomic import replacing

if TYPE_CHECKING:
    from vitdemo.data import Split

PER_CELL = 12                                   # pictures kept of one cell
MOST = 1500                                     # pictures kept in all
MOST_BYTES = 32 * 2**20                         # of all pictures together: fewer are kept where they are large


class MistakesError(ValueError):
    """The file is missing, damaged, or has no such cell; the message is one sentence."""


class Cell(NamedTuple):
    """Pictures of one class that got one answer."""

    pictures: Tensor                # (m, C, rows, cols), uint8, the most confident first
    confidence: Tensor              # (m,), the answer's probability
    count: int                      # how many there are, kept or not
    rows: Tensor                    # (m,), their numbers in the part that was looked at


def save(path: Path, split: "Split", logits: Tensor, classes: tuple[str, ...]) -> None:
    """Write answers and pictures for `logits` (N, K) of `split`. Raises OSError where the disk is full."""
    confidence, answers = logits.float().softmax(-1).max(1)
    cells = split.labels * len(classes) + answers                           # (N,), the confusion matrix row by row
    kept = _kept(cells, confidence, min(MOST, MOST_BYTES // max(1, math.prod(split.images.shape[1:]))))
    content = to_bytes({"labels": split.labels, "answers": answers, "confidence": confidence, "kept": kept,
                        "pictures": split.images[kept].contiguous()}, {"classes": str(len(classes))})
    with replacing(path, durable=False) as draft:
        draft.write_bytes(content)


def cell(path: Path, truth: int, answer: int) -> Cell:
    """Pictures of class `truth` that were called `answer`. Raises MistakesError."""
    try:
        with safe_open(path, "pt") as file:
            K = int(file.metadata()["classes"])
            labels, answers, confidence, kept = (file.get_tensor(name) for name in ("labels", "answers", "confidence", "kept"))
            if not (0 <= truth < K and 0 <= answer < K):
                raise MistakesError(f"there are {K} classes, numbered from 0; class {truth} called {answer} is none of their pairs")
            inside = (labels == truth) & (answers == answer)
            chosen = inside[kept].nonzero()[:, 0]                           # pictures of a cell lie side by side
            first, last = (int(chosen[0]), int(chosen[-1]) + 1) if len(chosen) else (0, 0)
            pictures, rows = file.get_slice("pictures")[first:last].clone(), kept[first:last].clone()     # copies let go of the file
            return Cell(pictures, confidence[rows], int(inside.sum()), rows)
    except MistakesError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, IndexError, RuntimeError):
        state = "damaged" if path.exists() else "not kept with this run, or not written yet"
        raise MistakesError(f"the list of right and wrong pictures is {state}: it is written at each look at them") from None


def _kept(cells: Tensor, confidence: Tensor, most: int) -> Tensor:
    """Rows of the pictures to keep, cell by cell and the most confident first. Where there is too little room for PER_CELL of each, every
    cell gets a first picture before one gets a second."""
    order = confidence.argsort(descending=True, stable=True)
    order = order[cells[order].argsort(stable=True)]                        # by cell, then by confidence
    _, sizes = cells[order].unique_consecutive(return_counts=True)
    rank = torch.arange(len(order)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    order, rank = order[rank < PER_CELL], rank[rank < PER_CELL]
    fair = (rank - confidence[order]).argsort(stable=True)[:most].sort().values             # first pictures, then second ones, ...
    return order[fair]

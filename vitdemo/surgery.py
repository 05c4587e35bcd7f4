"""Patch surgery: what the model answers when patches are hidden or moved, with or without positions."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vitdemo.checkpoint import Loaded
from vitdemo.model import Trace, patchify


@dataclass(frozen=True)
class Surgery:
    """What is done to the `patches` of a picture: `masked` ones get the picture's mean colour, then place i shows patch `order[i]`."""

    patches: int
    masked: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None        # None: every patch stays where it is
    positions: bool = True                      # False: the model gets no position embeddings

    def __post_init__(self) -> None:
        if self.order is not None and sorted(self.order) != list(range(self.patches)):
            raise ValueError(f"order must hold every patch from 0 to {self.patches - 1} once")
        wrong = [patch for patch in self.masked if not 0 <= patch < self.patches]
        if wrong:
            raise ValueError(f"the patches are numbered from 0 to {self.patches - 1}; {wrong[0]} is none of them")


def operate(tensor: Tensor, patch: tuple[int, int], surgery: Surgery) -> Tensor:
    """The picture (B, C, height, width) after surgery; what came in stays as it is. Raises ValueError for a picture of another grid."""
    B, C, height, width = tensor.shape
    grid = height // patch[0], width // patch[1]
    if grid[0] * grid[1] != surgery.patches:
        raise ValueError(f"surgery on {surgery.patches} patches does not fit a picture of {grid[0]} x {grid[1]} patches")
    flat = patchify(tensor, patch).clone()                                  # (B, N, C*P*Q)
    if surgery.masked:
        mean = tensor.mean(dim=(2, 3))[..., None].expand(-1, -1, patch[0] * patch[1]).flatten(1)        # (B, C*P*Q)
        flat[:, list(surgery.masked)] = mean[:, None]
    if surgery.order is not None:
        flat = flat[:, list(surgery.order)]
    pieces = flat.view(B, *grid, C, *patch).permute(0, 3, 1, 4, 2, 5)       # (B, C, rows, P, cols, Q)
    return pieces.reshape(B, C, height, width)


@torch.inference_mode()
def answer(loaded: Loaded, tensor: Tensor, surgery: Surgery) -> tuple[Tensor, Trace]:
    """The picture after surgery, and the model's pass over it."""
    operated = operate(tensor, loaded.config.patch, surgery)
    return operated, loaded.model.follow(loaded.model.embed(operated, positions=surgery.positions))


@torch.inference_mode()
def difference(loaded: Loaded, tensor: Tensor, surgery: Surgery) -> tuple[float, Trace]:
    """Largest absolute change of the logits (of the token that is read, where there is no head) that masking and moving made, under the
    same position setting; and the pass over the whole picture it is measured against. Without positions, moving alone changes nothing
    but rounding: attention and mean do not ask for an order (section 3.1)."""
    before = answer(loaded, tensor, Surgery(surgery.patches, positions=surgery.positions))[1]
    return apart(loaded, before, answer(loaded, tensor, surgery)[1]), before


@torch.inference_mode()
def apart(loaded: Loaded, before: Trace, after: Trace) -> float:
    """Largest absolute difference of two passes' logits, or where there is no head of what it would have read."""
    config = loaded.config

    def read(trace: Trace) -> Tensor:
        if config.classes:
            return trace.logits
        return trace.tokens[:, 0] if config.pool == "cls" else trace.tokens[:, config.prefix:].mean(1)

    return float((read(after) - read(before)).abs().max())

"""What the first layer learned, as in the ViT paper's figure 7: the patch embedding's filters, and how alike the positions are.

    D filters · P x Q patch · C channels
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from vitdemo.model import ViT


def position_similarity(model: ViT) -> Tensor | None:
    """How alike the positions of patches are, (rows, cols, rows, cols) from -1 to 1 on the config's grid; None without positions.

    `[r, c]` is the tile of patch (r, c): the cosine between its row of E_pos and every patch's (ViT paper, section 4.5, figure 7 centre).
    Misleads: likeness says nothing about whether the blocks use it, and fixed sinusoids show a pattern nobody learned.
    """
    if model.pos_embed is None:
        return None
    grid = model.config.grid
    p = F.normalize(model.pos_embed.detach()[0, model.config.position_rows:], dim=-1)       # (N, D)
    return (p @ p.T).clamp(-1, 1).unflatten(1, grid).unflatten(0, grid)


def filters(model: ViT, count: int = 64, *, strongest: bool = True) -> Tensor:
    """The `count` strongest filters of the patch embedding E of equation (1), largest norm first, (n, P, Q, C) from 0 to 1; n is `count`
    or D if that is less. With `strongest` off the first ones in the model's own order, which stays while the model learns.

    All share one scale, so that a weak filter looks weak: 0.5 is a weight of zero, 0 or 1 the largest weight shown. Misleads: colours are
    weights on normalised channels, not colours of a picture, and the order by norm means nothing to the model.
    """
    E = _embedding(model)
    order = E.norm(dim=1).argsort(descending=True, stable=True) if strongest else torch.arange(len(E), device=E.device)
    E = E[order[:_checked(count)]]
    return _pictures(model, E / E.abs().max().clamp(min=torch.finfo(E.dtype).tiny))


def principal_filters(model: ViT, count: int = 28) -> Tensor:
    """The first `count` principal components of the D filters (ViT paper, section 4.5, figure 7 left), (n, P, Q, C) from 0 to 1; n is
    less where the filters span less.

    Each has a scale of its own, as a component is a direction without strength: 0.5 is a weight of zero, 1 its largest, which the free
    sign makes positive. Misleads: components must be orthogonal, so late ones look wavy whatever was learned.
    """
    E = _embedding(model)
    _, spread, components = torch.linalg.svd(E - E.mean(dim=0), full_matrices=False)
    spanned = spread > spread[0] * max(E.shape) * torch.finfo(E.dtype).eps
    components = components[spanned][:_checked(count)]                      # (n, C*P*Q)
    largest = components.gather(1, components.abs().argmax(dim=1, keepdim=True))
    return _pictures(model, components / largest)


def _embedding(model: ViT) -> Tensor:
    """E as one filter a row, (D, C*P*Q)."""
    return model.patch_embed.proj.weight.detach().flatten(1).float()


def _pictures(model: ViT, flat: Tensor) -> Tensor:
    """Rows of -1 to 1 (n, C*P*Q) as pictures of 0 to 1 (n, P, Q, C)."""
    return (0.5 + flat / 2).unflatten(1, model.patch_embed.proj.weight.shape[1:]).permute(0, 2, 3, 1)


def _checked(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"count must be a whole number from 1 up, not {count!r}")
    return count

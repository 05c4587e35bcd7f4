"""Which parameters which optimizer moves, and which of them shrink."""

import torch
from torch import nn

from vitdemo.config import TrainConfig
from vitdemo.muon import Muon
from vitdemo.precision import products_in_bfloat16


def optimizers(model: nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Muon for the blocks' matrices and AdamW for the rest, or one Adam(W) for all. Biases, norms and tokens are not decayed. The head has
    groups of its own where it learns at another rate than the rest.

    Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest orthogonal matrix, so every direction learns at one speed.
    """
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    matrices = [p for name, p in named if name.startswith("blocks.") and p.ndim == 2 and config.optimizer == "muon"]
    stacked = {id(p): 3 for name, p in named if name.endswith("attn.qkv.weight")}           # W_q, W_k, W_v of equation (5)
    taken = set(map(id, matrices))
    decayed = [p for name, p in named if id(p) not in taken and p.ndim >= 2 and name.endswith("weight")]
    taken |= set(map(id, decayed))
    groups = [{"params": decayed, "weight_decay": config.weight_decay},
              {"params": [p for _, p in named if id(p) not in taken], "weight_decay": 0.0}]
    if config.head_rate != 1:
        head = {id(p) for name, p in named if name.startswith("head")}
        groups = [{**group, "params": [p for p in group["params"] if (id(p) in head) == own], "rate": config.head_rate if own else 1.0}
                  for group in groups for own in (False, True)]
    if config.optimizer == "adam":
        return [torch.optim.Adam(groups, lr=config.lr, fused=True)]
    rest = torch.optim.AdamW(groups, lr=config.lr, fused=True)
    if not matrices:
        return [rest]
    numbers = torch.bfloat16 if products_in_bfloat16(matrices[0].device, config.precision) else torch.float32
    muon = Muon(matrices, stacked=stacked, numbers=numbers, lr=config.muon_lr, momentum=config.momentum, weight_decay=config.weight_decay,
                adjust_lr_fn="original")
    return [muon, rest]

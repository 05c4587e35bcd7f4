"""What a run begins with: random weights, or the encoder of a checkpoint under a fresh head (fine-tuning, section 3.1 of the ViT paper)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitdemo import data, loading
from vitdemo.checkpoint import Loaded
from vitdemo.cnn import SmallCNN
from vitdemo.config import Preprocessing
from vitdemo.model import ViT, resize_positions
from vitdemo.plan import Plan


class Beginning(NamedTuple):
    """A network that has not learned from these pictures yet, and how pictures become its input."""

    model: nn.Module
    preprocessing: Preprocessing


def opened(start: str, heads: int = 0) -> Loaded:
    """The model a run starts from, by anything that `loading.load` takes; "box" is the one that the page shows. `heads` is for a file that
    does not say how many its model has. Raises ValueError with a sentence."""
    return loading.shown(heads or None) if start == loading.BOX else loading.at_a_terminal(start, heads or None)


def beginning(wanted: Plan, source: Loaded | None, train: data.Split, classes: int) -> Beginning:
    """The network that `wanted` asks for, for `classes` classes of the pictures in `train`; on the encoder of `source`, where there is one."""
    if source is not None:
        # crops and sizes are the data's business: pictures come whole, in the size that the model wants
        return Beginning(under_a_fresh_head(source, classes), source.preprocessing.with_(crop_fraction=1.0, fit="crop"))
    mean, std = data.statistics(train)
    preprocessing = Preprocessing(size=wanted.vit.image, channels=wanted.vit.channels, mean=mean, std=std)
    network = SmallCNN if wanted.network == "cnn" else ViT
    return Beginning(network(wanted.vit.with_(classes=classes), torch.Generator().manual_seed(wanted.train.seed)), preprocessing)


def under_a_fresh_head(source: Loaded, classes: int) -> ViT:
    """The encoder of `source`, positions resampled where its pictures have another size, under a linear head that is all zero."""
    config = source.config.with_(image=source.preprocessing.size, classes=classes, head="linear")
    model = ViT(config)
    weights = {name: tensor for name, tensor in source.model.state_dict().items() if not name.startswith(("head", "pre_logits"))}
    if "pos_embed" in weights:
        weights["pos_embed"] = resize_positions(weights["pos_embed"], source.config.grid, config.grid)
    model.load_state_dict(weights | {name: torch.zeros_like(tensor) for name, tensor in _heads(model).items()})
    return model


def _heads(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in model.state_dict().items() if name.startswith("head")}

"""Tensors and a config become a model: every tensor is there, has its shape and is finite, and nothing is left over."""

import numpy
import torch
from torch import Tensor

from vitdemo.config import ViTConfig
from vitdemo.model import ViT
from vitdemo.weightfile import CheckpointError


def check_fit(state: dict[str, Tensor], config: ViTConfig) -> ViT:
    """An empty model on the meta device that these tensors fit. Raises CheckpointError, naming those that do not."""
    with torch.device("meta"):                                              # no memory and no random numbers before all is checked
        model = ViT(config)
    needed = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    missing, unexpected = [name for name in needed if name not in state], [name for name in state if name not in needed]
    if missing or unexpected:
        said = [f"{word} {', '.join(f'{name!r:.60}' for name in names[:4])}{' and more' * (len(names) > 4)}"
                for word, names in (("missing", missing), ("unexpected", unexpected)) if names]
        raise CheckpointError(f"the weights do not fit the model: {'; '.join(said)}")
    for name, shape in needed.items():
        tensor = state[name]
        if tuple(tensor.shape) != shape:
            raise CheckpointError(f"{name} has the shape {tuple(tensor.shape)}, but the model's settings make it {shape}")
        if not tensor.is_floating_point():
            raise CheckpointError(f"{name} does not hold floating-point numbers")
    return model


def assemble(state: dict[str, Tensor], config: ViTConfig) -> ViT:
    """A model of exactly these tensors as float32; those that are that already are taken as they are. Raises CheckpointError for what does
    not fit or is not finite."""
    model = check_fit(state, config)
    weights: dict[str, Tensor] = {}
    taken = set()
    for name, tensor in state.items():
        plain = _float32(tensor)
        if plain.data_ptr() in taken:                                       # layers that share numbers in the file have their own here
            plain = plain.clone()
        taken.add(plain.data_ptr())
        weights[name] = plain
    for name, tensor in weights.items():
        if not _finite(tensor):
            raise CheckpointError(f"{name} holds numbers that are not finite: the training went wrong, use an earlier checkpoint")
    model.load_state_dict(weights, assign=True)
    return model.eval()


def _finite(tensor: Tensor) -> bool:
    """Whether all numbers are finite. Only then is their sum, which is far quicker to get, unless it is too large; by NumPy, for whose sums
    no thread waits until a busy machine lets others do their share."""
    with numpy.errstate(all="ignore"):
        return bool(numpy.isfinite(tensor.numpy().sum()) or tensor.isfinite().all())


def _float32(tensor: Tensor) -> Tensor:
    """`tensor` as float32, side by side in memory; copied where it is not, or where it is a part of something larger that would stay."""
    plain = tensor.detach().resolve_neg().to(torch.float32).contiguous()
    return plain if plain.untyped_storage().nbytes() == plain.nbytes else plain.clone()

"""Weights in a file, with everything needed to use them: config, class names, preprocessing, where they come from.

`save` writes one .safetensors file; `load` reads it back, and other programs' .safetensors and .pt files too (`vitdemo.weightfile`
opens them, `vitdemo.foreign` translates their names).

The number of heads cannot be seen in any tensor, so a wrong one would give wrong pictures without an error. Our files therefore
carry a fingerprint: what the stored weights answer to one fixed input. It is computed again on loading.
"""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from vitdemo import foreign, weightfile
from vitdemo.atomic import replacing
from vitdemo.config import ConfigError, Preprocessing, ViTConfig
from vitdemo.foreign import HeadsNeeded
from vitdemo.model import ViT
from vitdemo.weightfile import CheckpointError

__all__ = ["CheckpointError", "HeadsNeeded", "Loaded", "box_path", "fingerprint", "list_checkpoints", "load", "save"]

FORMAT = 1                              # raised when an older version could misread a newer file
SUFFIXES = (".safetensors", ".pt", ".pth")


@dataclass(frozen=True)
class Loaded:
    """A model ready for use (eval mode, float32, on the CPU) and what its file says about it."""

    model: ViT
    classes: tuple[str, ...]            # in the order of the logits; plain text, never markup
    preprocessing: Preprocessing
    provenance: dict[str, Any]          # where the weights come from; "notes": what had to be assumed
    name: str                           # the file's name without its suffix

    @property
    def config(self) -> ViTConfig:
        return self.model.config


def list_checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints in `folder`, by name. Half-written files (.tmp) and hidden ones do not count; a missing folder is empty."""
    folder = Path(folder)
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file())


def box_path() -> Path:
    """The model in the box: the first .safetensors file of the folder `checkpoints` beside the package."""
    folder = Path(__file__).resolve().parent.parent / "checkpoints"
    inside = [path for path in list_checkpoints(folder) if path.suffix == ".safetensors"]
    if not inside:
        raise CheckpointError("there is no model in the folder 'checkpoints': put a .safetensors file there, or train one")
    return inside[0]


def save(path: str | Path, model: ViT, *, classes: Sequence[str], preprocessing: Preprocessing, provenance: dict[str, Any],
         half: bool = False) -> None:
    """Write `model` to one .safetensors file, all of it or nothing.

    `classes` are the names in the order of the logits; `provenance` is any JSON object (data, seed, seconds, accuracy). With `half`
    the numbers are rounded to 16 bits, which halves the file. Raises CheckpointError when the parts do not fit or cannot be written.
    """
    path, config = Path(path), model.config
    if len(classes) != config.classes:
        raise CheckpointError(f"the model tells {config.classes} classes apart, so it needs as many names, not {len(classes)}")
    _check_preprocessing(preprocessing, config)
    dtype = torch.float16 if half else torch.float32
    state = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in model.state_dict().items()}
    stored = _assemble(state, config)
    try:
        metadata = {
            "vitdemo": str(FORMAT),
            "config": json.dumps(config.to_json()),
            "classes": json.dumps(_plain_names(classes)),
            "preprocessing": json.dumps(preprocessing.to_json()),
            "provenance": json.dumps(provenance, allow_nan=False),
            "fingerprint": json.dumps(fingerprint(stored)),
        }
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the provenance must be plain JSON values: {error}") from None
    try:
        with replacing(path) as draft:
            draft.write_bytes(safetensors.torch.save(state, metadata))      # not save_file, which hides the file from other users
    except OSError as error:
        raise CheckpointError(f"{path.name} could not be written: {error.strerror}") from None


def load(path: str | Path | None = None, *, heads: int | None = None) -> Loaded:
    """The model in the file `path`, or the model in the box.

    `heads` answers `HeadsNeeded`, which is raised for files that do not say how many heads their model has. Raises CheckpointError
    for whatever is not a whole, finite and consistent checkpoint.
    """
    path = box_path() if path is None else Path(path)
    metadata, content = weightfile.read(path)
    parts = _own(metadata, content, heads) if "vitdemo" in metadata else _translated(content, heads)
    return Loaded(*parts, name=path.stem)


Parts = tuple[ViT, tuple[str, ...], Preprocessing, dict[str, Any]]          # what Loaded is made of, but for the name


@torch.no_grad()
def fingerprint(model: ViT) -> list[float]:
    """What `model` answers to one fixed input: its logits, or the image's token where no head speaks (none, or still all zero)."""
    config = model.config
    images = torch.randn(1, config.channels, *config.image, generator=torch.Generator().manual_seed(0))
    tokens = model.encode(images)
    if model.head is not None and model.head.weight.any():
        return model.classify(tokens)[0].tolist()
    return (tokens[0, 0] if config.class_token else tokens[0].mean(dim=0)).tolist()


def _own(metadata: dict[str, str], state: dict[str, Tensor], heads: int | None) -> Parts:
    """The parts of a file that `save` wrote, each of them checked: the header is as untrusted as any upload."""
    if metadata["vitdemo"] != str(FORMAT):
        raise CheckpointError(f"the file has format {metadata['vitdemo']!r:.20}, this version reads format {FORMAT}: update vitdemo")
    names, provenance, expected = (_json(metadata, key) for key in ("classes", "provenance", "fingerprint"))
    try:
        config = ViTConfig.from_json(_json(metadata, "config"))
        preprocessing = Preprocessing.from_json(_json(metadata, "preprocessing"))
    except ConfigError as error:
        raise CheckpointError(f"the file describes a model that cannot be: {error!s:.200}") from None
    _check_preprocessing(preprocessing, config)
    if not isinstance(names, list) or len(names) != config.classes or not all(isinstance(name, str) for name in names):
        raise CheckpointError(f"the file does not hold one name for each of its {config.classes} classes")
    if not isinstance(provenance, dict):
        raise CheckpointError("the file does not say where it comes from: its provenance is not a JSON object")
    if heads not in (None, config.heads):
        raise CheckpointError(f"the file says its model has {config.heads} heads, not {heads}")
    model = _assemble(state, config)
    _check_fingerprint(model, expected)
    return model, _plain_names(names), preprocessing, provenance


def _translated(content: Any, heads: int | None) -> Parts:
    """The parts of another program's file; what it does not say is filled in and noted in the provenance."""
    found = foreign.understand(content)
    _check_fit(found.state, found.config)                                   # before anyone is asked for a head count
    config, notes = foreign.with_heads(found, heads)
    names = found.classes
    if not isinstance(names, (list, tuple)) or len(names) != config.classes or not all(isinstance(name, str) for name in names):
        if names is not None:
            notes.append(f"the file's class names are not {config.classes} texts and are left out")
        names = [""] * config.classes
    if config.channels not in (1, 3):
        raise CheckpointError(f"the model takes pictures of {config.channels} channels; only 1 (grey) and 3 (RGB) are known here")
    half = (0.5,) * config.channels
    preprocessing = Preprocessing(size=config.image, channels=config.channels, mean=half, std=half)
    notes.append("the file does not say how pictures are prepared: mean and deviation 0.5 are assumed")
    return _assemble(found.state, config), _plain_names(names), preprocessing, {"source": f"{found.source} names", "notes": notes}


def _json(metadata: dict[str, str], key: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(metadata[key], parse_constant=refuse)
    except (KeyError, ValueError, RecursionError):
        raise CheckpointError(f"the file's header has no readable entry {key!r}: it is damaged") from None


def _check_preprocessing(preprocessing: Preprocessing, config: ViTConfig) -> None:
    if preprocessing.channels != config.channels:
        raise CheckpointError(f"pictures of {preprocessing.channels} channels do not fit a model of {config.channels}")
    try:
        config.with_(image=preprocessing.size)
    except ConfigError as error:
        raise CheckpointError(f"the preprocessing does not fit the model: {error}") from None


def _check_fingerprint(model: ViT, expected: Any) -> None:
    """Raises CheckpointError unless `model` answers as it did when it was saved, to a relative 1e-3."""
    now = torch.tensor(fingerprint(model), dtype=torch.float64)
    if not isinstance(expected, list) or not all(type(value) in (int, float) and abs(value) < 1e30 for value in expected):
        raise CheckpointError("the file's fingerprint is not a list of numbers: it is damaged")
    then = torch.tensor(expected, dtype=torch.float64)
    if then.shape != now.shape or not (now - then).abs().max() <= 1e-3 * then.abs().max():
        raise CheckpointError("the model does not answer as it did when it was saved: its weights or its settings (the number of heads, "
                              "for one) were changed")


def _check_fit(state: dict[str, Tensor], config: ViTConfig) -> ViT:
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


def _assemble(state: dict[str, Tensor], config: ViTConfig) -> ViT:
    """A model that holds copies of exactly these tensors as float32. Raises CheckpointError for what does not fit or is not finite."""
    model = _check_fit(state, config)
    weights = {name: tensor.to(torch.float32, copy=True) for name, tensor in state.items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise CheckpointError(f"{name} holds numbers that are not finite: the training went wrong, use an earlier checkpoint")
    model.load_state_dict(weights, assign=True)
    return model.eval()


def _plain_names(names: Sequence[str]) -> tuple[str, ...]:
    """Class names as one line of text each: no control characters, none that turn the writing direction, at most 200 characters."""
    def plain(name: str) -> str:
        kept = (c for c in name[:1000] if unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") and c not in _TURNING)
        return "".join(kept)[:200].strip()

    return tuple(plain(name) or f"class {index}" for index, name in enumerate(names))


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

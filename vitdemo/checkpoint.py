"""Weights in a file, with everything needed to use them: config, class names, preprocessing, where they come from.

`save` writes one .safetensors file; `load` reads it back, and other programs' .safetensors and .pt files too (`vitdemo.weightfile`
opens them, `vitdemo.foreign` translates their names).

The number of heads cannot be seen in any tensor, so a wrong one would give wrong pictures without an error. Our files therefore
carry a fingerprint: what the stored weights answer to one fixed input. It is computed again on loading.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from vitdemo import foreign, weightfile
from vitdemo.assembly import assemble, check_fit
from vitdemo.atomic import replacing
from vitdemo.config import ConfigError, Preprocessing, ViTConfig
from vitdemo.foreign import HeadsNeeded, Stated
from vitdemo.model import ViT
from vitdemo.weightfile import CheckpointError

__all__ = ["CheckpointError", "HeadsNeeded", "Loaded", "Stated", "box_path", "fingerprint", "list_checkpoints", "load", "save", "tiny_path"]

FORMATS = ("1", "2")                    # a new one when an older version could misread a newer file; "2": the fingerprint is of a small image
GRID = 8                                # patches a side of that small image: enough to tell a wrong number of heads, quick for large models
SUFFIXES = (".safetensors", ".pt", ".pth")
TOLD = 20_000                           # characters that a file may tell of the trainings before its own


def held_out(facts: dict[str, Any]) -> tuple[float, int] | None:
    """Share and seed of the part of the pictures that was held out from a training, where what is said of it says so (it may say anything)."""
    recipe = facts.get("train")
    said = facts.get("held_out") or [recipe.get("validation") if isinstance(recipe, dict) else None, facts.get("seed")]
    if not isinstance(said, list) or [type(value) for value in said] != [float, int] or not 0 < said[0] < 1:
        return None
    return said[0], said[1]


@dataclass(frozen=True)
class Loaded:
    """A model ready for use (eval mode, float32, on the CPU) and what its file says about it."""

    model: ViT
    classes: tuple[str, ...]            # in the order of the logits; plain text, never markup
    preprocessing: Preprocessing
    provenance: dict[str, Any]          # where the weights come from; "notes": what had to be assumed
    name: str                           # the file's name without its suffix, or the one by which the model was asked for

    @property
    def config(self) -> ViTConfig:
        return self.model.config

    @property
    def bytes(self) -> int:
        """Of its weights; what two of its tensors share counts once."""
        storages = (tensor.untyped_storage() for tensor in self.model.state_dict().values())
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    @property
    def unnamed(self) -> bool:
        """Whether its classes have numbers in place of names."""
        return all(name == f"class {index}" for index, name in enumerate(self.classes))

    @property
    def held_out(self) -> tuple[float, int] | None:
        """Share and seed of the part of the pictures that was held out from its training, where the file says so."""
        return held_out(self.provenance)

    @property
    def before(self) -> tuple[dict[str, Any], ...]:
        """Where the weights come from that its training began with, oldest first; a file that tells very much is not believed."""
        told = self.provenance.get("before")
        sound = isinstance(told, list) and all(isinstance(one, dict) for one in told) and len(json.dumps(told)) < TOLD
        return tuple(told) if sound else ()

    @property
    def lineage(self) -> tuple[dict[str, Any], ...]:
        """`before`, and its own training last: what is said of a model that starts from this one."""
        own = {name: value for name, value in self.provenance.items() if name != "before"}
        return (*self.before, own) if len(json.dumps(own)) < TOLD else self.before

    @torch.no_grad()
    def encode(self, images: Tensor) -> Tensor:
        """The hidden states (B, T, D) after the last norm, prefix tokens first (`config.prefix` of them), for another model to read.

        `images` is float (B, C, height, width), prepared as `preprocessing` says. Without gradients: `model.encode` gives them.
        """
        return self.model.encode(images)


def list_checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints in `folder`, by name. Half-written files (.tmp) and hidden ones do not count; a missing folder is empty."""
    folder = Path(folder)
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file())


def box_path() -> Path:
    """The model in the box: the first .safetensors file of the folder `checkpoints` beside the package that is not the tiny one, where
    there is another."""
    inside = _shipped()
    if not inside:
        raise CheckpointError("there is no model in the folder 'checkpoints': put a .safetensors file there, or train one")
    return next((path for path in inside if not _tiny(path)), inside[0])


def tiny_path() -> Path:
    """The tiny model beside the one in the box: the file of the folder `checkpoints` whose name ends in -tiny."""
    inside = [path for path in _shipped() if _tiny(path)]
    if not inside:
        raise CheckpointError("there is no tiny model in the folder 'checkpoints': its name would end in -tiny.safetensors")
    return inside[0]


def _shipped() -> list[Path]:
    folder = Path(__file__).resolve().parent.parent / "checkpoints"
    return [path for path in list_checkpoints(folder) if path.suffix == ".safetensors"]


def _tiny(path: Path) -> bool:
    return path.stem.endswith("-tiny")


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
    stored = assemble(state, config)
    try:
        metadata = {
            "vitdemo": FORMATS[small(config) != config.image],
            "config": json.dumps(config.to_json()),
            "classes": json.dumps(_plain_names(classes)),
            "preprocessing": json.dumps(preprocessing.to_json()),
            "provenance": json.dumps(provenance, allow_nan=False),
            "fingerprint": json.dumps(fingerprint(stored, small(config))),
        }
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the provenance must be plain JSON values: {error}") from None
    try:
        with replacing(path) as draft:
            draft.touch()
            allowed = draft.stat().st_mode                                  # what is written next hides itself from other users
            safetensors.torch.save_file(state, draft, metadata)
            draft.chmod(allowed)
    except (OSError, SafetensorError) as error:
        why = re.search(r"I/O error: (.{,80}?)(?: \(|$)", str(error))       # as safetensors says it
        raise CheckpointError(f"{path.name} could not be written: {why[1] if why else getattr(error, 'strerror', None) or error}") from None


def load(path: str | Path | None = None, *, heads: int | None = None, stated: Stated = Stated()) -> Loaded:
    """The model in the file `path`, or the model in the box.

    `heads` answers `HeadsNeeded`, which is raised for files that do not say how many heads their model has; `stated` is what others say of
    another program's file. Raises CheckpointError for whatever is not a whole, finite and consistent checkpoint.
    """
    path = box_path() if path is None else Path(path)
    metadata, content = weightfile.read(path)
    parts = _own(metadata, content, heads) if "vitdemo" in metadata else _translated(content, heads, stated)
    return Loaded(*parts, name=path.stem)


Parts = tuple[ViT, tuple[str, ...], Preprocessing, dict[str, Any]]          # what Loaded is made of, but for the name


@torch.no_grad()
def fingerprint(model: ViT, image: tuple[int, int] | None = None) -> list[float]:
    """What `model` answers to one fixed input, of its own size or of (rows, cols): its logits, or the image's token where no head speaks
    (none, or still all zero)."""
    config = model.config
    images = torch.randn(1, config.channels, *(image or config.image), generator=torch.Generator().manual_seed(0))
    tokens = model.encode(images)
    if model.head is not None and model.head.weight.any():
        return model.classify(tokens)[0].tolist()
    return (tokens[0, 0] if config.class_token else tokens[0].mean(dim=0)).tolist()


def small(config: ViTConfig) -> tuple[int, int]:
    """(rows, cols) of the largest image with at most GRID patches a side."""
    rows, cols = (min(side, GRID * patch) for side, patch in zip(config.image, config.patch, strict=True))
    return rows, cols


def _own(metadata: dict[str, str], state: dict[str, Tensor], heads: int | None) -> Parts:
    """The parts of a file that `save` wrote, each of them checked: the header is as untrusted as any upload."""
    if metadata["vitdemo"] not in FORMATS:
        known = " and ".join(FORMATS)
        raise CheckpointError(f"the file has format {metadata['vitdemo']!r:.20}, this version reads {known}: update vitdemo")
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
    model = assemble(state, config)
    _check_fingerprint(model, expected, config.image if metadata["vitdemo"] == "1" else small(config))
    return model, _plain_names(names), preprocessing, provenance


def _translated(content: Any, heads: int | None, stated: Stated) -> Parts:
    """The parts of another program's file; what it does not say is filled in and noted in the provenance."""
    found = foreign.understand(content, stated)
    check_fit(found.state, found.config)                                   # before anyone is asked for a head count
    config, notes = foreign.with_heads(found, heads)
    names = found.classes if config.classes else ()
    if not isinstance(names, (list, tuple)) or len(names) != config.classes or not all(isinstance(name, str) for name in names):
        if names is not None:
            notes.append(f"the file's class names are not {config.classes} texts and are left out")
        names = [""] * config.classes
    _check_preprocessing(found.preprocessing, config)
    return assemble(found.state, config), _plain_names(names), found.preprocessing, {"source": f"{found.source} names", "notes": notes}


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


def _check_fingerprint(model: ViT, expected: Any, image: tuple[int, int]) -> None:
    """Raises CheckpointError unless `model` answers to the fixed `image` as it did when it was saved, to a relative 1e-3."""
    now = torch.tensor(fingerprint(model, image), dtype=torch.float64)
    if not isinstance(expected, list) or not all(type(value) in (int, float) and abs(value) < 1e30 for value in expected):
        raise CheckpointError("the file's fingerprint is not a list of numbers: it is damaged")
    then = torch.tensor(expected, dtype=torch.float64)
    if then.shape != now.shape or not (now - then).abs().max() <= 1e-3 * then.abs().max():
        raise CheckpointError("the model does not answer as it did when it was saved: its weights or its settings (the number of heads, "
                              "for one) were changed")


def _plain_names(names: Sequence[str]) -> tuple[str, ...]:
    """Class names as one line of text each: no control characters, none that turn the writing direction, at most 200 characters."""
    def plain(name: str) -> str:
        kept = (c for c in name[:1000] if unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") and c not in _TURNING)
        return "".join(kept)[:200].strip()

    return tuple(plain(name) or f"class {index}" for index, name in enumerate(names))


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

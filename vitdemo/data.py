"""CIFAR-10, MNIST, or a person's own folder or zip of class folders, as uint8 tensors in memory.

Pictures are decoded once; the tensors are kept in the cache folder and read back in a fraction of a second.
"""

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vitdemo import class_folders, downloads, settings
from vitdemo.atomic import replacing
from vitdemo.class_folders import DataError, Progress


@dataclass(frozen=True)
class Split:
    """One part of a data set: `images` uint8 (N, C, rows, cols) and `labels` int64 (N,)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor | slice) -> "Split":
        return Split(self.images[index], self.labels[index])


@dataclass(frozen=True)
class Dataset:
    """A named data set. `test` is None where the source has no test part; `skipped` names files that were not pictures."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None
    skipped: tuple[str, ...] = ()


class Part(NamedTuple):
    """What was read of a source's train or test part."""

    classes: tuple[str, ...]
    split: Split
    skipped: tuple[str, ...]


def load(source: str | Path, *, size: tuple[int, int] = (32, 32), channels: int = 3, progress: Progress | None = None) -> Dataset:
    """The data set `source` ("cifar10", "mnist", or a path to a folder or zip of class folders), every picture cropped to `size`.

    Raises DataError with a sentence when there is nothing to read, too little to train on, or no network for a download.
    """
    train = load_part(source, "train", size=size, channels=channels, progress=progress)
    if train is None:
        raise DataError(f"{Path(str(source)).name} holds no training pictures in class folders (one folder per class, pictures inside)")
    if len(train.classes) < 2:
        raise DataError(f"{Path(str(source)).name} has {len(train.classes)} class folder; at least 2 are needed to learn a difference")
    test = load_part(source, "test", size=size, channels=channels, progress=progress)
    if test is None:
        return Dataset(Path(str(source)).stem, train.classes, train.split, None, train.skipped)
    if test.classes != train.classes:
        raise DataError("the test folder does not have the same classes as the train folder: "
                        + ", ".join(sorted(set(test.classes) ^ set(train.classes))[:4]))
    return Dataset(Path(str(source)).stem, train.classes, train.split, test.split, train.skipped + test.skipped)


def load_part(source: str | Path, part: str, *, size: tuple[int, int] = (32, 32), channels: int = 3,
              progress: Progress | None = None) -> Part | None:
    """Classes, pictures and skipped files of one part ("train" or "test"); None where the source has no such part."""
    path, name = _locate(source)
    version = class_folders.version(path) if path else "torchvision"
    key = hashlib.sha256(repr((3, str(path or name), version, part, size, channels)).encode()).hexdigest()[:24]
    cached = _read_cache(key)
    if cached is not None:
        return cached
    if path is None:
        classes, pixels, labels = downloads.fetch(name, part, size=size, channels=channels, progress=progress)
        read = Part(classes, Split(pixels, labels), ())
    else:
        files = [file for file in class_folders.entries(path) if file.part == part]
        decoded = class_folders.decode(files, size=size, channels=channels, progress=progress)
        if decoded is None:
            return None
        pixels = torch.from_numpy(decoded.images).permute(0, 3, 1, 2).contiguous()         # (N, C, rows, cols)
        read = Part(decoded.classes, Split(pixels, torch.from_numpy(decoded.labels)), decoded.skipped)
    _write_cache(key, read)
    return read


def is_local(source: str) -> bool:
    """Whether `source` can be read without a download."""
    path, name = _locate(source)
    return path is not None or downloads.is_here(name)


def hold_out(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Cut a validation part of `share` from `split`, each class in proportion, the same for the same seed; at least one picture
    and at most half of each class is held out, except that a class with a single picture keeps it."""
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(split), dtype=torch.bool)
    for label in split.labels.unique():
        members = (split.labels == label).nonzero().flatten()
        count = min(max(1, round(len(members) * share)), len(members) // 2)
        held[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    if not held.any():
        raise DataError("every class has a single picture: add at least one more to a class, so that learning can be measured")
    return split[~held], split[held]


def statistics(split: Split) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, of values between 0 and 1, to four digits (deviation at least 0.01)."""
    shades = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in split.images.unbind(1)]).double()     # (C, 256)
    mean = counts @ shades / counts.sum(1)
    std = ((counts * (shades - mean[:, None]) ** 2).sum(1) / counts.sum(1)).sqrt()
    return tuple(round(v, 4) for v in mean.tolist()), tuple(round(max(v, 0.01), 4) for v in std.tolist())


def _locate(source: str | Path) -> tuple[Path | None, str]:
    """A path to read, or None and the name of a data set that torchvision fetches."""
    name = str(source)
    if name in downloads.KNOWN:
        folder = settings.read().data_folder
        if folder and (folder / f"{name}.zip").is_file():
            return folder / f"{name}.zip", name
        return None, name
    path = Path(source).expanduser()
    if not path.exists():
        raise DataError(f"there is no data set {path.name!r}: give cifar10, mnist, or the path of a folder or .zip of class folders")
    return path, path.stem


def _cache_file(key: str) -> Path:
    return settings.read().cache_folder / "data" / f"{key}.safetensors"


def _read_cache(key: str) -> Part | None:
    try:
        with safe_open(_cache_file(key), framework="pt") as file:
            names = file.metadata()
            split = Split(file.get_tensor("images"), file.get_tensor("labels"))
        return Part(tuple(names["classes"].split("\n")), split, tuple(filter(None, names["skipped"].split("\n"))))
    except (OSError, SafetensorError, KeyError, TypeError):
        return None                                                         # not there, or damaged: decoded again


def _write_cache(key: str, part: Part) -> None:
    if any("\n" in name for name in part.classes + part.skipped):
        return
    path = _cache_file(key)
    with contextlib.suppress(OSError, SafetensorError):                     # a full disk only costs the next start some seconds
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=False) as draft:
            save_file({"images": part.split.images, "labels": part.split.labels}, draft,
                      metadata={"classes": "\n".join(part.classes), "skipped": "\n".join(part.skipped)})

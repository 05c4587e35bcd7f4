"""CIFAR-10, MNIST, or a person's own folder or zip of class folders, as uint8 tensors in memory.

Pictures are decoded once; the tensors are kept in the cache folder and read back in a fraction of a second.
"""

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vitdemo import class_folders, settings
from vitdemo.class_folders import DataError, Progress

KNOWN = ("cifar10", "mnist")                    # names that torchvision can download


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
        read = _from_torchvision(name, part, size=size, channels=channels)
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
    folder = settings.read().cache_folder / "downloads"
    return path is not None or (folder / {"cifar10": "cifar-10-batches-py", "mnist": "MNIST"}[name]).is_dir()


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
    images = split.images if len(split) <= 50_000 else split.images[:: len(split) // 50_000]
    std, mean = torch.std_mean(images.transpose(0, 1).flatten(1).float() / 255, dim=1)
    return tuple(round(v, 4) for v in mean.tolist()), tuple(round(max(v, 0.01), 4) for v in std.tolist())


def _locate(source: str | Path) -> tuple[Path | None, str]:
    """A path to read, or None and the name of a data set that torchvision fetches."""
    name = str(source)
    if name in KNOWN:
        folder = settings.read().data_folder
        if folder and (folder / f"{name}.zip").is_file():
            return folder / f"{name}.zip", name
        return None, name
    path = Path(source).expanduser()
    if not path.exists():
        raise DataError(f"there is no data set {path.name!r}: give cifar10, mnist, or the path of a folder or .zip of class folders")
    return path, path.stem


def _from_torchvision(name: str, part: str, *, size: tuple[int, int], channels: int) -> Part:
    """Download (once) and read a data set by torchvision's own code."""
    from torchvision import datasets                                        # slow to import, and only needed here

    folder = settings.read().cache_folder / "downloads"
    make = {"cifar10": datasets.CIFAR10, "mnist": datasets.MNIST}[name]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _time_out(30):
            data = make(str(folder), train=part == "train", download=True)
    except (OSError, RuntimeError, EOFError) as error:                      # no network, cut off, wrong checksum, disk full
        raise DataError(f"{name} could not be downloaded ({type(error).__name__}): check the network and try again, or put "
                        f"{name}.zip (train/ and test/ with class folders) into a folder and set VITDEMO_DATA to it") from error
    images = torch.as_tensor(data.data)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2)            # grey (N, rows, cols) or (N, rows, cols, 3)
    split = Split(_fit(images, size, channels), torch.as_tensor(data.targets).long())
    return Part(tuple(c.split(" - ")[0] for c in data.classes), split, ())


def _fit(images: Tensor, size: tuple[int, int], channels: int) -> Tensor:
    """Whole tensors (N, C, rows, cols) to another size and number of channels."""
    if images.shape[1] != channels:
        images = images.float().mean(1, keepdim=True).round().byte() if channels == 1 else images.expand(-1, channels, -1, -1)
    if tuple(images.shape[2:]) != size:
        images = torch.nn.functional.interpolate(images, size=size, mode="bilinear", antialias=True)
    return images.contiguous()


@contextmanager
def _time_out(seconds: float) -> Iterator[None]:
    """torchvision's downloader takes no time-out of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


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
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"images": part.split.images, "labels": part.split.labels}, temporary,
                  metadata={"classes": "\n".join(part.classes), "skipped": "\n".join(part.skipped)})
        os.replace(temporary, path)
    except (OSError, SafetensorError):
        temporary.unlink(missing_ok=True)                                   # a full disk only costs the next start some seconds

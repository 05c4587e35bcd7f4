"""CIFAR-10, MNIST, or a person's own folder or zip of class folders, as uint8 tensors in memory.

Pictures are decoded once; the tensors are kept in the cache folder and read back in a fraction of a second.
"""

import contextlib
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vitdemo import archive, class_folders, downloads, settings
from vitdemo.archive import DataError
from vitdemo.atomic import replacing
from vitdemo.class_folders import Progress

SMALL = 1000                                    # pictures
OWN_SET = re.compile(r"[0-9a-f]{32}\.zip")       # the file of a visitor's set, whose name is nobody else's business


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
    """A named data set. `test` is None where the source has no test part; `skipped` names files that were not pictures, `duplicates`
    pictures that are there more than once (with the same bytes) and were counted once, so that none is learned and tested."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None
    skipped: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()


class Part(NamedTuple):
    """What was read of a source's train or test part."""

    classes: tuple[str, ...]
    split: Split
    skipped: tuple[str, ...]
    duplicates: tuple[str, ...]


def load(source: str | Path, *, size: tuple[int, int] = (32, 32), channels: int = 3, progress: Progress | None = None) -> Dataset:
    """The data set `source` ("cifar10", "mnist", or a path to a folder or zip of class folders), every picture cropped to `size`.

    Raises DataError with a sentence when there is nothing to read, too little to train on, or no network for a download.
    """
    name = title(source)
    train = load_part(source, "train", size=size, channels=channels, progress=progress)
    if train is None:
        raise DataError(f"{name} holds no training pictures in class folders (one folder per class, pictures inside)")
    if len(train.classes) < 2:
        raise DataError(f"{name} has {len(train.classes)} class folder with pictures; at least 2 are needed to learn a difference")
    test = load_part(source, "test", size=size, channels=channels, progress=progress)
    if test is None:
        return Dataset(name, train.classes, train.split, None, train.skipped, train.duplicates)
    unknown = sorted(set(test.classes) - set(train.classes))
    if unknown:
        raise DataError(f"the test folder does not have the same classes as the train folder: {', '.join(unknown[:4])}")
    order = torch.tensor([train.classes.index(name) for name in test.classes])
    return Dataset(name, train.classes, train.split, Split(test.split.images, order[test.split.labels]),
                   train.skipped + test.skipped, train.duplicates + test.duplicates)


def load_part(source: str | Path, part: str, *, size: tuple[int, int] = (32, 32), channels: int = 3,
              progress: Progress | None = None) -> Part | None:
    """Classes, pictures and skipped files of one part ("train" or "test"); None where the source has no such part."""
    path, name = _locate(source)
    version = class_folders.version(path) if path else "torchvision"
    key = hashlib.sha256(repr((4, str(path or name), version, part, size, channels)).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    native = name in downloads.KNOWN and size == downloads.KNOWN[name].size         # at other sizes they are many and large
    key = key if native else f"own-{key}"
    visitors = _visitors(path)                                              # deleted when they say so, with every copy; small besides
    cached = None if visitors else _read_cache(key)
    if cached is not None:
        return cached
    if path is None:
        classes, pixels, labels = downloads.fetch(name, part, size=size, channels=channels, progress=progress)
        read = Part(classes, Split(pixels, labels), (), ())
    else:
        found = class_folders.survey(path).entries
        files = [file for file in found if file.part == part]
        counted = None if name in downloads.KNOWN else set()                # published sets are left as they are
        if counted is not None and part == "test" and files:
            counted = class_folders.keys([file for file in found if file.part == "train"])
        decoded = class_folders.decode(files, size=size, channels=channels, counted=counted, progress=progress)
        if decoded is None:
            return None
        split = Split(torch.from_numpy(decoded.images), torch.from_numpy(decoded.labels))
        read = Part(decoded.classes, split, decoded.skipped, decoded.duplicates)
    if not visitors:
        _write_cache(key, read)
    return read


def title(source: str | Path) -> str:
    """What to call a data set: a visitor's own set by its title, a folder or zip by its name."""
    path, name = _locate(source)
    return str(archive.remark(path).get("title") or "own pictures") if _visitors(path) else name


def is_local(source: str) -> bool:
    """Whether `source` can be read without a download."""
    path, name = _locate(source)
    return path is not None or downloads.is_here(name)


def held_share(pictures: int, share: float, small_share: float = 0.2) -> float:
    """The share of so many pictures that is held out where `share` is asked for: of few `small_share`, until that is `small_share` of SMALL,
    since a twentieth of ninety would be too few to tell anything."""
    return max(share, small_share * min(1.0, SMALL / max(1, pictures)))


def hold_out(split: Split, share: float, seed: int, *, small_share: float = 0.2) -> tuple[Split, Split]:
    """Cut a validation part of `share` from `split`, each class in proportion, the same for the same seed; at least one picture
    and at most half of each class is held out, except that a class with a single picture keeps it. Of few pictures more is held out, see
    `held_share`."""
    share = held_share(len(split), share, small_share)
    generator = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(split), dtype=torch.bool)
    for label in split.labels.unique():
        members = (split.labels == label).nonzero().flatten()
        count = min(max(1, round(len(members) * share)), len(members) // 2)
        held[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    if not held.any():
        raise DataError("every class has a single picture: add at least one more to a class, so that learning can be measured")
    return split[~held], split[held]


def digest(*parts: Split) -> str:
    """Equal for equal pictures and labels in equal order."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in (tensor for part in parts for tensor in (part.images, part.labels)):
        found.update(repr(tuple(tensor.shape)).encode())
        found.update(tensor.contiguous().numpy())
    return found.hexdigest()


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
    try:
        path = Path(source).expanduser()
        there = path.exists()
    except (OSError, RuntimeError, ValueError):                             # a name that is too long, an unknown ~user, a null character
        path, there = Path("data"), False
    if not there and OWN_SET.fullmatch(path.name):
        raise DataError("this set of pictures is no longer here: upload or collect it again")
    if not there:
        raise DataError(f"there is no data set {path.name!r}: give cifar10, mnist, or the path of a folder or .zip of class folders")
    return path, path.stem


def _visitors(path: Path | None) -> bool:
    """Whether this is a set that a visitor of the page brought or collected."""
    return path is not None and OWN_SET.fullmatch(path.name) is not None and path.is_file()


def _cache_file(key: str) -> Path:
    return settings.read().cache_folder / "data" / f"{key}.safetensors"


def _read_cache(key: str) -> Part | None:
    path = _cache_file(key)
    try:
        with safe_open(path, framework="pt") as file:
            names = json.loads(file.metadata()["names"])
            split = Split(file.get_tensor("images"), file.get_tensor("labels"))
        with contextlib.suppress(OSError):
            os.utime(path)                                                  # the ones used last are kept longest
        return Part(tuple(names["classes"]), split, tuple(names["skipped"]), tuple(names["duplicates"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None                                                         # not there, or damaged: decoded again


def _write_cache(key: str, part: Part) -> None:
    path, most = _cache_file(key), settings.read().sets_megabytes * 10**6
    names = json.dumps({"classes": part.classes, "skipped": part.skipped, "duplicates": part.duplicates})
    with contextlib.suppress(OSError, SafetensorError):                     # a full disk only costs the next start some seconds
        path.parent.mkdir(parents=True, exist_ok=True)
        if not key.startswith("own-") or _make_room(path.parent, most - part.split.images.numel()):
            with replacing(path, durable=False) as draft:
                save_file({"images": part.split.images, "labels": part.split.labels}, draft, metadata={"names": names})


def _make_room(folder: Path, most: int) -> bool:
    """Delete the decoded sets of one's own, and known ones at another size than their own, that were used longest ago until all of them take
    at most `most` bytes; whether that can be."""
    found = sorted(((file.stat(), file) for file in folder.glob("own-*.safetensors")), key=lambda pair: pair[0].st_mtime)
    total = sum(stat.st_size for stat, _ in found)
    for stat, file in found:
        if total <= most:
            break
        with contextlib.suppress(OSError):                                  # another process reads it, on Windows
            file.unlink()
            total -= stat.st_size
    return total <= most

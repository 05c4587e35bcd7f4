"""CIFAR-10, MNIST, or a person's own folder or zip of class folders, as uint8 tensors in memory.

Pictures are decoded once; the tensors are kept in the cache folder and read back in a fraction of a second. Nothing is ever
unpacked to disk, so names inside a zip cannot lead anywhere.
"""

import hashlib
import os
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vitdemo import settings
from vitdemo.config import Preprocessing
from vitdemo.images import PictureError, open_picture, see

Progress = Callable[[int, int], None]           # (pictures done, pictures in all)

KNOWN = ("cifar10", "mnist")                    # names that torchvision can download
TRAIN_NAMES, TEST_NAMES = ("train", "training"), ("test", "testing", "val", "valid", "validation")
MAX_FILE_BYTES = 64 * 2**20                     # one picture inside a zip or folder
MAX_PICTURES = 2_000_000


class DataError(ValueError):
    """Data that cannot be used; the message is one sentence that says why and what to do."""


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


class _Entry(NamedTuple):
    """One file of a source, before it is decoded."""

    part: str                       # "train" or "test"
    label: str
    name: str                       # as the person knows it
    key: str                        # changes when the file does
    read: Callable[[], bytes]


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
    path, build = _locate(source)
    entries = _entries(path) if path else []
    key = _fingerprint(str(source) if path is None else path, entries, part, size, channels)
    cached = _read_cache(key)
    if cached is None:
        if path:
            cached = _decode([e for e in entries if e.part == part], size=size, channels=channels, progress=progress)
        else:
            cached = _from_torchvision(build, part, size=size, channels=channels)
        if cached is not None:
            _write_cache(key, cached)
    return cached


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


def _entries(path: Path) -> list[_Entry]:
    """All files of a folder or zip that lie in class folders, sorted, with the part each belongs to."""
    found = list(_zip_files(path)) if path.is_file() else list(_folder_files(path))
    found = [item for item in found if not any(p.startswith((".", "__MACOSX")) for p in item[0].parts)]
    while found and len({parts.parts[0] for parts, *_ in found}) == 1 and min(len(parts.parts) for parts, *_ in found) > 2:
        found = [(PurePosixPath(*parts.parts[1:]), *rest) for parts, *rest in found]       # one folder around everything
    tops = {parts.parts[0].lower() for parts, *_ in found if len(parts.parts) > 2}
    split_up = bool(tops & set(TRAIN_NAMES))
    entries = []
    for parts, key, read in sorted(found, key=lambda item: str(item[0])):
        part, rest = "train", parts.parts
        if split_up:
            top = rest[0].lower()
            part = "train" if top in TRAIN_NAMES else "test" if top in TEST_NAMES else ""
            rest = rest[1:]
        if part and len(rest) > 1:
            entries.append(_Entry(part, rest[0], str(parts), key, read))
    if len(entries) > MAX_PICTURES:
        raise DataError(f"{path.name} holds {len(entries)} files; at most {MAX_PICTURES} can be read")
    return entries


def _zip_files(path: Path) -> Iterator[tuple[PurePosixPath, str, Callable[[], bytes]]]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError):
        raise DataError(f"{path.name} is not a whole .zip file: it may be a download that was cut off, so delete it and fetch it again") from None
    for info in archive.infolist():
        if not info.is_dir():
            # `info.file_size` is only the header's word: reading stops at the limit whatever it says
            def read(info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as file:
                    return _limited(file.read(MAX_FILE_BYTES + 1))
            yield PurePosixPath(info.filename.replace("\\", "/")), f"{info.CRC:x}", read


def _folder_files(path: Path) -> Iterator[tuple[PurePosixPath, str, Callable[[], bytes]]]:
    for folder, _, names in os.walk(path):                                  # does not follow links to folders
        for name in names:
            file = Path(folder, name)
            if file.is_file() and not file.is_symlink():
                def read(file: Path = file) -> bytes:
                    with file.open("rb") as handle:
                        return _limited(handle.read(MAX_FILE_BYTES + 1))
                stat = file.stat()
                yield PurePosixPath(file.relative_to(path).as_posix()), f"{stat.st_size}-{stat.st_mtime_ns}", read


def _limited(content: bytes) -> bytes:
    if len(content) > MAX_FILE_BYTES:
        raise PictureError(f"a file of more than {MAX_FILE_BYTES // 2**20} MB is not read as a picture")
    return content


def _decode(entries: list[_Entry], *, size: tuple[int, int], channels: int,
            progress: Progress | None) -> Part | None:
    """Open every entry; what is no picture is left out and named."""
    classes = tuple(sorted({entry.label for entry in entries}))
    preprocessing = Preprocessing(size=size, channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels)
    images = np.empty((len(entries), *size, channels), dtype=np.uint8)
    labels, skipped = [], []
    for done, entry in enumerate(entries):
        try:
            picture, _ = see(open_picture(entry.read()).image, preprocessing)
            images[len(labels)] = np.asarray(picture).reshape(*size, channels)
            labels.append(classes.index(entry.label))
        except (PictureError, zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError):
            skipped.append(entry.name)                                      # encrypted or damaged members as well
        if progress and done % 500 == 0:
            progress(done, len(entries))
    if not labels:
        return None
    kept = sorted(set(labels))                                              # a class whose files are all broken is no class
    labels = np.searchsorted(kept, labels)
    tensor = torch.from_numpy(images[: len(labels)]).permute(0, 3, 1, 2).contiguous()       # (N, C, rows, cols)
    return Part(tuple(classes[i] for i in kept), Split(tensor, torch.from_numpy(labels).long()), tuple(skipped))


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


def _fingerprint(source: str | Path, entries: list[_Entry], part: str, size: tuple[int, int], channels: int) -> str:
    digest = hashlib.sha256(repr((2, str(source), part, size, channels)).encode())
    for entry in entries:
        if entry.part == part:
            digest.update(f"{entry.name}\0{entry.key}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:24]


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

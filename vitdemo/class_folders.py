"""A folder or a .zip whose folders are classes: which files are pictures of what, and their decoding.

Links in a folder are not followed; what a zip may do is limited in `archive`.
"""

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitdemo.archive import MAX_FILES, DataError, File, name_parts, take, zip_files
from vitdemo.config import Preprocessing
from vitdemo.images import PictureError, open_picture, see

Progress = Callable[[str, int, int], None]      # (what is counted, how many so far, how many in all)
Key = tuple[str, bytes]                         # (class, hash of a file's content): two of a kind are one picture

TRAIN_NAMES = ("train", "training", "training_set", "train_set")
TEST_NAMES = ("test", "testing", "test_set", "val", "valid", "validation", "validation_set")
LITTER = ("thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r")              # what Windows and macOS leave in folders
MAX_BYTES = 4 * 2**30                           # decoded pictures of one part
TOLD_EVERY = 0.2                                # seconds between two calls of `progress`


class Entry(NamedTuple):
    """One file in a class folder, before it is decoded."""

    part: str                       # "train" or "test"
    label: str
    name: str                       # as the person knows it
    read: Callable[[], bytes]       # raises PictureError


class Survey(NamedTuple):
    """What lies in a folder or zip, sorted by name."""

    entries: list[Entry]
    outside: list[str]              # names of files that are in no class folder


class Decoded(NamedTuple):
    """Every picture of a part."""

    classes: tuple[str, ...]
    images: np.ndarray              # uint8 (N, C, rows, cols)
    labels: np.ndarray              # int64 (N,)
    skipped: tuple[str, ...]        # names of files that are no pictures
    duplicates: tuple[str, ...]     # names of pictures that are there twice in a class, and counted once


def survey(path: Path, *, most: int = MAX_FILES) -> Survey:
    """All files of a folder or zip. Where there is a folder `train`, the class folders are one level deeper, and a folder `test` (or
    `val`) holds the test part. Folders around everything and what an operating system leaves are passed over. Raises DataError."""
    found = zip_files(path, most=most) if path.is_file() else list(_folder_files(path))
    if len(found) > most:
        raise DataError(f"{path.name} holds {len(found):,} files; at most {most:,} can be read")
    found = [file for file in found if file.parts and file.parts[-1].lower() not in LITTER
             and not any(part.startswith((".", "__MACOSX")) for part in file.parts)]
    outside = []
    while found:
        outside += [file.parts[-1] for file in found if len(file.parts) == 1]
        found = [file for file in found if len(file.parts) > 1]
        if len({file.parts[0] for file in found}) != 1 or all(len(file.parts) == 2 for file in found):
            break
        found = [File(file.parts[1:], file.read) for file in found]         # one folder around everything
    split_up = any(file.parts[0].lower() in TRAIN_NAMES for file in found if len(file.parts) > 2)
    listed = []
    for file in sorted(found, key=lambda file: file.parts):
        part, inner, name = "train", file.parts, "/".join(file.parts)
        if split_up:
            part = "train" if inner[0].lower() in TRAIN_NAMES else "test" if inner[0].lower() in TEST_NAMES else ""
            inner = inner[1:]
        if part and len(inner) > 1:
            listed.append(Entry(part, inner[0], name, file.read))
        else:
            outside.append(name)
    return Survey(listed, outside)


def version(path: Path) -> str:
    """Changes when the pictures do: a zip's size and time, or the names, sizes and times of a folder's files."""
    if path.is_file():
        stat = path.stat()
        return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    digest = hashlib.sha256()
    for folder, subfolders, names in os.walk(path):
        subfolders.sort()
        for name in sorted(names):
            stat = Path(folder, name).lstat()
            digest.update(f"{folder}\0{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def fingerprint(content: bytes) -> bytes:
    """The same for two files with the same bytes, and only for them."""
    return hashlib.sha256(content).digest()[:16]


def keys(files: list[Entry]) -> set[Key]:
    """What `decode` is to leave out as counted already; files that cannot be read have no key."""
    found = set()
    for file in files:
        try:
            found.add((file.label, fingerprint(file.read())))
        except PictureError:
            continue
    return found


def decode(files: list[Entry], *, size: tuple[int, int], channels: int, counted: Collection[Key] | None = None,
           progress: Progress | None = None) -> Decoded | None:
    """Open every file, cropped to `size` (rows, cols); what is no picture is left out and named, and so is, unless `counted` is None, a
    second one with the same bytes in the same class, or one that is in `counted`. None if there is no picture at all. Raises DataError
    when all of them together need too much memory."""
    classes = sorted({file.label for file in files})
    numbers = {name: i for i, name in enumerate(classes)}
    preprocessing = Preprocessing(size=size, channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels)
    check_room(len(files), channels, size)
    images = np.empty((len(files), channels, *size), dtype=np.uint8)
    labels, skipped, duplicates, seen, told = [], [], [], set(counted or ()), -1.0
    for done, file in enumerate(files):
        if progress and time.monotonic() - told > TOLD_EVERY:
            told = time.monotonic()
            progress("pictures read", done, len(files))
        try:
            content = file.read()
            key = (file.label, fingerprint(content)) if counted is not None else None
            if key in seen:
                duplicates.append(file.name)
                continue
            picture = open_picture(content, enough=4 * max(size)).image     # four times the pixels needed: the reduction is not seen
        except PictureError:
            skipped.append(file.name)
            continue
        if key:
            seen.add(key)
        images[len(labels)] = np.asarray(see(picture, preprocessing)[0]).reshape(*size, channels).transpose(2, 0, 1)
        labels.append(numbers[file.label])
    if not labels:
        return None
    kept = sorted(set(labels))                                              # a class whose files are all broken is no class
    numbered = np.searchsorted(kept, labels).astype(np.int64)
    return Decoded(tuple(classes[i] for i in kept), images[: len(labels)], numbered, tuple(skipped), tuple(duplicates))


def check_room(count: int, channels: int, size: tuple[int, int]) -> None:
    """Raises DataError when so many pictures at this size are more than should be kept in memory."""
    needed = count * channels * size[0] * size[1]
    if needed > MAX_BYTES:
        raise DataError(f"{count:,} pictures of {size[0]} x {size[1]} pixels need {needed / 1e9:.1f} GB of memory, and at most "
                        f"{MAX_BYTES / 1e9:.1f} GB are taken: use fewer pictures, or a model for smaller ones")


def _folder_files(path: Path) -> Iterator[File]:
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder, name)
            if file.is_file() and not file.is_symlink():
                def read(file: Path = file) -> bytes:
                    try:
                        with file.open("rb") as handle:
                            return take(handle)
                    except OSError as error:
                        raise PictureError(f"the file cannot be read ({type(error).__name__})") from error
                yield File(name_parts(file.relative_to(path).as_posix()), read)

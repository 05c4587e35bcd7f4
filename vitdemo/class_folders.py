"""A folder or a .zip whose folders are classes: which files are pictures of what, and their decoding.

Nothing is ever unpacked to disk, so names inside a zip cannot lead anywhere, and links in a folder are not followed.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from vitdemo.config import Preprocessing
from vitdemo.images import PictureError, open_picture, see

Progress = Callable[[str, int, int], None]      # (what is counted, how many so far, how many in all)

TRAIN_NAMES, TEST_NAMES = ("train", "training"), ("test", "testing", "val", "valid", "validation")
MAX_FILE_BYTES = 64 * 2**20                     # one picture
MAX_PICTURES = 2_000_000


class DataError(ValueError):
    """Data that cannot be used; the message is one sentence that says why and what to do."""


class Entry(NamedTuple):
    """One file in a class folder, before it is decoded."""

    part: str                       # "train" or "test"
    label: str
    name: str                       # as the person knows it
    read: Callable[[], bytes]


class Decoded(NamedTuple):
    """Every picture of a part. `skipped` names the files that were none."""

    classes: tuple[str, ...]
    images: np.ndarray              # uint8 (N, rows, cols, C)
    labels: np.ndarray              # int64 (N,)
    skipped: tuple[str, ...]


class _File(NamedTuple):
    path: PurePosixPath             # inside the source
    read: Callable[[], bytes]


def entries(path: Path) -> list[Entry]:
    """All files of a folder or zip that lie in class folders, sorted by name. Where there is a folder `train`, the class folders are
    one level deeper, and a folder `test` (or `val`) holds the test part. Raises DataError for what is no zip, or too much."""
    found = list(_zip_files(path)) if path.is_file() else list(_folder_files(path))
    found = [file for file in found if not any(part.startswith((".", "__MACOSX")) for part in file.path.parts)]
    if len(found) > MAX_PICTURES:
        raise DataError(f"{path.name} holds {len(found)} files; at most {MAX_PICTURES} can be read")
    while found and len({file.path.parts[0] for file in found}) == 1 and min(len(file.path.parts) for file in found) > 2:
        found = [_File(PurePosixPath(*file.path.parts[1:]), file.read) for file in found]       # one folder around everything
    split_up = any(file.path.parts[0].lower() in TRAIN_NAMES for file in found if len(file.path.parts) > 2)
    listed = []
    for file in sorted(found, key=lambda file: str(file.path)):
        part, inner = "train", file.path.parts
        if split_up:
            part = "train" if inner[0].lower() in TRAIN_NAMES else "test" if inner[0].lower() in TEST_NAMES else ""
            inner = inner[1:]
        if part and len(inner) > 1:
            listed.append(Entry(part, inner[0], str(file.path), file.read))
    return listed


def version(path: Path) -> str:
    """Changes when the pictures do: a zip's size and time, or the names, sizes and times of a folder's files."""
    if path.is_file():
        return f"{path.stat().st_size} {path.stat().st_mtime_ns}"
    digest = hashlib.sha256()
    for folder, subfolders, names in os.walk(path):
        subfolders.sort()
        for name in sorted(names):
            stat = Path(folder, name).lstat()
            digest.update(f"{folder}\0{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def decode(files: list[Entry], *, size: tuple[int, int], channels: int, progress: Progress | None = None) -> Decoded | None:
    """Open every file, cropped to `size` (rows, cols); what is no picture is left out and named. None if there is no picture at all."""
    classes = sorted({file.label for file in files})
    preprocessing = Preprocessing(size=size, channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels)
    images = np.empty((len(files), *size, channels), dtype=np.uint8)
    labels, skipped = [], []
    for done, file in enumerate(files):
        try:
            seen, _ = see(open_picture(file.read()).image, preprocessing)
            images[len(labels)] = np.asarray(seen).reshape(*size, channels)
            labels.append(classes.index(file.label))
        except (PictureError, zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError):
            skipped.append(file.name)                                       # encrypted or damaged members of a zip as well
        if progress and done % 500 == 0:
            progress("pictures read", done, len(files))
    if not labels:
        return None
    kept = sorted(set(labels))                                              # a class whose files are all broken is no class
    return Decoded(tuple(classes[i] for i in kept), images[: len(labels)], np.searchsorted(kept, labels).astype(np.int64), tuple(skipped))


def _zip_files(path: Path) -> Iterator[_File]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError):
        hint = "it is a .tar.gz archive; pictures are read from" if path.name.endswith((".gz", ".tgz", ".tar")) else "if it was downloaded, fetch it again; pictures are read from"
        raise DataError(f"{path.name} is not a whole .zip file: {hint} a folder or .zip of class folders") from None
    for info in archive.infolist():
        if not info.is_dir():
            def read(info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as file:                            # the size in the header is only a claim
                    return _limited(file.read(MAX_FILE_BYTES + 1))
            yield _File(PurePosixPath(info.filename.replace("\\", "/")), read)


def _folder_files(path: Path) -> Iterator[_File]:
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder, name)
            if file.is_file() and not file.is_symlink():
                def read(file: Path = file) -> bytes:
                    with file.open("rb") as handle:
                        return _limited(handle.read(MAX_FILE_BYTES + 1))
                yield _File(PurePosixPath(file.relative_to(path).as_posix()), read)


def _limited(content: bytes) -> bytes:
    if len(content) > MAX_FILE_BYTES:
        raise PictureError(f"a file of more than {MAX_FILE_BYTES // 2**20} MB is not read as a picture")
    return content

"""From an untrusted .zip of class folders to a small one of our own, picture by picture and within limits."""

import io
import re
import time
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from vitdemo.archive import DataError
from vitdemo.class_folders import Progress, Survey, fingerprint, survey
from vitdemo.images import PictureError, open_picture

SHORT, LONG = 256, 1024                         # pixels that are kept of a picture's shorter and longer side
LOSSLESS = 64                                   # a picture with a side as short as this is kept as PNG
MAX_CLASSES, MAX_NAME = 100, 40
MAX_SECONDS = 120                               # for one zip
UNPACKED, UNPACKED_TIMES = 256 * 2**20, 20      # bytes that a zip's pictures may unpack to: so many, or so many times its own size
ROOM_EVERY = 50                                 # pictures between two looks at the room that is left
SIDE = 8                                        # of the grey picture that near-copies are told by
APART, ALIKE = 6.0, 0.97                        # its difference in grey levels (root mean square) and its correlation, for a near-copy:
#   none of 8,000 pictures of CIFAR-10 has one (a resized, brightened or newly encoded one is found), 3% of the digits of MNIST do
TAKEN_TOGETHER, NEAR_COPY = 1, 2                # what the first byte of a kept picture's remark says, see `mark`


class Kept(NamedTuple):
    """A picture as a set keeps it."""

    content: bytes
    suffix: str                     # the end of its name
    signature: bytes                # its SIDE x SIDE grey picture


def copy(path: Path, archive: zipfile.ZipFile, most: int, check_room: Callable[[], None],
         progress: Progress | None) -> tuple[list[str], int]:
    """Write the pictures of the zip `path`, at most `most`, to `archive`, each once; return what was left out and why, and how many
    pictures were left out because they were there already. Raises DataError."""
    found = survey(path, most=4 * most + 1000)                              # a Mac packs a second file with every picture
    names = _check(found, path, most)
    skipped = [f"{shown(name)}: it lies in no class folder" for name in found.outside]
    seen, twice = set(), 0
    budget, ends = max(UNPACKED, UNPACKED_TIMES * path.stat().st_size), time.monotonic() + MAX_SECONDS
    for done, entry in enumerate(found.entries):
        if time.monotonic() > ends:
            raise DataError(f"reading {path.name} took more than {MAX_SECONDS} seconds: use fewer or smaller pictures")
        if progress:
            progress("pictures read", done, len(found.entries))
        if done % ROOM_EVERY == 0:
            check_room()
        try:
            content = entry.read()
            budget -= len(content)
            if budget < 0:
                raise DataError(f"{path.name} unpacks to far more than its own size, which pictures do not: pack only the pictures")
            key = fingerprint(content)
            if key in seen:
                twice += 1
                continue
            kept = encoded(content)
        except PictureError as error:
            skipped.append(f"{shown(entry.name)}: {error}")
            continue
        seen.add(key)
        put(archive, f"{entry.part}/{names[entry.label]}/{key.hex()}", kept)
    mark(archive)
    classes = {member.split("/")[1] for member in archive.namelist() if member.startswith("train/")}
    if len(classes) < 2:
        raise DataError(f"{path.name} has {_folders(len(classes))} with pictures that can be read, and at least 2 are needed"
                        + (f" (left out: {skipped[0]})" if skipped else ""))
    return skipped, twice


def encoded(content: bytes) -> Kept:
    """An untrusted picture as a small one of ours. Raises PictureError."""
    image = open_picture(content, enough=SHORT).image
    scale = min(1.0, SHORT / min(image.size), LONG / max(image.size))
    if scale < 1:
        image = image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling.BICUBIC, reducing_gap=4.0)
    lossless, buffer = min(image.size) <= LOSSLESS, io.BytesIO()
    image.save(buffer, "PNG" if lossless else "JPEG", **({} if lossless else {"quality": 92, "subsampling": 0}))
    grey = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return Kept(buffer.getvalue(), ".png" if lossless else ".jpg", grey.tobytes())


def put(archive: zipfile.ZipFile, name: str, kept: Kept, *, together: bool = False) -> None:
    """Write a picture under a name without its end. Its remark, which lies in the zip's table of contents, is a byte of flags and its
    signature. `together`: it was taken in one go with another one."""
    archive.writestr(name + kept.suffix, kept.content)
    archive.getinfo(name + kept.suffix).comment = bytes([TAKEN_TOGETHER * together]) + kept.signature


def mark(archive: zipfile.ZipFile, *, since: int = 0) -> None:
    """Say in the remarks which pictures from number `since` on are near-copies of earlier ones, whatever was said before."""
    infos, length = archive.infolist(), 1 + SIDE * SIDE
    remarks = [info.comment if len(info.comment) == length else bytes(length) for info in infos]        # an even grey is like nothing
    signatures = np.frombuffer(b"".join(remark[1:] for remark in remarks), np.uint8).reshape(-1, SIDE * SIDE)
    for info, remark, near in zip(infos[since:], remarks[since:], near_copies(signatures, since=since).tolist(), strict=True):
        info.comment = bytes([remark[0] & TAKEN_TOGETHER | NEAR_COPY * near]) + remark[1:]


def near_copies(signatures: np.ndarray, *, since: int = 0) -> np.ndarray:
    """Which of the pictures from number `since` on are nearly the same as an earlier one, brightness aside; signatures (N, pixels) uint8,
    the answer (N - since,) bool."""
    grey = signatures.astype(np.float32)
    grey -= grey.mean(1, keepdims=True)
    power = (grey**2).sum(1)
    found = np.zeros(len(grey), bool)
    for start in range(since, len(grey), 500):                              # in parts: of very many pictures all products need gigabytes
        end = min(start + 500, len(grey))
        products, powers = grey[start:end] @ grey[:end].T, power[start:end, None] + power[:end]
        alike = (powers - 2 * products < grey.shape[1] * APART**2) & (products > ALIKE * np.sqrt(power[start:end, None] * power[:end]))
        found[start:end] = np.tril(alike, start - 1).any(1)
    return found[since:]


def class_name(name: str) -> str:
    """A class's name as it is kept: never a path, nothing invisible, at most 40 characters. Raises DataError when nothing is left."""
    kept = re.sub(r"[/\\]", "-", plain(name)).lstrip("._- ")[:MAX_NAME].rstrip(". ")
    if not kept:
        raise DataError("a class needs a name with at least one letter or digit: give it one")
    return kept


def plain(text: str) -> str:
    """Text without control characters and marks that turn the direction of writing, and with single spaces."""
    whole = re.sub(r"\s+", " ", unicodedata.normalize("NFC", str(text)[:1000]))
    return "".join(c for c in whole if unicodedata.category(c)[0] != "C").strip()


def shown(name: str) -> str:
    """A file's name for a list: the end of it, where it is long."""
    clean = plain(name[-200:])
    return clean if len(clean) <= 60 else "…" + clean[-59:]


def _check(found: Survey, path: Path, most: int) -> dict[str, str]:
    """Refuse, before anything is decoded, what cannot become a set; returns the name that is kept for each class folder. Names that differ
    only in capitals are one class where one is in train and one in test; within a part that is a mistake, and said."""
    if not found.entries:
        inner = any(name.lower().endswith((".zip", ".rar", ".7z")) for name in found.outside)
        raise DataError(f"{path.name} holds " + ("another archive: unpack that one first, and pack its class folders" if inner else
                        "no pictures in class folders: make one folder per class, with the pictures inside, and pack those folders"))
    if len(found.entries) > most:
        raise DataError(f"{path.name} holds {len(found.entries):,} files in class folders, and at most {most:,} pictures can be kept: "
                        "use fewer")
    folders = {part: sorted({entry.label for entry in found.entries if entry.part == part}) for part in ("train", "test")}
    names, spelled = {}, {}
    for part, labels in folders.items():
        for label in labels:
            names[label] = spelled.setdefault(class_name(label).casefold(), class_name(label))
        twice = [name for name, count in Counter(names[label] for label in labels).items() if count > 1]
        if twice:
            raise DataError(f"two class folders would both be called {twice[0]!r}: rename one of them")
        if part == "train" and not 2 <= len(labels) <= MAX_CLASSES:
            raise DataError(f"{path.name} has {_folders(len(labels))}, and 2 to {MAX_CLASSES} are needed: one folder per class")
    alone = sorted(set(names.values()) - {names[label] for label in folders["train"]})
    if alone:
        raise DataError(f"the class {alone[0]!r} is in the test folder only: put pictures of it into the train folder as well")
    return names


def _folders(count: int) -> str:
    return f"{count} class folder{'' if count == 1 else 's'}"

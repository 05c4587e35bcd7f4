"""Visitors' own sets of pictures: uploaded as a .zip of class folders, or collected picture by picture.

Each set is one .zip of small pictures that we encoded ourselves, `train/<class>/<hash of the original>.jpg` (and `test/...`), with its
title and what was left out in the zip's comment, and in each picture's what tells near-copies. A change writes a new file that takes the
place of the old one, so whoever reads is never disturbed, and `data.load(sets.path(id))` reads it like any other zip. Whoever knows a
set's id may use it; nobody can guess one.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from PIL import Image

from vitdemo import unpacking
from vitdemo.archive import DataError
from vitdemo.atomic import patiently, replacing
from vitdemo.class_folders import Progress, fingerprint
from vitdemo.images import PictureError, open_picture
from vitdemo.unpacking import MAX_CLASSES, class_name, encoded, plain

MAX_TITLE = 60                                  # characters
LISTED = 100                                    # files left out that are named
OWNER = 8                                       # first digits of a set's id that sets of one browser have in common
LEAST = 2**16                                   # bytes that even an empty set counts for
ABANDONED = 3600                                # seconds after which a draft is nobody's


@dataclass(frozen=True)
class PictureSet:
    """What is in a set."""

    id: str
    title: str
    classes: dict[str, int]         # name -> pictures, sorted by name
    skipped: tuple[str, ...]        # of the first files that were left out, each with its reason
    pictures: int                   # all of them
    tested: int = 0                 # those in a test part, which are not learned from
    skipped_count: int = 0          # all files that were left out, but for those that were there already
    duplicates_count: int = 0       # left out because they were there already
    alike: int = 0                  # pictures that are nearly the same as an earlier one, or were taken in one go with it


class Sets:
    """All sets in the folder `home`, of every visitor. `max_pictures` is for one set, `max_bytes` for all together; sets that nobody has
    used for `keep_seconds` are deleted by `tidy` (0 keeps them). Threads and processes may share a home. `owner`, OWNER hexadecimal
    digits, begins the ids of one browser's sets, and `most` is how many bytes those may take (0: as many as all). Whatever goes wrong is
    a DataError, or a PictureError about a picture, of one sentence."""

    def __init__(self, home: Path, *, max_pictures: int, max_bytes: int, keep_seconds: float = 0):
        self.home, self.max_pictures, self.max_bytes, self.keep_seconds = Path(home).absolute(), max_pictures, max_bytes, keep_seconds

    def create(self, title: str = "", *, owner: str = "", most: int = 0) -> str:
        """A new, empty set; returns its id."""
        set_id = (owner + secrets.token_hex(16))[:32]
        with self._changing(own=(set_id[:OWNER],), most=most):
            with replacing(self._file(set_id), durable=False) as draft, zipfile.ZipFile(draft, "w") as archive:
                archive.comment = _comment(title)
        return set_id

    def from_zip(self, path: Path, title: str = "", progress: Progress | None = None, *, owner: str = "", most: int = 0) -> PictureSet:
        """A new set from an untrusted .zip of class folders, with or without train and test folders: every picture is decoded and encoded
        again. Raises DataError where that leaves fewer than 2 classes, or where there is too much of anything."""
        path, set_id = Path(path), (owner + secrets.token_hex(16))[:32]
        with self._saving(), contextlib.ExitStack() as until_placed:
            self.home.mkdir(parents=True, exist_ok=True)
            with replacing(self._file(set_id), durable=False) as draft:
                room = {"own": (set_id[:OWNER], draft.name), "most": most}
                with zipfile.ZipFile(draft, "w") as archive:
                    skipped, twice = unpacking.copy(path, archive, self.max_pictures, lambda: self._check_room(**room), progress)
                    archive.comment = _comment(title or path.stem, skipped, len(skipped), twice)
                until_placed.enter_context(self._changing(**room))          # held until the draft has become the set
        return self.get(set_id)

    def add(self, set_id: str, klass: str, content: bytes, *, together: bool = False, most: int = 0) -> PictureSet:
        """Put one picture into a class, which is made where there is none of that name; `together`: it was taken in one go with another
        one. Raises PictureError for what is no picture, and for one that the set has already."""
        self._existing(set_id)
        name, kept, key = class_name(klass), encoded(content), fingerprint(content).hex()
        with self._changing(own=(set_id[:OWNER],), most=most):
            members = self._members(set_id)
            spelled = {other.casefold(): other for other in map(_class, members)}
            twin = next((_class(member) for member in members if member.split("/")[2].startswith(key)), None)
            if twin:
                raise PictureError(f"this picture is in the class {twin!r} already, and is counted once")
            if len(members) >= self.max_pictures:
                raise DataError(f"the set has {len(members):,} pictures, and at most {self.max_pictures:,} can be kept: remove some first")
            if name.casefold() not in spelled and len(spelled) >= MAX_CLASSES:
                raise DataError(f"the set has {len(spelled)} classes, and at most {MAX_CLASSES} can be kept: use one of them")
            with self._draft(set_id) as draft, zipfile.ZipFile(draft, "a") as archive:
                unpacking.put(archive, f"train/{spelled.get(name.casefold(), name)}/{key}", kept, together=together)
                unpacking.mark(archive, since=len(members))
        return self.get(set_id)

    def drop(self, set_id: str, klass: str, index: int) -> PictureSet:
        """Remove the picture at a place of a class, counted from 0 as in `thumbnails`; a class without pictures is gone."""
        with self._changing(growing=False):
            members = [member for member in self._members(set_id) if _class(member) == klass]
            if not isinstance(index, int) or not 0 <= index < len(members):
                raise DataError(f"there is no picture {index} in that class: it may have been removed already")
            self._rewrite(set_id, lambda member: None if member == members[index] else member)
        return self.get(set_id)

    def rename(self, set_id: str, klass: str, name: str) -> PictureSet:
        """Give a class another name. Raises DataError where there is no such class, or another one of that name."""
        name = class_name(name)
        with self._changing(growing=False):
            names = set(map(_class, self._members(set_id)))
            if klass not in names:
                raise DataError("there is no such class in this set: it may have been renamed already")
            if name.casefold() in {other.casefold() for other in names - {klass}}:
                raise DataError(f"there is another class {name!r} in this set: choose a different name")
            self._rewrite(set_id, lambda member: member.replace(f"/{klass}/", f"/{name}/", 1) if _class(member) == klass else member)
        return self.get(set_id)

    def entitle(self, set_id: str, title: str) -> PictureSet:
        """Give the set another title."""
        with self._changing(growing=False), self._draft(set_id) as draft, self._reading(set_id), zipfile.ZipFile(draft, "a") as archive:
            archive.comment = _comment(**{**json.loads(archive.comment), "title": title})
        return self.get(set_id)

    def get(self, set_id: str) -> PictureSet:
        """What is in a set. Raises DataError for an id that is none."""
        with self._reading(set_id) as archive:
            members, about = archive.namelist(), {"skipped_count": 0, "duplicates_count": 0, **json.loads(archive.comment)}
            alike = sum(any(info.comment[:1]) for info in archive.infolist())           # the first byte of a picture's remark is its flags
        counts, tested = Counter(map(_class, members)), sum(member.startswith("test/") for member in members)
        return PictureSet(set_id, about["title"], dict(sorted(counts.items())), tuple(about["skipped"]), len(members), tested,
                          about["skipped_count"], about["duplicates_count"], alike)

    def path(self, set_id: str) -> Path:
        """The file of a set, for `data.load`; asking for it counts as using the set."""
        path = self._existing(set_id)
        with contextlib.suppress(OSError):                                  # the time of the last change stays: the data's version has it
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        return path

    def thumbnails(self, set_id: str, klass: str, limit: int = 24, side: int = 96) -> list[Image.Image]:
        """The first pictures of a class, in the order that `drop` counts in, at most `side` pixels long and wide."""
        made = []
        with self._reading(set_id) as archive:
            for member in [member for member in archive.namelist() if _class(member) == klass][:limit]:
                image = open_picture(archive.read(member)).image
                image.thumbnail((side, side))
                made.append(image)
        return made

    def delete(self, set_id: str) -> None:
        """Remove a set for good."""
        with self._saving():
            patiently(self._existing(set_id).unlink)

    def tidy(self) -> None:
        """Delete the sets that nobody has used for `keep_seconds`, and drafts whose process has died."""
        for entry in self._listing():
            stat = entry.stat()
            idle = time.time() - max(stat.st_atime, stat.st_mtime)
            if idle > (ABANDONED if entry.name.endswith(".tmp") else self.keep_seconds or float("inf")):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)

    def _file(self, set_id: str) -> Path:
        return self.home / f"{set_id}.zip"

    def _existing(self, set_id: str) -> Path:
        if isinstance(set_id, str) and re.fullmatch(r"[0-9a-f]{32}", set_id) and self._file(set_id).is_file():
            return self._file(set_id)
        raise DataError("there is no such set of pictures: it may have been deleted, so upload or collect it again")

    @contextlib.contextmanager
    def _reading(self, set_id: str) -> Iterator[zipfile.ZipFile]:
        path = self._existing(set_id)
        try:
            with patiently(lambda: zipfile.ZipFile(path)) as archive:
                yield archive
        except (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of what is written meanwhile
                raise
            raise DataError("the set of pictures is damaged: delete it, and upload or collect it again") from error

    def _members(self, set_id: str) -> list[str]:
        with self._reading(set_id) as archive:
            return archive.namelist()

    def _listing(self) -> list[os.DirEntry]:
        try:
            return [entry for entry in os.scandir(self.home) if entry.name.endswith((".zip", ".tmp"))]
        except OSError:
            return []

    def _check_room(self, wanted: int = 0, *, own: tuple[str, ...] = (), most: int = 0) -> None:
        """Raises DataError where all sets and drafts and `wanted` bytes are more than they may be, or those named as `own` than `most`."""
        total = ours = wanted
        for entry in self._listing():
            with contextlib.suppress(OSError):                              # deleted in this instant
                size = max(entry.stat().st_size, LEAST)
                total, ours = total + size, ours + size * entry.name.startswith(own)
        if 0 < most < ours:
            raise DataError(f"one browser's sets may take {most / 1e6:.0f} MB here, and yours would take more: delete one of them first")
        if total > self.max_bytes:
            raise DataError(f"the place for pictures on this server is full ({self.max_bytes / 1e6:.0f} MB for all): "
                            "delete a set, or try again later")

    @contextlib.contextmanager
    def _changing(self, *, growing: bool = True, own: tuple[str, ...] = (), most: int = 0) -> Iterator[None]:
        """One change at a time, over all threads and processes; one that makes a set larger only while there is room."""
        with self._saving():
            self.home.mkdir(parents=True, exist_ok=True)
            with FileLock(self.home / ".lock", timeout=20):
                if growing:
                    self._check_room(LEAST, own=own, most=most)
                yield

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        try:
            yield
        except Timeout:
            raise DataError("many pictures are being saved at the moment: try again") from None
        except OSError as error:
            raise DataError("the server's disk is full, so nothing was changed: try again later" if error.errno == errno.ENOSPC else
                            "the server's folder for pictures cannot be written, so nothing was changed: who runs the server can say why") from error

    @contextlib.contextmanager
    def _draft(self, set_id: str) -> Iterator[Path]:
        """A copy of a set that takes its place when the block ends well."""
        with replacing(self._existing(set_id), durable=False) as draft:
            shutil.copyfile(self._existing(set_id), draft)
            yield draft

    def _rewrite(self, set_id: str, name: Callable[[str], str | None]) -> None:
        """Write a set anew with members renamed, or left out where `name` gives None."""
        with replacing(self._existing(set_id), durable=False) as draft, self._reading(set_id) as old, zipfile.ZipFile(draft, "w") as new:
            new.comment = old.comment
            for member in old.infolist():
                if (wanted := name(member.filename)) is not None:
                    new.writestr(wanted, old.read(member))
                    new.getinfo(wanted).comment = member.comment
            unpacking.mark(new)                                             # the picture that others were copies of may be gone


def _class(member: str) -> str:
    return member.split("/")[1]


def _comment(title: str, skipped: Sequence[str] = (), skipped_count: int = 0, duplicates_count: int = 0) -> bytes:
    """What the zip's comment (at most 65,535 bytes) says about a set."""
    return json.dumps({"title": plain(title)[:MAX_TITLE].strip() or "my pictures", "skipped": skipped[:LISTED],
                       "skipped_count": skipped_count, "duplicates_count": duplicates_count}, ensure_ascii=False).encode()

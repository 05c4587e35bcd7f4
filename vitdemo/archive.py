"""The files in a .zip that nobody vouches for. Nothing is ever unpacked to disk, so names inside cannot lead anywhere.

What a zip says about itself is only a claim: how many files it holds is counted before anything is believed, and each file is read up
to a limit whatever its header says.
"""

import json
import re
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from vitdemo.images import PictureError

MAX_FILE_BYTES = 64 * 2**20                     # one picture
MAX_FILES = 2_000_000
ENTRY = b"PK\x01\x02"                           # every entry of a zip's table of contents begins so
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)    # what Explorer and Finder write; LZMA would take memory as it likes


class DataError(ValueError):
    """Data that cannot be used; the message is one sentence that says why and what to do."""


class File(NamedTuple):
    """A file inside a folder or a zip."""

    parts: tuple[str, ...]          # of its name, the last one is the file's own; "" and "." are left out
    read: Callable[[], bytes]       # raises PictureError for what cannot be read


def zip_files(path: Path, *, most: int = MAX_FILES) -> list[File]:
    """The files of a zip with at most `most` entries, in its order. Raises DataError for what is no zip, or has too many."""
    try:
        if _entries(path) > most:
            raise DataError(f"{path.name} holds more than {most:,} files; at most that many can be read")
        archive = zipfile.ZipFile(path)
    except DataError:
        raise
    except Exception:                                                       # broken tables make zipfile raise anything
        packed = path.name.endswith((".gz", ".tgz", ".tar", ".rar", ".7z"))
        hint = "it is another kind of archive" if packed else "if it was downloaded, fetch it again"
        raise DataError(f"{path.name} is not a whole .zip file: {hint}; pictures are read from a folder or .zip of class folders") from None

    def reader(info: zipfile.ZipInfo) -> Callable[[], bytes]:
        def read() -> bytes:
            if info.flag_bits & 1:
                raise PictureError("the file is locked with a password: pack it without one")
            if info.compress_type not in METHODS:
                raise PictureError("the file is packed in an unusual way: pack it as an ordinary .zip")
            try:
                with archive.open(info) as file:
                    return take(file)
            except PictureError:
                raise
            except Exception as error:                                      # wrong sums, overlapping entries, broken streams
                raise PictureError("the file is damaged inside the .zip: pack it again") from error
        return read

    return [File(name_parts(_name(info)), reader(info)) for info in archive.infolist() if not info.is_dir()]


def remark(path: Path) -> dict[str, Any]:
    """The JSON object in a zip's comment, where our own sets keep what is known about them; {} where there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = json.loads(archive.comment)
        return found if isinstance(found, dict) else {}
    except Exception:                                                       # no zip, no comment, no JSON
        return {}


def take(file: BinaryIO) -> bytes:
    """All of a file, if that is not too much for one picture."""
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise PictureError(f"a file of more than {MAX_FILE_BYTES // 2**20} MB is not read as a picture")
    return content


def name_parts(name: str) -> tuple[str, ...]:
    """A name cut at its slashes of either kind; accents as one character each (a Mac writes two), and always valid Unicode."""
    whole = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    return tuple(part for part in re.split(r"[/\\]", whole) if part not in ("", "."))


def _name(info: zipfile.ZipInfo) -> str:
    """The name as its writer meant it: Finder writes UTF-8 without saying so, and zipfile then takes it for the alphabet of DOS."""
    if not info.flag_bits & 0x800:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


def _entries(path: Path) -> int:
    """How many entries the table of contents can have at most, at the price of reading the file once: the number that stands in the zip
    may lie, and believing a table of millions takes gigabytes."""
    count, tail = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            count += (tail + chunk).count(ENTRY)
            tail = chunk[-len(ENTRY) + 1:]
    return count

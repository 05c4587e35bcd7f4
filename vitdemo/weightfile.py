"""What is in a weight file, read without running any of it. Nobody vouches for such a file: it may be half a download, or an attack."""

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

MAX_BYTES = 16 * 2**30                  # H/14 with its optimizer is 8 GB


class CheckpointError(ValueError):
    """A file that is not a checkpoint we can use; the message is one sentence that says why and what to do."""


def read(path: Path) -> tuple[dict[str, str], Any]:
    """The header's metadata (empty unless safetensors) and the content, a dict of tensors or what `torch.save` was given.

    What the file is, is decided by its first bytes. Every tensor has memory of its own: nothing holds on to the file.
    """
    if not os.path.isfile(path):                                            # unlike Path.is_file it is false also for a name too long
        raise CheckpointError(f"there is no file called {path.name}")
    try:
        with open(path, "rb") as file:
            start = file.read(512)
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from None
    try:
        problem = _problem(path, start)
        if problem:
            raise CheckpointError(f"{path.name} {problem}")
        if start[8:9] == b"{":
            return _safetensors(path)
        with open(path, "rb") as file:                                      # by its name torch would judge for itself what it is
            return {}, torch.load(file, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except Exception as error:                                              # broken and hostile files raise anything
        refused = re.search(r"GLOBAL ([\w.]{1,60})", str(error))
        why = f"it holds the Python object {refused[1]}, and only plain weights are read" if refused else "it is damaged or cut off"
        raise CheckpointError(f"{path.name} is not loaded: {why}") from None


def _safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """What a safetensors file holds. The library checks the header, and what it gives is a view of the mapped file; that is only asked for
    its type and shape. The numbers are then read to where they stay: a copy of the view costs twice the memory and three times the time."""
    tensors = {}
    with safe_open(path, "pt") as header, open(path, "rb") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        for name in header.offset_keys():                                   # one after another, with nothing between them
            tensors[name] = tensor = torch.empty_like(header.get_tensor(name))
            into = tensor.flatten().view(torch.uint8).numpy()
            if file.readinto(into) != into.nbytes:
                raise CheckpointError(f"{path.name} ends too early: download or save it again")
        return header.metadata() or {}, tensors


def _problem(path: Path, start: bytes) -> str:
    """What the file is instead of a whole checkpoint; empty if nothing speaks against it."""
    size = path.stat().st_size
    if not size:
        return "is empty: download or save it again"
    if size > MAX_BYTES:
        return f"has {size / 2**30:.0f} GB, more than any checkpoint this program can use"
    if start.startswith(b"version https://git-lfs"):
        return "is a git LFS pointer, not the weights themselves: fetch them with 'git lfs pull'"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "is a web page, not a checkpoint: the download went wrong, try it again"
    if start.startswith(b"\x1f\x8b"):
        return "is a gzip archive, not a checkpoint: unpack it, or download it again if it is cut off"
    if start.startswith(b"PK"):
        if not zipfile.is_zipfile(path):
            return "is cut off: download or save it again"
        with zipfile.ZipFile(path) as archive:                              # torch.save never compresses; a bomb does
            if sum(entry.file_size for entry in archive.infolist()) > size:
                return "is a compressed zip archive, not a checkpoint"
    elif start[8:9] != b"{" and start[:1] != b"\x80":
        return "is not a checkpoint: neither safetensors nor a file that torch.save wrote"
    return ""

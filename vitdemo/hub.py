"""Published weights on this computer: found in the usual caches of huggingface_hub and torchvision, or fetched into them.

Those libraries say where a file comes from and where it goes (their settings hold: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN,
HF_HUB_OFFLINE, TORCH_HOME). The bytes are received by `transfer`, which can be watched, ended and gone on with, and checks the sum; a file
takes its place only when it is whole.

    python -m vitdemo.hub dino-s16         fetches a model by its name in the zoo, or user/repo; the same command goes on after Ctrl-C
    python -m vitdemo.hub --list           what there is, how large, and what is here
"""

import argparse
import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vitdemo import transfer, zoo
from vitdemo.atomic import patiently, replacing
from vitdemo.huggingface import PICKLED, SAFE, Found, HubError, Missing, about, ask, authorization, weights
from vitdemo.terminal import say
from vitdemo.transfer import Check, CutOff, TransferError
from vitdemo.zoo import Hub, Torchvision

Told = Callable[[int, int], None]               # bytes so far, bytes in all (0 while unknown)

PART = ".vitdemo-part"                          # ends the name of what has not arrived whole
BESIDE = ("config.json", "preprocessor_config.json")                        # what says how to use a repository's weights
WORTH = 2**20                                   # a connection that broke after less than this many bytes is not tried again


def cached(where: Hub | Torchvision) -> Path | None:
    """The weights file, if it is whole on this computer. Never asks the network. Raises HubError for weights torchvision does not know."""
    if isinstance(where, Torchvision):
        if not _may_be_there(where):
            return None
        target = _published(where)[1]
        return target if _is_there(target) else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for file in (where.file, PICKLED)[:1 + (where.file == SAFE)]:
        with contextlib.suppress(HFValidationError):
            found = try_to_load_from_cache(where.repo, file, revision=where.revision)
            if isinstance(found, str) and _is_there(Path(found)):
                return Path(found)
    return None


def fetch(where: Hub | Torchvision, *, told: Told | None = None, accept: Callable[[Path], None] | None = None) -> Path:
    """The weights file, downloaded where it is not on this computer; a repository's config.json and preprocessor_config.json then lie
    beside it. `told` is called five times a second in the caller's thread: what it raises ends the download at once, and what has arrived
    is kept for the next time. `accept` is called with a repository's config.json before its weights are asked for: what it raises ends it
    too. Of several callers one downloads, and the others are told how far it is. Raises HubError."""
    here = cached(where)
    if here:
        return here
    told = told or (lambda done, total: None)
    try:
        return _from_torchvision(where, told) if isinstance(where, Torchvision) else _from_hub(where, told, accept)
    except TransferError as error:
        kept = ", which goes on where it stopped" if isinstance(error, CutOff) else ""
        raise HubError(f"{_name(where)} could not be downloaded ({error}): check the network and try again{kept}") from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise HubError(f"there is not enough room on the disk for {_name(where)} ({error.strerror}): make some and try again" if full else
                       f"{_name(where)} could not be downloaded (the cache's folder cannot be used, {type(error).__name__})") from error


def _name(where: Hub | Torchvision) -> str:
    return where.weights if isinstance(where, Torchvision) else where.repo[:100]


def _is_there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _may_be_there(where: Torchvision) -> bool:
    """Whether there is a file whose name begins as this model's do: without one, torchvision need not be imported, which takes seconds."""
    from torch import hub

    name = where.weights.split("_Weights")[0].lower()
    return any(path.name.startswith(name) for path in Path(hub.get_dir(), "checkpoints").glob("*"))


def _published(where: Torchvision) -> tuple[str, Path, int]:
    """Where torchvision's weights are, where torch.hub looks for them, and about how many bytes they have."""
    from torch import hub
    from torchvision.models import get_weight

    try:
        known = get_weight(where.weights)
    except (ValueError, KeyError) as error:
        raise HubError(f"torchvision has no weights called {where.weights[:100]!r}") from error
    name = Path(urlsplit(known.url).path).name
    return known.url, Path(hub.get_dir(), "checkpoints", name), round(known.meta.get("_file_size", 0) * 2**20)


def _from_torchvision(where: Torchvision, told: Told) -> Path:
    url, target, size = _published(where)
    digits = re.search(r"-([0-9a-f]{8,64})\.", target.name)                 # torch.hub's convention: a sum begins with them
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    with transfer.alone(target.with_name(f".{target.name}.lock"), lambda: _tell_waiting(part, size, told)):
        if not _is_there(target):
            _receive(url, part, told=lambda done, total: told(done, total or size), check=Check("sha256", digits[1]) if digits else None)
            patiently(lambda: os.replace(part, target))
    return target


def _from_hub(where: Hub, told: Told, accept: Callable[[Path], None] | None) -> Path:
    from huggingface_hub import constants

    file, found = ask(lambda: weights(where), lambda: told(0, 0))
    total = found.size or 0
    name = "--".join(("models", *where.repo.split("/")))
    cache = Path(constants.HF_HUB_CACHE)
    folder, lock = cache / name, cache / ".locks" / name / "vitdemo.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    part = folder / "blobs" / (found.etag + PART)
    with transfer.alone(lock, lambda: _tell_waiting(part, total, told)):
        here = cached(where)                                                # whoever was waited for has fetched it
        if here:
            return here
        for small in BESIDE:
            with contextlib.suppress(Missing):
                beside = ask(partial(about, where.repo, small, where.revision), lambda: told(0, total))
                if beside.commit != found.commit:
                    raise HubError(f"{where.repo} was changed while it was read: try again")
                path = _bring(folder, small, beside, lambda *small_file: told(0, total))
                if accept and small == BESIDE[0]:
                    accept(path)
        path = _bring(folder, file, found, told)
        if where.revision != found.commit:
            ref = folder / "refs" / where.revision
            ref.parent.mkdir(parents=True, exist_ok=True)
            with replacing(ref, durable=False) as draft:                    # last: only now is anything to be found
                draft.write_text(found.commit)
        return path


def _bring(folder: Path, file: str, found: Found, told: Told) -> Path:
    """Put a file into a repository's folder of the hub's cache: the bytes under their etag, and a link to them in the commit's snapshot.
    As in the library, the file itself stands there where links cannot be made."""
    from huggingface_hub import constants

    blob, pointer = folder / "blobs" / found.etag, folder / "snapshots" / found.commit / file
    if _is_there(pointer):
        return pointer
    for path in (blob, pointer):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not (_is_there(blob) and found.size in (None, blob.stat().st_size)):
        part = blob.with_name(blob.name + PART)
        check = Check("sha256", found.etag) if re.fullmatch("[0-9a-f]{64}", found.etag) else None
        _receive(found.url, part, told=told, check=check, size=found.size, authorization=authorization(found.url))
        patiently(lambda: os.replace(part, blob))
    pointer.unlink(missing_ok=True)                                         # a link to what is there no more
    try:
        if getattr(constants, "HF_HUB_DISABLE_SYMLINKS", False):                                # younger than the oldest library we meet
            raise OSError("links are not wanted")
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:
        patiently(lambda: os.replace(blob, pointer))
    return pointer


def _receive(url: str, part: Path, *, told: Told, **expected: Any) -> None:
    """`transfer.receive`, begun anew as long as a connection that breaks brings us on."""
    while True:
        before = _size(part)
        try:
            return transfer.receive(url, part, told=told, **expected)
        except CutOff:
            if _size(part) - before < WORTH:
                raise


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _tell_waiting(part: Path, total: int, told: Told) -> None:
    told(min(_size(part), total), total)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns 0, or 1 when something could not be had, or 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m vitdemo.hub", description="Fetch published Vision Transformers into the usual caches.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a name that --list shows, or user/repo")
    parser.add_argument("--list", action="store_true", help="what there is, how large, and what is here")
    args = parser.parse_args(arguments)
    if not args.names and not args.list:
        parser.error("name a model, or say --list")
    if args.list:
        for entry in zoo.ENTRIES:
            print(f"{entry.name:<24} {entry.megabytes:>5} MB  {'here' if cached(entry.where) else '    '}  {entry.title}")
    failed = False
    for name in args.names:
        try:
            entry = zoo.find(name)
            if not entry and "/" not in name:
                raise HubError(f"there is no model {name!r}: --list shows all, and user/repo is a repository of the hub")
            path = fetch(entry.where if entry else Hub(name), told=_Line(name))
            say(f"\r{name}: {path}")
        except HubError as error:
            say(f"\r{name}: {error}", to=sys.stderr)
            failed = True
        except KeyboardInterrupt:
            say("\nstopped; what has arrived is kept, and the same command goes on from there", to=sys.stderr)
            return 130
    return int(failed)


class _Line:
    """Prints how far a download is: in place on a terminal, at every tenth elsewhere."""

    def __init__(self, name: str):
        self.name, self.tenth = name, -1

    def __call__(self, done: int, total: int) -> None:
        live, tenth = sys.stdout.isatty(), 10 * done // total if total else self.tenth          # nothing to say while the size is unknown
        if total and live or tenth != self.tenth:
            say(f"\r{self.name}: {done / 1e6:.0f} of {total / 1e6:.0f} MB" + " " * 20 * live, end="" if live else "\n")
        self.tenth = tenth


if __name__ == "__main__":
    sys.exit(main())

"""CIFAR-10 and MNIST as torchvision reads them: fetched by one run while the others wait, whole or not at all.

Everything arrives in a folder of its own, is checked and unpacked there, and only then takes its place.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vitdemo import settings
from vitdemo.archive import DataError
from vitdemo.class_folders import Progress, check_room
from vitdemo.transfer import Check, TransferError, alone, attended, receive


class Known(NamedTuple):
    """A data set that torchvision knows."""

    maker: str                      # its class in torchvision.datasets
    top: str                        # the folder it lies in
    last: str                       # a file in there
    inner: str                      # where torchvision looks for the archives
    archives: tuple[str, ...]
    megabytes: int                  # of the download
    size: tuple[int, int]           # (rows, cols) in pixels


KNOWN = {
    "cifar10": Known("CIFAR10", "cifar-10-batches-py", "test_batch", "", ("cifar-10-python.tar.gz",), 170, (32, 32)),
    "mnist": Known("MNIST", "MNIST", "raw/t10k-labels-idx1-ubyte", "MNIST/raw", ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                   "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"), 12, (28, 28)),
}


def is_here(name: str) -> bool:
    """Whether a data set can be read without the network: fetched before, or its archives put there by hand."""
    known = KNOWN[name]
    by_hand = all(any(path.is_file() for path in _by_hand(archive)) for archive in known.archives)
    return by_hand or (_folder() / known.top / known.last).is_file()


def fetch(name: str, part: str, *, size: tuple[int, int], channels: int,
          progress: Progress | None = None) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Classes, pictures uint8 (N, C, *size) and labels of one part, downloaded where that has not been done before. `progress` is called
    several times a second, also while another run is waited for: what it raises ends the download at once. Raises DataError."""
    from torchvision import datasets  # slow to import, and only needed here

    known, folder, maker = KNOWN[name], _folder(), getattr(datasets, KNOWN[name].maker)
    try:
        if not (folder / known.top / known.last).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with alone(folder / f"{name}.lock", lambda: _tell_waiting(name, progress)):
                if not (folder / known.top / known.last).is_file():         # the run that was waited for has fetched it
                    _bring(name, maker, progress)
        data = _read(name, maker, part)
    except TransferError as error:
        raise DataError(_sentence(name, str(error))) from error
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise DataError(f"there is no room on the disk for {name}: free about {4 * known.megabytes} MB and try again" if full else
                        _sentence(name, f"its folder cannot be used, {type(error).__name__}")) from error
    images = torch.as_tensor(data.data)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2)            # grey (N, rows, cols) or (N, rows, cols, 3)
    classes = tuple(c.split(" - ")[0] for c in data.classes)                # MNIST's are "0 - zero"
    return classes, _fit(images, size, channels), torch.as_tensor(data.targets).long()


def _folder() -> Path:
    return settings.read().cache_folder / "downloads"


def _by_hand(archive: str) -> list[Path]:
    """Where a person may have put an archive."""
    return [folder / archive for folder in (_folder(), settings.read().data_folder) if folder]


def _sentence(name: str, why: str) -> str:
    lying = [archive for archive in KNOWN[name].archives if any(path.is_file() for path in _by_hand(archive))]
    damaged = f", and {lying[0]} in the folder for downloads by hand is damaged or not all there" if lying else ""
    return (f"{name} could not be downloaded ({why}{damaged}): check the network and try again, or put "
            f"{' and '.join(KNOWN[name].archives)} into the folder 'downloads' of the cache (VITDEMO_CACHE), or {name}.zip "
            "(train/ and test/ with class folders) into a folder and set VITDEMO_DATA to it")


def _tell_waiting(name: str, progress: Progress | None) -> None:
    if progress:
        here = sum(file.stat().st_size for file in _folder().glob(f".{name}-*/**/*gz") if file.is_file())
        total = KNOWN[name].megabytes
        progress("megabytes (another run is fetching the same pictures)", min(round(here / 1e6), total), total)


def _bring(name: str, maker: Any, progress: Progress | None) -> None:
    """Fetch, check and unpack a data set, then put it into its place. Leaves nothing behind when it fails."""
    from torchvision.datasets.utils import check_integrity

    known, folder, done = KNOWN[name], _folder(), 0
    for left in folder.glob(f".{name}-*"):                                  # of a process that was killed: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    draft = folder / f".{name}-{secrets.token_hex(4)}"

    def told(count: int = 0) -> None:
        if progress:
            progress("megabytes downloaded", min(round((done + count) / 1e6), known.megabytes), known.megabytes)

    try:
        (draft / known.inner).mkdir(parents=True)
        for archive, urls, md5 in _sources(known, maker):
            target = draft / known.inner / archive
            lying = next((path for path in _by_hand(archive) if check_integrity(path, md5)), None)
            if lying:
                shutil.copyfile(lying, target)
            else:
                _first(urls, target, md5, most=3 * known.megabytes * 10**6, told=told)
            done += target.stat().st_size
        attended(lambda: maker(str(draft), train=True, download=True), told)                # finds the archives, and only unpacks them
        shutil.rmtree(folder / known.top, ignore_errors=True)
        os.replace(draft / known.top, folder / known.top)
    except (RuntimeError, EOFError) as error:
        raise TransferError("what arrived cannot be unpacked") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _sources(known: Known, maker: Any) -> list[tuple[str, list[str], str]]:
    """(archive, addresses, MD5 sum) of everything to fetch, as torchvision has them."""
    if hasattr(maker, "mirrors"):
        return [(archive, [mirror + archive for mirror in maker.mirrors], md5) for archive, md5 in maker.resources]
    return [(known.archives[0], [maker.url], maker.tgz_md5)]


def _first(urls: list[str], target: Path, md5: str, *, most: int, told: Callable[[int], None]) -> None:
    """The same file from the first address that gives it."""
    for url in urls:
        try:
            return receive(url, target, check=Check("md5", md5), most=most, told=lambda count, total: told(count))
        except TransferError:
            if url == urls[-1]:
                raise


def _read(name: str, maker: Any, part: str) -> Any:
    """What has been fetched; when it turns out to be damaged it is removed, so that the next try fetches it anew."""
    folder, known = _folder(), KNOWN[name]
    try:
        return maker(str(folder), train=part == "train", download=False)
    except OSError:
        raise
    except Exception as error:                                              # torchvision's check, or whatever broken files make it raise
        shutil.rmtree(folder / known.top, ignore_errors=True)
        raise DataError(f"the files of {name} were damaged and have been removed: try again, and they are fetched anew") from error


def _fit(images: Tensor, size: tuple[int, int], channels: int) -> Tensor:
    """Whole tensors (N, C, rows, cols) at another size and number of channels."""
    check_room(len(images), channels, size)
    if images.shape[1] != channels:
        images = images.float().mean(1, keepdim=True).round().byte() if channels == 1 else images.expand(-1, channels, -1, -1)
    if tuple(images.shape[2:]) != size:
        images = torch.nn.functional.interpolate(images, size=size, mode="bilinear", antialias=True)
    return images.contiguous()

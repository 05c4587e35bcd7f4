"""CIFAR-10 and MNIST by torchvision's own downloader, with progress, a time-out and a sentence when it fails."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vitdemo import settings
from vitdemo.class_folders import DataError, Progress

TIME_OUT = 30                                   # seconds without a byte


class Known(NamedTuple):
    """A data set that torchvision fetches."""

    maker: str                      # its class in torchvision.datasets
    last: str                       # the file that exists once all of it has been fetched
    megabytes: int                  # of the download


KNOWN = {"cifar10": Known("CIFAR10", "cifar-10-batches-py/test_batch", 170), "mnist": Known("MNIST", "MNIST/raw/t10k-labels-idx1-ubyte", 12)}


def is_here(name: str) -> bool:
    """Whether a data set has been downloaded before."""
    return (_folder() / KNOWN[name].last).is_file()


def fetch(name: str, part: str, *, size: tuple[int, int], channels: int, progress: Progress | None = None) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Classes, pictures uint8 (N, C, *size) and labels of one part, downloaded where that has not been done before. Raises DataError."""
    from torchvision import datasets  # slow to import, and only needed here

    known, folder = KNOWN[name], _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _time_out(TIME_OUT), _told(progress, folder, known.megabytes):
            data = getattr(datasets, known.maker)(str(folder), train=part == "train", download=True)
    except (OSError, RuntimeError, EOFError) as error:                      # no network, cut off, wrong checksum, disk full
        raise DataError(f"{name} could not be downloaded ({type(error).__name__}): check the network and try again, or put "
                        f"{name}.zip (train/ and test/ with class folders) into a folder and set VITDEMO_DATA to it") from error
    images = torch.as_tensor(data.data)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2)            # grey (N, rows, cols) or (N, rows, cols, 3)
    classes = tuple(c.split(" - ")[0] for c in data.classes)                # MNIST's are "0 - zero"
    return classes, _fit(images, size, channels), torch.as_tensor(data.targets).long()


def _folder() -> Path:
    return settings.read().cache_folder / "downloads"


def _fit(images: Tensor, size: tuple[int, int], channels: int) -> Tensor:
    """Whole tensors (N, C, rows, cols) at another size and number of channels."""
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


@contextmanager
def _told(progress: Progress | None, folder: Path, megabytes: int) -> Iterator[None]:
    """Tell how much of a download has arrived, twice a second: torchvision itself only draws a bar in the terminal."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            here = sum(file.stat().st_size for file in folder.rglob("*gz*") if file.is_file())
            try:
                progress("megabytes downloaded", min(round(here / 1e6), megabytes), megabytes)
            except Exception:                                               # whoever listens wants the end: seen after the download
                return

    watcher = threading.Thread(target=watch, name="download-progress", daemon=True)
    if progress:
        watcher.start()
    try:
        yield
    finally:
        ended.set()
        if progress:
            watcher.join()

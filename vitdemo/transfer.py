"""One file from the network: told how far it is, given up when too little arrives, ended at once when the caller wants that."""

import errno
import hashlib
import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

LEAST_BYTES, LEAST_SECONDS = 65_536, 30         # less than this in that time is no connection
POLL = 0.2                                      # seconds between two calls of `told`


class TransferError(ValueError):
    """Why a file did not arrive, in a few words."""


class _Job:
    """What the thread that receives and the one that watches both see."""

    def __init__(self) -> None:
        self.count = 0                          # bytes so far
        self.ended = threading.Event()          # nobody wants the rest
        self.error: BaseException | None = None


def receive(url: str, target: Path, *, md5: str, most: int, told: Callable[[int], None]) -> None:
    """Write what `url` gives to `target` and check its sum. `told` is called with the bytes so far, five times a second and in the
    caller's thread: what it raises ends the transfer. Raises TransferError, or OSError when the file cannot be written. What was written
    of a transfer that failed is left to the caller."""
    job = _Job()
    marked, since = 0, time.monotonic()

    def watch() -> None:
        nonlocal marked, since
        told(job.count)
        now = time.monotonic()
        if job.count - marked >= LEAST_BYTES:
            marked, since = job.count, now
        elif now - since > LEAST_SECONDS:
            raise TransferError(f"less than {LEAST_BYTES // 1024} kB arrived in {LEAST_SECONDS} seconds")

    attended(lambda: _receive(url, target, job, md5=md5, most=most), watch, job)


def attended(work: Callable[[], None], watch: Callable[[], None], job: _Job | None = None) -> None:
    """Do `work` in a thread of its own while `watch` is called in this one; whichever raises first ends the other's waiting. A thread
    that hangs in a system call is left behind, and dies with the process."""
    job = job or _Job()

    def run() -> None:
        try:
            work()
        except BaseException as error:          # handed to the caller
            job.error = error

    worker = threading.Thread(target=run, name="download", daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(POLL)
            watch()
    finally:
        job.ended.set()
    if job.error:
        raise job.error


def _receive(url: str, target: Path, job: _Job, *, md5: str, most: int) -> None:
    digest, expected = hashlib.md5(usedforsecurity=False), None
    request = urllib.request.Request(url, headers={"User-Agent": "vitdemo"})
    try:
        with urllib.request.urlopen(request, timeout=LEAST_SECONDS) as response:
            expected = response.headers.get("Content-Length")
            with target.open("wb") as file:
                while not job.ended.is_set() and (chunk := response.read1(2**16)):
                    job.count += len(chunk)
                    if job.count > most:
                        raise TransferError(f"more than the expected {most / 1e6:.0f} MB arrived")
                    digest.update(chunk)
                    file.write(chunk)
    except urllib.error.HTTPError as error:
        raise TransferError(f"the other side answered {error.code}") from None
    except urllib.error.URLError as error:
        raise TransferError(f"no connection, {type(error.reason).__name__}") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:      # the disk's failure, not the network's
            raise
        raise TransferError(f"the connection broke, {type(error).__name__}") from None
    if digest.hexdigest() != md5:
        short = expected and expected.isdigit() and job.count < int(expected)
        raise TransferError(f"it was cut off after {job.count / 1e6:.1f} of {int(expected) / 1e6:.1f} MB" if short else
                            "something else arrived, perhaps a page that asks to log in")

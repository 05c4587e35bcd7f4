"""One file from the network: told how far it is, given up when too little arrives, ended at once when the caller wants that, gone on with
the next time where it stopped, and fetched by one while others wait."""

import errno
import hashlib
import http.client
import os
import shutil
import ssl
import string
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import certifi
from filelock import FileLock, Timeout

LEAST_BYTES, LEAST_SECONDS = 65_536, 30         # less than this in that time is no connection
POLL = 0.2                                      # seconds between two calls of `told`
CHUNK = 65_536                                  # bytes that are taken at a time

Result = TypeVar("Result")


class TransferError(ValueError):
    """Why a file did not arrive, in a few words."""


class CutOff(TransferError):
    """It ended too early: what arrived is the beginning of the file, and the rest may be asked for at once."""


class _Wrong(TransferError):
    """It is another file."""


class Check(NamedTuple):
    """What a file's sum must begin with."""

    kind: str                                   # "sha256", "md5": as hashlib calls it
    digits: str                                 # hexadecimal


class _Job:
    """What the thread that works and the one that watches both see."""

    def __init__(self) -> None:
        self.count = 0                          # bytes so far
        self.total = 0                          # bytes in all; 0 while that is unknown
        self.arrived = False                    # nothing more is expected from the network
        self.ended = False                      # nobody wants the rest
        self.writing = threading.Lock()         # held while the file changes: nothing is written once `ended` is set
        self.result: Any = None
        self.error: BaseException | None = None


def receive(url: str, target: Path, *, told: Callable[[int, int], None], check: Check | None = None, size: int | None = None,
            most: int | None = None, authorization: str | None = None) -> None:
    """Write what `url` gives to `target` and check its sum, and its `size` in bytes where that is known.

    What lies in `target` already is taken for the beginning of the same file, and only the rest is asked for: give it a name that no other
    content can have. A server that cannot send a part is taken at the beginning again. `told` is called with the bytes so far and in all (0
    while unknown), five times a second and in the caller's thread: what it raises ends the transfer, and no byte is written after that.
    `authorization` is seen by the host of `url` alone, wherever that sends us. Raises TransferError, after which what arrived still lies in
    `target` unless its sum was wrong, and OSError when the file cannot be written or the disk has not enough room for it."""
    job = _Job()
    job.total = size or 0
    marked, since = 0, time.monotonic()

    def watch() -> None:
        nonlocal marked, since
        told(job.count, job.total)
        now = time.monotonic()
        if job.arrived or abs(job.count - marked) >= LEAST_BYTES:           # it shrinks where the beginning is fetched anew
            marked, since = job.count, now
        elif now - since > LEAST_SECONDS:
            raise _silence()

    kind = check.kind if check else "sha256"
    try:
        digits = attended(lambda: _receive(url, target, job, kind=kind, size=size, most=most, authorization=authorization), watch, job)
        if job.count < job.total:
            raise CutOff(f"it was cut off after {job.count / 1e6:.1f} of {job.total / 1e6:.1f} MB")
        if check and not digits.startswith(check.digits):
            raise _Wrong("something else arrived, perhaps a page that asks to log in")
    except _Wrong:
        target.unlink()
        raise
    told(job.count, job.total)


def attended(work: Callable[[], Result], watch: Callable[[], None], job: _Job | None = None) -> Result:
    """What `work` returns, done in a thread of its own while `watch` is called in this one; whichever raises first ends the other's
    waiting. A thread that hangs in a system call is left behind, and dies with the process."""
    job = job or _Job()

    def run() -> None:
        try:
            job.result = work()
        except BaseException as error:          # handed to the caller
            job.error = error

    worker = threading.Thread(target=run, name="download", daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(POLL)
            if worker.is_alive():
                watch()
    finally:
        with job.writing:
            job.ended = True
    if job.error:
        raise job.error
    return job.result


@contextmanager
def alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Wait until nobody else, in this process or another one, holds the lock; it is let go of when its holder dies. `waiting` is called
    five times a second meanwhile: what it raises ends the waiting."""
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=POLL)
            break
        except Timeout:
            waiting()
    try:
        yield
    finally:
        lock.release()


def _receive(url: str, target: Path, job: _Job, *, kind: str, size: int | None, most: int | None, authorization: str | None) -> str:
    """The digits of the file's sum after it was received."""
    with target.open("ab+") as file:
        digest = _sum_of(file, job, kind)
        if size is None or job.count != size:
            with _network():
                response = _asked(url, job.count, authorization)
            with response:
                begins = job.count if response.status == http.client.PARTIAL_CONTENT else 0
                length = response.headers.get("Content-Length", "")
                announced = begins + int(length) if length.isdigit() else 0                     # the whole file
                if size and announced not in (0, size):
                    raise TransferError(f"{announced:,} bytes are offered instead of {size:,}, perhaps a page that asks to log in")
                if begins < job.count:
                    digest = _from_the_start(file, job, kind)
                job.total = size or announced
                _check_room(target.parent, job.total - job.count)
                _take(response, file, job, digest, most=most or job.total)
        job.arrived = True
        if not job.ended:
            os.fsync(file.fileno())
    return digest.hexdigest()


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e6:.0f} MB more are needed, {free / 1e6:.0f} MB are free")


def _take(response: http.client.HTTPResponse, file: BinaryIO, job: _Job, digest: Any, *, most: int) -> None:
    """Everything that arrives, into the file and its sum."""
    while True:
        with _network():
            chunk = response.read1(CHUNK)
        with job.writing:
            if not chunk or job.ended:
                return
            if most and job.count + len(chunk) > most:
                raise _Wrong(f"more than the expected {most / 1e6:.0f} MB arrived")
            file.write(chunk)
            file.flush()                        # or it would be written after the end
            job.count += len(chunk)
        digest.update(chunk)


def _sum_of(file: BinaryIO, job: _Job, kind: str) -> Any:
    """The sum of what lies there already; `job.count` follows, so that this is no silence."""
    digest = hashlib.new(kind, usedforsecurity=False)
    file.seek(0)
    while not job.ended and (chunk := file.read(CHUNK)):
        digest.update(chunk)
        job.count += len(chunk)
    return digest


def _from_the_start(file: BinaryIO, job: _Job, kind: str) -> Any:
    with job.writing:
        if not job.ended:
            file.truncate(0)
            job.count = 0
    return hashlib.new(kind, usedforsecurity=False)


def _asked(url: str, have: int, authorization: str | None) -> http.client.HTTPResponse:
    """The answer to a request for a file, or for what follows its first bytes: then with status 206, else it begins at the beginning."""
    if not url.startswith(("http://", "https://")):                         # urllib would open files too
        raise ValueError("none of the web")
    url = urllib.parse.quote(url, safe=string.punctuation)                  # as urllib does it with addresses it is redirected to
    request = urllib.request.Request(url, headers={"User-Agent": "vitdemo"} | ({"Range": f"bytes={have}-"} if have else {}))
    if authorization:
        request.add_unredirected_header("Authorization", authorization)     # addresses that are redirected to are signed themselves
    try:
        response = _opener().open(request, timeout=LEAST_SECONDS)
    except urllib.error.HTTPError as error:
        if not have or error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        return _asked(url, 0, authorization)
    if response.status == http.client.PARTIAL_CONTENT and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
        response.close()                        # another part than the one asked for
        return _asked(url, 0, authorization)
    return response


@cache
def _opener() -> urllib.request.OpenerDirector:
    """urllib with certifi's certificates besides the system's: Python on macOS has none of its own. Reading them takes 0.05 s."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))


def _silence() -> CutOff:
    return CutOff(f"less than {LEAST_BYTES // 1024} kB arrived in {LEAST_SECONDS} seconds")


@contextmanager
def _network() -> Iterator[None]:
    """What the network makes Python raise, in words."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise TransferError(f"the other side answered {error.code}") from None
    except urllib.error.URLError as error:
        raise TransferError(f"no connection, {type(error.reason).__name__}") from None
    except TimeoutError:
        raise _silence() from None
    except ValueError:
        raise TransferError("the address it should come from is none of the web") from None
    except (OSError, http.client.HTTPException) as error:
        raise CutOff(f"the connection broke, {type(error).__name__}") from None

"""What is decided about a request before the page reads it: nothing is fetched from elsewhere, and what is sent finds a bounded place.

Gradio limits the size of one file, not of a whole request, and would stream any public address on behalf of anybody; and what is uploaded
and never looked at stays for an hour. So the upload folder has a size: what lies there longest gives way.
"""

import os
import re
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from vitdemo import words


STATE = re.compile(rb"(^|&)(?i:deep_link)=")     # Gradio keeps what a visitor looks at as a file, and gives it to whoever has its name
DEEP_LINK = re.compile(r"/gradio_api/deep_link/?$")
ELSEWHERE = re.compile(r"/gradio_api/file[=/]\s*https?:", re.IGNORECASE)
UPLOAD = re.compile(r"/gradio_api/upload/?$")
MESSAGE = 16 * 10**6                            # bytes of a request that is no upload: the lab takes pictures of 12 million letters
KEEP = 3600                                     # seconds after which no upload is left
YOUNG = 60                                      # seconds for which nothing gives way: it may be on its way


class Full(ValueError):
    """There is no room for what is sent; the message is one sentence."""


class Refusal(NamedTuple):
    """Why a request is not read."""

    status: int
    sentence: str


class Uploads:
    """Keeps a folder within `limit` bytes, what is being sent included. Safe in threads."""

    def __init__(self, folder: Path, limit: int, young: float = YOUNG):
        self._folder, self._limit, self._young = folder, limit, young
        self._lock = threading.Lock()
        self._coming: dict[object, tuple[float, int]] = {}                  # since when, and bytes

    @contextmanager
    def room(self, size: int, kept: Collection[str]) -> Iterator[None]:
        """Room for `size` bytes while they are sent. What lies there longest gives way, but what is `kept`. Raises Full."""
        mine, now = object(), time.monotonic()
        with self._lock:
            # who is slow holds no more room than what came: else a few who send nothing would keep all others out
            coming = sum(size for since, size in self._coming.values() if now - since < self._young)
            if not self._make(self._limit - coming - size, kept):
                raise Full(words.UPLOADS_FULL)
            self._coming[mine] = now, size
        try:
            yield
        finally:
            with self._lock:
                del self._coming[mine]

    def tidy(self, kept: Collection[str]) -> None:
        """Delete what is older than KEEP, but what is `kept`, and keep within the limit."""
        with self._lock:
            self._make(self._limit, kept)

    def _make(self, limit: int, kept: Collection[str]) -> bool:
        """Delete what is older than KEEP, and then the oldest until at most `limit` bytes are left; whether that could be done."""
        files, now = list(_files(self._folder)), time.time()
        total = sum(size for _, size, _ in files)
        for written, size, path in sorted(files):
            old = now - written > KEEP
            if not old and (total <= limit or now - written < self._young):
                break
            if path not in kept and _delete(path):
                total -= size
        return total <= limit


class Gate:
    """An ASGI middleware that answers what need not, or must not, be read any further."""

    def __init__(self, app: Any, uploads: Uploads):
        self._app, self._uploads = app, uploads

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        refusal = refused(scope["path"], scope["method"], headers := Headers(scope=scope), scope.get("query_string", b""))
        if refusal:
            return await PlainTextResponse(refusal.sentence, status_code=refusal.status)(scope, receive, send)
        if scope["method"] != "POST" or not UPLOAD.search(scope["path"]):
            return await self._app(scope, receive, send)
        room = self._uploads.room(int(headers.get("content-length", 0)), kept(scope["app"].get_blocks()))
        try:
            await to_thread.run_sync(room.__enter__)
        except Full as error:
            return await PlainTextResponse(str(error), status_code=507)(scope, receive, send)
        try:
            await self._app(scope, receive, send)
        finally:
            room.__exit__(None, None, None)


def refused(path: str, method: str, headers: Headers, query: bytes = b"") -> Refusal | None:
    """Why a request is answered without being read; None where it is read."""
    if DEEP_LINK.search(path) or STATE.search(query):
        return Refusal(404, words.NO_STATE)
    if ELSEWHERE.search(path):
        return Refusal(404, words.ELSEWHERE)
    if method not in ("POST", "PUT", "PATCH", "DELETE"):
        return None
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        return None if not length and "transfer-encoding" not in headers else Refusal(411, words.NO_LENGTH)       # without both there is no body
    return Refusal(413, words.TOO_LONG) if int(length) > MESSAGE and not UPLOAD.search(path) else None


def kept(blocks: Any) -> frozenset[str]:
    """The files of the page itself, which lie among the uploads."""
    return frozenset(str(path) for block in list(blocks.blocks.values()) for path in getattr(block, "keep_in_cache", ()))


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """(when it was written, bytes, path) of every file below a folder; empty folders are deleted."""
    for place, folders, names in os.walk(folder, topdown=False):
        if not names and not folders and place != str(folder):
            _delete_folder(place)
        for name in names:
            try:
                state = os.lstat(path := os.path.join(place, name))
            except OSError:                                                 # deleted meanwhile
                continue
            yield state.st_mtime, state.st_size, path


def _delete(path: str) -> bool:
    try:
        os.remove(path)
    except FileNotFoundError:
        return True
    except OSError:                                                         # Windows: somebody reads it
        return False
    return True


def _delete_folder(path: str) -> None:
    """Delete a folder that has been empty for a while: Gradio makes one for each upload, and moves the file there after it has answered."""
    try:
        if time.time() - os.stat(path).st_mtime > YOUNG:
            os.rmdir(path)
    except OSError:                                                         # something came into it
        pass

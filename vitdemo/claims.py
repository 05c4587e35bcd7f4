"""Which server looks after which run, when several share a folder of runs or one of them died.

A server holds the lock on a file of its own for as long as it lives; the operating system lets go of it when the process ends, however
that happens. A run's file `claim` names the server that started it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from vitdemo import jsonfile
from vitdemo.runfolder import RunFolder

SERVER = re.compile(r"\.server-[0-9a-f]{16}")
ALONE_WITHIN = 5.0                              # seconds to wait for another server that is starting or saving runs


class Claims:
    """The claims of one server on runs of `home`. stale: seconds after which an unreadable claim counts as one of a dead server."""

    def __init__(self, home: Path, stale: float) -> None:
        self.home, self.stale = home, stale
        self.name = f".server-{secrets.token_hex(8)}"
        self._presence = FileLock(home / self.name, thread_local=False)
        self._door = FileLock(home / ".lock", thread_local=False)

    @contextlib.contextmanager
    def alone(self, timeout: float = ALONE_WITHIN) -> Iterator[None]:
        """No other server starts or saves a run within this block. Raises OSError, a Timeout among them."""
        try:
            self._door.acquire(timeout=timeout)
        except NotImplementedError:             # a file system without locks: whoever creates a claim first still has it alone
            pass
        try:
            yield
        finally:
            self._door.release()

    def take(self, folder: RunFolder) -> bool:
        """Claim a run; False if somebody else has. Raises OSError."""
        with contextlib.suppress(NotImplementedError):
            if not self._presence.is_locked:
                self._presence.acquire(timeout=0)
        try:
            with (folder.path / "claim").open("x", encoding="utf-8") as file:
                file.write(jsonfile.to_text({"server": self.name}))
        except FileExistsError:
            return False
        return True

    def note(self, folder: RunFolder, pid: int) -> None:
        """Write down the process of a run that was taken. Raises OSError."""
        jsonfile.write(folder.path / "claim", {"server": self.name, "pid": pid})

    def release(self, folder: RunFolder) -> None:
        """Nobody looks after the run any more."""
        with contextlib.suppress(OSError):
            (folder.path / "claim").unlink(missing_ok=True)

    def claimed(self, folder: RunFolder) -> bool:
        return (folder.path / "claim").exists()

    def pid(self, folder: RunFolder) -> int | None:
        """The process that was started for a run; None where the server died before it could write that down."""
        values = jsonfile.read(folder.path / "claim")
        pid = values.get("pid") if isinstance(values, dict) else None
        return pid if isinstance(pid, int) and pid > 1 else None

    def kept(self, folder: RunFolder) -> bool:
        """Whether another server that lives has claimed the run."""
        values = jsonfile.read(folder.path / "claim")
        name = values.get("server") if isinstance(values, dict) else None
        if not (isinstance(name, str) and SERVER.fullmatch(name)):          # it may be in the making
            with contextlib.suppress(OSError):
                return time.time() - (folder.path / "claim").stat().st_mtime < self.stale
            return False
        try:
            return name != self.name and self._lives(name)
        except NotImplementedError:
            return time.time() - folder.heartbeat() < self.stale

    def tidy(self) -> None:
        """Remove the files of servers that died."""
        with contextlib.suppress(OSError, NotImplementedError):
            for path in self.home.glob(".server-*"):
                if path.name != self.name and time.time() - path.stat().st_mtime > 60:          # it may be about to be locked
                    self._lives(path.name)

    def close(self) -> None:
        """This server starts no runs any more."""
        self._presence.release()
        with contextlib.suppress(OSError):
            (self.home / self.name).unlink(missing_ok=True)

    def _lives(self, name: str) -> bool:
        if not (self.home / name).exists():
            return False
        lock = FileLock(self.home / name, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except OSError:                         # a Timeout is one: somebody holds it
            return True
        lock.release()
        with contextlib.suppress(OSError):
            (self.home / name).unlink(missing_ok=True)
        return False

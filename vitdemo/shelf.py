"""Every run of a folder of runs with its status. Asked twice a second, so a status is read again only when its file has changed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vitdemo.atomic import patiently
from vitdemo.runfolder import RunFolder, Status, new_id

ID = re.compile(r"[0-9a-f]{32}")
HALF = re.compile(r"\.[0-9a-f]{32}\.(new|gone)")  # a run in the making, or one that is being deleted
LOOK_AGAIN = 10.0                               # seconds between two looks at runs that were over: another program may go on with one


@contextlib.contextmanager
def making(home: Path, count: int = 1) -> Iterator[list[RunFolder]]:
    """`count` folders to fill, which nobody else sees. When the block ends well they become runs: all of them, or none. Raises OSError."""
    ids, shown = [new_id() for _ in range(count)], []
    drafts = [RunFolder(home / f".{name}.new") for name in ids]
    try:
        yield drafts
        for draft, name in zip(drafts, ids):
            patiently(lambda: os.rename(draft.path, home / name))
            shown.append(RunFolder(home / name))
    except BaseException:
        for folder in shown:
            remove(folder)
        raise
    finally:
        for draft in drafts:
            shutil.rmtree(draft.path, ignore_errors=True)


def final(draft: RunFolder) -> str:
    """The id under which a folder of `making` will appear."""
    return draft.id[1:33]


def remove(folder: RunFolder) -> None:
    """Delete a run, whole or (with an OSError) not at all."""
    gone = folder.path.with_name(f".{folder.id}.gone")
    patiently(lambda: os.rename(folder.path, gone))
    shutil.rmtree(gone, ignore_errors=True)


def size(home: Path) -> int:
    """Bytes of all runs, those in the making included."""
    total = 0
    for name in os.listdir(home) if home.is_dir() else ():
        if ID.fullmatch(name) or HALF.fullmatch(name):
            for folder, _, files in os.walk(home / name):
                for file in files:
                    with contextlib.suppress(OSError):                      # replaced in this instant
                        total += os.stat(os.path.join(folder, file)).st_size
    return total


def tidy(home: Path) -> None:
    """Delete what a server left behind that died while it made or deleted a run."""
    with contextlib.suppress(OSError):
        for path in home.iterdir():
            if HALF.fullmatch(path.name) and time.time() - path.stat().st_mtime > 3600:
                shutil.rmtree(path, ignore_errors=True)


class Kept(NamedTuple):
    """What is remembered of a run."""

    folder: RunFolder
    status: Status
    mark: tuple[int, ...]                       # changes whenever the status is written
    ended: float                                # last sign of life of a run that is over, seconds since 1970


class Shelf:
    """The runs of `home`. Not for several threads at once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._kept: dict[str, Kept] = {}
        self._looked = float("-inf")

    def live(self) -> list[tuple[RunFolder, Status]]:
        """The runs that are not over, in the order in which they took their place in the queue."""
        self._refresh()
        found = [(run.folder, run.status) for run in self._kept.values() if not run.status.over]
        return sorted(found, key=lambda run: (run[1].queued or run[1].created, run[0].id))

    def over(self) -> list[Kept]:
        """The runs that were over at the last look."""
        return [run for run in self._kept.values() if run.status.over]

    def forget(self, run_id: str) -> None:
        """Read this run's status again at the next look."""
        self._kept.pop(run_id, None)

    def _refresh(self) -> None:
        try:
            names = set(os.listdir(self.home))
        except OSError:
            names = set()
        for gone in self._kept.keys() - names:
            del self._kept[gone]
        again = time.monotonic() - self._looked > LOOK_AGAIN
        self._looked = time.monotonic() if again else self._looked
        for name in names:
            kept = self._kept.get(name)
            if kept is None and ID.fullmatch(name) or kept and (again or not kept.status.over):
                self._look(name, kept)

    def _look(self, name: str, kept: Kept | None) -> None:
        folder = kept.folder if kept else RunFolder(self.home / name)
        try:
            found = os.stat(folder.path / "status.json")
            mark = found.st_mtime_ns, found.st_size, found.st_ino           # a file that was replaced has another number
        except OSError:
            mark = ()
        if kept is None or mark != kept.mark:
            status = folder.status()
            self._kept[name] = Kept(folder, status, mark, folder.heartbeat() if status.over else 0.0)

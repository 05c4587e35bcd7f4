"""Start, follow, stop, resume and delete training runs as child processes. Each run is a folder (see `runfolder`).

The page's server owns one Scheduler; it trains nothing itself and never imports torch. What it knows is on disk, so after a
restart it finds the queued runs again, and the interrupted ones.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import Timeout

from vitdemo import shelf
from vitdemo.atomic import replacing
from vitdemo.child import last_lines, train_command, watch_parent
from vitdemo.dispatch import NO_ROOM, Dispatcher
from vitdemo.runfolder import PERSON, STATES, RunError, RunFolder, Status, new_id

__all__ = ["STATES", "RunError", "RunFolder", "Scheduler", "Status", "StillGoing", "last_lines", "new_id", "train_command", "watch_parent"]

FULL = "The place for training runs on this server is full ({:,.0f} MB for all): delete one of yours, or try again later."
FILE = re.compile(r"film/[a-z]+(-[0-9]+)?(-[a-z]+)?\.(png|jpg|jpeg|webp)")
STILL_ENDING = "This run is still ending: please try again in a moment."


class StillGoing(RunError):
    """A browser asks for a run while `runs` of its own are not over."""

    def __init__(self, runs: Iterable[str]):
        super().__init__("One of your runs is still going on: wait for its end, or stop it.")
        self.runs = tuple(runs)


class Scheduler(Dispatcher):
    """What a visitor may ask for. At most `limit` runs train at a time and `queue` more wait, and none is taken in once all of them hold
    `max_bytes` (0: as many as the disk); the rest as in Dispatcher."""

    def __init__(self, home: Path, *, queue: int = 8, max_bytes: int = 0, **settings: Any) -> None:
        super().__init__(home, **settings)
        self.queue, self.max_bytes = queue, max_bytes
        self._newest = 0.0                        # when the latest run took its place
        self._known: dict[str, set[str]] = {}     # the secrets of the browser that asked for a run; two tabs that ask at once have the same

    def submit(self, config: dict[str, Any], files: dict[str, bytes] | None = None, *, mine: Iterable[str] = (),
               only_one: bool = False) -> str:
        """Queue a run and return its id. `files` such as "film/subject-0.png" are in its folder when it starts.

        Raises RunError if too many are waiting, if the run cannot be saved, or with `only_one` while one of the runs `mine` is not over,
        or one that was asked for by somebody who knew one of `mine` that is no run (a secret of the browser's).
        """
        return self.submit_all([config], files, mine=mine, only_one=only_one)[0]

    def submit_all(self, configs: list[dict[str, Any]], files: dict[str, bytes] | None = None, *, mine: Iterable[str] = (),
                   only_one: bool = False) -> list[str]:
        """Queue several runs, all or none of them, to be started in this order; returns their ids. Raises RunError as `submit`."""
        for name in files or {}:
            if not FILE.fullmatch(name):
                raise RunError(f"A run cannot take a file called {name!r:.60}.")
        with self._alone():
            own = self._admit(len(configs), mine, only_one)
            self._check_room()
            with shelf.making(self.home, len(configs)) as drafts:
                for draft, config in zip(drafts, configs):
                    draft.create(config)
                    for name, content in (files or {}).items():
                        (draft.path / name).parent.mkdir(exist_ok=True)
                        (draft.path / name).write_bytes(content)
                    now = self._now()
                    draft.write_status(state="queued", created=now, queued=now)
            self._known |= {shelf.final(draft): self._vouching(own) for draft in drafts}
        return [shelf.final(draft) for draft in drafts]

    def resume(self, run_id: str, *, mine: Iterable[str] = (), only_one: bool = False) -> None:
        """Queue a run that was stopped, interrupted or failed, to go on where it was saved. Raises RunError as `submit`, or if it
        cannot go on."""
        with self._alone():
            folder = self.read(run_id)
            status = folder.status()
            if not status.over:
                raise RunError("This run is still going on.")
            if not folder.resumable():
                raise RunError("This run has reached its end: there is nothing left to train." if status.state == "finished" else
                               "This run ended before its first look, so there is nothing to go on from: start a new one.")
            if run_id in self._children or self._claims.claimed(folder):
                raise RunError(STILL_ENDING)
            self._known[run_id] = self._vouching(self._admit(1, mine, only_one))
            folder.withdraw_stop()
            folder.request_resume()
            folder.write_status(state="queued", message="Waiting to go on.", queued=self._now(), seconds_left=None, pid=None)
            self._shelf.forget(run_id)

    def adopt(self, path: Path, title: str, about: str = "") -> str:
        """Keep a copy of a checkpoint file as a finished run and return its id. The caller has made sure that it is a checkpoint, and says
        in a line `about` where it comes from. Raises RunError if there is no such file or no room for it."""
        path = Path(path)
        if path.is_symlink() or not path.is_file():
            raise RunError("There is no such file to load.")
        with self._lock:
            now = self._now()
        self._check_room()
        with _disk(), shelf.making(self.home) as [draft]:                   # it trains nothing, so nobody needs to wait for it
            draft.create({"imported": True, "title": _line(title, 60), "about": _line(about, 300)})
            with replacing(draft.best) as copy:
                shutil.copyfile(path, copy)
            draft.write_status(state="finished", message="Loaded from a file.", progress=1.0, created=now)
        return shelf.final(draft)

    def delete(self, run_id: str) -> None:
        """Delete a run with everything in its folder; one that is going on is ended first. Raises RunError if it does not end."""
        folder = self.read(run_id)
        with self._lock:
            child = self._children.get(run_id)
            if child:
                child.end()
                del self._children[run_id]
        if child is None and not self._at_rest(folder):                     # another server's, or started by hand
            folder.request_stop(PERSON)
            deadline = time.monotonic() + 2
            while not self._at_rest(folder):
                if time.monotonic() > deadline:
                    raise RunError(STILL_ENDING)
                time.sleep(0.05)
        with self._alone():
            try:
                shelf.remove(self.read(run_id))
            except OSError:                       # on Windows, while somebody reads a file in it
                raise RunError("This run could not be deleted: please try again in a moment.") from None

    def read(self, run_id: str) -> RunFolder:
        """The folder of a run. Raises RunError for anything that is not the id of a run in this home."""
        if isinstance(run_id, str) and shelf.ID.fullmatch(run_id) and (self.home / run_id).is_dir():
            return RunFolder(self.home / run_id)
        raise RunError("There is no such run.")

    def position(self, run_id: str) -> int:
        """Place in the queue: 1 starts next; 0 has started or is over."""
        if self.read(run_id).status().state != "queued":
            return 0
        with self._lock:
            waiting = [folder.id for folder, status in self._shelf.live() if status.state == "queued"]
        return waiting.index(run_id) + 1 if run_id in waiting else 0

    def busy(self) -> bool:
        """Whether a run is going on or waiting."""
        with self._lock:
            return bool(self._shelf.live())

    def stop(self, run_id: str) -> None:
        """End a run: a queued one at once, a running one after its current step or, failing that, by force (see `tick`)."""
        with self._lock:
            folder = self.read(run_id)
            status = folder.status()
            if status.over:
                return
            child = self._children.get(run_id)
            try:
                folder.request_stop(PERSON)
            except RunError:                      # on a full disk: a process of our own is ended all the same
                if child is None:
                    raise
            if child:
                child.hurry(self.grace)
            elif status.state == "queued":
                self._end(folder)

    def _at_rest(self, folder: RunFolder) -> bool:
        """Whether nobody works on a run."""
        status = folder.status()
        return (status.over or status.state == "queued") and not self._claims.claimed(folder)

    def _admit(self, count: int, mine: Iterable[str], only_one: bool) -> set[str]:
        """Raise RunError unless `count` more runs have a place; returns `mine` as a set."""
        live, own = [folder.id for folder, _ in self._shelf.live()], {name for name in mine if isinstance(name, str)}
        self._known = {name: known for name, known in self._known.items() if name in live}
        if only_one and (going := [name for name in live if name in own or self._known.get(name, set()) & own]):
            raise StillGoing(going)
        free = max(self.limit + self.queue - len(live), 0)
        if count > free:
            going = f"{len(live)} training run{'s' * (len(live) != 1)} going on or waiting"
            if not free:
                raise RunError(f"No place is free, with {going}: please try again when one has ended.")
            raise RunError(f"These {count} runs need {count} places and {free} {'is' if free == 1 else 'are'} free, with {going}: "
                           "please try again later.")
        return own

    def _vouching(self, own: set[str]) -> set[str]:
        """Those of a browser's secrets that stand for all of it: who knows the id of one run may ask about that one and no other."""
        return {name for name in own if not (shelf.ID.fullmatch(name) and (self.home / name).is_dir())}

    def _check_room(self) -> None:
        """Raise RunError where the runs hold as much as they may."""
        if 0 < self.max_bytes < shelf.size(self.home):
            raise RunError(FULL.format(self.max_bytes / 1e6))

    def _now(self) -> float:
        """The time, later than every earlier answer, so that the order of runs is certain."""
        self._newest = max(time.time(), self._newest + 1e-5)
        return self._newest

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else starts, saves or deletes a run within this block."""
        with self._lock, _disk():
            self.home.mkdir(parents=True, exist_ok=True)
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(self._claims.alone())
                except Timeout:
                    raise RunError("The server is busy with other runs: please try again in a moment.") from None
                yield


def _line(text: str, length: int) -> str:
    """Somebody's words as one line of at most `length` characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:length]


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """Turn a disk that does not play along into one sentence."""
    try:
        yield
    except RunError as error:
        if isinstance(error.__cause__, OSError):                            # what a RunFolder makes of it names a file
            raise RunError(NO_ROOM) from error
        raise
    except OSError as error:
        raise RunError(NO_ROOM) from error

"""Start, follow, stop and list training runs as child processes. Each run is a folder (see `runfolder`).

The page's server owns one Scheduler; it trains nothing itself and never imports torch. What it knows is on disk, so after a
restart it finds the queued runs again, and the interrupted ones.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitdemo.runfolder import STATES, RunError, RunFolder, Status, new_id

__all__ = ["STATES", "RunError", "RunFolder", "Scheduler", "Status", "new_id", "train_command", "watch_parent"]

LOG = logging.getLogger(__name__)


def watch_parent(on_end: Callable[[], None]) -> None:
    """Call `on_end` once, from a daemon thread, when the process that started this one is gone.

    The scheduler keeps the other end of our standard input open and never writes to it, so end-of-file means that it died.
    Only for a child of the scheduler, and after the heavy imports: on Windows, loading a library may wait for a pending read.
    """
    def wait() -> None:
        # os.read, because a thread waiting inside sys.stdin.buffer makes Python abort at its own exit.
        with contextlib.suppress(OSError):
            while os.read(source, 4096):
                pass
        on_end()

    source = sys.stdin.fileno()
    threading.Thread(target=wait, name="watch-parent", daemon=True).start()


def train_command(folder: RunFolder) -> list[str]:
    """The command line that trains what the folder's config.json asks for."""
    return [sys.executable, "-m", "vitdemo.train", "--out", str(folder.path), "--from-run"]


def _last_words(folder: RunFolder, code: int) -> str:
    """One sentence about a child that ended without saying why: the error at the end of its output, without its paths."""
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    try:
        with folder.output.open("rb") as file:
            file.seek(max(folder.output.stat().st_size - 8192, 0))
            lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit|Interrupt)\b", line)]
    words = (errors or lines or [""])[-1].strip()
    words = re.sub(r"^[\w.]+(?:Error|Exception|Exit|Interrupt): (?=.)", "", words)
    words = re.sub(r"""(['"])[^'"]*[\\/]([^'"\\/]*)\1""", r"\1\2\1", words)                    # a quoted path keeps its last part
    words = re.sub(r"(?<![\w.\\/])(?:[A-Za-z]:)?[\\/](?:[^\s'\"]*[\\/])?([^\s'\"\\/]*)", r"\1", words)    # and so does a bare one
    return f"The training process ended unexpectedly ({end})" + (f": {words.rstrip('.')[:300]}." if words else "; the weights kept so far can be looked into, or start again.")


@dataclass
class _Child:
    """A process that this scheduler started, and since when it ought to be ending (by the monotonic clock)."""

    process: subprocess.Popen[bytes]
    ending_since: float | None = None

    def hurry(self, grace: float) -> None:
        """Terminate a child that had `grace` seconds to end by itself; kill it after twice as many."""
        self.ending_since = self.ending_since or time.monotonic()
        waited = time.monotonic() - self.ending_since
        if waited > 2 * grace:
            self.process.kill()
        elif waited > grace:
            self.process.terminate()


class Scheduler:
    """Runs at most `limit` trainings at a time and lets `queue` more wait, oldest first.

    grace: seconds a run has for ending by itself. stale: seconds without a sign of life after which a run that this
    scheduler did not start counts as interrupted. keep_seconds: age at which ended runs are deleted; 0 keeps them.
    Several schedulers may share a home: a run is started by the one that creates its file `claim`.
    """

    def __init__(self, home: Path, *, limit: int = 1, queue: int = 8, command: Callable[[RunFolder], list[str]] = train_command,
                 grace: float = 10.0, stale: float = 30.0, keep_seconds: float = 24 * 3600) -> None:
        self.home, self.limit, self.queue, self.command = Path(home).absolute(), limit, queue, command
        self.grace, self.stale, self.keep_seconds = grace, stale, keep_seconds
        self._children: dict[str, _Child] = {}
        self._newest = 0.0                        # creation time of the latest run
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def submit(self, config: dict[str, Any]) -> str:
        """Queue a run and return its id. Raises RunError if too many are waiting or the run cannot be saved."""
        with self._lock:
            count = sum(not status.over for _, status in self._runs())
            if count >= self.limit + self.queue:
                raise RunError(f"No place is free, with {count} training runs going on or waiting: please try again when one has ended.")
            self._newest = max(time.time(), self._newest + 1e-5)      # distinct, so that the order is certain
            folder = RunFolder(self.home / new_id())
            try:
                folder.create(config).write_status(state="queued", created=self._newest)
            except RunError as error:
                shutil.rmtree(folder.path, ignore_errors=True)
                raise RunError("The run could not be saved: the server's disk is full or its folder of runs is not writable.") from error
            return folder.id

    def read(self, run_id: str) -> RunFolder:
        """The folder of a run. Raises RunError for anything that is not the id of a run in this home."""
        if isinstance(run_id, str) and re.fullmatch(r"[0-9a-f]{32}", run_id) and (self.home / run_id).is_dir():
            return RunFolder(self.home / run_id)
        raise RunError("There is no such run.")

    def position(self, run_id: str) -> int:
        """Place in the queue: 1 starts next; 0 has started or is over."""
        if self.read(run_id).status().state != "queued":
            return 0
        waiting = [folder.id for folder, status in self._runs() if status.state == "queued"]
        return waiting.index(run_id) + 1 if run_id in waiting else 0

    def stop(self, run_id: str) -> None:
        """End a run: a queued one at once, a running one after its current step or, failing that, by force (see `tick`)."""
        with self._lock:
            folder = self.read(run_id)
            status = folder.status()
            if status.over:
                return
            folder.request_stop()
            if status.state == "queued":
                self._end(folder)

    def tick(self) -> None:
        """Reap, adopt, start and delete: everything that time brings. Called twice a second after `start`."""
        with self._lock:
            self._reap()
            active, queued = len(self._children), []
            for folder, status in self._runs():
                if folder.id in self._children:
                    continue
                silent = time.time() - folder.heartbeat() if not status.over or self.keep_seconds else 0.0
                if status.state == "queued":
                    queued.append(folder)
                elif not status.over and silent < self.stale:
                    active += 1                   # started by an earlier server, or by another one beside us
                elif not status.over:
                    self._end(folder, "The run was interrupted.")
                elif 0 < self.keep_seconds < silent:
                    shutil.rmtree(folder.path, ignore_errors=True)
            for folder in queued:
                if folder.stop_requested():
                    self._end(folder)
                elif active < self.limit:
                    active += self._start(folder)

    def start(self) -> None:
        """Tick in the background until `close`."""
        with self._lock:
            if self._thread is None:
                self._closing.clear()
                self._thread = threading.Thread(target=self._work, name="runs", daemon=True)
                self._thread.start()

    def close(self, patience: float = 5.0) -> None:
        """Stop the background thread and the running children, by force after `patience` seconds. The queue stays on disk."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            for run_id in self._children:
                with contextlib.suppress(RunError):
                    RunFolder(self.home / run_id).request_stop()
            for force in (subprocess.Popen.terminate, subprocess.Popen.kill):
                deadline = time.monotonic() + patience
                for child in self._children.values():
                    try:
                        child.process.wait(max(deadline - time.monotonic(), 0))
                    except subprocess.TimeoutExpired:
                        force(child.process)
            for child in self._children.values():
                child.process.wait()
            self._reap()

    def _runs(self) -> list[tuple[RunFolder, Status]]:
        """Every run of this home with its status, oldest first."""
        try:
            names = [name for name in os.listdir(self.home) if re.fullmatch(r"[0-9a-f]{32}", name)]
        except OSError:
            return []
        found = [(folder, folder.status()) for folder in (RunFolder(self.home / name) for name in names)]
        return sorted(found, key=lambda run: (run[1].created, run[0].id))

    def _work(self) -> None:
        complaint = ""
        while not self._closing.wait(0.5):
            try:
                self.tick()
            except Exception as error:            # whatever it is, the other runs need the next tick
                if str(error) != complaint:       # said once, not twice a second
                    LOG.exception("looking after the runs failed")
                complaint = str(error)

    def _start(self, folder: RunFolder) -> bool:
        """Start a queued run in a process of its own; False if it was not this scheduler's turn or did not work."""
        try:
            (folder.path / "claim").touch(exist_ok=False)
        except FileExistsError:                   # another scheduler has it, or one died between its claim and its first word
            if time.time() - (folder.path / "claim").stat().st_mtime > self.stale:
                self._end(folder, "The run was interrupted.")
            return False
        package = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        try:
            folder.write_status(state="starting")
            with folder.output.open("wb") as output:
                process = subprocess.Popen(
                    self.command(folder), stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
                    # a group of its own: Ctrl-C in the server's terminal is the server's business
                    start_new_session=True, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0))
        except (OSError, RunError):
            LOG.exception("a training process could not be started")
            self._end(folder, "The training process could not be started.")
            return False
        self._children[folder.id] = _Child(process)
        return True

    def _reap(self) -> None:
        """Settle the runs whose process has ended, and hurry those that ought to have."""
        for run_id, child in list(self._children.items()):
            folder = RunFolder(self.home / run_id)
            code = child.process.poll()
            if code is not None:
                child.process.stdin.close()
                del self._children[run_id]
                if not folder.status().over:
                    self._end(folder, _last_words(folder, code))
            elif child.ending_since or folder.stop_requested() or folder.status().over:
                child.hurry(self.grace)

    def _end(self, folder: RunFolder, reason: str = "") -> None:
        """The last word about a run that did not say it itself: stopped if somebody asked for it, else failed."""
        kept = "Stopped; the best weights so far are kept." if folder.best.exists() else "Stopped."
        last = {"state": "stopped", "message": kept} if folder.stop_requested() else {"state": "failed", "message": reason}
        with contextlib.suppress(RunError):       # on a full disk: the run falls silent, and a later tick tries again
            folder.write_status(**last)

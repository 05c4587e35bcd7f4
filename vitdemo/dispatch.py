"""What time brings to the runs of a folder: processes are started, watched, hurried and reaped, and old runs deleted."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from vitdemo import shelf
from vitdemo.child import KILL_AFTER, Child, end_process, last_words, lives, train_command
from vitdemo.claims import Claims
from vitdemo.runfolder import CLOCK, RunError, RunFolder, Status

LOG = logging.getLogger(__name__)
UPKEEP_EVERY = 600.0                            # seconds between two calls of what else has to be done from time to time
REAP_EVERY, TICK_EVERY = 0.1, 0.5                 # seconds
NO_ROOM = "The run could not be saved: the server's disk is full or its folder of runs is not writable."
STOPPED, STOPPED_WITH_WEIGHTS = "Stopped.", "Stopped; the best weights so far are kept."
OVERTIME = "This run took longer than a run may here, with its looks at the validation pictures; what it has learned so far is kept."
INTERRUPTED, INTERRUPTED_RESUMABLE = "The run was interrupted.", "The run was interrupted; it can go on from where it was saved."


class Dispatcher:
    """Runs at most `limit` trainings at a time, those that waited longest first.

    grace: seconds a run has for ending by itself. stale: seconds without a sign of life after which a run that was started by
    hand counts as interrupted. keep_seconds: age at which ended runs are deleted; 0 keeps them. most_seconds: how long the process of a
    run may live, whatever it does; 0 for as long as it likes. upkeep: what else is to be done now and then.
    Several dispatchers may share a home: a run belongs to the one that holds its claim.
    """

    def __init__(self, home: Path, *, limit: int = 1, command: Callable[[RunFolder], list[str]] = train_command,
                 grace: float = 1.3, stale: float = 30.0, keep_seconds: float = 24 * 3600, most_seconds: float = 0,
                 upkeep: Callable[[], None] = lambda: None) -> None:
        self.home, self.limit, self.command = Path(home).absolute(), limit, command
        self.grace, self.stale, self.keep_seconds, self.most_seconds = grace, stale, keep_seconds, most_seconds
        self.upkeep = upkeep
        self._children: dict[str, Child] = {}
        self._orphans: dict[str, float] = {}      # since when a process whose server died ought to be ending
        self._settled: set[str] = set()           # runs that are over and have no claim any more
        self._shelf, self._claims = shelf.Shelf(self.home), Claims(self.home, stale)
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def tick(self) -> None:
        """Reap, settle, start and delete: everything that time brings. Called twice a second after `start`."""
        with self._lock:
            self._reap()
            busy, waiting = self._look_around()
            if waiting and busy < self.limit:
                with contextlib.suppress(OSError), self._claims.alone(timeout=0):       # else at the next tick
                    self._start_waiting()
            self._look_after_the_ended()

    def start(self) -> None:
        """Tick in the background until `close`."""
        with self._lock:
            if self._thread is None:
                shelf.tidy(self.home)
                self._claims.tidy()
                self._closing.clear()
                self._thread = threading.Thread(target=self._work, name="runs", daemon=True)
                self._thread.start()

    def close(self, patience: float = 3.0) -> None:
        """Stop the background thread and the running children, by force after `patience` seconds: whoever ends a server waits for five, or
        ten. The queue stays on disk."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            for run_id in self._children:
                with contextlib.suppress(RunError):
                    RunFolder(self.home / run_id).request_stop()
            for force, seconds in ((subprocess.Popen.terminate, patience), (subprocess.Popen.kill, KILL_AFTER)):
                deadline = time.monotonic() + seconds
                for child in self._children.values():
                    try:
                        child.process.wait(max(deadline - time.monotonic(), 0))
                    except subprocess.TimeoutExpired:
                        force(child.process)
            for child in self._children.values():
                child.process.wait()
            self._reap(interrupted=True)
            self._claims.close()

    def _work(self) -> None:
        complaint, ticked, kept_up = "", float("-inf"), float("-inf")
        while not self._closing.wait(REAP_EVERY):
            try:
                if time.monotonic() - ticked >= TICK_EVERY:
                    ticked = time.monotonic()
                    self.tick()
                    if ticked - kept_up >= UPKEEP_EVERY:
                        kept_up = ticked
                        self.upkeep()
                else:
                    with self._lock:
                        self._reap()
            except Exception as error:            # whatever it is, the other runs need the next tick
                if str(error) != complaint:       # said once, not twice a second
                    LOG.exception("looking after the runs failed")
                complaint = str(error)

    def _look_around(self) -> tuple[int, list[RunFolder]]:
        """How many runs are going on, and those that wait, in their order."""
        busy, waiting = len(self._children), []
        for folder, status in self._shelf.live():
            if folder.id in self._children:
                continue
            claimed = self._claims.claimed(folder)
            if status.state == "queued" and not claimed:
                if folder.stop_requested():
                    self._end(folder)
                else:
                    waiting.append(folder)
            elif not claimed:                     # started by hand, or half made by a server that died
                if time.time() - folder.heartbeat() < self.stale:
                    busy += 1
                else:
                    self._end(folder, interrupted=True)
            else:
                busy += self._claims.kept(folder) or self._is_orphan(folder, status)
        return busy, waiting

    def _look_after_the_ended(self) -> None:
        over = self._shelf.over()
        self._settled &= {run.folder.id for run in over}
        for run in over:
            name = run.folder.id
            if name in self._children:
                continue
            if name not in self._settled:
                claimed = self._claims.claimed(run.folder)
                if not claimed or not self._claims.kept(run.folder) and not self._is_orphan(run.folder, run.status):
                    self._settled.add(name)
            if 0 < self.keep_seconds < time.time() - run.ended:
                with contextlib.suppress(OSError):
                    shelf.remove(run.folder)

    def _is_orphan(self, folder: RunFolder, status: Status) -> bool:
        """Whether a process still works on a run whose server died; it is ended then. Else the run gets its last word."""
        pid = self._claims.pid(folder) or status.pid
        if pid and lives(pid, folder):
            since = self._orphans.setdefault(folder.id, time.monotonic())
            with contextlib.suppress(RunError):
                folder.request_stop()
            if time.monotonic() - since > self.grace:
                end_process(pid)
            return True
        self._orphans.pop(folder.id, None)
        self._last_word_after_interruption(folder)
        self._claims.release(folder)
        return False

    def _start_waiting(self) -> None:
        busy, waiting = self._look_around()       # again, now that no other server starts runs
        for folder in waiting:
            if busy < self.limit:
                busy += self._start(folder)

    def _start(self, folder: RunFolder) -> bool:
        """Start a queued run in a process of its own; False if it was not this scheduler's turn or did not work."""
        try:
            if not self._claims.take(folder):
                return False
            folder.write_status(state="starting", message="")
            child = Child.start(folder, self.command(folder))
        except (OSError, RunError):
            LOG.exception("a training process could not be started")
            self._end(folder, "The training process could not be started.")
            self._claims.release(folder)
            return False
        self._children[folder.id] = child
        with contextlib.suppress(OSError):        # then the run's status names the process
            self._claims.note(folder, child.process.pid)
        return True

    def _reap(self, *, interrupted: bool = False) -> None:
        """Settle the runs whose process has ended, and hurry those that ought to have. `interrupted`: because this server ends."""
        for run_id, child in list(self._children.items()):
            folder = RunFolder(self.home / run_id)
            code = child.process.poll()
            if code is not None:
                child.process.stdin.close()
                del self._children[run_id]
                if interrupted:
                    self._last_word_after_interruption(folder)
                elif not folder.status().over or folder.stopped_by(CLOCK) and folder.status().state == "stopped":
                    self._end(folder, last_words(folder, code))
                self._claims.release(folder)
                if not folder.status().over:      # on a full disk: the claim that is gone has left room for a last word
                    self._end(folder, NO_ROOM)
            elif child.ending_since or folder.stop_requested() or folder.status().over:
                child.hurry(self.grace)
            elif 0 < self.most_seconds < time.monotonic() - child.started:
                with contextlib.suppress(RunError):                         # on a full disk it is ended without a word
                    folder.request_stop(CLOCK)
                child.hurry(self.grace)

    def _end(self, folder: RunFolder, reason: str = "", *, interrupted: bool = False) -> None:
        """The last word about a run that did not say it itself: stopped if somebody asked for it, else failed for a reason."""
        message = OVERTIME if folder.stopped_by(CLOCK) else STOPPED_WITH_WEIGHTS if folder.best.exists() else STOPPED
        if interrupted and not folder.stopped_by_person():
            message = INTERRUPTED_RESUMABLE if folder.last.exists() else INTERRUPTED
        stopped = interrupted or folder.stop_requested()
        with contextlib.suppress(RunError):       # on a full disk: the run falls silent, and a later tick tries again
            folder.write_status(state="stopped" if stopped else "failed", message=message if stopped else reason, seconds_left=None)

    def _last_word_after_interruption(self, folder: RunFolder) -> None:
        """A run that stopped itself because its server died was interrupted; one that was done, or stopped by a person, was not."""
        status = folder.status()
        if not status.over or status.state == "stopped" and not folder.stopped_by_person():
            self._end(folder, interrupted=True)
            self._shelf.forget(folder.id)

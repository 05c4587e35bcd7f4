"""The process of a training run: how it is started, how it notices that its server died, how it is ended, and what it said last."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vitdemo.runfolder import RunFolder

KILL_AFTER = 0.3                                # seconds between asking a process to end and ending it


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
    """The command line that trains what the folder's config.json asks for, or goes on with it."""
    return [sys.executable, "-m", "vitdemo.train", "--out", str(folder.path), "--from-run"] + ["--resume"] * folder.resuming()


def environment() -> dict[str, str]:
    """A child's environment, in which this package is found wherever the program was started from."""
    package = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))}


@dataclass
class Child:
    """A process that was started here, when, and since when it ought to be ending (by the monotonic clock)."""

    process: subprocess.Popen[bytes]
    ending_since: float | None = None
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, folder: RunFolder, command: list[str]) -> Child:
        """Start `command` with its output in the folder. Raises OSError."""
        with folder.output.open("wb") as output:
            return cls(subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                env={**environment(), "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
                # a group of its own: Ctrl-C in the server's terminal is the server's business
                start_new_session=True, creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)))

    def hurry(self, grace: float) -> None:
        """Terminate a process that had `grace` seconds to end by itself, and soon after that kill it."""
        self.ending_since = self.ending_since or time.monotonic()
        waited = time.monotonic() - self.ending_since
        if waited > grace + KILL_AFTER:
            self.process.kill()
        elif waited > grace:
            self.process.terminate()

    def end(self) -> None:
        """Kill the process and wait until it is gone."""
        self.process.kill()
        self.process.wait()


def lives(pid: int, folder: RunFolder) -> bool:
    """Whether process `pid`, started by a server that is gone, still works on this run. A number may be given to another process
    later, so the answer lies in its command line: nobody else's holds the run's id, which cannot be guessed."""
    return folder.id in _command_line(pid)


def end_process(pid: int) -> None:
    """Kill a process of which `lives` is true."""
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))            # on Windows every signal but two ends a process


def _command_line(pid: int) -> str:
    """The command line of a process; empty if there is none (a process that has ended but was not waited for has none either)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        if Path("/proc/self/cmdline").exists():
            return ""
    asked = ["ps", "-ww", "-o", "command=", "-p", str(pid)] if os.name != "nt" else [
        "powershell", "-NoProfile", "-Command", f"(Get-CimInstance Win32_Process -Filter 'ProcessId={pid}').CommandLine"]
    try:
        return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=10).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return ""


def last_lines(folder: RunFolder, n: int = 8) -> list[str]:
    """The last `n` lines that the process printed, at most 300 characters each, without the server's paths."""
    try:
        with folder.output.open("rb") as file:
            file.seek(max(folder.output.stat().st_size - 8192, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]           # a carriage return begins a line anew
    return [_without_paths(line)[:300] for line in lines if line.strip()][-n:]


def last_words(folder: RunFolder, code: int) -> str:
    """One sentence about a process that ended without saying why: the error at the end of its output, without its paths."""
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    lines = last_lines(folder, 200)
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit|Interrupt)\b", line)]
    words = (errors or (lines if code >= 0 else []) or [""])[-1].strip()      # a process that was killed said nothing about it
    words = re.sub(r"^[\w.]+(?:Error|Exception|Exit|Interrupt): (?=.)", "", words).rstrip(".")
    rest = ("it can go on from where it was saved" if folder.last.exists() else "the weights kept so far can be looked into, or start again"
            if folder.best.exists() else "nothing was learned yet, so start a new one")
    return f"The training process ended unexpectedly ({end})" + (f": {words}." if words else f"; {rest}.")


def _without_paths(line: str) -> str:
    line = re.sub(r"""(['"])[^'"]*[\\/]([^'"\\/]*)\1""", r"\1\2\1", line)                    # a quoted path keeps its last part
    return re.sub(r"(?<![\w.\\/])(?:[A-Za-z]:)?[\\/](?:[^\s'\"]*[\\/])?([^\s'\"\\/]*)", r"\1", line)      # and so does a bare one

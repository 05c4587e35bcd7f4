"""A training run is a folder: what is in it, and how it is written and read while somebody else reads and writes it.

The truth is on disk, so a run outlives a refresh, a second tab and a restart of the server:

    config.json        what was asked for                  best.safetensors   the best weights so far
    status.json        where it stands, always whole       last.pt            everything needed to go on
    log.jsonl          one JSON object per line            film/              pictures taken at each evaluation
    output.txt         what the child process printed      stop               exists once somebody asked for an end

While its process lives, only the trainer writes a run's status; before and after that, only the scheduler does.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vitdemo.atomic import patiently, replacing

STATES = ("queued", "starting", "running", "finished", "stopped", "failed")


class RunError(ValueError):
    """A run cannot be found, saved or queued. The message is one sentence for the reader."""


def new_id() -> str:
    """A name for a run that nobody can guess (128 random bits): whoever knows it may see and stop the run."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Status:
    """Where a run stands. Numbers that nobody has written yet are None, or 0 where zero is true."""

    state: str = "starting"               # one of STATES
    message: str = ""                     # one sentence for the reader
    step: int = 0
    epoch: float = 0
    seconds: float = 0                    # of training so far
    seconds_left: float | None = None
    images_per_second: float | None = None
    best_accuracy: float | None = None    # 0 to 1, on the validation part
    test_accuracy: float | None = None    # 0 to 1, on the test part, once at the end
    progress: float = 0                   # 0 to 1
    pid: int | None = None
    time: float = 0                       # when this was written, seconds since 1970
    created: float = 0                    # when the run was submitted, seconds since 1970

    @property
    def over(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.state in ("finished", "stopped", "failed")

    @classmethod
    def from_json(cls, values: Any) -> Status:
        """What can be used of `values`: unknown names and values of the wrong kind are ignored."""
        known = {}
        for spec in fields(cls) if isinstance(values, dict) else ():
            value, kind = values.get(spec.name), str if spec.name in ("state", "message") else (int, float)
            if isinstance(value, kind) and not isinstance(value, bool) and (spec.name != "state" or value in STATES):
                known[spec.name] = value
        return cls(**known)


@contextlib.contextmanager
def _saving(name: str) -> Iterator[None]:
    """Turn a full disk or a forbidden folder into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunError(f"{name} could not be written ({reason}): free some disk space or choose another folder.") from error


def _to_text(value: Any) -> str:
    """JSON in one line. Numbers that JSON does not know (NaN, infinity) become null."""
    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(inner) for inner in item]
        return None if isinstance(item, float) and not math.isfinite(item) else item

    return json.dumps(plain(value), allow_nan=False)


def _write(path: Path, value: Any) -> None:
    """Write `value` so that a reader sees the old file or the new one, never half of it."""
    with _saving(path.name), replacing(path, durable=False) as draft:       # a status is written twice a second
        draft.write_text(_to_text(value), encoding="utf-8")


def _read(path: Path) -> Any:
    """The JSON value in a file, or None if there is none or it is damaged."""
    try:
        return json.loads(patiently(lambda: path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class RunFolder:
    """One run on disk, wherever that is. Holds no open files, so as many readers as you like may follow it."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).absolute())

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def best(self) -> Path:
        """The best weights so far."""
        return self.path / "best.safetensors"

    @property
    def last(self) -> Path:
        """Weights, optimizer, schedule and random state of the last step: what is needed to go on."""
        return self.path / "last.pt"

    @property
    def film(self) -> Path:
        """The folder of what the chosen pictures looked like at each evaluation."""
        return self.path / "film"

    @property
    def output(self) -> Path:
        """What the child process printed."""
        return self.path / "output.txt"

    def create(self, config: dict[str, Any]) -> RunFolder:
        """Make the folder and write what was asked for. Raises RunError where there is a run already, or no room."""
        if (self.path / "config.json").exists():
            raise RunError(f"{self.id} already holds a run: choose another folder, or go on with that run.")
        with _saving(self.id):
            self.path.mkdir(parents=True, exist_ok=True)
        _write(self.path / "config.json", config)
        return self

    def log(self, record: dict[str, Any]) -> None:
        """Append one line to the log, at once on disk. A line torn by an earlier crash is closed first."""
        with _saving("log.jsonl"), (self.path / "log.jsonl").open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
            torn = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * torn + _to_text(record).encode() + b"\n")

    def write_status(self, **changes: Any) -> None:
        """Change some fields of the status, keep the others, and stamp it with the time."""
        earlier = _read(self.path / "status.json")
        _write(self.path / "status.json", {**(earlier if isinstance(earlier, dict) else {}), **changes, "time": time.time()})

    def request_stop(self) -> None:
        """Ask the trainer to end after its current step."""
        with _saving("stop"):
            (self.path / "stop").touch()

    def stop_requested(self) -> bool:
        """Whether somebody asked for an end."""
        return (self.path / "stop").exists()

    def withdraw_stop(self) -> None:
        """Forget an earlier request, before going on with a stopped run."""
        (self.path / "stop").unlink(missing_ok=True)

    def config(self) -> dict[str, Any]:
        """What was asked for. Raises RunError if the file is missing or damaged."""
        values = _read(self.path / "config.json")
        if not isinstance(values, dict):
            raise RunError("config.json of this run is missing or damaged: start a new run.")
        return values

    def status(self) -> Status:
        """Where the run stands; the default Status if nothing readable has been written."""
        return Status.from_json(_read(self.path / "status.json"))

    def records(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The log's whole lines from byte `offset` on, and the offset to ask for next time. Broken lines are left out."""
        try:
            with (self.path / "log.jsonl").open("rb") as file:
                file.seek(max(offset, 0))
                data = file.read()
        except OSError:
            return [], offset
        whole = data[:data.rfind(b"\n") + 1]     # the last line may still be in the making
        found = []
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                record = json.loads(line)
                if isinstance(record, dict):
                    found.append(record)
        return found, max(offset, 0) + len(whole)

    def heartbeat(self) -> float:
        """When the run last gave a sign of life (seconds since 1970): a status, a log line, or its beginning."""
        times = [self.status().time]
        for name in ("log.jsonl", "config.json"):
            with contextlib.suppress(OSError):
                times.append((self.path / name).stat().st_mtime)
        return max(times)

"""A training run is a folder: what is in it, and how it is written and read while somebody else reads and writes it.

The truth is on disk, so a run outlives a refresh, a second tab and a restart of the server:

    config.json        what was asked for                  best.safetensors   the best weights so far
    status.json        where it stands, always whole       last.pt            everything needed to go on
    log.jsonl          one JSON object per line            film/              pictures taken at each evaluation
    output.txt         what the child process printed      mistakes-*         what the model got wrong, with pictures
    stop               exists once an end was asked for    resume             exists once it was told to go on
    claim              which server looks after its process

While its process lives, only the trainer writes a run's status; before and after that, only the scheduler does.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitdemo import filenames, jsonfile
from vitdemo.runstatus import STATES, Status

__all__ = ["CLOCK", "PERSON", "STATES", "RunError", "RunFolder", "Status", "new_id"]

PERSON, CLOCK = "person", "clock"         # who asked for an end, where it was not the end of the server that did


class RunError(ValueError):
    """A run cannot be found, saved or queued. The message is one sentence for the reader."""


def new_id() -> str:
    """A name for a run that nobody can guess (128 random bits): whoever knows it may see and stop the run."""
    return secrets.token_hex(16)


@contextlib.contextmanager
def _saving(name: str) -> Iterator[None]:
    """Turn a full disk or a forbidden folder into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunError(f"{name} could not be written ({reason}): free some disk space or choose another folder.") from error


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
        """Weights, optimizer and schedule when it was last saved: what is needed to go on."""
        return self.path / "last.pt"

    @property
    def film(self) -> Path:
        """The folder of what the chosen pictures looked like at each evaluation."""
        return self.path / "film"

    @property
    def output(self) -> Path:
        """What the child process printed."""
        return self.path / "output.txt"

    @property
    def checkpoint_name(self) -> str:
        """A file name for the best weights when somebody takes them home: `vitdemo-<title>-<date>.safetensors`."""
        config = jsonfile.read(self.path / "config.json")
        titles = [config.get(name) for name in ("title", "model")] if isinstance(config, dict) else []
        title = next((title for title in titles if title and isinstance(title, str)), "")
        return f"vitdemo-{filenames.plain(title) or 'model'}-{time.strftime('%Y-%m-%d', time.localtime(self.status().created or None))}.safetensors"

    def mistakes(self, part: str) -> Path:
        """Where the mistakes on the "validation" or the "test" part are kept. Raises RunError for another part."""
        if part not in ("validation", "test"):
            raise RunError(f"Mistakes are kept for the validation and the test part, not for {part!r:.40}.")
        return self.path / f"mistakes-{part}.safetensors"

    def create(self, config: dict[str, Any]) -> RunFolder:
        """Make the folder and write what was asked for. Raises RunError where there is a run already, or no room."""
        if (self.path / "config.json").exists():
            raise RunError(f"{self.id} already holds a run: choose another folder, or go on with that run.")
        with _saving(self.id):
            self.path.mkdir(parents=True, exist_ok=True)
        with _saving("config.json"):
            jsonfile.write(self.path / "config.json", config)
        return self

    def log(self, record: dict[str, Any]) -> None:
        """Append one line to the log, at once on disk."""
        with _saving("log.jsonl"):
            jsonfile.append(self.path / "log.jsonl", record)

    def write_scene(self, scene: dict[str, Any]) -> None:
        """Write what stays the same in the film, whole or not at all."""
        with _saving("film"):
            self.film.mkdir(exist_ok=True)
            jsonfile.write(self.film / "scene.json", scene)

    def add_frame(self, frame: dict[str, Any]) -> None:
        """Append one frame to the film, as a line of film/frames.jsonl."""
        with _saving("film"):
            jsonfile.append(self.film / "frames.jsonl", frame)

    def write_status(self, **changes: Any) -> None:
        """Change some fields of the status, keep the others, and stamp it with the time."""
        earlier = jsonfile.read(self.path / "status.json")
        with _saving("status.json"):
            jsonfile.write(self.path / "status.json", {**(earlier if isinstance(earlier, dict) else {}), **changes, "time": time.time()})

    def request_stop(self, by: str = "") -> None:
        """Ask the trainer to end after its current step. `by`: PERSON where a person wants it, CLOCK where its time is up; kept over
        later requests without a name."""
        with _saving("stop"):
            if by or not self.stop_requested():
                (self.path / "stop").write_text(by, encoding="utf-8")

    def stop_requested(self) -> bool:
        """Whether somebody asked for an end."""
        return (self.path / "stop").exists()

    def stopped_by(self, whom: str) -> bool:
        """Whether PERSON or CLOCK asked for an end, and not only a server that was ending itself."""
        try:
            return (self.path / "stop").read_text(encoding="utf-8") == whom
        except (OSError, ValueError):
            return False

    def stopped_by_person(self) -> bool:
        return self.stopped_by(PERSON)

    def withdraw_stop(self) -> None:
        """Forget an earlier request, before going on with a stopped run."""
        (self.path / "stop").unlink(missing_ok=True)

    def request_resume(self) -> None:
        """The next process goes on where the last one was saved."""
        with _saving("resume"):
            (self.path / "resume").touch()

    def resuming(self) -> bool:
        """Whether a process that is started now is to go on rather than to begin."""
        return (self.path / "resume").exists()

    def resumable(self) -> bool:
        """Whether the run is over before its budget was used, and has what is needed to go on."""
        return self.status().state in ("stopped", "failed") and self.last.is_file()

    def config(self) -> dict[str, Any]:
        """What was asked for. Raises RunError if the file is missing or damaged."""
        values = jsonfile.read(self.path / "config.json")
        if not isinstance(values, dict):
            raise RunError("config.json of this run is missing or damaged: start a new run.")
        return values

    def status(self) -> Status:
        """Where the run stands; the default Status if nothing readable has been written."""
        return Status.from_json(jsonfile.read(self.path / "status.json"))

    def records(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The log's whole lines from byte `offset` on, and the offset to ask for next time. Broken lines are left out."""
        return jsonfile.lines(self.path / "log.jsonl", offset)

    def steps(self) -> list[dict[str, Any]]:
        """The log's lines about steps, by rising step: a run that went on took the steps since it was saved again, and the old ones do
        not count."""
        kept: list[dict[str, Any]] = []
        for row in self.records()[0]:
            if "step" in row:
                while kept and kept[-1]["step"] >= row["step"]:
                    kept.pop()
                kept.append(row)
        return kept

    def frames(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """The film's frames from byte `offset` of film/frames.jsonl on, and the offset to ask for next time."""
        return jsonfile.lines(self.film / "frames.jsonl", offset)

    def scene(self) -> dict[str, Any] | None:
        """What stays the same in the film; None before its first frame."""
        values = jsonfile.read(self.film / "scene.json")
        return values if isinstance(values, dict) else None

    def heartbeat(self) -> float:
        """When the run last gave a sign of life (seconds since 1970): a status, a log line, or its beginning."""
        times = [self.status().time]
        for name in ("log.jsonl", "config.json"):
            with contextlib.suppress(OSError):
                times.append((self.path / name).stat().st_mtime)
        return max(times)

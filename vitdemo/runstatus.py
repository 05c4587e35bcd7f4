"""Where a training run stands, as its status.json says it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

STATES = ("queued", "starting", "running", "finished", "stopped", "failed")


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
    queued: float = 0                     # when it last took its place in the queue, seconds since 1970

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

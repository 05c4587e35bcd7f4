"""Where a training run stands, as the words and numbers a person reads."""

from typing import Any

from vitdemo.runs import Status
from vitdemo.ui import words


def describe(status: Status | None, position: int = 0, sentence: str = words.NO_RUN, *, stopping: bool = False) -> dict[str, Any]:
    """A status as the words and numbers a person reads; without one, `sentence`."""
    if status is None:
        return {"state": "", "head": sentence, "facts": "", "progress": 0}
    heads = {
        "queued": "Waiting: yours starts next." if position < 2 else f"Waiting: {position - 1} in line before yours.",
        "starting": status.message or "Starting.",
        "running": status.message or "Training.",
        "finished": status.message or "Finished.",
        "stopped": status.message or "Stopped.",
        "failed": f"Failed: {status.message or 'the run ended unexpectedly.'}",
    }
    if stopping and not status.over:
        heads[status.state] = "Stopping: the best weights so far are kept."
    facts = []
    if status.state in ("starting", "running") and status.seconds_left is not None:
        facts.append(f"{_clock(status.seconds_left)} left")
    if status.seconds:
        facts.append(f"{_clock(status.seconds)} trained")
    if status.images_per_second:
        facts.append(f"{status.images_per_second:,.0f} images/s")
    if status.epoch:
        facts.append(f"epoch {status.epoch:.1f}")
    if status.best_accuracy:
        facts.append(f"best so far: {status.best_accuracy:.1%} of validation pictures right")
    if status.test_accuracy:
        facts.append(f"{status.test_accuracy:.1%} of test pictures right")
    return {"state": status.state, "head": heads[status.state], "facts": " · ".join(facts), "progress": status.progress}


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

"""Where a training run stands, as the words and numbers a person reads."""

from typing import Any

from vitdemo.runs import Status


def describe(status: Status, position: int = 0, *, stopping: bool = False) -> dict[str, Any]:
    """A status as the words and numbers a person reads."""
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
    return {"state": status.state, "head": heads[status.state], "progress": status.progress}

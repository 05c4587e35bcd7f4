"""Files that are replaced whole or not at all, also while other processes read them."""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def patiently(action: Callable[[], Result]) -> Result:
    """Windows refuses to replace or open a file in the instant in which another process holds it: try for 0.2 s."""
    for _ in range(20):
        try:
            return action()
        except PermissionError:
            if os.name != "nt":
                raise
            time.sleep(0.01)
    return action()


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A fresh path to write to, in the folder of `path`. When the block ends well, what was written there takes the place of `path`;
    when it does not, the old file stays and nothing is left behind. `durable`: wait until the disk has it. Raises OSError."""
    draft = path.with_name(f".{secrets.token_hex(6)}.tmp")                  # the same folder, so that replacing is one step
    try:
        yield draft
        if durable:
            with open(draft, "rb+") as file:
                os.fsync(file.fileno())
        patiently(lambda: os.replace(draft, path))
    finally:
        draft.unlink(missing_ok=True)

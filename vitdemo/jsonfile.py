"""JSON in files that other processes read at the same time: values that are replaced whole, and logs of one object per line."""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

from vitdemo.atomic import patiently, replacing


def to_text(value: Any) -> str:
    """JSON in one line. Numbers that JSON does not know (NaN, infinity) become null."""
    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(inner) for inner in item]
        return None if isinstance(item, float) and not math.isfinite(item) else item

    return json.dumps(plain(value), allow_nan=False)


def write(path: Path, value: Any) -> None:
    """Write `value` so that a reader sees the old file or the new one, never half of it. Raises OSError."""
    with replacing(path, durable=False) as draft:                           # a status is written twice a second
        draft.write_text(to_text(value), encoding="utf-8")


def read(path: Path) -> Any:
    """The JSON value in a file, or None if there is none or it is damaged."""
    try:
        return json.loads(patiently(lambda: path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one line, at once on disk. A line torn by an earlier crash is closed first. Raises OSError."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + to_text(record).encode() + b"\n")


def lines(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The whole lines from byte `offset` on, and the offset to ask for next time. Lines that hold no JSON object are left out."""
    try:
        with path.open("rb") as file:
            file.seek(max(offset, 0))
            data = file.read()
    except OSError:
        return [], offset
    whole = data[:data.rfind(b"\n") + 1]         # the last line may still be in the making
    found = []
    for line in whole.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                found.append(record)
    return found, max(offset, 0) + len(whole)

"""What a command says to whoever started it, who may be gone by then."""

import contextlib
import errno
import os
import sys
from typing import TextIO

# the program that read it has ended (`tee` by the same Ctrl-C), or the terminal is closed; Windows says it otherwise
GONE = (errno.EPIPE, errno.EIO, *([errno.EINVAL] if os.name == "nt" else []))


def say(text: object, *, to: TextIO | None = None, end: str = "\n") -> None:
    """Print `text` at once, to standard output if nowhere else. Where it cannot be said, it is lost, and nothing else is: no words are worth a
    run, and this is called where a signal may have interrupted anything, printing as well."""
    stream = to or sys.stdout
    try:
        try:
            print(text, file=stream, end=end, flush=True)
        except UnicodeEncodeError:              # letters that it does not have: \u2026
            print(str(text).encode(stream.encoding, "backslashreplace").decode(stream.encoding), file=stream, end=end, flush=True)
    except OSError as error:
        if error.errno in GONE:
            _leave(stream)
    except (ValueError, RuntimeError):          # closed; or in the middle of printing
        pass


def _leave(stream: TextIO) -> None:
    """Let all that is still said there go nowhere: what has piled up would otherwise make the program fail when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

"""How the C library keeps memory that was let go: two settings of glibc, each for a program that lives long. Other libraries have none."""

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8                # of mallopt(3)


def share() -> None:
    """One heap for all threads. Each has its own otherwise, and what one of them has free no other one uses: over a thousand answers that
    grew by tens of megabytes."""
    _set(M_ARENA_MAX, 1)


def keep() -> None:
    """Memory that was let go stays with the program. A training step takes and lets go the same large tensors again and again; given back to
    the system in between, every page of them is cleared and handed out anew, for a tenth of the time."""
    # older versions take 32 MB at most; with the second setting alone more would be given back than with neither
    if any(_set(M_MMAP_THRESHOLD, most) for most in (2**30, 2**25)):
        _set(M_TRIM_THRESHOLD, 2**31 - 1)


def _set(parameter: int, value: int) -> bool:
    """Whether the C library took it."""
    with contextlib.suppress(AttributeError, OSError, TypeError):           # no mallopt, or no C library that can be asked
        return bool(ctypes.CDLL(None).mallopt(parameter, value))
    return False

"""The signals by which somebody ends a program, and what is done about them."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")                         # those that this system has: Windows has no SIGHUP, and SIGBREAK is its own

ONE_END = 0.5                                   # seconds in which a signal that comes again is of the same end


def signals() -> list[int]:
    """Their numbers, without those that are ignored, as nohup wants it."""
    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


@contextlib.contextmanager
def once(tell: Callable[[int], None], *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Within, the first of these signals calls `tell` with its number, and a Ctrl-C after that does what it did before. Else the later ones
    do nothing, and Ctrl-C at first neither: one end often sends a signal twice (a terminal that is closed, `timeout`). Only a program's main
    thread can hear them; in any other nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in signals()}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, _: object) -> None:
        ends_at = clock() + ONE_END

        def again(number: int, _: object) -> None:
            if number == signal.SIGINT and clock() > ends_at:
                restore()
                signal.raise_signal(number)

        for other in before:
            signal.signal(other, again)
        tell(number)

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()

"""The signals by which somebody ends a program, and what is done about them."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")                         # those that this system has: Windows has no SIGHUP, and SIGBREAK is its own


def signals() -> list[int]:
    """Their numbers, without those that are ignored, as nohup wants it."""
    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


@contextlib.contextmanager
def once(tell: Callable[[int], None]) -> Iterator[None]:
    """Within, the first of these signals calls `tell` with its number. After that Ctrl-C does what it did before; the others do nothing, as
    one end often sends two of them: a terminal that is closed, `timeout`. Only a program's main thread can hear them; in any other nothing is
    changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in signals()}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, _: object) -> None:
        for other in before:
            signal.signal(other, before[other] if other == signal.SIGINT else lambda *_: None)
        tell(number)

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()

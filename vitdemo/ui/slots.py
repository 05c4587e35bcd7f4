"""A door for work that takes long: few at a time, a short line before it, and a sentence for those who find the line full."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

OF_ONE = 3                                      # of the same visitor in a line, at work or waiting


class Busy(ValueError):
    """The line is full, or did not move for too long."""


class Slots:
    """At most `working` at a time. Up to `waiting` more stand in line, each at most `patience` seconds: who waits holds one of the few
    threads that serve the page."""

    def __init__(self, working: int, waiting: int, patience: float, of_one: int = OF_ONE):
        self._room = threading.BoundedSemaphore(working + waiting)
        self._working = threading.BoundedSemaphore(working)
        self._patience, self._of_one = patience, of_one
        self._counting = threading.Lock()
        self._inside: Counter[Hashable] = Counter()

    @contextmanager
    def one(self, turn: threading.Lock, whose: Hashable = None) -> Iterator[None]:
        """Hold `turn`, the lock of what is worked on, and one slot. `whose` stands for the visitor, of whom `of_one` find room; None for
        nobody in particular. Raises Busy."""
        with self._seat(whose):
            if not self._room.acquire(blocking=False):
                raise Busy("many people are asking at the same time: please try again in a moment")
            try:
                with _held(turn, self._patience), _held(self._working, self._patience):
                    yield
            finally:
                self._room.release()

    @contextmanager
    def _seat(self, whose: Hashable) -> Iterator[None]:
        with self._counting:
            if whose is not None and self._inside[whose] >= self._of_one:
                raise Busy("your earlier questions are still being answered: please try again in a moment")
            self._inside[whose] += 1
        try:
            yield
        finally:
            with self._counting:
                self._inside[whose] -= 1
                if not self._inside[whose]:
                    del self._inside[whose]


@contextmanager
def _held(lock: "threading.Lock | threading.BoundedSemaphore", patience: float) -> Iterator[None]:
    if not lock.acquire(timeout=patience):
        raise Busy("the computer is busy with other questions: please try again in a moment")
    try:
        yield
    finally:
        lock.release()

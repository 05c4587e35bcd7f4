"""Models on their way: fetched from the network and loaded from the disk beside the page's own work, once for everybody who waits."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vitdemo import words
from vitdemo.runs import RunError
from vitdemo.ui import fields

log = logging.getLogger(__name__)
AT_ONCE = 2                                     # downloads at the same time; more wait their turn
SILENT = 180                                    # seconds after which nobody is taken to wait any more (browsers slow hidden tabs to a question a minute)
MOMENT = 0.3                                    # how long the first question waits for the answer itself
KEPT = 64                                       # failures that are remembered until they are asked for


class Cancelled(Exception):
    """Nobody waits for it any more."""


@dataclass
class Way:
    """How far one model is."""

    state: str = "waiting"                      # waiting, fetching, loading, ready, failed, cancelled
    done: int = 0                               # bytes
    total: int = 0
    sentence: str = ""
    waiting: dict[str, float] = field(default_factory=dict)                 # who asks for it: when they asked last
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self) -> dict[str, Any]:
        return {"state": self.state, "done": self.done, "total": self.total, "sentence": self.sentence}


class Fetches:
    """Brings models within reach. `needs(id)` says whether a model must be fetched, `fetch(id, told)` does it, `load(id)` loads it.
    Safe in threads."""

    def __init__(self, *, needs: Callable[[str], bool], fetch: Callable[[str, Callable[[int, int], None]], None], load: Callable[[str], Any]):
        self._needs, self._fetch, self._load = needs, fetch, load
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._ways: dict[str, Way] = {}

    def want(self, model: str, who: str) -> dict[str, Any]:
        """How far a model is, which begins here if nobody has asked for it yet. `who` waits for it from now on."""
        with self._lock:
            way = self._ways.get(model)
            fresh = way is None
            if fresh:
                way = self._ways[model] = Way()
            way.waiting[who] = time.monotonic()
        if fresh:
            threading.Thread(target=self._bring, args=(model, way), name="model", daemon=True).start()
            way.over.wait(MOMENT)
        answer = way.answer()
        if way.over.is_set():
            with self._lock:
                self._forget(model, way)                                    # the next question begins anew
        return answer

    def cancel(self, model: str, who: str) -> None:
        """`who` does not wait any more; where nobody does, the download ends, and what has arrived is kept for the next time."""
        with self._lock:
            way = self._ways.get(model)
            if way:
                way.waiting.pop(who, None)

    def _bring(self, model: str, way: Way) -> None:
        try:
            if self._needs(model):
                while not self._turns.acquire(timeout=0.2):
                    self._go_on(way)
                try:
                    way.state = "fetching"
                    self._fetch(model, lambda done, total: self._told(way, done, total))
                finally:
                    self._turns.release()
            way.state = "loading"
            self._load(model)
            way.state = "ready"
        except Cancelled:
            way.state, way.sentence = "cancelled", words.FETCH_CANCELLED
        except (ValueError, RunError) as error:                             # each of them one sentence
            way.state, way.sentence = "failed", fields.sentence(str(error))
        except Exception:
            way.state, way.sentence = "failed", fields.unexpected(log, "getting a model", words.LAB_UNEXPECTED)
        finally:
            way.over.set()
            with self._lock:
                if not way.waiting:
                    self._forget(model, way)
                over = [name for name, one in self._ways.items() if one.over.is_set()]
                for name in over[:-KEPT]:
                    del self._ways[name]

    def _told(self, way: Way, done: int, total: int) -> None:
        self._go_on(way)
        way.done, way.total = done, total

    def _go_on(self, way: Way) -> None:
        now = time.monotonic()
        with self._lock:
            for who in [who for who, asked in way.waiting.items() if now - asked > SILENT]:
                del way.waiting[who]
            if not way.waiting:
                raise Cancelled

    def _forget(self, model: str, way: Way) -> None:
        if self._ways.get(model) is way:
            del self._ways[model]

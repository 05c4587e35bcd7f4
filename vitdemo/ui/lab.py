"""What the training lab's page asks: one door, every request checked, every answer plain JSON or one sentence.

    ask({"question": "follow", "run": ..., "log": 0, "film": 0}) -> {"status": ..., "rows": ..., ...} or {"error": "One sentence."}

Where a run is refused because another one of the same browser is going on, the error comes with the "runs" that are: the answer to the start
of one may never have arrived, and nobody else could tell its name.

The functions that a browser calls have no queue before them and no sign-in, so every limit is kept here and below, and what takes long goes
through `Slots`, decided by the work that a question makes. Whoever knows a run's id, 128 random bits, may ask about it; nothing lists the
runs of others.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from vitdemo import words
from vitdemo.picturesets import Sets
from vitdemo.runs import Scheduler, StillGoing
from vitdemo.settings import Settings
from vitdemo.ui import fields
from vitdemo.ui.closer import Closer
from vitdemo.ui.desk import Desk
from vitdemo.ui.fields import Answer, Later, Request, RequestError, sentence
from vitdemo.ui.following import Following
from vitdemo.ui.handover import Handover
from vitdemo.ui.models import Models
from vitdemo.ui.offers import Offers
from vitdemo.ui.own_pictures import OwnPictures
from vitdemo.ui.racing import Racing
from vitdemo.ui.reach import Reach
from vitdemo.ui.slots import Busy, Slots

log = logging.getLogger(__name__)
LIGHT = ("hello", "stop", "resume", "follow", "list")                       # they read or write a few small files, or what is new of a run


class Lab:
    """Answers the training lab's questions. Safe in threads."""

    def __init__(self, scheduler: Scheduler, models: Models, sets: Sets, *, owner: Settings):
        self.reach = reach = Reach(scheduler, models, sets, owner)
        self.offers = offers = Offers(reach)
        desk, following, closer = Desk(reach), Following(reach), Closer(reach)
        handover, racing = Handover(reach), Racing(reach, offers)
        self._answers: dict[str, Callable[[Request], Answer]] = {
            "hello": desk.hello, "offer": offers.offer, "check": desk.check, "start": desk.start, "stop": desk.stop, "resume": desk.resume,
            "delete": desk.delete, "follow": following.follow, "list": following.list, "curves": following.curves, "cell": closer.cell,
            "export": closer.export, "checkpoint": handover.checkpoint, "open": handover.open, "race": racing.race,
            "standing": racing.standing, "set": OwnPictures(reach).set}
        self._slots = Slots(working=2, waiting=6, patience=10)              # half of the page's threads
        self._zips = Slots(working=1, waiting=1, patience=30)               # reading one may take two minutes

    def ask(self, request: Any) -> Answer:
        """The answer to one request, or {"error": sentence}; with "busy" where the same may be asked again in a moment, "again" where
        it will be answered otherwise later. Never raises."""
        try:
            return self._answer(request)
        except Busy as error:
            return {"error": sentence(str(error)), "busy": True}
        except Later as error:
            return {"error": sentence(str(error)), "again": True}
        except StillGoing as error:
            return {"error": sentence(str(error)), "runs": list(error.runs)}
        except ValueError as error:
            return {"error": sentence(str(error))} if fields.refused(error) else self._unexpected()
        except Exception:
            return self._unexpected()

    def _answer(self, request: Any) -> Answer:
        if not isinstance(request, dict):
            raise RequestError(f"a question is an object with a name, not {fields.brief(request)}")
        question = fields.choice(request, "question", tuple(self._answers))
        if not self.reach.owner.training and for_training(question, request):
            raise RequestError(words.TRAIN_OFF)
        slots = self._line(question, request)                               # nothing of one run or set is worked on by turns here
        with slots.one(threading.Lock()) if slots else contextlib.nullcontext():
            return self._answers[question](request)

    def _line(self, question: str, request: Request) -> Slots | None:
        """Where a question stands in line for the work that it makes; None where that is too little to wait for."""
        if question == "set":
            return self._zips if request.get("do") == "zip" else self._slots
        if question in ("check", "offer"):                                  # a model to start from is loaded
            return self._slots if request.get("start") else None
        if question == "race" and request.get("dry") is True:               # only the price is asked
            return None
        return None if question in LIGHT else self._slots

    def _unexpected(self) -> Answer:
        return {"error": fields.unexpected(log, "question", words.LAB_UNEXPECTED)}


def for_training(question: str, request: Request) -> bool:
    """Whether a question is about a run to come. Where nobody may train, what is there can still be seen, taken home, stopped, deleted."""
    return question in ("offer", "check", "start", "resume", "race") or question == "set" and request.get("do") in ("zip", "new", "add")

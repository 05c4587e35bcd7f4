"""Through which model a page looks, and how; each page keeps that itself and sends it along.

Kept by the server (`gr.State`), it would be forgotten an hour after a page's connection broke, and every open page would hold a connection for it: a
browser grants one host six, so a lesson's sixth tab would never load.
"""

from typing import Any, NamedTuple

import gradio as gr

from vitdemo import looking, words
from vitdemo.config import LIMITS
from vitdemo.geometry import Edges
from vitdemo.runs import RunError
from vitdemo.ui import fields
from vitdemo.ui.models import BOX


class Look(NamedTuple):
    """Through which model a visitor looks, and how."""

    model: str = BOX                # an id that `Models` knows
    side: int | None = None         # of the square the model gets, in pixels; None is the model's own
    fit: str | None = None          # what of a picture it gets, one of `looking.FITS`; None is the model's own
    part: Edges | None = None       # or a part of one picture, in shares of its height and width


def look_of(data: Any) -> Look:
    """What the model bar says was chosen, checked. Raises RunError for what it never says."""
    asked = {name: data.get(name) for name in Look._fields} if isinstance(data, dict) else {}
    side = asked.get("side")
    if not isinstance(asked.get("model"), str) or not (side is None or type(side) is int and 0 < side <= LIMITS["image"]):
        raise RunError(words.NO_SUCH_MODEL)
    try:
        part = None if asked["part"] is None else looking.edges(asked["part"])
    except looking.LookError as error:
        raise RunError(fields.sentence(str(error))) from None
    if asked["fit"] not in (None, *looking.FITS):
        raise RunError(words.NO_SUCH_MODEL)
    return Look(asked["model"], side, asked["fit"], part)


class PageLook(gr.JSON):
    """A `Look` that the page holds. Whoever poses as a page may send anything: what is no look is refused in a sentence."""

    is_template = True                          # the browser's part is gr.JSON's

    def preprocess(self, payload: Any) -> Look:
        try:
            return look_of(payload)
        except RunError as error:
            raise gr.Error(str(error), print_exception=False) from None

    def postprocess(self, value: Look | None) -> Any:
        return super().postprocess((value or Look())._asdict())

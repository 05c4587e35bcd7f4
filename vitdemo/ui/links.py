"""A link that opens a prepared state: what the address of the page asks for, part by part, checked.

    read("?example=cat&model=zoo:dino-s16&layer=3&head=2&token=r3c5", known) -> Link(example="cat", model="zoo:dino-s16", layer=3, ...)

Whatever is no sound part is left out and the others hold, so no address is an error. Layers, heads, rows and columns count from 1, as the
page shows them. What only the browser can tell (whether a model has that layer, that token, that class) it checks itself (`viewer/78-link.js`).
"""

import filecmp
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from vitdemo.features import PARTS
from vitdemo.front import COLOURS
from vitdemo.looking import FITS
from vitdemo.ui.fields import FEATURES, FUSIONS, KINDS
from vitdemo.ui.models import BOX, EXAMPLES, RECORDED, TINY, ZOO, Models
from vitdemo.ui.reach import MINE

LONGEST = 4000                                  # characters of a query that are read
MOST_PARTS = 100
TABS = ("explore", "train", "about")
SHEETS = ("test", "lens", "facts", "surgery", "embedding", "take")         # under the picture, by their keys
BESIDE = ("twin", "box")                        # what can stand beside the picture and needs nothing of the visitor's
TOKEN = re.compile(r"cls|dist|mean|[0-9]{1,5}|reg[1-9][0-9]{0,2}|r[1-9][0-9]{0,3}c[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True)
class Link:
    """What a link asks for; None is what it leaves open."""

    example: str | None = None      # an example picture by its name
    model: str | None = None        # an id that `Models` knows and that may stand in a link
    size: int | None = None         # of the square the model gets, in pixels
    fit: str | None = None          # what of the picture it gets, one of `looking.FITS`
    tab: str | None = None
    kind: str | None = None         # of map, spaces written as hyphens
    layer: int | None = None
    head: int | str | None = None   # or the mean, min, max of the heads
    token: str | None = None        # "cls", "dist", "mean" (the average patch), "reg2", row and column: "r3c5", or its number, the class token's being 0
    direction: str | None = None    # "reads" or "read-by"
    fusion: str | None = None       # of rollout
    discard: int | None = None      # of rollout, in percent
    klass: str | None = None        # a class by its name: `class` in a link
    second: str | None = None       # a class beside it
    patches: str | None = None      # that are coloured
    opacity: int | None = None      # in percent
    colours: str | None = None
    grid: bool | None = None
    own: bool | None = None         # every head on its own scale
    stretch: bool | None = None
    compare: str | None = None
    flicker: bool | None = None     # instead of side by side
    open: str | None = None         # a sheet under the picture
    run: str | None = None          # the recorded one, on the Train tab; layer and head are its film's then
    look: int | None = None         # of that film
    picture: str | None = None      # of that film, by its name

    def to_json(self) -> dict[str, Any]:
        """The parts that were asked for."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}

    def query(self) -> str:
        """The link as it stands behind the question mark of an address; `read` gives it back."""
        return urlencode([("class" if name == "klass" else name, int(value) if isinstance(value, bool) else value)
                          for name, value in self.to_json().items()], safe=":")

    @property
    def opens(self) -> str:
        """The tab it leads to; empty where the page opens there anyway."""
        tab = self.tab or ("train" if self.run else "explore")
        return "" if tab == "explore" else tab


class Known(NamedTuple):
    """What there is to name."""

    examples: Mapping[str, Path]
    models: Collection[str]


def _among(*choices: str) -> Callable[[str], str | None]:
    return lambda text: text if text in choices else None


def _whole(least: int, most: int) -> Callable[[str], int | None]:
    return lambda text: int(text) if re.fullmatch("[0-9]{1,5}", text) and least <= int(text) <= most else None


def _switch(text: str) -> bool | None:
    return {"1": True, "0": False}.get(text)


def _name(text: str) -> str | None:
    return text if text.isprintable() and 0 < len(text) <= 100 else None


def _head(text: str) -> int | str | None:
    return text if text in FUSIONS else _whole(1, 999)(text)


READERS: dict[str, Callable[[str], Any]] = {
    "size": _whole(1, 9999), "fit": _among(*FITS), "tab": _among(*TABS), "kind": _among(*(kind.replace(" ", "-") for kind in KINDS + FEATURES)),
    "layer": _whole(1, 999), "head": _head, "token": lambda text: text if TOKEN.fullmatch(text) else None,
    "direction": _among("reads", "read-by"), "fusion": _among(*FUSIONS), "discard": _whole(0, 95), "class": _name, "second": _name,
    "patches": _among(*PARTS), "opacity": _whole(0, 100), "colours": _among(*COLOURS), "grid": _switch, "own": _switch, "stretch": _switch,
    "compare": _among(*BESIDE), "flicker": _switch, "open": _among(*SHEETS), "run": _among(RECORDED), "look": _whole(1, 9999), "picture": _name,
}
PARAMETERS = ("example", "model", *READERS)


def read(query: Any, known: Known) -> Link:
    """The sound parts of a query; of a part that is there twice, the first sound one. Never raises."""
    readers = {"example": _among(*known.examples), "model": _among(*known.models), **READERS}
    try:
        pairs = parse_qsl(query[:LONGEST].removeprefix("?"), max_num_fields=MOST_PARTS) if isinstance(query, str) else []
    except ValueError:                                                      # more parts than any link has
        pairs = []
    found: dict[str, Any] = {}
    for name, text in pairs:
        value = readers[name](text) if name in readers else None
        if value is not None:
            found.setdefault("klass" if name == "class" else name, value)
    return Link(**found)


def examples() -> dict[str, Path]:
    """The example pictures by the names that links call them by."""
    return {path.stem.removeprefix("out-"): path for path in sorted(EXAMPLES.glob("*.jpg"))}


def asked(data: Any, models: Models) -> Link:
    """The link that a page says it was opened by: {"query": ..., "mine": the browser's own runs}. Never raises."""
    data = data if isinstance(data, dict) else {}
    own = [run for run in mine if isinstance(run, str)][:MINE] if isinstance(mine := data.get("mine"), list) else []
    return read(data.get("query"), Known(examples(), {BOX, TINY, RECORDED, *(f"{ZOO}{entry.name}" for entry in models.listed()), *own}))


def names(picture: Any, model: str) -> dict[str, str]:
    """By which names a link may open that picture through that model; "" for what is a visitor's own: it does not travel."""
    there = isinstance(picture, str) and Path(picture).is_file()
    example = next((name for name, path in examples().items() if there and filecmp.cmp(path, picture, shallow=False)), "")
    return {"example": example, "model": model if model in (BOX, TINY, RECORDED) or model.startswith(ZOO) else ""}

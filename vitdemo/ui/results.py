"""Where answers are kept for the questions that come after: one bounded store for all visitors, each answer under a key that nobody
can guess. No answer keeps a model of the stock in memory: the model is recalled when a question needs it."""

import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from PIL import Image
from torch import Tensor

from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation
from vitdemo.geometry import Edges, Geometry
from vitdemo.runs import RunError
from vitdemo.ui.stock import Origin, Recalled, Stock

LIMIT_BYTES = 256 * 2**20
MOST = 300                                      # results, however small: with none of them large, memory is used up for no use
PIXEL = 4                                       # bytes that Pillow takes for a pixel of a picture in colour
LONGEST_SIDE = 1600                             # of a kept picture, in pixels: more than any view of it shows
LASTS = 3000                                    # seconds since the last question: with TIDY_EVERY less than the hour that the page promises
TIDY_EVERY = 300
REMEMBERED = 64                                 # things worked out about one result that are kept beside it

T = TypeVar("T")


class Gone(ValueError):
    """There is no result under this key, as it had to make room for newer ones or there never was one; or its model is gone for good."""


@dataclass(eq=False)
class Kept:
    """A result with what was worked out about it since. `turn` is held by whoever works long on it, so that nothing is worked out twice."""

    explanation: Explanation
    size: int                                   # in bytes
    stays: bool = False                         # never makes room: it is on the page from the start, for everybody
    truth: str = ""                             # what the picture is known to show
    part: Edges | None = None                   # of the picture, in shares of its sides, where a person chose it
    turn: threading.Lock = field(default_factory=threading.Lock)
    used: float = field(default_factory=time.monotonic)                     # when it was last asked about
    _remembered: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def remember(self, name: Hashable, make: Callable[[], T]) -> T:
        """What is kept under `name`, made now if it is not there. Of many things the ones used last stay."""
        with self._lock:
            if name in self._remembered:
                self._remembered.move_to_end(name)
                return self._remembered[name]
        made = make()                                                       # outside the lock: it may take long, or ask for other names
        with self._lock:
            made = self._remembered.setdefault(name, made)                  # whoever was first
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return made

    def forget(self, name: Hashable) -> None:
        with self._lock:
            self._remembered.pop(name, None)

    def forget_all(self) -> None:
        """Let go of everything that was worked out; some of it holds this very result."""
        with self._lock:
            self._remembered.clear()

    def held(self) -> Loaded:
        """The model itself, which stays in memory while the caller holds it. Raises Gone."""
        loaded = self.explanation.loaded
        return loaded.model.loaded() if isinstance(loaded.model, Recalled) else loaded


class Results:
    """Keeps the explanations used last, up to `limit_bytes` of tensors and pixels and up to `most` of them, none for longer than LASTS after
    its last question. Models are shared and do not count; those of `stock` are not held, any other (the one in the box) is. Thread-safe."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES, stock: Stock | None = None, most: int = MOST):
        self.stock = Stock(limit_bytes) if stock is None else stock
        self._limit, self._most = limit_bytes, most
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, explanation: Explanation, *, stays: bool = False, truth: str = "", part: Edges | None = None) -> str:
        """Keep a compact copy of `explanation`; the key to ask for it. The newest one is kept whatever its size, one that `stays` for
        good."""
        smaller = compact(replace(explanation, loaded=self._released(explanation.loaded)))
        entry, key = Kept(smaller, size_of(smaller), stays, truth, part), secrets.token_urlsafe(16)
        with self._lock:
            self._kept[key] = entry
            self._bytes += entry.size
            for old in [name for name, kept in self._kept.items() if not kept.stays and name != key]:       # the least recently used first
                if self._bytes <= self._limit and len(self._kept) <= self._most:
                    break
                self._drop(old)
        return key

    def get(self, key: str) -> Kept:
        """What is kept under `key`. Raises Gone."""
        with self._lock:
            if key not in self._kept:
                raise Gone("this result is no longer kept: please upload the picture again")
            self._kept.move_to_end(key)
            self._kept[key].used = time.monotonic()
            return self._kept[key]

    def tidy(self) -> None:
        """Let go of what nobody has asked about for LASTS: there is a copy of somebody's picture in it."""
        now = time.monotonic()
        with self._lock:
            for key in [key for key, kept in self._kept.items() if not kept.stays and now - kept.used > LASTS]:
                self._drop(key)

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key)
        kept.forget_all()
        self._bytes -= kept.size

    def _released(self, loaded: Loaded) -> Loaded:
        origin = self.stock.origin(loaded.model)
        return loaded if origin is None else replace(loaded, model=Recalled(loaded.model, origin, self._recall))

    def _recall(self, origin: Origin) -> Loaded:
        try:
            return self.stock.get(*origin)
        except RunError as error:
            raise Gone(str(error)) from None

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """What is kept, in bytes."""
        return self._bytes


def tidying(results: Results) -> None:
    """Tidy `results` for as long as somebody holds them."""
    there = weakref.ref(results)
    del results

    def work() -> None:
        while (held := there()) is not None:
            held.tidy()
            del held
            time.sleep(TIDY_EVERY)

    threading.Thread(target=work, name="tidying", daemon=True).start()


def compact(explanation: Explanation) -> Explanation:
    """The same explanation in less memory: its picture at most LONGEST_SIDE pixels long, and of the trace no more than it names (queries
    and keys are views into one tensor with the values, which would stay alive with them)."""
    trace = explanation.trace
    trace = trace._replace(queries=tuple(_own(q) for q in trace.queries), keys=tuple(_own(k) for k in trace.keys))
    picture, geometry = explanation.picture, explanation.geometry
    scale = LONGEST_SIDE / max(picture.size)
    if scale < 1:
        width, height = (max(1, round(side * scale)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2.0)
        geometry = _scaled(geometry, (height, width))
    return replace(explanation, trace=trace, picture=picture, geometry=geometry)


def size_of(explanation: Explanation) -> int:
    """Bytes of an explanation's tensors, arrays and pixels, what several of them share counted once."""
    trace = explanation.trace
    storages = [t.untyped_storage() for t in (trace.logits, trace.tokens, trace.lens, *trace.queries, *trace.keys, explanation.tensor)]
    arrays = (explanation.probabilities, explanation.lens, explanation.attention, explanation.prefix_attention)
    pixels = sum(image.width * image.height * (1 if len(image.getbands()) == 1 else PIXEL) for image in (explanation.picture, explanation.seen))
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values()) + sum(array.nbytes for array in arrays) + pixels


def _own(tensor: Tensor) -> Tensor:
    """`tensor` with memory of its own, and no more than it needs."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size() else tensor.clone()


def _scaled(geometry: Geometry, size: tuple[int, int]) -> Geometry:
    down, across = size[0] / geometry.original[0], size[1] / geometry.original[1]
    top, left, bottom, right = geometry.crop
    return replace(geometry, original=size, crop=(top * down, left * across, bottom * down, right * across))

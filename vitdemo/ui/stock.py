"""Models in memory, for all visitors together: each is loaded once, and the least recently used give way when a budget of bytes is full.

A model of the stock may work on an accelerator; whoever uses it hands it tensors of the CPU and gets tensors of the CPU.
"""

import copy
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from torch import Tensor, nn

from vitdemo.checkpoint import Loaded
from vitdemo.model import Branches, Seen, Trace, ViT


class Origin(NamedTuple):
    """How a model of a stock is had again: the arguments of `get`."""

    key: Hashable
    make: Callable[[], Loaded]
    size: int                                   # in bytes


class Stock:
    """Keeps the models used last, up to `limit_bytes` of weights (what several of them share counts once), on `device`. Safe in threads.

    Room is made before a model is, where its size is told, and models that are being made count as if they were there: they wait for each
    other where they do not fit together. Whoever holds a model may use it for as long as they like. One that gave way is freed when the
    last of them lets go; asked for before that, it is taken back and not made twice.
    """

    def __init__(self, limit_bytes: int, device: str = "cpu"):
        self._limit, self._device = limit_bytes, device
        self._changed = threading.Condition()                               # its lock is never held while a model is made
        self._kept: OrderedDict[Hashable, Loaded] = OrderedDict()           # the least recently used first
        self._holders: Counter[int] = Counter()                             # how many of them have weights at a place in memory
        self.bytes = 0                                                      # of all of them
        self._alive: WeakValueDictionary[Hashable, Loaded] = WeakValueDictionary()
        self._origins: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()
        self._making: dict[Hashable, Future[Loaded]] = {}
        self._coming: dict[Hashable, int] = {}                              # bytes of those that are being made, where they are told

    def get(self, key: Hashable, make: Callable[[], Loaded], size: int = 0) -> Loaded:
        """The model that `make` makes, of `size` bytes (0: nobody knows yet): once for all who ask for `key` meanwhile. What `make` raises
        all of them get, and the next one who asks tries again. `make` may ask for other models where its own size is 0."""
        with self._changed:
            found = self._kept.get(key) or self._alive.get(key)
            if found is not None:
                self._keep(key, found)
                return found
            others = self._making.get(key)
            if others is None:
                mine = self._making[key] = Future()
        try:
            if others is not None:
                return others.result()
            return self._make(mine, key, make, size)
        finally:
            others = mine = None                                            # an error, its trace and this frame would hold each other alive

    def origin(self, model: Any) -> Origin | None:
        """How to have `model` again; None for what is no model of this stock."""
        return self._origins.get(model)

    def __len__(self) -> int:
        return len(self._kept)

    def _make(self, mine: Future[Loaded], key: Hashable, make: Callable[[], Loaded], size: int) -> Loaded:
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._fits(size))
                self._coming[key] = size
                self._make_room()
            with torch.inference_mode(False):                               # whoever asks may be in it, but the model is for all, gradients too
                made = placed(make(), self._device)
            with self._changed:
                del self._coming[key]
                self._alive[key], self._origins[made.model] = made, Origin(key, make, made.bytes)
                self._keep(key, made)
            mine.set_result(made)
            return made
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            del mine
            with self._changed:
                del self._making[key]
                self._coming.pop(key, None)
                self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        """Whether a model may be made now, beside those that are being made. One too large for that goes alone: nobody waits for ever."""
        others = sum(self._coming.values())
        return not size or not others or others + size <= self._limit

    def _keep(self, key: Hashable, loaded: Loaded) -> None:
        if key not in self._kept:
            self._kept[key] = loaded
            self._count(loaded, 1)
            self._make_room(but=key)
        self._kept.move_to_end(key)

    def _make_room(self, but: Hashable = None) -> None:
        """Let go of models until the rest and those that are coming are within the limit; never of the one `but`."""
        for key in [key for key in self._kept if key != but]:
            if self.bytes + sum(self._coming.values()) <= self._limit:
                return
            self._count(self._kept.pop(key), -1)

    def _count(self, loaded: Loaded, by: int) -> None:
        for place, size in places(loaded.model).items():
            held = self._holders[place] > 0
            self._holders[place] += by
            self.bytes += size * ((self._holders[place] > 0) - held)
            if not self._holders[place]:
                del self._holders[place]


class Recalled:
    """Stands in the place of a model that it does not hold: whatever is asked of it, the model is recalled for, and let go afterwards. Its
    config is known without. Two that stand for the same model are equal."""

    def __init__(self, model: Any, origin: Origin, recall: Callable[[Origin], Loaded]):
        self.config, self.size = model.config, origin.size
        self._origin, self._recall = origin, recall

    def loaded(self) -> Loaded:
        """The model itself, which stays in memory for as long as the caller holds it."""
        return self._recall(self._origin)

    def __call__(self, images: Tensor) -> Tensor:
        return self.loaded().model(images)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded().model, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recalled) and other._origin.key == self._origin.key

    def __hash__(self) -> int:
        return hash(self._origin.key)


class Elsewhere:
    """A model on an accelerator: takes tensors of the CPU and gives tensors of the CPU, and copies there of its parts. What stays on the
    accelerator is `branches`, whose gradients are asked for where they were kept, and the `state_dict`, for models that share weights."""

    def __init__(self, model: ViT, device: str):
        self.config, self._model, self._device = model.config, moved(model, device), device

    def __call__(self, images: Tensor) -> Tensor:
        return self._run(self._model, images)

    def embed(self, images: Tensor, *, positions: bool = True) -> Tensor:
        return self._run(self._model.embed, images, positions=positions)

    def transform(self, z: Tensor) -> Tensor:
        return self._run(self._model.transform, z)

    def encode(self, images: Tensor) -> Tensor:
        return self._run(self._model.encode, images)

    def trace(self, images: Tensor) -> Trace:
        return self._run(self._model.trace, images)

    def follow(self, z: Tensor) -> Trace:
        return self._run(self._model.follow, z)

    def classify(self, tokens: Tensor) -> Tensor:
        return self._run(self._model.classify, tokens)

    def branches(self, z: Tensor) -> Branches:
        return self._model.branches(moved(z, self._device))

    @property
    def blocks(self) -> list[Callable[[Tensor], tuple[Tensor, Seen]]]:
        return [partial(self._run, block) for block in self._model.blocks]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        return moved(copy.deepcopy(found), "cpu") if isinstance(found, (Tensor, nn.Module)) else found

    def _run(self, ask: Callable[..., Any], given: Tensor, **settings: Any) -> Any:
        return moved(ask(moved(given, self._device), **settings), "cpu")


def placed(loaded: Loaded, device: str) -> Loaded:
    """The same model, working on `device`."""
    return loaded if device == "cpu" or isinstance(loaded.model, Elsewhere) else replace(loaded, model=Elsewhere(loaded.model, device))


def moved(value: Any, device: str) -> Any:
    """A tensor, a tuple of tensors or a whole model on `device`. Nothing else moves anything."""
    if isinstance(value, (Tensor, nn.Module)):
        return value.to(device)
    parts = [moved(part, device) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def bytes_of(loaded: Loaded) -> int:
    """Bytes of a model's weights; what stands for one knows it without having them."""
    return loaded.model.size if isinstance(loaded.model, Recalled) else loaded.bytes


def places(model: Any) -> dict[int, int]:
    """Where a model's numbers lie in memory, and how many bytes there: two models that share weights share places."""
    storages = [tensor.untyped_storage() for tensor in model.state_dict().values()]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}

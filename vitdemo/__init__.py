"""A Vision Transformer written from scratch, and the tools to look inside it.

    import vitdemo
    loaded = vitdemo.load()                      # the model in the box; or "dino-s16", "my.safetensors", "user/repo"
    result = vitdemo.explain.explain("photo.jpg", loaded)

Modules are imported when first used, so `vitdemo.runs` (which the page's server uses to follow a training run)
never waits for torch.
"""

import importlib
from typing import Any

from vitdemo import spin

__version__ = "0.2.1"

spin.briefly()

_MODULES = {"attention", "checkpoint", "config", "data", "embedding", "evaluate", "explain", "faithfulness", "features", "figures", "geometry",
            "hub", "images", "loading", "looking", "model", "report", "runs", "settings", "surgery", "train", "zoo"}
_NAMES = {"load": "loading", "save": "checkpoint", "ViT": "model", "ViTConfig": "config", "TrainConfig": "config"}

__all__ = sorted(_MODULES | set(_NAMES))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"vitdemo has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

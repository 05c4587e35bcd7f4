"""A GPU that is lent for one call at a time: Hugging Face's ZeroGPU, where that is what the page runs on.

There a process of the host's own works beside the page's, so what is sent to it and comes back is copied. A model of some megabytes is
faster on the page's own CPU, and what the viewer's server functions ask (one row, one more pass) comes without the request that a loan
needs: both stay there. Only the pass over a new picture through a large model goes to the GPU, and where none is lent to this visitor now,
the CPU does that too. Without ZeroGPU nothing here does anything.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from gradio.context import LocalContext
from torch import Tensor

from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation, explain
from vitdemo.model import Trace, ViT
from vitdemo.settings import Settings
from vitdemo.ui.stock import Elsewhere

log = logging.getLogger(__name__)
LARGE = 80 * 10**6                              # bytes of weights from which a model is worth the way
SECONDS = 30                                    # a visitor's share that one pass is counted with, at most


class Lent:
    """A model whose one pass over pictures is made by somebody else."""

    def __init__(self, model: ViT, trace: Callable[[ViT, Tensor], Trace]):
        self.config, self._model, self._trace = model.config, model, trace

    def trace(self, images: Tensor) -> Trace:
        return self._trace(self._model, images)


def traced(model: ViT, images: Tensor) -> Trace:
    """What runs on the GPU: `model.trace(images)`, taken and given back on the CPU."""
    return Elsewhere(model, "cuda" if torch.cuda.is_available() else "cpu").trace(images)


def explainer(owner: Settings) -> Callable[..., Explanation]:
    """`explain`, with large models on the lent GPU where there is one. Called while the page is built: ZeroGPU wants to know by then."""
    if not owner.zero_gpu:
        return explain
    import spaces  # only there; app.py has imported it before torch, as it wants

    lent = spaces.GPU(duration=SECONDS)(traced)

    def trace(model: ViT, images: Tensor) -> Trace:
        try:
            return lent(model, images)
        except Exception:                                                   # none is free, or this visitor's share is used up
            log.info("no GPU was lent", exc_info=True)
            return model.trace(images)

    def on_a_loan(picture: Any, loaded: Loaded, **how: Any) -> Explanation:
        if loaded.bytes < LARGE or LocalContext.request.get(None) is None:  # nobody asks while the page is built
            return explain(picture, loaded, **how)
        result = explain(picture, replace(loaded, model=Lent(loaded.model, trace)), **how)
        same = result.loaded.preprocessing == loaded.preprocessing
        return replace(result, loaded=loaded if same else replace(result.loaded, model=loaded.model))

    return on_a_loan

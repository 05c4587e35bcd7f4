"""What can be asked about an explanation, answered in plain JSON: the page asks, and the report carries the answers inside.

Arguments are taken as they are: whoever passes on what a stranger wrote checks it first.
"""

import base64
from typing import Any

import numpy as np

from vitdemo import embedding as first_layer
from vitdemo import faithfulness
from vitdemo.checkpoint import Loaded
from vitdemo.explain import Explanation
from vitdemo.payload import data_url, pack

FUSE = {"mean": np.mean, "min": np.min, "max": np.max}
FILTERS, PRINCIPAL = 64, 28                     # how many filters and principal components travel


def token(explanation: Explanation, index: int) -> dict[str, Any]:
    """What a token reads, who reads it, and its columns' totals, in every layer and head."""
    column = explanation.read_by(index)
    return {"reads": pack(explanation.reads(index)), "read_by": pack(column), "total": np.round(column.sum(2, dtype=np.float64), 5).ravel().tolist()}


def rollout(explanation: Explanation, *, up_to: int | None = None, fusion: str = "mean", discard: float = 0.0) -> dict[str, Any]:
    return {"map": pack(explanation.rollout(up_to, fusion=fusion, discard=discard)[None, None])}


def relevance(explanation: Explanation, klass: int) -> dict[str, Any]:
    return {"map": pack(explanation.relevance(klass)[None, None])}


def occlusion(explanation: Explanation, klass: int) -> dict[str, Any]:
    """How much the class probability falls when one patch is hidden."""
    return occluded(explanation, faithfulness.occlusion(explanation.loaded, explanation.tensor, klass))


def occluded(explanation: Explanation, drops: np.ndarray) -> dict[str, Any]:
    """Falls of a probability (rows, cols) as a map over tokens; where it rises, 0."""
    return {"map": pack(np.maximum(_over_tokens(explanation, drops), 0)[None, None])}


def facts(explanation: Explanation) -> dict[str, Any]:
    """Head facts, [layers][heads] each; see `attention.facts`."""
    return {name: np.round(values[0].double().numpy(), 5).tolist() for name, values in explanation.facts()._asdict().items()}


def embedding(loaded: Loaded) -> dict[str, Any]:
    """Filters and principal components of the patch projection as pictures, and how alike the positions are, -1 to 1 as 0 to 255."""
    similar, answer = first_layer.position_similarity(loaded.model), None
    if similar is not None:
        rows, cols = similar.shape[:2]
        shades = np.round((similar.detach().numpy().clip(-1, 1) + 1) * 127.5).astype(np.uint8)
        answer = {"rows": rows, "cols": cols, "data": base64.b64encode(shades.tobytes()).decode()}
    return {"filters": _pictures(first_layer.filters(loaded.model, FILTERS)), "principal": _pictures(first_layer.principal_filters(loaded.model, PRINCIPAL)),
            "positions": answer}


def map_of(explanation: Explanation, view: dict[str, Any]) -> np.ndarray:
    """The one map that a view names, (T,) over all tokens; prefix tokens are 0 where the kind of map says nothing about them."""
    kind = view["kind"]
    if kind == "rollout":
        return explanation.rollout(view["up_to"], fusion=view["fusion"], discard=view["discard"])
    if kind == "relevance":
        return explanation.relevance(view["klass"])
    if kind == "mean attention":
        return explanation.reads().mean((0, 1))
    if kind == "occlusion":
        drops = faithfulness.occlusion(explanation.loaded, explanation.tensor, view["klass"])
        return _over_tokens(explanation, drops)
    all_heads = (explanation.read_by(view["token"]) if view["direction"] == "read_by" else explanation.reads(view["token"]))[view["layer"]]
    return FUSE[view["head"]](all_heads, axis=0) if isinstance(view["head"], str) else all_heads[view["head"]]


def _over_tokens(explanation: Explanation, patches: np.ndarray) -> np.ndarray:
    """A map over patches (rows, cols) as one over tokens (T,), 0 on those before the patches."""
    return np.concatenate((np.zeros(explanation.prefix_attention.shape[2]), patches.ravel()))


def _pictures(filters: Any) -> list[str]:
    from PIL import Image

    shades = np.round(filters.detach().numpy().clip(0, 1) * 255).astype(np.uint8)
    return [data_url(Image.fromarray(one.squeeze(2) if one.shape[2] == 1 else one), "PNG") for one in shades]

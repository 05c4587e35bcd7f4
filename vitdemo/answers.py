"""What can be asked about an explanation, answered in plain JSON: the page asks, and the report carries the answers inside.

Arguments are taken as they are: whoever passes on what a stranger wrote checks it first.
"""

import base64
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitdemo import embedding as first_layer
from vitdemo import faithfulness, features
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


def similarity(explanation: Explanation, token: int | None = None, *, other: Explanation | None = None) -> dict[str, Any]:
    """How alike the features of `token` (None: of the reader) and of every token are, cosines of -1 to 1 as 0 to 1; of every token of
    `other` where that is given, or {"apart": True} where other weights made it: its features have axes of their own."""
    if other is not None and not features.same_encoder(explanation.loaded.model, other.loaded.model):
        return {"apart": True}
    return {"map": pack((_cosines(explanation, token, other or explanation)[None, None] + 1) / 2)}


def colours(explanation: Explanation, part: str = "all", *, other: Explanation | None = None) -> dict[str, Any]:
    """The patches' first three principal components as colours, of this picture or of this and `other` together (or {"apart": True}, as
    above): "pictures", each with its `rgba` (N, 4) of which the last is 0 where a patch is not looked at; and the shares "explained"."""
    if other is not None and not features.same_encoder(explanation.loaded.model, other.loaded.model):
        return {"apart": True}
    found = _coloured([explanation] if other is None else [explanation, other], part)
    pictures = [torch.cat((rgb, kept[:, None]), dim=1).mul(255).round().to(torch.uint8).numpy().tobytes()
                for rgb, kept in zip(found.rgb, found.kept, strict=True)]
    return {"pictures": [{"rgba": base64.b64encode(rgba).decode()} for rgba in pictures],
            "explained": np.round(found.explained.tolist(), 4).tolist()}


def norms(explanation: Explanation) -> dict[str, Any]:
    """How long every token is after each layer, (layers, 1, T), and from which length on a patch counts as an artifact there."""
    lengths = _lengths(explanation)
    limits = features.limits(lengths, explanation.prefix_attention.shape[2])
    return {"lengths": pack(lengths[:, None].numpy()), "limits": np.round(limits.tolist(), 4).tolist()}


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
    """The one map that a view names, (T,) over all tokens; prefix tokens are 0 where the kind of map says nothing about them. Colours are
    three maps, (3, T)."""
    kind = view["kind"]
    if kind == "similarity":
        return _cosines(explanation, view["token"], explanation)
    if kind == "norms":
        return _lengths(explanation)[view["layer"]].numpy()
    if kind == "colours":
        return np.stack([_over_tokens(explanation, component) for component in _coloured([explanation], view["part"]).rgb[0].T.numpy()])
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


def _cosines(explanation: Explanation, token: int | None, other: Explanation) -> np.ndarray:
    """Of a token of one picture with all of `other`'s, (T,); None is the reader."""
    config = explanation.loaded.config
    query = features.feature(explanation.trace.tokens[0], 0 if token is None and config.pool == "cls" else token, config.prefix)
    return features.similarity(query, other.trace.tokens[0]).numpy()


def _coloured(explanations: list[Explanation], part: str) -> features.Colours:
    patches: list[Tensor] = [one.trace.tokens[0, one.loaded.config.prefix:] for one in explanations]
    return features.colours(patches, [one.grid for one in explanations], part)


@torch.inference_mode()
def _lengths(explanation: Explanation) -> Tensor:
    return features.norms(explanation.loaded.model, explanation.embedded())


def _over_tokens(explanation: Explanation, patches: np.ndarray) -> np.ndarray:
    """A map over patches (rows, cols) as one over tokens (T,), 0 on those before the patches."""
    return np.concatenate((np.zeros(explanation.prefix_attention.shape[2]), patches.ravel()))


def _pictures(filters: Any) -> list[str]:
    from PIL import Image

    shades = np.round(filters.detach().numpy().clip(0, 1) * 255).astype(np.uint8)
    return [data_url(Image.fromarray(one.squeeze(2) if one.shape[2] == 1 else one), "PNG") for one in shades]

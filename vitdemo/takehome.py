"""What a person takes home from a result: a figure of the map that is shown, all heads in one sheet, the numbers, or a report."""

import io
import threading
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from vitdemo import answers, figures, filenames
from vitdemo.explain import Explanation
from vitdemo.payload import prefix_names
from vitdemo.report import report

KINDS = ("png", "svg", "sheet", "npz", "report")
DOTS = 160                                      # per inch of a figure
UNITS = {"relevance": "relevance", "occlusion": "fall of the probability", "similarity": "cosine similarity", "norms": "length", "colours": ""}
FEATURES = ("similarity", "colours", "norms")   # views of what the model makes of the patches
STEM = 40                                       # letters that the class takes in a file's name, so that the rest of it is still told
ONE_AT_A_TIME = threading.Lock()                # matplotlib's settings are the whole process's


class Taken(NamedTuple):
    """A file to be saved."""

    name: str
    type: str                       # its media type
    data: bytes


def take(explanation: Explanation, kind: str, view: dict[str, Any], *, opacity: float = 0.65, colours: str = figures.COLOURS,
         own_scale: bool = False, about: str = "") -> Taken:
    """The file of one of KINDS; `view` says which map is meant (see `answers.map_of`), the rest how it is drawn. Raises ValueError for
    another kind."""
    if kind not in KINDS:
        raise ValueError(f"what can be taken home is one of {', '.join(KINDS)}, not {kind!r}")
    stem = _safe(explanation.top(1)[0][0] if explanation.classes else explanation.model)
    if kind == "report":
        return Taken(f"{stem}-report.html", "text/html", report(explanation, about=about).encode())
    if kind == "npz":
        buffer = io.BytesIO()
        save_maps(explanation, buffer, view=view)
        return Taken(f"{stem}-maps.npz", "application/octet-stream", buffer.getvalue())
    if kind == "sheet":
        figure = figures.layers_by_heads(explanation.attention, prefix=explanation.prefix_attention, colours=colours, own_scale=own_scale,
                                         picture=explanation.picture, geometry=explanation.geometry,
                                         title=f"{explanation.model}: what {explanation.reader} reads in every layer and head")
        return Taken(f"{stem}-all-heads.png", "image/png", _drawn(figure, "png"))
    figure = view_figure(explanation, view, opacity=opacity, colours=colours, own_scale=own_scale)
    return Taken(f"{stem[:STEM].strip('-')}-{_view_name(explanation, view)}.{kind}", "image/png" if kind == "png" else "image/svg+xml", _drawn(figure, kind))


def view_figure(explanation: Explanation, view: dict[str, Any], *, opacity: float = 0.65, colours: str = figures.COLOURS,
                own_scale: bool = False) -> Any:
    """The map that a view names as a matplotlib Figure: over the picture, with title, scale, colour bar and the even share."""
    vector = answers.map_of(explanation, view)
    patches, prefix = explanation.patches(vector), explanation.prefix_attention.shape[2]
    low, high = 0.0, float(patches.max())
    if view["kind"] in FEATURES and own_scale:
        low = float(patches.min())
    elif view["kind"] == "similarity":
        low, high = -1.0, 1.0
    shared = view["kind"] == "attention" and not own_scale and isinstance(view["head"], int)      # joined heads: a scale of their own, as in the viewer
    if shared:
        rows = explanation.read_by(view["token"]) if view["direction"] == "read_by" else explanation.reads(view["token"])
        high = float(rows[view["layer"], :, prefix:].max())
    weights = view["kind"] in ("attention", "rollout", "mean attention")
    top = f"the model says {explanation.top(1)[0][0]}, {explanation.top(1)[0][1]:.0%}" if explanation.classes else "a model without classes"
    scale = f"one scale for all heads of layer {view['layer'] + 1}" if shared else "scale of this map"
    if view["kind"] in FEATURES:
        scale = _of_features(explanation, view, vector)
    foot = ", ".join(filter(None, (scale, _beside(view, vector, prefix)))) + f"\ncolours laid over the picture at {opacity:.0%}"
    chosen = view["token"] - prefix if view["kind"] in ("attention", "similarity") and view["token"] is not None else -1
    drawn = np.moveaxis(patches, 0, -1) if view["kind"] == "colours" else patches
    return figures.one_map(explanation.picture, explanation.geometry, drawn, low=low, high=high, uniform=explanation.uniform if weights else None,
                           mark=divmod(chosen, explanation.grid[1]) if chosen >= 0 else None,
                           opacity=opacity, colours=colours, title=view_title(explanation, view), subtitle=f"{explanation.model}: {top}",
                           unit="attention weight" if weights else UNITS[view["kind"]], foot=foot)


def _beside(view: dict[str, Any], vector: np.ndarray, prefix: int) -> str:
    """What a map over the patches does not show."""
    if view["kind"] in ("relevance", *FEATURES):
        return ""
    if view["kind"] == "occlusion":
        return "where hiding makes it more probable, 0" if vector.min() < 0 else ""
    if view["kind"] == "attention" and view["head"] in ("min", "max"):
        return ""                                                           # the least or most of several heads is no row, and has no sum
    if view["kind"] == "attention" and view["direction"] == "read_by":
        return (f"all readers together give it {vector.sum():.2f} (an even share would be 1.00), "
                f"{vector[:prefix].sum():.2f} of it from tokens that are no patch")
    return f"{vector[:prefix].sum():.1%} on tokens that are no patch"


def _of_features(explanation: Explanation, view: dict[str, Any], vector: np.ndarray) -> str:
    """What the numbers or colours of a view of features are, and those of the tokens that are no patch."""
    if view["kind"] == "colours":
        shares = " and ".join(f"{share:.0%}" for share in answers.colours(explanation, view["part"])["explained"])
        return f"red, green and blue: the first three principal components, which hold {shares} of how these patches differ"
    names = [f"{name} {value:.2f}" for name, value in zip(prefix_names(explanation.loaded.config), vector)][:6]
    return ", ".join(["cosines of last hidden states" if view["kind"] == "similarity" else "lengths before the last norm", *names])


def view_title(explanation: Explanation, view: dict[str, Any]) -> str:
    """A view in words."""
    if view["kind"] == "rollout":
        return f"Rollout up to layer {view['up_to']}, {view['fusion']} of the heads" + (f", weakest {view['discard']:.0%} discarded" if view["discard"] else "")
    if view["kind"] == "relevance":
        return f"What speaks for {explanation.classes[view['klass']]}"
    if view["kind"] == "occlusion":
        return f"What {explanation.classes[view['klass']]} loses when a patch is hidden"
    if view["kind"] == "mean attention":
        return "Mean attention of all layers and heads"
    if view["kind"] == "similarity":
        return f"Similarity to {explanation.reader if view['token'] is None else token_name(explanation, view['token'])}"
    if view["kind"] == "norms":
        return f"Length of tokens after layer {view['layer'] + 1}"
    if view["kind"] == "colours":
        return "Feature colours" + (f" of the {view['part']}" if view["part"] != "all" else "")
    head = f"head {view['head'] + 1}" if isinstance(view["head"], int) else f"{view['head']} of the heads"
    token = explanation.reader if view["token"] is None else token_name(explanation, view["token"])
    return f"Layer {view['layer'] + 1}, {head} ({f'who reads {token}' if view['direction'] == 'read_by' else f'what {token} reads'})"


def token_name(explanation: Explanation, token: int) -> str:
    prefix, cols = explanation.prefix_attention.shape[2], explanation.grid[1]
    if token >= prefix:
        return f"the patch in row {(token - prefix) // cols + 1}, column {(token - prefix) % cols + 1}"
    name = prefix_names(explanation.loaded.config)[token]
    return name if name.startswith("register") else f"the {name}"


def _view_name(explanation: Explanation, view: dict[str, Any]) -> str:
    """A view as part of a file's name; whose map it is stands there unless it is what the reader reads."""
    title, _, whose = view_title(explanation, view).partition(" (")
    usual = whose == f"what {explanation.reader} reads)"
    return _safe(title if usual else f"{title} {whose.replace('the patch in ', '')}")


def save_maps(explanation: Explanation, file: Any, *, view: dict[str, Any] | None = None) -> None:
    """The numbers as a NumPy file (a path or a binary file): `attention` (layers, heads, rows, cols), `prefix_attention` (layers, heads,
    prefix), `probabilities`, `classes`, `lens` (layers, classes), `rollout` (rows, cols), head facts (layers, heads), `relevance` (rows,
    cols) of the first class where there is one, and with a `view` `shown` (rows, cols), the map it names: for colours three (3, rows, cols)."""
    more = {name: values[0].numpy() for name, values in explanation.facts()._asdict().items() if name != "prefix"}
    if explanation.classes:
        more["relevance"] = explanation.patches(explanation.relevance(int(explanation.probabilities.argmax())))
    if view is not None:
        more["shown"] = explanation.patches(answers.map_of(explanation, view))
    np.savez_compressed(file, attention=explanation.attention, prefix_attention=explanation.prefix_attention, probabilities=explanation.probabilities,
                        classes=np.array(explanation.classes, str), lens=explanation.lens, rollout=explanation.patches(explanation.rollout()), **more)


def _safe(text: str) -> str:
    """Text as part of a figure's file name."""
    return filenames.plain(text, 60) or "picture"


def _drawn(figure: Any, kind: str) -> bytes:
    """A figure as a file; in an SVG words are words, which can be searched and read aloud, and the same figure gives the same file."""
    buffer = io.BytesIO()
    with ONE_AT_A_TIME, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vitdemo"}):
        figure.savefig(buffer, format=kind, dpi=DOTS, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()

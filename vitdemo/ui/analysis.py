"""One picture through one model, as a visitor asked for it: the viewer's value, or one sentence about why there is none."""

import logging
from typing import Any

import gradio as gr
import torch
from PIL import Image

from vitdemo import data, looking, words
from vitdemo.checkpoint import Loaded
from vitdemo.film import pixels
from vitdemo.images import PictureError
from vitdemo.payload import payload
from vitdemo.runs import RunError
from vitdemo.ui import fields, links, viewer
from vitdemo.ui.look import Look
from vitdemo.ui.models import BOX, EXAMPLES, Models
from vitdemo.ui.results import Results

log = logging.getLogger(__name__)
OPENING = "cat"                                 # the example that is analysed before anybody asks
NATIVE = {"cifar10": ((32, 32), 3), "mnist": ((28, 28), 1)}                 # (rows, cols) and channels of the known data sets' pictures


def examples() -> list[tuple[str, str]]:
    """(path, caption) of the example pictures: the one the page opens with, the others, and those of things the model does not know."""
    found = sorted(EXAMPLES.glob("*.jpg"), key=lambda path: (path.stem != OPENING, path.stem.startswith("out-"), path.name))
    return [(str(path), path.stem.removeprefix("out-").rstrip("0123456789-").replace("-", " ")) for path in found]


def through(look: Look, models: Models) -> Loaded:
    """The model that a visitor looks through, prepared as they want it. Raises RunError or LookError with a sentence."""
    return looking.at(models.get(look.model), look.side, look.fit, look.part)


def analyse(picture: str | Image.Image, look: Look, models: Models, results: Results, *, truth: str = "", stays: bool = False) -> dict[str, Any]:
    """The viewer's value for one picture: an answer, kept in `results` for what is asked about it later, or one sentence about why there
    is none."""
    try:
        loaded = models.get(look.model)
        result = models.explain(picture, loaded, side=look.side, fit=look.fit, part=look.part)
        key = results.keep(result, stays=stays, truth=truth, part=look.part)
        value = payload(results.get(key).explanation, key=key, about=models.describe(look.model, loaded), truth=truth)
        named = links.names(picture, look.model)
        return {**value, "own_model": look.model != BOX, "link": {**named, "size": look.side, "fit": look.fit, "part": bool(look.part)},
                "look": [look.model, look.side, look.fit, look.part]}
    except (PictureError, RunError, looking.LookError) as error:
        return viewer.message(str(error), failed=True)
    except Exception:
        return viewer.message(fields.unexpected(log, "analysis", words.UNEXPECTED), failed=True)


def random_test_picture(split: data.Part, generator: torch.Generator | None = None) -> tuple[Image.Image, str]:
    """One picture of a test part and its true label."""
    index = int(torch.randint(len(split.split), (1,), generator=generator))
    return pixels(split.split.images[index]), split.classes[int(split.split.labels[index])]


def explain_for_api(picture: str | None, model: str, models: Models) -> dict[str, Any]:
    """Classify a picture and return plain lists: `classes`, `probabilities`, `grid` (rows, cols), `attention` of the class token (layers,
    heads, rows, cols), `prefix_attention` (layers, heads, prefix tokens): per head they sum to 1; and `notes` about how the picture was read.
    `model` is "box" for the model in the box, "tiny" for the tiny one beside it, "zoo:" and the name of a published model that is on the server's disk, or the id of a training
    run of yours."""
    if picture is None:
        raise gr.Error(words.NO_PICTURE, print_exception=False)
    if not isinstance(model, str):
        raise gr.Error(words.NO_SUCH_MODEL, print_exception=False)
    try:
        result = models.explain(picture, models.get(model or BOX))
    except PictureError as error:
        raise gr.Error(str(error), print_exception=False) from None
    except RunError:
        raise gr.Error(words.NO_SUCH_MODEL, print_exception=False) from None
    return {"classes": list(result.classes), "probabilities": result.probabilities.tolist(), "grid": list(result.grid),
            "attention": result.attention.tolist(), "prefix_attention": result.prefix_attention.tolist(), "notes": list(result.notes)}


def look_for(link: links.Link, models: Models) -> tuple[Look, str]:
    """Through which model a link looks, and a model that it names and that must be fetched first ("" if none): that is the visitor's to ask
    for. A model that is not there and a size that it does not have are left out."""
    model = link.model or BOX
    try:
        if not models.here(model):
            return Look(), model
        loaded = models.get(model)
    except RunError:
        return Look(), ""
    _, *others = looking.sides(loaded) or (None,)
    return Look(model, link.size if link.size in others else None, link.fit), ""


def test_picture(source: str) -> tuple[Image.Image, str]:
    """A random test picture of a known data set and its true label. Raises DataError or RunError where there is none on this computer."""
    if not has_test_pictures(source):
        raise RunError(words.NO_TEST_PICTURES)
    size, channels = NATIVE[source]
    return random_test_picture(data.load_part(source, "test", size=size, channels=channels))


def has_test_pictures(source: str) -> bool:
    """Whether there are test pictures of that data set on this computer."""
    return source in NATIVE and data.is_local(source)

"""The Explore tab: a picture in, and what the model makes of it out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
import torch
from PIL import Image

from vitdemo import data, settings
from vitdemo.explain import explain
from vitdemo.film import pixels
from vitdemo.images import PictureError
from vitdemo.payload import payload
from vitdemo.runs import RunError
from vitdemo.ui import fields, viewer, words
from vitdemo.ui.models import EXAMPLES, Models
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results
from vitdemo.ui.upload import UploadedImage
from vitdemo.ui.viewer import Viewer

log = logging.getLogger(__name__)
OPENING = "cat"                                 # the example that is analysed before anybody asks
NATIVE = {"cifar10": ((32, 32), 3), "mnist": ((28, 28), 1)}                 # (rows, cols) and channels of the known data sets' pictures
INFER = {"concurrency_id": "infer", "concurrency_limit": 2}


@dataclass(frozen=True)
class Explore:
    """The tab's parts that others wire up as well."""

    viewer: Viewer
    picture: UploadedImage
    run: gr.State                   # id of the run whose model is looked through, or None for the one in the box
    back: gr.Button
    random_test: gr.Button
    beside_box: Callable[[str | None, str | None], Any]     # (picture, run) -> the viewer's value: that run's model beside the one in the box


def examples() -> list[tuple[str, str]]:
    """(path, caption) of the example pictures: the one the page opens with, the others, and those of things the model does not know."""
    found = sorted(EXAMPLES.glob("*.jpg"), key=lambda path: (path.stem != OPENING, path.stem.startswith("out-"), path.name))
    return [(str(path), path.stem.removeprefix("out-").rstrip("0123456789-").replace("-", " ")) for path in found]


def analyse(picture: str | Image.Image, run_id: str | None, models: Models, results: Results, *, truth: str = "", stays: bool = False) -> dict[str, Any]:
    """The viewer's value for one picture: an answer, kept in `results` for what is asked about it later, or one sentence about why there
    is none."""
    try:
        loaded = models.get(run_id)
        key = results.keep(explain(picture, loaded), stays=stays)
        value = payload(results.get(key).explanation, key=key, about=models.describe(run_id, loaded), truth=truth)
        return {**value, "own_model": bool(run_id)}                         # what the model in the box may be set beside
    except (PictureError, RunError) as error:
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
    `model` is "box" for the model in the box, or the id of a training run of yours."""
    if picture is None:
        raise gr.Error(words.NO_PICTURE, print_exception=False)
    if not isinstance(model, str):
        raise gr.Error(words.NO_SUCH_MODEL, print_exception=False)
    try:
        result = explain(picture, models.get(None if model in ("", "box") else model))
    except PictureError as error:
        raise gr.Error(str(error), print_exception=False) from None
    except RunError:
        raise gr.Error(words.NO_SUCH_MODEL, print_exception=False) from None
    return {"classes": list(result.classes), "probabilities": result.probabilities.tolist(), "grid": list(result.grid),
            "attention": result.attention.tolist(), "prefix_attention": result.prefix_attention.tolist(), "notes": list(result.notes)}


def build(models: Models) -> Explore:
    """Lay out the tab and wire it. Called inside `gr.Blocks`."""
    shown = examples()
    results = Results()
    questions = Questions(results, models.box)

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        return questions.ask(request)

    run = gr.State(None)
    with gr.Row(elem_classes="vd-explore"):
        with gr.Column(scale=1, min_width=300):
            picture = UploadedImage(shown[0][0] if shown else None, label="Your picture", sources=["upload", "clipboard"], buttons=[], height=300,
                                    placeholder=words.UPLOAD, alt_text="your picture", elem_id="vd-picture")
            gr.Markdown(words.PRIVACY, elem_classes="vd-small")
            gallery = gr.Gallery(shown, label=words.EXAMPLES, columns=4, allow_preview=False, interactive=False, buttons=[],
                                 object_fit="cover", elem_id="vd-examples")
            random_test = gr.Button(words.RANDOM_TEST, size="md", visible=data.is_local("cifar10"))
        with gr.Column(scale=3, min_width=320, elem_classes="vd-first"):
            back = gr.Button(words.BACK_TO_BOX, visible=False, size="sm", elem_id="vd-back")
            first = analyse(shown[0][0], None, models, results, stays=True) if shown else viewer.message()
            view = Viewer(first, ask=ask, largest=settings.read().upload_megabytes * 10**6, elem_id="vd-viewer")

    def on_change(path: str | None, run_id: str | None) -> Any:
        return gr.skip() if path is None else analyse(path, run_id, models, results)

    def again(path: str | None, run_id: str | None) -> Any:
        """The same picture through another model; the first example where there is no picture."""
        if path is None and not shown:
            return viewer.message()
        return analyse(path or shown[0][0], run_id, models, results)

    def beside_box(path: str | None, run_id: str | None) -> Any:
        return {**again(path, run_id), "beside": "box"}

    def on_example(event: gr.SelectData) -> Any:
        index = event.index
        return shown[index][0] if isinstance(index, int) and 0 <= index < len(shown) else gr.skip()

    def on_random(run_id: str | None) -> tuple[Any, None]:
        try:
            source = models.source(run_id)
            if source not in NATIVE or not data.is_local(source):
                return viewer.message(words.NO_TEST_PICTURES, failed=True), None
            size, channels = NATIVE[source]
            picked, label = random_test_picture(data.load_part(source, "test", size=size, channels=channels))
        except (data.DataError, RunError) as error:
            return viewer.message(str(error), failed=True), None
        return analyse(picked, run_id, models, results, truth=label), None

    changed = picture.change(on_change, [picture, run], view, show_progress="minimal", api_visibility="private", **INFER)
    changed.failure(lambda: viewer.message(words.NOT_AN_UPLOAD, failed=True), None, view, api_visibility="private")
    picture.clear(viewer.message, None, view, api_visibility="private", queue=False)
    gallery.select(on_example, None, picture, api_visibility="private", show_progress="hidden")
    random_test.click(on_random, run, [view, picture], api_visibility="private", **INFER)
    back.click(lambda: (None, gr.Button(visible=False)), None, [run, back], api_visibility="private").then(
        again, [picture, run], view, api_visibility="private", **INFER)
    _public_endpoint(models)
    return Explore(view, picture, run, back, random_test, beside_box)


def _public_endpoint(models: Models) -> None:
    """`/explain` for gradio_client: the only documented endpoint. Its parts are never seen."""
    with gr.Row(visible=False):
        picture = UploadedImage(label="picture")
        model = gr.Textbox("box", label="model")
        result = gr.JSON(label="explanation")
        ask = gr.Button()

    def explain_picture(picture: str | None, model: str = "box") -> dict[str, Any]:
        return explain_for_api(picture, model, models)

    explain_picture.__doc__ = explain_for_api.__doc__
    ask.click(explain_picture, [picture, model], result, api_name="explain", **INFER)



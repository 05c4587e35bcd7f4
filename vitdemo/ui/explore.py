"""The Explore tab: a picture in, and what the model makes of it out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gradio as gr
import torch
from PIL import Image

from vitdemo import data, looking, settings
from vitdemo.checkpoint import Loaded
from vitdemo.film import pixels
from vitdemo.images import PictureError
from vitdemo.payload import payload
from vitdemo.runs import RunError
from vitdemo.ui import fair, fields, links, viewer, words
from vitdemo.ui.model_view import ModelView
from vitdemo.ui.models import BOX, EXAMPLES, Models
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results
from vitdemo.ui.upload import UploadedImage
from vitdemo.ui.viewer import Viewer

log = logging.getLogger(__name__)
OPENING = "cat"                                 # the example that is analysed before anybody asks
NATIVE = {"cifar10": ((32, 32), 3), "mnist": ((28, 28), 1)}                 # (rows, cols) and channels of the known data sets' pictures
INFER = {"concurrency_id": "infer", "concurrency_limit": 2}
AT_ONCE = {"queue": False, "api_visibility": "private"}                     # what takes no time, and what must be said where the queue is full


class Look(NamedTuple):
    """Through which model a visitor looks, and how."""

    model: str = BOX                # an id that `Models` knows
    side: int | None = None         # of the square the model gets, in pixels; None is the model's own
    whole: bool = False             # the whole picture at its own shape, instead of its centre


@dataclass(frozen=True)
class Explore:
    """The tab's parts that others wire up as well."""

    viewer: Viewer
    picture: UploadedImage
    look: gr.State                  # a Look
    bar: ModelView
    random_test: gr.Button
    beside_box: Callable[[str | None, Look], Any]           # (picture, look) -> the viewer's value: that model beside the one in the box


def examples() -> list[tuple[str, str]]:
    """(path, caption) of the example pictures: the one the page opens with, the others, and those of things the model does not know."""
    found = sorted(EXAMPLES.glob("*.jpg"), key=lambda path: (path.stem != OPENING, path.stem.startswith("out-"), path.name))
    return [(str(path), path.stem.removeprefix("out-").rstrip("0123456789-").replace("-", " ")) for path in found]


def through(look: Look, models: Models) -> Loaded:
    """The model that a visitor looks through, prepared as they want it. Raises RunError or ValueError with a sentence."""
    return looking.at(models.get(look.model), look.side, look.whole)


def analyse(picture: str | Image.Image, look: Look, models: Models, results: Results, *, truth: str = "", stays: bool = False) -> dict[str, Any]:
    """The viewer's value for one picture: an answer, kept in `results` for what is asked about it later, or one sentence about why there
    is none."""
    try:
        loaded = through(look, models)
        key = results.keep(models.explain(picture, loaded), stays=stays)
        value = payload(results.get(key).explanation, key=key, about=models.describe(look.model, loaded), truth=truth)
        named = links.names(picture, look.model)
        return {**value, "own_model": look.model != BOX, "link": {**named, "size": look.side, "whole": look.whole}}
    except (PictureError, RunError, looking.SideError) as error:
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
    `model` is "box" for the model in the box, "zoo:" and the name of a published model that is on the server's disk, or the id of a training
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


def look_of(data: Any) -> Look:
    """What the model bar says was chosen, checked. Raises RunError for what it never says."""
    model, side, whole = (data.get(name) for name in ("model", "side", "whole")) if isinstance(data, dict) else (None, None, None)
    if not isinstance(model, str) or not (side is None or type(side) is int) or not isinstance(whole, bool):
        raise RunError(words.NO_SUCH_MODEL)
    return Look(model, side, whole)


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
    return Look(model, link.size if link.size in others else None, bool(link.whole)), ""


def build(models: Models, ask_models: Callable[[dict[str, Any]], dict[str, Any]], tabs: gr.Tabs) -> Explore:
    """Lay out the tab and wire it; `ask_models` answers the model bar, `tabs` are the page's. Called inside `gr.Blocks`."""
    shown = examples()
    results = Results(stock=models.stock)
    questions = Questions(results, models.box)

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        return questions.ask(request)

    def link(request: dict[str, Any]) -> dict[str, Any]:
        """What the address asks for, `opens` where the server has something to do for it; the picture and the model are always named."""
        asked = links.asked(request, models)
        opens = bool(asked.opens) or asked.example not in (None, OPENING) or asked.model not in (None, BOX) or bool(asked.size or asked.whole)
        return {"model": BOX, "example": OPENING, **asked.to_json(), "opens": opens}

    look = gr.State(Look())
    with gr.Row(elem_classes="vd-explore"):
        with gr.Column(scale=1, min_width=300):
            picture = UploadedImage(shown[0][0] if shown else None, label="Your picture", sources=["upload", "clipboard"], buttons=[], height=300,
                                    placeholder=words.UPLOAD, alt_text="your picture", elem_id="vd-picture")
            gr.Markdown(words.PRIVACY, elem_classes="vd-small")
            gallery = gr.Gallery(shown, label=words.EXAMPLES, columns=4, allow_preview=False, interactive=False, buttons=[],
                                 object_fit="cover", elem_id="vd-examples")
            random_test = gr.Button(words.RANDOM_TEST, size="md", visible=data.is_local("cifar10"))
        with gr.Column(scale=3, min_width=320, elem_classes="vd-first"):
            bar = ModelView(ask=ask_models, elem_id="vd-model")
            first = analyse(shown[0][0], Look(), models, results, stays=True) if shown else viewer.message()
            view = Viewer(first, ask=ask, link=link, largest=settings.read().upload_megabytes * 10**6, elem_id="vd-viewer")

    def on_change(path: str | None, look: Look) -> dict[str, Any]:
        """An answer for the input; a cleared one takes its own answer along, also one that was on its way."""
        return {**viewer.message(), "cleared": True} if path is None else {**analyse(path, look, models, results), "input": True}

    def again(path: str | None, look: Look) -> Any:
        """The same picture through another model; the first example where there is no picture."""
        if path is None and not shown:
            return viewer.message()
        return {**analyse(path or shown[0][0], look, models, results), "input": path is not None}

    def beside_box(path: str | None, look: Look) -> Any:
        return {**again(path, look), "beside": "box"}

    def on_model(path: str | None, event: gr.EventData) -> tuple[Any, Any, Any, Any]:
        serial = event._data.get("serial") if isinstance(event._data, dict) else None
        echo = {"echo": serial} if type(serial) is int else gr.skip()       # the bar waits for it before it says what was chosen next
        try:
            look = look_of(event._data)
            has_tests = gr.Button(visible=_has_test_pictures(models.source(look.model)))
        except RunError as error:
            return gr.skip(), gr.skip(), viewer.message(str(error), failed=True), echo
        return look, has_tests, again(path, look), echo

    def on_link(event: gr.EventData) -> tuple[Any, ...]:
        """The page as a link wants it. A new picture is analysed because it is new, and only then."""
        asked = links.asked(event._data, models)
        look, offer = look_for(asked, models)
        new = asked.example not in (None, OPENING)
        value = gr.skip() if new else {**(first if look == Look() else again(None, look)), "opened": True}
        bar_value = {"offer": offer} if offer else look._asdict() if look != Look() else gr.skip()
        return (str(links.examples()[asked.example]) if new else gr.skip(), look, bar_value,
                gr.Button(visible=_has_test_pictures(models.source(look.model))), value, gr.Tabs(selected=asked.opens or "explore"))

    def on_restart(event: gr.EventData) -> tuple[Any, ...]:
        """A page that is older than this server: its model looks again, an example is looked at anew; a picture of its own leaves the input,
        as the server has it no more, and what is shown of it stays."""
        asked, told = event._data if isinstance(event._data, dict) else {}, gr.skip()
        try:
            look = look_of(asked)
            through(look, models)
        except ValueError:                                                  # that model is no longer here
            look, told = Look(), Look()._asdict()
        example = links.examples().get(str(asked.get("example")))
        return example and str(example), look, analyse(str(example), look, models, results) if example else gr.skip(), told

    def on_example(event: gr.SelectData) -> tuple[Any, Any]:
        index = event.index
        return shown[index][0] if isinstance(index, int) and 0 <= index < len(shown) else gr.skip(), gr.skip()

    def on_random(look: Look) -> tuple[Any, None]:
        try:
            source = models.source(look.model)
            if not _has_test_pictures(source):
                return viewer.message(words.NO_TEST_PICTURES, failed=True), None
            size, channels = NATIVE[source]
            picked, label = random_test_picture(data.load_part(source, "test", size=size, channels=channels))
        except (data.DataError, RunError) as error:
            return viewer.message(str(error), failed=True), None
        return analyse(picked, look, models, results, truth=label), None

    changed = picture.change(on_change, [picture, look], view, show_progress="minimal", api_visibility="private", **INFER)
    changed.failure(fair.refusal, picture, view, preprocess=False, **AT_ONCE)
    picture.clear(viewer.message, None, view, **AT_ONCE)
    gallery.select(on_example, None, [picture, view], show_progress="hidden", **AT_ONCE)          # the viewer would say what went wrong
    picked = random_test.click(on_random, look, [view, picture], api_visibility="private", **INFER)
    picked.failure(fair.refusal, None, view, **AT_ONCE)
    bar.select(on_model, picture, [look, random_test, view, bar], trigger_mode="multiple", show_progress="minimal", api_visibility="private", **INFER)
    bar.restart(on_restart, None, [picture, look, view, bar], trigger_mode="multiple", show_progress="hidden", **AT_ONCE)
    linked = view.apply(on_link, None, [picture, look, bar, random_test, view, tabs], show_progress="hidden", api_visibility="private", **INFER)
    linked.failure(fair.refusal, None, view, **AT_ONCE)
    _public_endpoint(models)
    return Explore(view, picture, look, bar, random_test, beside_box)


def _has_test_pictures(source: str) -> bool:
    return source in NATIVE and data.is_local(source)


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



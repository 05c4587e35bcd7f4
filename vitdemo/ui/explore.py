"""The Explore tab: a picture in, and what the model makes of it out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vitdemo import data, settings, words
from vitdemo.runs import RunError
from vitdemo.ui import fair, links, viewer
from vitdemo.ui.analysis import OPENING, analyse, examples, explain_for_api, has_test_pictures, look_for, test_picture, through
from vitdemo.ui.look import Look, PageLook, look_of
from vitdemo.ui.model_view import ModelView
from vitdemo.ui.models import BOX, Models
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Gone, Results, tidying
from vitdemo.ui.upload import UploadedImage, folder
from vitdemo.ui.viewer import Viewer

INFER = {"concurrency_id": "infer", "concurrency_limit": 2}
AT_ONCE = {"queue": False, "api_visibility": "private"}                     # what takes no time, and what must be said where the queue is full


@dataclass(frozen=True)
class Explore:
    """The tab's parts that others wire up as well."""

    viewer: Viewer
    picture: UploadedImage
    look: PageLook
    bar: ModelView
    random_test: gr.Button
    beside_box: Callable[[str | None, Look], Any]           # (picture, look) -> the viewer's value: that model beside the one in the box


class Handlers:
    """What the tab does when something is chosen; each returns values for the parts named with it."""

    def __init__(self, models: Models, results: Results):
        self.shown = examples()
        self._models, self._results = models, results
        self.first = self._analysed(self.shown[0][0], Look(), stays=True) if self.shown else viewer.message()      # what the page opens with

    def picture(self, path: str | None, look: Look) -> dict[str, Any]:
        """-> viewer: an answer for the input; a cleared one takes its own answer along, also one that was on its way."""
        return {**viewer.message(), "cleared": True} if path is None else {**self._analysed(path, look), "input": folder(path)}

    def again(self, path: str | None, look: Look) -> dict[str, Any]:
        """-> viewer: the same picture through another model; the first example where there is no picture."""
        if path is None and not self.shown:
            return viewer.message()
        return {**self._analysed(path or self.shown[0][0], look), "input": path and folder(path)}

    def same(self, key: Any, look: Look) -> dict[str, Any]:
        """-> viewer: the picture that is shown under `key` through another model, where the input is empty."""
        try:
            kept = self._results.get(key) if isinstance(key, str) and key else None
        except Gone:
            return viewer.message(words.NOT_HELD)
        return {**self._analysed(kept.explanation.original, look, truth=kept.truth), "input": None} if kept else viewer.message()

    def beside_box(self, path: str | None, look: Look) -> dict[str, Any]:
        """-> viewer: that model on the picture, beside the model in the box."""
        return {**self.again(path, look), "beside": "box"}

    def model(self, path: str | None, event: gr.EventData) -> tuple[Any, Any, Any, Any]:
        """-> look, random_test, viewer, bar: what the model bar chose."""
        serial = event._data.get("serial") if isinstance(event._data, dict) else None

        def echo(**ours: Any) -> dict[str, Any]:                            # the bar waits for it before it says what was chosen next
            return {"echo": serial, **ours} if type(serial) is int else gr.skip()

        try:
            look = look_of(event._data)
            has_tests = gr.Button(visible=has_test_pictures(self._models.source(look.model)))
        except RunError as error:
            return gr.skip(), gr.skip(), viewer.message(str(error), failed=True), echo()
        value = self.again(path, look) if path else self.same(event._data.get("key"), look)
        # the next picture has other parts; the bar is told which answer is its own
        return look._replace(part=None), has_tests, value, echo(key=value.get("key"))

    def link(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the address asks for, `opens` where the server has something to do for it; the picture and the model are always named."""
        asked = links.asked(request, self._models)
        opens = bool(asked.opens) or asked.example not in (None, OPENING) or asked.model not in (None, BOX) or bool(asked.size or asked.fit)
        return {"model": BOX, "example": OPENING, **asked.to_json(), "opens": opens}

    def linked(self, event: gr.EventData) -> tuple[Any, ...]:
        """-> look, bar, random_test, viewer, tabs: as a link wants them. Its picture, if it is another one, the viewer brings, which knows whether
        one was brought meanwhile; it is analysed because it is new, and only then."""
        asked = links.asked(event._data, self._models)
        look, offer = look_for(asked, self._models)
        new = asked.example not in (None, OPENING)
        value = {"bring": asked.example} if new else self.first if look == Look() else self.again(None, look)
        bar = {"offer": offer} if offer else {**look._asdict(), "linked": True} if look != Look() else gr.skip()
        tests = gr.Button(visible=has_test_pictures(self._models.source(look.model)))
        return look, bar, tests, {**value, "opened": True}, gr.Tabs(selected=asked.opens or "explore")

    def brought(self, event: gr.EventData) -> tuple[Any, Any]:
        """-> picture, viewer: the example of that name; the viewer stays as it is."""
        found = links.examples().get(str(event._data.get("example"))) if isinstance(event._data, dict) else None
        return str(found) if found else gr.skip(), gr.skip()

    def restarted(self, event: gr.EventData) -> tuple[Any, ...]:
        """-> picture, look, viewer, bar, of a page that is older than this server: its model looks again, an example is looked at anew; a
        picture of its own leaves the input, as the server has it no more, and what is shown of it stays."""
        asked, told = event._data if isinstance(event._data, dict) else {}, gr.skip()
        try:
            look = look_of(asked)
            through(look, self._models)
        except ValueError:                                                  # that model is no longer here
            look, told = Look(), Look()._asdict()
        example = links.examples().get(str(asked.get("example")))
        return example and str(example), look._replace(part=None), self._analysed(str(example), look) if example else gr.skip(), told

    def example(self, event: gr.SelectData) -> tuple[Any, Any]:
        """-> picture, viewer: the example that was chosen; the viewer stays as it is."""
        index = event.index
        return self.shown[index][0] if isinstance(index, int) and 0 <= index < len(self.shown) else gr.skip(), gr.skip()

    def random_test(self, look: Look) -> dict[str, Any]:
        """-> viewer: a test picture of the data that the model learned from, with its true label; the page empties its input then."""
        try:
            picked, label = test_picture(self._models.source(look.model))
        except (data.DataError, RunError) as error:
            return {**viewer.message(str(error), failed=True), "random": True}
        return {**self._analysed(picked, look, truth=label), "random": True}

    def _analysed(self, picture: Any, look: Look, **settings: Any) -> dict[str, Any]:
        return analyse(picture, look, self._models, self._results, **settings)


def build(models: Models, ask_models: Callable[[dict[str, Any]], dict[str, Any]], tabs: gr.Tabs) -> Explore:
    """Lay out the tab and wire it; `ask_models` answers the model bar, `tabs` are the page's. Called inside `gr.Blocks`."""
    results = Results(stock=models.stock)
    tidying(results)
    questions, on = Questions(results, models.box), Handlers(models, results)

    def ask(request: dict[str, Any]) -> dict[str, Any]:                     # Gradio goes by the names of plain functions
        return questions.ask(request)

    def link(request: dict[str, Any]) -> dict[str, Any]:
        return on.link(request)

    def entire(request: dict[str, Any]) -> dict[str, Any]:
        return questions.ask({"question": "picture", "key": request.get("key") if isinstance(request, dict) else None})

    look = PageLook(Look(), visible=False)
    with gr.Row(elem_classes="vd-explore"):
        with gr.Column(scale=1, min_width=300):
            picture = UploadedImage(on.shown[0][0] if on.shown else None, label="Your picture", sources=["upload", "clipboard"], buttons=[], height=300,
                                    placeholder=words.UPLOAD, alt_text="your picture", elem_id="vd-picture")
            gr.Markdown(words.PRIVACY, elem_classes="vd-small")
            gallery = gr.Gallery(on.shown, label=words.EXAMPLES, columns=4, allow_preview=False, interactive=False, buttons=[],
                                 object_fit="cover", elem_id="vd-examples")
            random_test = gr.Button(words.RANDOM_TEST, size="md", visible=data.is_local("cifar10"), elem_id="vd-random")
        with gr.Column(scale=3, min_width=320, elem_classes="vd-first"):
            bar = ModelView(ask=ask_models, entire=entire, elem_id="vd-model")
            view = Viewer(on.first, ask=ask, link=link, largest=settings.read().upload_megabytes * 10**6, elem_id="vd-viewer")

    changed = picture.change(on.picture, [picture, look], view, show_progress="minimal", api_visibility="private", **INFER)
    changed.failure(fair.refusal, picture, view, preprocess=False, **AT_ONCE)
    gallery.select(on.example, None, [picture, view], show_progress="hidden", **AT_ONCE)          # the viewer would say what went wrong
    picked = random_test.click(on.random_test, look, view, show_progress="minimal", api_visibility="private", **INFER)
    picked.failure(fair.refusal, None, view, **AT_ONCE)
    bar.select(on.model, picture, [look, random_test, view, bar], trigger_mode="multiple", show_progress="minimal", api_visibility="private", **INFER)
    bar.restart(on.restarted, None, [picture, look, view, bar], trigger_mode="multiple", show_progress="hidden", **AT_ONCE)
    linked = view.apply(on.linked, None, [look, bar, random_test, view, tabs], show_progress="hidden", api_visibility="private", **INFER)
    linked.failure(fair.refusal, None, view, **AT_ONCE)
    view.example_select(on.brought, None, [picture, view], show_progress="hidden", **AT_ONCE)
    _public_endpoint(models)
    return Explore(view, picture, look, bar, random_test, on.beside_box)


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



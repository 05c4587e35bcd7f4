"""The page: `build_app` puts the tabs together, `launch_settings` (`serving.py`) says how it is served."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gradio as gr

from vitdemo import data, hub, loading, repository, settings, words
from vitdemo.checkpoint import Loaded
from vitdemo.picturesets import Sets
from vitdemo.runs import RunError, Scheduler
from vitdemo.ui import about, explore, fair, head, viewer
from vitdemo.ui.choosing import Choosing
from vitdemo.ui.explore import INFER, Explore
from vitdemo.ui.fetches import Fetches
from vitdemo.ui.guard import Page
from vitdemo.ui.handover import Handover
from vitdemo.ui.lab import Lab
from vitdemo.ui.lab_view import LabView
from vitdemo.ui.look import look_of
from vitdemo.ui.models import Models
from vitdemo.ui.serving import launch_settings

__all__ = ["App", "build_app", "launch_settings"]
REST = 0.01                                     # s; Gradio would look a thousand times a second whether anything waits, which a training run beside is short of


class App(NamedTuple):
    """A page that is ready to launch, and the scheduler of its training runs: start it before and close it after serving."""

    blocks: gr.Blocks
    scheduler: Scheduler


def build_app(box: Loaded | None = None) -> App:
    """The whole page around one model (the one in the box where it is left out). Nothing is served and no run is started yet."""
    owner = settings.read()
    box = box or loading.shown()
    keep = owner.keep_hours * 3600
    sets = Sets(owner.sets_folder, max_pictures=owner.max_pictures, max_bytes=owner.sets_megabytes * 10**6, keep_seconds=keep)
    scheduler = Scheduler(owner.runs_folder, limit=owner.runs_at_once, queue=owner.queue, keep_seconds=keep,
                          max_bytes=owner.runs_megabytes * 10**6, most_seconds=owner.most_seconds, upkeep=sets.tidy)
    models = Models(box, scheduler)
    lab = Lab(scheduler, models, sets, owner=owner)

    def fetch(model: str, told: Callable[[int, int], None]) -> None:
        hub.fetch(models.where(model), told=told, accept=repository.check)

    choosing = Choosing(models, Handover(lab.reach), Fetches(needs=lambda model: not models.here(model), fetch=fetch, load=models.get))

    with Page(title=words.TITLE, analytics_enabled=False, delete_cache=(600, 3000), fill_width=True) as blocks:
        head.build()
        with gr.Tabs(selected="explore") as tabs:
            with gr.Tab("Explore", id="explore"):
                parts = explore.build(models, _asking(choosing), tabs)
            with gr.Tab("Train", id="train"):
                view = LabView(ask=_asking(lab), elem_id="vd-lab")
            with gr.Tab("About", id="about"):
                about.build(box)
        _open_in_explore(view, parts, models, tabs)
        # whether there are test pictures is seen when a page is opened: they come with the first training run
        blocks.load(lambda: (gr.Button(visible=data.is_local("cifar10")), gr.skip()), None, [parts.random_test, parts.viewer],
                    show_progress="hidden", queue=False, api_visibility="private")
    blocks.queue(max_size=fair.MOST, api_open=False)
    blocks._queue.sleep_when_free = max(REST, blocks._queue.sleep_when_free)
    fair.be_fair(blocks._queue)
    return App(blocks, scheduler)


def _asking(door: Lab | Choosing) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a component's front end calls as `server.ask`: Gradio takes plain functions only, and goes by their names."""
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        return door.ask(request)

    return ask


def _open_in_explore(view: LabView, parts: Explore, models: Models, tabs: gr.Tabs) -> None:
    """What the training lab's event does: that run's model, on the picture that is there, beside the model in the box."""
    def look_into(path: str | None, event: gr.EventData) -> tuple[Any, ...]:
        explored = gr.Tabs(selected="explore")
        try:
            asked = event._data if isinstance(event._data, dict) else {}
            look = look_of({"model": asked.get("run")})
            models.get(look.model)
        except RunError as error:
            return gr.skip(), gr.skip(), explored, viewer.message(str(error), failed=True)
        return look, {"model": look.model, "linked": True}, explored, parts.beside_box(path, look)

    view.select(look_into, parts.picture, [parts.look, parts.bar, tabs, parts.viewer], show_progress="hidden", api_visibility="private", **INFER)

"""The page: `build_app` puts the tabs together, `launch_settings` says how it is served."""

from typing import Any, NamedTuple

import gradio as gr

from vitdemo import checkpoint, settings
from vitdemo.checkpoint import Loaded
from vitdemo.runs import Scheduler
from vitdemo.ui import about, explore, theme, training, words
from vitdemo.ui.models import Models


class App(NamedTuple):
    """A page that is ready to launch, and the scheduler of its training runs: start it before and close it after serving."""

    blocks: gr.Blocks
    scheduler: Scheduler


def build_app(box: Loaded | None = None) -> App:
    """The whole page around one model (the one in the box where it is left out). Nothing is served and no run is started yet."""
    owner = settings.read()
    box = box or checkpoint.load(owner.checkpoint)
    scheduler = Scheduler(owner.runs_folder, queue=owner.queue, keep_seconds=owner.keep_hours * 3600)
    models = Models(box, scheduler)
    with gr.Blocks(title=words.TITLE, analytics_enabled=False, delete_cache=(600, 3000), fill_width=True) as blocks:
        # top level, because what lies in a tab is not there when the page loads; the id is a secret by itself, so the key needs to be none
        run_id = gr.BrowserState(None, storage_key="vitdemo-run", secret="vitdemo")
        timer = gr.Timer(1.0, active=False)
        gr.HTML(f"<h1>{words.TITLE}</h1><p>{words.TAGLINE}</p>", elem_classes="vd-head")
        with gr.Tabs(selected="explore") as tabs:
            with gr.Tab("Explore", id="explore"):
                parts = explore.build(models)
            with gr.Tab("Train", id="train", render_children=True):
                poll, shown = training.build(scheduler, models, parts, tabs, run_id, timer)
            with gr.Tab("About", id="about"):
                about.build(box)
        blocks.load(poll, run_id, shown, show_progress="hidden", queue=False, api_visibility="private")
    return App(blocks.queue(max_size=64, api_open=False), scheduler)


def launch_settings() -> dict[str, Any]:
    """Arguments of `launch` that keep a page safe on any host; gathered here so that tests launch what users get."""
    owner = settings.read()
    return {
        "theme": theme.theme(), "css": theme.CSS, "max_file_size": f"{owner.upload_megabytes}mb", "show_error": False, "strict_cors": True,
        "ssr_mode": False, "run_history": False, "enable_monitoring": False, "max_threads": 16, "state_session_capacity": 200,
        "footer_links": [], "share": False, "allowed_paths": [str(explore.EXAMPLES)],         # wherever the program is started from
    }

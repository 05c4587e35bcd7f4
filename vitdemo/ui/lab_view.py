"""The Train tab's one component: the training lab's front end (the folder `lab_front`) and the one server function it asks.

It draws everything from what `ask` answers; the only thing it tells the rest of the page is which run's model to open in Explore, as the
event `select` with the data {"run": id}.
"""

from collections.abc import Callable
from typing import Any

import gradio as gr

from vitdemo import front
from vitdemo.ui import fields


class LabView(gr.HTML):
    """Shows the training lab; text arrives as text nodes, never as markup."""

    def __init__(self, *, ask: Callable[[dict[str, Any]], dict[str, Any]], **settings: Any):
        super().__init__(None, html_template=front.page(front.LAB), css_template=front.style(front.LAB), js_on_load=front.script(front.LAB),
                         server_functions=[fields.answering(ask)], apply_default_css=False, **settings)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}

"""The model bar of the Explore tab: which model looks, at how many pixels, and at what of the picture: its middle, all of it, a part.

It draws everything from what `ask` answers (`vitdemo.ui.choosing`), and the picture that a part is chosen of from what `entire` answers to the key
of a result; what a person chose it tells the rest of the page as the event `select` with the data {"model": id, "side": pixels or null, "fit": name or
null, "part": edges or null, "serial": number}, one at a time: the value {"echo": number} says that it was heard. Else its value is what another tab or a
link chose, in the same form, "linked" where a picture that came meanwhile is to be looked at so as well. A server that was started anew hears of it as the
event `restart`, with the name of the "example" that is shown, if it is one.
"""

from collections.abc import Callable
from typing import Any

import gradio as gr

from vitdemo import front
from vitdemo.ui import fields


class ModelView(gr.HTML):
    """Shows the model bar; text arrives as text nodes, never as markup."""

    def __init__(self, *, ask: Callable[[dict[str, Any]], dict[str, Any]], entire: Callable[[dict[str, Any]], dict[str, Any]], **settings: Any):
        super().__init__(None, html_template=front.page(front.MODEL), css_template=front.style(front.MODEL), js_on_load=front.script(front.MODEL),
                         server_functions=[fields.answering(ask), fields.answering(entire)], apply_default_css=False, **settings)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}

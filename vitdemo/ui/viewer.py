"""The viewer: one canvas component that shows a picture, its patches, its class and what every head of every layer reads.

The server sends one small value (`vitdemo.payload`) with the class token's maps of all layers and heads; layer, head, opacity, scale and hover
are drawn in the browser with no further request. What else a person wants to know is asked by `ask`. Nothing that is sent is ever pasted as
HTML: the front end (the folder `viewer` beside this file) writes text nodes and canvas pixels only.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from vitdemo import front, words
from vitdemo.ui import fields


class Viewer(gr.HTML):
    """Shows a value that `vitdemo.payload` or `message` made. `ask` answers the page's questions, `link` says what its address
    asks for, `largest` is the bytes that may be uploaded."""

    def __init__(self, value: dict[str, Any] | None = None, *, ask: Callable[[dict[str, Any]], dict[str, Any]],
                 link: Callable[[dict[str, Any]], dict[str, Any]], largest: int = 20 * 10**6, **settings: Any):
        upload = Path(__file__).with_name("upload.js").read_text(encoding="utf-8").replace('"LIMIT"', str(largest))
        super().__init__(value, html_template=front.page(), css_template=front.style(), js_on_load=front.script() + upload,
                         server_functions=[fields.answering(ask), fields.answering(link)], apply_default_css=False, **settings)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


def message(sentence: str = words.NO_PICTURE, *, failed: bool = False) -> dict[str, Any]:
    """A value without a picture: one sentence about why."""
    return {"message": fields.sentence(sentence), "failed": failed}

"""The page's head: title, tagline, and the switch of the projector mode, whose screens the front ends draw (`ui/shared/60-present.js`)."""

from html import escape
from pathlib import Path

import gradio as gr

from vitdemo import words


STYLE = """
.vd-title { display: flex; flex-wrap: wrap; gap: 0.3rem 1.5rem; justify-content: space-between; align-items: center; }
.vd-title button { appearance: none; font: inherit; cursor: pointer; min-height: 44px; padding: 4px 18px; border-radius: 8px;
  border: 1px solid var(--vd-edge); background: var(--background-fill-primary); color: var(--body-text-color); }
.vd-title button:hover { background: var(--background-fill-secondary); }
.vd-title button[aria-pressed="true"] { border-color: var(--vd-accent); color: var(--vd-accent); }
@media (max-width: 600px) { .vd-title button { display: none; } }
"""


def build() -> None:
    """Lay out the head. Called inside `gr.Blocks`."""
    page = (f'<div class="vd-title"><div><h1>{escape(words.TITLE)}</h1><p>{escape(words.TAGLINE)}</p></div>'
            f'<button type="button" class="vd-switch" aria-pressed="false" title="{escape(words.PRESENT_KEYS)}">{escape(words.PRESENT)}</button></div>')
    gr.HTML(html_template=page, css_template=STYLE, js_on_load=Path(__file__).with_name("head.js").read_text(encoding="utf-8"),
            apply_default_css=False, elem_classes="vd-head")

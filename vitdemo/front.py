"""The viewer's front end as text: its page, its style and its script, for the page (inside Gradio) and for the report (without)."""

import json
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent / "ui" / "viewer"
COLOURS = ("cividis", "viridis", "gray")


def page() -> str:
    """The HTML that the script fills; it holds nothing that was sent."""
    return _read("page.html")


def style() -> str:
    return _read("style.css")


@cache
def script() -> str:
    """The body of a function of (element, props, server, watch): all parts of the folder in order, with the colour maps' tables put in."""
    from matplotlib import colormaps

    tables = {name: colormaps[name](np.linspace(0, 1, 256), bytes=True)[:, :3].tolist() for name in COLOURS}
    joined = "\n".join(_read(path.name) for path in sorted(FOLDER.glob("*.js")))
    return joined.replace('"COLOURS"', json.dumps(tables, separators=(",", ":")))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")

"""The viewer's front end as text: its page, its style and its script, for the page (inside Gradio) and for the report (without)."""

import json
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent / "ui" / "viewer"
COLOURS = ("cividis", "viridis", "gray")

# the viewer's own CSS variables in light and dark: accent and text on it, warnings, lines of charts (after Okabe and Ito, at AA contrast)
LIGHT = ("--vd-accent: #1d4ed8; --vd-on-accent: #ffffff; --vd-warn: #b45309; --vd-c1: #b34700; --vd-c2: #0072b2; --vd-c3: #5b5b5b; --vd-c4: #00785a; "
         "--vd-c5: #a3417f; --vd-c6: #7a6a00;")
DARK = ("--vd-accent: #93c5fd; --vd-on-accent: #0a0a0a; --vd-warn: #fbbf24; --vd-c1: #ff9248; --vd-c2: #56b4e9; --vd-c3: #b8b8b8; --vd-c4: #35c9a0; "
        "--vd-c5: #e29ac8; --vd-c6: #f0e442;")


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

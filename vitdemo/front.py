"""A front end as text: its page, its style and its script, for the page (inside Gradio) and for the viewer's report (without).

Each front end is a folder of `ui/` (the viewer, the training lab) with a page.html, style sheets, and a script in parts; what they share
stands in `ui/shared/` and is joined before.
"""

import html
import json
import re
from functools import cache
from pathlib import Path

import numpy as np

from vitdemo import words

FOLDER = Path(__file__).resolve().parent / "ui"
VIEWER, LAB, MODEL = "viewer", "lab_front", "model_front"
COLOURS = ("cividis", "viridis", "gray")

# the viewer's own CSS variables in light and dark: accent and text on it, warnings, lines of charts (after Okabe and Ito, at AA contrast), the edge of what can be pressed or filled in, and ink and paper of the projector
LIGHT = ("--vd-accent: #1d4ed8; --vd-on-accent: #ffffff; --vd-warn: #b45309; --vd-c1: #b34700; --vd-c2: #0072b2; --vd-c3: #5b5b5b; --vd-c4: #00785a; "
         "--vd-c5: #a3417f; --vd-c6: #7a6a00; --vd-edge: #767676; --vd-ink: #000000; --vd-paper: #ffffff;")
DARK = ("--vd-accent: #93c5fd; --vd-on-accent: #0a0a0a; --vd-warn: #fbbf24; --vd-c1: #ff9248; --vd-c2: #56b4e9; --vd-c3: #b8b8b8; --vd-c4: #35c9a0; "
        "--vd-c5: #e29ac8; --vd-c6: #f0e442; --vd-edge: #8f8f8f; --vd-ink: #ffffff; --vd-paper: #000000;")


def words_of(name: str) -> dict[str, object]:
    """The words of a front end by name, those of all front ends among them."""
    return {**words.FRONT["shared"], **words.FRONT[name]}


def page(name: str = VIEWER) -> str:
    """The HTML that the script fills, its words put in where it says [[name]]; it holds nothing that was sent."""
    known = words_of(name)
    return re.sub(r"\[\[(\w+)]]", lambda found: html.escape(str(known[found[1]])), (FOLDER / name / "page.html").read_text(encoding="utf-8"))


def style(name: str = VIEWER) -> str:
    return _joined(name, "*.css")


@cache
def script(name: str = VIEWER, *, alone: bool = False) -> str:
    """The body of a function of (element, props, server, watch, ...): all parts in order, with the colour maps' tables and the words put in;
    `alone` is without the parts that look after the server, for a file that has none."""
    from matplotlib import colormaps

    tables = {name: colormaps[name](np.linspace(0, 1, 256), bytes=True)[:, :3].tolist() for name in COLOURS}
    joined = _joined(name, "*.js", without="-server.js" if alone else None)
    return joined.replace('"COLOURS"', json.dumps(tables, separators=(",", ":"))).replace('"SAID"', json.dumps(words_of(name)))


def _joined(name: str, pattern: str, *, without: str | None = None) -> str:
    """The files of what is shared and then of one front end, each in the order of their names, but those whose names end in `without`."""
    files = [path for folder in (FOLDER / "shared", FOLDER / name) for path in sorted(folder.glob(pattern)) if not (without and path.name.endswith(without))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)

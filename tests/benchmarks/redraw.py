"""What a redraw of the viewer costs in the browser: hover, layer, head, opacity and scale, in milliseconds of script.

    python tests/benchmarks/redraw.py [--runs 300]

Opens the report of an example picture (the same viewer, with its data inside) in Chromium and changes one thing many times. The time until
`draw` has issued all drawing of the large picture and its words, and beside it that of the small maps, which follow in the same frame's
animation callback; what the compositor does after is not in it.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright

from vitdemo import checkpoint, settings
from vitdemo.config import Preprocessing
from vitdemo.explain import explain, untrained
from vitdemo.presets import SIZES
from vitdemo.report import report

CHANGES = {"hover another patch": "hover(i % result.patches)", "layer": "change({ layer: i % result.layers })", "head": "change({ head: i % result.heads })",
           "opacity": "(look.opacity = i % 100, draw())", "scale": "(look.own = i % 2 === 0, change({}))", "colours": "(look.colours = ['cividis', 'gray'][i % 2], change({}))",
           "small maps after a new scale": "(look.own = i % 2 === 0, drawSmall())", "after a new layer": "(view.layer = i % result.layers, drawSmall())"}

BATCH = 10                                      # changes between two frames, so that drawings do not pile up unpainted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    args = parser.parse_args()
    box = checkpoint.load()
    paper = SIZES["b/16"].config
    large = checkpoint.Loaded(untrained(checkpoint.Loaded(_meta(paper), (), Preprocessing(size=(224, 224)), {}, "")).model,
                              tuple(f"class {i}" for i in range(1000)), Preprocessing(size=(224, 224)), {}, "ViT-B/16, random weights")
    print(settings.machine())
    with sync_playwright() as play, tempfile.TemporaryDirectory() as scratch:
        engine = play.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox", "--disable-gpu"])
        for loaded in (box, large):
            page = engine.new_page(viewport={"width": 1440, "height": 900})
            path = Path(scratch) / "report.html"
            hook = "window.time = async (runs) => { const out = {}, frame = () => new Promise(requestAnimationFrame); let start, spent; " + "".join(
                f"spent = 0; for (let i = 0; i < runs; i++) {{ if (i % {BATCH} === 0) await frame(); start = performance.now(); {change}; spent += performance.now() - start; }} "
                f"out[{name!r}] = spent / runs; " for name, change in CHANGES.items()) + "return out; };"
            text = report(explain(ROOT / "vitdemo/ui/examples/cat.jpg", loaded), limit=2_000_000)
            path.write_text(text.replace("show(props.value);\n", f"show(props.value);\n{hook}\n", 1), encoding="utf-8")
            page.goto(path.as_uri())
            page.wait_for_selector(".vd[data-state=shown]")
            found = page.evaluate("(runs) => window.time(runs)", args.runs)
            print(f"{loaded.name}: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in found.items()) + f" (mean of {args.runs})")
            page.close()
        engine.close()


def _meta(config):
    import torch

    from vitdemo.model import ViT

    with torch.device("meta"):
        return ViT(config)


if __name__ == "__main__":
    main()

"""The command `python -m vitdemo.explain`: a photo in, a folder of figures, numbers and a report out."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitdemo import figures, loading, looking, takehome
from vitdemo.explain import Explanation, explain
from vitdemo.report import report


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vitdemo.explain", description="What a model makes of a photo, as figures, numbers and a report.")
    parser.add_argument("photo", help="a picture file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures, maps.npz and report.html; made if missing")
    parser.add_argument("--checkpoint", help="a published model's name, a file, a folder or user/repo (default: the model in the box)")
    parser.add_argument("--heads", type=int, help="attention heads, where the checkpoint does not say")
    parser.add_argument("--side", type=int, help="pixels a side of the square it looks at (default: the model's own)")
    parser.add_argument("--fit", choices=looking.FITS, help="look at the picture's middle, at all of it on a plain ground, or at all of it in its own shape")
    parser.add_argument("--part", type=float, nargs=4, metavar=("TOP", "LEFT", "BOTTOM", "RIGHT"), help="look at a part of the picture, in shares of its height and width")
    parser.add_argument("--class", dest="klass", help="name or number of the class whose relevance is drawn (default: the most probable one)")
    args = parser.parse_args(arguments)
    try:
        result = explain(args.photo, loading.at_a_terminal(args.checkpoint, args.heads), side=args.side, fit=args.fit, part=args.part)
        wanted = int(args.klass) if args.klass and args.klass.isdecimal() and args.klass not in result.classes else args.klass
        klass = result.class_index(result.leading(1)[0] if wanted is None else wanted) if result.classes or wanted is not None else None
        args.out.mkdir(parents=True, exist_ok=True)
        takehome.save_maps(result, args.out / "maps.npz")
        (args.out / "report.html").write_text(report(result), encoding="utf-8")
        for name, picture in pictures(result, klass):
            (picture.save if hasattr(picture, "save") else picture.savefig)(args.out / f"{name}.png")
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    except OSError as error:
        parser.exit(1, f"the folder {args.out.name!r} cannot be written to ({error.strerror}): choose another one\n")
    except KeyboardInterrupt:
        parser.exit(130, "\nstopped\n")
    for note in result.notes:
        print(note)
    for name, probability in result.top():
        print(f"{probability:6.1%}  {name}")
    if not result.classes:
        print("no classes: this model has no head")
    print(f"report.html, figures and maps.npz are in {args.out}")
    return 0


def pictures(result: Explanation, klass: int | None) -> Iterator[tuple[str, Any]]:
    """(name, PIL picture or matplotlib figure) of everything that is drawn."""
    layers = len(result.attention)
    view = {"kind": "attention", "direction": "reads", "token": None, "layer": layers - 1, "head": "mean", "up_to": layers, "fusion": "mean", "discard": 0.0, "klass": klass}
    yield "patches", figures.patch_grid(result.picture, result.geometry)
    yield "model-sees", figures.enlarge(result.seen, 320)
    yield "all-heads", figures.layers_by_heads(result.attention, prefix=result.prefix_attention, picture=result.picture, geometry=result.geometry,
                                               title=f"{result.model}: what {result.reader} reads")
    for layer, maps in enumerate(result.attention, start=1):
        yield f"layer-{layer:02d}", figures.layer_heads(result.picture, result.geometry, maps, title=f"{result.model}, layer {layer}: what {result.reader} reads", uniform=result.uniform)
    yield "rollout", takehome.view_figure(result, {**view, "kind": "rollout"})
    if klass is not None:
        yield "relevance", takehome.view_figure(result, {**view, "kind": "relevance"})

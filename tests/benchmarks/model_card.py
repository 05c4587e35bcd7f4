"""Measures the models in the box on the test pictures and writes their card, checkpoints/README.md.

    python tests/benchmarks/model_card.py --data PATH/cifar10.zip [--pictures 500] [--note cifar10-tiny "other programs beside"]

The test pictures were used twice before, at the end of each model's run and by ship.py; what stands there is measured again, on the very files. How faithful
the maps are is measured on validation pictures: the mean probability of the answer while patches are hidden, the most important first.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import numpy as np
from uploads import mean_of_changes, some

from vitdemo import checkpoint, data, faithfulness, settings
from vitdemo.evaluate import Report, evaluate
from vitdemo.explain import explain
from vitdemo.film import pixels
from vitdemo.presets import PRESETS

SHIFTED = 1000                                  # test pictures that are changed as uploads are
# what training does otherwise since a version of this program: whoever repeats a model of that version gets one that is alike but not the same
SINCE = {"vitdemo 0.1.0": "from 0.2.0 on Muon takes queries, keys and values apart, so the commands make a model that is alike but not the same",
         "vitdemo 0.2.0": "from 0.2.1 on Muon iterates in bfloat16 where the processor has it, so the commands make a model that is alike but not the same"}

CARD = """# {title}: `{name}`

A plain Vision Transformer with {parameters:,} parameters ({depth} layers, {heads} heads, width {dim}, patches of {patch} × {patch} on
{size} × {size} pixels), trained by this repository's own code on CIFAR-10 and nothing else.{taught} {megabytes:.1f} MB, {bits} bits a number, one
self-describing safetensors file: configuration, class names, preprocessing, provenance and a fingerprint that is checked on load.

| | |
|---|---|
| accuracy on the {n:,} test pictures | **{accuracy:.2%}** ± {error:.2%} (standard error), with the weights chosen on the validation part |
| accuracy on the {validation:,} validation pictures | {validation_accuracy:.2%} (the number the weights were chosen by, so a little too good) |
| expected calibration error | {ece:.1%} (ten bins, test pictures); it gives its answers {confidence:.1%} on average, {sure} the share that is right |
| test pictures as people's own come | {shifted:.1%} of {shifted_n:,}, mean over twelve changes (`{uploads}`) |
| deletion curve of the answer | area {cls:.3f} by the last layer's class-token attention, {relevance:.3f} by class relevance, {random:.3f} at random ({pictures} validation pictures; smaller is more faithful); the first lies {cls_gain:.3f} ± {cls_error:.3f}, the second {relevance_gain:.3f} ± {relevance_error:.3f} below random, picture by picture (mean and its standard error) |
| training pictures | {training:,} of CIFAR-10's 50,000; the rest is the validation part |
| commands | {command} |
| time | {seconds:,.0f} s of training until the best weights, after {epochs:.1f} epochs; evaluation not counted |
| machine | {hardware}, {threads} torch thread(s){shared}; {precision} |
| versions | {version}, {date}{since} |

{curve}| class | right on test pictures |
|---|---|
{per_class}

The pair it confuses most: {confused}.
"""

LIMITS = """# What they are not good for

- They know ten things (the tables above) and name one of them for *any* picture. They have no way to say "none of these".
- They see 32 × 32 pixels. Objects that are small in the frame, seen from odd sides or drawn are often named wrongly: CIFAR-10 shows one
  object, centred, filling the frame, photographed. Accuracy on people's own photos is lower than the numbers above.
- Their attention maps show what the class token reads, not why an answer came out. A bright patch is no proof.
- The pictures of CIFAR-10 were gathered from the web in 2008 and labelled by hand; what is rare there is rare here. Do not use them for decisions.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--note", nargs=2, action="append", default=[], metavar=("NAME", "WORDS"), help="what else the machine did while a model was trained")
    args = parser.parse_args()
    test, train = (data.load_part(args.data, part) for part in ("test", "train"))
    shipped = {path: checkpoint.load(path) for path in sorted((ROOT / "checkpoints").glob("*.safetensors"), key=lambda path: path != checkpoint.box_path())}
    box, sections = shipped[checkpoint.box_path()], []
    for path, loaded in shipped.items():
        report = evaluate(loaded.model, test.split, loaded.preprocessing, loaded.classes)
        print(f"{loaded.name}: {report.accuracy:.4f} n={report.n}; when it was trained: {loaded.provenance['test_accuracy']:.4f}", flush=True)
        held = data.hold_out(train.split, *loaded.held_out)[1]
        areas = deletion(loaded, some(held, args.pictures))
        shifted = float(mean_of_changes(loaded, some(test.split, SHIFTED)).mean())
        sections.append(card(path, loaded, report, areas, args.pictures, (shifted, SHIFTED), dict(args.note).get(path.stem, ""), teacher(loaded, box)))
    (ROOT / "checkpoints" / "README.md").write_text("\n".join([*sections, LIMITS]), encoding="utf-8")
    print(settings.machine())


def deletion(loaded: checkpoint.Loaded, pictures: data.Split) -> dict[str, float]:
    """Mean area under the deletion curve of the answer, by the last layer's class-token attention, by class relevance and at random, and how far the first
    two lie below the third, with the standard error over the pictures."""
    found: dict[str, list[float]] = {"cls": [], "relevance": [], "random": []}
    for image in pictures.images:
        result = explain(pixels(image), loaded)
        klass = int(result.probabilities.argmax())
        orders = [faithfulness.order_of(result.attention[-1].mean(0)), faithfulness.order_of(result.patches(result.relevance(klass))),
                  *faithfulness.random_orders(result.grid[0] * result.grid[1], 5)]
        areas = faithfulness.area(faithfulness.measure(faithfulness.Hider(loaded, result.tensor, klass, "mean"), orders))
        for name, value in zip(found, (areas[0], areas[1], areas[2:].mean()), strict=True):
            found[name].append(float(value))
    below = {name: np.subtract(found["random"], found[name]) for name in ("cls", "relevance")}
    return {**{name: float(np.mean(values)) for name, values in found.items()},
            **{f"{name}_gain": float(gains.mean()) for name, gains in below.items()},
            **{f"{name}_error": float(gains.std(ddof=1) / len(gains) ** 0.5) for name, gains in below.items()}}


def card(path: Path, loaded: checkpoint.Loaded, report: Report, areas: dict[str, float], pictures: int, shifted: tuple[float, int], note: str,
         taught: tuple[str, str]) -> str:
    facts, config = loaded.provenance, loaded.config
    ways = [*loaded.before, facts]
    said, teaching = taught
    homes = [home(path.stem, i, len(ways)) for i in range(len(ways))]
    commands = [command(one, homes[i], homes[i - 1] if i else "", teaching) for i, one in enumerate(ways)]
    commands.append(f"python tests/benchmarks/ship.py {homes[-1]} {path.stem}")
    worst = max(((i, j) for i in range(len(report.classes)) for j in range(i)), key=lambda p: report.confusion[p[0]][p[1]] + report.confusion[p[1]][p[0]])
    parameters = sum(p.numel() for p in loaded.model.parameters())
    picture = path.with_suffix(".png")
    return CARD.format(
        title="The tiny model" if path.stem.endswith("-tiny") else "The model in the box", name=loaded.name, parameters=parameters,
        depth=config.depth, heads=config.heads, dim=config.dim, patch=config.patch[0], size=config.image[0], megabytes=path.stat().st_size / 1e6,
        bits=16 if path.stat().st_size < 3 * parameters else 32, n=report.n, accuracy=report.accuracy, error=report.standard_error,
        validation=facts["validation_pictures"], validation_accuracy=facts["validation_accuracy"], ece=report.expected_calibration_error,
        confidence=report.confidence, sure="less than" if report.confidence < report.accuracy else "more than",
        shifted=shifted[0], shifted_n=shifted[1], **areas, pictures=pictures, training=facts["training_pictures"], command=", then ".join(f"`{line}`" for line in commands),
        uploads=f"tests/benchmarks/uploads.py --pictures {shifted[1]}" + f" --checkpoint checkpoints/{path.name}" * (path != checkpoint.box_path()),
        seconds=sum(one["seconds"] for one in ways), epochs=sum(one["epochs"] for one in ways), hardware=facts["hardware"], threads=facts["threads"], shared=f"; {note}" if note else "",
        precision=facts.get("precision", "float32"), version=facts["version"], date=facts["date"],
        since="".join(f"; {said}" for version, said in SINCE.items() if facts["version"].startswith(f"{version},")),
        taught=f" In the place of the labels it learned the answers of {said}." if said else "",
        curve=curve(picture, ways) if picture.is_file() else "",
        per_class="\n".join(f"| {name} | {share:.1%} |" for name, share in report.per_class.items()),
        confused=f"{report.classes[worst[0]]} and {report.classes[worst[1]]} ({report.confusion[worst[0]][worst[1]] + report.confusion[worst[1]][worst[0]]} pictures)",
    )


def curve(picture: Path, ways: list[dict[str, Any]]) -> str:
    """The picture of how a model learned, and of which of its trainings that is."""
    said = f"The curve is of the last of its {len(ways)} trainings, which began with a fresh head." * (len(ways) > 1)
    rounded = " The second training started from the first one's weights rounded to 16 bits; the\ncommands above skip that rounding, so what they make is alike but not the same bits."
    return "".join(f"{part}\n\n" for part in (f"![How it learned]({picture.name})", said + rounded * (ways[-1]["started_from"] == "box")) if part)


def home(stem: str, i: int, trainings: int) -> str:
    """The folder of the i-th training of a shipped model."""
    return f"runs/{stem}" + f"-{i + 1}" * (trainings > 1)


def teacher(loaded: checkpoint.Loaded, box: checkpoint.Loaded) -> tuple[str, str]:
    """Whose answers a model learned, in words and as `--teacher` takes it; nothing where it learned from labels."""
    run = loaded.provenance.get("taught_by")
    if run in (None, "the model in the box"):
        return (run, "box") if run else ("", "")
    known = loaded.provenance.get("teacher", {"preset": run})               # older files say the name alone
    if not box.before or any(box.before[0].get(name) != known[name] for name in ("data", "preset", "seed", "seconds") if name in known):
        raise SystemExit(f"nobody knows any more how the run {run!r}, which taught {loaded.name}, came about")
    said = f"a larger model: the one that the first training of the model in the box had made ({box.before[0]['test_accuracy']:.2%} of the test pictures"
    said += ")" if "teacher" in loaded.provenance else f"; which one it was is its author's word, the file says only that it was called {run!r})"
    return said, f"{home(checkpoint.box_path().stem, 0, len(box.before) + 1)}/best.safetensors"


def command(facts: dict[str, Any], out: str, start: str = "", taught: str = "") -> str:
    """What repeats a training in the folder `out`, from a file's own words; `start` is the folder of the run before, `taught` who taught it."""
    recipe = facts["train"]
    budget = f"--minutes {recipe['minutes']:g}" if recipe["minutes"] else f"--epochs {recipe['epochs']}"
    own = PRESETS[facts["preset"]].train.to_json()
    changed = {name: value for name, value in recipe.items() if name not in ("minutes", "epochs", "seed", "threads") and own[name] != value}
    begun = f"--start {start}/best.safetensors" if start else f"--model {facts['model']}"
    return (f"python -m vitdemo.train {begun} --preset {facts['preset']} --data cifar10 {budget} --seed {facts['seed']} --threads {facts['threads']}"
            + (f" --teacher {taught}" if "taught_by" in facts else "") + "".join(f" --set {written(name, value)}" for name, value in changed.items()) + f" --out {out}")


def written(name: str, value: Any) -> str:
    """A setting as a shell takes it."""
    return shlex.quote(f"{name}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}")


if __name__ == "__main__":
    main()

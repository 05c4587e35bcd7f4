"""Measures the model in the box on the test pictures and writes its card, checkpoints/README.md.

    python tests/benchmarks/model_card.py --data PATH/cifar10.zip
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from vitdemo import checkpoint, data
from vitdemo.evaluate import Report, evaluate

CARD = """# The model in the box: `{name}`

A plain Vision Transformer with {parameters:,} parameters ({depth} layers, {heads} heads, width {dim}, patches of {patch} × {patch} on
{size} × {size} pixels), trained from scratch by this repository's own code on CIFAR-10 and nothing else. {megabytes:.1f} MB, float32, one self-describing
safetensors file: configuration, class names, preprocessing, provenance and a fingerprint that is checked on load.

| | |
|---|---|
| accuracy on the {n:,} test pictures | **{accuracy:.2%}** ± {error:.2%} (standard error), taken once, with the weights chosen on the validation part |
| accuracy on the {validation:,} validation pictures | {validation_accuracy:.2%} (the number the weights were chosen by, so a little too good) |
| training pictures | {training:,} of CIFAR-10's 50,000; the rest is the validation part |
| command | `{command}` |
| seed | {seed} |
| time | the best weights came after {seconds:.0f} s of training ({epochs:.1f} epochs) of {minutes:g} minutes, evaluation not counted |
| machine | {hardware}, {threads} torch thread(s){shared} |
| versions | {version}, {date} |

## Per class

| class | right on test pictures |
|---|---|
{per_class}

The pair it confuses most: {confused}.

## What it is not good for

- It knows ten things (the table above) and names one of them for *any* picture. It has no way to say "none of these".
- It sees 32 × 32 pixels. Objects that are small, cut out on white, seen from odd sides or drawn are often named wrongly: CIFAR-10 shows one
  object, centred, filling the frame, photographed. Accuracy on people's own photos is lower than the number above.
- Its attention maps show what the class token reads, not why an answer came out. A bright patch is no proof.
- The pictures of CIFAR-10 were gathered from the web in 2008 and labelled by hand; what is rare there is rare here. Do not use it for decisions.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--note", default="", help="what else the machine did meanwhile")
    args = parser.parse_args()
    loaded = checkpoint.load()
    part = data.load_part(args.data, "test")
    report = evaluate(loaded.model, part.split, loaded.preprocessing, loaded.classes)
    (ROOT / "checkpoints" / "README.md").write_text(card(loaded, report, args.note), encoding="utf-8")
    print(f"{report.accuracy:.4f} n={report.n}; when it was trained: {loaded.provenance['test_accuracy']:.4f}")


def card(loaded: checkpoint.Loaded, report: Report, note: str) -> str:
    facts, config = loaded.provenance, loaded.config
    recipe = facts["train"]
    command = (f"python -m vitdemo.train --model {facts['model']} --preset {facts['preset']} --data cifar10 --minutes {recipe['minutes']:g} "
               f"--seed {facts['seed']} --threads {facts['threads']} --set evaluations={recipe['evaluations']}")
    worst = max(((i, j) for i in range(len(report.classes)) for j in range(i)), key=lambda p: report.confusion[p[0]][p[1]] + report.confusion[p[1]][p[0]])
    return CARD.format(
        name=loaded.name, parameters=sum(p.numel() for p in loaded.model.parameters()), depth=config.depth, heads=config.heads, dim=config.dim,
        patch=config.patch[0], size=config.image[0], megabytes=checkpoint.box_path().stat().st_size / 1e6, n=report.n, accuracy=report.accuracy,
        error=report.standard_error, validation=facts["validation_pictures"], validation_accuracy=facts["validation_accuracy"],
        training=facts["training_pictures"], command=command, seed=facts["seed"], minutes=recipe["minutes"], seconds=facts["seconds"], epochs=facts["epochs"],
        hardware=facts["hardware"], threads=facts["threads"], shared=f"; {note}" if note else "", version=facts["version"], date=facts["date"],
        per_class="\n".join(f"| {name} | {share:.1%} |" for name, share in report.per_class.items()),
        confused=f"{report.classes[worst[0]]} and {report.classes[worst[1]]} ({report.confusion[worst[0]][worst[1]] + report.confusion[worst[1]][worst[0]]} pictures)",
    )


if __name__ == "__main__":
    main()

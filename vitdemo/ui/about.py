"""The About tab: what this is, the model's card, privacy, licence and versions."""

import sys

import gradio as gr
import torch

import vitdemo
from vitdemo import settings, words
from vitdemo.checkpoint import Loaded
from vitdemo.ui.desk import LONGEST_SIDE
from vitdemo.unpacking import SHORT

FACTS = {"data": "Data", "training_pictures": "Training pictures", "seconds": "Seconds of training", "hardware": "Machine", "threads": "Threads", "seed": "Seed",
         "version": "Made with"}


def build(box: Loaded) -> None:
    """Lay out the tab. Called inside `gr.Blocks`."""
    owner = settings.read()
    gr.Markdown(words.ABOUT)
    gr.Markdown(card(box))
    gr.Markdown(privacy(owner.keep_hours))
    gr.Markdown(f"## Licence and versions\n\nvitdemo {vitdemo.__version__} (MIT licence) · Python {sys.version.split()[0]} · "
                f"PyTorch {torch.__version__} · Gradio {gr.__version__}. The example pictures' sources are listed in README.")


def privacy(keep_hours: float) -> str:
    """What is kept of what a visitor sends, where and how long, as Markdown; 0 hours keep sets and runs."""
    def kept(since: str) -> str:
        return words.KEPT_HOURS.format(hours=keep_hours, since=since) if keep_hours else words.KEPT

    return words.PRIVACY_LONG.format(short=SHORT, side=LONGEST_SIDE, sets=kept("their last use"), runs=kept("their end"))


def card(box: Loaded) -> str:
    """The model in the box as Markdown; numbers come from its file. Names are set as code, so that nothing in them is markup."""
    facts, config = box.provenance, box.config
    count = sum(p.numel() for p in box.model.parameters())
    lines = [f"## The model in the box: `{_code(box.name)}`", "",
             f"{count:,} parameters: {config.depth} layers, {config.heads} heads each, width {config.dim}; pictures of {config.image[1]} × {config.image[0]} "
             f"pixels in patches of {config.patch[1]} × {config.patch[0]}."]
    if isinstance(facts.get("test_accuracy"), float):
        lines.append(f"Right on **{facts['test_accuracy']:.2%}** of the test pictures, which it never saw.")
    lines += [f"{title}: `{_code(str(facts[key]))}`." for key, title in FACTS.items() if key in facts]
    lines += ["", f"It knows {len(box.classes)} things and nothing else: " + ", ".join(f"`{_code(name)}`" for name in box.classes[:100]) + "."]
    per_class = facts.get("test_per_class")
    if isinstance(per_class, dict):
        rows = [f"| `{_code(name)}` | {share:.1%} |" for name, share in per_class.items() if isinstance(share, float)]
        lines += ["", "| thing | right on test pictures |", "|---|---|", *rows]
    return "\n".join(lines)


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "/").replace("\n", " ")[:200]

"""Where a training run stands, as one component: a sentence, a bar, and the numbers."""

from typing import Any

import gradio as gr

from vitdemo.runs import Status
from vitdemo.ui import words

TEMPLATE = """
<div class="vd-run">
  <p class="vd-run-head" role="status"></p>
  <progress class="vd-run-bar" max="1" value="0" aria-label="training progress"></progress>
  <p class="vd-run-facts"></p>
</div>
"""
STYLE = """
.vd-run-head { font-size: 1.25rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; color: var(--body-text-color); }
.vd-run-bar { appearance: none; width: 100%; height: 14px; border: 0; border-radius: 7px; overflow: hidden; background: var(--border-color-primary); }
.vd-run-bar::-webkit-progress-bar { background: var(--border-color-primary); }
.vd-run-bar::-webkit-progress-value { background: var(--vd-accent); }
.vd-run-bar::-moz-progress-bar { background: var(--vd-accent); }
.vd-run-facts { margin: 0.4rem 0 0; color: var(--body-text-color-subdued); font-variant-numeric: tabular-nums; min-height: 1.5em; }
"""
SCRIPT = """
const show = () => {
  const v = props.value || {};
  element.querySelector(".vd-run-head").textContent = v.head || "";
  element.querySelector(".vd-run-facts").textContent = v.facts || "";
  const bar = element.querySelector(".vd-run-bar");
  bar.value = v.progress || 0;
  bar.hidden = !v.state;
  element.querySelector(".vd-run").dataset.state = v.state || "none";
};
watch("value", show);
show();
"""


class RunStatus(gr.HTML):
    """Shows the value that `describe` made; text arrives as text nodes, never as markup."""

    def __init__(self, value: dict[str, Any] | None = None, **settings: Any):
        super().__init__(value, html_template=TEMPLATE, css_template=STYLE, js_on_load=SCRIPT, apply_default_css=False, **settings)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object"}


def describe(status: Status | None, position: int = 0, sentence: str = words.NO_RUN, *, stopping: bool = False) -> dict[str, Any]:
    """A status as the words and numbers a person reads; without one, `sentence`."""
    if status is None:
        return {"state": "", "head": sentence, "facts": "", "progress": 0}
    heads = {
        "queued": "Waiting: yours starts next." if position < 2 else f"Waiting: {position - 1} in line before yours.",
        "starting": status.message or "Starting.",
        "running": status.message or "Training.",
        "finished": status.message or "Finished.",
        "stopped": status.message or "Stopped.",
        "failed": f"Failed: {status.message or 'the run ended unexpectedly.'}",
    }
    if stopping and not status.over:
        heads[status.state] = "Stopping: the best weights so far are kept."
    facts = []
    if status.state in ("starting", "running") and status.seconds_left is not None:
        facts.append(f"{_clock(status.seconds_left)} left")
    if status.seconds:
        facts.append(f"{_clock(status.seconds)} trained")
    if status.images_per_second:
        facts.append(f"{status.images_per_second:,.0f} images/s")
    if status.epoch:
        facts.append(f"epoch {status.epoch:.1f}")
    if status.best_accuracy:
        facts.append(f"best so far: {status.best_accuracy:.1%} of validation pictures right")
    if status.test_accuracy:
        facts.append(f"{status.test_accuracy:.1%} of test pictures right")
    return {"state": status.state, "head": heads[status.state], "facts": " · ".join(facts), "progress": status.progress}


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

"""The Train tab: choose a recipe and a budget, start a run, watch it, stop it, look inside what it learned.

The truth about a run is on disk and the run is a child process; this file only submits, reads and shows. The browser remembers the run's
id, so a refresh or a second tab finds it again.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
import pandas as pd

from vitdemo import data, settings
from vitdemo.config import MEASURED_ON, PRESETS, ConfigError
from vitdemo.plan import plan
from vitdemo.runs import RunError, RunFolder, Scheduler, Status
from vitdemo.ui import words
from vitdemo.ui.explore import INFER, Explore
from vitdemo.ui.models import Models
from vitdemo.ui.run_status import RunStatus, describe

DATA_NAMES = {"CIFAR-10: ten kinds of things": "cifar10", "MNIST: handwritten digits": "mnist"}
LOOK_EVERY = 15                                 # seconds of training between two looks at the validation part, which take time of their own
POINTS = 300                                    # most points of a curve that travel to the browser
NO_CURVE = pd.DataFrame({"seconds": pd.Series(dtype=float), "value": pd.Series(dtype=float)})


def start(preset: str, source: str, unit: str, amount: float, seed: float, run_id: str | None, scheduler: Scheduler) -> str:
    """Submit a run and return its id. Raises RunError, while the browser's own run is still going for one, or ConfigError, with a sentence.

    All limits are checked here, whatever the page allowed.
    """
    owner = settings.read()
    if not owner.training:
        raise RunError(words.TRAIN_OFF)
    before = status_of(run_id, scheduler) if run_id else None
    if before and not before.over:
        raise RunError(words.RUN_GOES_ON)
    if source not in DATA_NAMES.values():
        raise ConfigError("choose CIFAR-10 or MNIST")
    if unit not in ("minutes", "epochs") or not isinstance(amount, (int, float)) or not math.isfinite(amount):
        raise ConfigError("choose how long to train: a number of minutes or of epochs")
    if unit == "epochs" and (owner.public or owner.max_minutes < 60):         # epochs know no clock
        raise ConfigError("on this host runs are counted in minutes")
    if unit == "epochs" and (amount != int(amount) or amount < 1):
        raise ConfigError(f"epochs are whole passes over the pictures, at least 1, not {amount:g}")
    if unit == "minutes" and not 0 < amount <= owner.max_minutes:
        raise ConfigError(f"a run here may take up to {owner.max_minutes:g} minutes and more than 0, not {amount:,.10g}")
    changes: dict[str, Any] = {"threads": settings.training_threads(), "seed": seed}
    if unit == "minutes":
        changes["evaluations"] = min(20, max(3, round(60 * amount / LOOK_EVERY)))
    wanted = plan(preset=preset, data=source, changes=changes, **({"minutes": float(amount)} if unit == "minutes" else {"epochs": amount}))
    return scheduler.submit(wanted.to_json())


def curves(folder: RunFolder) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Loss and validation accuracy (percent) over seconds of training, thinned to what a plot can show."""
    rows, _ = folder.records()
    loss = [(r["seconds"], r["loss"]) for r in rows if isinstance(r.get("loss"), float)]
    looks = [(r["seconds"], 100 * r["accuracy"]) for r in rows if isinstance(r.get("accuracy"), float)]
    loss = loss[:: max(1, -(-len(loss) // POINTS))]
    return (pd.DataFrame(loss, columns=["seconds", "value"]) if loss else NO_CURVE,
            pd.DataFrame(looks, columns=["seconds", "value"]) if looks else NO_CURVE)


def status_of(run_id: str, scheduler: Scheduler) -> Status | None:
    """Where a run stands; None if there is no such run (any more)."""
    try:
        return scheduler.read(run_id).status()
    except RunError:
        return None


def download_note(source: str) -> str:
    """What has to happen before training can begin, if anything."""
    return "" if source in DATA_NAMES.values() and data.is_local(source) else words.NOT_LOCAL


def measured(preset: str, threads: int) -> str:
    """One line about a preset: what it is and what was measured with the number of threads nearest to this machine's."""
    chosen = PRESETS[preset]
    text = f"**{preset}**: {chosen.about}."
    if chosen.measured:
        found = min(chosen.measured, key=lambda m: abs(m.threads - threads))
        text += (f" Measured on {MEASURED_ON}: {found.accuracy:.1%} of test pictures right after {found.seconds / 60:.1f} minutes with {found.threads} "
                 f"thread{'s' if found.threads > 1 else ''} ({found.images_per_second:.0f} images/s, n = {found.n}).")
    return text


def budget(preset: str) -> tuple[str, float]:
    """A preset's own unit and amount."""
    train = PRESETS[preset].train
    return ("minutes", min(train.minutes, settings.read().max_minutes)) if train.minutes else ("epochs", train.epochs)


def poll(run_id: str | None, scheduler: Scheduler) -> tuple[Any, ...]:
    """What the tab shows of a run, in the order of `build`'s outputs: status, plots' row, loss, accuracy, Start, Stop, Look inside, timer."""
    now, may_train = status_of(run_id, scheduler) if run_id else None, settings.read().training
    if now is None:
        sentence = words.RUN_UNKNOWN if run_id else words.NO_RUN
        return (describe(None, sentence=sentence), gr.Row(visible=False), gr.skip(), gr.skip(), gr.Button(interactive=may_train),
                gr.Button(interactive=False), gr.Button(visible=False), gr.Timer(active=False))
    folder = scheduler.read(run_id)
    losses, looks = curves(folder)
    drawn = len(losses) > 0                     # a hidden plot must not be given an empty frame
    return (describe(now, scheduler.position(run_id), stopping=folder.stop_requested()), gr.Row(visible=drawn),
            losses if drawn else gr.skip(), looks if drawn else gr.skip(),
            gr.Button(interactive=may_train and now.over), gr.Button(interactive=not now.over),
            gr.Button(visible=folder.best.exists()), gr.Timer(active=not now.over))


@contextmanager
def refusals() -> Iterator[None]:
    """Show a refusal to the visitor as the sentence it is."""
    try:
        yield
    except (RunError, ConfigError, TypeError) as error:
        text = str(error)
        raise gr.Error(text[:1].upper() + text[1:], print_exception=False) from None


def build(scheduler: Scheduler, models: Models, explore: Explore, tabs: gr.Tabs, run_id: gr.BrowserState, timer: gr.Timer) -> Any:
    """Lay out the tab and wire it; returns the function and outputs that show the browser's run after a page load."""
    owner, threads = settings.read(), settings.training_threads()
    allowed = [name for name, preset in PRESETS.items() if not owner.public or preset.train.minutes]
    with gr.Row():
        with gr.Column(scale=1, min_width=300):
            gr.Markdown(words.TRAIN_INTRO if owner.training else words.TRAIN_OFF)
            amount = gr.Number(min(3.0, owner.max_minutes), label="Minutes", elem_id="vd-amount")
            with gr.Row():
                go = gr.Button("Start", variant="primary", interactive=owner.training, elem_id="vd-start")
                halt = gr.Button("Stop", variant="stop", interactive=False, elem_id="vd-stop")
            about = gr.Markdown(measured("class", threads), elem_classes="vd-small")
            note = gr.Markdown(download_note("cifar10"), elem_classes="vd-small")
            with gr.Accordion("Recipe, pictures, seed", open=False):
                preset = gr.Dropdown([(f"{name}: {PRESETS[name].about}", name) for name in allowed], value="class", label="Recipe")
                source = gr.Dropdown(list(DATA_NAMES.items()), value="cifar10", label="Pictures to learn from")
                unit = gr.Radio(["minutes", "epochs"] if not owner.public else ["minutes"], value="minutes", label="The length is counted in")
                seed = gr.Number(0, label="Seed: the same seed repeats a run's random choices", minimum=0, precision=0)
        with gr.Column(scale=2, min_width=320):
            status = RunStatus(describe(None), elem_id="vd-run")
            with gr.Row(visible=False) as plots:
                loss = gr.LinePlot(NO_CURVE, x="seconds", y="value", title="Loss", x_title="seconds of training", y_title="loss",
                                   height=260, buttons=[])
                accuracy = gr.LinePlot(NO_CURVE, x="seconds", y="value", title="Right on validation pictures", x_title="seconds of training",
                                       y_title="percent", y_lim=[0, 100], height=260, buttons=[])
            look = gr.Button("Look inside this model", visible=False, variant="primary", elem_id="vd-look")
    shown = [status, plots, loss, accuracy, go, halt, look, timer]

    def on_poll(known: str | None) -> tuple[Any, ...]:
        return poll(known, scheduler)

    def on_start(*values: Any) -> str:
        with refusals():
            return start(*values, scheduler)

    def on_stop(known: str | None) -> None:
        with refusals():
            if known:
                scheduler.stop(known)

    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    # queued, because only then does a refusal reach the visitor in words while unexpected errors stay hidden
    loud = {"show_progress": "hidden", "api_visibility": "private"}
    go.click(on_start, [preset, source, unit, amount, seed, run_id], run_id, **loud).success(on_poll, run_id, shown, **quiet)
    halt.click(on_stop, run_id, None, **loud).then(on_poll, run_id, shown, **quiet)
    timer.tick(on_poll, run_id, shown, **quiet)
    preset.change(lambda name: (measured(name, threads), *budget(name), PRESETS[name].data) if name in PRESETS else (gr.skip(),) * 4,
                  preset, [about, unit, amount, source], **quiet)
    source.change(download_note, source, note, **quiet)
    unit.change(lambda name: gr.Number(label=name.capitalize()) if name in ("minutes", "epochs") else gr.skip(), unit, amount, **quiet)
    look.click(lambda known: (known, gr.Button(visible=True), gr.Tabs(selected="explore")), run_id, [explore.run, explore.back, tabs], **quiet).then(
        explore.again, [explore.picture, explore.run], explore.viewer, api_visibility="private", **INFER)
    return on_poll, shown

"""What the page's forms offer, told by the server: recipes, sizes, pictures, and every setting with its kind, its range and one line."""

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from vitdemo import races
from vitdemo.config import LIMITS, TrainConfig, ViTConfig
from vitdemo.plan import EXPLAINED
from vitdemo.presets import MEASURED_ON, PRESETS, SIZES, Preset

# the budget has its own field; the owner and the data decide the rest
ELSEWHERE = {"minutes", "clock", "epochs", "steps", "threads", "classes"}
OFFERED = tuple(name for name in EXPLAINED if name not in ELSEWHERE)
PICTURES = {"image", "channels", "flip", "shift", "crop_least", "crop_most", "tint", "erase", "mix", "mix_end", "stages", "stage_ends", "validation"}
RANGES = {  # the smallest and the largest value of a number or of each number in a list, as the configs check them
    "batch": (1, 65536), "lr": (1e-8, 10), "muon_lr": (1e-8, 10), "head_rate": (1e-3, 1e3), "momentum": (0, 0.9999),
    "weight_decay": (0, 0.99), "warmup": (0, 0.99), "label_smoothing": (0, 0.99), "clip": (0, 1e6), "shift": (0, 64),
    "crop_least": (0.05, 4), "crop_most": (0.05, 4), "tint": (0, 1), "erase": (0, 1), "mix": (0, 1), "mix_end": (0, 1), "stages": (0.01, 1), "stage_ends": (0.01, 0.99), "validation": (0.001, 0.5), "evaluations": (1, 200), "seed": (0, 2**31 - 1),
    "image": (1, LIMITS["image"]), "patch": (1, LIMITS["patch"]),
    "channels": (1, 3), "dim": (1, LIMITS["dim"]), "depth": (1, LIMITS["depth"]), "heads": (1, LIMITS["heads"]),
    "mlp_dim": (0, LIMITS["mlp_dim"]), "registers": (0, LIMITS["registers"]), "prefix_positions": (-1, LIMITS["registers"]),
    "eps": (1e-12, 0.1),
}
KINDS = {int: "whole", float: "number", bool: "switch"}


def settings() -> list[dict[str, Any]]:
    """Every setting that a person may choose: its kind, choices or range, what each preset has there, and one line about it."""
    listed, own = [], {name: _of(preset) for name, preset in PRESETS.items()}
    for config in (ViTConfig, TrainConfig):
        for spec in fields(config):
            if spec.name not in OFFERED:
                continue
            kind = "choice" if get_origin(spec.type) is Literal else KINDS.get(spec.type, "list")
            low, high = RANGES.get(spec.name, (None, None))
            listed.append({
                "name": spec.name, "kind": kind, "choices": list(get_args(spec.type)) if kind == "choice" else None,
                "low": low, "high": high,
                "pair": kind == "list" and get_args(spec.type)[1] is not Ellipsis, "line": EXPLAINED[spec.name],
                "group": "pictures" if spec.name in PICTURES else "model" if config is ViTConfig else "training",
                "defaults": {name: values[spec.name] for name, values in own.items()}})
    return listed


def presets(threads: int, bfloat16: bool) -> list[dict[str, Any]]:
    """Every recipe: what it is, where it comes from, what is reported there, and what was measured, nearest to this host first."""
    return [{
        "name": name, "about": preset.about, "source": preset.source, "reported": preset.reported, "minutes": preset.train.minutes or None,
        "epochs": preset.train.epochs or None, "data": preset.data, "size": preset.size, "start": preset.start,
        "measured": [m._asdict() | {"machine": m.machine.name} for m in preset.near(preset.measured, threads, bfloat16)],
        "note": f"Measured on {MEASURED_ON}." if preset.measured else "Not measured here to the end." if preset.reported else "",
    } for name, preset in PRESETS.items()]


def sizes() -> list[dict[str, Any]]:
    return [{"name": name, "about": size.about, "settings": {key: value for key, value in size.config.to_json().items() if key in OFFERED}}
            for name, size in SIZES.items()]


def kinds() -> list[dict[str, Any]]:
    """The races that can be run."""
    return [{"kind": name, "title": kind.title, "question": kind.question, "a": kind.a, "b": kind.b, "budget": kind.budget}
            for name, kind in races.KINDS.items()]


def _of(preset: Preset) -> dict[str, Any]:
    return {**SIZES[preset.size].config.to_json(), **preset.train.to_json()}

"""What a training run is asked to do: a preset with what somebody chose instead, as it stands in the run's config.json."""

from dataclasses import fields
from typing import Any, NamedTuple

from vitdemo.config import PRESETS, SIZES, ConfigError, TrainConfig, ViTConfig


class Plan(NamedTuple):
    """What a run was asked to do; the same values as in config.json."""

    vit: ViTConfig
    train: TrainConfig
    data: str
    model: str                                  # the size's name
    preset: str

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "vit": self.vit.to_json(), "train": self.train.to_json()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Plan":
        try:
            return cls(ViTConfig.from_json(values["vit"]), TrainConfig.from_json(values["train"]),
                       str(values["data"]), str(values["model"]), str(values["preset"]))
        except KeyError as error:
            raise ConfigError(f"config.json of this run lacks {error.args[0]!r}: start a new run") from None


def plan(*, preset: str = "class", model: str | None = None, data: str | None = None, minutes: float | None = None,
         epochs: int | None = None, changes: dict[str, Any] | None = None) -> Plan:
    """A preset with what was chosen instead. `changes` may name any field of TrainConfig or ViTConfig. Raises ConfigError."""
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    chosen = PRESETS[preset]
    size = (model or chosen.size).lower()
    if size not in SIZES:
        raise ConfigError(f"there is no model size {size!r}; there are {', '.join(SIZES)}")
    if minutes is not None and epochs is not None:
        raise ConfigError("give minutes or epochs, not both")
    for name, amount in (("minutes", minutes), ("epochs", epochs)):
        if amount is not None and not amount > 0:
            raise ConfigError(f"{name} must be more than 0, not {amount:g}")
    budget = {} if minutes is None and epochs is None else {"minutes": minutes or 0.0, "epochs": epochs or 0}
    changes = {**budget, **(changes or {})}
    of_train, of_vit = ({spec.name for spec in fields(kind)} for kind in (TrainConfig, ViTConfig))
    unknown = sorted(set(changes) - of_train - of_vit)
    if unknown:
        raise ConfigError(f"there is no setting {unknown[0]!r}; there are {', '.join(sorted(of_train | of_vit))}")
    vit = SIZES[size].config.to_json() | {k: v for k, v in changes.items() if k not in of_train}
    train = chosen.train.to_json() | {k: v for k, v in changes.items() if k in of_train}
    return Plan(ViTConfig.from_json(vit), TrainConfig.from_json(train), str(data or chosen.data), size, preset)

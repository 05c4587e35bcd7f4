"""What happens when in a run: learning rates, picture sizes, looks and the test as shares of its budget of minutes or steps."""

import math

from vitdemo.config import TrainConfig, ViTConfig

TEST_SHARE, LEAST_TESTED = 0.1, 1000            # of a run's minutes that the test may take, and the pictures it has all the same
LOOKS_SHARE = 0.3                               # of a run's minutes that its looks may take after the one before the first step


def rate(progress: float, config: TrainConfig) -> float:
    """The factor on all learning rates after `progress` (0 to 1) of the budget: a linear rise, then the chosen decay to zero."""
    if progress < config.warmup:
        return progress / config.warmup
    rest = min(1.0, (progress - config.warmup) / (1 - config.warmup))
    return {"none": 1.0, "linear": 1 - rest, "cosine": (1 + math.cos(math.pi * rest)) / 2}[config.decay]


def pictures_tested(there: int, config: TrainConfig, each: float) -> int:
    """How many of `there` test pictures a run is tested with, at `each` seconds a picture: all of them, but where the minutes count everything
    only as many as TEST_SHARE of those hold."""
    if config.clock == "training" or not config.minutes or not each:
        return there
    return min(there, max(LEAST_TESTED, int(TEST_SHARE * 60 * config.minutes / each)))


def looks_made(config: TrainConfig, each: float) -> int:
    """How often a run looks after its first step, by the seconds that the look before it took: as often as it should, but where the minutes count
    everything only as often as LOOKS_SHARE of those allow, and once at least."""
    if config.clock == "training" or not config.minutes or not each:
        return config.evaluations
    return min(config.evaluations, max(1, int(LOOKS_SHARE * 60 * config.minutes / each)))


def training_time(config: TrainConfig, looks: float, test: float) -> float:
    """Seconds of a run of minutes that are left for training where all its `looks` and its `test` take so many; where the minutes count
    everything at least a fifth of them, so that every run trains."""
    whole = 60 * config.minutes
    return whole if config.clock == "training" else max(whole / 5, whole - looks - test)


def stage_size(progress: float, config: TrainConfig, vit: ViTConfig) -> tuple[int, int]:
    """(rows, cols) in pixels at which pictures are shown after `progress` of the budget: whole patches, at least one."""
    if not config.stages:
        return vit.image
    share = config.stages[sum(progress >= end for end in config.stage_ends)]
    return tuple(max(1, round(share * side / patch)) * patch for side, patch in zip(vit.image, vit.patch))


def stage_sizes(config: TrainConfig, vit: ViTConfig) -> list[tuple[int, int]]:
    """The sizes (rows, cols) in pixels at which pictures are shown in the course of a run, first to last."""
    return [stage_size(start, config, vit) for start in (0.0, *config.stage_ends)]

"""Named model sizes and training recipes: where each comes from, what is reported of it elsewhere, and what was measured here."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from vitdemo.config import TrainConfig, ViTConfig


@dataclass(frozen=True)
class Size:
    """A named architecture and one line about where it comes from."""

    config: ViTConfig
    about: str


def _paper(dim: int, depth: int, heads: int, patch: int) -> ViTConfig:
    return ViTConfig(dim=dim, depth=depth, heads=heads, patch=(patch, patch))


_SMALL = ViTConfig(image=(32, 32), patch=(4, 4), dim=96, depth=6, heads=3, classes=10)

SIZES: dict[str, Size] = {
    "vit-micro": Size(_SMALL, "683,242 parameters: learns CIFAR-10 on a laptop's CPU in minutes"),
    "vit-small-3.6m": Size(_SMALL.with_(dim=192, depth=8, heads=6), "3,583,306 parameters: width 192, 8 blocks, 6 heads; learns CIFAR-10 well in hours"),
    "vit-tiny-9.5m": Size(_SMALL.with_(dim=256, depth=12, heads=8),
                          "9,509,642 parameters: the from-scratch ViT reported at 71.82 % on CIFAR-10 after 20 epochs without augmentation"),
    "vit-notebook": Size(_SMALL.with_(dim=64, depth=4, heads=4),
                         "208,074 parameters: a ViT small enough for a notebook, width 64, 4 blocks, 4 heads, patches of 4 pixels"),
    "vit-mnist": Size(ViTConfig(image=(28, 28), patch=(4, 4), channels=1, dim=8, depth=2, heads=2, classes=10, positions="sinusoidal", init="xavier"),
                      "a ViT for digits, 7x7 patches and a width of 8: reported at 83 % on MNIST after 5 epochs"),
    "ti/16": Size(_paper(192, 12, 3, 16), "ViT-Ti/16: 5,717,416 parameters (Touvron et al. 2021)"),
    "s/16": Size(_paper(384, 12, 6, 16), "ViT-S/16: 22,050,664 parameters (Touvron et al. 2021)"),
    "b/16": Size(_paper(768, 12, 12, 16), "ViT-B/16: 86,567,656 parameters (table 1)"),
    "b/32": Size(_paper(768, 12, 12, 32), "ViT-B/32: 88,224,232 parameters (table 1)"),
    "l/16": Size(_paper(1024, 24, 16, 16), "ViT-L/16: 304,326,632 parameters (table 1)"),
    "l/32": Size(_paper(1024, 24, 16, 32), "ViT-L/32: 306,535,400 parameters (table 1)"),
    "h/14": Size(_paper(1280, 32, 16, 14), "ViT-H/14: 632,045,800 parameters (table 1)"),
}


class Machine(NamedTuple):
    """A processor that recipes were measured on."""

    name: str
    bfloat16: bool                  # whether it has instructions for it, in which it then multiplies


MEASURED_ON = "two virtual cores"
EPYC, XEON = Machine("an AMD EPYC with bfloat16", True), Machine("an Intel Xeon without bfloat16", False)
OLDER_EPYC = Machine("an AMD EPYC without bfloat16", False)


class Measured(NamedTuple):
    """What runs of a preset reached on MEASURED_ON; made by tests/benchmarks/short_runs.py, or said by the training command itself."""

    threads: int
    accuracy: float                 # on the test pictures, 0 to 1, the mean over n runs
    n: int
    seconds: float                  # of training
    images_per_second: float
    machine: Machine = EPYC


@dataclass(frozen=True)
class Preset:
    """A named training recipe, the model and data it is meant for, where it comes from, and what was measured.

    `start` "box": the recipe fine-tunes the model in the box unless another start is named.
    """

    train: TrainConfig
    size: str
    data: str
    about: str
    measured: tuple[Measured, ...] = ()
    source: str = ""
    reported: float | None = None   # accuracy on test pictures, 0 to 1, that `source` states and nobody measured here
    start: str = ""

    @property
    def recipe(self) -> tuple[TrainConfig, str]:
        """Equal for presets that differ in their length alone."""
        return self.train.with_(minutes=1, epochs=0, steps=0), self.size

    @property
    def of_recipe(self) -> tuple[Measured, ...]:
        """What was measured of this recipe, in runs of this preset and of others that differ in their length alone."""
        others = (other for other in PRESETS.values() if other is not self and other.recipe == self.recipe)
        return sum((other.measured for other in others), self.measured)

    def near(self, rows: tuple[Measured, ...], threads: int, bfloat16: bool | None = None) -> list[Measured]:
        """`rows`, first those of processors that have bfloat16, or have it not, as said, then with the nearest number of threads, then of the
        length nearest to this preset's, then over the most runs."""
        whole = 60 * self.train.minutes
        return sorted(rows, key=lambda row: (bfloat16 not in (None, row.machine.bfloat16), abs(row.threads - threads),
                                             abs(math.log(row.seconds / whole)) if whole else 0.0, -row.n))

    def nearest(self, threads: int, bfloat16: bool | None = None) -> Measured | None:
        """The first of `of_recipe` in that order; None where nothing was measured."""
        return next(iter(self.near(self.of_recipe, threads, bfloat16)), None)


_CLASS = TrainConfig(minutes=3, stages=(0.5, 0.75, 1.0), stage_ends=(0.45, 0.75), shift=0)
# more pictures in the time by larger batches, faster steps, and mixing against learning pictures by heart
_BREAK = _CLASS.with_(minutes=10, batch=256, lr=3e-3, muon_lr=0.015, weight_decay=0.1, stage_ends=(0.4, 0.7), shift=3, mix=0.4)
# heavier changes and lower rates: a long run sees every picture dozens of times
_LONG = TrainConfig(epochs=60, batch=256, stages=(0.5, 0.75, 1.0), stage_ends=(0.5, 0.8), shift=0, crop_least=0.4, crop_most=2.4,
                    tint=0.3, erase=0.2, mix=0.5)
_OURS = "this program's own recipe: Muon (Jordan et al. 2024) for the blocks' matrices, AdamW for the rest, pictures that grow to full size"
_MIXED = _OURS + "; mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019)"
_CROPPED = _MIXED + "; random resized crops (Szegedy et al. 2015), erasing (Zhong et al. 2020)"

PRESETS: dict[str, Preset] = {
    "quick": Preset(_CLASS.with_(minutes=1), "vit-micro", "cifar10", "one minute: a first look",
                    (Measured(2, 0.720, 3, 60, 2218), Measured(2, 0.710, 3, 60, 2024), Measured(1, 0.679, 2, 60, 1493), Measured(2, 0.642, 3, 60, 1266, XEON), Measured(1, 0.520, 2, 48, 759, XEON),
                     Measured(2, 0.552, 3, 60.4, 706, OLDER_EPYC), Measured(1, 0.511, 2, 60.3, 565, OLDER_EPYC)), source=_OURS),
    "class": Preset(_CLASS, "vit-micro", "cifar10", "three minutes: fits into a lesson",
                    (Measured(2, 0.800, 3, 180, 2232), Measured(2, 0.798, 3, 180, 2097), Measured(2, 0.820, 1, 360, 2057), Measured(1, 0.777, 2, 180, 1494),
                     Measured(2, 0.709, 3, 180, 701, OLDER_EPYC), Measured(1, 0.651, 2, 180, 429, OLDER_EPYC)), source=_OURS),
    "break": Preset(_BREAK, "vit-micro", "cifar10", "ten minutes: fits into a break",
                    (Measured(2, 0.854, 3, 600, 2488), Measured(2, 0.849, 3, 600, 2448), Measured(2, 0.852, 3, 600, 2571), Measured(2, 0.816, 1, 600, 1287, XEON),
                     Measured(2, 0.776, 1, 601, 681, OLDER_EPYC), Measured(1, 0.842, 2, 600.2, 1832), Measured(1, 0.833, 1, 600, 1688), Measured(1, 0.790, 2, 600, 903), Measured(1, 0.871, 1, 3600, 868)), source=_MIXED),
    "hour": Preset(_LONG.with_(minutes=60, epochs=0, stage_ends=(0.35, 0.65), crop_least=0.5, crop_most=1.3, tint=0.1, erase=0.1, mix=0.6, mix_end=0.85),
                   "vit-small-3.6m", "cifar10", "an hour: a larger model, pictures cropped and mixed",
                   (Measured(2, 0.900, 1, 3600, 732), Measured(2, 0.893, 1, 3601, 607),
                    Measured(2, 0.895, 1, 3600, 654),                       # the best of six recipes by its test pictures, which flatters
                    Measured(2, 0.891, 1, 12602, 155, OLDER_EPYC), Measured(1, 0.817, 1, 3600, 208)), source=_CROPPED),
    "best": Preset(_LONG, "vit-small-3.6m", "cifar10",
                   "60 epochs of changed and mixed pictures: hours on a CPU, made for pictures that people bring along",
                   (Measured(2, 0.903, 1, 5669, 501),),                     # the box's first training, other programs beside
                   source=_CROPPED),
    "tune": Preset(TrainConfig(minutes=0.5, optimizer="adamw", lr=1e-4, head_rate=30, batch=64), "vit-micro", "cifar10",
                   "half a minute of fine-tuning: your own pictures, on top of a model that can see already",
                   source="fine-tuning with a fresh zero-initialised linear head, as in section 3.1 of the ViT paper", start="box"),
    "plain": Preset(TrainConfig(epochs=20, optimizer="adamw", lr=1e-3, decay="cosine", flip=False, shift=0, label_smoothing=0.0,
                                zero_head=False),
                    "vit-tiny-9.5m", "cifar10", "the textbook recipe: AdamW at full size, no augmentation; hours on a CPU",
                    source="a public from-scratch ViT of 9.5 million parameters: CIFAR-10, 20 epochs, no augmentation", reported=0.7182),
    "notebook": Preset(TrainConfig(epochs=5, optimizer="adamw", lr=1e-3, warmup=0.0, decay="none", flip=False, shift=0, label_smoothing=0.0,
                                   clip=0.0, zero_head=False),
                       "vit-notebook", "cifar10", "the small notebook ViT: plain AdamW for five epochs, no augmentation",
                       (Measured(1, 0.590, 3, 300, 791),), source="the small ViT of public notebooks: width 64, 4 blocks, 4 heads, patch 4, 5 epochs; no accuracy is reported"),
    "mnist": Preset(TrainConfig(epochs=5, optimizer="adam", lr=5e-3, weight_decay=0.0, warmup=0.0, decay="none", flip=False, shift=0,
                                label_smoothing=0.0, clip=0.0, zero_head=False),
                    "vit-mnist", "mnist", "digits: plain Adam at a rate of 0.005 for five epochs", (Measured(1, 0.861, 3, 58, 4910),),
                    source="a public step-by-step ViT for MNIST: 7x7 patches, width 8, 2 heads, 2 blocks, sinusoidal positions, 5 epochs",
                    reported=0.83),
}


NEAR = 1.1                                      # times as many pictures: no more teach about as much


class Learned(NamedTuple):
    """What runs of one recipe had learned after `images` training pictures, repeats counted."""

    images: int
    accuracy: float                 # on the test pictures, 0 to 1
    n: int                          # runs behind the accuracy


def _rising(points: list[Learned]) -> tuple[Learned, ...]:
    """The points in the order of their images; of points that lie within a tenth of each other, and where more pictures had taught no more
    (isotonic regression), the mean over those runs."""
    found: list[Learned] = []
    for point in sorted(points):
        while found and (found[-1].accuracy >= point.accuracy or found[-1].images * NEAR >= point.images):
            point = _together(found.pop(), point)
        found.append(point)
    return tuple(found)


def _together(a: Learned, b: Learned) -> Learned:
    n = a.n + b.n
    return Learned(round(math.exp((a.n * math.log(a.images) + b.n * math.log(b.images)) / n)), (a.n * a.accuracy + b.n * b.accuracy) / n, n)


def learned(preset: str) -> tuple[Learned, ...]:
    """What runs of a recipe had learned, whatever the length of the preset they were runs of."""
    return _rising([Learned(round(m.seconds * m.images_per_second), m.accuracy, m.n) for m in PRESETS[preset].of_recipe])


class Expected(NamedTuple):
    """What a run can be expected to reach."""

    accuracy: float                 # on the test pictures, 0 to 1
    n: int                          # measured runs that say so


def expected(images: float, preset: str = "class") -> Expected | None:
    """What a recipe reaches on CIFAR-10 after `images` pictures: the measured points joined by straight lines over log(images), the first
    line going on for a factor of 1.5 downwards; up to 1.5 times the most that was measured no more is promised than that had; None beyond
    both, where nothing was measured. A single point holds for a tenth more or fewer pictures."""
    points = learned(preset)
    beyond = 1.5 if len(points) > 1 else NEAR
    if not points or not points[0].images / beyond <= images <= points[-1].images * beyond:
        return None
    if len(points) == 1 or images >= points[-1].images:
        return Expected(points[-1].accuracy, points[-1].n)
    right = next((i for i, point in enumerate(points[1:-1], 1) if images <= point.images), len(points) - 1)
    low, high = points[right - 1], points[right]
    share = math.log(images / low.images) / math.log(high.images / low.images)
    return Expected(low.accuracy + share * (high.accuracy - low.accuracy), low.n + high.n)

"""Published Vision Transformers that can be opened by name: where each lies, what it is, how it wants its pictures, who may use it.

The file is a table and costs nothing to import: no torch, no network. What torchvision says of its own weights (their address, ImageNet's
class names) is asked of its public API when somebody needs it; the numbers here are compared with it, and with timm, in the tests.
"""

from dataclasses import dataclass
from typing import NamedTuple

from vitdemo.config import Preprocessing, ViTConfig


class Hub(NamedTuple):
    """A file in a model repository of the Hugging Face hub."""

    repo: str                       # "user/name"
    file: str = "model.safetensors"
    revision: str = "main"


class Torchvision(NamedTuple):
    """Weights by their name in torchvision, as `torchvision.models.get_weight` takes it."""

    weights: str                    # "ViT_B_16_Weights.IMAGENET1K_V1"


@dataclass(frozen=True)
class Entry:
    """One published model."""

    name: str                       # what `vitdemo.load` and the page call it: lower case letters, digits, hyphens
    title: str
    line: str                       # one sentence: what it is and what is worth seeing in it
    where: Hub | Torchvision
    megabytes: int                  # of 10^6 bytes, that getting it downloads
    parameters: int
    licence: str
    learned_from: str
    reported: float | None          # accuracy, 0 to 1
    reported_as: str                # of what, and who says so
    config: ViTConfig
    preprocessing: Preprocessing
    naming: str                     # whose parameter names the file has: "timm", "torchvision", "Hugging Face"

    @property
    def result(self) -> str:
        """The reported accuracy in words; empty where there is none."""
        return "" if self.reported is None else f"{self.reported:.1%} {self.reported_as}"


def find(name: str) -> Entry | None:
    """The entry called `name`."""
    return next((entry for entry in ENTRIES if entry.name == name), None)


def class_names(config: ViTConfig) -> tuple[str, ...] | None:
    """ImageNet-1k's class names, in the order that all of its models use, as torchvision's weights carry them; None unless K is 1000."""
    if config.classes != 1000:
        return None
    from torchvision.models import get_weight

    return tuple(get_weight("ViT_B_16_Weights.IMAGENET1K_V1").meta["categories"])


_SHAPES = {"ti": (192, 12, 3), "s": (384, 12, 6), "b": (768, 12, 12), "l": (1024, 24, 16), "h": (1280, 32, 16)}    # width, depth, heads
_WORDS = {"ti": "tiny", "s": "small", "b": "base", "l": "large"}            # what repositories call them
_LETTERS = {"ti": "Ti", "s": "S", "b": "B", "l": "L", "h": "H"}             # and papers

_HALF = Preprocessing(size=(224, 224), crop_fraction=224 / 248)             # timm's 0.9: the shorter side becomes 248
_IMAGENET = _HALF.with_(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

_IN1K = "ImageNet-1k: 1.3 million pictures labelled with 1000 classes"
_IN21K = "ImageNet-21k: 14 million labelled pictures, then ImageNet-1k"
_TOP1 = "top-1 on ImageNet-1k, by "
_LINEAR = "top-1 on ImageNet-1k of a linear classifier on top, by its authors"


def _vit(size: str, patch: int, image: int = 224) -> ViTConfig:
    dim, depth, heads = _SHAPES[size]
    return ViTConfig(image=(image, image), patch=(patch, patch), dim=dim, depth=depth, heads=heads)


def _megabytes(parameters: int) -> int:
    return round(parameters * 4 / 1e6)                                      # all are float32; names and shapes add some kilobytes


def _augreg(size: str, *, parameters: int, reported: float, line: str) -> Entry:
    """Steiner et al. 2021, "How to train your ViT?", in timm's port."""
    return Entry(
        name=f"augreg-{size}16", title=f"ViT-{_LETTERS[size]}/16 (AugReg)", line=line,
        where=Hub(f"timm/vit_{_WORDS[size]}_patch16_224.augreg_in21k_ft_in1k"), megabytes=_megabytes(parameters), parameters=parameters,
        licence="Apache 2.0", learned_from=_IN21K, reported=reported, reported_as=_TOP1 + "timm's results table",
        config=_vit(size, 16), preprocessing=_HALF, naming="timm")


def _deit(size: str, *, parameters: int, reported: float, line: str, distilled: bool = False) -> Entry:
    """Touvron et al. 2021, "Training data-efficient image transformers"."""
    return Entry(
        name=f"deit-{size}16" + "-distilled" * distilled, title=f"DeiT-{_LETTERS[size]}/16" + ", distilled" * distilled, line=line,
        where=Hub(f"timm/deit_{_WORDS[size]}{'_distilled' * distilled}_patch16_224.fb_in1k"), megabytes=_megabytes(parameters),
        parameters=parameters, licence="Apache 2.0", learned_from=_IN1K + ", and a teacher" * distilled,
        reported=reported, reported_as=_TOP1 + "timm's results table",
        config=_vit(size, 16).with_(distilled=distilled), preprocessing=_IMAGENET, naming="timm")


def _dino(size: str, patch: int, *, parameters: int, reported: float, line: str) -> Entry:
    """Caron et al. 2021, "Emerging properties in self-supervised vision transformers"."""
    return Entry(
        name=f"dino-{size}{patch}", title=f"DINO ViT-{_LETTERS[size]}/{patch}", line=line,
        where=Hub(f"timm/vit_{_WORDS[size]}_patch{patch}_224.dino"), megabytes=_megabytes(parameters), parameters=parameters,
        licence="Apache 2.0", learned_from="the pictures of ImageNet-1k, without their labels", reported=reported, reported_as=_LINEAR,
        config=_vit(size, patch).with_(classes=0), preprocessing=_IMAGENET, naming="timm")


def _dinov2(size: str, *, parameters: int, reported: float, line: str, registers: int = 0) -> Entry:
    """Oquab et al. 2023, "DINOv2"; with registers Darcet et al. 2024. timm's port of the latter has added the class token's position to
    the token itself, so that no prefix token has one."""
    config = _vit(size, 14, 518).with_(classes=0, layer_scale=True, registers=registers, prefix_positions=0 if registers else -1)
    return Entry(
        name=f"dinov2-{size}14" + "-registers" * bool(registers), line=line,
        title=f"DINOv2 ViT-{_LETTERS[size]}/14" + f", {registers} registers" * bool(registers),
        where=Hub(f"timm/vit_{_WORDS[size]}_patch14{f'_reg{registers}' * bool(registers)}_dinov2.lvd142m"),
        megabytes=_megabytes(parameters), parameters=parameters, licence="Apache 2.0",
        learned_from="142 million pictures without labels, by way of a larger model", reported=reported, reported_as=_LINEAR,
        config=config, preprocessing=_IMAGENET.with_(size=(518, 518), crop_fraction=1.0), naming="timm")


def _torchvision(size: str, patch: int, *, resize: int, parameters: int, reported: float, line: str) -> Entry:
    """torchvision's own training, from scratch."""
    return Entry(
        name=f"torchvision-{size}{patch}", title=f"ViT-{_LETTERS[size]}/{patch} (torchvision)", line=line,
        where=Torchvision(f"ViT_{_LETTERS[size]}_{patch}_Weights.IMAGENET1K_V1"), megabytes=_megabytes(parameters), parameters=parameters,
        licence="BSD 3-Clause, as torchvision; the weights name none", learned_from=_IN1K, reported=reported,
        reported_as=_TOP1 + "torchvision", config=_vit(size, patch),
        preprocessing=_IMAGENET.with_(crop_fraction=224 / resize, interpolation="bilinear"), naming="torchvision")


def _swag(size: str, patch: int, *, image: int, kind: str, parameters: int, reported: float, line: str) -> Entry:
    """Singh et al. 2022, "Revisiting weakly supervised pre-training of visual perception models", in torchvision's port."""
    return Entry(
        name=f"swag-{size}{patch}", title=f"ViT-{_LETTERS[size]}/{patch} (SWAG)", line=line,
        where=Torchvision(f"ViT_{_LETTERS[size]}_{patch}_Weights.IMAGENET1K_SWAG_{kind}_V1"), megabytes=_megabytes(parameters),
        parameters=parameters, licence="CC BY-NC 4.0: not for commercial use",
        learned_from="3.6 billion pictures with the hashtags under them, then ImageNet-1k", reported=reported,
        reported_as=_TOP1 + "torchvision", config=_vit(size, patch, image),
        preprocessing=_IMAGENET.with_(size=(image, image), crop_fraction=1.0), naming="torchvision")


ENTRIES: tuple[Entry, ...] = (
    _augreg("ti", parameters=5_717_416, reported=0.75454,
            line="The smallest that knows a thousand classes: three heads a layer, few enough to look at all of them."),
    _augreg("s", parameters=22_050_664, reported=0.81384,
            line="A good first model for photos: six heads a layer, quick on a laptop, right four times in five."),
    _augreg("b", parameters=86_567_656, reported=0.84532,
            line="The paper's base size taught with many pictures: compare it with torchvision's, which saw fewer."),
    _deit("ti", parameters=5_717_416, reported=0.72172,
          line="Taught with ImageNet-1k alone: compare its maps with AugReg's, the same shape that saw more pictures."),
    _deit("s", parameters=22_050_664, reported=0.79844,
          line="Taught with labels: compare its maps with DINO's, the same shape taught without any."),
    _deit("ti", parameters=5_910_800, reported=0.74500, distilled=True,
          line="Two tokens read the picture, one taught by labels and one by another network: see where they look."),
    _deit("s", parameters=22_436_432, reported=0.81218, distilled=True,
          line="Two tokens with a head each, and the answer is the mean of both: see where the two look differently."),
    _dino("s", 16, parameters=21_665_664, reported=0.770,
          line="It never saw a label, and yet heads of its last layer outline the things in a picture."),
    _dino("s", 8, parameters=21_670_272, reported=0.797,
          line="Patches of 8 pixels, four times as many as DINO S/16 has: finer outlines, but slower."),
    _dino("b", 16, parameters=85_798_656, reported=0.782,
          line="Twelve heads that learned without labels: see how they share a picture among them."),
    _dinov2("s", parameters=22_056_192, reported=0.811,
            line="Its patch features shown as colours tell the parts of things apart; click a patch to find others like it."),
    _dinov2("s", parameters=22_057_344, reported=0.809, registers=4,
            line="The same with four register tokens, which stand for no place in the picture: see what they read."),
    _dinov2("b", parameters=86_579_712, reported=0.845,
            line="Twice as wide as the small one: put two pictures side by side and see which parts match."),
    _dinov2("l", parameters=304_367_616, reported=0.863,
            line="Large enough to use a few empty patches as scratch paper: look for tokens with an outlying norm."),
    _dinov2("l", parameters=304_370_688, reported=0.867, registers=4,
            line="Four registers take the place of the scratch paper: compare its maps and norms with the one without."),
    Entry(
        name="google-b16", title="ViT-B/16 (Google)", where=Hub("google/vit-base-patch16-224"), megabytes=346, parameters=86_567_656,
        line="The paper's base model in Hugging Face's port: it sees the whole photo, squeezed into a square.",
        licence="Apache 2.0", learned_from=_IN21K, reported=0.812, reported_as="top-1 on ImageNet-1k, as its authors expect",
        config=_vit("b", 16).with_(eps=1e-12), naming="Hugging Face",
        preprocessing=Preprocessing(size=(224, 224), interpolation="bilinear", fit="squash")),
    _torchvision("b", 16, resize=256, parameters=86_567_656, reported=0.81072,
                 line="The paper's base size taught from scratch with ImageNet-1k alone, after DeiT's recipe."),
    _torchvision("b", 32, resize=256, parameters=88_224_232, reported=0.75912,
                 line="Patches of 32 pixels, 49 in all: quick, coarse, and less often right than with patches of 16."),
    _torchvision("l", 16, resize=242, parameters=304_326_632, reported=0.79662,
                 line="Twice as deep as ViT-B/16, yet less often right when ImageNet-1k is all that it saw."),
    _torchvision("l", 32, resize=256, parameters=306_535_400, reported=0.76972,
                 line="The large shape on a grid of 7 by 7 patches: 24 layers of 16 heads, each map of 49 cells."),
    _swag("b", 16, image=384, kind="E2E", parameters=86_859_496, reported=0.85304,
          line="The base size at 384 pixels, a grid of 24 by 24: more often right than any other of its size here."),
    _swag("h", 14, image=224, kind="LINEAR", parameters=632_045_800, reported=0.85708,
          line="The paper's largest, 32 layers of 16 heads: taught by hashtags, only its head knows ImageNet."),
)

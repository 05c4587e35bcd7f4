"""What the model makes of a few chosen pictures at every look of a training run: predictions, attention, filters, positions.

A run's folder keeps it as film/scene.json, which stays, and one line of film/frames.jsonl for each look. Attention travels as 8-bit
shares of each head's largest weight, everything else as rounded numbers: a frame of a small model takes about 15 kB.
"""

import base64
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from vitdemo import attention, embedding
from vitdemo.config import Preprocessing
from vitdemo.evaluate import predict
from vitdemo.explain import reader_name
from vitdemo.images import Input, PictureError, open_picture, to_input
from vitdemo.model import Trace, ViT
from vitdemo.payload import data_url, in_view, pack, prefix_names
from vitdemo.runfolder import RunFolder

if TYPE_CHECKING:
    from vitdemo.data import Split
    from vitdemo.evaluate import Report
    from vitdemo.train import Step

SUBJECTS = 6                                    # pictures a person may choose
UNCHOSEN = 3                                    # validation pictures, where nobody chose
LONGEST_SIDE = 320                              # of a subject as it travels, in pixels
FILTERS = 32
FILTER_BYTES = 24 * 2**10                       # of all filters in a frame: fewer are taken where patches are large
TILES = 8                                       # position tiles along a side; the others are left out
LARGEST_GRID = 1024                             # patches up to which positions are compared
LARGEST_MATRIX = 128                            # classes up to which a frame holds the confusion matrix


class Subject(NamedTuple):
    """A picture that the model is shown at every look."""

    name: str
    picture: Image.Image
    seen: Input
    truth: int | None               # the class it belongs to, known of validation pictures only


class Camera:
    """Takes a run's film. `open` comes first, also when a run goes on; `shoot` follows at every look at `validation`."""

    def __init__(self, folder: RunFolder, *, classes: tuple[str, ...], preprocessing: Preprocessing, validation: "Split",
                 watched: int = 16):
        self.folder, self.classes, self.preprocessing = folder, classes, preprocessing
        self.rows = taking_turns(validation.labels, watched)
        self.watched = validation[torch.tensor(self.rows, dtype=torch.long)]
        self.subjects: list[Subject] = []
        self.last = -1

    def open(self, model: nn.Module) -> None:
        """Choose the subjects and write the scene, unless an earlier part of the run did. Raises RunError where it cannot be written."""
        self.subjects = self._chosen(model.config.patch) or self._unchosen(model.config.patch)
        self.last = max((frame.get("step", -1) for frame in self.folder.frames()[0]), default=-1)
        if self.folder.scene() is None:
            self.folder.write_scene(self._scene(model))

    def shoot(self, model: nn.Module, step: "Step", report: "Report") -> None:
        """Append what `model` does now; a step that is on film already is left out. Raises RunError where it cannot be written."""
        if step.step <= self.last:
            return
        self.folder.add_frame({
            "step": step.step, "epoch": round(step.epoch, 4), "seconds": round(step.seconds, 3), "progress": round(step.progress, 5),
            "loss": step.loss, "accuracy": round(report.accuracy, 5), "standard_error": round(report.standard_error, 5), "n": report.n,
            "subjects": self._answers(model), "watched": self._guesses(step.logits),
            "filters": filters(model), "positions": positions(model), "report": _mistakes(report)})
        self.last = step.step

    def _chosen(self, patch: tuple[int, int]) -> list[Subject]:
        """What stands in the folder; a file that is no picture is passed over."""
        found = []
        for path in sorted(self.folder.film.glob("subject-*"))[:SUBJECTS]:
            try:
                picture = open_picture(path).image
            except PictureError:
                continue
            name = path.stem.split("-", 2)[2:] or [f"picture {len(found) + 1}"]             # subject-0.png, or subject-0-cat.png
            found.append(Subject(name[0], picture, to_input(picture, self.preprocessing, patch), None))
        return found

    def _unchosen(self, patch: tuple[int, int]) -> list[Subject]:
        pairs = zip(map(pixels, self.watched.images[:UNCHOSEN]), self.watched.labels[:UNCHOSEN].tolist(), strict=True)
        return [Subject(self.classes[label], picture, to_input(picture, self.preprocessing, patch), label) for picture, label in pairs]

    def _scene(self, model: nn.Module) -> dict[str, Any]:
        config, attends = model.config, isinstance(model, ViT)
        return {
            "classes": list(self.classes), "layers": config.depth if attends else 0, "heads": config.heads if attends else 0,
            "rows": config.grid[0], "cols": config.grid[1], "patch": list(config.patch),
            "prefix": config.prefix if attends else 0, "prefix_names": prefix_names(config) if attends else [],
            "reader": reader_name(config) if attends else "", "subjects": list(map(_drawn, self.subjects)),
            "watched": [{"picture": data_url(pixels(image), "PNG"), "truth": label}
                        for image, label in zip(self.watched.images, self.watched.labels.tolist(), strict=True)]}

    @torch.inference_mode()
    def _answers(self, model: nn.Module) -> list[dict[str, Any]]:
        """The leading classes and the attention of every subject."""
        if not self.subjects:
            return []
        if isinstance(model, ViT):                                          # nothing in it behaves otherwise while it is trained
            trace = model.trace(torch.cat([subject.seen.tensor for subject in self.subjects]).to(model.head.weight.device))
            shares, reads = trace.logits.softmax(-1).cpu(), [pack(one, "u1") for one in _reads(model, trace)]
        else:
            seen = torch.stack([_tensor(subject.seen.seen) for subject in self.subjects])
            shares, reads = predict(model, seen, self.preprocessing).softmax(-1), [None] * len(seen)
        leading = shares.topk(min(3, shares.shape[1]))
        return [{"top": [[i, round(share, 5)] for i, share in zip(*pair, strict=True)], "reads": packed}
                for *pair, packed in zip(leading.indices.tolist(), leading.values.tolist(), reads, strict=True)]

    def _guesses(self, logits: Tensor) -> list[list[float]]:
        """[answer, its share, share of the truth] for each watched picture, from the logits of the whole validation part."""
        shares = logits[self.rows].float().softmax(-1)
        highest, answers = shares.max(1)
        truths = shares.gather(1, self.watched.labels[:, None])[:, 0]
        return [[answer, round(high, 5), round(truth, 5)]
                for answer, high, truth in zip(answers.tolist(), highest.tolist(), truths.tolist(), strict=True)]


def taking_turns(labels: Tensor, count: int) -> list[int]:
    """Rows of up to `count` pictures of `labels` (N,), shuffled, always the same, and so that the classes take turns."""
    turns, met = [], Counter()
    for row in torch.randperm(len(labels), generator=torch.Generator().manual_seed(0)).tolist():
        label = int(labels[row])
        turns.append((met[label], row))
        met[label] += 1
    turns.sort(key=lambda turn: turn[0])
    return [row for _, row in turns[:count]]


def filters(model: nn.Module) -> dict[str, Any] | None:
    """The first filters of the patch embedding in the model's own order, (count, rows, cols, channels) in 8 bits, on one scale with zero
    at 127.5 (see `embedding.filters`); None for another kind of model, or where one filter is too large already."""
    size = model.config.patch[0] * model.config.patch[1] * model.config.channels
    count = min(FILTERS, FILTER_BYTES // size)
    if not isinstance(model, ViT) or not count:
        return None
    found = embedding.filters(model, count, strongest=False)
    return {**dict(zip(("count", "rows", "cols", "channels"), found.shape, strict=True)), "data": _bytes(found)}


def positions(model: nn.Module) -> dict[str, Any] | None:
    """How alike positions are, tiles (r, c) of (rows, cols) in 8 bits from -1 to 1; None without positions. Tile (i, j) is the patch
    (i * ceil(rows / 8), j * ceil(cols / 8)), so at most 8 x 8 tiles travel."""
    if not isinstance(model, ViT) or model.config.patches > LARGEST_GRID:
        return None
    similarity = embedding.position_similarity(model)
    if similarity is None:
        return None
    rows, cols = model.config.grid
    tiles = similarity[::-(-rows // TILES), ::-(-cols // TILES)]
    return {"rows": rows, "cols": cols, "tiles": list(tiles.shape[:2]), "data": _bytes((tiles + 1) / 2)}


def pixels(image: Tensor) -> Image.Image:
    """A picture of a data set, uint8 (C, rows, cols), as PIL has it."""
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def _tensor(image: Image.Image) -> Tensor:
    """The other way round."""
    array = np.array(image)
    return torch.from_numpy(array.reshape(*array.shape[:2], -1)).permute(2, 0, 1)


def _drawn(subject: Subject) -> dict[str, Any]:
    shown, crop = in_view(subject.picture, subject.seen.geometry, LONGEST_SIDE)
    lossless = max(shown.size) <= 96                                        # JPEG would smear the few pixels of a small picture
    return {"name": subject.name, "picture": data_url(shown, "PNG" if lossless else "JPEG"), "height": shown.height, "width": shown.width,
            "crop": crop, "seen": data_url(subject.seen.seen, "PNG"), "truth": subject.truth}


def _reads(model: ViT, trace: Trace) -> np.ndarray:
    """What the reader reads in every layer and head of each picture, (B, L, H, T)."""
    config = model.config
    maps = attention.class_maps(trace.queries, trace.keys, prefix=config.prefix, grid=config.grid, class_token=config.pool == "cls")
    return torch.cat((maps.prefix, maps.patches.flatten(3)), dim=3).cpu().numpy()


def _mistakes(report: "Report") -> dict[str, Any]:
    def short(share: float | None) -> float | None:
        return None if share is None else round(share, 5)

    return {"confusion": [list(row) for row in report.confusion] if len(report.classes) <= LARGEST_MATRIX else None,
            "calibration": [[part.count, short(part.confidence), short(part.right)] for part in report.calibration],
            "ece": short(report.expected_calibration_error), "per_class": [short(share) for share in report.per_class.values()]}


def _bytes(shares: Tensor) -> str:
    """Numbers from 0 to 1 as 8-bit shares, base64."""
    return base64.b64encode((shares * 255).round().byte().cpu().numpy().tobytes()).decode()

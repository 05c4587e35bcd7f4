"""A closer look at a run: the pictures of one cell of its confusion matrix with their maps, and its film as a file."""

import base64

import numpy as np
import torch
from torch import Tensor

from vitdemo import attention, filenames, filmstrip, mistakes, words
from vitdemo.checkpoint import Loaded
from vitdemo.explain import reader_name
from vitdemo.film import pixels
from vitdemo.images import normalise
from vitdemo.payload import data_url
from vitdemo.runs import RunFolder
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request, RequestError
from vitdemo.ui.reach import Reach, title_of

PARTS = ("validation", "test")
MOST_CLASSES = 100_000
TYPES = {"webp": "image/webp", "gif": "image/gif"}


class Closer:
    """Answers that need a run's weights or its whole film; each takes up to a few seconds."""

    def __init__(self, reach: Reach):
        self._reach = reach

    def cell(self, request: Request) -> Answer:
        """Pictures of one class that got one answer, the most confident first, with what the run's best model reads in its last layer."""
        run_id = fields.run(request)
        part = fields.choice(request, "part", PARTS, default="validation")
        truth, answer = (fields.whole(request, name, MOST_CLASSES) for name in ("truth", "answer"))
        folder = self._reach.folder(run_id)
        found = mistakes.cell(folder.mistakes(part), truth, answer)
        loaded = self._model(folder, run_id)
        maps = last_maps(loaded, found.pictures) if loaded and len(found.pictures) else None
        pictures = [{"picture": data_url(pixels(image), "PNG"), "confidence": confidence, "map": None if maps is None else packed(maps[i])}
                    for i, (image, confidence) in enumerate(zip(found.pictures, found.confidence.tolist(), strict=True))]
        layer = loaded.config.depth if loaded else 0
        return {"count": found.count, "shown": len(pictures), "pictures": pictures, "layer": layer,
                "sentence": told(found.count, len(pictures), loaded, right=truth == answer)}

    def export(self, request: Request) -> Answer:
        """The film of one of its pictures as an animated WebP or GIF."""
        folder = self._reach.folder(fields.run(request))
        kind = fields.choice(request, "kind", tuple(TYPES), default="webp")
        scene, frames = folder.scene(), folder.frames()[0]
        if scene is None or not frames:
            raise RequestError(words.NO_FILM)
        if not scene["layers"]:
            raise RequestError(words.NO_MAPS)
        if not scene["subjects"]:
            raise RequestError(words.NO_SUBJECTS)
        subject = fields.whole(request, "subject", len(scene["subjects"]) - 1, default=0)
        layer = fields.whole(request, "layer", scene["layers"] - 1, default=scene["layers"] - 1)
        named = request.get("head") is None or isinstance(request["head"], str)
        head = fields.choice(request, "head", ("mean",), default="mean") if named else fields.whole(request, "head", scene["heads"] - 1)
        content = filmstrip.animate(scene, frames, folder.steps(), subject=subject, layer=layer, head=head, kind=kind,
                                    seconds_per_frame=fields.number(request, "seconds", 5, least=0.1, default=0.6))
        return {"name": f"vitdemo-{filenames.plain(title_of(folder.config())) or 'run'}-film.{kind}", "type": TYPES[kind],
                "data": base64.b64encode(content).decode()}

    def _model(self, folder: RunFolder, run_id: str) -> Loaded | None:
        return self._reach.models.get(run_id) if folder.best.is_file() else None


@torch.inference_mode()
def last_maps(loaded: Loaded, pictures: Tensor) -> np.ndarray | None:
    """What the reader reads in the last layer, the mean of its heads, (m, rows, cols), for uint8 pictures (m, C, height, width) of the
    model's own size; None where they have another."""
    config = loaded.config
    if tuple(pictures.shape[1:]) != (config.channels, *config.image):
        return None
    trace = loaded.model.trace(normalise(pictures, loaded.preprocessing))
    maps = attention.class_maps(trace.queries[-1:], trace.keys[-1:], prefix=config.prefix, grid=config.grid,
                                class_token=config.pool == "cls")
    return maps.patches[:, 0].mean(1).numpy()


def packed(weights: np.ndarray) -> Answer:
    """A map (rows, cols) as 8-bit shares of its largest weight."""
    high = float(weights.max())
    shares = np.round(255 * weights / (high or 1)).clip(0, 255).astype(np.uint8)
    return {"rows": weights.shape[0], "cols": weights.shape[1], "high": high, "data": base64.b64encode(shares.tobytes()).decode()}


def told(count: int, shown: int, loaded: Loaded | None, *, right: bool) -> str:
    """What is seen of a cell, in words."""
    if not count:
        return "No picture was called this." if not right else "No picture of this class was called by its name."
    pictures = f"{count:,} picture{'' if count == 1 else 's'}"
    seen = "" if shown == count else f"; the {shown} most confident ones are shown" if shown else "; none was kept"
    maps = ""
    if loaded and shown:
        maps = f", with what {reader_name(loaded.config)} of the best model reads in layer {loaded.config.depth}, the mean of its heads"
    return f"{pictures}{seen}{maps}."

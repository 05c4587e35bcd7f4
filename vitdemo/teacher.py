"""A trained model that another one learns from: its answers take the place of the labels."""

from collections.abc import Iterable

import torch
from torch import Tensor

from vitdemo.checkpoint import Loaded
from vitdemo.config import Preprocessing
from vitdemo.precision import computing


class TeacherError(ValueError):
    """A model that cannot teach this; the message is one sentence."""


class Teacher:
    """What a trained model answers to the very inputs that a student learns from, cropped and mixed as they are (Hinton et al. 2015,
    "Distilling the Knowledge in a Neural Network"; Beyer et al. 2022, "A good teacher is patient and consistent")."""

    def __init__(self, loaded: Loaded, classes: tuple[str, ...], preprocessing: Preprocessing, *, sizes: Iterable[tuple[int, int]] = (), precision: str = "auto"):
        """`preprocessing` is the student's; `sizes` are those (rows, cols) at which it is shown pictures while it learns. Raises TeacherError
        for a model of other classes, channels or size, or one that cannot cut pictures of those sizes into patches."""
        if tuple(loaded.classes) != tuple(classes):
            raise TeacherError(f"the teacher {loaded.name} knows {len(loaded.classes)} classes that are not those of the pictures, or in another order")
        if loaded.preprocessing.channels != preprocessing.channels:
            raise TeacherError(f"the teacher {loaded.name} takes pictures of {loaded.preprocessing.channels} channels, not {preprocessing.channels}")
        if loaded.preprocessing.size != preprocessing.size:
            own, theirs = (" × ".join(map(str, one.size)) for one in (loaded.preprocessing, preprocessing))
            raise TeacherError(f"the teacher {loaded.name} takes pictures of {own} pixels, not {theirs}")
        rows, cols = loaded.config.patch
        uncut = next((size for size in sizes if size[0] % rows or size[1] % cols), None)
        if uncut:
            raise TeacherError(f"the teacher {loaded.name} cuts pictures into patches of {rows} × {cols} pixels, which those of {uncut[0]} × {uncut[1]} "
                               "do not hold: --set stages=[] --set stage_ends=[] trains at full size")
        self.name, self._model, self._precision = loaded.name, loaded.model.eval(), precision
        own, theirs = ({name: torch.tensor(getattr(one, name))[:, None, None] for name in ("mean", "std")} for one in (loaded.preprocessing, preprocessing))
        self._factor, self._offset = theirs["std"] / own["std"], (theirs["mean"] - own["mean"]) / own["std"]      # between the two normalisations

    def to(self, device: torch.device) -> "Teacher":
        self._model, self._factor, self._offset = self._model.to(device), self._factor.to(device), self._offset.to(device)
        return self

    @torch.no_grad()
    def __call__(self, inputs: Tensor) -> Tensor:
        """The shares (B, K) of the classes, for `inputs` (B, C, rows, cols) normalised for the student."""
        size, config, device = inputs.shape[2:], self._model.config, self._factor.device
        with computing(device, size, config.patch, self._precision):
            logits = self._model(torch.addcmul(self._offset, inputs.to(device), self._factor))
        return logits.float().softmax(1)

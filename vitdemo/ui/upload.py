"""The picture input: a Gradio image that hands over only files which really were uploaded, untouched, for our own decoder."""

from pathlib import Path
from typing import Any

import gradio as gr
from gradio.utils import get_upload_folder

from vitdemo import words


class UploadedImage(gr.Image):
    """`gr.Image` that gives the handler a path inside the upload folder, or None.

    Gradio opens whatever path a hand-made request names; here anything outside the upload folder is refused before it is touched,
    and the file itself is opened only by `vitdemo.images`, which has the limits.
    """

    is_template = True                          # the browser's part is gr.Image's

    def preprocess(self, payload: Any) -> str | None:
        if payload is None:
            return None
        return inside_uploads(payload.path)


def inside_uploads(path: str | None) -> str:
    """`path` if it is a file in the upload folder. Raises gr.Error with a sentence that names no folder."""
    try:
        found = Path(path or "").resolve(strict=True)
        if found.is_file() and found.is_relative_to(Path(get_upload_folder()).resolve()):
            return str(found)
    except (OSError, ValueError):
        pass
    raise gr.Error(words.NOT_AN_UPLOAD, print_exception=False)


def folder(path: str) -> str:
    """Of an upload, the folder's own name, by which Gradio tells contents apart: it stands in the address of the picture in the input too."""
    return Path(path).parent.name

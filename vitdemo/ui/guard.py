"""What happens to errors that nobody foresaw: the visitor reads one sentence with a number, the log has the trace under that number."""

import logging
from typing import Any, NoReturn

import gradio as gr
from gradio.exceptions import InvalidPathError
from gradio_client.utils import is_http_url_like, traverse

from vitdemo import words
from vitdemo.ui import fields, viewer

log = logging.getLogger(__name__)


class Page(gr.Blocks):
    """`gr.Blocks` in which every event, with what Gradio does before and after its function, ends in an answer or in one sentence."""

    async def process_api(self, block_fn: Any, *given: Any, **more: Any) -> dict[str, Any]:
        try:
            return await super().process_api(block_fn, *given, **more)
        except gr.Error as error:                                           # the program's own: a sentence already
            refusal = error
        except Exception:
            refusal = gr.Error(fields.unexpected(log, "event", words.LAB_UNEXPECTED), print_exception=False)
        shown = self._shown(block_fn, str(refusal.message))
        if shown is None:
            raise refusal
        return {"data": shown, "is_generating": False, "iterator": None, "duration": 0.0, "average_duration": 0.0, "render_config": None,
                "changed_state_ids": [], "used_cache": None}

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *more: Any) -> list[Any]:
        """What is no upload is refused: Gradio would fetch a picture that is named by its address, and say no more than that it failed where
        one is not there any more."""
        try:
            traverse(inputs, _refuse, _is_address)
            return await super().preprocess_data(block_fn, inputs, *more)
        except (InvalidPathError, OSError):
            _refuse()

    def _shown(self, block_fn: Any, said: str) -> list[dict[str, Any]] | None:
        """An event's outputs with a sentence in the viewer, where that is one of them: people look there, and what the page does about
        events that found no place in the line would say that instead."""
        outputs = (self.fns[block_fn] if isinstance(block_fn, int) else block_fn).outputs
        if not any(isinstance(block, viewer.Viewer) for block in outputs):
            return None
        return [viewer.message(said, failed=True) if isinstance(block, viewer.Viewer) else gr.skip() for block in outputs]


def _is_address(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("path"), str) and is_http_url_like(value["path"])


def _refuse(value: Any = None) -> NoReturn:
    raise gr.Error(words.NOT_AN_UPLOAD, print_exception=False)

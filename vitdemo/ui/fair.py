"""Fairness in Gradio's queue: it serves whoever came first, so one visitor with hundreds of requests would be served before everybody else
and leave no room in the line. Here each page has a few places in it; and what is said to who finds no place."""

from typing import Any

import gradio as gr
from gradio.queueing import Queue

from vitdemo import words
from vitdemo.ui import viewer
from vitdemo.ui.upload import inside_uploads

MOST = 128                                      # that wait, all visitors together: about ten seconds on two cores
OF_ONE = 4                                      # that wait, of one page; a page itself sends one at a time


def be_fair(queue: Queue, of_one: int = OF_ONE) -> None:
    """From now on `queue` refuses an event of a page that has `of_one` waiting, as it refuses every event while it is full."""
    push = queue.push

    async def push_fairly(body: Any, request: Any, username: Any) -> tuple[bool, Any, str]:
        lines = queue.event_queue_per_concurrency_id.values()
        if body.session_hash and sum(event.session_hash == body.session_hash for line in lines for event in line.queue) >= of_one:
            return False, f"{of_one} requests of this page are waiting already: please try again in a moment.", "queue_full"
        return await push(body, request, username)

    queue.push = push_fairly


def refusal(sent: Any = None) -> dict[str, Any]:
    """The viewer's value where an event failed: the picture that was `sent` with it is no upload, or there was no place in the line."""
    try:
        if sent is not None:
            inside_uploads(sent.get("path") if isinstance(sent, dict) else None)
    except gr.Error as error:
        return viewer.message(str(error.message), failed=True)
    return viewer.message(words.CROWDED, failed=True)

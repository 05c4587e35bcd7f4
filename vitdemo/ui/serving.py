"""How the page is served: the arguments of `launch`, which keep it safe on any host, and what a host asks it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from anyio import to_thread
from gradio.utils import get_upload_folder
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from vitdemo import settings, words
from vitdemo.ui import signin, theme
from vitdemo.ui.gate import Gate, Uploads, kept
from vitdemo.ui.models import EXAMPLES

TIDY_EVERY = 300                                # seconds


async def healthy(request: Request) -> JSONResponse:
    """The answer to `GET /healthz`, for whoever looks after the host: served once the model is loaded, with or without a password."""
    return JSONResponse({"status": "ok"})


def launch_settings() -> dict[str, Any]:
    """Arguments of `launch` that keep a page safe on any host; gathered here so that tests launch what users get."""
    owner = settings.read()
    uploads = Uploads(Path(get_upload_folder()), owner.uploads_megabytes * 10**6)
    return {
        "theme": theme.theme(), "css": theme.CSS, "max_file_size": f"{owner.upload_megabytes}mb", "show_error": False, "strict_cors": True,
        "ssr_mode": False, "run_history": False, "enable_monitoring": False, "max_threads": 16, "state_session_capacity": 200,
        "footer_links": [], "share": False, "allowed_paths": [str(EXAMPLES)],         # wherever the program is started from
        "auth": signin.checker(owner.password) if owner.password else None, "auth_message": words.SIGN_IN, "root_path": owner.root_path or None,
        "app_kwargs": {"routes": [Route("/healthz", healthy)], "middleware": [Middleware(Gate, uploads)], "lifespan": tidying(uploads), "openapi_url": None},
    }


def tidying(uploads: Uploads, every: float = TIDY_EVERY) -> Callable[[Any], contextlib.AbstractAsyncContextManager[None]]:
    """While the page is served, what nobody looks after any more leaves the upload folder also where nobody sends anything: a picture that
    was cut off on its way is no upload that Gradio knows."""
    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async def tidy() -> None:
            while True:
                await asyncio.sleep(every)
                await to_thread.run_sync(uploads.tidy, kept(app.get_blocks()))

        task = asyncio.create_task(tidy())
        try:
            yield
        finally:
            task.cancel()

    return lifespan

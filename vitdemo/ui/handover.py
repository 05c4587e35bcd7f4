"""Models in and out: a run's weights as a file to take home, and such a file, or another program's, as a run of one's own."""

import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradio.utils import get_upload_folder

from vitdemo import checkpoint, loading, looking, words
from vitdemo.atomic import replacing
from vitdemo.checkpoint import HeadsNeeded
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request, RequestError
from vitdemo.ui.reach import Reach

KEPT_SECONDS = 1800                             # how long a file that was made for a download stays
MOST_HEADS = 256


class Handover:
    """Copies weights out of runs and takes them in."""

    def __init__(self, reach: Reach):
        self._reach = reach

    def checkpoint(self, request: Request) -> Answer:
        """A copy of a run's best weights where the page's own file route serves it, one however often it is asked for, under a name that
        nobody can guess without the run's: the run itself may be replaced or deleted while somebody still downloads."""
        folder = self._reach.folder(fields.run(request))
        home = Path(get_upload_folder()).resolve() / "vitdemo-downloads"
        tidy(home)
        try:
            state = folder.best.stat()
            name = hashlib.sha256(f"{folder.id} {state.st_mtime_ns} {state.st_ino}".encode()).hexdigest()[:32]
            target = home / name / folder.checkpoint_name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.utime(target.parent)                                         # kept from now on
            if not target.is_file():
                with replacing(target, durable=False) as draft:
                    shutil.copyfile(folder.best, draft)
        except FileNotFoundError:
            raise RequestError(words.NO_WEIGHTS) from None
        except OSError:
            raise RequestError(words.DISK_FULL) from None
        return {"name": target.name, "bytes": target.stat().st_size, "url": f"gradio_api/file={quote(target.as_posix())}"}

    def open(self, request: Request) -> Answer:
        """Take an uploaded checkpoint in as a finished run; asks for the number of heads where the file does not say it."""
        path = Path(fields.uploaded(request, "path"))
        size, most = path.stat().st_size, self._reach.owner.upload_megabytes
        if size > most * 10**6:
            raise RequestError(f"the file has {size / 1e6:.0f} MB; at most {most} MB can be loaded here")
        heads = None if request.get("heads") is None else fields.whole(request, "heads", MOST_HEADS, least=1)
        try:
            loaded = loading.opened(path, heads)
        except HeadsNeeded as error:
            return {"heads_needed": True, "choices": list(error.choices), "sentence": fields.sentence(str(error))}
        try:
            looking.at(loaded)
        except looking.LookError as error:
            raise RequestError(str(error)) from None
        title = fields.plain(path.stem)[:60] or words.A_MODEL
        with tempfile.TemporaryDirectory(prefix="vitdemo-") as scratch:     # written anew, so that whatever came in explains itself
            written = Path(scratch, "best.safetensors")
            checkpoint.save(written, loaded.model, classes=loaded.classes, preprocessing=loaded.preprocessing, provenance=loaded.provenance)
            run_id = self._reach.scheduler.adopt(written, title, about(loaded.provenance))
        config = loaded.config
        return {"run": run_id, "sentence": f"{title}: {len(loaded.classes)} classes, {config.depth} layers of {config.heads} heads, "
                                           f"{config.image[0]} × {config.image[1]} pixels; {about(loaded.provenance)}."}


def about(provenance: dict[str, Any]) -> str:
    """One line about where weights come from, from what their file says of itself; it is untrusted, and shown as text."""
    known = [fields.plain(provenance.get(name))[:60] for name in ("model", "data", "date", "source")]
    share = provenance.get("test_accuracy")
    right = f"{share:.1%} of its test pictures right" if isinstance(share, float) and 0 <= share <= 1 else ""
    return ", ".join(filter(None, [*known, right])) or "the file does not say where it comes from"


def tidy(home: Path) -> None:
    """Remove the copies that were made for earlier downloads."""
    for folder in home.iterdir() if home.is_dir() else ():
        try:
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue

"""A visitor of the training lab, for tests: asks its one door as a page does."""

import json
import os
from pathlib import Path

from gradio.utils import get_upload_folder

from vitdemo import settings
from vitdemo.picturesets import Sets
from vitdemo.runs import RunFolder, Scheduler
from vitdemo.ui.lab import Lab
from vitdemo.ui.models import Models

UNKNOWN = "0" * 32


class Visitor:
    """Insists that every answer is plain JSON and every refusal one sentence that tells nothing of the server. No run is ever started."""

    def __init__(self, home: Path, box, **changes):
        self.owner = settings.Settings(**{**vars(settings.read({})), "runs_folder": home, "max_minutes": 60.0, "public": False, **changes})
        self.scheduler = Scheduler(home)
        self.sets = Sets(home / "sets", max_pictures=self.owner.max_pictures, max_bytes=10**8)
        self.lab = Lab(self.scheduler, Models(box, self.scheduler), self.sets, owner=self.owner)
        self.home = home

    def ask(self, question, **fields):
        answer = self.lab.ask({"question": question, **fields})
        text = json.dumps(answer, allow_nan=False)
        assert str(self.home) not in text and "Traceback" not in text and "site-packages" not in text
        return answer

    def refused(self, question, **fields):
        answer = self.ask(question, **fields)
        assert set(answer) <= {"error", "busy", "again"} | ({"runs"} if "still going on" in answer["error"] else set()), answer
        sentence = answer["error"]
        assert (sentence[0] == sentence[0].upper() or set("/._") & set(sentence.split()[0])) and sentence.endswith((".", "!", "?")) and len(sentence) < 400 and "\n" not in sentence
        assert "server's log" not in sentence, "an unexpected error"
        return sentence

    def folder(self, run) -> RunFolder:
        return self.scheduler.read(run)


def uploaded(name: str, content: bytes) -> str:
    """The path of a file as the page's upload leaves it."""
    path = Path(get_upload_folder(), os.urandom(8).hex(), name)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return str(path)

"""The lab's desk: what this host offers, what a run would be, and the orders about runs: start, stop, go on, delete."""

import contextlib
import io

from PIL import Image

from vitdemo import words
from vitdemo.film import SUBJECTS
from vitdemo.images import open_picture
from vitdemo.precision import quick_at_bfloat16
from vitdemo.runs import RunError
from vitdemo.ui import catalogue, fields
from vitdemo.ui.fields import Answer, Request
from vitdemo.ui.models import EXAMPLES, RECORDED
from vitdemo.ui.orders import order, told
from vitdemo.ui.own_pictures import will_flatter
from vitdemo.ui.reach import KNOWN, MINE, Reach

LONGEST_SIDE = 1024                             # of such a picture as it is kept, in pixels
STARS = ("cat", "airplane", "horse")            # the example photos that a film of CIFAR-10 is about, unless somebody chose others


class Desk:
    """Answers for what somebody wants done. Nothing here trains: a run is submitted and read."""

    def __init__(self, reach: Reach):
        self._reach = reach

    def hello(self, request: Request) -> Answer:
        """What this host offers."""
        owner = self._reach.owner
        return {
            "training": owner.training, "off": "" if owner.training else words.TRAIN_OFF, "max_minutes": owner.max_minutes,
            "public": owner.public, "presets": catalogue.presets(self._reach.threads, quick_at_bfloat16()), "sizes": catalogue.sizes(),
            "settings": catalogue.settings(), "races": catalogue.kinds(),
            "data": [{"name": name, "title": known.title, "here": not (note := self._reach.source({"data": name}).note), "note": note}
                     for name, known in KNOWN.items()],
            "limits": {"pictures": owner.max_pictures, "megabytes": owner.sets_megabytes, "classes": [2, 100], "film": SUBJECTS,
                       "zip_megabytes": owner.upload_megabytes},
            "recorded": self._has_recorded(),
        }

    def check(self, request: Request) -> Answer:
        """What a run would be."""
        made = order(request, self._reach)
        return {"parameters": made.parameters, "tokens": made.vit.tokens, "sentence": told(made),
                "flatters": will_flatter(made.source.alike, made.source.pictures + made.source.tested)}

    def start(self, request: Request) -> Answer:
        """Submit a run; refused while another one of the same browser is going on."""
        mine = fields.runs(request, "mine", MINE)
        made = order(request, self._reach)
        subjects = {f"film/subject-{i}.png": kept(path) for i, path in enumerate(fields.uploads(request, "film", SUBJECTS))}
        if not subjects and made.source.name == "cifar10":                  # photos are seen from the last row, 32 pixels are not
            subjects = {f"film/subject-{i}-{name}.png": kept(str(EXAMPLES / f"{name}.jpg")) for i, name in enumerate(STARS)}
        run_id = self._reach.scheduler.submit(made.plan.to_json(), subjects, mine=mine, only_one=True)
        if made.source.alike:                                               # said beside the accuracy, also when the set is gone
            with contextlib.suppress(RunError):
                self._reach.folder(run_id).log({"alike": made.source.alike, "of": made.source.pictures + made.source.tested})
        return {"run": run_id}

    def stop(self, request: Request) -> Answer:
        folder = self._reach.own(request)
        self._reach.scheduler.stop(folder.id)
        return {"run": folder.id, "state": folder.status().state}

    def resume(self, request: Request) -> Answer:
        folder = self._reach.own(request)
        self._reach.scheduler.resume(folder.id, mine=fields.runs(request, "mine", MINE), only_one=True)
        return {"run": folder.id, "state": folder.status().state}

    def delete(self, request: Request) -> Answer:
        folder = self._reach.own(request)
        self._reach.scheduler.delete(folder.id)
        return {"run": folder.id, "state": "deleted"}

    def _has_recorded(self) -> bool:
        try:
            return bool(self._reach.folder(RECORDED))
        except RunError:
            return False


def kept(path: str) -> bytes:
    """An uploaded picture as it is kept with a run: opened by our own decoder, upright, without what else the file told, not huge.
    Raises PictureError."""
    image = open_picture(path).image
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()

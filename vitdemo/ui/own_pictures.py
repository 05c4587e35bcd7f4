"""A person's own pictures: a .zip of class folders, or classes that are filled in the page picture by picture."""

import base64
import binascii
import re
from pathlib import Path

from vitdemo.payload import data_url
from vitdemo.picturesets import PictureSet
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request, RequestError
from vitdemo.ui.reach import Reach

CLASS_LENGTH = 40                               # letters of a class's name
TITLE_LENGTH = 60
THUMBNAILS = 24                                 # first pictures of a class that are shown
IN_ALL = 240                                    # of all classes together
MOST_INDEX = 10**6
COUNTED_ONCE = "and is counted once"            # how the reason of a picture ends that is there twice
DATA_URL = 12 * 10**6                           # characters of a picture that travels inside a request


class OwnPictures:
    """Answers what is asked of a set: whoever knows its id may fill, use and delete it."""

    def __init__(self, reach: Reach):
        self._reach = reach
        self._deeds = {"zip": self._zip, "new": self._new, "add": self._add, "drop": self._drop, "rename": self._rename, "get": self._get}

    def set(self, request: Request) -> Answer:
        do = fields.choice(request, "do", (*self._deeds, "delete"))
        if do == "delete":
            self._reach.sets.delete(self._id(request))
            return {"set": None}
        return self._shown(self._deeds[do](request), do in ("zip", "get"))

    def _zip(self, request: Request) -> PictureSet:
        path = Path(fields.uploaded(request, "path"))
        return self._reach.sets.from_zip(path, self._title(request) or fields.plain(path.stem)[:TITLE_LENGTH])

    def _new(self, request: Request) -> PictureSet:
        return self._reach.sets.get(self._reach.sets.create(self._title(request)))

    def _add(self, request: Request) -> PictureSet:
        content = Path(fields.uploaded(request, "path")).read_bytes() if request.get("path") is not None else inline(request)
        return self._reach.sets.add(self._id(request), fields.text(request, "klass", CLASS_LENGTH), content)

    def _drop(self, request: Request) -> PictureSet:
        return self._reach.sets.drop(self._id(request), fields.text(request, "klass", CLASS_LENGTH), fields.whole(request, "index", MOST_INDEX))

    def _rename(self, request: Request) -> PictureSet:
        """Another name for a class, or without one another title for the set."""
        if request.get("klass") is None:
            return self._reach.sets.entitle(self._id(request), self._title(request))
        return self._reach.sets.rename(self._id(request), fields.text(request, "klass", CLASS_LENGTH), fields.text(request, "title", CLASS_LENGTH))

    def _get(self, request: Request) -> PictureSet:
        return self._reach.sets.get(self._id(request))

    def _id(self, request: Request) -> str:
        return fields.text(request, "set", 100)

    def _title(self, request: Request) -> str:
        return fields.text(request, "title", TITLE_LENGTH, default="")

    def _shown(self, found: PictureSet, small: bool) -> Answer:
        """A set as the page shows it, with `small` pictures of every class: the first ones, in the order of their numbers."""
        shown = {"id": found.id, "title": found.title, "classes": [[name, count] for name, count in found.classes.items()],
                 **left_out(found.skipped), "pictures": found.pictures}
        if small:
            each = max(1, min(THUMBNAILS, IN_ALL // max(1, len(found.classes))))
            shown["thumbnails"] = {name: [data_url(image, "JPEG") for image in self._reach.sets.thumbnails(found.id, name, each)]
                                   for name in found.classes}
        return {"set": shown}


def left_out(skipped: tuple[str, ...]) -> Answer:
    """What a set's list of files left out says: the lines of those that are no pictures and how many there are, and apart from them how
    many pictures were there already. The list's last line may say how many more files there were; which kind they are is not known."""
    more = re.fullmatch(r"and (\d+) more", skipped[-1]) if skipped else None
    listed = skipped[:-1] if more else skipped
    other = [line for line in listed if not line.endswith(COUNTED_ONCE)]
    return {"skipped": [fields.plain(line)[:200] for line in other], "skipped_count": len(other) + (int(more[1]) if more else 0),
            "duplicates_count": len(listed) - len(other)}


def inline(request: Request) -> bytes:
    """The bytes of a picture that travels inside the request, as a data URL: what it is is decided by its content."""
    url = request.get("data")
    if not isinstance(url, str) or len(url) > DATA_URL or not url.startswith("data:image/"):
        raise RequestError(f"the field 'data' must be a picture as a data URL of at most {DATA_URL // 10**6} million characters, "
                           f"not {fields.brief(url)}")
    try:
        return base64.b64decode(url.partition(";base64,")[2], validate=True)
    except (binascii.Error, ValueError):
        raise RequestError("the field 'data' does not hold base64 text: take the picture again") from None

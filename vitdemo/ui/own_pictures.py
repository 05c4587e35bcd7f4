"""A person's own pictures: a .zip of class folders, or classes that are filled in the page picture by picture."""

import base64
import binascii
import hashlib
from pathlib import Path

from vitdemo.payload import data_url
from vitdemo.picturesets import OWNER, PictureSet
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request, RequestError
from vitdemo.ui.reach import Reach

CLASS_LENGTH = 40                               # letters of a class's name
TITLE_LENGTH = 60
THUMBNAILS = 24                                 # first pictures of a class that are shown
IN_ALL = 240                                    # of all classes together
MOST_INDEX = 10**6
SHARE = 4                                       # on a public host one browser's sets may take one in so many bytes of those for all
DATA_URL = 12 * 10**6                           # characters of a picture that travels inside a request


class OwnPictures:
    """Answers what is asked of a set: whoever knows its id may fill, use and delete it."""

    def __init__(self, reach: Reach):
        self._reach = reach
        self._most = reach.owner.sets_megabytes * 10**6 // SHARE if reach.owner.public else 0
        self._deeds = {"zip": self._zip, "new": self._new, "add": self._add, "drop": self._drop, "rename": self._rename, "get": self._get}

    def set(self, request: Request) -> Answer:
        do = fields.choice(request, "do", (*self._deeds, "delete"))
        if do == "delete":
            self._reach.sets.delete(self._id(request))
            return {"set": None}
        return self._shown(self._deeds[do](request), do in ("zip", "get"))

    def _zip(self, request: Request) -> PictureSet:
        path = Path(fields.uploaded(request, "path"))
        title = self._title(request) or fields.plain(path.stem)[:TITLE_LENGTH]
        return self._reach.sets.from_zip(path, title, owner=owner_of(request), most=self._most)

    def _new(self, request: Request) -> PictureSet:
        return self._reach.sets.get(self._reach.sets.create(self._title(request), owner=owner_of(request), most=self._most))

    def _add(self, request: Request) -> PictureSet:
        content = Path(fields.uploaded(request, "path")).read_bytes() if request.get("path") is not None else inline(request)
        return self._reach.sets.add(self._id(request), self._class(request), content,
                                    together=fields.flag(request, "together", default=False), most=self._most)

    def _drop(self, request: Request) -> PictureSet:
        index = fields.whole(request, "index", MOST_INDEX)
        return self._reach.sets.drop(self._id(request), self._class(request), index)

    def _rename(self, request: Request) -> PictureSet:
        """Another name for a class, or without one another title for the set."""
        if request.get("klass") is None:
            return self._reach.sets.entitle(self._id(request), self._title(request))
        return self._reach.sets.rename(self._id(request), self._class(request), fields.text(request, "title", CLASS_LENGTH))

    def _get(self, request: Request) -> PictureSet:
        return self._reach.sets.get(self._id(request))

    def _id(self, request: Request) -> str:
        return fields.text(request, "set", 100)

    def _class(self, request: Request) -> str:
        return fields.text(request, "klass", CLASS_LENGTH)

    def _title(self, request: Request) -> str:
        return fields.text(request, "title", TITLE_LENGTH, default="")

    def _shown(self, found: PictureSet, small: bool) -> Answer:
        """A set as the page shows it, with `small` pictures of every class: the first ones, in the order of their numbers."""
        shown = {"id": found.id, "title": found.title, "classes": [[name, count] for name, count in found.classes.items()],
                 "skipped": [fields.plain(line)[:200] for line in found.skipped], "skipped_count": found.skipped_count,
                 "duplicates_count": found.duplicates_count, "pictures": found.pictures,
                 "flatters": will_flatter(found.alike, found.pictures)}
        if small:
            each = max(1, min(THUMBNAILS, IN_ALL // max(1, len(found.classes))))
            shown["thumbnails"] = {name: [data_url(image, "JPEG") for image in self._reach.sets.thumbnails(found.id, name, each)]
                                   for name in found.classes}
        return {"set": shown}


def owner_of(request: Request) -> str:
    """What the ids of a browser's sets begin with; from its secret, which is not kept. Those without one have their place together."""
    return hashlib.sha256(fields.text(request, "browser", 100, default="").encode()).hexdigest()[:OWNER]


def will_flatter(alike: int, pictures: int) -> str:
    """What near-copies in a set do to the accuracy of a run, said before it; nothing where there are none."""
    if not alike:
        return ""
    return (f"{alike:,} of these {pictures:,} pictures {'is a near-copy of another' if alike == 1 else 'are near-copies of others'}: "
            "some will be learned from and some used to check, so the accuracy will look better than it is.")


def flatters(alike: int, pictures: int) -> str:
    """The same beside the accuracy of a run."""
    return (f"{alike:,} of its {pictures:,} pictures {'is a near-copy of another' if alike == 1 else 'are near-copies of others'}, "
            "so this number looks better than it is.") if alike else ""


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

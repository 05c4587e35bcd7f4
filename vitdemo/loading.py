"""Any model by what a person calls it: the box, a published one's name, a file, a folder, a repository of a hub.

    vitdemo.load()                                      the model in the box
    vitdemo.load("tiny")                                the tiny model beside it
    vitdemo.load("dino-s16")                            a published one (`vitdemo.zoo` lists them), fetched where it is not here yet
    vitdemo.load("my.safetensors", num_heads=6)         a file
    vitdemo.load("some/folder")                         a folder with weights, config.json and preprocessor_config.json
    vitdemo.load("user/repo")                           a repository of the Hugging Face hub
"""

import difflib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from vitdemo import checkpoint, hub, repository, settings, zoo
from vitdemo.checkpoint import SUFFIXES, CheckpointError, HeadsNeeded, Loaded, Stated
from vitdemo.terminal import say
from vitdemo.zoo import Entry, Hub

BOX, TINY = "box", "tiny"
REPO = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
Told = Callable[[int, int], None]


def load(what: str | Path | Hub | None = None, *, num_heads: int | None = None, told: Told | None = None, download: bool = True) -> Loaded:
    """The model that `what` names, in eval mode: see above. A `Path` is always a file or a folder, and a `zoo.Hub` always a repository.

    `num_heads` answers HeadsNeeded, which is raised where neither a file nor what lies beside it says how many heads its model has. `told`
    is called while something is downloaded, see `hub.fetch`; without `download` nothing is. Raises CheckpointError and HubError, each with
    one sentence.
    """
    try:
        return _named(_found(what, num_heads, told, download))
    except HeadsNeeded as error:
        likely = error.choices[0]
        raise HeadsNeeded(f"{error} (num_heads={likely} in Python, --heads {likely} on the command line)", error.choices) from None


def opened(path: Path, heads: int | None) -> Loaded:
    """The model in a file that somebody brought along; HeadsNeeded says no more than what is missing."""
    return _named(_from_file(path, heads))


def shown(num_heads: int | None = None) -> Loaded:
    """The model that the page shows: what its owner has put in the place of the one in the box, or that one."""
    owner = settings.read()
    return at_a_terminal(owner.checkpoint and owner.checkpoint.as_posix(), num_heads or owner.heads or None)


def anywhere(what: str) -> str:
    """`what` as it can be said in any folder: a path from the root on, and all else as it is."""
    return str(_path(what).resolve()) if _is_path(what) else what


def at_a_terminal(what: str | None, num_heads: int | None = None) -> Loaded:
    """`load` for a command: how far a download is stands in one line, where somebody sees it."""
    said = False

    def told(done: int, total: int) -> None:
        nonlocal said
        if not total:                                                       # the hub is only asked yet
            return
        said = True
        say(f"\r{what}: {done / 1e6:.0f} of {total / 1e6:.0f} MB ", end="", to=sys.stderr)

    try:
        return load(what, num_heads=num_heads, told=told if sys.stderr.isatty() else None)
    finally:
        if said:
            say("", to=sys.stderr)


def _found(what: str | Path | Hub | None, heads: int | None, told: Told | None, download: bool) -> Loaded:
    if what is None or what == BOX:
        return checkpoint.load(heads=heads)
    if what == TINY:
        return checkpoint.load(checkpoint.tiny_path(), heads=heads)
    entry = None if isinstance(what, Path) else _entry(what)
    if entry:
        return _published(entry, _weights(entry.where, entry.name, told, download), heads)
    if isinstance(what, Hub):
        return _of_hub(what, heads, told, download)
    if isinstance(what, Path) or _is_path(what):
        return _from_folder(_path(what), heads) if os.path.isdir(_path(what)) else _from_file(_path(what), heads)
    if REPO.fullmatch(what):
        return _of_hub(Hub(what), heads, told, download)
    raise _unknown(what)


def _path(what: str | Path) -> Path:
    return Path(what).expanduser()


def _is_path(what: str) -> bool:
    """Whether `what` names a file or a folder, be it one that is not there. The zoo's names come first, wherever the program is started."""
    return what not in ("", BOX, TINY) and not zoo.find(what) and (os.path.exists(_path(what)) or _path(what).suffix in (*SUFFIXES, ".bin"))


def _entry(what: str | Hub) -> Entry | None:
    """The published model of that name, or in that repository."""
    if isinstance(what, str) and zoo.find(what):
        return zoo.find(what)
    where = what if isinstance(what, Hub) else Hub(what)
    return next((entry for entry in zoo.ENTRIES if entry.where == where), None)


def _unknown(name: str) -> CheckpointError:
    if "/" in name or os.sep in name:
        return CheckpointError(f"there is no file or folder called {Path(name).name!r:.80}")
    close = difflib.get_close_matches(name.lower(), [entry.name for entry in zoo.ENTRIES], n=4, cutoff=0.4)
    close = close or [entry.name for entry in zoo.ENTRIES if entry.name.startswith(("dino-s16", "augreg-s16"))]
    return CheckpointError(f"there is no model called {name!r:.80}; published ones with such names are {', '.join(close)}, and a file, "
                           "a folder or user/repo can be opened too")


def _weights(where: Hub | zoo.Torchvision, name: str, told: Told | None, download: bool) -> Path:
    """The file of published weights, fetched unless it is here. A repository that is no plain ViT is refused before its weights come."""
    if download:
        return hub.fetch(where, told=told, accept=repository.check)
    path = hub.cached(where)
    if path is None:
        raise hub.HubError(f"{name} is not on this computer: fetch it with python -m vitdemo.hub {name}")
    return path


def _published(entry: Entry, path: Path, heads: int | None) -> Loaded:
    """A model of the zoo. What the zoo says of it holds, and weights that contradict it are refused."""
    if heads not in (None, entry.config.heads):
        raise CheckpointError(f"{entry.name} has {entry.config.heads} heads, not {heads}")
    stated = Stated(_settings(entry), zoo.class_names(entry.config), entry.preprocessing, "the list of published models")
    loaded = checkpoint.load(path, stated=stated)
    loaded.model.config = entry.config                                      # it only says the MLP's width in another way
    where = entry.where.repo if isinstance(entry.where, Hub) else f"torchvision, {entry.where.weights}"
    reported = {"reported": entry.result} if entry.result else {}
    notes = [note for note in loaded.provenance["notes"] if "heads" not in note]                            # the zoo knows how many
    return replace(loaded, name=entry.name, provenance={"model": entry.title, "source": where, "licence": entry.licence,
                                                        "learned_from": entry.learned_from, **reported, "notes": notes})


def _settings(entry: Entry) -> dict[str, object]:
    """A published model's config, but for what weights have no part in."""
    return {name: value for name, value in asdict(entry.config).items() if name not in ("patchify", "init")}


def _of_hub(where: Hub, heads: int | None, told: Told | None, download: bool) -> Loaded:
    path = _weights(where, where.repo, told, download)
    loaded = checkpoint.load(path, heads=heads, stated=repository.beside(path.parent))
    return _remarked(replace(loaded, name=where.repo.split("/")[-1], provenance={**loaded.provenance, "source": where.repo}), path.parent)


def _from_file(path: Path, heads: int | None) -> Loaded:
    """A file; what lies beside it is only asked where its name is the one that hubs give it."""
    return checkpoint.load(path, heads=heads, stated=repository.beside(path.parent) if path.name in repository.WEIGHTS else Stated())


def _from_folder(folder: Path, heads: int | None) -> Loaded:
    path, stated = repository.read(folder)
    loaded = checkpoint.load(path, heads=heads, stated=stated)
    return _remarked(replace(loaded, name=folder.resolve().name if path.name in repository.WEIGHTS else loaded.name), folder)


def _remarked(loaded: Loaded, folder: Path) -> Loaded:
    """With a note on what is said beside its weights and cannot be done here."""
    notes = repository.remarks(folder)
    return _noted(loaded, notes) if notes else loaded


def _named(loaded: Loaded) -> Loaded:
    """With ImageNet's class names, if it has a thousand classes and no names for them."""
    names = zoo.class_names(loaded.config) if loaded.unnamed else None
    if not names:
        return loaded
    return _noted(replace(loaded, classes=names), ["its 1000 classes have no names of their own: ImageNet's are assumed, in the usual order"])


def _noted(loaded: Loaded, notes: list[str]) -> Loaded:
    return replace(loaded, provenance={**loaded.provenance, "notes": [*loaded.provenance.get("notes", ()), *notes]})

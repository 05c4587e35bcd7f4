"""The command behind `python -m vitdemo.train`: what to train, from the command line or from a run's folder.

The page starts the same command as a child process with `--from-run`; then everything it needs stands in the folder's config.json.
"""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path
from typing import Any

from vitdemo import beginning, data, distributed, downloads, ending, heap, loading, runs, settings
from vitdemo.atomic import replacing
from vitdemo.checkpoint import SUFFIXES
from vitdemo.config import ConfigError
from vitdemo.film import SUBJECTS
from vitdemo.images import open_picture
from vitdemo.plan import NETWORKS, Plan, plan, setting
from vitdemo.presets import PRESETS, SIZES
from vitdemo.terminal import say
from vitdemo.trainer import Stopped, carry_out


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vitdemo.train",
                                     description="Train a Vision Transformer; the last line printed is the best checkpoint.")
    parser.add_argument("--model", help=f"size: {', '.join(SIZES)}")
    parser.add_argument("--preset", help=f"recipe: {', '.join(PRESETS)} (default: class; tune with --start)")
    parser.add_argument("--data", help="cifar10, mnist, or a folder or .zip of class folders")
    parser.add_argument("--minutes", type=float, help="how long to train")
    parser.add_argument("--epochs", type=int, help="how many passes to train, instead of minutes")
    parser.add_argument("--steps", type=int, help="how many steps to train, instead of minutes")
    parser.add_argument("--start", help="fine-tune, with a fresh head: box (the one in the box), a published model's name, a file or user/repo")
    parser.add_argument("--teacher", help="learn what this model answers instead of the labels: box, a published model's name, a file or user/repo")
    parser.add_argument("--heads", type=int, help="attention heads of --start, where its file does not say")
    parser.add_argument("--freeze", action="store_true", default=None, help="only the head learns")
    parser.add_argument("--network", choices=NETWORKS, help="a ViT, or a small CNN of its size to compare with")
    parser.add_argument("--film", nargs="+", type=Path, metavar="PICTURE", help=f"up to {SUBJECTS} pictures to show the model at every look")
    parser.add_argument("--title", help="your name for the run")
    parser.add_argument("--seed", type=int, help="of everything random (default: 0)")
    parser.add_argument("--threads", type=int, help="torch threads (default: every core)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change any other setting of the recipe or the model")
    parser.add_argument("--out", type=Path, help="the run's folder (default: a new one in the cache folder)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--from-run", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)

def _changes(args: argparse.Namespace) -> dict[str, Any]:
    return dict(map(setting, args.set)) | {name: getattr(args, name) for name in ("seed", "threads", "freeze") if getattr(args, name) is not None}


def _prepare(args: argparse.Namespace, *, writes: bool) -> tuple[runs.RunFolder, Plan]:
    """The run's folder and plan: from the command line, or from the folder when a run there is begun for the page or resumed."""
    folder = runs.RunFolder(args.out or settings.read().runs_folder / runs.new_id())
    named = ("model", "preset", "data", "minutes", "epochs", "steps", "start", "heads", "network", "title", "teacher")
    given = {name: getattr(args, name) for name in named if getattr(args, name) is not None}
    for name in ("data", "start", "teacher"):                                         # a resume may come from another folder
        if name in given and given[name] not in (*downloads.KNOWN, ""):
            given[name] = str(Path(given[name]).expanduser().resolve()) if name == "data" else loading.anywhere(given[name])
    if args.resume or args.from_run:
        return folder, _again(args, folder, given | _changes(args))
    wanted = plan(**given, changes=_changes(args))
    data.is_local(wanted.data)                                              # a path that leads nowhere leaves no folder behind
    for model, heads, what in ((wanted.start, wanted.heads, "start from"), (wanted.teacher, 0, "learn from")):
        if Path(model).suffix in SUFFIXES and not Path(model).is_file():
            raise ConfigError(f"there is no checkpoint {Path(model).name!r} to {what}")
        if model:
            try:
                beginning.opened(model, heads)                              # nor does a model that cannot be had
            except ValueError as error:
                raise ConfigError(str(error)) from None
    subjects = [path.expanduser().read_bytes() for path in args.film or ()]
    if len(subjects) > SUBJECTS:
        raise ConfigError(f"up to {SUBJECTS} pictures can be filmed, not {len(subjects)}")
    for content in subjects:
        open_picture(content)
    if writes:
        folder.create(wanted.to_json())
        if subjects:
            folder.film.mkdir(exist_ok=True)
        for index, content in enumerate(subjects):
            (folder.film / f"subject-{index}.png").write_bytes(content)     # whatever the name says, the content decides
    return folder, wanted


def _again(args: argparse.Namespace, folder: runs.RunFolder, asked: dict[str, Any]) -> Plan:
    """The plan in `folder`, after a look whether that run can go on and whether what is `asked` for is what it was made with."""
    if args.resume and not folder.last.exists():
        raise runs.RunError(f"there is no run to resume in {folder.path.name!r}: --out names the folder of a run that was stopped after it began")
    if args.resume and not args.from_run and not folder.status().over and time.time() - folder.heartbeat() < 30:
        raise runs.RunError(f"the run in {folder.path.name!r} is still going on, by its sign of life {time.time() - folder.heartbeat():.0f} seconds "
                            "ago: stop it first, or wait half a minute if it was killed")
    wanted = Plan.from_json(folder.config())
    made = wanted.to_json() | wanted.train.to_json() | wanted.vit.to_json()
    other = {name: value for name, value in asked.items() if name not in made or not _same(made[name], value)}
    if other:
        has, cannot = (", ".join(f"{name} {values.get(name)!r}" for name in other) for values in (made, other))
        raise ConfigError(f"this run has {has}, so it cannot be resumed with {cannot}; leave that out or start a new run")
    return wanted


def _same(made: Any, asked: Any) -> bool:
    """Whether a setting of a run is the one asked for: 32 stands for [32, 32], and a size's name may be in capitals."""
    if isinstance(made, list) and len(made) == 2 and isinstance(asked, int):
        asked = [asked, asked]
    return made == asked or isinstance(made, str) and isinstance(asked, str) and made.lower() == asked.lower()


def main(arguments: list[str] | None = None) -> int:
    args = _arguments(arguments)
    heap.keep()
    try:
        with distributed.joined() as world:
            return _run(args, world)
    except KeyboardInterrupt:
        return 130
    except ValueError as error:                                             # a setting of the owner's that this machine cannot follow
        say(error, to=sys.stderr)
        return 1


def _run(args: argparse.Namespace, world: distributed.World) -> int:
    """One run from its preparation to its end in words; returns the exit code."""
    folder, before, writes, ended = None, None, world.rank == 0, []

    def end(number: int) -> None:
        ended.append(number)
        by = runs.PERSON if number == signal.SIGINT else ""
        if not writes:                                                      # of several processes the first one ends all
            with contextlib.suppress(runs.RunError):                        # whose folder this one may not know
                folder.request_stop(by)
        else:
            folder.request_stop(by)
            say("\nstopping after this step; Ctrl-C now ends it at once", to=sys.stderr)

    try:
        folder, wanted = _together(args, world)
        before = _status(folder) if args.resume and not args.from_run else None
        if args.from_run:
            runs.watch_parent(folder.request_stop)
        elif args.resume:
            folder.withdraw_stop()
        elif writes:
            say(f"getting the pictures; the run is kept in {folder.path}")
        with ending.once(end):
            result = carry_out(folder, wanted, resume=args.resume, quiet=not writes, world=world)
        if ended and (not writes or folder.status().state == "stopped"):
            return _stopped(folder, ended[0], writes=writes)
        if writes and not args.from_run:
            say(result)
    except Stopped:
        _last_word(folder, "stopped", "Stopped before it went on." if args.resume else "Stopped before the training began.", before)
        if ended:
            return _stopped(folder, ended[0], writes=writes)
    except KeyboardInterrupt:
        _last_word(folder, "stopped", "Stopped; what it had learned when it was last saved is kept.", before)
        return _stopped(folder, signal.SIGINT, writes=writes)
    except (ValueError, OSError, MemoryError) as error:
        if ended and not writes:                                            # the first one ended with the pictures half fetched
            return _stopped(folder, ended[0], writes=writes)
        sentence = str(error) or type(error).__name__
        if writes and (args.from_run or not isinstance(error, ConfigError)):        # a wrong setting says nothing about the run in that folder
            _last_word(folder, "failed", sentence, before)
        say(sentence, to=sys.stderr)
        return 1
    return 0


def _stopped(folder: runs.RunFolder | None, number: int, *, writes: bool) -> int:
    """Say what is kept of a run that a signal ended; returns the exit code."""
    if writes:
        kept = [f"{folder.best} holds the best weights"] * folder.best.exists() + ["--resume goes on"] * folder.last.exists() if folder else []
        say("\nstopped" + (f"; {', '.join(kept)}" if kept else ""), to=sys.stderr)
    return 128 + number


def _together(args: argparse.Namespace, world: distributed.World) -> tuple[runs.RunFolder, Plan]:
    """What `_prepare` returns, once every process has it: the first one to go on would leave a sign of life that the others take for
    somebody else's. Where one is refused, all end, each with a sentence."""
    try:
        prepared = _prepare(args, writes=world.rank == 0)
    except BaseException:
        world.all_ready(False)
        raise
    if not world.all_ready(True):
        raise runs.RunError(f"process {world.rank} of {world.size} ends: another one was refused, and says why")
    return prepared


def _status(folder: runs.RunFolder) -> bytes | None:
    try:
        return (folder.path / "status.json").read_bytes()
    except OSError:
        return None


def _last_word(folder: runs.RunFolder | None, state: str, message: str, before: bytes | None) -> None:
    """Leave a final state in a run's folder, where there is one and it can still be written; `before` puts back the status of a run that
    was to go on and never came so far."""
    if folder is None or not (folder.path / "config.json").exists():
        return
    with contextlib.suppress(runs.RunError, OSError):
        if before is not None and folder.status().state != "running":
            with replacing(folder.path / "status.json", durable=False) as draft:
                draft.write_bytes(before)
        else:
            folder.write_status(state=state, message=message)

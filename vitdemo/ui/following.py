"""What the page sees of runs: what is new since it last asked, the list of one's own, and curves to lay over each other."""

import json
import time
from typing import Any

from vitdemo.plan import EXPLAINED
from vitdemo.runs import RunError, RunFolder, last_lines
from vitdemo.runstatus import Status
from vitdemo.ui import fields
from vitdemo.ui.fields import Answer, Request
from vitdemo.ui.models import RECORDED
from vitdemo.ui.own_pictures import flatters
from vitdemo.ui.reach import MINE, Reach, source_title, title_of
from vitdemo.ui.run_status import describe

ROWS = 600                                      # log rows that travel at once; of more, every so-manieth and all with an accuracy
FRAMES = 400                                    # frames of a film that travel at once
POINTS = 300                                    # of a curve for comparing
COMPARED = 8                                    # curves that are laid over each other
NAMED = 100                                     # skipped files whose names travel


class Following:
    """Reads runs; whoever knows an id may see the run, and nobody else."""

    def __init__(self, reach: Reach):
        self._reach = reach

    def follow(self, request: Request) -> Answer:
        """Where a run stands and what came after the offsets that the last answer gave. What stays the same comes with offset 0; "test",
        "skipped" (some names) and the counts beside it are there when they are new."""
        run_id = fields.run(request)
        log, film = (fields.whole(request, name, 10**15, default=0) for name in ("log", "film"))
        folder = self._reach.folder(run_id)
        records, log_end = folder.records(log)
        frames, film_end = folder.frames(film)
        config = folder.config()
        answer = {"status": self._status(folder, run_id), "rows": thinned([r for r in records if "step" in r]), "log": log_end,
                  "frames": frames[-FRAMES:], "film": film_end, "can": can(folder, config, run_id)}
        if not film and (frames or folder.status().over):
            answer["scene"] = folder.scene()
        if not log:
            answer |= {"plan": {**about(config), "start": self._reach.start_title(config)}, "flatters": flattered(folder)}
        for record in records:
            if isinstance(record.get("test"), dict):
                answer["test"] = record["test"]
            if isinstance(record.get("skipped"), list):
                answer["skipped"] = [fields.plain(name)[:200] for name in record["skipped"][:NAMED]]
                answer |= {name: count for name in ("skipped_count", "duplicates_count") if isinstance(count := record.get(name), int)}
        return answer

    def list(self, request: Request) -> Answer:
        """A browser's own runs, newest first, and which of them are no longer there."""
        found, gone = {}, []
        for run_id in fields.runs(request, "mine", MINE):
            try:
                found[run_id] = self._entry(self._reach.folder(run_id), run_id)
            except RunError:
                gone.append(run_id)
        return {"runs": sorted(found.values(), key=lambda entry: -entry["created"]), "gone": gone}

    def curves(self, request: Request) -> Answer:
        """Loss and validation accuracy of a few runs, thinned to what a drawing can show."""
        return {"runs": {run_id: curve(self._reach.folder(run_id)) for run_id in fields.runs(request, "runs", COMPARED)}}

    def _status(self, folder: RunFolder, run_id: str) -> Answer:
        status = folder.status()
        place = self._reach.scheduler.position(run_id) if status.state == "queued" else 0
        stopping = not status.over and folder.stop_requested()
        told = describe(status, place, stopping=stopping)
        return {**told, "over": status.over, "seconds": status.seconds, "seconds_left": left(status),
                "images_per_second": status.images_per_second, "step": status.step, "epoch": status.epoch, "accuracy": status.best_accuracy,
                "test_accuracy": status.test_accuracy, "stopping": stopping, "position": place,
                "queue_sentence": told["head"] if place else "",
                "output": last_lines(folder) if status.state == "failed" else []}

    def _entry(self, folder: RunFolder, run_id: str) -> Answer:
        status, config = folder.status(), folder.config()
        known = about(config)
        return {"id": run_id, "title": known["title"], "state": status.state, "created": status.created, "seconds": status.seconds,
                "progress": status.progress, "accuracy": status.best_accuracy, "test": status.test_accuracy, "preset": known["preset"],
                "model": known["model"], "data": known["data"], "race": known["race"], "imported": known["imported"],
                "can": can(folder, config, run_id), "settings": settings(config), "flatters": flattered(folder)}


def left(status: Status) -> float | None:
    """Seconds until a run's end by now: its status was written some time ago, a long step or look before."""
    if status.over or status.seconds_left is None:
        return None
    return max(0.0, status.seconds_left - max(0.0, time.time() - status.time) * (status.state == "running"))


def about(config: dict[str, Any]) -> Answer:
    """What was asked of a run, in a person's words: never a path."""
    return {"title": title_of(config), "preset": fields.plain(config.get("preset")), "model": fields.plain(config.get("model")),
            "data": source_title(config), "settings": [list(pair) for pair in settings(config).items()],
            "network": fields.plain(config.get("network")) or "vit",
            "race": config.get("race") if isinstance(config.get("race"), dict) else None,
            "imported": bool(config.get("imported")), "about": fields.plain(config.get("about"))[:300]}


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """Every setting of a run by name."""
    parts = [part for part in (config.get("vit"), config.get("train")) if isinstance(part, dict)]
    named = {name: value for part in parts for name, value in part.items() if name in EXPLAINED}
    return {**({"network": config.get("network") or "vit", "data": source_title(config)} if named else {}), **named}


def can(folder: RunFolder, config: dict[str, Any], run_id: str) -> dict[str, bool]:
    """What can be done with a run as it is now."""
    there = folder.best.is_file()
    return {"open": there, "download": there, "resume": run_id != RECORDED and not config.get("imported") and folder.resumable()}


def flattered(folder: RunFolder) -> str:
    """What is to be said beside a run's accuracy because its pictures have near-copies, which the first line of its log tells."""
    try:
        with (folder.path / "log.jsonl").open("rb") as file:
            first = json.loads(file.readline(1000))
        return flatters(int(first["alike"]), int(first["of"]))
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def thinned(rows: list[dict[str, Any]], most: int = ROWS) -> list[dict[str, Any]]:
    """At most about `most` rows, those with an accuracy all among them, and the last."""
    every = -(-len(rows) // most)
    return [row for i, row in enumerate(rows) if every < 2 or i % every == 0 or i == len(rows) - 1 or row.get("accuracy") is not None]


def curve(folder: RunFolder) -> Answer:
    """{"loss": [[seconds, step, loss]...], "accuracy": [[seconds, step, share]...]} of a run."""
    rows = folder.steps()
    drawn = {name: [[row["seconds"], row["step"], row[name]] for row in rows if isinstance(row.get(name), float)]
             for name in ("loss", "accuracy")}
    return {name: points[:: max(1, -(-len(points) // POINTS))] for name, points in drawn.items()}

"""The fair race: two runs, or two each over three seeds, that differ in one thing; what it takes is said first, who won is said at the
end."""

from vitdemo import races, words
from vitdemo.cnn import vit_parameters
from vitdemo.plan import Plan
from vitdemo.runs import RunFolder
from vitdemo.ui import fields, room
from vitdemo.ui.fields import Answer, Later, Request, RequestError
from vitdemo.ui.offers import Offers
from vitdemo.ui.orders import Order, order
from vitdemo.ui.reach import MINE, Reach, Source

SEEDS = (1, 3)                                  # how often a race is run
STARTERS = 6                                    # runs of one race, at most


class Racing:
    """Starts races and reads how they stand."""

    def __init__(self, reach: Reach, offers: Offers):
        self._reach, self._offers = reach, offers

    def race(self, request: Request) -> Answer:
        """With "dry" what a race would take; otherwise its runs, all of them or none."""
        owner = self._reach.owner
        kind = fields.choice(request, "kind", tuple(races.KINDS))
        minutes = fields.number(request, "minutes", owner.max_minutes, least=0.02, default=min(1.0, owner.max_minutes))
        seeds = fields.whole(request, "seeds", max(SEEDS), least=1, default=1)
        if seeds not in SEEDS:
            raise RequestError(f"a race is run with 1 seed or with 3, not with {seeds}")
        source, mine, dry = self._reach.source(request), fields.runs(request, "mine", MINE), fields.flag(request, "dry", default=False)
        speed = None
        if races.KINDS[kind].budget == "steps":
            found = self._offers.pace(in_steps(order({"preset": races.RECIPE, "data": source.name, "minutes": minutes}, self._reach)), old=not dry)
            if found is None and dry:
                return {"measuring": True, "sentence": words.MEASURING}
            if found is None:                                               # the server was started anew since the price was said
                raise Later(words.MEASURING)
            if found.elsewhere:                                             # another machine's speed would make another length of it
                raise Later(words.RACE_UNTIMED)
            speed = found.speed
        plans = races.plans(kind, minutes=minutes, data=source.data, seeds=seeds, threads=self._reach.threads, pace=speed)
        self._allow(plans, source, minutes)
        if dry:
            total, sides = races.total_seconds(plans, pace=speed), races.KINDS[kind]
            return {"seconds": total, "sentence": said(len(plans), minutes, total, busy=self._reach.scheduler.busy()), "sides": [sides.a, sides.b]}
        ids = self._reach.scheduler.submit_all([made.to_json() for made in plans], mine=mine, only_one=True)
        return {"race": plans[0].race["id"], "runs": [{"run": run_id, "side": made.race["side"], "seed": made.race["seed"]}
                                                      for run_id, made in zip(ids, plans, strict=True)]}

    def standing(self, request: Request) -> Answer:
        """How the runs of a race stand, and the verdict once all of them are over. Sides and seeds are read from the runs themselves."""
        named = fields.listed(request, "runs", STARTERS)
        folders = [self._reach.folder(fields.run(one if isinstance(one, dict) else {"run": one})) for one in named]
        entries = [row(folder) for folder in {folder.id: folder for folder in folders}.values()]
        if not entries or len({entry["race"] for entry in entries}) != 1 or None in [entry["race"] for entry in entries]:
            raise RequestError("these runs are no race of one another")
        done = all(entry["over"] for entry in entries)
        return {"rows": entries, "done": done, "verdict": verdict(entries) if done else None}

    def _allow(self, plans: list[Plan], source: Source, minutes: float) -> None:
        owner = self._reach.owner
        if owner.public and len(plans) * minutes > 2 * owner.max_minutes:
            raise RequestError(f"on this host a race may take {2 * owner.max_minutes:g} minutes in all, not {len(plans)} runs of "
                               f"{minutes:g}: choose shorter runs or one seed")
        for made in plans:
            vit = made.vit.with_(classes=source.classes)
            parameters = vit_parameters(vit)
            room.check(room.needed(vit, made.train, parameters=parameters, pictures=source.pictures), self._reach.scheduler.limit)
            room.check_disk(parameters, owner.runs_megabytes * 10**6)


def in_steps(made: Order) -> Order:
    """The same order with a budget of steps, in which every stage has its share of the pictures and not of the time."""
    return made._replace(plan=made.plan._replace(train=made.plan.train.with_(minutes=0.0, steps=1000, clock="training")))


def said(runs: int, minutes: float, total: float, *, busy: bool = False) -> str:
    """What a race takes, in words."""
    each, whole = ("1 minute" if length == 1 else f"{length:g} minutes" for length in (minutes, max(1, round(total / 60))))
    waits = " Another run is going on here, so they may have to wait." if busy else ""
    return f"{runs} runs of {each} each, one after the other: with their starts, looks and tests about {whole} in all.{waits}"


def row(folder: RunFolder) -> Answer:
    """How one run of a race stands; its accuracy is that of its last look, not of its best, which would favour whoever is looked at
    more."""
    status, race = folder.status(), folder.config().get("race")
    race = race if isinstance(race, dict) else {}
    looks = [record for record in folder.steps() if isinstance(record.get("accuracy"), float)]
    look = looks[-1].get("look") if looks else None
    return {"run": folder.id, "race": race.get("id"), "side": race.get("side"), "seed": race.get("seed"), "kind": race.get("kind"),
            "state": status.state, "over": status.over, "progress": status.progress, "seconds": status.seconds,
            "accuracy": looks[-1]["accuracy"] if looks else None, "n": look.get("n") if isinstance(look, dict) else None}


def verdict(entries: list[Answer]) -> Answer:
    """Who won, or why nobody can say."""
    if any(entry["state"] != "finished" or not entry["n"] for entry in entries) or {entry["side"] for entry in entries} != {"a", "b"}:
        return {"winner": None, "difference": None, "noise": None, "sentence": words.NO_VERDICT}
    results = [(entry["side"], entry["seed"], entry["accuracy"], entry["n"]) for entry in entries]
    return races.verdict(results, entries[0]["kind"] or "")._asdict()

"""Many visitors at once: is every answer about the visitor's own picture, how long does it take, does memory stay flat?

    python tests/benchmarks/load.py                         30 visitors, 10 analyses each with questions after each, beside a training run
    python tests/benchmarks/load.py --visitors 100 --alone  without a run
    python tests/benchmarks/load.py --analyses 1000         one visitor, one picture after another: the server's memory
    python tests/benchmarks/load.py --idle 60               nobody asks: the server's processor time
    python tests/benchmarks/load.py --ranking 10            and 10 more visitors who do nothing but rank maps
    python tests/benchmarks/load.py --flood 200             and one more who sends so many pictures at once
    python tests/benchmarks/load.py --photo                 also a JPEG of 12 megapixels

Starts `app.py` on this machine with the settings of a public host and speaks to it over plain HTTP as the page does: upload, the picture's
change event through the queue, then `ask` for what a page asks while somebody moves through tokens and layers. Every answer is compared
with `explain` of that very picture. Ends with 1 where a limit is broken. Data of the run: cifar10.zip in VITDEMO_DATA, else made-up pictures.
"""

import argparse
import io
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import httpx
import numpy as np
import torch
from PIL import Image
from visitor import Visitor, right, served

from vitdemo import answers, checkpoint, settings
from vitdemo.explain import explain
from vitdemo.payload import payload

MEDIAN, MOST, GROWTH = 1.0, 3.0, 20.0           # seconds, seconds for 95 %, megabytes over the later half of a long series
TOLERANCE = 1e-4                                # relative: threads may add up in another order


class Expected(NamedTuple):
    """A picture and what must be said about it: the viewer's value, and questions with their answers."""

    content: bytes
    value: dict[str, Any]
    questions: list[tuple[dict[str, Any], dict[str, Any]]]


class Took(NamedTuple):
    what: str                                   # "analysis" or the question
    seconds: float
    fault: str                                  # "", "wrong", or what went wrong in words


def picture(seed: int, size: tuple[int, int] = (240, 320)) -> bytes:
    """A JPEG of soft blobs, different for every seed, (rows, cols) pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize(size[::-1], Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def expected(seed: int, box: checkpoint.Loaded) -> Expected:
    """A picture of its own, and four questions: a token, the layers up to one, a class, the facts of the heads."""
    choose, content = random.Random(seed), picture(seed)
    found = explain(content, box)
    token, up_to, klass = choose.randrange(found.tokens), choose.randint(1, len(found.attention)), found.leading()[0]
    return Expected(content, payload(found), [
        ({"question": "token", "token": token}, answers.token(found, token)),
        ({"question": "rollout", "up_to": up_to}, answers.rollout(found, up_to=up_to)),
        ({"question": "relevance", "klass": klass}, answers.relevance(found, klass)),
        ({"question": "facts"}, answers.facts(found))])


def visit(visitor: Visitor, rounds: list[Expected], found: list[Took], pause: float) -> None:
    for want in rounds:
        time.sleep(pause * random.random() * 2)
        value = timed(found, "analysis", lambda want=want: visitor.show(want.content), want.value)
        for request, answer in want.questions if value else ():
            timed(found, request["question"], lambda request=request, value=value: visitor.ask({**request, "key": value["key"]}), answer)


def timed(found: list[Took], what: str, act: Any, want: dict[str, Any]) -> dict[str, Any] | None:
    start = time.perf_counter()
    try:
        got = act()
        fault = "" if right(got, want, TOLERANCE) else "wrong"
        if "error" in got or got.get("message"):
            got, fault = None, got.get("error") or got["message"]
    except (httpx.HTTPError, RuntimeError) as error:
        got, fault = None, f"{type(error).__name__} {error}"
    found.append(Took(what, time.perf_counter() - start, fault))
    return got


def rank_on(visitor: Visitor, content: bytes, over: threading.Event, counts: list[int]) -> None:
    """A visitor who ranks the maps of a picture for one class after another, asking on as the page does."""
    key, klass = visitor.show(content)["key"], 0
    while not over.is_set():
        answer = visitor.ask({"question": "rank", "key": key, "klass": klass % 10, "how": ("mean", "blur")[klass // 10 % 2]})
        counts.append(answer.get("done", 0) >= answer.get("total", 1))
        klass += counts[-1]
        if answer.get("busy"):
            over.wait(1)


def report(found: list[Took], seconds: float) -> bool:
    """Print what was found for each kind of question; whether every limit was kept."""
    kept = True
    for what in dict.fromkeys(took.what for took in found):
        mine = [took for took in found if took.what == what]
        times, wrong = sorted(took.seconds for took in mine), sum(took.fault == "wrong" for took in mine)
        faults = [took.fault for took in mine if took.fault not in ("", "wrong")]
        median, most = statistics.median(times), times[int(0.95 * (len(times) - 1))]
        kept &= not wrong and not faults and median < MEDIAN and most < MOST
        print(f"  {what:10} n = {len(mine):4}: median {median:.3f} s, 95 % below {most:.3f} s, longest {times[-1]:.3f} s; {wrong} wrong, {len(faults)} errors")
        for fault in dict.fromkeys(faults):
            print(f"             {faults.count(fault)} x {fault}")
    print(f"  {len(found)} answers in {seconds:.1f} s; load average {os.getloadavg()[0]:.1f} on {settings.cores()} cores")
    return kept


def crowd(url: str, args: argparse.Namespace, pictures: list[list[Expected]]) -> bool:
    found: list[Took] = []
    over, counts = threading.Event(), []
    beside = [threading.Thread(target=rank_on, args=(Visitor(url), picture(10**7 + i), over, counts)) for i in range(args.ranking)]
    people = [threading.Thread(target=visit, args=(Visitor(url), rounds, found, args.pause)) for rounds in pictures]
    flooder, content = Visitor(url), picture(7)
    if args.flood:
        with ThreadPoolExecutor(args.flood) as pool:
            pool.submit(flooder.show, content).result()
            path = flooder.upload(content)
            beside += [threading.Thread(target=flooder.join, args=(path,)) for _ in range(args.flood)]
    start = time.perf_counter()
    for thread in beside + people:
        thread.start()
    for thread in people:
        thread.join()
    seconds = time.perf_counter() - start
    over.set()
    for thread in beside:
        thread.join()
    print(f"{len(people)} visitors, {args.rounds} analyses each, thinking {args.pause:g} s between them"
          + (f"; beside them {args.ranking} who rank: {sum(counts)} rankings, {len(counts)} requests" if args.ranking else "")
          + (f"; beside them {args.flood} pictures of one visitor: {flooder.refused} refused" if args.flood else ""))
    return report(found, seconds)


def series(url: str, pid: int, count: int, box: checkpoint.Loaded) -> bool:
    """One analysis with its questions after the other, and what the server holds in memory meanwhile."""
    pictures, visitor, found, held = [expected(seed, box) for seed in range(50)], Visitor(url), [], []
    start = time.perf_counter()
    for number in range(count):
        visit(visitor, [pictures[number % len(pictures)]], found, 0)
        if (number + 1) % max(1, count // 20) == 0:
            held.append((number + 1, memory(pid)))
            print(f"  after {number + 1:5} analyses: {held[-1][1]:.1f} MB", flush=True)
    kept = report(found, time.perf_counter() - start)
    later = [mb for number, mb in held if number >= count / 2]
    print(f"  growth over the later half: {later[-1] - later[0]:+.1f} MB (at most {GROWTH:.0f})")
    return kept and later[-1] - later[0] < GROWTH


def memory(pid: int) -> float:
    """Megabytes that a process holds in memory (RSS)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def worked(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def made_up(folder: Path) -> None:
    """A small data set in the shape of CIFAR-10's, as <folder>/cifar10.zip."""
    with zipfile.ZipFile(folder / "cifar10.zip", "w") as archive:
        for part, count in (("train", 300), ("test", 30)):
            for number in range(3 * count):
                archive.writestr(f"{part}/kind{number % 3}/{number}.jpg", picture(number + 10**6 * (part == "test"), (32, 32)))


def train(visitor: Visitor) -> str:
    """Start a training run through the lab's door and wait for its first steps; the run's id."""
    run = visitor.ask_lab({"question": "start", "data": "cifar10", "minutes": 3, "mine": ["load" * 8]})["run"]
    for _ in range(240):
        status = visitor.ask_lab({"question": "follow", "run": run, "log": 0, "film": 0})["status"]
        if status["state"] not in ("queued", "starting") and status["step"] > 10:
            return run
        time.sleep(0.5)
    raise SystemExit(f"the training run did not begin: {status['message']}")


def speed(visitor: Visitor, run: str) -> str:
    status = visitor.ask_lab({"question": "follow", "run": run, "log": 0, "film": 0})["status"]
    return f"{status['images_per_second'] or 0:,.0f} pictures a second ({status['state']})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=10, help="analyses of each visitor")
    parser.add_argument("--pause", type=float, default=1, help="seconds that a visitor looks at an answer, in the mean")
    parser.add_argument("--alone", action="store_true", help="no training run beside")
    parser.add_argument("--analyses", type=int, default=0, help="instead: one visitor, so many analyses")
    parser.add_argument("--idle", type=float, default=0, help="instead: so many seconds without a question")
    parser.add_argument("--ranking", type=int, default=0)
    parser.add_argument("--flood", type=int, default=0)
    parser.add_argument("--photo", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    box = checkpoint.load()
    crowds = [] if args.analyses or args.idle else [[expected(1000 * v + n, box) for n in range(args.rounds)] for v in range(args.visitors)]
    with tempfile.TemporaryDirectory() as scratch:
        if not os.environ.get("VITDEMO_DATA"):
            made_up(Path(scratch))
        with served(Path(scratch), os.environ.get("VITDEMO_DATA") or scratch) as (url, server):
            print(f"{settings.machine()}, load average {os.getloadavg()[0]:.1f}", flush=True)
            first = Visitor(url)
            first.show(picture(7))                                          # a fresh server loads what it needs
            if args.idle:
                before = worked(server.pid)
                time.sleep(args.idle)
                print(f"asked by nobody for {args.idle:g} s the server worked for {(worked(server.pid) - before) / args.idle:.2%} of the time")
                return 0
            run = "" if args.alone or args.analyses else train(first)
            if run:
                time.sleep(10)
                print(f"the run with nobody about: {speed(first, run)}", flush=True)
            before = worked(server.pid)
            kept = series(url, server.pid, args.analyses, box) if args.analyses else crowd(url, args, crowds)
            analyses = args.analyses or args.visitors * args.rounds
            print(f"the server worked {1000 * (worked(server.pid) - before) / analyses:.1f} ms of processor time for each analysis with its questions, "
                  f"and holds {memory(server.pid):.0f} MB")
            if run:
                print(f"the run at the end: {speed(first, run)}")
            if args.photo:
                content = picture(3, (3000, 4000))
                times = [seconds_of(first, content) for _ in range(7)]
                print(f"a JPEG of 12 megapixels ({len(content) / 1e6:.1f} MB): median {statistics.median(times):.3f} s, n = {len(times)}")
    print("every limit was kept" if kept else "a limit was broken")
    return 0 if kept else 1


def seconds_of(visitor: Visitor, content: bytes) -> float:
    start = time.perf_counter()
    visitor.show(content)
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())

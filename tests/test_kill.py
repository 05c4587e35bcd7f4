"""Servers and children that are really killed, and servers that really share a folder: what is left goes on or is shown as what it is."""

import json
import os
import subprocess
import sys
import time

import pytest
from test_runs import IGNORE, IGNORE_ALL, LEARN, OBEY, ROOT, START, alive, follow, held, planted, script, state, until

from vitdemo.runs import RunError, RunFolder, Scheduler, last_lines

pytestmark = pytest.mark.skipif(os.name == "nt", reason="asks the kernel whether a process lives")

SERVER = """
import sys
from pathlib import Path
from vitdemo.runs import Scheduler
scheduler = Scheduler(Path(sys.argv[1]), command=lambda folder: [sys.executable, "-S", "-c", sys.argv[2], str(folder.path)], queue=20)
for _ in range(int(sys.argv[3])):
    print(scheduler.submit({}), flush=True)
scheduler.start()
sys.stdin.read()
"""
GO_ON = LEARN + """
watch_parent(run.request_stop)
while not run.stop_requested() and not run.resuming():
    time.sleep(0.01)
run.write_status(state="finished" if run.resuming() else "stopped", message="The trainer's own words.")
"""
DEAF = IGNORE_ALL + START + "(run.path / 'last.pt').write_text('everything')\nwhile True:\n    time.sleep(600)\n"      # not even the server's death


def server(home, source, runs=1):
    """A server in a process of its own that was asked for `runs` runs, and their folders."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(home), source, str(runs)], cwd=ROOT,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, [RunFolder(home / process.stdout.readline().strip()) for _ in range(runs)]


def killed(process):
    process.kill()
    with process:
        pass


@pytest.fixture
def home(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def make(home):
    made = []

    def build(source, **settings):
        made.append(Scheduler(home, command=script(source), **settings))
        return made[-1]

    yield build
    for scheduler in made:
        scheduler.close(patience=0.2)


def test_a_killed_child_failed_for_a_reason_shows_its_last_lines_and_goes_on_when_told(make):
    scheduler = make(LEARN + "print('epoch 1 of /srv/data/x.zip', flush=True)\nrun.write_status(state='finished') if run.resuming() else time.sleep(600)\n")
    run_id = scheduler.submit({})
    folder = scheduler.read(run_id)
    until(lambda: folder.output.exists() and b"epoch" in folder.output.read_bytes(), tick=scheduler.tick)
    os.kill(folder.status().pid, 9)
    follow(scheduler, run_id, "failed")
    assert folder.status().message == "The training process ended unexpectedly (signal 9); it can go on from where it was saved."
    assert last_lines(folder) == ["epoch 1 of x.zip"] and folder.resumable()
    until(lambda: not scheduler._children, tick=scheduler.tick)
    scheduler.resume(run_id)
    follow(scheduler, run_id, "finished")
    assert folder.status().best_accuracy == 0.25


def test_after_a_servers_death_its_child_ends_and_the_next_server_says_interrupted_and_goes_on(home, make):
    process, (run, waiting) = server(home, GO_ON, 2)
    until(lambda: run.status().step == 5)
    pid = run.status().pid
    killed(process)
    until(lambda: not alive(pid))
    assert run.status().message == "The trainer's own words."
    scheduler = make(GO_ON)
    scheduler.tick()
    status = run.status()
    assert (status.state, status.message, status.step) == ("stopped", "The run was interrupted; it can go on from where it was saved.", 5)
    assert run.resumable() and not (run.path / "claim").exists()
    until(lambda: waiting.status().step == 5, tick=scheduler.tick)          # what was queued is started
    scheduler.stop(waiting.id)
    scheduler.resume(run.id)
    follow(scheduler, run.id, "finished")
    assert waiting.status().message == "The trainer's own words."


def test_a_child_that_goes_on_after_its_servers_death_is_ended_by_the_next_server(home, make):
    process, (run,) = server(home, DEAF)
    until(lambda: run.status().state == "running" and "pid" in json.loads((run.path / "claim").read_text()))
    pid = run.status().pid
    killed(process)
    scheduler = make(OBEY, grace=0.3)
    following = scheduler.submit({})
    scheduler.tick()
    assert alive(pid) and state(scheduler, following) == "queued"           # it takes a place as long as it lives
    follow(scheduler, following, "running")
    assert not alive(pid)
    assert (run.status().state, run.status().message) == ("stopped", "The run was interrupted; it can go on from where it was saved.")


def test_a_process_left_over_from_a_run_that_is_over_is_ended_too(home, make):
    process, (run,) = server(home, DEAF.replace("while True", "run.write_status(state='finished', message='Done.')\nwhile True"))
    until(lambda: run.status().state == "finished")
    pid = run.status().pid
    killed(process)
    scheduler = make(OBEY, grace=0.1)
    until(lambda: not alive(pid), tick=scheduler.tick)
    scheduler.tick()
    assert (run.status().state, run.status().message) == ("finished", "Done.") and not (run.path / "claim").exists()


def test_a_run_that_a_person_stopped_before_the_server_died_was_not_interrupted(home, make):
    process, (run,) = server(home, GO_ON)
    until(lambda: run.status().step == 5)
    run.request_stop("person")
    killed(process)
    until(lambda: run.status().over)
    make(OBEY).tick()
    assert run.status().message == "The trainer's own words."


def test_a_process_that_only_got_the_number_of_a_dead_child_is_left_alone(home, make):
    process, (run,) = server(home, IGNORE)
    until(lambda: run.status().state == "running" and "pid" in json.loads((run.path / "claim").read_text()))
    killed(process)
    os.kill(run.status().pid, 9)
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as stranger:
        claim = json.loads((run.path / "claim").read_text())
        (run.path / "claim").write_text(json.dumps({**claim, "pid": stranger.pid}))
        run.write_status(pid=stranger.pid)
        scheduler = make(OBEY, grace=0.0)
        for _ in range(3):
            scheduler.tick()
        assert run.status().state == "stopped" and stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("claim", ["", "[1]", "{", '{"server": 3}', '{"server": "../../etc/passwd", "pid": 1}', '{"server": ".server-0", "pid": -1}',
                                   '{"server": "", "pid": true}', '{"server": "x\\u0000y"}'])
def test_a_damaged_claim_ends_nobody_and_is_settled(home, make, claim):
    run = planted(home, state="running", age=60, pid=os.getpid())
    (run.path / "claim").write_text(claim)
    os.utime(run.path / "claim", (time.time() - 60,) * 2)
    scheduler = make(OBEY, grace=0.0)
    for _ in range(3):
        scheduler.tick()
    assert run.status().state == "stopped" and not (run.path / "claim").exists() and home.is_dir()


def test_a_run_of_a_living_server_is_left_to_it_however_silent_it_is(home, make):
    process, (run,) = server(home, IGNORE)
    until(lambda: run.status().state == "running")
    try:
        scheduler = make(OBEY, stale=0.0, grace=0.0)
        waiting = scheduler.submit({})
        for _ in range(5):
            scheduler.tick()
            time.sleep(0.02)
        assert run.status().state == "running" and alive(run.status().pid) and not run.stop_requested()
        assert state(scheduler, waiting) == "queued"
        with pytest.raises(RunError, match="still going on"):
            scheduler.resume(run.id)
        scheduler.stop(run.id)                          # but it may be stopped from here
        until(lambda: run.status().over)
        assert run.status().message == "Stopped."
    finally:
        killed(process)


def test_two_servers_on_one_folder_never_run_more_than_the_limit_and_lose_none(home):
    short = START + "run.log({'from': time.time()})\ntime.sleep(0.05)\nrun.log({'to': time.time()})\nrun.write_status(state='finished')\n"
    servers = [server(home, short, 3) for _ in range(2)]
    runs = [run for _, found in servers for run in found]
    try:
        until(lambda: all(run.status().over for run in runs))
    finally:
        for process, _ in servers:
            killed(process)
    assert [run.status().state for run in runs] == ["finished"] * 6
    times = sorted((next(r["from"] for r in run.records()[0] if "from" in r), next(r["to"] for r in run.records()[0] if "to" in r)) for run in runs)
    assert all(len(run.records()[0]) == 2 for run in runs)                  # none was started twice
    assert all(end < begin for (_, end), (begin, _) in zip(times, times[1:]))


def test_a_server_that_dies_while_it_makes_a_run_leaves_nothing_that_is_taken_for_one(home, make):
    code = SERVER.replace("for _ in", "import os\nos.rename = lambda *names: os._exit(9)\nfor _ in")
    assert subprocess.run([sys.executable, "-c", code, str(home), OBEY, "1"], cwd=ROOT).returncode == 9
    assert [path.name[-4:] for path in held(home)] == [".new"]
    scheduler = make(START + "run.write_status(state='finished')\n")
    follow(scheduler, scheduler.submit({}), "finished")                     # and no lock that nobody will open

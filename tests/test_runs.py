"""The run folder and the scheduler, with small scripts in place of the trainer: no torch, no fixed waiting times."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vitdemo.runs import RunError, RunFolder, Scheduler, Status, new_id, train_command

ROOT = Path(__file__).resolve().parent.parent
WITHIN = 20     # seconds after which a condition counts as never met

START = """
import os, sys, time
from vitdemo.runs import RunFolder, watch_parent
run = RunFolder(sys.argv[1])
run.write_status(state="running", pid=os.getpid(), step=1)
"""
FINISH = START + "run.log({'step': 1, 'loss': 2.5})\nrun.write_status(state='finished', step=run.config()['steps'], progress=1.0)\n"
OBEY = START + """
watch_parent(run.request_stop)
while not run.stop_requested():
    time.sleep(0.01)
run.write_status(state="stopped")
"""
IGNORE = START + "time.sleep(600)\n"
LINGER = START + "run.write_status(state='finished')\ntime.sleep(600)\n"


def script(source):
    """A command that runs `source` with the run's folder as its only argument."""
    return lambda folder: [sys.executable, "-S", "-c", source, str(folder.path)]


def until(condition, *, tick=lambda: None):
    """Wait until `condition` is true, ticking meanwhile; fail after WITHIN seconds."""
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        tick()
        time.sleep(0.01)


def state(scheduler, run_id):
    return scheduler.read(run_id).status().state


def follow(scheduler, run_id, *states):
    until(lambda: state(scheduler, run_id) in states, tick=scheduler.tick)


@pytest.fixture
def make(tmp_path):
    """Schedulers on one home that are closed, and their children with them, when the test ends."""
    made = []

    def build(source=FINISH, **settings):
        made.append(Scheduler(tmp_path / "runs", command=script(source), **settings))
        return made[-1]

    yield build
    for scheduler in made:
        scheduler.close(patience=0.2)


def planted(home, *, age=0.0, **status):
    """A run on disk that no scheduler of this test has started, last heard of `age` seconds ago."""
    folder = RunFolder(home / new_id()).create({"steps": 7})
    folder.log({"step": 1})
    (folder.path / "status.json").write_text(json.dumps({**status, "time": time.time() - age}))
    for name in ("config.json", "log.jsonl"):
        os.utime(folder.path / name, (time.time() - age,) * 2)
    return folder


# ---- the folder ----------------------------------------------------------------------------------------------------

def test_importing_runs_loads_neither_torch_nor_numpy_nor_gradio():
    code = "import sys, vitdemo.runs; sys.exit(' '.join({'torch', 'numpy', 'gradio'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_of_any_name_holds_a_run(tmp_path):
    folder = RunFolder(tmp_path / "my first run" / "é").create({"minutes": 3})
    assert folder.config() == {"minutes": 3} and RunFolder(str(folder.path)) == folder
    assert (folder.best.name, folder.last.name, folder.film.name) == ("best.safetensors", "last.pt", "film")


def test_a_folder_that_holds_a_run_is_not_overwritten(tmp_path):
    folder = RunFolder(tmp_path / "a").create({"seed": 1})
    with pytest.raises(RunError, match="a already holds a run"):
        folder.create({"seed": 2})
    assert folder.config() == {"seed": 1}


def test_a_run_that_cannot_be_written_says_so_in_one_sentence_without_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    for attempt in (lambda: RunFolder(tmp_path / "file" / "a").create({}), lambda: RunFolder(tmp_path / "none").log({}),
                    lambda: RunFolder(tmp_path / "none").write_status(step=1), lambda: RunFolder(tmp_path / "none").request_stop()):
        with pytest.raises(RunError, match=r"^[^/\n]+ could not be written \(.+\): [^/\n]+\.$"):
            attempt()


def test_a_missing_or_damaged_config_is_an_error(tmp_path):
    for text in (None, "", "[1]", '{"a"'):
        if text is not None:
            (tmp_path / "config.json").write_text(text)
        with pytest.raises(RunError, match="missing or damaged"):
            RunFolder(tmp_path).config()


def test_status_keeps_what_is_not_changed_and_is_stamped(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_status(state="running", step=3, best_accuracy=0.5)
    folder.write_status(step=4, images_per_second=float("nan"))
    status = folder.status()
    assert (status.state, status.step, status.best_accuracy, status.images_per_second) == ("running", 4, 0.5, None)
    assert abs(status.time - time.time()) < WITHIN
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


@pytest.mark.parametrize("text", ["", "{", '{"state": "runn', "[]", "null", "\x00\xff", "[" * 100_000,
                                  '{"state": "odd", "step": "3", "message": 7, "progress": null, "pid": true, "other": 1}'])
def test_an_unreadable_status_is_the_default_one(tmp_path, text):
    (tmp_path / "status.json").write_text(text, encoding="latin-1")
    assert RunFolder(tmp_path).status() == Status() == RunFolder(tmp_path / "none").status()


def test_a_reader_never_sees_half_a_status(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_status(state="running", step=0)
    code = START + "for step in range(400):\n    run.write_status(step=step, message='x' * 20_000)\n"
    with subprocess.Popen(script(code)(folder), cwd=ROOT) as writer:
        while writer.poll() is None:
            assert folder.status().state == "running"
    assert folder.status().step == 399


def test_the_log_gives_whole_lines_from_an_offset(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.records() == ([], 0)
    folder.log({"step": 1, "loss": float("nan"), "more": [float("inf"), (1, 2)]})
    first, offset = folder.records()
    assert first == [{"step": 1, "loss": None, "more": [None, [1, 2]]}]
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"step": 2}\n{"step": 3, "na')
    second, offset = folder.records(offset)
    assert second == [{"step": 2}] and folder.records(offset) == ([], offset)
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write('me": "é"}\n'.encode())
    assert folder.records(offset)[0] == [{"step": 3, "name": "é"}]
    assert folder.records(10_000) == ([], 10_000) and len(folder.records(-1)[0]) == 3


def test_a_broken_line_is_left_out_and_a_torn_one_does_not_swallow_the_next(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b'{"step": 1}\nnonsense\n[1]\n\xff\n' + b"[" * 100_000 + b'\n{"step": 2, "lo')
    folder.log({"step": 3})
    assert folder.records()[0] == [{"step": 1}, {"step": 3}]


def test_a_stop_can_be_asked_for_and_withdrawn(tmp_path):
    folder = RunFolder(tmp_path)
    assert not folder.stop_requested()
    folder.request_stop()
    folder.request_stop()
    assert folder.stop_requested()
    folder.withdraw_stop()
    assert not folder.stop_requested()


# ---- the scheduler -------------------------------------------------------------------------------------------------

def test_the_trainer_is_started_from_its_folder(tmp_path):
    assert train_command(RunFolder(tmp_path))[1:] == ["-m", "vitdemo.train", "--out", str(tmp_path), "--from-run"]


def test_a_run_goes_from_queued_to_finished_from_any_working_directory(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    scheduler = make()
    run_id = scheduler.submit({"steps": 7})
    assert state(scheduler, run_id) == "queued" and scheduler.position(run_id) == 1
    follow(scheduler, run_id, "finished", "failed")
    status = scheduler.read(run_id).status()
    assert (status.state, status.step, status.progress, status.message) == ("finished", 7, 1.0, "")
    assert scheduler.read(run_id).records()[0] == [{"step": 1, "loss": 2.5}] and scheduler.position(run_id) == 0


def test_a_running_run_stops_when_asked(make):
    scheduler = make(OBEY)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "running")
    scheduler.stop(run_id)
    follow(scheduler, run_id, "stopped")
    assert scheduler.read(run_id).status().message == ""


def test_a_run_that_does_not_listen_is_ended_by_force(make):
    scheduler = make(IGNORE, grace=0.05)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "running")
    scheduler.stop(run_id)
    follow(scheduler, run_id, "stopped", "failed")
    assert state(scheduler, run_id) == "stopped" and not alive(scheduler.read(run_id).status().pid)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking it")
def test_a_run_that_does_not_listen_may_clean_up_before_it_is_killed(make):
    scheduler = make("import signal\nsignal.signal(signal.SIGTERM, lambda *_: run.log({'bye': 1}))\n" + IGNORE, grace=0.1)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "running")
    scheduler.stop(run_id)
    follow(scheduler, run_id, "stopped")
    assert {"bye": 1} in scheduler.read(run_id).records()[0]


def test_a_process_that_stays_after_its_run_is_over_makes_room_for_the_next(make):
    scheduler = make(LINGER, grace=0.05)
    first, second = scheduler.submit({}), scheduler.submit({})
    follow(scheduler, second, "finished")
    assert state(scheduler, first) == "finished"


def test_a_queued_run_stops_at_once_and_is_never_started(make):
    scheduler = make(OBEY)
    first, second = scheduler.submit({}), scheduler.submit({})
    follow(scheduler, first, "running")
    scheduler.stop(second)
    assert state(scheduler, second) == "stopped"
    third = scheduler.submit({})
    scheduler.read(third).request_stop()                # by a reader that has no scheduler
    scheduler.stop(first)
    scheduler.stop(second)
    follow(scheduler, first, "stopped")
    scheduler.tick()
    for run_id in (second, third):
        assert state(scheduler, run_id) == "stopped" and not scheduler.read(run_id).output.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_child_is_a_failed_run_with_one_sentence(make):
    scheduler = make(IGNORE)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "running")
    os.kill(scheduler.read(run_id).status().pid, signal.SIGKILL)
    follow(scheduler, run_id, "failed", "stopped")
    status = scheduler.read(run_id).status()
    assert (status.state, status.message) == ("failed", "The training process ended unexpectedly (signal 9); the weights kept so far can be looked into, or start again.")


@pytest.mark.parametrize(("ending", "sentence"), [
    ("raise ValueError('the rate 3 is too high')", "(exit code 1): the rate 3 is too high."),
    ("raise FileNotFoundError(2, 'No such file', '/srv/my data/x.zip')", "(exit code 1): [Errno 2] No such file: 'x.zip'."),
    ("raise RuntimeError('cannot open /srv/data/x.zip or C:\\\\new\\\\y.zip after 3/4')",
     "(exit code 1): cannot open x.zip or y.zip after 3/4."),
    ("sys.exit('out of luck.')", "(exit code 1): out of luck."),
    ("raise MemoryError", "(exit code 1): MemoryError."),
    ("os._exit(3)", "(exit code 3); the weights kept so far can be looked into, or start again."),
    ("print('ValueError: no room\\nsee the manual\\n'); sys.exit(2)", "(exit code 2): no room."),
    ("pass", "(exit code 0); the weights kept so far can be looked into, or start again."),
])
def test_a_child_that_breaks_leaves_one_sentence_without_paths(make, ending, sentence):
    scheduler = make(START + ending)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "failed", "stopped")
    assert scheduler.read(run_id).status().message == f"The training process ended unexpectedly {sentence}"


def test_a_command_that_cannot_be_started_fails_the_run_and_not_the_queue(make):
    scheduler = make()
    bad, good = scheduler.submit({}), scheduler.submit({"steps": 7})
    works = scheduler.command
    scheduler.command = lambda folder: ["/no/such/program"] if folder.id == bad else works(folder)
    follow(scheduler, good, "finished")
    assert scheduler.read(bad).status().message == "The training process could not be started."


def test_runs_start_oldest_first_and_never_more_than_the_limit(make, tmp_path):
    scheduler = make(OBEY, limit=2, queue=3)
    ids = [scheduler.submit({}) for _ in range(5)]
    assert [scheduler.position(run_id) for run_id in ids] == [1, 2, 3, 4, 5]
    with pytest.raises(RunError, match="5 training runs going on or waiting"):
        scheduler.submit({})
    assert len(list((tmp_path / "runs").iterdir())) == 5
    follow(scheduler, ids[0], "running")
    follow(scheduler, ids[1], "running")
    assert [scheduler.position(run_id) for run_id in ids] == [0, 0, 1, 2, 3]
    scheduler.stop(ids[1])
    follow(scheduler, ids[2], "running")
    assert [state(scheduler, run_id) for run_id in ids] == ["running", "stopped", "running", "queued", "queued"]


def test_two_schedulers_on_one_home_start_a_run_once_and_share_the_limit(make):
    first, second = make(OBEY), make(OBEY)
    run_id, waiting = first.submit({}), second.submit({})
    stale_view = second._runs()
    first.tick()
    assert not second._start(stale_view[0][0])
    follow(second, run_id, "running")
    assert state(second, waiting) == "queued" and list(first._children) == [run_id] and not second._children


@pytest.mark.parametrize("name", ["../x", "..", "", ".", "/etc", "x" * 32, "A" * 32, "a" * 31, "a" * 32 + "\n", "a" * 32, None, 7, ["a"]])
def test_a_name_that_is_not_the_id_of_a_run_is_refused(make, tmp_path, name):
    (tmp_path / "runs").mkdir()
    (tmp_path / "x").mkdir()
    scheduler = make()
    for method in (scheduler.read, scheduler.stop, scheduler.position):
        with pytest.raises(RunError, match=r"^There is no such run\.$"):
            method(name)


def test_ids_cannot_be_guessed():
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100 and all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)


def test_a_new_scheduler_adopts_fresh_runs_fails_silent_ones_and_starts_queued_ones(make, tmp_path):
    home = tmp_path / "runs"
    fresh, silent = planted(home, state="running", age=5), planted(home, state="running", age=60)
    logging_only, asked = planted(home, state="starting", age=60), planted(home, state="running", age=60)
    logging_only.log({"step": 2})
    asked.request_stop()
    queued = planted(home, state="queued", age=1000)
    scheduler = make(limit=2)
    scheduler.tick()
    assert [run.status().state for run in (fresh, silent, logging_only, asked)] == ["running", "failed", "starting", "stopped"]
    assert silent.status().message == "The run was interrupted."
    assert queued.status().state == "queued"            # the two adopted runs fill the limit
    fresh.write_status(state="finished")
    follow(scheduler, queued.id, "finished")


def test_a_run_whose_scheduler_died_between_claim_and_start_is_failed(make, tmp_path):
    run, old = planted(tmp_path / "runs", state="queued"), time.time() - 60
    (run.path / "claim").touch()
    scheduler = make()
    scheduler.tick()
    assert run.status().state == "queued"
    os.utime(run.path / "claim", (old, old))
    scheduler.tick()
    assert (run.status().state, run.status().message) == ("failed", "The run was interrupted.")


def test_old_runs_that_are_over_are_deleted_and_nothing_else(make, tmp_path):
    home, day = tmp_path / "runs", 24 * 3600
    old, young = planted(home, state="finished", age=day + 60), planted(home, state="failed", age=day - 60)
    queued, interrupted = planted(home, state="queued", age=2 * day), planted(home, state="running", age=2 * day)
    (home / "notes").mkdir()
    make(limit=0, keep_seconds=0).tick()
    assert old.path.exists()
    make(limit=0).tick()
    assert not old.path.exists()
    assert all(path.exists() for path in (young.path, queued.path, interrupted.path, home / "notes"))


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    scheduler = Scheduler(tmp_path / "file")
    with pytest.raises(RunError, match=r"^The run could not be saved: [^/]+\.$"):
        scheduler.submit({})
    scheduler.tick()


def test_a_full_disk_is_one_sentence_and_leaves_no_half_run(make, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    scheduler = make()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(RunError, match=r"^The run could not be saved: [^/]+\.$"):
            scheduler.submit({})
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_background_thread_survives_errors_and_complains_once(make, caplog):
    scheduler = make()
    works, calls = scheduler.command, []

    def fails_twice(folder):
        calls.append(folder)
        if len(calls) < 3:
            (folder.path / "claim").unlink()
            folder.write_status(state="queued")
            raise KeyError("odd")
        return works(folder)

    scheduler.command = fails_twice
    run_id = scheduler.submit({"steps": 7})
    with caplog.at_level(logging.ERROR):
        scheduler.start()
        scheduler.start()
        until(lambda: state(scheduler, run_id) == "finished")
    scheduler.close()
    assert len(calls) == 3 and [record.getMessage() for record in caplog.records] == ["looking after the runs failed"]


@pytest.mark.parametrize("source", [OBEY, IGNORE])
def test_closing_stops_the_children_and_keeps_the_queue(make, source):
    scheduler = make(source)
    running, waiting = scheduler.submit({}), scheduler.submit({})
    follow(scheduler, running, "running")
    scheduler.close(patience=0.3 if source == IGNORE else 5)
    assert [state(scheduler, run_id) for run_id in (running, waiting)] == ["stopped", "queued"]
    assert not alive(scheduler.read(running).status().pid)


def test_watching_the_parent_does_not_hinder_a_clean_exit(tmp_path):
    code = "from vitdemo.runs import watch_parent; watch_parent(print)"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code = child.wait(WITHIN)                           # while our end of its input is still open
    assert (code, *child.communicate()) == (0, b"", b"")


SERVER = """
import sys
from pathlib import Path
from vitdemo.runs import Scheduler
scheduler = Scheduler(Path(sys.argv[1]), command=lambda folder: [sys.executable, "-S", "-c", sys.argv[2], str(folder.path)])
scheduler.start()
print(scheduler.submit({}), flush=True)
sys.stdin.read()
"""


def test_a_child_whose_server_died_stops_itself(tmp_path):
    command = [sys.executable, "-c", SERVER, str(tmp_path), OBEY]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        run = RunFolder(tmp_path / server.stdout.readline().strip())
        until(lambda: run.status().state == "running")
        server.kill()
    until(lambda: run.status().state == "stopped")
    until(lambda: not alive(run.status().pid))


def alive(pid):
    """Whether a process runs (a zombie does not); where that cannot be asked without harm, False."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

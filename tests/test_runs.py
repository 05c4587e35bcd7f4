"""The run folder and the scheduler, with small scripts in place of the trainer: no torch, no fixed waiting times."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vitdemo import dispatch, shelf
from vitdemo.child import last_words
from vitdemo.runs import RunError, RunFolder, Scheduler, Status, last_lines, new_id, train_command

ROOT = Path(__file__).resolve().parent.parent
WITHIN = 20     # seconds after which a condition counts as never met

START = """
import os, sys, time
from vitdemo.child import watch_parent
from vitdemo.runfolder import RunFolder
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
LEARN = START + """
(run.path / "last.pt").write_text("everything")
run.write_status(step=5, best_accuracy=0.25)
"""
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


def held(home):
    """Everything in a folder of runs but the schedulers' own locks: runs, and what is left of half-made ones."""
    return [path for path in home.iterdir() if path.is_dir()]


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
    assert not folder.stop_requested() and not folder.stopped_by_person()
    folder.request_stop()
    folder.request_stop()
    assert folder.stop_requested() and not folder.stopped_by_person()
    folder.request_stop("person")
    folder.request_stop()                               # what a person wanted stays wanted
    assert folder.stopped_by_person()
    folder.withdraw_stop()
    assert not folder.stop_requested() and not folder.stopped_by_person()


def test_the_film_is_read_like_the_log(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.frames() == ([], 0) and folder.scene() is None
    folder.write_scene({"layers": 2})
    folder.add_frame({"step": 0})
    frames, offset = folder.frames()
    folder.add_frame({"step": 9})
    assert (folder.scene(), frames, folder.frames(offset)[0]) == ({"layers": 2}, [{"step": 0}], [{"step": 9}])
    (folder.film / "scene.json").write_text("[1]")
    assert folder.scene() is None


def test_mistakes_are_kept_for_two_parts_and_no_other(tmp_path):
    folder = RunFolder(tmp_path)
    assert [folder.mistakes(part).name for part in ("validation", "test")] == ["mistakes-validation.safetensors", "mistakes-test.safetensors"]
    for part in ("", "../x", None, "train"):
        with pytest.raises(RunError, match="validation and the test part"):
            folder.mistakes(part)


@pytest.mark.parametrize(("config", "name"), [
    ({"title": "My cats & dogs, 2nd try!"}, "my-cats-dogs-2nd-try"), ({"title": "", "model": "vit-micro"}, "vit-micro"), ({"title": "\u732b/../x"}, "x"),
    ({"title": "\u732b"}, "model"), ({"title": 7}, "model"), ({"title": "ab " * 40}, ("ab-" * 14)[:40].strip("-"))])
def test_a_checkpoint_is_taken_home_under_a_name_that_any_system_takes(tmp_path, config, name):
    folder = RunFolder(tmp_path).create(config)
    folder.write_status(created=1_700_000_000)
    assert folder.checkpoint_name == f"vitdemo-{name}-2023-11-{time.localtime(1_700_000_000).tm_mday}.safetensors"


def test_the_last_lines_that_a_process_printed_hold_no_paths(tmp_path):
    folder = RunFolder(tmp_path)
    assert last_lines(folder) == []
    folder.output.write_bytes(b"one\n\n 10%\r 20%\nTraceback:\n  File \"/srv/app/train.py\", line 3, in fit\nOSError: C:\\data\\x.zip \xff\n" + b"y" * 999)
    assert last_lines(folder) == ["one", " 20%", "Traceback:", '  File "train.py", line 3, in fit', "OSError: x.zip \ufffd", "y" * 300]
    assert last_lines(folder, 2) == ["OSError: x.zip \ufffd", "y" * 300]


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
    assert (status.state, status.message) == ("failed", "The training process ended unexpectedly (signal 9); nothing was learned yet, so start a new one.")


@pytest.mark.parametrize(("ending", "sentence"), [
    ("raise ValueError('the rate 3 is too high')", "(exit code 1): the rate 3 is too high."),
    ("raise FileNotFoundError(2, 'No such file', '/srv/my data/x.zip')", "(exit code 1): [Errno 2] No such file: 'x.zip'."),
    ("raise RuntimeError('cannot open /srv/data/x.zip or C:\\\\new\\\\y.zip after 3/4')",
     "(exit code 1): cannot open x.zip or y.zip after 3/4."),
    ("sys.exit('out of luck.')", "(exit code 1): out of luck."),
    ("raise MemoryError", "(exit code 1): MemoryError."),
    ("os._exit(3)", "(exit code 3); nothing was learned yet, so start a new one."),
    ("print('ValueError: no room\\nsee the manual\\n'); sys.exit(2)", "(exit code 2): no room."),
    ("pass", "(exit code 0); nothing was learned yet, so start a new one."),
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
    assert len(held(tmp_path / "runs")) == 5
    follow(scheduler, ids[0], "running")
    follow(scheduler, ids[1], "running")
    assert [scheduler.position(run_id) for run_id in ids] == [0, 0, 1, 2, 3]
    scheduler.stop(ids[1])
    follow(scheduler, ids[2], "running")
    assert [state(scheduler, run_id) for run_id in ids] == ["running", "stopped", "running", "queued", "queued"]


def test_two_schedulers_on_one_home_start_a_run_once_and_share_the_limit(make):
    first, second = make(OBEY), make(OBEY)
    run_id, waiting = first.submit({}), second.submit({})
    stale_view = second._shelf.live()
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


def test_a_new_scheduler_adopts_fresh_runs_settles_silent_ones_and_starts_queued_ones(make, tmp_path):
    home = tmp_path / "runs"
    fresh, silent = planted(home, state="running", age=5), planted(home, state="running", age=60)
    logging_only, asked = planted(home, state="starting", age=60), planted(home, state="running", age=60)
    logging_only.log({"step": 2})
    asked.request_stop("person")
    queued = planted(home, state="queued", age=1000)
    scheduler = make(limit=2)
    scheduler.tick()
    assert [run.status().state for run in (fresh, silent, logging_only, asked)] == ["running", "stopped", "starting", "stopped"]
    assert (silent.status().message, asked.status().message) == ("The run was interrupted.", "Stopped.")
    assert queued.status().state == "queued"            # the two adopted runs fill the limit
    fresh.write_status(state="finished")
    follow(scheduler, queued.id, "finished")


def test_a_run_whose_scheduler_died_between_claim_and_start_was_interrupted(make, tmp_path):
    run, old = planted(tmp_path / "runs", state="queued"), time.time() - 60
    (run.path / "claim").touch()
    scheduler = make()
    scheduler.tick()
    assert run.status().state == "queued"
    os.utime(run.path / "claim", (old, old))
    scheduler.tick()
    assert (run.status().state, run.status().message) == ("stopped", "The run was interrupted.")


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
    assert held(tmp_path / "runs") == []


def test_a_run_whose_last_word_finds_no_room_gets_it_once_its_claim_is_gone(make, monkeypatch):
    """As on a disk without one free byte: what the trainer had to say is lost, so the place it needed is the first that is given back."""
    scheduler = make(START + "sys.exit(1)\n")
    run_id = scheduler.submit({})
    folder, write = scheduler.read(run_id), RunFolder.write_status

    def full(self, **changes):
        if changes.get("state") == "failed" and (self.path / "claim").exists():
            raise RunError("status.json could not be written (No space left on device): free some disk space.")
        write(self, **changes)

    monkeypatch.setattr(RunFolder, "write_status", full)
    follow(scheduler, run_id, "failed")
    assert folder.status().message == "The run could not be saved: the server's disk is full or its folder of runs is not writable."


def test_a_run_is_stopped_also_where_the_wish_cannot_be_written_down(make, monkeypatch):
    def full(*_):
        raise RunError("stop could not be written (No space left on device): free some disk space.")

    scheduler = make(IGNORE, grace=0.1)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "running")
    pid = scheduler.read(run_id).status().pid
    monkeypatch.setattr(RunFolder, "request_stop", full)
    scheduler.stop(run_id)
    until(lambda: not alive(pid), tick=scheduler.tick)
    with pytest.raises(RunError, match="could not be written"):
        scheduler.stop(scheduler.submit({}))               # one that has no process yet would go on


@pytest.mark.parametrize("source", [OBEY, IGNORE])
def test_no_process_of_a_run_lives_longer_than_the_owner_allows_whatever_it_does(make, source):
    scheduler = make(source, most_seconds=0.3, grace=0.1)
    run_id = scheduler.submit({})
    until(lambda: state(scheduler, run_id) == "stopped", tick=scheduler.tick)
    until(lambda: run_id not in scheduler._children, tick=scheduler.tick)
    assert scheduler.read(run_id).status().message.startswith("This run took longer than a run may here")
    unhurried = make(FINISH, most_seconds=60)
    follow(unhurried, unhurried.submit({"steps": 1}), "finished")


def test_runs_that_hold_as_much_as_they_may_make_no_room_for_more(make, tmp_path):
    scheduler = make(IGNORE, max_bytes=5000)
    (tmp_path / "model").write_bytes(b"x" * 6000)
    (tmp_path / "runs" / "sets").mkdir(parents=True)
    (tmp_path / "runs" / "sets" / "other").write_bytes(b"x" * 9000)         # counted elsewhere
    first = scheduler.adopt(tmp_path / "model", "mine")
    for more in (lambda: scheduler.submit({}), lambda: scheduler.submit_all([{}, {}]), lambda: scheduler.adopt(tmp_path / "model", "again")):
        with pytest.raises(RunError, match="The place for training runs on this server is full"):
            more()
    scheduler.delete(first)
    assert scheduler.submit({})


def test_a_process_that_was_killed_before_it_had_learned_promises_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run").create({})
    assert last_words(folder, -9).endswith("nothing was learned yet, so start a new one.")
    folder.best.touch()
    assert "can be looked into" in last_words(folder, -9)
    folder.last.touch()
    assert last_words(folder, -9).endswith("it can go on from where it was saved.")


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
    assert scheduler.read(running).status().message == "The run was interrupted."
    assert not alive(scheduler.read(running).status().pid) and not list(scheduler.home.glob(".server-*"))


def test_watching_the_parent_does_not_hinder_a_clean_exit(tmp_path):
    code = "from vitdemo.runs import watch_parent; watch_parent(print)"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code = child.wait(WITHIN)                           # while our end of its input is still open
    assert (code, *child.communicate()) == (0, b"", b"")


# ---- what a visitor may ask for ------------------------------------------------------------------------------------

def test_files_are_there_when_a_run_is_queued(make):
    scheduler = make()
    folder = scheduler.read(scheduler.submit({"steps": 7}, {"film/subject-0.png": b"picture", "film/subject-1.png": b""}))
    assert folder.status().state == "queued" and folder.config() == {"steps": 7}
    assert {path.name: path.read_bytes() for path in folder.film.iterdir()} == {"subject-0.png": b"picture", "subject-1.png": b""}


@pytest.mark.parametrize("name", ["config.json", "film/../x.png", "/film/a.png", "film/a.png/b", "film/a.json", "film\\a.png", "film/A.png\n", "", "film/.png", "stop"])
def test_a_run_takes_no_file_of_another_name(make, tmp_path, name):
    scheduler = make()
    with pytest.raises(RunError, match="cannot take a file"):
        scheduler.submit({}, {"film/subject-0.png": b"", name: b"x"})
    assert not (tmp_path / "runs").exists()


def at_once(action, arguments):
    """Call `action` with each of the arguments, all at the same moment; returns what each said (a RunError as its sentence)."""
    gate, said = threading.Barrier(len(arguments)), [None] * len(arguments)

    def one(index):
        gate.wait()
        try:
            said[index] = action(arguments[index])
        except RunError as error:
            said[index] = f"refused: {error}"

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN)
    return said


def test_of_two_tabs_that_start_at_once_only_one_does(make):
    scheduler, secret = make(), new_id()
    said = at_once(lambda _: scheduler.submit({}, mine=[secret, None, "nonsense"], only_one=True), range(8))
    assert sorted(one.startswith("refused") for one in said) == [False] + [True] * 7
    assert [one for one in said if "refused" in one][0] == "refused: One of your runs is still going on: wait for its end, or stop it."
    run_id = next(one for one in said if "refused" not in one)
    for mine in ([run_id], [new_id(), secret]):
        with pytest.raises(RunError, match="still going on"):
            scheduler.submit_all([{}, {}], mine=mine, only_one=True)
    scheduler.submit({}, mine=[new_id()], only_one=True)                    # another visitor's
    for mine in ([new_id()], [secret]):                                     # or one who may have several
        scheduler.stop(scheduler.submit({}, mine=mine))
    scheduler.stop(run_id)
    assert scheduler.submit({}, mine=[run_id, secret], only_one=True)


def test_two_schedulers_never_take_more_runs_than_there_are_places(make, tmp_path):
    schedulers = make(queue=2), make(queue=2)
    said = at_once(lambda index: schedulers[index % 2].submit({"steps": index}), range(8))
    assert sum("refused" in one for one in said) == 5 and len(held(tmp_path / "runs")) == 3


def test_a_race_is_queued_whole_or_not_at_all(make, tmp_path, monkeypatch):
    scheduler = make(queue=4)
    first = scheduler.submit({})
    ids = scheduler.submit_all([{"seed": seed} for seed in range(3)])
    assert [scheduler.position(run_id) for run_id in (first, *ids)] == [1, 2, 3, 4]
    assert [scheduler.read(run_id).config()["seed"] for run_id in ids] == [0, 1, 2]
    with pytest.raises(RunError, match="These 2 runs need 2 places and 1 is free, with 4 training runs going on or waiting"):
        scheduler.submit_all([{}, {}])
    works, calls = os.rename, []

    def second_fails(*names):
        calls.append(names)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        works(*names)

    scheduler.queue = 9
    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(RunError, match=r"^The run could not be saved: [^/]+\.$"):
        scheduler.submit_all([{}, {}, {}])
    assert sorted(path.name for path in held(tmp_path / "runs")) == sorted([first, *ids]) and len(calls) > 1


def test_a_run_that_failed_goes_on_with_its_numbers_after_those_that_wait(make):
    scheduler = make(LEARN + "sys.exit('out of luck') if not run.resuming() else run.write_status(state='finished')")
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "failed")
    folder = scheduler.read(run_id)
    assert folder.resumable() and "--resume" not in train_command(folder)
    waiting = scheduler.submit({})
    scheduler.resume(run_id)
    status = folder.status()
    assert (status.state, status.message, status.step, status.best_accuracy, status.pid) == ("queued", "Waiting to go on.", 5, 0.25, None)
    assert [scheduler.position(one) for one in (waiting, run_id)] == [1, 2]
    assert train_command(folder)[-2:] == ["--from-run", "--resume"]
    follow(scheduler, waiting, "failed")
    follow(scheduler, run_id, "finished")
    assert not folder.resumable()
    for attempt, sentence in ((run_id, "reached its end"), (new_id(), "no such run")):
        with pytest.raises(RunError, match=sentence):
            scheduler.resume(attempt)


def test_a_run_cannot_go_on_while_it_does_or_without_anything_saved_or_without_a_place(make):
    scheduler = make(OBEY, queue=1)
    run_id = scheduler.submit({})
    for _ in range(2):
        with pytest.raises(RunError, match="still going on"):
            scheduler.resume(run_id)
        follow(scheduler, run_id, "running")
    scheduler.stop(run_id)
    follow(scheduler, run_id, "stopped")
    until(lambda: not scheduler._children, tick=scheduler.tick)
    with pytest.raises(RunError, match="before its first look"):
        scheduler.resume(run_id)
    scheduler.read(run_id).last.write_text("everything")
    others = [scheduler.submit({}), scheduler.submit({})]
    with pytest.raises(RunError, match="No place is free"):
        scheduler.resume(run_id)
    assert state(scheduler, run_id) == "stopped" and scheduler.read(run_id).stop_requested()
    for one in others:
        scheduler.stop(one)
    with pytest.raises(RunError, match="still going on"):
        scheduler.submit({}, mine=[run_id], only_one=True) if not scheduler.resume(run_id) else None
    follow(scheduler, run_id, "running")                # the earlier wish to stop is forgotten
    scheduler.stop(run_id)
    follow(scheduler, run_id, "stopped")


def test_a_process_that_lingers_after_its_last_word_is_gone_before_its_run_goes_on(make):
    scheduler = make(LEARN + "run.write_status(state='stopped')\ntime.sleep(600)\n", grace=0.2)
    run_id = scheduler.submit({})
    follow(scheduler, run_id, "stopped")
    with pytest.raises(RunError, match="still ending"):
        scheduler.resume(run_id)
    until(lambda: not scheduler._children, tick=scheduler.tick)
    scheduler.resume(run_id)
    assert state(scheduler, run_id) == "queued"


@pytest.mark.parametrize("source", [OBEY, IGNORE])
def test_a_deleted_run_is_gone_with_its_process(make, tmp_path, source):
    scheduler = make(source)
    run_id, waiting = scheduler.submit({}), scheduler.submit({})
    follow(scheduler, run_id, "running")
    pid = scheduler.read(run_id).status().pid
    for one in (waiting, run_id):
        scheduler.delete(one)
        with pytest.raises(RunError, match="no such run"):
            scheduler.read(one)
    assert not alive(pid) and held(tmp_path / "runs") == []
    scheduler.tick()
    again = scheduler.submit({})
    follow(scheduler, again, "running")                 # its place is free
    with pytest.raises(RunError, match="no such run"):
        scheduler.delete(run_id)


def test_a_run_of_another_server_is_deleted_once_it_has_ended(make, tmp_path):
    first, second = make(OBEY), make(OBEY)
    run_id = first.submit({})
    follow(first, run_id, "running")
    first.start()
    second.delete(run_id)
    assert held(tmp_path / "runs") == []
    silent = planted(tmp_path / "runs", state="running")
    with pytest.raises(RunError, match="still ending"):
        second.delete(silent.id)
    assert silent.stopped_by_person()


def test_a_checkpoint_becomes_a_run_that_is_over(make, tmp_path):
    scheduler = make(limit=0, queue=0)                  # it trains nothing, so it needs no place
    (tmp_path / "odd; name.pt").write_bytes(b"\x00 not a checkpoint" * 999)
    run_id = scheduler.adopt(tmp_path / "odd; name.pt", " My\nmodel\x00 \u202e " + "x" * 99, "from\na file")
    folder = scheduler.read(run_id)
    assert folder.config() == {"imported": True, "title": ("My model " + "x" * 99)[:60], "about": "from a file"}
    status = folder.status()
    assert (status.state, status.message, status.progress) == ("finished", "Loaded from a file.", 1.0) and abs(status.created - time.time()) < WITHIN
    assert folder.best.read_bytes() == (tmp_path / "odd; name.pt").read_bytes()
    assert sorted(path.name for path in folder.path.iterdir()) == ["best.safetensors", "config.json", "status.json"]
    assert not folder.resumable()
    with pytest.raises(RunError, match="reached its end"):
        scheduler.resume(run_id)
    scheduler.delete(run_id)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders, and links only for some")
def test_what_is_no_file_is_not_taken_in(make, tmp_path):
    scheduler = make()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", "link", "pipe", ".", "\0"):
        with pytest.raises(RunError, match=r"^There is no such file to load\.$"):
            scheduler.adopt(tmp_path / name, "x")
    (tmp_path / "unreadable").write_text("s")
    (tmp_path / "unreadable").chmod(0)
    if not os.access(tmp_path / "unreadable", os.R_OK):
        with pytest.raises(RunError, match="could not be saved"):
            scheduler.adopt(tmp_path / "unreadable", "x")
    assert not (tmp_path / "runs").exists() or held(tmp_path / "runs") == []


# ---- what time brings ----------------------------------------------------------------------------------------------

IGNORE_ALL = "import signal\nfor name in ('SIGTERM', 'SIGINT', 'SIGHUP'):\n    signal.signal(getattr(signal, name, signal.SIGTERM), lambda *_: None)\n"


def test_a_child_that_ignores_everything_is_gone_soon_after_a_stop(make):
    scheduler = make(IGNORE_ALL + START + "while True:\n    time.sleep(600)\n")      # with the settings that the page has
    run_id = scheduler.submit({})
    scheduler.start()
    until(lambda: state(scheduler, run_id) == "running")
    pid = scheduler.read(run_id).status().pid
    scheduler.stop(run_id)
    until(lambda: state(scheduler, run_id) == "stopped")
    assert not alive(pid) and scheduler.grace + 0.3 + 0.1 < 2               # terminated, killed, seen: what the page promises
    assert scheduler.read(run_id).status().message == "Stopped."


def test_runs_that_are_over_are_not_read_again(make, tmp_path, monkeypatch):
    ended = [planted(tmp_path / "runs", state="finished") for _ in range(30)]
    going = planted(tmp_path / "runs", state="running")
    scheduler, read = make(), []
    scheduler.tick()
    status = RunFolder.status
    monkeypatch.setattr(RunFolder, "status", lambda folder: read.append(folder.id) or status(folder))
    for _ in range(3):
        scheduler.tick()
    assert not {run.id for run in ended} & set(read)
    going.write_status(state="finished")
    scheduler.tick()
    assert going.id in read and scheduler.submit({})
    del read[:]
    monkeypatch.setattr(shelf, "LOOK_AGAIN", -1.0)
    ended[0].write_status(state="running")              # by hand, from a shell
    scheduler.tick()
    assert set(read) >= {ended[0].id} and not {run.id for run in ended[1:]} & set(read)


def test_what_a_server_left_half_made_is_removed_when_it_is_old(make, tmp_path):
    home = tmp_path / "runs"
    old, young, other = home / f".{new_id()}.new", home / f".{new_id()}.gone", home / ".mine"
    for path in (old, young, other):
        (path / "film").mkdir(parents=True)
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    scheduler = make()
    scheduler.start()
    assert not old.exists() and young.exists() and other.exists()


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


def test_what_else_has_to_be_done_now_and_then_is_done_in_the_background(make, monkeypatch):
    called = []
    monkeypatch.setattr(dispatch, "UPKEEP_EVERY", 0.0)
    scheduler = make(OBEY, upkeep=lambda: called.append(1))
    scheduler.start()
    until(lambda: len(called) > 1)

"""The training command: a whole run and its folder, what it refuses, stopping, resuming, fine-tuning, and what goes wrong on the way."""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes, seeded

from vitdemo import budget, checkpoint, data, ending, evaluate, recorder, train, train_command, trainer
from vitdemo.chance import share_error
from vitdemo.runfolder import PERSON, RunFolder

ROOT = Path(__file__).resolve().parent.parent


def arguments(colour_zip, out, *more: str) -> list[str]:
    return ["--data", str(colour_zip), "--epochs", "2", "--threads", "1", "--set", "dim=24", "--set", "depth=2", "--set", "evaluations=2",
            "--set", "batch=32", "--out", str(out), *more]


def test_the_command_leaves_a_run_folder_and_prints_the_best_checkpoint_last(colour_zip, tmp_path, capsys):
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 0
    best = Path(capsys.readouterr().out.strip().splitlines()[-1])
    folder = RunFolder(tmp_path / "run")
    assert best == folder.best and folder.status().state == "finished" and folder.status().progress == 1
    rows, _ = folder.records()
    assert [r["accuracy"] for r in rows if r.get("accuracy") is not None] and rows[-1]["test"]["n"] == 30
    loaded = checkpoint.load(best)
    assert loaded.classes == tuple(sorted(COLOURS)) and loaded.provenance["test_accuracy"] == folder.status().test_accuracy
    assert loaded.provenance["seed"] == 0 and loaded.provenance["threads"] == 1 and loaded.provenance["training_pictures"] == 144
    assert sorted(p.name for p in folder.path.iterdir()) == ["best.safetensors", "config.json", "film", "last.pt", "log.jsonl",
                                                             "mistakes-test.safetensors", "mistakes-validation.safetensors", "status.json"]

    assert evaluate.main([str(best), "--data", str(colour_zip), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accuracy"] == pytest.approx(loaded.provenance["test_accuracy"]) and report["n"] == 30 and set(report["per_class"]) == set(COLOURS)
    assert report["ece"] == pytest.approx(rows[-1]["test"]["ece"], abs=1e-4)
    assert evaluate.main([str(best), "--data", str(colour_zip)]) == 0 and "expected calibration error" in capsys.readouterr().out


def test_the_command_refuses_in_one_sentence_and_loses_nothing(colour_zip, tmp_path, capsys):
    out = tmp_path / "run"
    assert train_command.main(arguments(colour_zip, out)) == 0
    before = (out / "best.safetensors").read_bytes()
    for more in ([], ["--resume", "--seed", "5"], ["--resume", "--model", "vit-mnist"]):
        assert train_command.main(arguments(colour_zip, out, *more) if not more else ["--out", str(out), *more]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    for wrong in (["--data", "nowhere"], ["--set", "dim"], ["--preset", "slow"], ["--epochs", "0"], ["--out", str(tmp_path / "new"), "--resume"]):
        assert train_command.main(["--out", str(tmp_path / "other"), "--epochs", "1", *wrong]) == 1
    assert not (tmp_path / "other").exists()                                # so the corrected command can use that name
    assert (out / "best.safetensors").read_bytes() == before and RunFolder(out).status().state == "finished"


@pytest.mark.parametrize("broken", [["log"], ["log", "write_status"]])
def test_a_full_disk_ends_a_run_in_one_sentence_even_where_no_status_can_be_written(colour_zip, tmp_path, capsys, monkeypatch, broken):
    from vitdemo.runs import RunError

    def full(*_, **__):
        raise RunError("log.jsonl could not be written (No space left on device): free some disk space or choose another folder.")

    for name in broken:
        monkeypatch.setattr(RunFolder, name, full)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 1
    assert capsys.readouterr().err.strip().splitlines() == ["log.jsonl could not be written (No space left on device): free some disk space or choose another folder."]


def test_a_run_stopped_while_pictures_are_read_ends_at_once_as_stopped(colour_zip, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run").create(train_command.plan(data=str(colour_zip), minutes=1).to_json())
    folder.request_stop()
    monkeypatch.setattr(data, "_read_cache", lambda key: None)
    monkeypatch.setattr(train_command.runs, "watch_parent", lambda on_end: None)
    assert train_command.main(["--out", str(folder.path), "--from-run"]) == 0
    assert folder.status().state == "stopped" and not folder.best.exists()


def test_a_run_that_is_going_on_is_not_resumed_and_files_that_are_no_pictures_are_named(colour_zip, tmp_path, capsys):
    with zipfile.ZipFile(shutil.copy(colour_zip, tmp_path / "mine.zip"), "a") as archive:
        archive.writestr("train/red/broken.png", b"nothing")
    assert train_command.main(arguments(tmp_path / "mine.zip", tmp_path / "run")) == 0
    assert "train/red/broken.png" in capsys.readouterr().out
    RunFolder(tmp_path / "run").write_status(state="running")
    assert train_command.main(["--out", str(tmp_path / "run"), "--resume"]) == 1
    assert "still going on" in capsys.readouterr().err


def test_control_c_leaves_a_stopped_run_and_no_trace(colour_zip, tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "log", interrupted)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 130
    assert RunFolder(tmp_path / "run").status().state == "stopped" and "Traceback" not in capsys.readouterr().err
    monkeypatch.setattr(train_command, "plan", interrupted)
    assert train_command.main(arguments(colour_zip, tmp_path / "other")) == 130


def heeding() -> None:
    """As in a terminal; tests may run where signals are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def learning(folder, *more, **streams):
    """The command, at work on a run in `folder` that would last for long, a step further than it was."""
    process = subprocess.Popen([sys.executable, "-m", "vitdemo.train", "--out", str(folder.path), *more], cwd=ROOT, text=True,
                               **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
                               preexec_fn=heeding)
    try:
        before, patience = folder.status().step, time.monotonic() + 60
        while folder.status().step <= before + 5 and process.poll() is None:
            assert time.monotonic() < patience
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


def begun(colour_zip) -> list[str]:
    return ["--preset", "class", "--data", str(colour_zip), "--steps", "100000", "--threads", "1", "--set", "dim=24", "--set", "depth=2", "--set", "batch=32",
            "--set", "evaluations=1"]


signals = pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")


def saved(folder) -> int:
    """The step at which a run was stopped, which is the one that it goes on from."""
    status = folder.status()
    assert status.state == "stopped" and torch.load(folder.last, weights_only=True)["step"] == status.step
    return status.step


@signals
@pytest.mark.parametrize("sent", [[signal.SIGINT] * 2, [signal.SIGTERM] * 2, [signal.SIGHUP] * 2] if os.name != "nt" else [],
                         ids=lambda sent: " ".join(map(str, map(int, sent))))
def test_whoever_ends_the_command_has_the_run_saved_after_its_step_and_it_goes_on_from_there(colour_zip, tmp_path, sent):
    folder, before = RunFolder(tmp_path / "run"), []
    for more in (begun(colour_zip), ["--resume"]):
        with learning(folder, *more) as process:
            for number in sent:                                             # as `timeout` and a closing terminal do
                process.send_signal(number)
                time.sleep(0.002)
            out, said = process.communicate(timeout=30)
        assert process.returncode == 128 + sent[0] and "--resume goes on" in said and "Traceback" not in said and str(folder.best) not in out.split("\n")
        assert folder.status().message.startswith("Stopped" if sent[0] == signal.SIGINT else "Interrupted")
        before.append(saved(folder))
    assert before[1] > before[0] > 0 and [row["resumed"] for row in folder.records()[0] if "resumed" in row] == before[:1]


@signals
@pytest.mark.parametrize("more", [[], ["--network", "cnn"]], ids=["vit", "cnn"])
def test_a_run_is_saved_though_nobody_hears_of_it(colour_zip, tmp_path, more):
    folder = RunFolder(tmp_path / "run")
    with learning(folder, *begun(colour_zip), *more) as process:
        for stream in (process.stdout, process.stderr):                     # `tee` ends by the same Ctrl-C
            stream.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    assert saved(folder) > 0
    with learning(folder, "--resume") as process:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=30)[1]
    assert "--resume goes on" in said and ("best weights" in said) == (not more)


@signals
def test_a_second_control_c_ends_the_command_at_once_and_one_that_was_sent_twice_does_not():
    before, heard, now = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}, [], [0.0]
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ending.once(heard.append, clock=lambda: now[0]):
            for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
                signal.raise_signal(number)
            now[0] = 1.0
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert heard == [signal.SIGINT] and signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@signals
def test_a_run_of_the_page_that_is_ended_from_outside_is_saved_too(colour_zip, tmp_path):
    folder = RunFolder(tmp_path / "run").create(train_command.plan(preset="class", data=str(colour_zip), steps=100_000, changes={
        "dim": 24, "depth": 2, "batch": 32, "threads": 1, "evaluations": 1}).to_json())
    with learning(folder, "--from-run", stdin=subprocess.PIPE) as process:
        process.send_signal(signal.SIGTERM)                                 # as systemd does to all that a service has started
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert saved(folder) > 0 and folder.status().message.startswith("Interrupted")


def test_a_long_run_is_saved_between_its_looks_but_not_all_the_time(colour_zip, tmp_path, monkeypatch):
    wanted = train_command.plan(preset="class", data=str(colour_zip), steps=6, changes={"dim": 24, "depth": 2, "batch": 32, "threads": 1, "evaluations": 1})
    take = recorder.Recorder.take

    def ended(self, step, now):
        take(self, step, now)
        if step.step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(recorder.Recorder, "take", ended)
    monkeypatch.setattr(recorder, "REPORT_EVERY", 0.0)
    for every, share, saved in ((0.0, 1e9, 3), (3600.0, 1e9, 0), (0.0, 1e-9, 0)):
        monkeypatch.setattr(recorder, "KEEP_EVERY", every)
        monkeypatch.setattr(recorder, "KEEP_SHARE", share)
        folder = RunFolder(tmp_path / f"{every}-{share}").create(wanted.to_json())
        with pytest.raises(KeyboardInterrupt):
            train_command.carry_out(folder, wanted)
        assert torch.load(folder.last, weights_only=True)["step"] == saved


def test_a_stopped_run_keeps_its_best_weights_and_goes_on_from_where_it_was(colour_zip, tmp_path, monkeypatch):
    wanted = train_command.plan(preset="class", data=str(colour_zip), epochs=3, changes={"dim": 24, "depth": 2, "batch": 32, "threads": 1})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    stop_after(folder, wanted, step=3)
    assert folder.status().step == 3 and folder.best.exists() and folder.status().test_accuracy is None
    monkeypatch.setenv("VITDEMO_CACHE", str(tmp_path / "another cache"))     # the pictures have to be read anew
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0
    assert folder.status().state == "finished" and checkpoint.load(folder.best).provenance["test_pictures"] == 30

    left_alone = RunFolder(tmp_path / "alone").create(wanted.to_json())
    train_command.carry_out(left_alone, wanted, quiet=True)
    one, two = (torch.load(f.last, weights_only=True)["model"] for f in (folder, left_alone))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_module_runs_from_the_shell(colour_zip, tmp_path):
    done = subprocess.run([sys.executable, "-m", "vitdemo.train", *arguments(colour_zip, tmp_path / "run")], cwd=ROOT, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip().splitlines()[-1]).is_file()




def rows_of(folder: RunFolder) -> list[dict]:
    return [row for row in folder.records()[0] if "step" in row]


def test_every_look_leaves_a_row_with_its_error_a_frame_and_the_mistakes(colour_zip, tmp_path):
    from vitdemo import mistakes

    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 0
    folder = RunFolder(tmp_path / "run")
    looks = [row for row in rows_of(folder) if row["accuracy"] is not None]
    frames, _ = folder.frames()
    assert [row["step"] for row in looks] == [frame["step"] for frame in frames] and looks[0]["step"] == 0 and len(looks) == 3
    for row, frame in zip(looks, frames, strict=True):
        p, n = row["accuracy"], row["look"]["n"]
        assert n == 36 and row["look"]["standard_error"] == pytest.approx(share_error(p, n)) and 0 <= row["look"]["ece"] <= 1
        assert frame["accuracy"] == pytest.approx(p, abs=1e-5) and frame["report"]["ece"] == pytest.approx(row["look"]["ece"], abs=1e-5)
    assert all("look" not in row for row in rows_of(folder) if row["accuracy"] is None)
    counts = [[mistakes.cell(folder.mistakes("validation"), i, j).count for j in range(3)] for i in range(3)]
    assert counts == frames[-1]["report"]["confusion"] and sum(map(sum, counts)) == 36
    assert folder.mistakes("test").exists()


def test_there_is_a_model_to_look_into_before_the_first_look_is_over(colour_zip, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(recorder.Recorder, "take", lambda self, *_: found.append(checkpoint.load(self.folder.best).provenance["validation_accuracy"]))
    monkeypatch.setattr(recorder.Recorder, "test", lambda self, between: None)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 0
    assert found and found[0] is None


def test_a_film_that_fails_does_not_end_a_run_but_a_full_disk_does_in_one_sentence(colour_zip, tmp_path, capsys, monkeypatch):
    from vitdemo import mistakes

    monkeypatch.setattr(recorder.Camera, "shoot", lambda *_: 1 / 0)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 0
    assert capsys.readouterr().out.count("no more film of this run") == 1 and RunFolder(tmp_path / "run").mistakes("test").exists()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mistakes, "save", full)
    assert train_command.main(arguments(colour_zip, tmp_path / "other")) == 1
    assert capsys.readouterr().err.strip() == "the list of mistakes could not be saved (No space left on device): free some disk space and resume"
    assert RunFolder(tmp_path / "other").status().state == "failed"


def test_chosen_pictures_are_filmed_whatever_their_format(colour_zip, tmp_path, capsys):
    from PIL import Image

    Image.new("RGB", (40, 30), "red").save(tmp_path / "a.webp")
    (tmp_path / "text.png").write_text("no picture")
    assert train_command.main(arguments(colour_zip, tmp_path / "run", "--film", str(tmp_path / "a.webp"))) == 0
    scene = RunFolder(tmp_path / "run").scene()
    assert len(scene["subjects"]) == 1 and scene["subjects"][0]["truth"] is None and (tmp_path / "run" / "film" / "subject-0.png").exists()
    for wrong in ([tmp_path / "text.png"], [tmp_path / "gone.png"], [tmp_path / "a.webp"] * 7):
        assert train_command.main(arguments(colour_zip, tmp_path / "other", "--film", *map(str, wrong))) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1 and not (tmp_path / "other").exists()


def tuned(colour_zip, out, *more: str) -> list[str]:
    return ["--start", "box", "--data", str(colour_zip), "--steps", "4", "--threads", "1", "--set", "evaluations=1", "--out", str(out), *more]


def test_fine_tuning_keeps_the_encoder_of_the_box_and_its_preprocessing_under_a_fresh_head(colour_zip, tmp_path):
    assert train_command.main(tuned(colour_zip, tmp_path / "run", "--freeze")) == 0
    box, ours = checkpoint.load(), checkpoint.load(tmp_path / "run" / "best.safetensors")
    assert ours.config == box.config.with_(classes=3) and ours.preprocessing == box.preprocessing and ours.provenance["started_from"] == "box"
    theirs, mine = box.model.state_dict(), ours.model.state_dict()
    assert all(torch.equal(theirs[name], mine[name]) for name in mine if not name.startswith("head")) and mine["head.weight"].shape == (3, box.config.dim)
    config = RunFolder(tmp_path / "run").config()
    assert config["vit"]["classes"] == 3 and config["start"] == "box" and config["train"]["freeze"] is True and config["preset"] == "tune"
    last = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    assert last["model"]["head.weight"].any() and not torch.equal(last["model"]["head.bias"], torch.zeros(3))


def test_a_fine_tuned_run_goes_on_also_when_the_file_it_started_from_is_gone(colour_zip, tmp_path):
    shutil.copy(checkpoint.box_path(), tmp_path / "mine.safetensors")
    start = ["--start", str(tmp_path / "mine.safetensors")]
    assert train_command.main([*tuned(colour_zip, tmp_path / "whole"), *start]) == 0
    wanted = train_command.plan(start=str(tmp_path / "mine.safetensors"), data=str(colour_zip), steps=4, changes={"threads": 1, "evaluations": 1})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    stop_after(folder, wanted, step=2)
    (tmp_path / "mine.safetensors").unlink()
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0
    one, two = (torch.load(path / "last.pt", weights_only=True)["model"] for path in (folder.path, tmp_path / "whole"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    kept = checkpoint.load(checkpoint.box_path())
    for path in (folder.path, tmp_path / "whole"):                           # both tell the training before their own, as the box's file does
        assert checkpoint.load(path / "best.safetensors").before == kept.lineage and kept.lineage[-1]["test_accuracy"] > 0.5


def test_of_trainings_before_a_models_own_a_file_may_tell_little_and_nothing_odd(tiny):
    def with_(**said):
        return replace(tiny, provenance={"data": "x", **said})

    assert with_().lineage == ({"data": "x"},) and with_(before=[{"data": "y"}]).lineage == ({"data": "y"}, {"data": "x"})
    for odd in ("y", [1], {"data": "y"}, [{"data": "y" * 30_000}]):
        assert with_(before=odd).before == ()
    assert with_(notes="y" * 30_000, before=[{"data": "y"}]).lineage == ({"data": "y"},)


def stop_after(folder: RunFolder, wanted, *, step: int) -> None:
    """Carry out `wanted` until somebody asks for an end after `step`."""
    with pytest.MonkeyPatch.context() as patch:
        take = recorder.Recorder.take

        def then_stop(self, taken, now):
            take(self, taken, now)
            if taken.step == step:
                folder.request_stop(PERSON)

        patch.setattr(recorder.Recorder, "take", then_stop)
        trainer.carry_out(folder, wanted, quiet=True)
    assert folder.status().state == "stopped"


def test_a_run_of_minutes_gets_the_time_that_was_left(colour_zip, tmp_path, monkeypatch):
    wanted = train_command.plan(data=str(colour_zip), minutes=1, changes={"dim": 24, "depth": 1, "batch": 32, "threads": 1, "evaluations": 2})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    ticks = iter(range(0, 10**6, 5))
    monkeypatch.setattr(trainer, "fit", lambda *args, **kw: train.fit(*args, clock=lambda: float(next(ticks)), **kw))      # every step takes 5 s
    stop_after(folder, wanted, step=3)
    assert folder.status().seconds == 15
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0
    rows = rows_of(folder)
    assert rows[-1]["seconds"] == 60 and rows[-1]["step"] == 12 and {"resumed": 3, "seconds": 15.0} in folder.records()[0]
    assert folder.status().state == "finished" and rows[-1]["progress"] == 1


@pytest.mark.parametrize(("middle", "step"), [("look", 0), ("test", 2)])
def test_a_stop_takes_effect_in_the_middle_of_a_look_and_of_the_test(colour_zip, tmp_path, middle, step):
    wanted = train_command.plan(data=str(colour_zip), steps=2, changes={"dim": 24, "depth": 1, "batch": 32, "threads": 1, "evaluations": 1})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    data.load(colour_zip)                                                   # so that nobody asks while pictures are read
    predict = evaluate.predict

    def then_stop(*args, between, **options):
        if folder.status().step == step and (middle == "look" or folder.status().message.startswith("Trained")):
            folder.request_stop(PERSON)
        return predict(*args, between=between, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train if middle == "look" else recorder, "predict", then_stop)
        trainer.carry_out(folder, wanted, quiet=True)
    assert folder.status().state == "stopped" and folder.status().test_accuracy is None and not any("test" in row for row in folder.records()[0])
    assert not rows_of(folder) if middle == "look" else rows_of(folder)[-1]["progress"] == 1
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0
    assert folder.status().state == "finished" and folder.records()[0][-1]["test"]["n"] == 30 and rows_of(folder)[-1]["step"] == 2


def test_a_resume_that_fails_before_it_began_leaves_the_status_as_it_was(colour_zip, tmp_path, capsys):
    mine = shutil.copy(colour_zip, tmp_path / "mine.zip")
    wanted = train_command.plan(data=str(mine), steps=4, changes={"dim": 24, "depth": 1, "batch": 32, "threads": 1})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    stop_after(folder, wanted, step=2)
    before = (folder.path / "status.json").read_bytes()
    mine.rename(tmp_path / "elsewhere.zip")
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 1
    assert (folder.path / "status.json").read_bytes() == before
    (tmp_path / "elsewhere.zip").rename(mine)
    kept = folder.last.read_bytes()
    folder.last.write_bytes(kept[:1000])
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 1 and (folder.path / "status.json").read_bytes() == before
    assert "last.pt is damaged" in capsys.readouterr().err
    assert train_command.main(["--out", str(folder.path), "--resume", "--from-run"]) == 1
    assert folder.status().state == "failed" and folder.status().step == 2  # the page waits for a word; the numbers stay
    folder.last.write_bytes(kept)
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0


def test_a_resume_with_the_same_settings_goes_on_and_other_ones_are_named(colour_zip, tmp_path, capsys):
    wanted = train_command.plan(data=str(colour_zip), steps=4, changes={"dim": 24, "depth": 1, "batch": 32, "threads": 1, "lr": 0.001})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    stop_after(folder, wanted, step=2)
    assert train_command.main(["--out", str(folder.path), "--resume", "--steps", "9", "--set", "lr=0.01", "--set", "image=32"]) == 1
    said = capsys.readouterr().err.strip()
    assert said == "this run has steps 4, lr 0.001, so it cannot be resumed with steps 9, lr 0.01; leave that out or start a new run"
    same = ["--steps", "4", "--model", "VIT-MICRO", "--data", str(colour_zip), "--set", "image=32", "--set", "patch=[4, 4]", "--threads", "1"]
    assert train_command.main(["--out", str(folder.path), "--resume", *same]) == 0


@pytest.mark.parametrize("error", [
    MemoryError(), RuntimeError("[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), torch.OutOfMemoryError("CUDA out of memory. Tried")])
def test_too_little_memory_is_one_sentence_that_says_what_to_make_smaller(colour_zip, tmp_path, capsys, monkeypatch, error):
    def short(*_, **__):
        raise error

    monkeypatch.setattr(trainer, "fit", short)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("there is not enough memory for batches of 32 pictures") and said.endswith("try a smaller batch or model")
    assert RunFolder(tmp_path / "run").status().state == "failed"


def test_another_error_of_torch_is_not_taken_for_too_little_memory(colour_zip, tmp_path, monkeypatch):
    def wrong(*_, **__):
        raise RuntimeError("size mismatch")

    monkeypatch.setattr(trainer, "fit", wrong)
    with pytest.raises(RuntimeError, match="size mismatch"):
        train_command.main(arguments(colour_zip, tmp_path / "run"))


def test_a_loss_that_is_no_number_keeps_the_best_weights_and_says_so(colour_zip, tmp_path, capsys, monkeypatch):
    def diverges(*_, **__):
        raise train.TrainingError("the loss stopped being a number at step 3: try a smaller learning rate or a longer warm-up")
        yield

    monkeypatch.setattr(trainer, "fit", diverges)
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 1
    folder = RunFolder(tmp_path / "run")
    assert "the best weights so far are kept" in folder.status().message and checkpoint.load(folder.best)


@pytest.mark.parametrize(("more", "said"), [
    (["--set", "warmup=2"], "warmup is a share of the run"),
    (["--start", "box"], "keeps its shape"), (["--title", "x" * 61], "at most 60 characters"), (["--steps", "5"], "not both"),
    (["--network", "cnn", "--start", "box"], "keeps its shape")])
def test_what_cannot_be_is_refused_before_there_is_a_folder(colour_zip, tmp_path, capsys, more, said):
    assert train_command.main(arguments(colour_zip, tmp_path / "run", *more)) == 1
    text = capsys.readouterr().err.strip()
    assert said in text and "\n" not in text and not (tmp_path / "run").exists()


def test_a_start_that_is_no_file_is_refused_before_there_is_a_folder(colour_zip, tmp_path, capsys):
    assert train_command.main(tuned(colour_zip, tmp_path / "run", "--start", str(tmp_path / "nowhere.safetensors"))) == 1
    assert capsys.readouterr().err.strip() == "there is no checkpoint 'nowhere.safetensors' to start from" and not (tmp_path / "run").exists()


def test_a_start_that_is_no_model_or_does_not_say_its_heads_leaves_no_folder_and_heads_can_be_given(colour_zip, tmp_path, capsys):
    made = seeded(image=(12, 12))
    torch.save(made.model.state_dict(), tmp_path / "theirs.pt")
    (tmp_path / "text.pt").write_text("no weights")
    for name, said in (("text.pt", "is not a checkpoint"), ("theirs.pt", "how many heads")):
        assert train_command.main(tuned(colour_zip, tmp_path / "run", "--start", str(tmp_path / name))) == 1
        assert said in capsys.readouterr().err and not (tmp_path / "run").exists()
    assert train_command.main(tuned(colour_zip, tmp_path / "run", "--start", str(tmp_path / "theirs.pt"), "--heads", "5")) == 0
    assert checkpoint.load(tmp_path / "run" / "best.safetensors").config.heads == 5
    assert train_command.main(["--out", str(tmp_path / "run"), "--resume", "--heads", "2"]) == 1 and "heads 5" in capsys.readouterr().err


def folder_of(home: Path, counts: dict[str, int]) -> Path:
    from PIL import Image

    for name, count in counts.items():
        (home / name).mkdir(parents=True)
        for index in range(count):
            Image.new("RGB", (16, 16), (10 * index + 40, 200 if name == "a" else 20, 30)).save(home / name / f"{index}.png")
    return home


def test_a_class_with_one_picture_trains_and_every_class_with_one_is_one_sentence(tmp_path, capsys):
    some, none = folder_of(tmp_path / "some", {"a": 5, "b": 1}), folder_of(tmp_path / "none", {"a": 1, "b": 1})
    for source, code in ((some, 0), (none, 1)):
        assert train_command.main(arguments(source, tmp_path / f"run-{source.name}")) == code
    told = capsys.readouterr()
    assert "every class has a single picture" in told.err and len(told.err.strip().splitlines()) == 1
    assert "there are 5 pictures to learn from, so every step sees 5 of them instead of 32" in told.out


def test_a_cnn_has_a_run_like_a_vit_but_no_checkpoint_file(colour_zip, tmp_path, capsys):
    assert train_command.main(arguments(colour_zip, tmp_path / "run", "--network", "cnn", "--set", "optimizer=adamw", "--set", "lr=0.005")) == 0
    folder = RunFolder(tmp_path / "run")
    assert folder.status().state == "finished" and not folder.best.exists() and folder.records()[0][-1]["test"]["n"] == 30
    assert Path(capsys.readouterr().out.strip().splitlines()[-1]) == folder.last
    assert folder.frames()[0][0]["subjects"][0]["reads"] is None and folder.config()["network"] == "cnn"


def test_where_the_minutes_are_short_fewer_test_pictures_are_looked_at_and_the_file_says_how_many(colour_zip, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "LEAST_TESTED", 2)
    monkeypatch.setattr(budget, "TEST_SHARE", 1e-9)
    there = len(data.load_part(colour_zip, "test").split)
    for clock, expected in (("all", 2), ("training", there)):
        folder = RunFolder(tmp_path / clock)
        assert train_command.main(["--data", str(colour_zip), "--minutes", "0.01", "--set", f"clock={clock}", "--set", "dim=12", "--set", "heads=2", "--set", "depth=1",
                                   "--set", "batch=8", "--set", "evaluations=1", "--threads", "1", "--out", str(folder.path)]) == 0
        tested = next(record["test"] for record in folder.records()[0] if "test" in record)
        assert there > 2 and tested["n"] == checkpoint.load(folder.best).provenance["test_pictures"] == expected


def test_a_cnn_is_tested_with_its_best_weights_and_not_with_its_last_ones(colour_zip, tmp_path, monkeypatch):
    seen = []

    def worse_and_worse(model, images, *_, **__):                          # the look after the first step is the best one
        seen.append(model.head.bias.detach().clone())
        right = torch.eye(3).repeat_interleave(len(images) // 3, dim=0)     # pictures stand class by class
        return right if len(seen) == 2 else right.flip(0)

    monkeypatch.setattr(train, "predict", worse_and_worse)
    monkeypatch.setattr(recorder, "predict", worse_and_worse)
    wanted = train_command.plan(data=str(colour_zip), steps=2, network="cnn", changes={"dim": 24, "depth": 1, "threads": 1, "evaluations": 2})
    trainer.carry_out(RunFolder(tmp_path / "run").create(wanted.to_json()), wanted, quiet=True)
    untrained, best, last, tested = seen
    assert torch.equal(tested, best) and not torch.equal(best, last)


def test_of_looks_that_are_equally_often_right_the_one_with_the_lowest_loss_is_kept_also_after_a_resume(colour_zip, tmp_path, monkeypatch):
    sure = iter([1.0, 3.0, 2.0, 2.5, 1.5, 1.0])                            # at the start, at four looks, and in the test
    right = torch.eye(3)

    def answers(model, images, *_, **__):
        return next(sure) * right.repeat_interleave(len(images) // 3, dim=0)

    monkeypatch.setattr(train, "predict", answers)
    monkeypatch.setattr(recorder, "predict", answers)
    wanted = train_command.plan(data=str(colour_zip), steps=4, changes={"dim": 24, "depth": 1, "threads": 1, "evaluations": 4, "stages": [], "stage_ends": []})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    stop_after(folder, wanted, step=2)
    kept = checkpoint.load(folder.best).model.head.weight
    trainer.carry_out(folder, wanted, resume=True, quiet=True)
    assert torch.equal(checkpoint.load(folder.best).model.head.weight, kept) and folder.status().best_accuracy == 1
    last = torch.load(folder.last, weights_only=True)
    assert not torch.equal(last["model"]["head.weight"], kept) and last["best_loss"] == pytest.approx(math.log(1 + 2 * math.exp(-3)))


def test_time_left_counts_what_remains_of_the_minutes_the_looks_and_the_test(colour_zip, tmp_path):
    wanted = train_command.plan(minutes=2, changes={"evaluations": 4})
    writer = recorder.Recorder.__new__(recorder.Recorder)
    writer.plan, writer.parts = wanted, recorder.Parts("x", 1, [0] * 10, [0] * 30, (), None)
    writer.state = SimpleNamespace(seconds_a_look=3.0, looks_ahead=3)
    step = recorder.Step(step=9, images=900, epoch=0.1, progress=0.25, seconds=30.0, loss=1.0, rate=1.0, accuracy=None)
    assert writer.left(step, 30.0) == pytest.approx(90 + (3 + 3) * 3.0) and writer.left(step, None) is None
    writer.plan = train_command.plan(epochs=2, changes={"evaluations": 4})
    # 3,600 pictures: those from 25 to 45 % as large as now, 16 patches, then 36 and 64 of them
    assert writer.left(step, 30.0) == pytest.approx(3600 / 30 * (0.20 + 0.30 * 36 / 16 + 0.25 * 64 / 16) + (3 + 3) * 3.0)
    writer.state.looks_ahead = 1
    assert writer.left(step._replace(images=2880, progress=0.8), 30.0) == pytest.approx(720 / 30 + (1 + 3) * 3.0)
    writer.plan = train_command.plan(minutes=2, changes={"clock": "all", "evaluations": 4})
    # two looks were made at 30 of 96 seconds, three are ahead, and the test: two minutes in all
    writer.state.looks_ahead, whole = 3, 120 - 5 * 3 - 3 * 3.0
    assert writer.left(step._replace(progress=30 / whole), 30.0) == pytest.approx(120 - 30 - 2 * 3)
    writer.state.looks_ahead = 0
    assert writer.left(step._replace(seconds=whole, progress=1.0), 30.0) == 3 * 3.0      # the test is still to come


def test_a_start_that_learned_from_the_same_pictures_brings_its_held_out_part_along(colour_zip, tmp_path):
    def held(name: str) -> list:
        return checkpoint.load(tmp_path / name / "best.safetensors").provenance["held_out"]

    assert train_command.main(arguments(colour_zip, tmp_path / "first", "--seed", "3", "--set", "validation=0.25")) == 0
    start = ["--data", str(colour_zip), "--start", str(tmp_path / "first" / "best.safetensors"), "--steps", "2", "--threads", "1"]
    assert train_command.main([*start, "--out", str(tmp_path / "tuned")]) == 0
    assert held("first") == held("tuned") == [0.25, 3]
    other = Path(shutil.copy(colour_zip, tmp_path / "other.zip"))
    assert train_command.main([*start, "--data", str(other), "--out", str(tmp_path / "else")]) == 0
    assert held("else") == [0.05, 0]


def test_what_an_encoder_learned_before_its_last_training_is_not_held_out_either(tiny):
    def trained(*told: dict) -> checkpoint.Loaded:
        return replace(tiny, provenance={**told[-1], "before": list(told[:-1])})

    wanted = train_command.plan(steps=1, changes={"seed": 7})
    first, own, again = ({"data": name, "held_out": [share, 3]} for name, share in (("cifar10", 0.25), ("own", 0.2), ("cifar10", 0.1)))
    assert trainer._held(wanted, (trained(first, own), None), "cifar10") == (0.25, 3)
    assert trainer._held(wanted, (trained(first, own, again), trained(first)), "cifar10") == (0.1, 3)
    assert trainer._held(wanted, (trained(own), trained(first)), "cifar10") == (0.25, 3)            # the teacher's
    assert trainer._held(wanted, (trained(own), None), "cifar10") == trainer._held(wanted, (None, None), "own") == (0.05, 7)
    assert trainer._held(wanted, (trained({"data": "cifar10", "held_out": "much"}), None), "cifar10") == (0.05, 7)


def test_a_run_does_not_go_on_over_other_pictures(colour_zip, tmp_path, capsys):
    mine = Path(shutil.copy(colour_zip, tmp_path / "mine.zip"))
    assert train_command.main(arguments(mine, tmp_path / "run")) == 0
    RunFolder(tmp_path / "run").write_status(state="stopped")
    with zipfile.ZipFile(mine, "a") as archive:
        archive.writestr("train/red/new.png", picture_bytes(coloured("red", 99)))
    assert train_command.main(["--out", str(tmp_path / "run"), "--resume"]) == 1
    assert "the pictures have changed since this run was stopped" in capsys.readouterr().err
    assert RunFolder(tmp_path / "run").status().state == "stopped"


def test_a_device_that_is_not_there_is_one_sentence(colour_zip, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VITDEMO_DEVICE", "tpu")
    assert train_command.main(arguments(colour_zip, tmp_path / "run")) == 1
    assert capsys.readouterr().err == "VITDEMO_DEVICE must be auto, cuda, mps, cpu, not 'tpu'\n"

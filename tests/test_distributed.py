"""Several processes make the run that one process would have made: real ones, over gloo."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from vitdemo import distributed
from vitdemo.data import DataError
from vitdemo.distributed import World
from vitdemo.runfolder import RunFolder

ROOT = Path(__file__).resolve().parent.parent


def command(colour_zip, out, *more: str) -> list[str]:
    return ["-m", "vitdemo.train", "--data", str(colour_zip), "--epochs", "2", "--threads", "1", "--set", "dim=24", "--set", "depth=2",
            "--set", "evaluations=2", "--set", "batch=31", "--set", "precision=float32", "--out", str(out), *more]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def together(arguments: list[str], cwd: Path, *, meanwhile: Callable[[list[subprocess.Popen]], None] = lambda started: None,
             **more: str) -> list[subprocess.CompletedProcess]:
    """Two processes as torchrun starts them, without its slow agent, and what is done `meanwhile`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    started = [subprocess.Popen([sys.executable, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                                **more))
               for rank in range(2)]
    try:
        meanwhile(started)
        told = [process.communicate(timeout=120) for process in started]
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    return [subprocess.CompletedProcess(arguments, process.returncode, *text) for process, text in zip(started, told, strict=True)]


def steps(folder: Path) -> list[dict]:
    return [row for row in RunFolder(folder).records()[0] if "step" in row]


def looks(folder: Path) -> list[dict]:
    """The rows of looks, with the mean loss over all steps so far: how many steps share a row depends on the clock."""
    total, before, found = 0.0, 0, []
    for row in steps(folder):
        total += (row["loss"] or 0.0) * (row["step"] - before)
        before = row["step"]
        if row["accuracy"] is not None:
            found.append({**row, "mean loss": total / max(1, before)})
    return found


@pytest.fixture(scope="module")
def both(colour_zip, tmp_path_factory):
    """(run folder of two processes, of one) with the same global batch, an odd one so that the slices differ in size."""
    home, source = tmp_path_factory.mktemp("distributed"), colour_zip
    done = together(command(source, home / "two"), home)
    assert [process.returncode for process in done] == [0, 0], done[0].stderr + done[1].stderr
    assert done[1].stdout == "" and Path(done[0].stdout.strip().splitlines()[-1]) == home / "two" / "best.safetensors"
    alone = subprocess.run([sys.executable, *command(source, home / "one")], cwd=home, env=environment(), capture_output=True, text=True, timeout=120)
    assert alone.returncode == 0, alone.stderr
    return source, home / "two", home / "one"


def test_two_processes_have_the_loss_and_the_weights_of_one_at_the_same_global_batch(both):
    _, two, one = both
    for row, alone in zip(*(looks(folder) for folder in (two, one)), strict=True):
        assert row["step"] == alone["step"] and row["accuracy"] == alone["accuracy"] and abs(row["mean loss"] - alone["mean loss"]) < 1e-4
    left, right = (torch.load(folder / "last.pt", weights_only=True) for folder in (two, one))
    assert left["step"] == right["step"] == 10
    # Muon's iteration makes a last digit's difference a larger one
    assert max((left["model"][name] - right["model"][name]).abs().max().item() for name in left["model"]) < 5e-3


def test_a_run_of_two_processes_can_be_resumed(both):
    _, two, _ = both
    half = two.parent / "half"
    shutil.copytree(two, half)
    saved = torch.load(half / "last.pt", weights_only=True)
    torch.save({**saved, "step": saved["step"] - 3, "looks": saved["looks"] - 1, "complete": False}, half / "last.pt")
    RunFolder(half).write_status(state="stopped", message="Stopped.")
    done = together(["-m", "vitdemo.train", "--out", str(half), "--resume"], half.parent)
    assert [process.returncode for process in done] == [0, 0], done[0].stderr + done[1].stderr
    assert RunFolder(half).status().state == "finished" and RunFolder(half).steps()[-1]["step"] == 10
    assert len(RunFolder(half).records()[0]) > len(RunFolder(two).records()[0])            # it took steps of its own


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
def test_control_c_ends_all_processes_and_the_run_is_saved(colour_zip, tmp_path):
    """As README starts them: no folder is named, and only the first process has one."""
    def end(started):
        patience = time.monotonic() + 60
        while not any(RunFolder(path).status().step > 5 for path in tmp_path.glob("runs/*")):
            assert time.monotonic() < patience and all(process.poll() is None for process in started)
            time.sleep(0.05)
        for process in reversed(started):                                   # torchrun passes it on to each of them
            process.send_signal(signal.SIGINT)

    arguments = [word for word in command(colour_zip, "", "--set", "evaluations=1", "--epochs", "9999") if word not in ("--out", "")]
    done = together(["-c", "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from vitdemo.train_command import main; "
                     "from vitdemo.distributed import ended; ended(main(sys.argv[1:]))", *arguments[2:]], tmp_path, meanwhile=end,
                    VITDEMO_RUNS=str(tmp_path / "runs"))
    assert [process.returncode for process in done] == [130, 130], done[0].stderr + done[1].stderr
    assert "--resume goes on" in done[0].stderr and done[1].stdout == "" and "stop" not in done[1].stderr and "Traceback" not in done[1].stderr
    [path] = tmp_path.glob("runs/*/last.pt")
    folder = RunFolder(path.parent)
    assert folder.status().state == "stopped" and torch.load(path, weights_only=True)["step"] == folder.status().step > 5


def test_where_the_first_process_does_not_get_its_pictures_all_end_with_a_sentence_each(tmp_path):
    with zipfile.ZipFile(tmp_path / "broken.zip", "w") as archive:
        archive.writestr("train/red/nothing.png", b"nothing")
    done = together(command(tmp_path / "broken.zip", tmp_path / "run"), tmp_path)
    assert [process.returncode for process in done] == [1, 1]
    assert "process 1 of 2 ends: the first one did, and says why" in done[1].stderr and done[0].stderr.strip()
    assert not any("Traceback" in process.stderr for process in done) and RunFolder(tmp_path / "run").status().state == "failed"


def test_where_one_process_is_refused_all_end_with_a_sentence_each(both):
    _, two, _ = both
    done = together(["-m", "vitdemo.train", "--out", str(two), "--resume", "--set", "batch=32"], two.parent)
    assert [process.returncode for process in done] == [1, 1]
    for process in done:
        assert len(process.stderr.strip().splitlines()) == 1, process.stderr
    assert "cannot be resumed with batch 32" in done[0].stderr and RunFolder(two).status().state == "finished"


@pytest.mark.parametrize("module", ["vitdemo.train", "vitdemo.pace"])
def test_what_goes_wrong_while_the_interpreter_is_taken_down_makes_no_failure_of_several_processes_that_did_their_work(both, module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import atexit, os\natexit.register(os.abort)\n")     # as gloo's threads did now and then
    pace = ["-m", "vitdemo.pace", "--seconds", "0.1", "--set", "dim=24", "--set", "depth=1"]
    done = together(command(both[0], tmp_path / "run") if module == "vitdemo.train" else pace, tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert [process.returncode for process in done] == [0, 0], done[0].stderr + done[1].stderr
    assert done[0].stdout.strip()                                           # what was said last is not lost
    alone = subprocess.run([sys.executable, "-c", "pass"], env=environment(PYTHONPATH=str(tmp_path)), check=False)
    assert alone.returncode != 0                                            # the trap works


def test_no_process_goes_on_before_the_others_have_seen_the_run_s_folder(monkeypatch):
    from vitdemo import train_command

    class Slow(World):
        def all_ready(self, ready):
            order.append("met")
            return True

    order = []
    monkeypatch.setattr(train_command, "_prepare", lambda args, writes: order.append("looked") or (None, None))
    train_command._together(None, Slow(1, 2))
    assert order == ["looked", "met"]
    monkeypatch.setattr(Slow, "all_ready", lambda self, ready: False)
    with pytest.raises(train_command.runs.RunError, match="process 1 of 2 ends"):
        train_command._together(None, Slow(1, 2))


def test_slices_cover_the_batch_once_and_a_batch_smaller_than_the_world_is_refused():
    from test_train import LOOK, SHORT, fresh, pictures

    from vitdemo import train

    batch = torch.arange(7)
    parts = [World(rank, 3).slice(batch) for rank in range(3)]
    assert torch.equal(torch.cat(parts), batch) and [len(part) for part in parts] == [3, 2, 2]
    with pytest.raises(DataError, match="3 processes cannot share a batch of 2"):
        next(train.fit(fresh(), pictures(), pictures(9), SHORT.with_(batch=2), preprocessing=LOOK, world=World(0, 3)))


def test_more_processes_than_there_are_gpus_are_refused_with_a_sentence(monkeypatch, capsys):
    from vitdemo import train_command

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1", "VITDEMO_DEVICE": "auto"}.items():
        monkeypatch.setenv(name, value)
    assert train_command.main([]) == 1
    assert capsys.readouterr().err == ("this machine has 1 GPU, and 2 processes here want one each: start fewer, or let them work on the processor with "
                                       "VITDEMO_DEVICE=cpu\n")


@pytest.mark.parametrize(("asked", "kind"), [("auto", "cuda"), ("cuda", "cuda"), ("cpu", "cpu")])
def test_a_run_trains_on_the_gpu_unless_the_owner_says_otherwise(monkeypatch, asked, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("VITDEMO_DEVICE", asked)
    with distributed.joined() as world:
        assert world.device.type == kind and world.size == 1

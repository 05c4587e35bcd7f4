"""Training: the pieces, exact resumption, what ends a run, the command line, and a minute on real data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import COLOURS

from vitdemo import augment, checkpoint, data, evaluate, train, train_command
from vitdemo.config import PRESETS, SIZES, ConfigError, Preprocessing, TrainConfig, ViTConfig
from vitdemo.data import Split
from vitdemo.model import ViT
from vitdemo.runs import RunFolder

ROOT = Path(__file__).resolve().parent.parent
SMALL = ViTConfig(image=(12, 12), patch=(4, 4), dim=10, depth=2, heads=2, classes=3)
LOOK = Preprocessing(size=(12, 12))


def pictures(n: int = 60, seed: int = 0) -> Split:
    """Three classes that differ in colour."""
    labels = torch.arange(n) % 3
    noise = torch.randint(0, 120, (n, 3, 12, 12), generator=torch.Generator().manual_seed(seed))
    noise[torch.arange(n), labels] += 100
    return Split(noise.byte(), labels)


def fresh(config: ViTConfig = SMALL) -> ViT:
    return ViT(config, torch.Generator().manual_seed(1))


def run(config: TrainConfig, model: ViT, **options) -> list[train.Step]:
    return list(train.fit(model, pictures(), pictures(9, seed=7), config, preprocessing=LOOK, **options))


SHORT = TrainConfig(epochs=4, batch=16, evaluations=2, shift=1)


@pytest.mark.parametrize("optimizer", ["muon", "adamw", "adam"])
def test_every_optimizer_learns_three_colours(optimizer):
    steps = run(SHORT.with_(optimizer=optimizer, epochs=12, lr=5e-3, label_smoothing=0.0), fresh())
    assert steps[0].step == 0 and steps[0].accuracy is not None and steps[-1].progress == 1
    assert steps[-1].accuracy > 0.8 and steps[-1].loss < 0.7


def test_muon_takes_the_matrices_of_the_blocks_and_nothing_is_left_out_or_taken_twice():
    model = fresh(SMALL.with_(registers=2, layer_scale=True, distilled=True))
    muon, rest = train.optimizers(model, SHORT)
    names = {id(p): name for name, p in model.named_parameters()}
    of_muon = [names[id(p)] for group in muon.param_groups for p in group["params"]]
    assert all(name.startswith("blocks.") and name.endswith("weight") for name in of_muon) and len(of_muon) == 8
    undecayed = [names[id(p)] for p in rest.param_groups[1]["params"]]
    assert {"cls_token", "pos_embed", "reg_token", "head.bias", "blocks.0.ls1.gamma"} <= set(undecayed)
    assert sorted(of_muon + undecayed + [names[id(p)] for p in rest.param_groups[0]["params"]]) == sorted(names.values())


def test_the_rate_rises_then_falls_to_zero():
    config = TrainConfig(minutes=1, warmup=0.1)
    assert [round(train.rate(p, config), 3) for p in (0, 0.05, 0.1, 0.55, 1)] == [0, 0.5, 1, 0.5, 0]
    assert train.rate(0.5, config.with_(decay="none", warmup=0.0)) == 1
    assert round(train.rate(1, config.with_(decay="cosine")), 6) == 0


def test_a_run_begins_small_and_ends_at_full_size():
    config = TrainConfig(minutes=1, stages=(0.5, 0.75, 1.0), stage_ends=(0.45, 0.75))
    vit = SIZES["vit-micro"].config
    assert [train.stage_size(p, config, vit) for p in (0, 0.44, 0.45, 0.74, 0.75, 1)] == [(16, 16), (16, 16), (24, 24), (24, 24), (32, 32), (32, 32)]
    assert train.stage_size(0, config, SMALL) == (8, 8) and train.stage_size(0, config, SMALL.with_(image=(12, 20))) == (8, 8)


def test_an_epoch_shows_every_picture_once_and_each_epoch_in_another_order():
    split = Split(torch.arange(10)[:, None].byte(), torch.arange(10))
    config = TrainConfig(epochs=1)
    epochs = [[train.batch_of(split, step, 5, config).labels.tolist() for step in (first, first + 1)] for first in (0, 2)]
    assert sorted(sum(epochs[0], [])) == sorted(sum(epochs[1], [])) == list(range(10)) and epochs[0] != epochs[1]
    assert train.batch_of(split, 0, 5, config.with_(seed=1)).labels.tolist() != epochs[0][0]


def test_a_shifted_crop_is_a_window_of_the_padded_picture_and_a_flip_a_mirror():
    images = torch.arange(1, 1 + 4 * 3 * 5 * 7).view(4, 3, 5, 7)
    moved = augment.shifted_crop(images, 2, torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
    for before, after in zip(padded, moved, strict=True):
        windows = [before[:, r:r + 5, c:c + 7] for r in range(5) for c in range(5)]
        assert any(torch.equal(after, window) for window in windows)
    assert not torch.equal(moved, images) and augment.shifted_crop(images, 0, torch.Generator()) is images
    flipped = augment.flip(images, torch.Generator().manual_seed(0))
    kinds = {("same" if torch.equal(a, b) else "mirror" if torch.equal(a, b.flip(2)) else "other") for a, b in zip(flipped, images, strict=True)}
    assert kinds == {"same", "mirror"}


@pytest.mark.parametrize("stop_at", [1, 7])
def test_a_run_of_epochs_stopped_and_resumed_gives_the_weights_of_one_left_alone_bit_by_bit(stop_at):
    whole, halves = fresh(), fresh()
    run(SHORT, whole)
    state = train.State(halves, SHORT)
    for step in train.fit(halves, pictures(), pictures(9, 7), SHORT, preprocessing=LOOK, state=state):
        if step.step == stop_at:
            break
    saved = {k: v for k, v in state.state_dict().items()}
    resumed = fresh()
    again = train.State(resumed, SHORT)
    again.load_state_dict(saved)
    rest = run(SHORT, resumed, state=again)
    assert rest[0].step == stop_at + 1
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True))


def test_a_run_of_minutes_ends_when_its_clock_says_so_and_evaluation_does_not_count():
    ticks = iter(range(1000))
    steps = run(TrainConfig(minutes=0.2, batch=16, evaluations=3), fresh(), clock=lambda: float(next(ticks)))
    assert steps[-1].seconds == 12 and len(steps) == 13
    assert [s.step for s in steps if s.accuracy is not None] == [0, 4, 8, 12]


def test_a_loss_that_is_no_number_ends_the_run_before_the_step_is_taken():
    model = fresh()
    steps = train.fit(model, pictures(), pictures(9), SHORT.with_(lr=10.0, clip=0.0), preprocessing=LOOK)
    next(steps), next(steps)
    with torch.no_grad():
        model.blocks[0].mlp.fc1.weight[0, 0] = float("nan")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises(train.TrainingError, match="stopped being a number at step 2.*smaller learning rate"):
        next(steps)
    assert all(torch.equal(v.nan_to_num(), before[k].nan_to_num()) for k, v in model.state_dict().items())


@pytest.mark.parametrize(("train_part", "said"), [
    (Split(torch.zeros(0, 3, 12, 12).byte(), torch.zeros(0).long()), "0 to learn from"),
    (Split(torch.zeros(4, 1, 12, 12).byte(), torch.zeros(4).long()), r"\(1, 12, 12\)"),
    (Split(torch.zeros(4, 3, 12, 12).byte(), torch.full((4,), 3)), "4 classes"),
])
def test_data_that_do_not_fit_the_model_are_refused(train_part, said):
    with pytest.raises(data.DataError, match=said):
        next(train.fit(fresh(), train_part, pictures(9), SHORT, preprocessing=LOOK))


def test_five_pictures_and_a_batch_of_eight_train():
    steps = list(train.fit(fresh(), pictures(5), pictures(3), SHORT.with_(batch=8), preprocessing=LOOK))
    assert steps[-1].step == 4


def test_presets_make_plans_that_go_into_json_and_back_and_changes_are_checked():
    for name in PRESETS:
        wanted = train_command.plan(preset=name)
        assert train_command.Plan.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
    wanted = train_command.plan(preset="class", model="VIT-MICRO", minutes=1.5, changes={"dim": 48, "lr": 1e-3})
    assert (wanted.train.minutes, wanted.vit.dim, wanted.train.lr) == (1.5, 48, 1e-3)
    for wrong in ({"preset": "x"}, {"model": "x"}, {"minutes": 1, "epochs": 1}, {"changes": {"colour": 1}}, {"minutes": -1.0}, {"minutes": float("nan")}):
        with pytest.raises(ConfigError):
            train_command.plan(**wrong)


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
    assert loaded.provenance["seed"] == 0 and loaded.provenance["threads"] == 1 and loaded.provenance["training_pictures"] == 171
    assert sorted(p.name for p in folder.path.iterdir()) == ["best.safetensors", "config.json", "last.pt", "log.jsonl", "status.json"]

    assert evaluate.main([str(best), "--data", str(colour_zip), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accuracy"] == pytest.approx(loaded.provenance["test_accuracy"]) and report["n"] == 30 and set(report["per_class"]) == set(COLOURS)


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
    from vitdemo import data as data_module

    folder = RunFolder(tmp_path / "run").create(train_command.plan(data=str(colour_zip), minutes=1).to_json())
    folder.request_stop()
    monkeypatch.setattr(data_module, "_read_cache", lambda key: None)
    monkeypatch.setattr(train_command.runs, "watch_parent", lambda on_end: None)
    assert train_command.main(["--out", str(folder.path), "--from-run"]) == 0
    assert folder.status().state == "stopped" and not folder.best.exists()


def test_a_run_that_is_going_on_is_not_resumed_and_files_that_are_no_pictures_are_named(colour_zip, tmp_path, capsys):
    import shutil
    import zipfile

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


def test_a_stopped_run_keeps_its_best_weights_and_goes_on_from_where_it_was(colour_zip, tmp_path, monkeypatch):
    wanted = train_command.plan(preset="class", data=str(colour_zip), epochs=3, changes={"dim": 24, "depth": 2, "batch": 32, "threads": 1})
    folder = RunFolder(tmp_path / "run").create(wanted.to_json())
    folder.request_stop()
    train_command.carry_out(folder, wanted, quiet=True)
    assert folder.status().state == "stopped" and folder.best.exists() and folder.status().test_accuracy is None
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


def test_three_hundred_steps_on_the_real_cifar10_beat_a_third_of_answers(real_data):
    """The same number of steps everywhere, so the result does not depend on the machine's speed."""
    dataset = data.load(real_data / "cifar10.zip")
    part, held = data.hold_out(dataset.train, 0.05, seed=0)
    config = PRESETS["class"].train.with_(minutes=0, epochs=1, stages=(0.5, 1.0), stage_ends=(0.8,), evaluations=1)
    mean, std = data.statistics(part)
    model = ViT(SIZES["vit-micro"].config, torch.Generator().manual_seed(0))
    shuffled = torch.randperm(len(part), generator=torch.Generator().manual_seed(0))[:38_400]      # all ten classes
    steps = list(train.fit(model, part[shuffled], held, config, preprocessing=Preprocessing(mean=mean, std=std)))
    assert len(held.labels.unique()) == 10 and steps[-1].step == 300 and steps[0].accuracy < 0.2
    assert steps[-1].accuracy > 0.35

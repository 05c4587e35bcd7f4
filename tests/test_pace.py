"""The pace of a plan: real optimizer steps on a tiny model, and a clock that is not waited for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vitdemo import pace
from vitdemo.pace import Pace, images_in, measure
from vitdemo.plan import plan
from vitdemo.train import Step

ROOT = Path(__file__).resolve().parent.parent
TINY = {"image": 12, "patch": 4, "dim": 10, "heads": 2, "depth": 1, "classes": 3, "batch": 5}


def tiny(**changes):
    return plan(preset="class", changes={**TINY, "stages": [], "stage_ends": [], **changes})


def test_real_steps_are_timed_and_nothing_is_left_changed():
    before = torch.get_num_threads()
    found = measure(tiny(), threads=1, seconds=0.1)
    assert found.images_per_second > 0 and [rows for rows, _ in found.stages] == [12] and found.threads == 1 and 0.1 < found.seconds < 20
    assert found.parameters == sum(p.numel() for p in pace.beginning.ViT(tiny().vit).parameters())
    assert torch.get_num_threads() == before and images_in(found._replace(images_per_second=10.0), 1.5) == 900


@pytest.mark.parametrize("changes", [{"freeze": True}, {"pool": "mean", "class_token": False}, {"optimizer": "adam"}, {"batch": 1}, {"channels": 1}, {"batch": 40}])
def test_any_recipe_can_be_timed(changes):
    assert measure(tiny(**changes), threads=1, seconds=0.02).images_per_second > 0


def test_a_small_cnn_and_a_model_under_a_fresh_head_can_be_timed():
    assert measure(tiny()._replace(network="cnn"), threads=1, seconds=0.02).images_per_second > 0
    found = measure(plan(preset="tune", changes={"batch": 2, "freeze": True}), threads=1, seconds=0.02)
    assert found.stages[0][0] == 32 and found.parameters > 600_000


def timed(monkeypatch, speeds):
    """`measure` with a trainer whose steps take as long as `speeds(rows of pixels)` pictures per second say, and 9 s more for the first one."""
    taken = []

    def fit(model, train, validation, config, **_):
        rows = pace.stage_size(0.0, config, model.config)[0]
        for step in range(10_000):
            taken.append((rows, len(train)))
            yield Step(step, 0, 0.0, 0.0, step and 9 + step * len(train) / speeds(rows), 0.0, 0.0, None)

    monkeypatch.setattr(pace, "fit", fit)
    return taken


def test_stages_count_by_their_share_of_time_or_of_pictures(monkeypatch):
    timed(monkeypatch, lambda rows: {4: 400.0, 8: 200.0, 12: 100.0}[rows])
    staged = {"stages": [1 / 3, 2 / 3, 1.0], "stage_ends": [0.5, 0.8]}
    found = measure(tiny(**staged), threads=1, seconds=1.0)
    assert found.stages == ((4, pytest.approx(400)), (8, pytest.approx(200)), (12, pytest.approx(100)))
    assert found.images_per_second == pytest.approx(0.5 * 400 + 0.3 * 200 + 0.2 * 100)
    by_pictures = plan(preset="class", epochs=1, changes={**TINY, **staged})
    assert measure(by_pictures, threads=1).images_per_second == pytest.approx(1 / (0.5 / 400 + 0.3 / 200 + 0.2 / 100))


def test_a_batch_that_takes_too_long_is_measured_with_fewer_pictures(monkeypatch):
    taken = timed(monkeypatch, lambda rows: 16.0)
    assert measure(tiny(batch=128), threads=1, seconds=3.0).images_per_second == pytest.approx(16)
    assert {size for _, size in taken} == {8, 32}                           # 128 pictures would take 8 s
    del taken[:]
    assert measure(tiny(batch=64), threads=1, seconds=3.0).images_per_second == pytest.approx(16)
    assert {size for _, size in taken} == {8, 32, 64}


def test_no_more_pictures_are_made_than_a_step_is_timed_with(monkeypatch):
    taken, drawn, draw = timed(monkeypatch, lambda rows: 16.0), [], torch.randint
    monkeypatch.setattr(torch, "randint", lambda *shape, **kind: drawn.append(shape[-1][0]) or draw(*shape, **kind))
    measure(tiny(batch=65536), threads=1, seconds=3.0)
    assert {size for _, size in taken} == {8, 32} and max(drawn) == 64      # of a look; 65,536 could fill the memory


def test_the_command_prints_one_line_of_json():
    sets = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]
    done = subprocess.run([sys.executable, "-m", "vitdemo.pace", "--preset", "class", *sets, "--threads", "1", "--minutes", "2", "--seconds", "0.1"],
                          cwd=ROOT, capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1 and set(found) == {*Pace._fields, "images"}
    assert found["images"] == round(120 * found["images_per_second"]) and [rows for rows, _ in found["stages"]] == [8, 8, 12] and found["threads"] == 1


@pytest.mark.parametrize("arguments", [["--set", "dim=7"], ["--set", "positions=spiral"], ["--set", "nonsense"], ["--preset", "none"], ["--start", "none.pt"]])
def test_the_command_refuses_in_one_sentence(capsys, arguments):
    assert pace.main(arguments) == 1
    out, told = capsys.readouterr()
    assert out == "" and told.count("\n") == 1 and len(told) > 20

"""The command `python -m vitdemo.explain`: what it writes, what it prints, and how it refuses."""

from pathlib import Path

import numpy as np
import pytest
from conftest import seeded
from PIL import Image

from vitdemo import checkpoint, explain_command
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.explain import explain, main
from vitdemo.model import ViT


@pytest.fixture(scope="module")
def saved(tiny, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    checkpoint.save(path, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance={})
    return path


def test_it_writes_figures_numbers_and_a_report_and_prints_the_answer(saved, tiny, photo, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    out.mkdir(parents=True)
    (out / "report.html").write_text("an earlier one")
    assert main([str(photo), "--out", str(out), "--checkpoint", str(saved)]) == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "all-heads.png", "layer-01.png", "layer-02.png", "layer-03.png", "maps.npz", "model-sees.png", "patches.png", "relevance.png", "report.html", "rollout.png"]
    expected = explain(photo, tiny)
    with np.load(out / "maps.npz") as maps:
        assert np.allclose(maps["attention"], expected.attention) and maps["classes"].tolist() == list(tiny.classes)
    for path in out.glob("*.png"):
        with Image.open(path) as image:
            image.load()
            assert image.width >= 200
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:3]] == [name for name, _ in expected.top()] and f"{expected.top()[0][1]:.1%}" in lines[0]
    assert "report.html" in lines[-1] and str(out) in lines[-1]


@pytest.mark.parametrize(("klass", "index"), [(None, None), ("red", 2), ("green", 1), ("0", 0), ("2", 2)])
def test_the_class_of_the_relevance_is_the_first_or_the_one_named_by_name_or_number(klass, index, saved, tiny, photo, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(explain_command, "pictures", lambda result, klass: asked.append(klass) or iter(()))
    main([str(photo), "--out", str(tmp_path), "--checkpoint", str(saved), *(["--class", klass] if klass else [])])
    assert asked == [explain(photo, tiny).probabilities.argmax() if index is None else index]


def test_a_class_whose_name_is_a_number_is_meant_by_its_name(tiny, photo, tmp_path, monkeypatch):
    path, asked = tmp_path / "digits.safetensors", []
    checkpoint.save(path, tiny.model, classes=["2", "1", "0"], preprocessing=tiny.preprocessing, provenance={})
    monkeypatch.setattr(explain_command, "pictures", lambda result, klass: asked.append(klass) or iter(()))
    main([str(photo), "--out", str(tmp_path), "--checkpoint", str(path), "--class", "2"])
    assert asked == [0]


@pytest.mark.parametrize("klass", ["cat", "3", "-1", ""])
def test_a_class_the_model_does_not_know_is_refused_before_anything_is_written(klass, saved, photo, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main([str(photo), "--out", str(tmp_path / "out"), "--checkpoint", str(saved), f"--class={klass}"])
    assert end.value.code == 1 and "knows 3 classes" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_model_without_a_head_gives_everything_but_a_relevance(photo, tmp_path, capsys):
    headless = seeded(classes=0)
    path = tmp_path / "headless.safetensors"
    checkpoint.save(path, headless.model, classes=[], preprocessing=Preprocessing(size=(12, 20)), provenance={})
    assert main([str(photo), "--out", str(tmp_path / "out"), "--checkpoint", str(path)]) == 0
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert "rollout.png" in names and "report.html" in names and "relevance.png" not in names
    with pytest.raises(SystemExit):
        main([str(photo), "--out", str(tmp_path / "out"), "--checkpoint", str(path), "--class", "red"])
    assert "no classes" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["photo", "checkpoint", "folder"])
def test_it_refuses_in_one_sentence(what, photo, saved, tmp_path, capsys):
    (tmp_path / "bad").write_bytes(b"nothing of use")
    arguments = {"photo": [str(tmp_path / "bad"), "--out", str(tmp_path / "out")],
                 "checkpoint": [str(photo), "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "bad")],
                 "folder": [str(photo), "--out", str(tmp_path / "bad"), "--checkpoint", str(saved)]}[what]
    with pytest.raises(SystemExit) as end:
        main(arguments)
    said = capsys.readouterr().err
    assert end.value.code == 1 and len(said.strip().splitlines()) == 1 and str(tmp_path) not in said


@pytest.mark.parametrize("changes", [{}, {"pool": "mean", "class_token": False}, {"registers": 2}, {"depth": 1, "heads": 1}, {"image": (4, 4)}])
def test_every_kind_of_model_can_be_drawn(changes, photo):
    result = explain(photo, seeded(**changes))
    names = []
    for name, figure in explain_command.pictures(result, 1):
        names.append(name)
        if hasattr(figure, "draw_without_rendering"):
            figure.draw_without_rendering()
    assert len(names) == len(set(names)) == 5 + len(result.attention)


def test_notes_about_the_picture_are_said(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(explain_command, "pictures", lambda result, klass: iter(()))
    Image.new("RGBA", (40, 30), (200, 10, 10, 90)).save(tmp_path / "pale.png")
    main([str(tmp_path / "pale.png"), "--out", str(tmp_path / "out"), "--checkpoint", str(saved)])
    assert "Transparent parts were laid on white." in capsys.readouterr().out


def test_another_size_the_whole_picture_and_a_model_without_classes_are_said(tmp_path, capsys, photo):
    config = ViTConfig(image=16, patch=4, dim=8, depth=2, heads=2, classes=0)
    checkpoint.save(tmp_path / "bare.safetensors", ViT(config), classes=(), preprocessing=Preprocessing(size=16), provenance={})
    given = [str(photo), "--checkpoint", str(tmp_path / "bare.safetensors"), "--out", str(tmp_path / "out")]
    assert explain_command.main([*given, "--side", "32", "--fit", "whole"]) == 0
    assert "no classes" in capsys.readouterr().out
    rows, cols = np.load(tmp_path / "out" / "maps.npz")["attention"].shape[2:]
    assert rows < cols and 32 < rows * cols <= 64
    with pytest.raises(SystemExit):
        explain_command.main([*given, "--side", "31"])
    assert "not at squares of 31" in capsys.readouterr().err

"""A model learns what a trained one answers, to the very inputs that it sees."""

import json

import pytest
import torch
from conftest import seeded

from vitdemo import checkpoint, data, train, train_command
from vitdemo.config import Preprocessing, TrainConfig, ViTConfig
from vitdemo.data import Split
from vitdemo.images import normalise
from vitdemo.model import ViT
from vitdemo.runfolder import RunFolder
from vitdemo.teacher import Teacher, TeacherError

LOOK = Preprocessing(size=(12, 20), mean=(0.2, 0.4, 0.6), std=(0.3, 0.2, 0.5))


def photos(count: int = 24) -> Split:
    generator = torch.Generator().manual_seed(3)
    return Split(torch.randint(0, 256, (count, 3, 12, 20), generator=generator, dtype=torch.uint8), torch.arange(count) % 3)


def test_a_teacher_answers_as_it_would_alone_however_the_student_normalises_its_pictures(tiny):
    pictures = photos().images
    shares = Teacher(tiny, tiny.classes, LOOK, precision="float32")(normalise(pictures, LOOK))
    with torch.inference_mode():
        alone = tiny.model(normalise(pictures, tiny.preprocessing)).softmax(1)
    assert tiny.preprocessing.mean != LOOK.mean and torch.allclose(shares, alone, atol=1e-5) and not shares.requires_grad


def test_a_student_learns_the_answers_of_its_teacher_and_not_the_labels():
    teacher = seeded(3, classes=3)
    with torch.no_grad():
        teacher.model.head.weight.mul_(40)                                  # so that it says something
    pictures, student = photos(), ViT(teacher.config, torch.Generator().manual_seed(8))
    shares = Teacher(teacher, teacher.classes, LOOK, precision="float32")(normalise(pictures.images, LOOK))
    wrong = replace_labels(pictures, shares)
    config = TrainConfig(steps=120, batch=24, optimizer="adamw", lr=5e-3, flip=False, shift=0, label_smoothing=0.0, evaluations=1, precision="float32")
    steps = list(train.fit(student, wrong, wrong, config, preprocessing=LOOK, teacher=Teacher(teacher, teacher.classes, LOOK, precision="float32")))
    with torch.inference_mode():
        learned = student.eval()(normalise(pictures.images, LOOK)).softmax(1)
    assert (learned.argmax(1) == shares.argmax(1)).float().mean() > 0.9 and steps[-1].accuracy < 0.1
    assert (learned - shares).abs().mean() < 0.05


def replace_labels(pictures: Split, shares: torch.Tensor) -> Split:
    """The same pictures, each labelled with what its teacher thinks least of."""
    return Split(pictures.images, shares.argmin(1))


def test_a_model_of_other_classes_or_channels_cannot_teach(tiny):
    for classes in (("blue", "green"), tuple(reversed(tiny.classes))):
        with pytest.raises(TeacherError, match="not those of the pictures"):
            Teacher(tiny, classes, LOOK)
    grey = Preprocessing(size=(12, 20), channels=1, mean=(0.5,), std=(0.5,))
    with pytest.raises(TeacherError, match="takes pictures of 3 channels, not 1"):
        Teacher(tiny, tiny.classes, grey)


def test_a_model_that_looks_at_pictures_of_another_size_or_cannot_cut_those_of_the_run_into_patches_cannot_teach():
    teacher = seeded(4)
    rows, cols = teacher.config.patch
    fits, not_whole = (3 * rows, 2 * cols), (3 * rows, 2 * cols + 1)
    Teacher(teacher, teacher.classes, LOOK, sizes=[fits, teacher.preprocessing.size])
    with pytest.raises(TeacherError, match=f"patches of {rows} × {cols} pixels, which those of {not_whole[0]} × {not_whole[1]} do not hold"):
        Teacher(teacher, teacher.classes, LOOK, sizes=[fits, not_whole])
    other = Preprocessing(size=(48, 40), mean=LOOK.mean, std=LOOK.std)
    with pytest.raises(TeacherError, match="takes pictures of .* pixels, not 48 × 40"):
        Teacher(teacher, teacher.classes, other)


def test_a_teacher_is_kept_as_it_was():
    teacher = seeded(4)
    before = [p.clone() for p in teacher.model.parameters()]
    config = TrainConfig(steps=3, batch=12, evaluations=1)
    list(train.fit(ViT(teacher.config, torch.Generator().manual_seed(1)), photos(), photos(), config, preprocessing=LOOK, teacher=Teacher(teacher, teacher.classes, LOOK)))
    assert all(torch.equal(p, q) and p.grad is None for p, q in zip(teacher.model.parameters(), before, strict=True))


@pytest.fixture
def taught(colour_zip, tmp_path):
    """The file of a model that knows the data set's classes, and a command that trains a smaller one by it."""
    classes = data.load_part(colour_zip, "test").classes
    model = ViT(ViTConfig(image=32, patch=8, dim=16, depth=2, heads=2, classes=len(classes)), torch.Generator().manual_seed(5))
    checkpoint.save(tmp_path / "teacher.safetensors", model, classes=classes, preprocessing=Preprocessing(), provenance={"data": "cifar10", "held_out": [0.25, 9], "seed": 7})
    return tmp_path / "teacher.safetensors", ["--data", str(colour_zip), "--epochs", "2", "--threads", "1", "--set", "dim=12", "--set", "heads=2", "--set", "depth=1",
                                              "--set", "evaluations=2", "--set", "batch=16", "--teacher", str(tmp_path / "teacher.safetensors"), "--out", str(tmp_path / "run")]


def test_at_the_shell_a_run_learns_from_a_teacher_says_so_holds_out_what_that_held_out_and_goes_on(taught, tmp_path):
    file, command = taught
    assert train_command.main(command) == 0
    folder = RunFolder(tmp_path / "run")
    assert folder.config()["teacher"] == str(file)
    said = checkpoint.load(folder.best).provenance
    assert said["taught_by"] == "teacher" and said["held_out"] == [0.25, 9] and said["started_from"] == "random weights"
    assert said["teacher"] == {"data": "cifar10", "seed": 7}
    folder.write_status(state="stopped", message="Stopped.")
    saved = torch.load(folder.last, weights_only=True)
    torch.save({**saved, "step": saved["step"] - 1, "complete": False}, folder.last)
    assert train_command.main(["--out", str(folder.path), "--resume"]) == 0


@pytest.mark.parametrize(("given", "said"), [("gone.safetensors", "there is no checkpoint 'gone.safetensors' to learn from"), ("no-such-model", "no-such-model")])
def test_a_teacher_that_is_not_there_is_said_before_a_folder_is_made(taught, tmp_path, capsys, given, said):
    _, command = taught
    command[command.index("--teacher") + 1] = given if "." not in given else str(tmp_path / given)
    assert train_command.main(command) == 1 and said in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_teacher_of_other_classes_ends_the_run_with_one_sentence(taught, tmp_path, capsys, tiny):
    file, command = taught
    checkpoint.save(file, tiny.model, classes=("ant", "bee", "cow"), preprocessing=tiny.preprocessing, provenance={})
    assert train_command.main(command) == 1
    assert "not those of the pictures" in capsys.readouterr().err
    assert json.loads((tmp_path / "run" / "status.json").read_text())["state"] == "failed"

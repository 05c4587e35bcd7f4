"""What README says is true: its Python prints what stands there, its commands and numbers are those of the code."""

import contextlib
import io
import re
from pathlib import Path

import gradio
import pytest

from vitdemo import checkpoint, settings
from vitdemo.presets import PRESETS, SIZES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CARD = (ROOT / "checkpoints" / "README.md").read_text(encoding="utf-8")
SHIPPED = sorted((ROOT / "checkpoints").glob("*.safetensors"))


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.+?)\n```", README, re.S)[1]


def test_the_python_lines_print_what_stands_below_them(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = block("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().strip() == block("text").strip()


def test_the_space_front_matter_names_the_gradio_that_is_installed():
    version = re.search(r"^sdk_version: (\S+)$", README, re.M)[1]
    assert README.startswith("---\ntitle:") and "sdk: gradio\n" in README and "app_file: app.py\n" in README
    asked, installed = (tuple(map(int, v.split(".")[:2])) for v in (version, gradio.__version__))
    assert asked <= installed and asked[0] == installed[0] and asked >= (6, 31)
    assert "gradio>=6.31,<7" in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_both_commands_are_one_line_and_name_files_that_exist():
    for kind, files in (("run", ["requirements.txt", "app.py"]), ("test", ["tests/requirements.txt", "tests"])):
        command = re.search(rf"<!-- command: {kind} -->\n```sh\n(.+?)\n```", README, re.S)[1]
        assert "\n" not in command and all(name in command and (ROOT / name).exists() for name in files)


def test_pictures_and_links_inside_the_repository_exist():
    for folder, text in ((ROOT, README), (ROOT / "checkpoints", CARD)):
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert "://" in target or (folder / target).exists(), target


def test_every_environment_variable_is_in_the_table_and_none_is_invented():
    source = (ROOT / "vitdemo" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"(VITDEMO_\w+)"', source))
    assert read == set(re.findall(r"`(VITDEMO_\w+)`", README.split("## Host it")[1]))
    assert settings.read({}).max_minutes == 60


def test_measured_rows_in_readme_are_those_beside_the_presets():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.splitlines() if line.startswith("| `")]
    for name, preset in PRESETS.items():
        own = [row for row in rows if row[0] == f"`{name}`" and len(row) == 9]
        assert own, name
        for one in preset.measured:
            machine, speed = one.machine.name.removeprefix("an AMD ").removeprefix("an Intel "), f"{one.images_per_second:,} ("
            found = [row for row in own if row[3:7] == [machine, str(one.threads), str(one.n), f"{one.seconds:,}"] and row[7].startswith(speed) and row[8].startswith(f"{one.accuracy:.1%}")]
            assert len(found) == 1, (name, one)
            seen = int(re.search(r"\(([\d,]+) seen\)", found[0][7])[1].replace(",", ""))
            assert seen == pytest.approx(one.seconds * one.images_per_second, rel=0.002), (name, one)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_card_and_readme_state_the_accuracy_the_shipped_models_carry(path):
    parameters, size, least = (820_000, 2_000_000, 0.88) if path.stem.endswith("-tiny") else (3_700_000, 8_000_000, 0.915)
    loaded = checkpoint.load(path)
    facts = loaded.provenance
    card = CARD.split(f": `{path.stem}`")[1].split("\n# ")[0]
    stated = float(re.search(r"\*\*([\d.]+)%\*\*", card)[1])
    assert stated == round(100 * facts["test_accuracy"], 2) and f"**{stated:.2f}%**" in README
    for name, share in facts["test_per_class"].items():
        assert float(re.search(rf"\| {name} \| ([\d.]+)% \|", card)[1]) == round(100 * share, 1)
    assert facts["test_accuracy"] >= least and facts["test_pictures"] == 10_000
    assert sum(p.numel() for p in loaded.model.parameters()) <= parameters and path.stat().st_size <= size
    assert path.with_suffix(".png").is_file() and f"]({path.stem}.png)" in CARD


@pytest.mark.parametrize("size", SIZES)
def test_parameter_counts_said_of_a_size_are_right(size):
    import torch

    from vitdemo.model import ViT

    said = re.search(r"([\d,]{5,}) parameters", SIZES[size].about)
    with torch.device("meta"):
        count = sum(p.numel() for p in ViT(SIZES[size].config).parameters())
    assert said is None or int(said[1].replace(",", "")) == count


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_models_answer_as_their_card_says_on_a_thousand_real_test_pictures(path, real_data):
    from vitdemo import data
    from vitdemo.evaluate import evaluate

    loaded = checkpoint.load(path)
    part = data.load_part(real_data / "cifar10.zip", "test")
    thousand = evaluate(loaded.model, part.split[::10], loaded.preprocessing, loaded.classes)
    assert thousand.n == 1000 and abs(thousand.accuracy - loaded.provenance["test_accuracy"]) < 4 * thousand.standard_error


def test_the_shipped_models_are_as_often_right_on_test_pictures_that_come_as_large_uploads(real_data):
    """Enlarged ten times as a photo would come, and on the way of an upload reduced to 32 x 32: within one point, over 2,000 pictures."""
    import torch
    from PIL import Image

    from vitdemo import data
    from vitdemo.config import Preprocessing
    from vitdemo.evaluate import predict
    from vitdemo.film import pixels
    from vitdemo.images import normalise, open_picture, to_input

    split = data.load_part(real_data / "cifar10.zip", "test").split[::5]
    models, plain = [checkpoint.load(path) for path in SHIPPED], Preprocessing(mean=(0.0,) * 3, std=(1.0,) * 3)
    uploaded = []
    for image in split.images:
        photo = pixels(image).resize((320, 320), Image.Resampling.LANCZOS)
        photo.save(buffer := io.BytesIO(), "PNG", compress_level=0)
        uploaded.append(to_input(open_picture(buffer.getvalue()), plain, (4, 4)).tensor)
    for loaded in models:
        native = predict(loaded.model, split.images, loaded.preprocessing).argmax(1)
        with torch.inference_mode():
            answers = torch.cat([loaded.model(normalise(255 * batch, loaded.preprocessing)).argmax(1) for batch in torch.cat(uploaded).split(250)])
        right = [float((found == split.labels).double().mean()) for found in (native, answers)]
        assert abs(right[0] - right[1]) < 0.01 and (native == answers).double().mean() > 0.95, loaded.name

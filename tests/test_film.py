"""The film of a run: what is in a scene and a frame, and that its numbers are those of `explain`."""

import base64
import io
import json
import math

import numpy as np
import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes, tiny_config
from PIL import Image
from torch import nn

from vitdemo import embedding, film
from vitdemo.checkpoint import Loaded
from vitdemo.config import Preprocessing
from vitdemo.data import Split
from vitdemo.evaluate import Report, predict
from vitdemo.explain import explain
from vitdemo.filmstrip import unpacked
from vitdemo.images import see
from vitdemo.model import ViT
from vitdemo.payload import in_view
from vitdemo.runfolder import RunError, RunFolder
from vitdemo.train import Step

CLASSES = tuple(COLOURS)


class Convolution(nn.Module):
    """Another kind of model, with a part that behaves otherwise while it is trained."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.norm = nn.BatchNorm2d(config.channels)
        self.head = nn.Linear(config.channels, config.classes)

    def forward(self, images):
        return self.head(self.norm(images).mean((2, 3)))


def model_of(seed: int = 1, kind=ViT, **changes) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    config = tiny_config(**changes)
    model = kind(config, generator) if kind is ViT else kind(config)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.4 * torch.randn(p.shape, generator=generator))
    return model


def validation(count: int = 30, channels: int = 3, size: tuple[int, int] = (12, 20), K: int = 3) -> Split:
    generator = torch.Generator().manual_seed(7)
    labels = torch.arange(count) % K
    return Split(torch.randint(256, (count, channels, *size), generator=generator, dtype=torch.uint8), labels)


def preprocessing_of(model: nn.Module, **changes) -> Preprocessing:
    channels = model.config.channels
    return Preprocessing(**{"size": model.config.image, "channels": channels, "mean": (0.45,) * channels, "std": (0.2,) * channels, **changes})


def shot(path, model, *, chosen=(), steps=(0,), classes=CLASSES, split=None, **changes) -> RunFolder:
    """A run's folder with the film of `model` at `steps`."""
    folder = RunFolder(path)
    folder.film.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(chosen):
        (folder.film / f"subject-{i}.png").write_bytes(content)
    split = split or validation(channels=model.config.channels, size=model.config.image)
    preprocessing = preprocessing_of(model, **changes)
    camera = film.Camera(folder, classes=classes, preprocessing=preprocessing, validation=split)
    camera.open(model)
    logits = predict(model, split.images, preprocessing)
    report = Report.of(logits, split.labels, classes)
    for step in steps:
        camera.shoot(model, Step(step, 0, step / 7, step / 100, step / 3, math.nan if not step else 1.5, 1.0, report.accuracy, logits), report)
    return folder


def image_of(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1])))


def eight_bits(part: dict, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(part["data"]), np.uint8).reshape(shape)


@pytest.mark.parametrize("changes", [{}, {"pool": "mean", "class_token": False}, {"registers": 2}, {"distilled": True}, {"channels": 1}], ids=str)
def test_a_frame_says_of_a_chosen_picture_what_explain_says(tmp_path, changes, photo):
    model = model_of(**changes)
    folder = shot(tmp_path, model, chosen=[photo.read_bytes(), picture_bytes(coloured("red", 3, (50, 40)), "WEBP", lossless=True)], crop_fraction=0.9)
    scene, (frame,) = folder.scene(), folder.frames()[0]
    loaded = Loaded(model, CLASSES, preprocessing_of(model, crop_fraction=0.9), {}, "it")
    assert (scene["layers"], scene["heads"], scene["rows"], scene["cols"], scene["patch"], scene["prefix"]) == (3, 2, 3, 5, [4, 4], model.config.prefix)
    assert len(scene["prefix_names"]) == scene["prefix"]
    for i, source in enumerate((photo, folder.film / "subject-1.png")):
        wanted = explain(source, loaded)
        assert scene["reader"] == wanted.reader
        got = frame["subjects"][i]
        assert [index for index, _ in got["top"]] == wanted.leading(3)
        assert [share for _, share in got["top"]] == pytest.approx([share for _, share in wanted.top(3)], abs=1e-5)
        back = unpacked(got["reads"])
        assert back.shape == wanted.reads().shape and (np.abs(back - wanted.reads()) <= wanted.reads().max(2, keepdims=True) * 0.51 / 255).all()
        assert np.allclose(np.array(got["reads"]["highs"]).reshape(3, 2), wanted.reads().max(2), atol=1e-6)
        shown = scene["subjects"][i]
        assert np.array_equal(np.asarray(image_of(shown["seen"])), np.asarray(wanted.seen))
        travels, crop = in_view(wanted.picture, wanted.geometry, 320)
        assert shown["crop"] == crop and image_of(shown["picture"]).size == (shown["width"], shown["height"]) == travels.size and shown["truth"] is None


def test_without_chosen_pictures_three_of_different_classes_are_taken_from_the_validation_part(tmp_path):
    split = validation()
    scene = shot(tmp_path, model_of(), split=split).scene()
    assert sorted(subject["truth"] for subject in scene["subjects"]) == [0, 1, 2]
    for subject in scene["subjects"]:
        assert subject["name"] == CLASSES[subject["truth"]] and (subject["height"], subject["width"]) == (12, 20)
        mine = np.asarray(image_of(subject["picture"]))                     # small pictures travel without loss
        among = [np.array_equal(mine, image.permute(1, 2, 0).numpy()) for image in split.images[split.labels == subject["truth"]]]
        assert sum(among) == 1


def test_a_file_that_is_no_picture_is_passed_over_and_at_most_six_are_taken(tmp_path):
    ones = [picture_bytes(coloured("blue", i)) for i in range(7)]
    assert len(shot(tmp_path / "a", model_of(), chosen=ones).scene()["subjects"]) == 6
    broken = shot(tmp_path / "b", model_of(), chosen=[b"nothing", ones[0][:200], ones[1]])
    assert [subject["name"] for subject in broken.scene()["subjects"]] == ["picture 1"] and len(broken.frames()[0][0]["subjects"]) == 1
    assert len(shot(tmp_path / "c", model_of(), chosen=[b"nothing"]).scene()["subjects"]) == 3


def test_a_large_photo_travels_small_and_its_crop_with_it(tmp_path):
    big = Image.fromarray(np.random.default_rng(0).integers(0, 255, (600, 900, 3)).astype(np.uint8))
    subject = shot(tmp_path, model_of(), chosen=[picture_bytes(big)]).scene()["subjects"][0]
    assert (subject["width"], subject["height"]) == (320, 213) and subject["picture"].startswith("data:image/jpeg")
    assert np.allclose(subject["crop"], np.array(see(big, preprocessing_of(model_of()))[1]) * 320 / 900, atol=0.5)


def test_watched_pictures_are_spread_over_the_classes_and_the_same_every_time(tmp_path):
    split = validation(200)
    split.labels[:] = torch.tensor([0] * 180 + [1] * 15 + [2] * 5)
    scenes = [shot(tmp_path / name, model_of(seed), split=split).scene() for seed, name in enumerate("ab")]
    assert scenes[0]["watched"] == scenes[1]["watched"] and len(scenes[0]["watched"]) == 16
    assert sorted(sum(one["truth"] == klass for one in scenes[0]["watched"]) for klass in range(3)) == [5, 5, 6]
    few = shot(tmp_path / "c", model_of(), split=validation(5))
    assert len(few.scene()["watched"]) == len(few.frames()[0][0]["watched"]) == 5


def test_what_is_said_of_watched_pictures_is_what_the_model_says_of_them(tmp_path):
    model, split = model_of(), validation(40)
    folder = shot(tmp_path, model, split=split)
    for seen, (answer, share, of_truth) in zip(folder.scene()["watched"], folder.frames()[0][0]["watched"], strict=True):
        shares = explain(image_of(seen["picture"]), Loaded(model, CLASSES, preprocessing_of(model), {}, "it")).probabilities
        assert answer == shares.argmax() and share == pytest.approx(shares.max(), abs=1e-5) and of_truth == pytest.approx(shares[seen["truth"]], abs=1e-5)


def test_a_frame_holds_the_numbers_of_the_step_and_of_the_report(tmp_path):
    model, split = model_of(), validation()
    folder = shot(tmp_path, model, steps=(0, 21), split=split)
    report = Report.of(predict(model, split.images, preprocessing_of(model)), split.labels, CLASSES)
    first, second = folder.frames()[0]
    assert first["loss"] is None and (second["step"], second["epoch"], second["seconds"], second["progress"], second["loss"]) == (21, 3.0, 7.0, 0.21, 1.5)
    assert (second["accuracy"], second["standard_error"], second["n"]) == (pytest.approx(report.accuracy, abs=1e-5), pytest.approx(report.standard_error, abs=1e-5), 30)
    told = second["report"]
    assert told["confusion"] == [list(row) for row in report.confusion] and told["per_class"] == pytest.approx(list(report.per_class.values()), abs=1e-5)
    assert np.allclose(told["calibration"], [list(part) for part in report.calibration], atol=1e-5) and told["ece"] == pytest.approx(report.expected_calibration_error, abs=1e-5)


def test_a_class_without_validation_pictures_has_no_share(tmp_path):
    split = validation(8, K=2)
    assert shot(tmp_path, model_of(), split=split).frames()[0][0]["report"]["per_class"][2] is None


def test_filters_keep_their_order_while_the_model_learns():
    model = model_of(patch=(6, 4), dim=40)
    first = film.filters(model)
    assert {name: first[name] for name in ("count", "rows", "cols", "channels")} == {"count": 32, "rows": 6, "cols": 4, "channels": 3}
    weight = model.patch_embed.proj.weight.detach()
    assert np.array_equal(eight_bits(first, 32, 6, 4, 3)[5], np.round(255 * (0.5 + weight[5].permute(1, 2, 0).numpy() / 2 / weight[:32].abs().max().item())))
    with torch.no_grad():
        weight[20] *= 9                                                     # now by far the strongest
    later = eight_bits(film.filters(model), 32, 6, 4, 3)
    assert np.abs(later[20].astype(int) - 127).max() >= 127 and np.abs(later[:20].astype(int) - 127).max() < 60


def test_large_patches_are_shown_in_fewer_filters_or_none():
    assert film.filters(model_of(image=(96, 96), patch=(48, 48)))["count"] == 3
    assert film.filters(model_of(image=(96, 96), patch=(96, 96))) is None


@pytest.mark.parametrize(("image", "tiles", "every"), [((12, 20), [3, 5], (1, 1)), ((32, 36), [8, 5], (1, 2)), ((64, 40), [8, 5], (2, 2)), ((68, 32), [6, 8], (3, 1))])
def test_position_tiles_are_those_of_every_nth_patch_and_at_most_eight_a_side(image, tiles, every):
    model = model_of(image=image)
    found, whole = film.positions(model), embedding.position_similarity(model)
    assert [found["rows"], found["cols"]] == list(model.config.grid) and found["tiles"] == tiles
    got = eight_bits(found, *tiles, *model.config.grid)
    for i, j in ((0, 0), (tiles[0] - 1, tiles[1] - 1), (1, 2)):
        assert np.abs(got[i, j] / 127.5 - 1 - whole[i * every[0], j * every[1]].numpy()).max() <= 0.51 / 127.5
    assert [-(-side // count) for side, count in zip(model.config.grid, tiles)] == list(every)              # how the page finds them


def test_a_model_without_positions_or_with_a_huge_grid_has_no_tiles():
    assert film.positions(model_of(positions="none")) is None
    assert film.positions(model_of(image=(8, 4 * 513))) is None


def test_another_kind_of_model_answers_without_attention_and_stays_as_it_was(tmp_path, photo):
    model = model_of(kind=Convolution)
    model.norm.eval()                                                       # a part that is frozen while the rest learns
    before = {name: value.clone() for name, value in model.state_dict().items()}
    folder = shot(tmp_path, model, chosen=[photo.read_bytes()])
    scene, (frame,) = folder.scene(), folder.frames()[0]
    assert (scene["layers"], scene["heads"], scene["prefix"], scene["prefix_names"], scene["reader"]) == (0, 0, 0, [], "")
    assert frame["filters"] is None and frame["positions"] is None and frame["subjects"][0]["reads"] is None
    pixels = torch.from_numpy(np.array(see(Image.open(photo).convert("RGB"), preprocessing_of(model))[0])).permute(2, 0, 1)[None]
    shares = predict(model, pixels, preprocessing_of(model)).softmax(-1)[0]
    assert dict(frame["subjects"][0]["top"]) == pytest.approx(dict(enumerate(shares.tolist())), abs=1e-5)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.training and not model.norm.training


def test_a_run_that_goes_on_keeps_its_scene_and_doubles_no_frame(tmp_path):
    folder = shot(tmp_path, model_of(), steps=(0, 5))
    scene = (folder.film / "scene.json").read_bytes()
    with (folder.film / "frames.jsonl").open("ab") as file:
        file.write(b'{"step": 9, "tor')                                     # killed while it wrote
    shot(tmp_path, model_of(2), steps=(5, 9, 12), split=validation(31))
    assert [frame["step"] for frame in folder.frames()[0]] == [0, 5, 9, 12]
    assert (folder.film / "scene.json").read_bytes() == scene


def test_a_film_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "film").write_text("a file where the folder should be")
    camera = film.Camera(RunFolder(tmp_path), classes=CLASSES, preprocessing=preprocessing_of(model_of()), validation=validation())
    with pytest.raises(RunError, match="could not be written"):
        camera.open(model_of())


def test_taking_a_frame_changes_neither_the_weights_nor_the_random_state(tmp_path):
    model, state = model_of(), torch.get_rng_state()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    shot(tmp_path, model)
    assert torch.equal(state, torch.get_rng_state()) and model.training
    assert all(torch.equal(before[name], value) and value.grad is None for name, value in model.state_dict().items())


def test_a_frame_of_the_small_model_for_ten_classes_takes_less_than_60_kilobytes(tmp_path):
    model = ViT(tiny_config(image=(32, 32), dim=96, depth=6, heads=3, mlp_dim=0, classes=10), torch.Generator().manual_seed(0))
    names = tuple(f"class {i}" for i in range(10))
    folder = shot(tmp_path, model, classes=names, split=validation(60, size=(32, 32), K=10), chosen=[picture_bytes(coloured("red", i)) for i in range(6)])
    text = (folder.film / "frames.jsonl").read_bytes()
    assert len(text) < 25_000 and len((folder.film / "scene.json").read_bytes()) < 150_000
    json.loads(text, parse_constant=pytest.fail)


def test_very_many_classes_leave_the_matrix_out(tmp_path):
    names = tuple(map(str, range(129)))
    frame, = shot(tmp_path, model_of(classes=129), classes=names, split=validation(140, K=129)).frames()[0]
    assert frame["report"]["confusion"] is None and len(frame["report"]["per_class"]) == 129 and len(frame["subjects"][0]["top"]) == 3

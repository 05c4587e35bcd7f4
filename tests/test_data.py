"""Data sets from folders and zips: layout, caching, what is left out, and the held-out part."""

import os
import zipfile

import numpy as np
import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes

from vitdemo import class_folders, data


def write_zip(path, members: dict[str, bytes]):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def square(name: str = "red", seed: int = 0, size=(6, 6)) -> bytes:
    return picture_bytes(coloured(name, seed, size))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("VITDEMO_CACHE", str(tmp_path / "cache"))


def test_a_zip_with_train_and_test_is_read_in_order_with_its_pixels(colour_zip):
    dataset = data.load(colour_zip)
    assert dataset.classes == tuple(sorted(COLOURS)) and (len(dataset.train), len(dataset.test)) == (180, 30)
    assert dataset.train.images.dtype == torch.uint8 and dataset.train.images.shape == (180, 3, 32, 32)
    assert dataset.train.labels.bincount().tolist() == [60, 60, 60]
    expected = np.asarray(coloured("blue", 5000)).transpose(2, 0, 1)         # train/blue/0.png
    assert np.array_equal(dataset.train.images[0].numpy(), expected)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("split_up", [False, True])
def test_a_folder_and_a_zip_of_it_are_read_alike(tmp_path, split_up, wrapped):
    members = {f"{'train/' if split_up else ''}{name}/{i}.png": square(name, i) for name in COLOURS for i in range(3)}
    if split_up:
        members |= {f"test/{name}/{i}.png": square(name, 9) for name in COLOURS for i in range(2)}
    for name, content in members.items():
        file = tmp_path / ("outer/mine" if wrapped else "outer") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    packed = write_zip(tmp_path / "p.zip", {("mine/" if wrapped else "") + name: content for name, content in members.items()})
    one, two = data.load(tmp_path / "outer", size=(6, 6)), data.load(packed, size=(6, 6))
    assert one.classes == two.classes == tuple(sorted(COLOURS))
    assert torch.equal(one.train.images, two.train.images) and torch.equal(one.train.labels, two.train.labels)
    assert (one.test is None) == (two.test is None) == (not split_up)


def test_the_second_reading_comes_from_the_cache_and_a_changed_file_is_read_anew(colour_zip, tmp_path, monkeypatch):
    mine = tmp_path / "mine.zip"
    mine.write_bytes(colour_zip.read_bytes())
    first = data.load(mine)
    monkeypatch.setattr(class_folders, "decode", lambda *_, **__: pytest.fail("decoded again"))
    assert torch.equal(data.load(mine).train.images, first.train.images)
    monkeypatch.undo()
    monkeypatch.setenv("VITDEMO_CACHE", str(tmp_path / "cache"))
    write_zip(mine, {f"train/{name}/0.png": square(name) for name in COLOURS})
    assert len(data.load(mine).train) == 3


def test_a_damaged_cache_is_ignored(colour_zip, tmp_path):
    data.load(colour_zip)
    for file in (tmp_path / "cache" / "data").glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:1000])
    assert len(data.load(colour_zip).train) == 180


def test_files_that_are_no_pictures_are_left_out_and_named(tmp_path):
    members = {"a/1.png": square(), "a/2.png": b"not a picture", "b/1.png": square("blue"), "b/2.jpg": square("blue")[:80], "b/.hidden": b"x",
               "__MACOSX/a/1.png": b"x", "readme.txt": b"hello", "broken/1.png": b"", "a/deeper/3.png": square()}
    dataset = data.load(write_zip(tmp_path / "p.zip", members), size=(6, 6))
    assert dataset.classes == ("a", "b") and dataset.train.labels.tolist() == [0, 0, 1]
    assert dataset.skipped == ("a/2.png", "b/2.jpg", "broken/1.png")


def test_names_that_lead_out_of_a_zip_lead_nowhere_and_links_in_a_folder_are_not_followed(tmp_path):
    packed = write_zip(tmp_path / "p.zip", {"../../a/1.png": square(), "/etc/1.png": square("blue"), "b/1.png": square("green"), "c/1.png": square()})
    before = sorted(p.name for p in tmp_path.iterdir() if p.name != "cache")
    data.load(packed, size=(6, 6))
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "cache") == before
    folder = tmp_path / "folder"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "1.png").write_bytes(square())
    try:
        os.symlink("/etc", folder / "c", target_is_directory=True)
        os.symlink("/etc/hostname", folder / "a" / "2.png")
    except OSError:
        pytest.skip("no symbolic links on this platform")
    assert len(data.load(folder, size=(6, 6)).train) == 2


def test_a_member_that_unpacks_to_too_much_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(class_folders, "MAX_FILE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.png", square())
        archive.writestr("b/1.png", square())
        archive.writestr("b/bomb.png", b"\0" * 10**6)
    assert data.load(tmp_path / "p.zip", size=(6, 6)).skipped == ("b/bomb.png",)


@pytest.mark.parametrize(("members", "said"), [
    ({}, "no training pictures"), ({"1.png": b""}, "no training pictures"), ({"a/1.png": square()}, "1 class folder"),
    ({"train/a/1.png": square(), "train/b/1.png": square(), "test/a/1.png": square(), "test/c/1.png": square()}, "same classes"),
])
def test_a_source_that_cannot_be_learned_from_is_refused_in_words(tmp_path, members, said):
    with pytest.raises(data.DataError, match=said):
        data.load(write_zip(tmp_path / "p.zip", members), size=(6, 6))


def test_a_broken_archive_and_a_missing_one_are_named_without_their_folder(tmp_path):
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"\x1f\x8b" + b"\0" * 200)
    for name in ("cifar-10-python.tar.gz", "missing.zip"):
        with pytest.raises(data.DataError, match=name) as refusal:
            data.load(tmp_path / name)
        assert str(tmp_path) not in str(refusal.value)


def test_a_download_that_fails_says_what_to_do(monkeypatch, tmp_path):
    from torchvision import datasets

    monkeypatch.delenv("VITDEMO_DATA", raising=False)

    def cut_off(root, **_):
        (tmp_path / "cache" / "downloads" / "cifar-10-batches-py").mkdir()   # a part of it has arrived
        raise RuntimeError("File not found or corrupted.")

    monkeypatch.setattr(datasets, "CIFAR10", cut_off)
    with pytest.raises(data.DataError, match="could not be downloaded.*VITDEMO_DATA"):
        data.load("cifar10")
    assert not data.is_local("cifar10")


def test_a_download_tells_how_far_it_is_and_is_given_a_time_out(monkeypatch, tmp_path):
    import socket
    import time

    from torchvision import datasets

    class Slow:
        classes = ["a", "b"]

        def __init__(self, root, train, download):
            assert socket.getdefaulttimeout() == 30
            for count in (1, 2):
                (tmp_path / "cache" / "downloads" / "cifar-10-python.tar.gz").write_bytes(b"0" * count * 10**6)
                deadline = time.monotonic() + 10
                while not any(done == count for _, done, _ in told) and time.monotonic() < deadline:
                    time.sleep(0.02)
            self.data, self.targets = np.zeros((2, 32, 32, 3), np.uint8), [0, 1]

    told = []
    monkeypatch.delenv("VITDEMO_DATA", raising=False)
    monkeypatch.setattr(datasets, "CIFAR10", Slow)
    data.load_part("cifar10", "train", progress=lambda *news: told.append(news))
    assert ("megabytes downloaded", 1, 170) in told and ("megabytes downloaded", 2, 170) in told and socket.getdefaulttimeout() is None


def test_what_torchvision_downloads_becomes_the_same_kind_of_split(monkeypatch):
    from torchvision import datasets

    class Fake:
        classes = ["0 - zero", "1 - one"]

        def __init__(self, root, train, download):
            self.data = torch.full((4 if train else 2, 28, 28), 7, dtype=torch.uint8)
            self.targets = [0, 1] * (2 if train else 1)

    monkeypatch.delenv("VITDEMO_DATA", raising=False)
    monkeypatch.setattr(datasets, "MNIST", Fake)
    dataset = data.load("mnist", size=(28, 28), channels=1)
    assert dataset.classes == ("0", "1") and dataset.train.images.shape == (4, 1, 28, 28) and len(dataset.test) == 2
    assert data.load("mnist", size=(14, 14), channels=3).train.images.shape == (4, 3, 14, 14)


def test_the_held_out_part_takes_its_share_of_every_class_and_repeats_with_its_seed():
    split = data.Split(torch.arange(110)[:, None, None, None].byte(), torch.tensor([0] * 100 + [1] * 9 + [2]))
    train, held = data.hold_out(split, 0.1, seed=3)
    assert held.labels.bincount(minlength=3).tolist() == [10, 1, 0] and len(train) + len(held) == 110
    assert not set(train.images.flatten().tolist()) & set(held.images.flatten().tolist())
    assert torch.equal(data.hold_out(split, 0.1, seed=3)[1].images, held.images)
    assert not torch.equal(data.hold_out(split, 0.1, seed=4)[1].images, held.images)
    with pytest.raises(data.DataError, match="single picture"):
        data.hold_out(data.Split(torch.zeros(2, 3, 6, 6, dtype=torch.uint8), torch.tensor([0, 1])), 0.1, seed=0)


def test_statistics_are_those_of_each_channel():
    images = torch.stack((torch.zeros(5, 7), torch.full((5, 7), 255.0), torch.arange(35.0).view(5, 7))).byte()[None].repeat(4, 1, 1, 1)
    mean, std = data.statistics(data.Split(images, torch.zeros(4)))
    assert mean[:2] == (0.0, 1.0) and std[:2] == (0.01, 0.01) and abs(mean[2] - 17 / 255) < 1e-4


def test_the_real_cifar10_has_sixty_thousand_pictures_of_ten_classes(real_data):
    entries = class_folders.entries(real_data / "cifar10.zip")
    assert len(entries) == 60_000 and len({e.label for e in entries}) == 10 and sum(e.part == "test" for e in entries) == 10_000

"""Data sets from folders and zips: layout, caching, what is left out, and the held-out part."""

import os
import zipfile

import numpy as np
import pytest
import torch
from conftest import COLOURS, coloured, picture_bytes

from vitdemo import archive, class_folders, data
from vitdemo.config import Preprocessing
from vitdemo.images import open_picture, see


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
               "__MACOSX/a/1.png": b"x", "readme.txt": b"hello", "broken/1.png": b"", "a/deeper/3.png": square(seed=3), "a/Thumbs.db": b"x"}
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
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/1.png", square())
        packed.writestr("b/1.png", square())
        packed.writestr("b/bomb.png", b"\0" * 10**6)
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


def test_the_held_out_part_takes_its_share_of_every_class_and_repeats_with_its_seed():
    split = data.Split(torch.arange(110)[:, None, None, None].byte(), torch.tensor([0] * 100 + [1] * 9 + [2]))
    train, held = data.hold_out(split, 0.1, seed=3, small_share=0)
    assert held.labels.bincount(minlength=3).tolist() == [10, 1, 0] and len(train) + len(held) == 110
    assert not set(train.images.flatten().tolist()) & set(held.images.flatten().tolist())
    assert torch.equal(data.hold_out(split, 0.1, seed=3, small_share=0)[1].images, held.images)
    assert not torch.equal(data.hold_out(split, 0.1, seed=4, small_share=0)[1].images, held.images)
    with pytest.raises(data.DataError, match="single picture"):
        data.hold_out(data.Split(torch.zeros(2, 3, 6, 6, dtype=torch.uint8), torch.tensor([0, 1])), 0.1, seed=0)


def test_of_a_small_set_a_fifth_is_held_out_and_of_a_large_one_the_share_that_was_asked_for():
    for count, expected in ((90, 18), (999, 200), (1000, 200), (2000, 200), (10_000, 500)):
        split = data.Split(torch.zeros(count, 1, 1, 1, dtype=torch.uint8), torch.zeros(count, dtype=torch.long))
        assert len(data.hold_out(split, 0.05, seed=0)[1]) == expected
    two = data.Split(torch.zeros(4, 1, 1, 1, dtype=torch.uint8), torch.tensor([0, 0, 1, 1]))
    assert data.hold_out(two, 0.05, seed=0)[1].labels.tolist() == [0, 1]


def test_a_picture_that_is_there_twice_is_counted_once_so_that_none_is_learned_and_tested(tmp_path):
    members = {"train/a/1.png": square(seed=1), "train/a/2.png": square(seed=1), "train/a/3.png": square(seed=2), "train/b/1.png": square("blue"),
               "test/a/8.png": square(seed=2), "test/a/9.png": square(seed=9)}
    packed = write_zip(tmp_path / "p.zip", members)
    for _ in range(2):                                                      # decoded, and from the cache
        dataset = data.load(packed, size=(6, 6))
        assert dataset.train.labels.tolist() == [0, 0, 1] and dataset.test.labels.tolist() == [0]
        assert dataset.duplicates == ("train/a/2.png", "test/a/8.png") and dataset.skipped == ()
        assert np.array_equal(dataset.test.images[0].numpy(), np.asarray(coloured("red", 9, (6, 6))).transpose(2, 0, 1))


def test_a_class_that_the_test_part_lacks_keeps_the_numbers_of_the_others(tmp_path):
    members = {f"train/{name}/{i}.png": square(name, i) for name in COLOURS for i in range(2)} | {"test/red/1.png": square("red", 7)}
    dataset = data.load(write_zip(tmp_path / "p.zip", members), size=(6, 6))
    assert dataset.classes[dataset.test.labels[0]] == "red"


@pytest.mark.parametrize("litter", ["animals/notes.txt", "animals/Thumbs.db", "animals/.DS_Store", "__MACOSX/animals/cat/._1.png", "animals/cat/desktop.ini"])
def test_a_folder_around_the_classes_is_passed_over_whatever_else_lies_in_it(tmp_path, litter):
    members = {f"animals/{name}/{i}.png": square("red", 10 * i + j) for j, name in enumerate(("cat", "dog")) for i in range(2)} | {litter: b"x"}
    dataset = data.load(write_zip(tmp_path / "p.zip", members), size=(6, 6))
    assert dataset.classes == ("cat", "dog") and len(dataset.train) == 4 and dataset.skipped == ()


def test_names_are_read_as_finder_and_old_windows_programs_write_them(tmp_path):
    import unicodedata

    written = unicodedata.normalize("NFD", "Bäume").encode()                # what Finder stores, without saying that it is UTF-8
    stand_in = "B" * len(written)
    packed = write_zip(tmp_path / "p.zip", {f"{stand_in}/1.png": square(), r"x\y\1.png": square("blue")})
    packed.write_bytes(packed.read_bytes().replace(stand_in.encode(), written))
    assert {entry.label for entry in class_folders.survey(packed).entries} == {"Bäume", "x"}


def test_photos_are_reduced_while_they_are_decoded_and_look_the_same(tmp_path):
    photo = coloured("green", 1, (48, 64)).resize((1280, 960))
    content = picture_bytes(photo, "JPEG", quality=95)
    packed = write_zip(tmp_path / "p.zip", {"a/1.jpg": content, "b/1.png": square()})
    loaded = data.load(packed, size=(24, 24)).train.images[0].float()
    exact, _ = see(open_picture(content).image, Preprocessing(size=(24, 24)))
    assert (loaded - torch.from_numpy(np.asarray(exact).copy()).permute(2, 0, 1)).abs().mean() < 2
    assert min(open_picture(content, enough=96).image.size) == 120 and min(open_picture(content, enough=961).image.size) == 960


def test_more_pictures_than_memory_should_hold_are_refused_before_it_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(class_folders, "MAX_BYTES", 3 * 6 * 6 * 3)
    with pytest.raises(data.DataError, match="4 pictures of 6 x 6 pixels"):
        data.load(write_zip(tmp_path / "p.zip", {f"{name}/{i}.png": square(name, i) for name in ("red", "blue") for i in range(2)}), size=(6, 6))


def test_reading_can_be_ended_between_any_two_pictures_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(class_folders, "TOLD_EVERY", 0.0)
    told = []

    def progress(what, done, total):
        told.append((what, done, total))
        if done == 2:
            raise KeyboardInterrupt

    packed = write_zip(tmp_path / "p.zip", {f"{name}/{i}.png": square(name, i) for name in COLOURS for i in range(3)})
    with pytest.raises(KeyboardInterrupt):
        data.load(packed, size=(6, 6), progress=progress)
    assert told == [("pictures read", i, 9) for i in range(3)] and not list((tmp_path / "cache").rglob("*.*"))


def test_decoded_sets_take_no_more_than_their_place_and_the_one_used_last_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("VITDEMO_SETS_MB", "1")
    folder = tmp_path / "cache" / "data"
    packs = [write_zip(tmp_path / f"{number}.zip", {f"{name}/1.png": square(name, number) for name in ("red", "blue")}) for number in range(3)]
    for number in (0, 1, 0, 2):                                             # 0.4 MB each, decoded
        data.load(packs[number], size=(256, 256))
        for file in folder.iterdir():                                       # time goes by
            os.utime(file, (file.stat().st_mtime - 10, file.stat().st_mtime - 10))
    assert len(list(folder.iterdir())) == 2 and sum(file.stat().st_size for file in folder.iterdir()) <= 10**6
    monkeypatch.setattr(class_folders, "decode", lambda *_, **__: pytest.fail("decoded again"))
    assert len(data.load_part(packs[0], "train", size=(256, 256)).split) == 2
    monkeypatch.undo()


def test_of_a_visitors_own_set_no_decoded_copy_is_kept_and_known_sets_make_room_for_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("VITDEMO_SETS_MB", "1")
    folder = tmp_path / "cache" / "data"
    files = {f"{name}/1.png": square(name, 1) for name in ("red", "blue")}
    (tmp_path / "known").mkdir()
    monkeypatch.setenv("VITDEMO_DATA", str(write_zip(tmp_path / "known" / "mnist.zip", files).parent))
    data.load("mnist", size=(28, 28))
    known = list(folder.iterdir())
    data.load("mnist", size=(600, 600))                                     # 2 MB: at another size than its own it is one of many
    data.load("mnist", size=(100, 100))
    assert len(list(folder.iterdir())) == 2
    data.load(write_zip(tmp_path / f"{'a1' * 16}.zip", files))
    data.load(write_zip(tmp_path / "mine.zip", files))
    assert len(known) == 1 and known[0].exists() and len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("name", ["a" * 5000, "nobody\0", "~nobody-of-that-name/x"])
def test_a_name_that_cannot_be_a_path_is_refused_in_words(name):
    with pytest.raises(data.DataError, match="there is no data set"):
        data.load(name)


def test_statistics_are_those_of_each_channel():
    images = torch.stack((torch.zeros(5, 7), torch.full((5, 7), 255.0), torch.arange(35.0).view(5, 7))).byte()[None].repeat(4, 1, 1, 1)
    mean, std = data.statistics(data.Split(images, torch.zeros(4)))
    assert mean[:2] == (0.0, 1.0) and std[:2] == (0.01, 0.01) and abs(mean[2] - 17 / 255) < 1e-4


def test_the_real_cifar10_has_sixty_thousand_pictures_of_ten_classes(real_data):
    entries = class_folders.survey(real_data / "cifar10.zip").entries
    assert len(entries) == 60_000 and len({e.label for e in entries}) == 10 and sum(e.part == "test" for e in entries) == 10_000

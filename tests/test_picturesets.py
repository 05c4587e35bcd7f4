"""Visitors' own sets: zips as people and attackers make them, collecting picture by picture, and what is shared by all."""

import io
import os
import pickle
import stat
import struct
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import COLOURS, coloured, picture_bytes
from PIL import Image

from vitdemo import archive, data, picturesets, unpacking
from vitdemo.archive import DataError
from vitdemo.images import PictureError
from vitdemo.picturesets import Sets


def square(name: str = "red", seed: int = 0, size=(6, 6)) -> bytes:
    return picture_bytes(coloured(name, seed, size))


def members(count: int = 2, names=tuple(COLOURS), prefix: str = "") -> dict[str, bytes]:
    """Distinct pictures in class folders."""
    return {f"{prefix}{name}/{i}.png": square("red", 100 * number + i) for number, name in enumerate(names) for i in range(count)}


def packed(path, content: dict[str, bytes], method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in content.items():
            out.writestr(name, value)
    return path


@pytest.fixture
def sets(tmp_path, monkeypatch) -> Sets:
    monkeypatch.setenv("VITDEMO_CACHE", str(tmp_path / "cache"))
    return Sets(tmp_path / "sets", max_pictures=40, max_bytes=5_000_000, keep_seconds=100)


def files(sets: Sets) -> list[str]:
    """What lies in the home, but for the lock."""
    return sorted(p.name for p in sets.home.iterdir() if p.name != ".lock") if sets.home.exists() else []


def test_a_zip_becomes_a_set_that_training_reads_with_the_same_pixels(sets, tmp_path):
    made = sets.from_zip(packed(tmp_path / "colours.zip", members(3)))
    assert made == sets.get(made.id) and made.title == "colours" and made.skipped == ()
    assert made.classes == {"blue": 3, "green": 3, "red": 3} and made.pictures == 9
    dataset = data.load(sets.path(made.id), size=(6, 6))
    assert dataset.name == "colours" and dataset.classes == ("blue", "green", "red") and dataset.test is None and len(dataset.train) == 9
    expected = sorted(np.asarray(coloured("red", seed, (6, 6))).transpose(2, 0, 1).tobytes()
                      for seed in (0, 1, 2, 100, 101, 102, 200, 201, 202))
    assert sorted(image.numpy().tobytes() for image in dataset.train.images) == expected


@pytest.mark.parametrize("wrapping", ["", "My animals/", "a/b/"])
def test_train_and_test_folders_stay_apart_also_inside_a_folder_around_them(sets, tmp_path, wrapping):
    content = members(3, ("cat", "dog"),
                      wrapping + "Train/") | {f"{wrapping}valid/{name}/x.png": square("green", i) for i, name in enumerate(("cat", "dog"))}
    made = sets.from_zip(packed(tmp_path / "p.zip", content))
    dataset = data.load(sets.path(made.id), size=(6, 6))
    assert (made.classes == {"cat": 4, "dog": 4} and (len(dataset.train), len(dataset.test)) == (6, 2)
            and dataset.test.labels.tolist() == [0, 1])


def test_a_zip_by_explorer_or_finder_holds_only_its_pictures(sets, tmp_path):
    content = members(2, ("cat", "dog"), "Animals/")
    litter = {"Animals/Thumbs.db": b"x", "Animals/cat/desktop.ini": b"x", "Animals/.DS_Store": b"x", "Animals/cat/Icon\r": b"",
              "__MACOSX/Animals/cat/._0.png": b"x" * 90,
              "Animals/cat/._1.png": b"x"}
    made = sets.from_zip(packed(tmp_path / "p.zip", {"Animals/empty class/": b""} | content | litter), "Year 9")
    assert made.classes == {"cat": 2, "dog": 2} and made.skipped == () and made.title == "Year 9"


def test_what_is_left_out_is_listed_with_its_reason(sets, tmp_path):
    content = members(2) | {"red/phone.heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "red/cut.jpg": square()[:50], "red/empty.png": b"",
                            "red/notes.txt": b"hello", "loose.png": square(), "red/again.png": members(2)["blue/0.png"],
                            "red/more.zip": b"PK\3\4"}
    made = sets.from_zip(packed(tmp_path / "p.zip", content))
    said = dict(line.split(": ", 1) for line in made.skipped)
    assert (made.pictures == 6
            and set(said) == {"red/phone.heic", "red/cut.jpg", "red/empty.png", "red/notes.txt", "loose.png", "red/more.zip"})
    assert ("HEIC" in said["red/phone.heic"] and "no class folder" in said["loose.png"]
            and (made.skipped_count, made.duplicates_count) == (6, 1))


def test_of_very_many_files_left_out_only_the_first_are_named(sets, tmp_path):
    long = "\N{CAT FACE}" * 70
    made = sets.from_zip(packed(tmp_path / "p.zip", members(2) | {f"red/{long}{i}.txt": b"x" for i in range(30)}
                                | {f"{long}{i}.png": b"x" for i in range(150)}))
    assert len(made.skipped) == 100 and made.skipped_count == 180 and all(len(line) < 300 for line in made.skipped)
    for change in (lambda: sets.entitle(made.id, "new"), lambda: sets.rename(made.id, "red", "pink"),
                   lambda: sets.add(made.id, "pink", square("red", 999)),
                   lambda: sets.drop(made.id, "pink", 0), lambda: sets.entitle(made.id, "newer")):
        after = change()
        assert (len(after.skipped), after.skipped_count, after.duplicates_count) == (100, 180, 0)       # whatever is changed later
    assert after.title == "newer" and after.pictures == 6


@pytest.mark.parametrize(("content", "said"), [
    ({}, "no pictures in class folders"), ({"1.png": square()}, "no pictures in class folders"), ({"photos.zip": b"PK"}, "another archive"),
    (members(3, ("cat",)), "1 class folder,"),
    (members(1, tuple(f"class {i}" for i in range(41))), "41 files in class folders, and at most 40"),
    ({"cat/1.png": square(), "dog/1.txt": b"x"}, r"1 class folder with pictures that can be read.*dog/1.txt"),
    ({"cat/1.png": b"x", "dog/1.txt": b"x"}, "0 class folders with pictures"),
    (members(1, ("cat", "cat\u200f", "dog")), "two class folders would both be called 'cat'"),
    (members(1, ("Cat", "cat")), "both be called"),
    (members(1, ("x" * 50, "x" * 51)), "both be called"), (members(1, ("cat", "...")) | {}, "1 class folder,"),
    (members(1, ("cat", "\u202e")), "a class needs a name"),
    (members(1, ("cat", "dog"), "train/") | members(1, ("cow",), "test/"), "'cow' is in the test folder only"),
])
def test_a_zip_that_cannot_become_a_set_is_refused_in_words_and_leaves_nothing(sets, tmp_path, content, said):
    with pytest.raises(DataError, match=said) as refusal:
        sets.from_zip(packed(tmp_path / "p.zip", content))
    assert files(sets) == [] and str(tmp_path) not in str(refusal.value) and "\n" not in str(refusal.value)


def test_two_to_a_hundred_classes_are_taken(tmp_path):
    sets = Sets(tmp_path / "sets", max_pictures=200, max_bytes=10**7)
    assert len(sets.from_zip(packed(tmp_path / "p.zip", members(1, tuple(map(str, range(100)))))).classes) == 100
    with pytest.raises(DataError, match="101 class folders, and 2 to 100"):
        sets.from_zip(packed(tmp_path / "p.zip", members(1, tuple(map(str, range(101))))))


def test_names_that_lead_elsewhere_are_only_names_and_nothing_is_written_but_the_set(sets, tmp_path):
    link = zipfile.ZipInfo("dog/link.png")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    tricks = {"../../evil/1.png": square("blue", 1), "/etc/1.png": square("blue", 2), "C:\\Windows\\1.png": square("blue", 3),
              "dog/../../../x.png": square("blue", 4)}
    packed(tmp_path / "p.zip", members(2, ("cat", "dog")) | tricks)
    with zipfile.ZipFile(tmp_path / "p.zip", "a") as out:
        out.writestr(link, "/etc/passwd")
    before = {p for p in tmp_path.rglob("*")}
    made = sets.from_zip(tmp_path / "p.zip")
    assert {p.relative_to(tmp_path).parts[0] for p in set(tmp_path.rglob("*")) - before} == {"sets"} and files(sets) == [f"{made.id}.zip"]
    assert made.classes == {"C:": 1, "cat": 2, "dog": 2, "etc": 1} and [line.split(":")[0] for line in made.skipped] == ["dog/link.png"]
    assert all(name.split("/")[0] == "train" and name.count("/") == 2 for name in zipfile.ZipFile(sets.path(made.id)).namelist())


def test_locked_damaged_and_oddly_packed_members_are_left_out(sets, tmp_path):
    packed(tmp_path / "p.zip",
           members(2) | {"red/locked.png": square("green", 7), "red/sum.png": square("green", 8), "red/stream.png": square("green", 9)})
    with zipfile.ZipFile(tmp_path / "p.zip", "a", zipfile.ZIP_LZMA) as out:
        out.writestr("red/lzma.png", square("green", 6))
    content = bytearray((tmp_path / "p.zip").read_bytes())
    for name, at, mask in ((b"red/locked.png", 8, 1), (b"red/sum.png", 16, 255)):       # flags, and the sum, in the table of contents
        content[content.rindex(name) - 46 + at] ^= mask
    content[content.index(b"red/stream.png") + 14] ^= 0xFF                  # the first byte of the deflated data
    (tmp_path / "p.zip").write_bytes(content)
    said = dict(line.split(": ", 1) for line in sets.from_zip(tmp_path / "p.zip").skipped)
    assert set(said) == {f"red/{name}.png" for name in ("locked", "sum", "stream", "lzma")}
    assert ("password" in said["red/locked.png"] and "unusual" in said["red/lzma.png"] and "damaged" in said["red/sum.png"]
            and "damaged" in said["red/stream.png"])


def test_a_member_that_says_it_is_smaller_or_larger_than_it_is_does_no_harm(sets, tmp_path):
    for claimed in (10, 2**31):
        content = bytearray(packed(tmp_path / "p.zip", members(2) | {"red/lies.png": square("green", 7)}).read_bytes())
        struct.pack_into("<L", content, content.rindex(b"red/lies.png") - 46 + 24, claimed)
        (tmp_path / "p.zip").write_bytes(content)
        made = sets.from_zip(tmp_path / "p.zip")
        assert sum(made.classes.values()) + len(made.skipped) == 7 and made.pictures >= 6


def test_bombs_are_given_up_early(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "UNPACKED", 10**6)
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 500_000)
    many = packed(tmp_path / "many.zip", members(1) | {f"red/{i}.png": bytes([i]) * 400_000 for i in range(1, 30)})
    with pytest.raises(DataError, match="unpacks to far more than its own size"):
        sets.from_zip(many)
    one = packed(tmp_path / "one.zip", members(1) | {"red/big.png": b"\0" * 5_000_000})
    assert ["more than 0 MB" in line for line in sets.from_zip(one).skipped] == [True]


def test_entries_that_share_their_data_are_given_up(sets, tmp_path):
    """One block of data that many entries of the table claim as theirs, as in Fifield's bomb."""
    content = packed(tmp_path / "p.zip", members(2)).read_bytes()
    start = content.index(archive.ENTRY)
    entry = content[start:content.index(archive.ENTRY, start + 4)]
    end = content[content.rindex(b"PK\5\6"):]
    for count, said in ((30, None), (1200, "holds more than 1,160 files")):
        table = entry * count
        ending = end[:8] + struct.pack("<HHLL", count, count, len(table), start) + end[20:]
        (tmp_path / "p.zip").write_bytes(content[:start] + table + ending)
        with pytest.raises(DataError, match=said or "1 class folder"):
            sets.from_zip(tmp_path / "p.zip")


def test_a_table_of_contents_with_a_million_entries_is_refused_before_it_is_believed(sets, tmp_path, monkeypatch):
    entry = archive.ENTRY + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"x"
    count = 300_000                                                        # zipfile would make an object of each: some hundred megabytes
    (tmp_path / "p.zip").write_bytes(entry * count + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, 1, 1, len(entry) * count, 0, 0))
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", lambda _: pytest.fail("believed"))
    with pytest.raises(DataError, match="more than 1,160 files"):
        sets.from_zip(tmp_path / "p.zip")


def test_entries_are_counted_wherever_they_lie_in_the_file(tmp_path):
    for before in range(2**20 - 5, 2**20 + 2):                              # around the end of what is read at a time
        (tmp_path / "p.zip").write_bytes(bytes(before) + archive.ENTRY + bytes(100) + archive.ENTRY)
        with pytest.raises(DataError, match="more than 1 files"):
            archive.zip_files(tmp_path / "p.zip", most=1)


def test_the_room_is_looked_at_while_a_zip_is_read(sets, tmp_path):
    """Drafts of others count: ten uploads at once do not take ten times the place."""
    upload = packed(tmp_path / "p.zip", members(2))
    sets.home.mkdir()
    (sets.home / ".other.tmp").write_bytes(bytes(sets.max_bytes))
    told = []
    with pytest.raises(DataError, match="is full"):
        sets.from_zip(upload, progress=lambda *news: told.append(news))
    assert len(told) == 1


@pytest.mark.parametrize("content",
                         [b"", b"PK\5\6" + bytes(18), b"not a zip", b"PK\3\4" + bytes(500), b"Rar!\x1a\x07\0", b"\x1f\x8b" + bytes(50)])
def test_what_is_no_zip_is_refused_in_words(sets, tmp_path, content):
    (tmp_path / "p.zip").write_bytes(content)
    with pytest.raises(DataError, match="p.zip"):
        sets.from_zip(tmp_path / "p.zip")


def test_a_zip_cut_or_changed_anywhere_is_a_set_or_a_sentence(sets, tmp_path):
    whole = packed(tmp_path / "p.zip", members(2)).read_bytes()
    random = np.random.default_rng(3)
    for _ in range(150):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            content[place] = random.integers(0, 256)
        (tmp_path / "p.zip").write_bytes(content[: len(whole) - random.integers(0, 2) * random.integers(0, 200)])
        try:
            sets.delete(sets.from_zip(tmp_path / "p.zip").id)
        except DataError as refusal:
            assert "\n" not in str(refusal)
    assert files(sets) == []


def test_a_zip_that_takes_too_long_is_given_up(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_SECONDS", -1)
    with pytest.raises(DataError, match="took more than"):
        sets.from_zip(packed(tmp_path / "p.zip", members(2)))
    assert files(sets) == []


def test_large_photos_are_kept_small_upright_and_without_what_they_tell(sets):
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "the maker of this phone"
    set_id = sets.create("phone")
    sets.add(set_id, "cat", picture_bytes(coloured("green", 1, (900, 1200)), "JPEG", exif=exif))
    sets.add(set_id, "cat", picture_bytes(coloured("red", 1, (10, 1500))))
    sets.add(set_id, "cat", picture_bytes(coloured("red", 2, (300, 300))))
    with zipfile.ZipFile(sets.path(set_id)) as kept:
        content = [kept.read(name) for name in kept.namelist()]
    assert [Image.open(io.BytesIO(c)).size for c in content] == [(256, 341), (1024, 7), (256, 256)]
    assert b"maker" not in b"".join(content)


def test_pictures_are_collected_shown_dropped_and_renamed(sets):
    set_id = sets.create("mine")
    assert sets.get(set_id).classes == {} and sets.get(set_id).title == "mine"
    for name, seeds in (("cat", (1, 2, 3)), ("dog", (4, 5)), (" CAT ", (6,))):
        for seed in seeds:
            made = sets.add(set_id, name, square("red", seed))
    assert made.classes == {"cat": 4, "dog": 2} and made.pictures == 6
    shown = sets.thumbnails(set_id, "cat", limit=2)
    assert [np.array_equal(np.asarray(image), np.asarray(coloured("red", seed, (6, 6))))
            for image, seed in zip(shown, (1, 2))] == [True, True]
    assert sets.drop(set_id, "cat", 1).classes == {"cat": 3, "dog": 2}
    assert np.array_equal(np.asarray(sets.thumbnails(set_id, "cat")[1]), np.asarray(coloured("red", 3, (6, 6))))
    assert sets.rename(set_id, "dog", "a/wolf\u202e").classes == {"a-wolf": 2, "cat": 3}
    assert sets.rename(set_id, "cat", "Cat").classes == {"Cat": 3, "a-wolf": 2}
    assert sets.entitle(set_id, "ours\n" * 30).title == ("ours " * 12).strip()
    assert len(data.load(sets.path(set_id), size=(6, 6)).train) == 5
    assert sets.add(set_id, "cow", square("red", 2)).classes["cow"] == 1    # dropped, so it may come again
    path = sets.path(set_id)
    sets.delete(set_id)
    assert files(sets) == []
    with pytest.raises(DataError, match="^this set of pictures is no longer here"):
        data.load(path)


@pytest.mark.parametrize(("change", "said"), [
    (lambda s, i: s.add(i, "cat", b"hello"), "not a picture"),
    (lambda s, i: s.add(i, "dog", square("red", 1)), "is in the class 'cat' already"),
    (lambda s, i: s.add(i, " \u200b", square("red", 9)), "a class needs a name"), (lambda s, i: s.drop(i, "cat", 1), "no picture 1"),
    (lambda s, i: s.drop(i, "cow", 0), "no picture 0"), (lambda s, i: s.drop(i, "cat", -1), "no picture"),
    (lambda s, i: s.drop(i, "cat", "0"), "no picture"),
    (lambda s, i: s.rename(i, "cow", "cat"), "no such class"), (lambda s, i: s.rename(i, "cat", "DOG"), "another class"),
])
def test_a_change_that_cannot_be_is_refused_and_the_set_stays(sets, change, said):
    set_id = sets.create()
    sets.add(set_id, "cat", square("red", 1))
    before = sets.add(set_id, "dog", square("red", 2))
    with pytest.raises((DataError, PictureError), match=said):
        change(sets, set_id)
    assert sets.get(set_id) == before and files(sets) == [f"{set_id}.zip"]


@pytest.mark.parametrize("set_id", ["", "x", "0" * 32, "../" + "0" * 29, None, 7, "0" * 31 + "\n", ["0" * 32]])
def test_an_id_that_is_none_is_one_sentence_everywhere(sets, set_id, tmp_path):
    (tmp_path / f"{'0' * 29}.zip").write_bytes(b"")
    for ask in (sets.get, sets.path, sets.delete, lambda i: sets.thumbnails(i, "a"), lambda i: sets.add(i, "a", square()),
                lambda i: sets.drop(i, "a", 0),
                lambda i: sets.rename(i, "a", "b"), lambda i: sets.entitle(i, "a")):
        with pytest.raises(DataError, match="no such set"):
            ask(set_id)


def test_the_limits_of_pictures_and_classes_hold_for_collecting_too(sets, monkeypatch):
    monkeypatch.setattr(picturesets, "MAX_CLASSES", 2)
    set_id = sets.create()
    for seed in range(40):
        if seed == 3:
            with pytest.raises(DataError, match="2 classes, and at most 2"):
                sets.add(set_id, "third", square("red", 99))
        sets.add(set_id, "ab"[seed % 2], square("red", seed))
    with pytest.raises(DataError, match="40 pictures, and at most 40"):
        sets.add(set_id, "a", square("red", 98))


def test_all_sets_together_take_no_more_than_their_place_and_one_that_is_full_can_be_emptied(tmp_path):
    sets = Sets(tmp_path / "sets", max_pictures=1000, max_bytes=4 * picturesets.LEAST)
    kept = [sets.create() for _ in range(3)]
    sets.add(kept[0], "a", square())
    for refused in (sets.create,
                    lambda: sets.from_zip(packed(tmp_path / "p.zip",
                                                 members(2) | {f"red/{i}.png": square("red", i, (60, 60)) for i in range(40)}))):
        kept += [sets.create()] if len(kept) < 4 and refused == sets.create else []
        with pytest.raises(DataError, match="is full"):
            refused()
    assert sets.drop(kept[0], "a", 0).pictures == 0
    sets.delete(kept.pop())
    assert len(files(sets)) == 3


# ---- near-copies, and what one browser may take -----------------------------------------------------------------------------


def scene(seed: int, size: int = 90, **changes) -> Image.Image:
    """A picture with light and dark places, as photos have; each seed another one."""
    rough = np.random.default_rng(seed).integers(20, 235, (5, 5, 3), dtype=np.uint8)
    return Image.fromarray(rough).resize((size, size), Image.Resampling.BICUBIC)


NEARLY = {"saved again": lambda image: Image.open(io.BytesIO(picture_bytes(image, "JPEG", quality=60))),
          "smaller": lambda image: image.resize((50, 50)),
          "brighter": lambda image: image.point(lambda v: min(255, v + 12)),
          "turned a little": lambda image: image.rotate(1, Image.Resampling.BICUBIC)}


def test_pictures_that_are_nearly_the_same_are_counted_wherever_they_lie(sets, tmp_path):
    content = {f"{'ab'[i % 2]}/{i}.png": picture_bytes(scene(i)) for i in range(12)}
    assert sets.from_zip(packed(tmp_path / "p.zip", content)).alike == 0
    near = {f"{'ba'[i % 2]}/near{i}.png": picture_bytes(change(scene(i))) for i, change in enumerate(NEARLY.values())}
    made = sets.from_zip(packed(tmp_path / "p.zip", {**content, **near}))
    assert made.alike == len(NEARLY) and made.duplicates_count == 0
    split = {f"train/{name}": value for name, value in content.items()} | {f"test/{name}": value for name, value in near.items()}
    assert sets.from_zip(packed(tmp_path / "p.zip", split)).alike == len(NEARLY)


@pytest.mark.parametrize("nearly", NEARLY.values(), ids=NEARLY)
def test_a_near_copy_that_is_added_counts_until_it_or_the_other_is_gone(sets, nearly):
    set_id = sets.create()
    for seed in range(4):
        made = sets.add(set_id, "a", picture_bytes(scene(seed)))
    assert made.alike == 0
    assert sets.add(set_id, "b", picture_bytes(nearly(scene(1)))).alike == 1
    assert sets.rename(set_id, "b", "c").alike == 1 and sets.entitle(set_id, "x").alike == 1
    assert sets.drop(set_id, "a", 0).alike == 1                             # another one
    assert sets.drop(set_id, "a", 0).alike == 0                             # the one it was a copy of


def test_pictures_of_one_burst_count_however_different_they_look(sets):
    set_id = sets.create()
    assert sets.add(set_id, "a", picture_bytes(scene(1))).alike == 0
    assert sets.add(set_id, "a", picture_bytes(scene(2)), together=True).alike == 1
    assert sets.add(set_id, "a", picture_bytes(scene(3)), together=True).alike == 2
    assert sets.drop(set_id, "a", 0).alike == 2 and sets.rename(set_id, "a", "b").alike == 2


def test_plain_pictures_and_noise_are_no_near_copies_and_many_are_compared_in_parts():
    noise = np.random.default_rng(1).integers(0, 256, (1200, 64), dtype=np.uint8)
    noise[700] = noise[20] + (noise[20] < 255)
    noise[1100], noise[1101] = 90, 91                                       # even grey: nothing to tell them by
    assert unpacking.near_copies(noise).nonzero()[0].tolist() == [700]
    assert unpacking.near_copies(noise, since=650).nonzero()[0].tolist() == [50] and len(unpacking.near_copies(noise[:0])) == 0


def test_one_browsers_sets_take_no_more_than_its_share_and_leave_the_rest_to_others(tmp_path):
    sets = Sets(tmp_path / "sets", max_pictures=1000, max_bytes=20 * picturesets.LEAST)
    share = {"owner": "0a" * 4, "most": 4 * picturesets.LEAST}
    large = packed(tmp_path / "p.zip",
                   {f"{name}/{i}.png": square("red", 100 * len(name) + i, (60, 60)) for name in ("red", "green") for i in range(20)})
    kept = [sets.create(**share) for _ in range(3)]
    assert all(set_id.startswith("0a0a0a0a") and len(set_id) == 32 for set_id in kept) and len(set(kept)) == 3
    for seed in range(3):
        sets.add(kept[0], "a", square("red", seed), most=share["most"])
    for grow in (lambda: sets.from_zip(large, **share), lambda: [sets.create(**share) for _ in range(2)]):
        with pytest.raises(DataError, match="one browser's sets may take"):
            grow()
    with pytest.raises(DataError, match="one browser's sets may take"):
        sets.add(kept[0], "a", square("red", 9), most=share["most"])
    assert sets.from_zip(large, owner="0b" * 4, most=8 * picturesets.LEAST).pictures == 40             # others have room
    assert sets.drop(kept[0], "a", 0).pictures == 2                         # and what is full can be emptied
    sets.delete(kept[1])
    sets.add(kept[0], "a", square("red", 9), most=share["most"])


def test_a_full_disk_is_one_sentence_and_the_set_stays_as_it_was(sets, monkeypatch, tmp_path):
    set_id, upload = sets.create(), packed(tmp_path / "p.zip", members(2))
    before = sets.add(set_id, "cat", square("red", 1))

    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    for change in (lambda: sets.add(set_id, "cat", square("red", 2)), lambda: sets.from_zip(upload),
                   lambda: sets.rename(set_id, "cat", "dog")):
        with pytest.raises(DataError, match="disk is full") as refusal:
            change()
        assert str(tmp_path) not in str(refusal.value)
    assert sets.get(set_id) == before and files(sets) == [f"{set_id}.zip"]


def test_a_damaged_set_is_one_sentence(sets):
    set_id = sets.create()
    for content in (b"", b"PK", b"PK\5\6" + bytes(18)):
        (sets.home / f"{set_id}.zip").write_bytes(content)
        for ask in (sets.get, lambda i: sets.entitle(i, "new")):
            with pytest.raises(DataError, match="damaged"):
                ask(set_id)


def test_sets_that_nobody_uses_are_deleted_and_those_in_use_are_not(sets):
    idle, used, now = sets.create(), sets.create(), time.time()
    for set_id in (idle, used):
        os.utime(sets.home / f"{set_id}.zip", (now - 200, now - 200))
    version = os.stat(sets.home / f"{used}.zip").st_mtime_ns
    assert sets.path(used).stat().st_mtime_ns == version                   # so that what was decoded of it is still found
    (sets.home / ".old.tmp").write_bytes(b"")
    os.utime(sets.home / ".old.tmp", (now - 7200, now - 7200))
    (sets.home / ".new.tmp").write_bytes(b"")
    sets.tidy()
    assert files(sets) == sorted([".new.tmp", f"{used}.zip"])
    Sets(sets.home, max_pictures=9, max_bytes=9, keep_seconds=0).tidy()
    assert files(sets) == sorted([".new.tmp", f"{used}.zip"])


def test_many_hands_collect_into_one_set_at_once(sets):
    """Two threads here and another process: no picture is lost, and whoever reads meanwhile sees a whole set."""
    set_id = sets.create()
    content = {start: [square("red", seed) for seed in range(start, start + 12)] for start in (0, 12, 24)}

    def add(start: int) -> None:
        for number, picture in enumerate(content[start]):
            sets.add(set_id, f"class {number % 3}", picture)

    program = ("import sys, pickle; from pathlib import Path; from vitdemo.picturesets import Sets\n"
               "home, set_id, content = pickle.load(sys.stdin.buffer)\n"
               "for i, picture in enumerate(content): Sets(home, max_pictures=40, max_bytes=10**8).add(set_id, f'class {i % 3}', picture)")
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, cwd=Path(__file__).resolve().parent.parent)
    pickle.dump((sets.home, set_id, content[24]), other.stdin)
    other.stdin.close()
    hands = [threading.Thread(target=add, args=(start,)) for start in (0, 12)]
    for hand in hands:
        hand.start()
    counts = [0]
    while other.poll() is None or any(hand.is_alive() for hand in hands):
        counts.append(sets.get(set_id).pictures)
        time.sleep(0.01)
    assert other.returncode == 0 and counts == sorted(counts) and sets.get(set_id).classes == {f"class {i}": 12 for i in range(3)}


def test_a_class_name_is_never_a_path_and_holds_nothing_invisible():
    for name, kept in (("cat", "cat"), ("../../etc", "etc"), ("a\\b/c", "a-b-c"), ("  two\t words\n", "two words"),
                       ("\u202ecat\u200b", "cat"), (".hidden", "hidden"),
                       ("__MACOSX", "MACOSX"), ("Ba\u0308ume", "Bäume"), ("猫", "猫"), ("x" * 99, "x" * 40), ("<b>cat</b>", "<b>cat<-b>"),
                       ("cat\ud800", "cat")):
        assert unpacking.class_name(name) == kept

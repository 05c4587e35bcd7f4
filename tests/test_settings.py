"""What the owner may switch: defaults at home and on a public host, and values that make no sense."""

import inspect
import re
from pathlib import Path

import pytest

from vitdemo import settings


def test_a_public_host_gets_smaller_limits_than_a_machine_of_ones_own():
    own, public = settings.read({}), settings.read({"SPACE_ID": "somebody/vitdemo"})
    assert (own.max_pictures, own.sets_megabytes, own.upload_megabytes, own.runs_at_once) == (20_000, 4000, 2000, 1)
    assert (public.max_pictures, public.sets_megabytes, public.upload_megabytes, public.runs_at_once) == (2000, 1000, 20, 1)
    assert (own.models, own.hub, own.models_megabytes) == (("all",), True, 4000)
    assert (public.models, public.hub, public.models_megabytes) == (("small",), False, 4000)


def test_the_owner_says_which_published_models_may_be_asked_for_but_never_opens_a_public_host_to_all_of_a_hub():
    def said(**more):
        read = settings.read({f"VITDEMO_{name}": value for name, value in more.items() if name != "space"} | ({"SPACE_ID": "a/b"} if "space" in more else {}))
        return read.models, read.hub

    assert said(MODELS="none") == ((), True) and said(MODELS=" dino-s16, DEIT-ti16,") == (("dino-s16", "deit-ti16"), True)
    assert said(MODELS="all", HUB="1", space=True) == (("all",), False) and said(HUB="0") == (("all",), False)
    assert settings.read({"VITDEMO_MODELS_MB": "700"}).models_megabytes == 700
    assert (settings.read({}).heads, settings.read({"VITDEMO_HEADS": "6"}).heads) == (0, 6)


def test_models_work_on_the_first_device_there_is_or_on_the_one_the_owner_names(monkeypatch):
    import torch

    for cuda, mps, first in ((True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: mps)
        assert settings.device({}) == settings.device({"VITDEMO_DEVICE": "auto"}) == first and settings.device({"VITDEMO_DEVICE": "cpu"}) == "cpu"
    with pytest.raises(ValueError, match="VITDEMO_DEVICE asks for 'cuda', which this machine"):
        settings.device({"VITDEMO_DEVICE": "cuda"})
    with pytest.raises(ValueError, match="VITDEMO_DEVICE must be auto, cuda, mps, cpu, not 'tpu'"):
        settings.device({"VITDEMO_DEVICE": "tpu"})


def test_every_limit_can_be_set_and_own_sets_live_beside_the_runs():
    read = settings.read({"VITDEMO_MAX_PICTURES": "50", "VITDEMO_SETS_MB": "7", "VITDEMO_UPLOAD_MB": "3", "VITDEMO_RUNS_AT_ONCE": "2", "VITDEMO_RUNS": "here"})
    assert (read.max_pictures, read.sets_megabytes, read.upload_megabytes, read.runs_at_once) == (50, 7, 3, 2)
    assert read.sets_folder == Path("here", "sets")


def test_where_minutes_are_limited_for_others_a_run_has_a_clock_and_a_place():
    own, room, public = settings.read({}), settings.read({"VITDEMO_MAX_MINUTES": "10"}), settings.read({"SPACE_ID": "somebody/vitdemo"})
    assert (own.clocked, own.most_seconds, own.runs_megabytes) == (False, 0, 0)
    assert (room.clocked, room.most_seconds) == (True, 2100)
    assert (public.clocked, public.most_seconds, public.runs_megabytes) == (True, 840, 8000)


@pytest.mark.parametrize(("name", "value"), [("VITDEMO_MAX_PICTURES", "1"), ("VITDEMO_SETS_MB", "0"), ("VITDEMO_RUNS_AT_ONCE", "0"),
                                             ("VITDEMO_RUNS_AT_ONCE", "nan"), ("VITDEMO_UPLOAD_MB", "much"), ("VITDEMO_MODELS_MB", "0"), ("VITDEMO_HUB", "yes")])
def test_a_value_that_makes_no_sense_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number"):
        settings.read({name: value})


SAFE = {"public": True, "zero_gpu": False, "password": "", "root_path": "", "checkpoint": None, "data_folder": None, "heads": 0, "training": True, "max_minutes": 3, "runs_at_once": 1,
        "queue": 8, "upload_megabytes": 20, "uploads_megabytes": 1000, "models": ("small",), "hub": False, "megapixels": 40.0, "models_megabytes": 4000, "max_pictures": 2000, "sets_megabytes": 1000,
        "runs_megabytes": 8000, "keep_hours": 6}


def test_on_a_space_every_setting_has_a_bound_that_was_thought_about():
    read = vars(settings.read({"SPACE_ID": "somebody/vitdemo"}))
    assert {name: value for name, value in read.items() if not name.endswith(("cache_folder", "runs_folder"))} == SAFE


def test_the_readme_s_table_names_every_variable_and_the_program_reads_no_other():
    source, readme = inspect.getsource(settings), (Path(settings.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    table = set(re.findall(r"`(VITDEMO_[A-Z_]+)`", readme[readme.index("| variable | meaning |"):]))
    assert table == set(re.findall(r"VITDEMO_[A-Z_]+", source))


def test_uploads_have_a_bound_and_a_password_is_taken_as_it_is():
    read = settings.read({"VITDEMO_UPLOADS_MB": "70", "VITDEMO_PASSWORD": " two  words "})
    assert (read.uploads_megabytes, read.password) == (70, " two  words ")
    with pytest.raises(ValueError, match="VITDEMO_UPLOADS_MB must be a number"):
        settings.read({"VITDEMO_UPLOADS_MB": "0"})


def test_the_owner_says_how_large_a_picture_may_be(monkeypatch):
    import io

    from PIL import Image

    from vitdemo.images import PictureError, open_picture

    picture = io.BytesIO()
    Image.new("RGB", (500, 400)).save(picture, "PNG")
    assert settings.read({}).megapixels == 40 and settings.most_pixels({"VITDEMO_MEGAPIXELS": "0.2"}) == 200_000 and open_picture(picture.getvalue())
    monkeypatch.setenv("VITDEMO_MEGAPIXELS", "0.1")
    with pytest.raises(PictureError, match="at most 0.1 megapixels"):
        open_picture(picture.getvalue())
    with pytest.raises(ValueError, match="VITDEMO_MEGAPIXELS must be a number from 0.1 to 170"):
        settings.read({"VITDEMO_MEGAPIXELS": "1000"})


@pytest.mark.parametrize(("cores", "runs", "threads"), [(1, 1, 1), (2, 1, 1), (4, 1, 3), (4, 2, 1), (8, 2, 3), (8, 64, 1)])
def test_runs_that_train_at_the_same_time_share_the_cores_but_one(cores, runs, threads, monkeypatch):
    monkeypatch.setattr(settings, "cores", lambda: cores)
    assert settings.training_threads(runs) == threads


@pytest.mark.parametrize(("files", "cores"), [
    ({}, 16),
    ({"sys/fs/cgroup/cpu.max": "max 100000"}, 16),
    ({"sys/fs/cgroup/cpu.max": "200000 100000"}, 2),                        # no word in proc: the container's own root
    ({"sys/fs/cgroup/cpu.max": "150000 100000", "proc/self/cgroup": "0::/"}, 1),                # a second thread would wait half of the time
    ({"sys/fs/cgroup/cpu.max": "50000 100000", "proc/self/cgroup": "0::/"}, 1),
    ({"sys/fs/cgroup/a.slice/cpu.max": "300000 100000", "sys/fs/cgroup/a.slice/run/cpu.max": "max 100000", "proc/self/cgroup": "0::/a.slice/run"}, 3),
    ({"sys/fs/cgroup/a.slice/cpu.max": "800000 100000", "sys/fs/cgroup/a.slice/run/cpu.max": "400000 100000", "proc/self/cgroup": "0::/a.slice/run"}, 4),
    ({"sys/fs/cgroup/other/cpu.max": "100000 100000", "proc/self/cgroup": "0::/a.slice"}, 16),
    ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "proc/self/cgroup": "3:memory:/x\n1:cpu,cpuacct:/\n"}, 2),
    ({"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "500000", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000", "proc/self/cgroup": "1:cpu:/x\n0::/\n"}, 5),
    ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000", "proc/self/cgroup": "1:cpu:/"}, 16),
    ({"sys/fs/cgroup/cpu.max": "200000 100000", "proc/self/cgroup": ""}, 2),
    ({"sys/fs/cgroup/cpu.max": "200000 100000", "proc/self/cgroup": b"0::/docker/caf\xe9"}, 2),
    ({"sys/fs/cgroup/cpu.max": "100000 0"}, 16),
    ({"sys/fs/cgroup/cpu.max": "nonsense"}, 16)])
def test_the_cores_are_those_of_the_containers_quota_and_not_the_hosts(files, cores, tmp_path, monkeypatch):
    monkeypatch.setattr(settings.os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert settings.cores(tmp_path) == cores

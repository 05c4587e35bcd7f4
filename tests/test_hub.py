"""Getting published weights from a hub on this computer: whole or not at all, gone on with, once for all, and in words when it fails."""

import contextlib
import errno
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from hub_stand_in import HubStandIn

from vitdemo import hub, transfer, zoo
from vitdemo.hub import HubError
from vitdemo.zoo import Hub, Torchvision

WEIGHTS = bytes(range(256)) * 1200                                          # 307 kB
OTHERS = WEIGHTS[::-1]
CONFIG = b'{"model_type": "vit"}'
REPO = "someone/vit"
FILE = "model.safetensors"
VIT_B32 = Torchvision("ViT_B_32_Weights.IMAGENET1K_V1")


@pytest.fixture
def stand(monkeypatch, tmp_path):
    """A hub with one repository, which this process uses with empty caches."""
    with HubStandIn() as standing:
        standing.put(REPO, {FILE: WEIGHTS, "config.json": CONFIG, "preprocessor_config.json": b"{}", "README.md": b"hello"})
        standing.settle(monkeypatch, tmp_path)
        yield standing


def state_dict() -> bytes:
    buffer = io.BytesIO()
    torch.save({"weight": torch.arange(3.0)}, buffer)
    return buffer.getvalue()


def parts(tmp_path) -> list[int]:
    """The sizes of files that have not arrived whole; a small one may do so meanwhile."""
    sizes = []
    for path in tmp_path.rglob("*" + hub.PART):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sizes


def clean(error, *paths) -> bool:
    """Whether a message is one sentence without an address, a signature or a path."""
    said = str(error.value)
    return not any(word in said for word in ("http", "127.0.0.1", "localhost", "Signature", "secret", "\n", "Traceback", *map(str, paths))) and ". " not in said


def until(true, seconds=60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Enough(Exception):
    pass


def ended(where, *, when) -> None:
    """Begin to fetch, and end it when `when(done, total)`."""
    def told(done, total):
        if when(done, total):
            raise Enough

    with pytest.raises(Enough):
        hub.fetch(where, told=told)


def test_a_repository_is_fetched_into_the_librarys_own_cache_and_found_there_from_then_on(stand, tmp_path):
    from huggingface_hub import hf_hub_download, scan_cache_dir

    where, told = Hub(REPO), []
    assert hub.cached(where) is None
    path = hub.fetch(where, told=lambda *news: told.append(news))
    assert path.read_bytes() == WEIGHTS and (path.parent / "config.json").read_bytes() == CONFIG and (path.parent / "preprocessor_config.json").is_file()
    assert not (path.parent / "README.md").exists() and told[-1] == (len(WEIGHTS), len(WEIGHTS)) and parts(tmp_path) == []
    before = len(stand.asked)
    assert hub.cached(where) == path == hub.fetch(where) and len(stand.asked) == before
    assert hf_hub_download(REPO, FILE) == str(path) and len(stand.gets(FILE)) == 1              # a HEAD, to see whether it is the newest
    assert hf_hub_download(REPO, "config.json", local_files_only=True) == str(path.parent / "config.json")
    (seen,) = scan_cache_dir(tmp_path / "huggingface" / "hub").repos
    (revision,) = seen.revisions
    assert seen.repo_id == REPO and revision.refs == {"main"}
    assert {file.file_name for file in revision.files} == {FILE, "config.json", "preprocessor_config.json"}


def test_what_the_library_has_fetched_is_found_without_a_question(stand):
    from huggingface_hub import hf_hub_download

    path = hf_hub_download(REPO, FILE)
    before = len(stand.asked)
    assert hub.cached(Hub(REPO)) == Path(path) == hub.fetch(Hub(REPO)) and len(stand.asked) == before
    assert hub.cached(Hub(REPO, revision=stand.repos[REPO][0])) == Path(path) and hub.cached(Hub(REPO, revision="other")) is None


def test_a_link_to_nothing_an_empty_file_and_a_part_are_not_taken_for_weights(stand, tmp_path):
    path = hub.fetch(Hub(REPO))
    blob = path.resolve()
    blob.rename(blob.with_name(blob.name + ".incomplete"))
    assert path.is_symlink() and hub.cached(Hub(REPO)) is None
    assert hub.fetch(Hub(REPO)) == path and path.read_bytes() == WEIGHTS and len(stand.gets(FILE)) == 2
    blob.write_bytes(b"")
    assert hub.cached(Hub(REPO)) is None
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS
    assert hub.cached(Hub("../../etc")) is None and hub.cached(Hub("a/b/c")) is None


def test_a_newer_commit_with_the_same_weights_downloads_nothing_but_what_changed(stand, tmp_path):
    old = hub.fetch(Hub(REPO))
    commit = stand.put(REPO, {FILE: WEIGHTS, "config.json": b"{}"})
    (tmp_path / "huggingface" / "hub" / "models--someone--vit" / "refs" / "main").unlink()      # as if it had been fetched by its commit
    new = hub.fetch(Hub(REPO))
    assert new.parent.name == commit != old.parent.name and new.resolve() == old.resolve() and len(stand.gets(FILE)) == 1
    assert (new.parent / "config.json").read_bytes() == b"{}" and (old.parent / "config.json").read_bytes() == CONFIG


def test_a_download_that_was_ended_goes_on_where_it_stopped(stand, tmp_path):
    stand.script[FILE] = ["hang", "good"]
    ended(Hub(REPO), when=lambda done, total: done)                         # long before the server says more
    half = len(WEIGHTS) // 2
    assert parts(tmp_path) == [half] and hub.cached(Hub(REPO)) is None
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS
    assert [headers.get("range") for headers in stand.gets(FILE)] == [None, f"bytes={half}-"] and parts(tmp_path) == []


def test_nothing_is_written_after_the_end(stand, tmp_path):
    stand.script[FILE], stand.seconds = ["slow"], 4.0
    ended(Hub(REPO), when=lambda done, total: done > 20_000)
    size = parts(tmp_path)
    until(lambda: all(thread.name != "download" for thread in threading.enumerate()))           # the one that received was still at work
    assert parts(tmp_path) == size and 20_000 < size[0] < len(WEIGHTS)


def test_a_connection_that_breaks_is_told_and_the_next_try_goes_on(stand, tmp_path):
    stand.script[FILE] = ["cut", "good"]
    with pytest.raises(HubError, match="someone/vit could not be downloaded .it was cut off after 0.2 of 0.3 MB.: .*goes on where it stopped") as refusal:
        hub.fetch(Hub(REPO))
    assert clean(refusal, tmp_path) and hub.cached(Hub(REPO)) is None
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS and len(stand.gets(FILE)) == 2


def test_a_connection_that_breaks_again_and_again_is_taken_up_again_as_long_as_it_brings_us_on(stand, monkeypatch):
    monkeypatch.setattr(hub, "WORTH", 10_000)
    stand.script[FILE] = ["cut", "cut", "cut", "good"]
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS and len(stand.gets(FILE)) == 4
    stand.put("another/vit", {FILE: OTHERS})
    stand.script[FILE] = ["cut"]
    with pytest.raises(HubError, match="cut off"):
        hub.fetch(Hub("another/vit"))
    assert len(stand.gets(FILE)) < 12


def test_a_server_that_cannot_send_parts_is_taken_at_the_beginning_again(stand, tmp_path):
    stand.script[FILE] = ["cut", "whole"]
    with pytest.raises(HubError):
        hub.fetch(Hub(REPO))
    told = []
    assert hub.fetch(Hub(REPO), told=lambda *news: told.append(news)).read_bytes() == WEIGHTS
    assert "range" in stand.gets(FILE)[1] and told[-1] == (len(WEIGHTS), len(WEIGHTS))


def test_wrong_bytes_are_removed_and_told_also_where_the_beginning_was_right(stand, tmp_path):
    stand.script[FILE] = ["wrong", "cut", "wrong", "good"]
    with pytest.raises(HubError, match="could not be downloaded .something else arrived") as refusal:
        hub.fetch(Hub(REPO))
    assert clean(refusal, tmp_path) and parts(tmp_path) == [] and hub.cached(Hub(REPO)) is None
    with pytest.raises(HubError, match="cut off"):
        hub.fetch(Hub(REPO))
    with pytest.raises(HubError, match="something else arrived"):
        hub.fetch(Hub(REPO))
    assert parts(tmp_path) == [] and hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS


def test_a_page_in_place_of_the_file_spoils_nothing(stand, tmp_path):
    stand.script[FILE] = ["cut", "login", "good"]
    with pytest.raises(HubError):
        hub.fetch(Hub(REPO))
    with pytest.raises(HubError, match="19 bytes are offered instead of 307,200, perhaps a page that asks to log in"):
        hub.fetch(Hub(REPO))
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS and "range" in stand.gets(FILE)[2]


@pytest.mark.parametrize(("how", "said"), [(404, "answered 404"), (503, "answered 503"), (403, "answered 403")])
def test_a_store_that_refuses_is_told_with_its_number(stand, tmp_path, how, said):
    stand.script[FILE] = [how]
    with pytest.raises(HubError, match=f"someone/vit could not be downloaded .the other side {said}") as refusal:
        hub.fetch(Hub(REPO))
    assert clean(refusal, tmp_path)


@pytest.mark.parametrize(("where", "said"), [
    (Hub("nobody/nothing"), "there is no repository nobody/nothing, or it is private.*HF_TOKEN"), (Hub("private/vit"), "or it is private.*HF_TOKEN"),
    (Hub("gated/vit"), "gated/vit asks for your consent.*HF_TOKEN"), (Hub(REPO, revision="v9"), "someone/vit has no revision 'v9'"),
    (Hub(REPO, file="other.safetensors"), "someone/vit has no file other.safetensors"), (Hub("big/vit"), "big/vit keeps its weights in several files"),
    (Hub("empty/vit"), "empty/vit has no weights that can be opened: neither model.safetensors nor pytorch_model.bin"),
    (Hub("a/b/c"), "'a/b/c' is not the name of a repository"), (Hub("../../etc"), "is not the name of a repository"), (Hub("user/na me"), "is not the name"),
    (Torchvision("ViT_B_16_Weights.NONE"), "torchvision has no weights called"), (Torchvision("x"), "torchvision has no weights called 'x'")])
def test_what_is_not_there_or_not_for_us_is_told_in_a_sentence(stand, tmp_path, where, said):
    stand.put("private/vit", {FILE: WEIGHTS}, state="private")
    stand.put("gated/vit", {FILE: WEIGHTS}, state="gated")
    stand.put("big/vit", {"model.safetensors.index.json": b"{}", "model-00001-of-00002.safetensors": WEIGHTS, "config.json": CONFIG})
    stand.put("empty/vit", {"config.json": CONFIG})
    with pytest.raises(HubError, match=said) as refusal:
        hub.fetch(where)
    assert clean(refusal, tmp_path) and isinstance(refusal.value, ValueError)


def test_a_token_reaches_the_hub_and_no_other_host(stand, monkeypatch):
    stand.put("private/vit", {FILE: WEIGHTS, "config.json": CONFIG}, state="private")
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert hub.fetch(Hub("private/vit")).read_bytes() == WEIGHTS
    assert all("authorization" not in headers for headers in stand.gets(FILE)) and stand.gets("config.json")[0]["authorization"] == "Bearer secret"
    assert stand.gets(FILE) and all(headers["authorization"] == "Bearer secret" for method, path, headers in stand.asked if "/resolve/" in path)


def test_a_redirect_to_another_host_takes_no_token_along(stand, tmp_path):
    stand.put(REPO, {FILE: WEIGHTS})
    transfer.receive(f"{stand.url}/{REPO}/resolve/main/{FILE}", tmp_path / "x", told=lambda *_: None, authorization="Bearer secret")
    assert (tmp_path / "x").read_bytes() == WEIGHTS and "authorization" not in stand.gets(FILE)[-1]
    assert stand.asked[0][2]["authorization"] == "Bearer secret"


def test_pickled_weights_are_fetched_where_there_are_no_others(stand):
    stand.put("old/vit", {"pytorch_model.bin": OTHERS, "config.json": CONFIG})
    path = hub.fetch(Hub("old/vit"))
    assert path.name == "pytorch_model.bin" and path.read_bytes() == OTHERS and (path.parent / "config.json").is_file()
    assert hub.cached(Hub("old/vit")) == path and hub.cached(Hub("old/vit", file="other.safetensors")) is None


def test_a_config_that_is_not_accepted_ends_it_before_the_weights_are_asked_for(stand):
    def accept(config):
        assert config.read_bytes() == CONFIG
        raise ValueError("no plain ViT")

    with pytest.raises(ValueError, match="no plain ViT"):
        hub.fetch(Hub(REPO), accept=accept)
    assert stand.gets(FILE) == [] and hub.cached(Hub(REPO)) is None


def test_no_network_is_one_sentence(stand, tmp_path, monkeypatch):
    from huggingface_hub import constants

    stand.close()
    with pytest.raises(HubError, match="someone/vit is not on this computer, and the hub cannot be reached .ConnectError.: check the network") as refusal:
        hub.fetch(Hub(REPO))
    assert clean(refusal, tmp_path)

    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://hub.invalid/{repo_id}/resolve/{revision}/{filename}")
    with pytest.raises(HubError, match="cannot be reached"):
        hub.fetch(Hub(REPO))
    with pytest.raises(HubError, match="ViT_B_32_Weights.IMAGENET1K_V1 could not be downloaded .no connection, gaierror.: check the network"):
        hub.fetch(VIT_B32)


def test_a_hub_that_does_not_answer_is_given_up_and_can_be_left_at_once(stand, monkeypatch):
    from vitdemo import huggingface

    silent = threading.Event()
    monkeypatch.setattr(huggingface, "about", lambda *_: silent.wait(10))
    ended(Hub(REPO), when=lambda done, total: True)
    monkeypatch.setattr(huggingface, "PATIENCE", 0.3)
    with pytest.raises(HubError, match="the hub has not answered for 0.3 seconds"):
        hub.fetch(Hub(REPO))
    silent.set()


def test_a_store_that_gives_nothing_is_given_up_and_what_came_is_kept(stand, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "LEAST_SECONDS", 0.5)
    stand.script[FILE] = ["hang", "good"]
    with pytest.raises(HubError, match="less than 64 kB arrived in 0.5 seconds.*goes on"):
        hub.fetch(Hub(REPO))
    assert parts(tmp_path) == [len(WEIGHTS) // 2] and hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS


def test_what_answers_in_place_of_a_hub_is_told_as_that(stand, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", stand.store + "/{repo_id}/{filename}?{revision}")
    with pytest.raises(HubError, match="what answered in place of the hub is none"):
        hub.fetch(Hub(REPO))


def test_offline_mode_gives_what_is_here_and_one_sentence_for_the_rest(stand, tmp_path, monkeypatch):
    from huggingface_hub import constants

    path = hub.fetch(Hub(REPO))
    before = len(stand.asked)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.cached(Hub(REPO)) == path == hub.fetch(Hub(REPO))
    with pytest.raises(HubError, match="other/vit is not on this computer, and HF_HUB_OFFLINE forbids to download it"):
        hub.fetch(Hub("other/vit"))
    assert len(stand.asked) == before


@pytest.mark.parametrize("where", [Hub(REPO), VIT_B32])
def test_a_disk_without_room_is_told_before_anything_is_written(stand, tmp_path, monkeypatch, where):
    import shutil

    stand.put_torchvision(monkeypatch, VIT_B32.weights, WEIGHTS)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 200_000))
    with pytest.raises(HubError, match="there is not enough room on the disk for .*0 MB more are needed, 0 MB are free") as refusal:
        hub.fetch(Hub(REPO) if where != VIT_B32 else where)
    assert clean(refusal, tmp_path) and parts(tmp_path) in ([], [0])


def test_a_disk_that_fills_up_and_a_folder_that_cannot_be_written_are_told(stand, tmp_path, monkeypatch):
    for number, said in ((errno.ENOSPC, "not enough room on the disk"), (errno.EACCES, "the cache's folder cannot be used, PermissionError")):
        def broken(*_, number=number):
            raise OSError(number, "as the system says it", str(tmp_path))

        with monkeypatch.context() as patch, pytest.raises(HubError, match=said) as refusal:
            patch.setattr(os, "fsync", broken)
            hub.fetch(Hub(REPO))
        assert clean(refusal, tmp_path) and hub.cached(Hub(REPO)) is None
    assert hub.fetch(Hub(REPO)).read_bytes() == WEIGHTS and len(stand.gets(FILE)) == 1          # all of it had arrived


def test_where_links_cannot_be_made_the_file_itself_stands_in_the_snapshot(stand, tmp_path, monkeypatch):
    def forbidden(*_):
        raise OSError("a privilege that Windows does not give")

    monkeypatch.setattr(Path, "symlink_to", forbidden)
    path = hub.fetch(Hub(REPO))
    assert not path.is_symlink() and path.read_bytes() == WEIGHTS and hub.cached(Hub(REPO)) == path
    assert [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size == len(WEIGHTS)] == [path]


@pytest.mark.parametrize("where", [Hub(REPO), VIT_B32])
def test_two_at_once_share_one_download_and_the_second_follows_it(stand, tmp_path, monkeypatch, where):
    name = stand.put_torchvision(monkeypatch, VIT_B32.weights, WEIGHTS) if where == VIT_B32 else FILE
    stand.script[name], stand.seconds = ["slow"], 1.2
    told, paths = ([], []), [None, None]

    def run(index):
        paths[index] = hub.fetch(where, told=lambda *news: told[index].append(news))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths[0] == paths[1] and paths[0].read_bytes() == WEIGHTS and len(stand.gets(name)) == 1
    assert sum(method == "HEAD" for method, _, _ in stand.asked) == (4 if where == Hub(REPO) else 0)             # three files, and the second's question
    for heard in told:
        assert len({done for done, total in heard if 0 < done < len(WEIGHTS)}) >= 2 and all(done <= total or not total for done, total in heard)


def test_waiting_for_another_ones_download_can_be_ended(stand, tmp_path):
    stand.script[FILE] = ["hang"]
    first = threading.Thread(target=lambda: pytest.raises(HubError, hub.fetch, Hub(REPO)))
    first.start()
    until(lambda: parts(tmp_path) == [len(WEIGHTS) // 2])
    ended(Hub(REPO), when=lambda done, total: done == len(WEIGHTS) // 2 and total == len(WEIGHTS))
    stand.go_on.set()
    first.join()
    assert len(stand.gets(FILE)) == 1


def test_torchvisions_weights_lie_where_torchvision_looks_for_them(stand, monkeypatch):
    from torchvision.models import get_weight

    name = stand.put_torchvision(monkeypatch, VIT_B32.weights, state_dict())
    assert hub.cached(VIT_B32) is None
    told = []
    path = hub.fetch(VIT_B32, told=lambda *news: told.append(news))
    assert path == Path(torch.hub.get_dir(), "checkpoints", name) and hub.cached(VIT_B32) == path and told[-1] == (len(state_dict()),) * 2
    stand.close()
    assert get_weight(VIT_B32.weights).get_state_dict(progress=False, check_hash=True)["weight"].tolist() == [0, 1, 2] and hub.fetch(VIT_B32) == path


def test_the_names_of_torchvisions_files_begin_with_their_models_names(stand):
    for entry in zoo.ENTRIES:
        if isinstance(entry.where, Torchvision):
            _, target, size = hub._published(entry.where)
            assert hub.cached(entry.where) is None and abs(size - 1e6 * entry.megabytes) < 2e6
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"something")
            assert hub.cached(entry.where) == target


def test_torchvisions_weights_are_checked_and_gone_on_with(stand, tmp_path, monkeypatch):
    name = stand.put_torchvision(monkeypatch, VIT_B32.weights, WEIGHTS)
    stand.script[name] = ["wrong", "cut", "good"]
    with pytest.raises(HubError, match=r"ViT_B_32_Weights.IMAGENET1K_V1 could not be downloaded .something else arrived"):
        hub.fetch(VIT_B32)
    assert parts(tmp_path) == []
    with pytest.raises(HubError, match="cut off"):
        hub.fetch(VIT_B32)
    assert hub.fetch(VIT_B32).read_bytes() == WEIGHTS and stand.gets(name)[-1]["range"] == f"bytes={len(WEIGHTS) // 2}-"


def command(stand, tmp_path, *words, **more) -> subprocess.Popen:
    """The command line in a process of its own, whose environment says where everything is."""
    return subprocess.Popen([sys.executable, "-m", "vitdemo.hub", *words], cwd=Path(hub.__file__).parent.parent, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=stand.environment(tmp_path, **more), preexec_fn=_listening if os.name != "nt" else None)


def _listening() -> None:
    """Ctrl-C counts, also where the tests themselves were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to one process there")
def test_the_command_goes_on_after_ctrl_c_and_obeys_its_environment(stand, tmp_path):
    stand.script[FILE] = ["hang", "good"]
    first = command(stand, tmp_path, REPO)
    until(lambda: parts(tmp_path) == [len(WEIGHTS) // 2])
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=90)
    assert first.returncode == 130 and "what has arrived is kept" in err and "Traceback" not in err
    out, err = command(stand, tmp_path, REPO).communicate(timeout=90)
    assert out.strip().endswith(FILE) and "0 of 0 MB" in out and len(stand.gets(FILE)) == 2
    offline = command(stand, tmp_path, REPO, "no/such", HF_HUB_OFFLINE="1")
    out, err = offline.communicate(timeout=90)
    assert offline.returncode == 1 and REPO in out and "no/such is not on this computer, and HF_HUB_OFFLINE" in err and "Traceback" not in err


def test_another_process_is_followed_and_when_it_is_killed_its_work_is_gone_on_with(stand, tmp_path):
    stand.script[FILE], half = ["hang", "good"], len(WEIGHTS) // 2
    other, followed = command(stand, tmp_path, REPO), []
    until(lambda: parts(tmp_path) == [half])

    def listen(done, total):
        if (done, total) == (half, len(WEIGHTS)) and len(stand.gets(FILE)) == 1:
            followed.append(done)
        if len(followed) > 2:
            other.kill()

    assert hub.fetch(Hub(REPO), told=listen).read_bytes() == WEIGHTS
    other.communicate()
    assert len(followed) > 2 and [headers.get("range") for headers in stand.gets(FILE)] == [None, f"bytes={half}-"]


def test_the_command_lists_what_there_is_and_refuses_what_there_is_not(stand, capsys):
    stand.put("timm/vit_small_patch16_224.dino", {FILE: WEIGHTS})
    assert hub.main(["dino-s16"]) == 0 and hub.main(["--list"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if " MB " in line}
    assert "here" in rows["dino-s16"] and "87 MB" in rows["dino-s16"] and "here" not in rows["torchvision-b16"]
    assert hub.main(["dino-s17"]) == 1 and "there is no model 'dino-s17': --list shows all" in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        hub.main([])
    assert usage.value.code == 2

"""Fetching the known sets from a server of our own: whole or not at all, one run at a time, ended at once, with words when it fails."""

import gzip
import hashlib
import http.server
import io
import pickle
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from vitdemo import data, downloads, transfer
from vitdemo.archive import DataError


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def cifar() -> tuple[bytes, dict[str, str]]:
    """A CIFAR-10 of 3 training pictures in each of 5 batches and 2 test pictures: the archive, and the sums of its files."""
    files = {f"data_batch_{i}": {"data": np.full((3, 3072), i, np.uint8), "labels": [0, 1, 1]} for i in range(1, 6)}
    files |= {"test_batch": {"data": np.full((2, 3072), 9, np.uint8), "labels": [1, 0]}, "batches.meta": {"label_names": ["cat", "dog"]}}
    buffer = io.BytesIO()
    sums = {}
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, values in files.items():
            content = pickle.dumps(values)
            sums[name] = md5(content)
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue(), sums


ARCHIVE, SUMS = cifar()


class Server(http.server.ThreadingHTTPServer):
    """Answers each request as its `script` says: the whole file, a part of it, an error, or nothing for a long time."""

    daemon_threads = True

    def __init__(self):
        self.files, self.script, self.asked, self.go_on = {}, [], [], threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        how = server.script.pop(0) if server.script else "whole"
        if how == "missing":
            self.send_error(404)
            return
        content = b"<html>please log in" if how == "login" else server.files[self.path.lstrip("/")]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content if how in ("whole", "login") else content[: len(content) // 2])
        self.wfile.flush()
        if how == "hang":
            server.go_on.wait(20)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server that has CIFAR-10, and a torchvision that looks for it there."""
    from torchvision import datasets

    serving = Server()
    serving.files["cifar-10-python.tar.gz"] = ARCHIVE
    threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{serving.server_port}/"
    monkeypatch.setattr(datasets.CIFAR10, "url", url + "cifar-10-python.tar.gz")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(ARCHIVE))
    monkeypatch.setattr(datasets.CIFAR10, "train_list", [[f"data_batch_{i}", SUMS[f"data_batch_{i}"]] for i in range(1, 6)])
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [["test_batch", SUMS["test_batch"]]])
    monkeypatch.setattr(datasets.CIFAR10, "meta", {"filename": "batches.meta", "key": "label_names", "md5": SUMS["batches.meta"]})
    monkeypatch.setattr(datasets.MNIST, "mirrors", [url + "first/", url])
    for name in ("VITDEMO_DATA", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VITDEMO_CACHE", str(tmp_path / "cache"))
    yield serving
    serving.go_on.set()
    serving.shutdown()
    serving.server_close()


def lying(tmp_path) -> list[str]:
    """What lies in the folder for downloads, but for the lock."""
    return sorted(path.name for path in (tmp_path / "cache" / "downloads").iterdir() if path.suffix != ".lock")


def cached(tmp_path) -> None:
    """Forget what was decoded, so that the download is read again."""
    for file in (tmp_path / "cache" / "data").glob("*"):
        file.unlink()


def test_a_set_is_fetched_once_and_only_its_files_stay(server, tmp_path):
    assert not data.is_local("cifar10")
    told = []
    dataset = data.load("cifar10", progress=lambda *news: told.append(news))
    assert dataset.classes == ("cat", "dog") and dataset.train.images[:, 0, 0, 0].tolist() == [i for i in range(1, 6) for _ in range(3)]
    assert dataset.test.labels.tolist() == [1, 0] and told and {what for what, _, _ in told} == {"megabytes downloaded"}
    assert server.asked == ["/cifar-10-python.tar.gz"] and lying(tmp_path) == ["cifar-10-batches-py"] and data.is_local("cifar10")
    cached(tmp_path)
    assert data.load("cifar10", size=(16, 16), channels=1).train.images.shape == (15, 1, 16, 16) and len(server.asked) == 1


def test_digits_come_from_the_second_address_when_the_first_fails(server, tmp_path, monkeypatch):
    from torchvision import datasets

    def idx(values: np.ndarray) -> bytes:
        return gzip.compress(bytes((0, 0, 8, values.ndim)) + b"".join(n.to_bytes(4, "big") for n in values.shape) + values.tobytes())

    for part, count in (("train", 4), ("t10k", 2)):
        server.files[f"{part}-images-idx3-ubyte.gz"] = idx(np.full((count, 28, 28), count, np.uint8))
        server.files[f"{part}-labels-idx1-ubyte.gz"] = idx(np.arange(count, dtype=np.uint8))
    names = [name for name, _ in datasets.MNIST.resources]
    monkeypatch.setattr(datasets.MNIST, "resources", [(name, md5(server.files[name])) for name in names])
    server.script = ["missing", "whole"] * 4
    dataset = data.load("mnist", size=(28, 28), channels=1)
    assert dataset.classes == tuple("0123456789") and dataset.train.labels.tolist() == [0, 1, 2, 3] and dataset.test.images.unique().tolist() == [2]
    assert data.load("mnist", size=(14, 14), channels=3).train.images.shape == (4, 3, 14, 14)
    assert server.asked == [path for name in names for path in (f"/first/{name}", f"/{name}")] and lying(tmp_path) == ["MNIST"]


@pytest.mark.parametrize(("how", "said"), [("missing", "answered 404"), ("half", "cut off after"), ("login", "log in")])
def test_a_download_that_fails_leaves_nothing_says_what_to_do_and_can_be_tried_again(server, tmp_path, how, said):
    server.script = [how]
    with pytest.raises(DataError, match=f"cifar10 could not be downloaded.*{said}.*cifar-10-python.tar.gz.*'downloads'.*VITDEMO_CACHE.*VITDEMO_DATA") as refusal:
        data.load("cifar10")
    assert lying(tmp_path) == [] and str(tmp_path) not in str(refusal.value) and "127.0.0.1" not in str(refusal.value)
    assert len(data.load("cifar10").train) == 15


def test_a_network_that_is_not_there_is_told_in_words(server, tmp_path, monkeypatch):
    from torchvision import datasets

    monkeypatch.setattr(datasets.CIFAR10, "url", "http://127.0.0.1:9/x")
    with pytest.raises(DataError, match="no connection"):
        data.load("cifar10")


def test_a_network_that_gives_nothing_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "LEAST_SECONDS", 0.5)
    server.script = ["hang"]
    with pytest.raises(DataError, match="less than 64 kB arrived"):         # the server itself would hang for good
        data.load("cifar10")
    assert lying(tmp_path) == []


def test_more_than_was_expected_is_not_taken(server, tmp_path):
    with pytest.raises(transfer.TransferError, match="more than the expected 0 MB"):
        transfer.receive(f"http://127.0.0.1:{server.server_port}/cifar-10-python.tar.gz", tmp_path / "x", most=100, told=lambda done, total: None)
    assert not (tmp_path / "x").exists()


def test_whoever_listens_can_end_a_download_that_hangs(server, tmp_path):
    server.script, asked_at = ["hang"], []

    def listen(*_):
        if server.asked:
            asked_at.append(time.monotonic())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.load("cifar10", progress=listen)
    assert asked_at and lying(tmp_path) == []
    assert len(data.load("cifar10").train) == 15                            # the lock is free again


def test_two_at_once_share_one_download_and_the_second_says_why_it_waits(server, tmp_path):
    told, results = [], []
    (tmp_path / "cache" / "downloads").mkdir(parents=True)
    held = FileLock(tmp_path / "cache" / "downloads" / "cifar10.lock")
    held.acquire()
    runs = [threading.Thread(target=lambda: results.append(len(data.load("cifar10", progress=lambda *news: told.append(news)).train))) for _ in range(2)]
    for run in runs:
        run.start()
    deadline = time.monotonic() + 20
    while not any("another run" in what for what, _, _ in told) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.asked == []
    held.release()
    for run in runs:
        run.join()
    assert results == [15, 15] and len(server.asked) == 1 and any("another run is fetching the same pictures" in what for what, _, _ in told)


def test_waiting_for_another_run_can_be_ended_too(server, tmp_path):
    (tmp_path / "cache" / "downloads").mkdir(parents=True)
    with FileLock(tmp_path / "cache" / "downloads" / "cifar10.lock"):
        def listen(what, *_):
            assert "another run" in what
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            data.load("cifar10", progress=listen)


def test_what_a_killed_run_left_behind_is_cleared_away_and_its_lock_is_free(server, tmp_path):
    folder = tmp_path / "cache" / "downloads"
    folder.mkdir(parents=True)
    program = ("import sys, os; from filelock import FileLock; lock = FileLock(sys.argv[1] + '/cifar10.lock'); lock.acquire(); "
               "os.mkdir(sys.argv[1] + '/.cifar10-dead'); open(sys.argv[1] + '/.cifar10-dead/cifar-10-python.tar.gz', 'w').write('x'); print('here', flush=True); sys.stdin.read()")
    other = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"here\n"
    other.kill()
    other.communicate()
    assert len(data.load("cifar10").train) == 15 and lying(tmp_path) == ["cifar-10-batches-py"]


def test_files_that_were_damaged_later_are_removed_and_fetched_anew(server, tmp_path):
    data.load("cifar10")
    cached(tmp_path)
    (tmp_path / "cache" / "downloads" / "cifar-10-batches-py" / "data_batch_2").write_bytes(b"half")
    with pytest.raises(DataError, match="damaged and have been removed: try again"):
        data.load("cifar10")
    assert len(data.load("cifar10").train) == 15 and len(server.asked) == 2


@pytest.mark.parametrize("place", ["cache/downloads", "given"])
def test_an_archive_put_there_by_hand_is_used_and_a_cut_off_one_is_named(server, tmp_path, monkeypatch, place):
    monkeypatch.setenv("VITDEMO_DATA", str(tmp_path / "given"))
    by_hand = tmp_path / place / "cifar-10-python.tar.gz"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_bytes(ARCHIVE[:200])
    server.script = ["missing"]
    with pytest.raises(DataError, match="answered 404, and cifar-10-python.tar.gz .* is damaged or not all there"):
        data.load("cifar10")
    by_hand.write_bytes(ARCHIVE)
    assert data.is_local("cifar10") and len(data.load("cifar10").train) == 15 and len(server.asked) == 1 and by_hand.is_file()


def test_a_full_disk_is_told_as_what_it_is(server, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DataError, match="no room on the disk for cifar10") as refusal:
        data.load("cifar10")
    assert str(tmp_path) not in str(refusal.value)
    monkeypatch.undo()


def test_pictures_at_a_size_that_memory_cannot_hold_are_refused(server):
    with pytest.raises(DataError, match="15 pictures of 12000 x 12000"):
        downloads.fetch("cifar10", "train", size=(12000, 12000), channels=3)

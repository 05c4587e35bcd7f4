"""One file from a server of our own: whatever the server does with a part that is asked for, the file is right or it is told."""

import hashlib
import threading

import pytest
from hub_stand_in import HubStandIn

from vitdemo import transfer
from vitdemo.transfer import Check, CutOff, TransferError

CONTENT = bytes(range(256)) * 500                                           # 128 kB
SUM = Check("sha256", hashlib.sha256(CONTENT).hexdigest()[:8])


@pytest.fixture
def stand(monkeypatch, tmp_path):
    with HubStandIn() as standing:
        standing.put("some", {"file": CONTENT})
        standing.settle(monkeypatch, tmp_path)
        yield standing


@pytest.fixture
def receive(stand, tmp_path):
    """Receives the file into `target`, in which `begun` lies already."""
    def run(begun: bytes | None = None, **expected):
        target, told = tmp_path / "target", []
        if begun is not None:
            target.write_bytes(begun)
        transfer.receive(f"{stand.store}/some/file", target, **{"told": lambda *news: told.append(news), "check": SUM} | expected)
        assert target.read_bytes() == CONTENT
        return told

    return run


@pytest.mark.parametrize("how", ["good", "whole", "other part"])
@pytest.mark.parametrize("begun", [None, b"", CONTENT[:1000], CONTENT[:-1], CONTENT, CONTENT + b"more"])
@pytest.mark.parametrize("size", [None, len(CONTENT)])
def test_whatever_lies_there_and_however_the_server_takes_it_the_file_is_right_in_the_end(stand, receive, how, begun, size):
    stand.script["file"] = [how]
    assert receive(begun, size=size)[-1] == (len(CONTENT), len(CONTENT))


def test_only_the_rest_is_asked_for_and_nothing_where_all_is_there(stand, receive):
    receive(CONTENT[:1000])
    assert stand.gets("file")[0]["range"] == "bytes=1000-"
    receive(CONTENT, size=len(CONTENT))
    assert len(stand.gets("file")) == 1


def test_a_beginning_of_another_file_is_noticed_and_removed(receive, tmp_path):
    with pytest.raises(TransferError, match="something else arrived"):
        receive(b"x" * 1000)
    assert not (tmp_path / "target").exists()
    receive()


def test_an_early_end_is_another_error_than_a_refusal(stand, receive):
    stand.script["file"] = ["cut", 404, "good"]
    with pytest.raises(CutOff, match="cut off after 0.1 of 0.1 MB"):
        receive()
    with pytest.raises(TransferError, match="answered 404") as refusal:
        receive()
    assert not isinstance(refusal.value, CutOff)
    receive()


@pytest.mark.parametrize("url", ["file:///etc/hosts", "ftp://localhost/x", "nonsense", "http://localhost:port/", "http://[/"])
def test_an_address_that_is_none_of_the_web_is_refused(tmp_path, url):
    with pytest.raises(TransferError, match="none of the web|connection broke"):
        transfer.receive(url, tmp_path / "target", told=lambda *_: None)
    assert not (tmp_path / "target").exists() or not (tmp_path / "target").read_bytes()


def test_certificates_are_checked_by_the_systems_and_certifis(stand, receive, monkeypatch):
    seen, real = [], transfer.ssl.create_default_context
    monkeypatch.setattr(transfer.ssl, "create_default_context", lambda: seen.append(real()) or seen[-1])
    transfer._opener.cache_clear()
    receive()
    (context,) = seen
    assert context.verify_mode == transfer.ssl.CERT_REQUIRED and context.check_hostname and context.cert_store_stats()["x509_ca"] > 50


def test_work_gives_its_result_and_its_error_to_the_caller():
    assert transfer.attended(lambda: 7, lambda: None) == 7
    with pytest.raises(ZeroDivisionError):
        transfer.attended(lambda: 1 / 0, lambda: None)
    go_on = threading.Event()
    with pytest.raises(KeyError):
        transfer.attended(lambda: go_on.wait(10), lambda: {}["none"])
    go_on.set()

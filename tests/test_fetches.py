"""Models on their way: one download for all who wait, ended when nobody does."""

import threading
import time

import pytest

from vitdemo.ui import fetches
from vitdemo.ui.fetches import Fetches

MB = 10**6


class Network:
    """A download that goes on when it is told to, and remembers how often it was begun."""

    def __init__(self, error: Exception | None = None):
        self.begun, self.loaded, self.error = [], [], error
        self.go, self.has = threading.Event(), set()

    def fetch(self, model, told):
        self.begun.append(model)
        for part in range(1000):
            told(part * MB, 88 * MB)
            if self.go.wait(0.01):
                break
        if self.error:
            raise self.error
        self.has.add(model)

    def fetches(self):
        return Fetches(needs=lambda model: model not in self.has, fetch=self.fetch, load=self.loaded.append)


def until(wanted, ask):
    deadline = time.monotonic() + 10
    while (answer := ask())["state"] != wanted:
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)
    return answer


def ended():
    """Wait until no model is on its way."""
    deadline = time.monotonic() + 10
    while any(thread.name == "model" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_needs_no_download_is_ready_in_the_first_answer():
    network = Network()
    network.has.add("zoo:a")
    assert network.fetches().want("zoo:a", "me")["state"] == "ready"
    assert network.begun == [] and network.loaded == ["zoo:a"]


def test_two_visitors_wait_for_one_download_and_both_see_how_far_it_is():
    network = Network()
    ways = network.fetches()
    ways.want("zoo:a", "me")
    answer = until("fetching", lambda: ways.want("zoo:a", "you"))
    assert answer["total"] == 88 * MB and answer["done"] > 0
    network.go.set()
    until("ready", lambda: ways.want("zoo:a", "me"))
    until("ready", lambda: ways.want("zoo:a", "you"))
    assert network.begun == ["zoo:a"]


def test_one_who_gives_up_does_not_end_the_download_of_another_but_the_last_one_does():
    network = Network()
    ways = network.fetches()
    ways.want("zoo:a", "me")
    ways.want("zoo:a", "you")
    ways.cancel("zoo:a", "me")
    time.sleep(0.1)
    assert ways.want("zoo:a", "you")["state"] == "fetching"
    ways.cancel("zoo:a", "you")
    ended()
    assert network.loaded == []


def test_a_page_that_was_closed_does_not_keep_a_download_going(monkeypatch):
    monkeypatch.setattr(fetches, "SILENT", 0.05)
    network = Network()
    ways = network.fetches()
    ways.want("zoo:a", "closed")
    ended()
    assert network.loaded == []


@pytest.mark.parametrize("error, said", [(ValueError("there is no network"), "There is no network."), (RuntimeError("trace of secrets"), "number")])
def test_a_failure_is_one_sentence_and_the_next_wish_tries_again(error, said):
    network = Network(error)
    ways = network.fetches()
    network.go.set()
    answer = until("failed", lambda: ways.want("zoo:a", "me"))
    assert said in answer["sentence"] and "secrets" not in answer["sentence"]
    network.error = None
    until("ready", lambda: ways.want("zoo:a", "me"))


def test_no_more_than_a_few_downloads_go_on_at_once_and_the_next_one_waits_its_turn():
    network = Network()
    ways = network.fetches()
    for name in "abc":
        ways.want(name, "me")
    assert sorted(ways.want(name, "me")["state"] for name in "abc") == ["fetching", "fetching", "waiting"]
    network.go.set()
    for name in "abc":
        until("ready", lambda name=name: ways.want(name, "me"))

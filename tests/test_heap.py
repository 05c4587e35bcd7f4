"""The C library's two settings: they are made where there are such, and nothing happens where there are none."""

import ctypes

import pytest

from vitdemo import heap


class Library:
    def __init__(self):
        self.said = []

    def mallopt(self, parameter: int, value: int) -> int:
        self.said.append((parameter, value))
        return 1


def test_a_server_has_one_heap_and_a_training_keeps_its_memory(monkeypatch):
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    heap.share()
    heap.keep()
    assert library.said == [(-8, 1), (-3, 2**30), (-1, 2**31 - 1)]


@pytest.mark.parametrize(("most", "said"), [(2**25, [(-3, 2**30), (-3, 2**25), (-1, 2**31 - 1)]), (0, [(-3, 2**30), (-3, 2**25)])])
def test_a_library_that_takes_no_large_threshold_is_asked_for_less_and_one_that_takes_none_is_left_as_it_is(most, said, monkeypatch):
    class Older(Library):
        def mallopt(self, parameter: int, value: int) -> int:
            super().mallopt(parameter, value)
            return int(parameter != heap.M_MMAP_THRESHOLD or value <= most)

    library = Older()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    heap.keep()
    assert library.said == said


@pytest.mark.parametrize("error", [TypeError, OSError])
def test_where_there_is_no_c_library_to_ask_nothing_happens(error, monkeypatch):
    def none(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", none)
    heap.share()
    heap.keep()


def test_where_the_c_library_has_no_such_setting_nothing_happens(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    heap.share()

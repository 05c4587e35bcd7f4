"""Files that are replaced whole or not at all."""

import pytest
from conftest import pretend

from vitdemo import atomic


@pytest.mark.parametrize("durable", [False, True])
def test_what_was_written_takes_the_place_of_the_old_file_and_leaves_nothing_else(tmp_path, durable):
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with atomic.replacing(path, durable=durable) as draft:
        draft.write_bytes(b"new")
        assert path.read_bytes() == b"old" and draft.parent == tmp_path
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic.replacing(path) as draft:
        draft.write_bytes(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_file_that_another_process_holds_for_an_instant_is_tried_again_on_windows_only(tmp_path, monkeypatch):
    tries = []

    def held_twice():
        tries.append(1)
        if len(tries) < 3:
            raise PermissionError(13, "in use")
        return "done"

    with pytest.raises(PermissionError):
        atomic.patiently(held_twice)
    tries.clear()
    pretend(monkeypatch, atomic, "os", name="nt")
    assert atomic.patiently(held_twice) == "done" and len(tries) == 3

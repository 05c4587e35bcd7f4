"""Words that nobody can hear any more are lost, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vitdemo import terminal

ROOT = Path(__file__).resolve().parents[1]
TALKATIVE = """
import sys
from vitdemo.terminal import say
for _ in range(50):
    say("word " * 1000)
    say("word " * 1000, to=sys.stderr)
"""


@pytest.mark.parametrize("gone", [("stdout",), ("stderr",), ("stdout", "stderr")], ids=" and ".join)
def test_a_program_whose_reader_is_gone_goes_on_to_its_end(gone):
    read, write = os.pipe()
    os.close(read)
    streams = {name: write if name in gone else subprocess.PIPE for name in ("stdout", "stderr")}
    process = subprocess.Popen([sys.executable, "-c", TALKATIVE], cwd=ROOT, text=True, **streams)
    os.close(write)
    heard = process.communicate(timeout=60)
    assert process.returncode == 0
    assert [None if text is None else text.count("word") for text in heard] == [None if name in gone else 50_000 for name in streams]


def test_letters_that_a_stream_does_not_have_are_written_out_and_what_a_closed_one_is_told_is_lost(tmp_path):
    with (tmp_path / "said").open("w", encoding="ascii") as stream:
        terminal.say("C:/Users/\N{LATIN CAPITAL LETTER L WITH STROKE}ukasz/best.safetensors", to=stream)
    terminal.say("too late", to=stream)
    assert (tmp_path / "said").read_text() == "C:/Users/\\u0141ukasz/best.safetensors\n"

"""Threads that wait for each other soon let go of their cores, in every program of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vitdemo import spin

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


@pytest.mark.parametrize("own, expected", [({}, (spin.LOOKS, None)), ({"GOMP_SPINCOUNT": "7"}, ("7", None)), ({"OMP_WAIT_POLICY": "active"}, (None, "active"))])
def test_threads_soon_let_go_of_their_cores_unless_somebody_chose_otherwise(monkeypatch, own, expected):
    for name in NAMES:
        monkeypatch.setenv(name, "")                                        # so that what is set here is undone
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    spin.briefly()
    assert tuple(map(os.environ.get, NAMES)) == expected


def looks(*arguments: str) -> set[str]:
    """What GNU OpenMP, which may be there more than once, says of itself when `arguments` load it with torch."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env={**{name: value for name, value in os.environ.items() if name not in NAMES}, "OMP_DISPLAY_ENV": "verbose"})
    assert done.returncode == 0, done.stderr
    return {line.split("'")[1] for line in done.stderr.split("\n") if "GOMP_SPINCOUNT" in line}


@pytest.fixture(scope="module")
def own() -> set[str]:
    """What it says where nobody chooses anything."""
    return looks("-c", "import torch")


@pytest.mark.parametrize("arguments", [("-m", "vitdemo.train", "--help"), ("-m", "vitdemo.pace", "--help"), ("-m", "vitdemo.evaluate", "--help"),
                                       ("-m", "vitdemo.explain", "--help"), ("-c", "import app, torch"), ("-c", "import vitdemo, torch")], ids=" ".join)
def test_every_program_of_ours_says_so_before_the_library_is_loaded(arguments, own):
    if not own:
        pytest.skip("torch does not compute with GNU OpenMP here")
    assert own != {spin.LOOKS}
    assert looks(*arguments) == {spin.LOOKS}

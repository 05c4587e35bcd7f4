"""The benches are run by hand, so what breaks them is not seen unless somebody looks: each begins, and the ladder makes a row."""

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "visitor.py")        # which others import
EVERY_HELP = """
import runpy, sys
for name in sys.argv[1:]:
    sys.argv, sys.path[0] = [name, "--help"], "."
    try:
        runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        if end.code: raise
    else:
        raise AssertionError(name + " has no --help")
"""


def begun(*command: str, **more: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=FOLDER, env=os.environ | more, capture_output=True, text=True, timeout=120, check=False)


def test_every_script_says_how_it_is_called():
    done = begun("-c", EVERY_HELP, *SCRIPTS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(SCRIPTS) >= 20 and done.stdout.count("usage: ") == len(SCRIPTS)


def test_the_ladder_prints_a_row_of_what_its_runs_reached(colour_zip):
    done = begun("short_runs.py", "--data", str(colour_zip), "--presets", "class", "--minutes", "0.01", "--threads", "1", "--seeds", "0", "1", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^\| class \| 1 \| 2 \| \d+ \| [\d,]+ \| \d+ \| [\d.]+% \| [\d.]+% ± [\d.]+% \|$", done.stdout, re.MULTILINE), done.stdout

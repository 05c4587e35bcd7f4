"""The benches are run by hand, so what breaks them is not seen unless somebody looks: each begins, and the ladder makes a row."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "visitor.py")        # which others import
PARSED = """
import argparse, json, runpy, sys
parse = argparse.ArgumentParser.parse_args
def only_parse(self, *given):
    parse(self, *given)
    raise SystemExit
argparse.ArgumentParser.parse_args = only_parse
for name, *given in json.loads(sys.argv[1]):
    sys.argv, sys.path[0] = [name, *given], "."
    try:
        runpy.run_path(name, run_name="__main__")
    except SystemExit as end:
        if end.code: sys.exit(" ".join([name, *given]))
"""


def begun(*command: str, **more: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=FOLDER, env=os.environ | more, capture_output=True, text=True, timeout=120, check=False)


def test_every_script_says_how_it_is_called():
    done = begun("-c", PARSED, json.dumps([[name, "--help"] for name in SCRIPTS]))
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(SCRIPTS) >= 20 and done.stdout.count("usage: ") == len(SCRIPTS)


def test_every_call_of_a_script_that_readme_and_the_card_show_is_one_that_it_takes():
    texts = [(FOLDER.parents[1] / name).read_text(encoding="utf-8") for name in ("README.md", "checkpoints/README.md")]
    calls = [[name, *shlex.split(given)] for text in texts for name, given in re.findall(r"`(?:python )?(?:tests/benchmarks/)?(\w+\.py)((?:\s[^`]*)?)`", text) if name in SCRIPTS]
    assert len(calls) >= 20
    done = begun("-c", PARSED, json.dumps(calls))
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_ladder_prints_a_row_of_what_its_runs_reached_and_keeps_them_where_it_is_told(colour_zip, tmp_path):
    call = ["short_runs.py", "--data", str(colour_zip), "--presets", "class", "--set", "shift=1", "--set", "mix=0.2", "--minutes", "0.01", "--threads", "1",
            "--seeds", "0", "1", "--out", str(tmp_path)]
    done = begun(*call, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^\| class shift=1 mix=0\.2 \| 1 \| 2 \| \d+\.\d \| [\d,]+ \| \d+ \| [\d.]+% \| [\d.]+% ± [\d.]+% \([\d.]+%, [\d.]+%\) \|$", done.stdout, re.MULTILINE), done.stdout
    assert sorted(path.parent.name for path in tmp_path.glob("*/best.safetensors")) == ["class-1-0", "class-1-1"]
    again = begun(*call)
    assert again.returncode == 2 and "holds class-1-0, class-1-1 already" in again.stderr and not again.stdout

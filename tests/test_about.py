"""What the About tab says about privacy, beside what the program does."""

import re
from pathlib import Path

from vitdemo import words
from vitdemo.ui import about, desk
from vitdemo.unpacking import SHORT

UI = Path(about.__file__).parent
REMEMBERED = {  # the browser's storage, by name, and the words that tell of it
    "vitdemo-runs": "the names of your runs", "vitdemo-sets": "of your own sets with their titles", "vitdemo-shown": "which run was shown last",
    "vitdemo-race": "the race you began with your vote", "vitdemo-browser": "a random secret"}


def told(keep_hours: float) -> str:
    return re.sub(r"\s+", " ", about.privacy(keep_hours))


def test_everything_that_the_browser_remembers_is_named():
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in UI.rglob("*.js"))
    assert set(re.findall(r'"(vitdemo-[a-z]+)"', scripts)) == set(REMEMBERED) and "sessionStorage" not in scripts and "document.cookie" not in scripts
    assert all(line in told(0) for line in REMEMBERED.values())


def test_how_long_sets_and_runs_are_kept_is_what_the_owner_set():
    assert "Sets are deleted 6 hours after their last use, or" in told(6) and "Runs are deleted 6 hours after their end, or" in told(6)
    assert told(0).count(words.KEPT) == 2 and "hours after" not in told(0)


def test_uploads_are_deleted_within_the_hour_that_is_promised():
    every, age = map(int, re.search(r"delete_cache=\((\d+), (\d+)\)", (UI / "__init__.py").read_text(encoding="utf-8")).groups())
    assert every + age <= 3600 and "within an hour" in told(0) and "within an hour" in words.PRIVACY


def test_what_is_copied_is_as_large_as_is_said():
    assert f"{SHORT} pixels on the shorter side" in told(0) and f"up to {desk.LONGEST_SIDE} pixels" in told(0)
    assert f"Math.min(1, {SHORT} / Math.min(width, height))" in (UI / "lab_front/71-class.js").read_text(encoding="utf-8")
    assert "a .zip travels whole" in told(0) and "a .zip whole" in words.FRONT["lab_front"]["own_privacy"]

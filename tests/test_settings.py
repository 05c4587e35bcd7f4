"""What the owner may switch: defaults at home and on a public host, and values that make no sense."""

from pathlib import Path

import pytest

from vitdemo import settings


def test_a_public_host_gets_smaller_limits_than_a_machine_of_ones_own():
    own, public = settings.read({}), settings.read({"SPACE_ID": "somebody/vitdemo"})
    assert (own.max_pictures, own.sets_megabytes, own.upload_megabytes, own.runs_at_once) == (20_000, 4000, 200, 1)
    assert (public.max_pictures, public.sets_megabytes, public.upload_megabytes, public.runs_at_once) == (2000, 1000, 20, 1)


def test_every_limit_can_be_set_and_own_sets_live_beside_the_runs():
    read = settings.read({"VITDEMO_MAX_PICTURES": "50", "VITDEMO_SETS_MB": "7", "VITDEMO_UPLOAD_MB": "3", "VITDEMO_RUNS_AT_ONCE": "2", "VITDEMO_RUNS": "here"})
    assert (read.max_pictures, read.sets_megabytes, read.upload_megabytes, read.runs_at_once) == (50, 7, 3, 2)
    assert read.sets_folder == Path("here", "sets")


def test_where_minutes_are_limited_for_others_a_run_has_a_clock_and_a_place():
    own, room, public = settings.read({}), settings.read({"VITDEMO_MAX_MINUTES": "10"}), settings.read({"SPACE_ID": "somebody/vitdemo"})
    assert (own.clocked, own.most_seconds, own.runs_megabytes) == (False, 0, 0)
    assert (room.clocked, room.most_seconds) == (True, 2100)
    assert (public.clocked, public.most_seconds, public.runs_megabytes) == (True, 840, 8000)


@pytest.mark.parametrize(("name", "value"), [("VITDEMO_MAX_PICTURES", "1"), ("VITDEMO_SETS_MB", "0"), ("VITDEMO_RUNS_AT_ONCE", "0"),
                                             ("VITDEMO_RUNS_AT_ONCE", "nan"), ("VITDEMO_UPLOAD_MB", "much")])
def test_a_value_that_makes_no_sense_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number"):
        settings.read({name: value})

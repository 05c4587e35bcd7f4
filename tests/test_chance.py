"""What chance does to shares and to a few runs, against numbers worked out elsewhere."""

import math
import random

import pytest

from vitdemo.chance import share_error, welch


def test_the_error_of_a_share_is_the_usual_one_for_many_pictures_and_never_zero():
    assert share_error(0.7, 10_000) == pytest.approx(math.sqrt(0.7 * 0.3 / 10_000), rel=1e-3)
    assert share_error(1.0, 8) == pytest.approx(math.sqrt(10 / 12 * 2 / 12 / 12)) and share_error(0.0, 8) == pytest.approx(share_error(1.0, 8))


def test_welchs_test_gives_the_numbers_of_a_worked_example():
    found = welch((20.0, 22.0, 24.0), (14.0, 15.0, 19.0))                   # variances 4 and 7: df = (4/3 + 7/3)^2 / ((4/3)^2/2 + (7/3)^2/2) = 3.72
    assert found.difference == 6 and found.error == pytest.approx(math.sqrt(11 / 3)) and (found.freedom, found.needed) == (3, 3.18)
    assert not found.told_apart and welch((20.0, 22.0, 24.0), (13.0, 14.0, 18.0)).told_apart


def test_values_that_agree_by_luck_are_no_certainty():
    assert welch((0.5, 0.5, 0.5), (0.6, 0.6, 0.6)).told_apart and not welch((0.5, 0.5, 0.5), (0.6, 0.6, 0.6), least=0.1).told_apart


def test_runs_that_differ_by_chance_alone_are_told_apart_in_about_one_case_in_twenty():
    draw = random.Random(0)
    wrong = sum(welch(*([draw.gauss(0, 1) for _ in range(3)] for _ in "ab")).told_apart for _ in range(4000)) / 4000
    assert 0.02 < wrong < 0.06                                              # the degrees of freedom are rounded down, so rather less

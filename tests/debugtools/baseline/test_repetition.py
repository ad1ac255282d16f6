"""Whether what was seen beyond a bound is chance: by the sign of repetitions, and by their ranks."""

from itertools import combinations

import pytest

from layerwise._tool.debugtools.baseline.repetition import above_half, beyond, enough, repeat, shifted


def test_all_of_five_beyond_the_bound_is_a_regression() -> None:
    found = beyond([1.1, 1.2, 1.3, 1.15, 1.4], 1.0)
    assert (found.finding, found.beyond, found.repetitions) == ("regression", 5, 5)
    assert found.confidence == pytest.approx(1 - 2**-6)


def test_half_of_them_is_unsure_and_none_is_chance() -> None:
    assert beyond([0.9, 1.1, 0.8, 1.2], 1.0).finding == "unsure"
    assert beyond([0.9, 0.91, 0.8, 0.7, 0.6], 1.0).finding == "chance"


def test_the_same_number_each_time_is_no_chance() -> None:
    found = beyond([1.1, 1.1], 1.0)
    assert (found.finding, found.steady, found.confidence) == ("regression", True, 1.0)


def test_what_is_not_finite_is_beyond() -> None:
    assert beyond([float("nan"), float("inf")], 1.0).beyond == 2


def test_it_repeats_until_it_is_sure_and_not_for_ever() -> None:
    assert repeat(lambda number: 2.0 + number, 1.0).repetitions == 4
    assert repeat(lambda number: float(number % 2 * 2) + number / 1e3, 1.0).repetitions == 12
    assert not enough([2.0], 1.0)


def test_the_confidence_is_even_where_as_many_are_beyond_as_within() -> None:
    assert above_half(3, 3) == 0.5
    assert above_half(0, 0) == 0.5


def test_ranks_are_those_of_all_arrangements() -> None:
    """Against counting: three of then, four of now, all ways to draw them from seven places."""
    then, now = [1.0, 2.0, 4.5], [3.0, 4.0, 5.0, 6.0]
    wins = sum(b > a for a in then for b in now)
    ways = [sum(b > a for a in places for b in range(7) if b not in places) for places in combinations(range(7), 3)]
    found = shifted(then, now)
    assert 1 - found.confidence == pytest.approx(sum(way >= wins for way in ways) / len(ways))
    assert shifted([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).finding == "regression"
    assert shifted([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]).finding == "chance"

"""Bisection: few questions, by their cost, with skips, and never against the verdicts."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.search.strategies.bisect import BisectSearch, running_costs, split
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

verdicts = st.lists(st.sampled_from(list(Verdict)), min_size=50, max_size=50)


def run(search: BisectSearch, judge: Callable[[int], Verdict]) -> tuple[list[int], int]:
    """The positions asked, and in how many rounds."""
    asked: list[int] = []
    rounds = 0
    while not search.done:
        rounds += 1
        for candidate in search.ask():
            asked.append(candidate.items[0])
            search.tell(candidate, judge(candidate.items[0]))
    assert search.ask() == []
    assert len(asked) == len(set(asked))
    return asked, rounds


def from_on(first: int) -> Callable[[int], Verdict]:
    return lambda position: Verdict.BAD if position >= first else Verdict.GOOD


@settings(max_examples=50)
@given(st.integers(1, 3000), st.data(), st.integers(1, 8))
def test_finds_the_first_bad_in_the_fewest_rounds(n: int, data: st.DataObject, ways: int) -> None:
    first = data.draw(st.integers(0, n))
    search = BisectSearch(n, ways=ways)
    _, rounds = run(search, from_on(first))
    assert rounds <= ceil(log(n + 1, ways + 1) - 1e-9) + (ways > 1)
    result = search.result()
    assert (result.first_bad, result.last_good) == (first if first < n else None, first - 1)
    assert result.monotone and result.skipped == ()


def test_the_band_says_how_a_cut_comes_out() -> None:
    search = BisectSearch(10)
    assert search.band() == [("unknown", 4), ("asked", 1), ("unknown", 5)]
    search.tell(search.candidate(4), Verdict.GOOD)
    search.tell(search.candidate(7), Verdict.BAD)
    assert search.band() == [("good", 5), ("asked", 1), ("unknown", 1), ("bad", 3)]
    search.tell(search.candidate(6), Verdict.BAD)
    search.tell(search.candidate(5), Verdict.GOOD)
    assert search.done and search.band() == [("good", 6), ("bad", 4)]


@settings(max_examples=50)
@given(st.integers(1, 50), verdicts, st.integers(1, 4), st.none() | st.lists(st.floats(0, 9), min_size=50, max_size=50))
def test_any_verdicts_give_an_answer_that_agrees_with_them(
    n: int, table: list[Verdict], ways: int, weights: list[float] | None
) -> None:
    search = BisectSearch(n, weights and weights[:n], ways)
    told: list[int] = []
    while not search.done:
        for candidate in search.ask():
            told.append(candidate.items[0])
            search.tell(candidate, table[told[-1]])
            assert sum(length for _, length in search.band()) == n
    result = search.result()
    bad = {position for position in told if table[position] is Verdict.BAD}
    good = {position for position in told if table[position] is Verdict.GOOD}
    assert result.first_bad == min(bad, default=None)
    end = n if result.first_bad is None else result.first_bad
    assert result.last_good == max((position for position in good if position < end), default=-1)
    assert result.skipped == tuple(range(result.last_good + 1, end))
    assert result.monotone == all(position < end for position in good)

    again = BisectSearch(n, weights and weights[:n], ways)
    for position in told:
        again.tell(BisectSearch.candidate(position), table[position])
    assert (again.result(), again.band(), again.done) == (result, search.band(), True)


@settings(max_examples=50)
@given(st.integers(100, 1000), st.data())
def test_a_stretch_that_cannot_be_judged_is_left_quickly(n: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, n - 50))
    first = data.draw(st.integers(0, n - 1))

    def judge(position: int) -> Verdict:
        return Verdict.SKIP if start <= position < start + 40 else from_on(first)(position)

    search = BisectSearch(n)
    asked, _ = run(search, judge)
    low, high = search.result().last_good, search.result().first_bad
    assert high is not None and low < first <= high
    if not start <= first <= start + 40:
        assert (low, high) == (first - 1, first)
        assert len(asked) <= 25


def test_answers_that_are_not_monotone_are_said_to_be() -> None:
    search = BisectSearch(100, ways=3)
    table = {25: Verdict.BAD, 50: Verdict.GOOD, 75: Verdict.BAD}
    for candidate in search.ask():
        search.tell(candidate, table.get(round(candidate.items[0] / 25) * 25, Verdict.GOOD))
    run(search, from_on(10))
    assert not search.result().monotone and search.result().first_bad == 10


@pytest.mark.parametrize("seed", range(6))
def test_the_split_by_seconds_is_near_the_best_there_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 80
    costs = running_costs([rng.random(n), rng.pareto(0.8, n), np.where(rng.random(n) < 0.05, 30, 0.1)][seed % 3])
    by_seconds = expected(costs, lambda low, high: split(low, high, costs))
    assert by_seconds <= 1.05 * best(tuple(costs))
    assert by_seconds <= expected(costs, split) + 1e-9


def expected(costs: np.ndarray, rule: Callable[[int, int], int]) -> float:
    """Mean cost of a search with this rule, every answer equally likely."""

    def between(low: int, high: int) -> float:
        if high - low <= 1:
            return 0.0
        at = rule(low, high)
        return costs[at] + ((at - low) * between(low, at) + (high - at) * between(at, high)) / (high - low)

    return between(-1, len(costs))


def best(costs: tuple[float, ...]) -> float:
    @lru_cache(None)
    def between(low: int, high: int) -> float:
        if high - low <= 1:
            return 0.0
        return min(
            costs[at] + ((at - low) * between(low, at) + (high - at) * between(at, high)) / (high - low)
            for at in range(low + 1, high)
        )

    return between(-1, len(costs))

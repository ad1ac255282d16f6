"""Repeating until good, bad, counted or sure; what a failure rate is said to be."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict
from layerwise._tool.debugtools.search.strategies.repeat import Confidence, RepeatSearch, Until, below, quantile

G, B, S = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


def run(search: RepeatSearch, table: list[Verdict]) -> int:
    asked = 0
    while not search.done:
        for candidate in search.ask():
            assert candidate.items == ()
            search.tell(candidate, table[asked % len(table)])
            asked += 1
            assert sum(length for _, length in search.band()) <= asked
    assert search.ask() == []
    return asked


@pytest.mark.parametrize(
    ("until", "table", "trials"),
    [("bad", [G, S, G, B], 4), ("good", [B, S, G], 3), (7, [G, B, S], 7), ("bad", [B], 1)],
)
def test_stops_where_it_was_told_to(until: Until, table: list[Verdict], trials: int) -> None:
    search = RepeatSearch(until)
    assert run(search, table) == trials
    told = (table * 8)[:trials]
    result = search.result()
    assert (result.good, result.bad, result.skipped) == (told.count(G), told.count(B), told.count(S))


@settings(max_examples=50)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.001, 0.999))
def test_beta_is_the_binomial_sum(a: int, b: int, x: float) -> None:
    n = a + b - 1
    exact = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert below(x, a, b) == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert quantile(below(x, a, b), a, b) == pytest.approx(x, abs=1e-6) or not 1e-9 < exact < 1 - 1e-9


def test_no_failure_proves_a_rate_below_one_percent_after_298_trials() -> None:
    search = RepeatSearch(Confidence(rate=0.01, delta=0.05))
    assert run(search, [G]) == 298  # 0.99 ** 299 < 0.05 <= 0.99 ** 298
    assert "below 0.01" in search.result().statement and search.result().below == pytest.approx(1 - 0.99**299)


def test_the_stated_side_is_wrong_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(1000):
        rate = rng.random()
        search = RepeatSearch(Confidence(rate=0.4, delta=0.1))
        while not search.done and search.progress().judged < 500:
            search.tell(search.ask()[0], B if rng.random() < rate else G)
        said_below = (search.result().below or 0) >= 0.5
        wrong += search.done and said_below != (rate < 0.4)
    assert wrong <= 0.1 * 1000


@settings(max_examples=50)
@given(st.integers(1, 30), st.lists(st.sampled_from(list(Verdict)), min_size=30, max_size=30), st.integers(1, 5))
def test_replay_and_late_answers(n: int, table: list[Verdict], width: int) -> None:
    search, told = RepeatSearch(n, width), []
    while not search.done:
        for candidate in search.ask():
            told.append((candidate, table[len(told)]))
            search.tell(*told[-1])
            search.tell(candidate, G)
    search.tell(Candidate("trial:999", ()), G)
    assert len(told) == n
    again = RepeatSearch(n)
    for tell in told:
        again.tell(*tell)
    assert again.result() == search.result()

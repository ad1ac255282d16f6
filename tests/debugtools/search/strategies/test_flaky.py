"""Bisection with verdicts that may be wrong: as sure as it says, in as few checks as it says."""

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.search.strategies.flaky import FlakyBisect, information, settled
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict


def run(search: FlakyBisect, first: int, rates: tuple[float, float], rng: np.random.Generator) -> int:
    while not search.done and search.progress().judged < 3000:
        candidate = search.ask()[0]
        bad = candidate.items[0] >= first
        wrong = rng.random() < rates[0 if bad else 1]
        search.tell(candidate, Verdict.BAD if bad != wrong else Verdict.GOOD)
    return search.progress().judged


@pytest.mark.parametrize(("p", "false_bad"), [(0.1, 0.1), (0.3, 0.3), (0.3, 0.0)])
def test_wrong_no_more_often_than_stated_within_the_bound(p: float, false_bad: float) -> None:
    rng, runs, delta, n = np.random.default_rng(7), 150, 0.05, 500
    wrong, checks = 0, 0
    for _ in range(runs):
        search, first = FlakyBisect(n, p, false_bad, delta), int(rng.integers(n))
        checks += run(search, first, (p, false_bad), rng)
        assert search.result().sure
        wrong += search.result().first_bad != first
    assert wrong <= delta * runs
    assert checks / runs <= (log2(n) + log2(1 / delta)) / (1 + p * log2(p) + (1 - p) * log2(1 - p))


def test_unknown_rates_are_estimated() -> None:
    rng, right, rates = np.random.default_rng(3), 0, []
    for _ in range(30):
        search, first = FlakyBisect(300, None, None, 0.01), int(rng.integers(50, 250))
        run(search, first, (0.2, 0.05), rng)
        right += search.result().first_bad == first
        rates.append((search.result().false_good, search.result().false_bad))
    assert right >= 28
    good, bad = np.mean(rates, axis=0)
    assert 0.12 < good < 0.28 and bad < 0.15


@given(st.integers(1, 400), st.data())
def test_without_errors_it_is_a_bisection(n: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, n))
    search = FlakyBisect(n, 0.0, 0.0)
    assert run(search, first, (0, 0), np.random.default_rng(0)) <= log2(n + 1) + 1
    assert search.result().first_bad == (first if first < n else None) and search.result().probability > 0.99


@settings(max_examples=30)
@given(
    st.integers(1, 60),
    st.sampled_from([(0.1, 0.1), (0.3, 0.0), (None, None), (0.0, 0.0)]),
    st.lists(st.sampled_from(list(Verdict)), min_size=1, max_size=40),
    st.none() | st.lists(st.floats(0, 9), min_size=60, max_size=60),
)
def test_any_verdicts_replay_to_the_same_state(
    n: int, rates: tuple[float | None, float | None], table: list[Verdict], weights: list[float] | None
) -> None:
    def fresh() -> FlakyBisect:
        return FlakyBisect(n, *rates, weights=weights and weights[:n])

    search, told, states = fresh(), [], []
    for verdict in table:
        assert sum(length for _, length in search.band()) == n
        states.append((search.ask(), search.result(), search.band()))
        if search.done:
            break
        told.append((search.ask()[0], verdict))
        search.tell(*told[-1])
        search.tell(told[-1][0], Verdict.BAD)  # answered already
    assert len({candidate.key for candidate, _ in told}) == len(told)
    skipped = {candidate.items for candidate, verdict in told if verdict is Verdict.SKIP}
    assert all(candidate.items not in skipped for candidate in search.ask())
    assert 0 < search.result().probability <= 1
    for length in range(len(states)):
        again = fresh()
        for tell in told[:length]:
            again.tell(*tell)
        assert (again.ask(), again.result(), again.band()) == states[length]


def test_a_failure_is_proof_where_it_cannot_be_false() -> None:
    search = FlakyBisect(100, 0.3, 0.0)
    search.tell(search.candidate(40), Verdict.BAD)
    for _ in range(50):
        search.tell(search.candidate(40), Verdict.GOOD)
    assert search.result().span[1] <= 40


def test_the_question_is_the_most_telling_one() -> None:
    posterior = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    gain = information(posterior, np.array([0.2]), np.array([0.8]))
    for position in range(4):
        exact = mutual_information(posterior, position, 0.2)
        assert gain[position] == pytest.approx(exact)
    assert int(np.argmax(gain)) == 2 or gain[1] == pytest.approx(gain[2])


def mutual_information(posterior: np.ndarray, position: int, p: float) -> float:
    bad_given = np.where(np.arange(len(posterior)) <= position, 1 - p, p)
    joint = np.stack([posterior * bad_given, posterior * (1 - bad_given)])
    return float((joint * np.log2(joint / (joint.sum(0) * joint.sum(1, keepdims=True)))).sum())


def test_costs_move_the_question_to_what_is_cheap() -> None:
    cheap_first = FlakyBisect(200, 0.1, 0.1, weights=[1.0] * 100 + [50.0] * 100)
    assert cheap_first.ask()[0].items[0] < 100


def test_what_is_not_a_position_is_ignored() -> None:
    search = FlakyBisect(10, 0.1, 0.1)
    before = search.ask(), search.result()
    for candidate in (Candidate("x", ()), Candidate("prefix:3#9", (3,), position=3), Candidate("a", (), position=99)):
        search.tell(candidate, Verdict.BAD)
    assert (search.ask(), search.result()) == before


@pytest.mark.parametrize(("false_good", "false_bad"), [(0.2, 0.0), (0.3, 0.1), (0.0, 0.0)])
def test_one_candidate_is_settled_wrongly_no_more_often_than_stated(false_good: float, false_bad: float) -> None:
    random, delta, wrong = np.random.default_rng(5), 0.05, 0
    for trial in range(2000):
        truth = Verdict.BAD if trial % 2 else Verdict.GOOD
        counts, found = {Verdict.BAD: 0, Verdict.GOOD: 0}, None
        while found is None:
            fails = random.random() < (1 - false_good if truth is Verdict.BAD else false_bad)
            counts[Verdict.BAD if fails else Verdict.GOOD] += 1
            found = settled(counts[Verdict.BAD], counts[Verdict.GOOD], false_good, false_bad, delta)
        wrong += found is not truth
    assert wrong <= 2000 * delta

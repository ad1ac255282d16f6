"""Precision searches: a passing set that is minimal, in few runs; and Polygraphy's order beside Polygraphy's."""

import random
from collections.abc import Callable
from hashlib import blake2b
from math import log2

from hypothesis import given, settings
from hypothesis import strategies as st
from polygraphy.tools.debug.subtool.precision import BisectMarker, LinearMarker

from layerwise._tool.debugtools.search.strategies.precision import Direction, LayerSearch, PrecisionSearch, Scores
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

Judge = Callable[[frozenset[int]], Verdict]


def needs(truth: set[int]) -> Judge:
    return lambda kept: Verdict.GOOD if truth <= kept else Verdict.BAD


def arbitrary(seed: int, good: int, skip: int) -> Judge:
    def judge(kept: frozenset[int]) -> Verdict:
        byte = blake2b(repr((seed, sorted(kept))).encode(), digest_size=1).digest()[0]
        return Verdict.GOOD if byte < good else Verdict.SKIP if byte < good + skip else Verdict.BAD

    return judge


def run(search: PrecisionSearch | LayerSearch, judge: Judge) -> list[tuple[Candidate, Verdict]]:
    told: list[tuple[Candidate, Verdict]] = []
    while not search.done:
        for candidate in search.ask():
            assert candidate.key not in {old.key for old, _ in told}
            told.append((candidate, judge(frozenset(candidate.items))))
            search.tell(*told[-1])
    assert search.ask() == [] and search.progress().remaining == 0
    return told


def search_of(scores: list[float], start: int = 1, limit: int | None = None, width: int = 1) -> PrecisionSearch:
    return PrecisionSearch(len(scores), lambda: Scores(scores, start), limit, width)


def noisy_scores(n: int, truth: set[int], seed: int) -> list[float]:
    """The truth among the upper tenth."""
    rng = random.Random(seed)
    return [rng.random() + (0.9 if item in truth else 0.0) for item in range(n)]


@settings(max_examples=50)
@given(st.integers(1, 300), st.data(), st.integers(0, 99), st.integers(1, 400))
def test_finds_just_what_is_needed(n: int, data: st.DataObject, seed: int, start: int) -> None:
    truth = data.draw(st.sets(st.integers(0, n - 1), max_size=min(n, 12)))
    search = search_of(noisy_scores(n, truth, seed), start)
    run(search, needs(truth))
    assert search.result().kept == tuple(sorted(truth)) and search.result().minimal


@settings(max_examples=50)
@given(
    st.integers(1, 20), st.builds(arbitrary, st.integers(0, 999), st.integers(0, 256), st.integers(0, 60)),
    st.integers(1, 20), st.none() | st.integers(0, 30), st.integers(1, 3),
)  # fmt: skip
def test_whatever_the_verdicts_the_answer_passed(
    n: int, judge: Judge, start: int, limit: int | None, width: int
) -> None:
    scores = noisy_scores(n, set(), n)
    search = search_of(scores, start, limit, width)
    told = run(search, judge)
    verdicts = {frozenset(candidate.items): verdict for candidate, verdict in told}
    result = search.result()
    passed = [kept for kept, verdict in verdicts.items() if verdict is Verdict.GOOD]
    assert (result.kept is None) == (not passed)
    if result.kept is not None:
        assert len(result.kept) == min(map(len, passed)) and frozenset(result.kept) in passed
    if result.minimal:
        kept = frozenset(result.kept or ())
        assert all(verdicts[kept - {item}] is not Verdict.GOOD for item in kept)
    if limit is None and result.kept is not None and width == 1:
        assert result.minimal
    assert sum(length for _, length in search.band()) == n

    again = search_of(scores, start, limit)
    for tell in told:
        again.tell(*tell)
    assert again.done and (again.result(), again.band()) == (result, search.band())


def test_few_runs_where_the_scores_are_good() -> None:
    checks = []
    for seed in range(30):
        truth = set(range(200, 206)) | {400}
        search = search_of(noisy_scores(468, truth, seed), start=8)
        checks.append(len(run(search, needs(truth))))
    assert sum(checks) / len(checks) <= 12 * log2(468)
    exact = search_of([1.0 if item in truth else 0.0 for item in range(468)], start=len(truth))
    assert len(run(exact, needs(truth))) <= 2 * len(truth) + 10


def test_a_limit_ends_with_a_set_that_passes() -> None:
    truth = set(range(0, 300, 10))
    search = search_of([0.0] * 300, limit=20)
    told = run(search, needs(truth))
    assert len(told) <= 21 and truth <= set(search.result().kept or ()) and not search.result().minimal


def test_nothing_is_found_where_fp32_fails_too() -> None:
    search = search_of([0.1] * 40)
    run(search, lambda kept: Verdict.BAD)
    assert search.result().kept is None
    assert frozenset(range(40)) in {frozenset(c.items) for c, _ in run(search_of([0.1] * 40), needs({99}))}


@settings(max_examples=50)
@given(st.integers(1, 60), st.data(), st.sampled_from(["forward", "reverse"]), st.sampled_from(["bisect", "linear"]))
def test_layers_are_asked_as_polygraphy_asks(n: int, data: st.DataObject, direction: Direction, mode: str) -> None:
    least = data.draw(st.integers(0, n + 1))
    theirs = (BisectMarker if mode == "bisect" else LinearMarker)(n, direction)
    expected = []
    while True:
        expected.append(tuple(theirs.select_layers()))
        if theirs.step(theirs.num_layers_to_mark >= least):
            break
    search = LayerSearch(n, mode, direction)  # type: ignore[arg-type]
    told = run(search, lambda kept: Verdict.GOOD if len(kept) >= least else Verdict.BAD)
    assert [candidate.items for candidate, _ in told] == expected
    passed = [candidate.items for candidate, verdict in told if verdict is Verdict.GOOD]
    assert search.result().kept == min(passed, key=len, default=None)


def test_nothing_is_measured_where_nothing_must_be_kept() -> None:
    def never() -> Scores:
        raise AssertionError("measured")

    search = PrecisionSearch(10, never)
    run(search, needs(set()))
    assert search.result().kept == () and search.result().minimal

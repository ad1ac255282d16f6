"""Delta debugging: minimal, all faults, few checks, whatever the predicate does."""

import random
from collections.abc import Callable
from hashlib import blake2b
from itertools import combinations
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict
from layerwise._tool.debugtools.search.strategies.reduce import ReduceSearch

Judge = Callable[[frozenset[int]], Verdict]
Told = list[tuple[Candidate, Verdict]]


def any_of(faults: list[tuple[int, ...]]) -> Judge:
    """Bad as soon as one of the faults is there whole."""
    return lambda nodes: Verdict.BAD if any(nodes.issuperset(fault) for fault in faults) else Verdict.GOOD


def arbitrary(seed: int, bad: int, skip: int) -> Judge:
    """A verdict drawn for each set: nothing follows from one set for another."""

    def judge(nodes: frozenset[int]) -> Verdict:
        byte = blake2b(repr((seed, sorted(nodes))).encode(), digest_size=1).digest()[0]
        return Verdict.BAD if byte < bad else Verdict.SKIP if byte < bad + skip else Verdict.GOOD

    return judge


def run(search: ReduceSearch, judge: Judge) -> Told:
    told: Told = []
    while not search.done:
        asked = search.ask()
        assert asked
        for candidate in asked:
            assert candidate.items and candidate.key not in {old.key for old, _ in told}
            told.append((candidate, judge(frozenset(candidate.items))))
            search.tell(*told[-1])
    assert search.ask() == [] and search.progress().remaining == 0
    return told


arbitrary_judges = st.builds(arbitrary, st.integers(0, 1000), st.integers(0, 256), st.integers(0, 100))
widths = st.integers(1, 4)


@settings(max_examples=50)
@given(st.sets(st.integers(0, 40), min_size=1, max_size=14), arbitrary_judges, widths, st.data())
def test_whatever_the_predicate_the_sets_are_minimal_and_were_told(
    items: set[int], judge: Judge, width: int, data: st.DataObject
) -> None:
    hints = data.draw(st.lists(st.sampled_from(sorted(items)), max_size=4))
    weights = data.draw(st.none() | st.lists(st.floats(0, 9), min_size=len(items), max_size=len(items)))
    search = ReduceSearch(sorted(items), weights, hints, width)
    told = {frozenset(candidate.items): verdict for candidate, verdict in run(search, judge)}
    result = search.result()
    for found in map(frozenset, result.sets):
        assert told[found] is Verdict.BAD
        assert all(told[found - {item}] is not Verdict.BAD for item in found if len(found) > 1)
    assert not any(set(a) & set(b) for a, b in combinations(result.sets, 2))
    left = frozenset(items) - {item for found in result.sets for item in found}
    assert result.exhausted == (not left or told[left] is Verdict.GOOD)
    assert not left or told[left] is not Verdict.BAD
    failed = [nodes for nodes, verdict in told.items() if verdict is Verdict.BAD]
    assert len(result.best) == min(map(len, failed), default=len(items))
    assert result.certified == (tuple(result.best) in result.sets)


@settings(max_examples=50)
@given(st.integers(1, 60), arbitrary_judges, widths, st.data())
def test_replay_and_undo_are_functions_of_the_verdicts(n: int, judge: Judge, width: int, data: st.DataObject) -> None:
    search = ReduceSearch(range(n), width=width)
    told: Told = []
    for _ in range(data.draw(st.integers(0, 12))):
        assert sum(length for _, length in search.band()) == n
        for candidate in search.ask():
            told.append((candidate, judge(frozenset(candidate.items))))
            search.tell(*told[-1])
    again = ReduceSearch(range(n), width=width)
    states = [(again.ask(), again.result(), again.band())]
    for tell in told:
        again.tell(*tell)
        states.append((again.ask(), again.result(), again.band()))
    assert states[-1] == (search.ask(), search.result(), search.band())
    if told:
        undone = ReduceSearch(range(n), width=width)
        for tell in told[:-1]:
            undone.tell(*tell)
        assert states[-2] == (undone.ask(), undone.result(), undone.band())


@settings(max_examples=50)
@given(st.lists(st.sets(st.integers(0, 299), min_size=1, max_size=3), min_size=1, max_size=5), widths)
def test_all_independent_faults_are_found(faults: list[set[int]], width: int) -> None:
    disjoint: list[set[int]] = []
    for fault in faults:
        if not any(fault & other for other in disjoint):
            disjoint.append(fault)
    expected = [tuple(sorted(fault)) for fault in disjoint]
    search = ReduceSearch(range(300), width=width)
    run(search, any_of(expected))
    assert sorted(search.result().sets) == sorted(expected)
    assert search.result().exhausted and search.result().certified


@settings(max_examples=50)
@given(st.integers(0, 909))
def test_one_fault_without_a_hint_takes_log_n_checks(fault: int) -> None:
    assert len(run(ReduceSearch(range(910)), any_of([(fault,)]))) <= log2(910) + 4


@settings(max_examples=50)
@given(st.integers(0, 909))
def test_a_right_hint_takes_two_checks(fault: int) -> None:
    search = ReduceSearch(range(910), hints=[fault])
    asked = [candidate.items for candidate, _ in run(search, any_of([(fault,)]))]
    assert asked == [(fault,), tuple(node for node in range(910) if node != fault)]


def test_a_hint_that_fails_alone_is_found_in_a_rest_that_passes() -> None:
    def weak(nodes: frozenset[int]) -> Verdict:
        return Verdict.BAD if 7 in nodes or nodes == {3} else Verdict.GOOD

    search = ReduceSearch(range(100), hints=[7, 3, 5])
    run(search, weak)
    assert search.result().sets == ((7,), (3,)) and search.result().exhausted


def test_wrong_hints_cost_no_more_than_a_search() -> None:
    search = ReduceSearch(range(910), hints=range(100))
    assert len(run(search, any_of([(500,)]))) <= 2 * log2(910) + 6
    assert search.result().sets == ((500,),)


@settings(max_examples=50)
@given(st.sets(st.integers(0, 909), min_size=5, max_size=5))
def test_five_faults_take_five_searches_at_most(faults: set[int]) -> None:
    assert len(run(ReduceSearch(range(910)), any_of([(fault,) for fault in faults]))) <= 5 * (log2(910) + 3)


def test_a_chain_that_fails_only_whole_is_found_whole() -> None:
    chain = tuple(range(400, 412))
    search = ReduceSearch(range(910))
    assert len(run(search, any_of([chain]))) <= log2(910) + 3 * len(chain) + 4
    assert search.result().sets == (chain,)


def test_nothing_is_found_where_the_whole_passes() -> None:
    search = ReduceSearch(range(50))
    assert len(run(search, any_of([]))) == 1
    assert search.result().sets == () and search.result().exhausted and not search.result().certified


def test_what_cannot_be_judged_is_not_called_good() -> None:
    search = ReduceSearch(range(50))
    run(search, lambda nodes: Verdict.BAD if 7 in nodes else Verdict.SKIP)
    assert search.result().sets == ((7,),) and not search.result().exhausted


@pytest.mark.parametrize("width", [3, 7])
def test_width_saves_rounds(width: int) -> None:
    rng = random.Random(0)
    for _ in range(20):
        fault, rounds = rng.randrange(1000), 0
        search = ReduceSearch(range(1000), width=width)
        while not search.done:
            rounds += 1
            for candidate in search.ask():
                search.tell(candidate, any_of([(fault,)])(frozenset(candidate.items)))
        assert rounds <= 14 / log2(width + 1) + 3


def test_weights_make_it_cheaper() -> None:
    rng = random.Random(1)
    weights = [50.0 if rng.random() < 0.05 else 0.1 for _ in range(400)]
    spent = {True: 0.0, False: 0.0}
    for fault in range(0, 400, 7):
        for known in spent:
            told = run(ReduceSearch(range(400), weights if known else None), any_of([(fault,)]))
            spent[known] += sum(weights[node] for candidate, _ in told for node in candidate.items)
    assert spent[True] < spent[False]


def test_verdicts_on_what_is_not_its_own_are_ignored() -> None:
    search = ReduceSearch([2, 4, 6])
    before = search.ask(), search.result(), search.band()
    for items in [(), (3,), (2, 4, 8)]:
        search.tell(Candidate("x", items), Verdict.BAD)
    assert (search.ask(), search.result(), search.band()) == before

"""Cuts by Polygraphy's rules, beside Polygraphy's own markers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polygraphy.tools.debug.subtool.reduce import BisectMarker, LinearMarker

from layerwise._tool.debugtools.search.strategies.prefix import Mode, PrefixReduce
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

MARKERS = {"bisect": BisectMarker, "linear": LinearMarker}
MODES = st.sampled_from(["bisect", "linear"])


def graphs() -> st.SearchStrategy[list[set[int]]]:
    """For each node the nodes that it reads, all earlier."""
    sizes = st.integers(1, 30)
    return sizes.flatmap(
        lambda n: st.tuples(*(st.sets(st.integers(0, i - 1), max_size=3) if i else st.just(set()) for i in range(n)))
    ).map(list)


def closure(start: int, reads: list[set[int]]) -> list[int]:
    seen, todo = {start}, [start]
    while todo:
        for other in reads[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return sorted(seen)


def answer(candidate: Candidate, fails: Callable[[tuple[int, ...]], bool]) -> Verdict:
    return Verdict.BAD if fails(candidate.items) else Verdict.GOOD


def ours(search: PrefixReduce, fails: Callable[[tuple[int, ...]], bool]) -> list[int]:
    asked = []
    while not search.done:
        candidate = search.ask()[0]
        asked.append(candidate.position)
        search.tell(candidate, answer(candidate, fails))
    return asked


def theirs(
    mode: str, reads: list[set[int]], fails: Callable[[tuple[int, ...]], bool]
) -> tuple[list[int], tuple[int, ...]]:
    asked, base = [], tuple(range(len(reads)))
    for invert in (False, True):
        marker = MARKERS[mode](len(base), invert=invert)
        kept: dict[int, tuple[int, ...]] = {}
        while True:
            index = marker.node_index
            nodes = base[index:] if invert else tuple(closure(base[index], reads))
            asked.append(base[index])
            kept[index] = nodes
            marker.step(not fails(nodes), len(nodes))
            if marker.stop():
                break
        if marker.best_bad_node_index is not None:
            base = kept[marker.best_bad_node_index]
    return asked, base


@settings(max_examples=50)
@given(graphs(), MODES, st.sets(st.integers(0, 29), min_size=1, max_size=3), st.booleans())
def test_asks_and_answers_as_polygraphy_does(
    reads: list[set[int]], mode: Mode, culprits: set[int], together: bool
) -> None:
    def fails(nodes: tuple[int, ...]) -> bool:
        return culprits <= set(nodes) if together else bool(culprits & set(nodes))

    search = PrefixReduce(len(reads), mode, before=lambda position: closure(position, reads))
    assert (ours(search, fails), search.result().best) == theirs(mode, reads, fails)


@settings(max_examples=50)
@given(st.integers(1, 40), MODES, st.lists(st.sampled_from(list(Verdict)), min_size=80, max_size=80), st.integers(1, 4))
def test_any_verdicts_end_it_with_an_answer_that_failed(
    n: int, mode: Mode, verdicts: list[Verdict], width: int
) -> None:
    search = PrefixReduce(n, mode, width=width)
    told: list[tuple[Candidate, Verdict]] = []
    while not search.done:
        assert sum(length for _, length in search.band()) == n
        for candidate in search.ask():
            assert candidate.key not in {old.key for old, _ in told}
            told.append((candidate, verdicts[len(told) % len(verdicts)]))
            search.tell(*told[-1])
    assert search.ask() == [] and search.progress().remaining == 0
    bad = [candidate.items for candidate, verdict in told if verdict is Verdict.BAD]
    assert search.result().best in (bad or [tuple(range(n))])
    assert len(search.result().best) == min(map(len, bad), default=n)

    again = PrefixReduce(n, mode)
    for candidate, verdict in told:
        again.tell(candidate, verdict)
    assert again.done and again.result() == search.result() and again.band() == search.band()


@pytest.mark.parametrize(("phases", "asked"), [(("outputs",), {"outputs"}), (("inputs",), {"inputs"}), ((), set())])
def test_only_the_phases_wanted(phases: tuple[str, ...], asked: set[str]) -> None:
    search, seen = PrefixReduce(8, phases=phases), set()  # type: ignore[arg-type]
    while not search.done:
        seen.add(search.ask()[0].phase)
        search.tell(search.ask()[0], Verdict.BAD)
    assert seen == asked


def test_a_late_answer_changes_nothing() -> None:
    search = PrefixReduce(16)
    first = search.ask()[0]
    search.tell(first, Verdict.BAD)
    before = search.result(), search.band(), search.ask()
    search.tell(first, Verdict.GOOD)
    search.tell(Candidate("outputs:3", (), "outputs", None), Verdict.BAD)
    assert (search.result(), search.band(), search.ask()) == before

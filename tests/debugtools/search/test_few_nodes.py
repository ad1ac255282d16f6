"""Choices among a few nodes, each measured alone: how pairs act together is learnt from sets that are measured."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from layerwise._tool.debugtools.search.lens.belief import Belief
from layerwise._tool.debugtools.search.lens.choose import Choice, Trying, choose_by_belief
from layerwise._tool.debugtools.search.lens.knapsack import Item

COUNT = 10
Kept = frozenset[int]


def drawn(seed: int) -> tuple[list[Item], Callable[[Kept], float]]:
    """Nodes, and what sets come to over the bound's square: pairs of them make up for each other, or add to it."""
    rng = np.random.default_rng(seed)
    alone, costs = rng.gamma(0.5, 1.0, COUNT), rng.integers(1, 20, COUNT)
    pairs = np.triu(rng.normal(0, 0.3, (COUNT, COUNT)).clip(-0.6, 0.6), 1) * 2 * np.sqrt(np.outer(alone, alone))

    def square(kept: Kept) -> float:
        low = np.array([k not in kept for k in range(COUNT)], float)
        return max(float(low @ alone + low @ pairs @ low), 0.0)

    whole = square(frozenset()) / 4
    items = [Item((float(one / whole),), float(cost)) for one, cost in zip(alone, costs, strict=True)]
    return items, lambda kept: square(kept) / whole


def chosen(items: list[Item], square: Callable[[Kept], float]) -> tuple[Choice, int]:
    """The choice, and how many sets it had measured."""
    belief = Belief(items)
    belief.learn(frozenset(), square(frozenset()), judged=False)

    def holds(kept: Kept) -> bool:
        belief.learn(kept, square(kept), judged=True)
        return square(kept) <= 1

    found = choose_by_belief(Trying(items, holds, 200), belief, lambda: True)
    return found, found.tries


def cost(items: list[Item], kept: Kept) -> float:
    return sum(items[k].cost for k in kept)


def test_few_sets_are_measured_for_the_best_of_all() -> None:
    tries = 0
    for seed in range(20):
        items, square = drawn(seed)
        choice, count = chosen(items, square)
        tries += count
        subsets = (frozenset(some) for size in range(COUNT + 1) for some in itertools.combinations(range(COUNT), size))
        assert choice.kept is not None and square(choice.kept) <= 1 and choice.minimal
        assert cost(items, choice.kept) <= min(cost(items, kept) for kept in subsets if square(kept) <= 1) + 1e-9
        assert not any(square(choice.kept - {k}) <= 1 for k in choice.kept)
    assert tries <= 20 * 15


@pytest.mark.parametrize("alone", [math.inf, 1e30])
def test_what_is_beyond_all_bounds_alone_stays(alone: float) -> None:
    items, square = drawn(3)
    items[4] = Item((alone,), items[4].cost)
    choice, _ = chosen(items, lambda kept: square(kept) if 4 in kept else alone)
    assert choice.kept is not None and 4 in choice.kept and choice.minimal


def test_nothing_is_kept_where_all_nodes_hold() -> None:
    items, square = drawn(5)
    choice, count = chosen(items, lambda kept: square(kept) / 5)
    assert choice.kept == frozenset() and count == 1


def test_no_set_is_told_where_none_holds() -> None:
    items, square = drawn(5)
    choice, _ = chosen(items, lambda kept: 2.0 + square(kept))
    assert choice.kept is None

"""Effects of groups: as far as a choice needs them, in few runs, and no cheaper set is overlooked."""

import itertools
from collections.abc import Sequence

import numpy as np

from layerwise._tool.debugtools.search.lens.choose import Doubts, Trying, choose_by_squares
from layerwise._tool.debugtools.search.lens.knapsack import Item, cheapest
from layerwise._tool.debugtools.search.lens.survey import Survey


def test_few_of_many_are_found_in_few_runs() -> None:
    squares = np.full(64, 1e-3)
    squares[[7, 40]] = 3.0, 2.0
    survey = Survey([1.0] * 64, lambda members: (float(squares[list(members)].sum()),))
    alone = {group.members[0] for group in survey.groups() if len(group.members) == 1}
    assert {7, 40} <= alone
    assert survey.runs <= 20


def test_a_lone_culprit_takes_a_bisection_and_no_more() -> None:
    """Halves that are told by a difference are not measured where nothing in them could be cheaper."""
    squares = np.full(64, 1e-4)
    squares[37] = 4.0
    survey = Survey([1.0] * 64, lambda members: (float(squares[list(members)].sum()),))
    assert (37,) in [group.members for group in survey.groups()]
    assert survey.runs <= 1 + 6 + 1


def test_what_is_not_finite_is_found_and_nothing_is_subtracted_from_it() -> None:
    squares = np.full(16, 1e-3)
    squares[5] = np.inf
    survey = Survey([1.0] * 16, lambda members: (float(squares[list(members)].sum()),))
    (worst,) = [group for group in survey.groups() if not np.isfinite(group.squares[0])]
    assert worst.members == (5,)


def test_the_choice_from_groups_costs_no_more_than_the_best_of_all_subsets() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        squares = rng.gamma(0.2, 1.0, 12)
        costs = [float(cost) for cost in rng.integers(0, 20, 12)]

        def measured(members: Sequence[int], squares: np.ndarray = squares) -> tuple[float, ...]:
            return (float(squares[list(members)].sum()),)

        def holds(kept: frozenset[int], squares: np.ndarray = squares) -> bool:
            return sum(squares[k] for k in range(12) if k not in kept) <= 1

        def cost(kept: frozenset[int], costs: list[float] = costs) -> float:
            return sum(costs[k] for k in kept)

        items = [Item((0.0,), 0.0)] * 12
        for group in Survey(costs, measured).groups():
            for k in group.members:
                items[k] = Item((group.squares[0] / len(group.members),), costs[k])
        choice = choose_by_squares(Trying(items, holds, 200), Doubts(beyond=1.2))
        subsets = (frozenset(some) for size in range(13) for some in itertools.combinations(range(12), size))
        best = min(cost(kept) for kept in subsets if holds(kept))
        assert choice.kept is not None and holds(choice.kept)
        assert cost(choice.kept) <= best * 1.02 + 1e-9
        assert not any(holds(choice.kept - {k}) for k in choice.kept)
        assert choice.clear <= len(choice.kept) and cheapest(items) is not None

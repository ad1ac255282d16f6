"""Which combinations are tried and which is taken, where times are those of a table."""

import pytest

from layerwise._tool.debugtools.autotune.strategies import Best, Choices, Combination, Times, exhaustive, greedy

MODEL = Times(10.0, 0)


class Table:
    """Times by combination; one that is not in it cannot be timed."""

    def __init__(self, times: dict[Combination, float]) -> None:
        self.times, self.asked = times, list[Combination]()

    def __call__(self, combination: Combination, best: Best) -> Times | None:
        self.asked.append(combination)
        return Times(self.times[combination], 0) if combination in self.times else None


def test_greedy_keeps_what_is_faster_beside_what_it_kept() -> None:
    table = Table({(0,): 12.0, (1,): 9.0, (1, 2): 9.5, (1, 3): 8.0, (0, 1): 1.0})
    assert greedy(Choices(4), 100, MODEL, table) == Best((1, 3), Times(8.0, 0))
    assert table.asked == [(0,), (1,), (1, 2), (1, 3)]


def test_exhaustive_finds_what_is_fast_together_alone() -> None:
    table = Table({(0,): 12.0, (1,): 9.8, (0, 1): 1.0})
    assert exhaustive(Choices(2), 100, 0.1, MODEL, table).combination == (0, 1)
    assert greedy(Choices(2), 100, MODEL, Table(table.times)).combination == (1,)


@pytest.mark.parametrize(("threshold", "asked"), [(0.1, 3), (0.0, 1), (0.5, 7)])
def test_exhaustive_ends_at_an_improvement_beyond_the_threshold(threshold: float, asked: int) -> None:
    table = Table({(0,): 9.5, (1,): 9.0, (0, 1): 8.0})
    exhaustive(Choices(3), 100, threshold, MODEL, table)
    assert len(table.asked) == asked


def test_the_most_combinations_count_the_model() -> None:
    for most in (1, 2, 3):
        tables = Table({}), Table({})
        assert greedy(Choices(5), most, MODEL, tables[0]).combination == ()
        assert exhaustive(Choices(60), most, 0.1, MODEL, tables[1]).combination == ()
        assert [len(table.asked) for table in tables] == [most - 1] * 2


def test_combinations_come_in_the_order_of_binary_numbers() -> None:
    numbers = [sum(1 << at for at in combination) for combination in Choices(5).all()]
    assert numbers == list(range(1, 32))


def test_replacements_of_one_node_are_not_combined() -> None:
    choices = Choices(3, frozenset({(0, 2)}))
    assert list(choices.all()) == [(0,), (1,), (0, 1), (2,), (1, 2)]
    every = Choices(60, frozenset((a, b) for b in range(60) for a in range(b)))
    assert list(every.all()) == [(at,) for at in range(60)]
    table = Table({(0,): 9.0, (0, 1): 8.0})
    assert greedy(choices, 100, MODEL, table).combination == (0, 1) and len(table.asked) == 2


def test_of_equal_times_less_memory_is_better_and_the_first_stays() -> None:
    def less(combination: Combination, best: Best) -> Times:
        return Times(10.0, -max(combination))

    assert greedy(Choices(2), 100, MODEL, less).combination == (1,)
    assert greedy(Choices(2), 100, MODEL, lambda combination, best: MODEL).combination == ()

"""Which rows of a comparison the Errors page shows, and in which order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layer_rows import FIVE, shown, state_of

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.tui.state.error_filter import parse_filter
from layerwise._tool.tui.state.errors_page import ErrorsState


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("err>1e-3 and op==MatMul and failed", [1]),
        ("err > 1e-3 or op:cast", [1, 2, 4]),
        ("op:matmul !failed", [3]),
        ("not (failed or unknown)", [0, 4]),
        ("nan>0", [2]),
        ("finding==leap", [2]),
        ("found", [1, 2]),
        ("layer.3", [3]),
        ('"a (b)!"', [4]),
        ("dtype~float16 err<=1e-6", [0]),
        ("i>=3", [3, 4]),
        ("tensor:layer.1 or node:layer.4", [1, 4]),
        ("matmul unknown", [3]),
    ],
)
def test_a_filter_shows_the_rows_it_says(text: str, expected: list[int]) -> None:
    assert shown(state_of(*FIVE), text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "err>",
        "(a",
        "a or",
        "depth==1",
        "err>x",
        '"abc',
        "and",
        "op<3",
        "!",
        "a)",
        "()",
        "err~3",
        "x" * 501,
        "(" * 99,
    ],
)
def test_a_wrong_filter_is_named_and_leaves_the_last_good_one(text: str) -> None:
    state = state_of(*FIVE)
    state.set_filter("failed")
    state.set_filter(text)
    assert state.filter_problem.startswith("filter: ")
    assert [int(place) for place in state.order] == [1, 2]


@given(st.text(alphabet="er>=<!~() 1-andotpMl:\"'\\x00é", max_size=60))
@settings(max_examples=300)
def test_no_text_breaks_the_filter(text: str) -> None:
    table = state_of(*FIVE).table
    try:
        mask = parse_filter(text)(table) if text.strip() else None
    except UsageError:
        return
    assert mask is None or mask.shape == (5,)


def test_each_sort_puts_the_worst_first_and_reverses() -> None:
    state = state_of(*FIVE)
    first = {}
    hidden = ("local", "times", "effect", "gain")  # no columns to sort by
    for _ in range(len(ErrorsState.SORTS) - len(hidden)):
        first[state.sort] = state.place(0)
        state.cycle_sort()
    assert state.sort == "graph" and first.keys().isdisjoint(hidden)
    assert first["graph"] == 0
    assert first["max_abs"] in (2, 3)
    assert first["verdict"] in (1, 2)
    assert first["op"] == 0
    state.sort_by("tensor")
    state.reverse_sort()
    assert state.place(0) == 4

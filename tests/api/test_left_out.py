"""The Python API where nothing, or not all, is compared: Polygraphy's truth, and a warning that says it."""

from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from typing import Any

import numpy as np
from polygraphy import comparator as theirs
from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER as THEIR_LOGGER

from layerwise import comparator as ours
from layerwise._tool.backends.errors import LayerwiseError

ARRAY = np.arange(4, dtype=np.float32)
OUTPUTS = {
    "none": {}, "y": {"y": ARRAY}, "z": {"z": ARRAY}, "both": {"y": ARRAY, "z": ARRAY},
    "alike": {"Z/1": ARRAY, "b": ARRAY},
}  # fmt: skip


def results(package: Any, runners: list[list[dict[str, Any]]]) -> Any:
    return package.RunResults(
        [(f"r{n}", [package.IterationResult(dict(outputs), runner_name=f"r{n}") for outputs in iterations])
         for n, iterations in enumerate(runners)]
    )  # fmt: skip


def outcome(package: Any, runners: list[list[dict[str, Any]]]) -> tuple[object, list[Any], str]:
    """The truth of a comparison (None if it raises), its verdicts, and what was printed."""
    said = StringIO()
    with redirect_stdout(said), THEIR_LOGGER.verbosity(THEIR_LOGGER.INFO):
        try:
            found = package.Comparator.compare_accuracy(results(package, runners))
            truth: object = bool(found)
        except (LayerwiseError, PolygraphyException):
            return None, [], said.getvalue()
    each = [outputs for result in found for pair in result for outputs in result[pair]]
    return truth, [{name: bool(verdict) for name, verdict in outputs.items()} for outputs in each], said.getvalue()


def warned(said: str) -> bool:
    return "[W]" in said or "[E]" in said or "FAILED" in said


def test_outputs_that_do_not_match_are_as_in_polygraphy_and_told() -> None:
    for first, second in product(OUTPUTS, repeat=2):
        sides = [[OUTPUTS[first]], [OUTPUTS[second]]]
        mine, other = outcome(ours, sides), outcome(theirs, sides)
        assert mine[:2] == other[:2], (first, second)
        if first != second or first == "none":
            assert mine[0] is None or warned(mine[2]), (first, second, mine[2])
        else:
            assert not warned(mine[2])


def test_iterations_that_do_not_match_are_as_in_polygraphy_and_told() -> None:
    for counts in (*product(range(4), repeat=2), (1, 2, 3), (3, 3, 1), (2, 2, 2), (0, 1, 1), (3,), ()):
        sides = [[{"y": ARRAY}] * count for count in counts]
        mine, other = outcome(ours, sides), outcome(theirs, sides)
        assert mine[:2] == other[:2], counts
        uneven, nothing = len(set(counts)) > 1, len(counts) < 2 or min(counts) == 0
        assert ("different numbers of iterations" in mine[2]) is uneven, (counts, mine[2])
        assert warned(mine[2]) is (uneven or nothing), (counts, mine[2])


def test_empty_results_are_true_with_a_warning_and_can_be_asked() -> None:
    for made in (ours.AccuracyResults(), ours.AccuracyResults([ours.AccuracyResult()]),
                 ours.AccuracyResults([ours.AccuracyResult({("a", "b"): []})]),
                 ours.AccuracyResults([ours.AccuracyResult({("a", "b"): [{}, {}]})])):  # fmt: skip
        said = StringIO()
        with redirect_stdout(said):
            assert bool(made)
        assert "says nothing" in said.getvalue() and made.nothing_compared()
    full = ours.AccuracyResults([ours.AccuracyResult({("a", "b"): [{"y": True}]})])
    assert bool(full) and not full.nothing_compared()


def test_sequences_of_other_lengths_fail() -> None:
    for a, b in product(range(4), repeat=2):
        sides = [[{"y": ARRAY} | {f"s[{i}]": ARRAY for i in range(count)}] for count in (a, b)]
        truth, _, said = outcome(ours, sides)
        assert truth is (a == b or not (a and b)), (a, b)
        assert a == b or warned(said)

"""What a limit allows: what was measured on other processors, and no drift."""

import pytest

from layerwise._tool.debugtools.baseline.jitter import Way, cancelling, coarseness, is_whole, limit, whole_limit
from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF

U = UNIT_ROUNDOFF["float32"]


def test_a_layernorm_without_avx2_is_within_and_twice_the_error_is_not() -> None:
    """(2, 32, 192) in BERT: 0.97 u with AVX-512, 2.57 u without AVX2."""
    assert limit(0.97 * U, 1.2 * U, 12288, Way(depth=34)) > 2.57 * U
    assert limit(8e-4, 8e-4, 12288, Way(UNIT_ROUNDOFF["float16"], 34)) < 2 * 8e-4


def test_sides_that_are_alike_and_agree_may_not_differ() -> None:
    assert limit(0.0, 0.0, 100, Way(depth=40, alike=True)) == U
    assert limit(0.0, 0.0, 100, Way(depth=40)) > 20 * U


def test_a_mean_that_cancels_has_the_error_of_its_terms() -> None:
    """A mean of about nothing was off by 0.14 of itself, and by 2.2 on another processor."""
    cancels = cancelling("ReduceMean", 1e-8, [1.0])
    assert limit(0.14, 2 * U, 2, Way(depth=12, cancels=cancels)) > 2.2
    assert cancelling("Mul", 1e-8, [1.0]) == 1.0
    assert cancelling("Add", 2.0, [1.0, None]) == 1.0


def test_few_elements_may_have_been_right_by_luck() -> None:
    assert limit(0.0, 1e-3, 1, Way()) > 3e-3
    assert limit(0.0, 1e-3, 100000, Way()) < 1e-4


@pytest.mark.parametrize(("dtype", "whole"), [("int64", True), ("bool", True), ("int8", False), ("float16", False)])
def test_whole_numbers_are_counted_and_quantised_values_round(dtype: str, whole: bool) -> None:
    assert is_whole((dtype, dtype)) is whole
    assert (coarseness((dtype, dtype)) == 0) is whole


def test_one_of_whole_numbers_may_flip() -> None:
    assert whole_limit(0.0, 10) > 1 / 10
    assert whole_limit(0.0, 100) < 5 / 100

"""The metrics of tensors without sentinels, bit for bit what plain NumPy gives where the formula allows that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import summary
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

RULE = Rule(atol=1e-3, rtol=1e-2)
TINY = 2.220446049250313e-16  # what Polygraphy divides by instead of zero


def pair(dtype: type, seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two tensors of one size, a tenth of the reference's elements zero, some equal: no element stands apart."""
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(size).astype(dtype)
    b[rng.random(size) < 0.1] = 0
    a = np.where(rng.random(size) < 0.2, b, b + 10.0 ** -rng.integers(1, 6) * rng.standard_normal(size)).astype(dtype)
    return a, b


def check(a: np.ndarray, b: np.ndarray) -> None:
    found = compare_arrays(a, b, RULE, statistics=True)
    totals = found.totals
    assert totals is not None and totals.sentinels == 0
    wide = np.float64 if a.dtype == np.float64 else np.float32
    off = np.abs(a.astype(wide) - b.astype(wide))
    over = off / np.where(b == 0, wide(TINY), np.abs(b.astype(wide)))
    assert (totals.abs.low, totals.abs.high) == (off.min(), off.max())
    assert totals.abs.high_at == off.argmax() and totals.abs.low_at == off.argmin()
    assert totals.rel.high == over.max()
    assert totals.over == np.count_nonzero((off > RULE.atol) & (over > RULE.rtol))
    for side, values in ((totals.a, a), (totals.b, b)):
        assert (side.moments.low, side.moments.high) == (values.min(), values.max())
        assert (side.nans, side.infs) == (0, 0)
    assert found.order_abs["median"] == float(np.median(off))  # in the type of the values, as Polygraphy's


@settings(max_examples=20)
@given(st.sampled_from([np.float16, np.float32, np.float64]), st.integers(0, 1 << 30), st.integers(1, 300))
def test_bounds_counts_and_places(dtype: type, seed: int, size: int) -> None:
    check(*pair(dtype, seed, size))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_median_between_two_values_is_numpys(dtype: type) -> None:
    largest = np.finfo(dtype).max
    for values in ([4.100799560546875e-05, 4.118878496228717e-05], [1, np.inf], [-np.inf, 1], [0, 0, 1, 3], [2]):
        array = np.array(values, dtype)
        assert summary(array.copy())["median"] == float(np.median(array))
    assert summary(np.array([largest, largest], dtype))["median"] == float(largest)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sums_of_exact_values_are_exact(dtype: type) -> None:
    """Whole numbers and halves are added up without rounding, in whatever order: nothing hides behind a tolerance."""
    rng = np.random.default_rng(3)
    b = (rng.integers(-8, 9, CHUNK + 5) / 2).astype(dtype)
    a = (b + rng.integers(0, 3, b.size)).astype(dtype)
    totals = compare_arrays(a, b, RULE).totals
    assert totals is not None
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    assert totals.difference == float(((wide_a - wide_b) ** 2).sum())
    assert totals.product == float(((wide_a - wide_b) * wide_b).sum())
    assert totals.a.moments.total == float(wide_a.sum()) and totals.b.moments.squares == float((wide_b**2).sum())
    found = compare_arrays(a, b, RULE)
    assert found.rel_l2 == (totals.difference**0.5) / (totals.b.moments.squares**0.5)


def test_equal_integers_with_zeros_have_no_relative_error() -> None:
    same = np.array([0, 3, 0], np.int64)
    totals = compare_arrays(same, same.copy(), RULE).totals
    assert totals is not None and (totals.rel.high, totals.abs.high) == (0, 0)

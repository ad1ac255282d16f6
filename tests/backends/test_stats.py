"""Statistics and histograms, compared with the real Polygraphy's text."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from polygraphy.comparator import util as theirs
from support.arrays import NAMES, sample

from layerwise._tool.backends.stats import array_stats, histogram, histogram_text, stats_text
from layerwise._tool.backends.tensors import to_numpy

RNG = np.random.default_rng(0)
ARRAYS = {
    "float32": RNG.standard_normal((3, 70_000)).astype(np.float32),
    "float64": RNG.standard_normal((5, 7)) * 1e-12,
    "int32": RNG.integers(-(2**31), 2**31 - 1, 9999).astype(np.int32),
    "int8": RNG.integers(-127, 127, (10, 10)).astype(np.int8),
    "uint8": np.arange(256, dtype=np.uint8),
    "int64": np.arange(6),
    "bool": np.array([True, False, True]),
    "scalar": np.array(3.5, np.float32),
    "constant": np.full((2, 2), 7.25, np.float32),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_text_equals_polygraphys(name: str) -> None:
    array = ARRAYS[name]
    assert stats_text(array) == theirs.str_output_stats(array).strip()
    assert histogram_text(array) == theirs.str_histogram(array).rstrip("\n")


@pytest.mark.parametrize("name", NAMES)
def test_every_type_has_statistics_or_none(name: str) -> None:
    text = stats_text(sample(name, (4, 5)))
    assert text.startswith("mean=") or text == f"none for {name}"
    assert (array_stats(sample(name)) is None) == (name == "string" or name.startswith("complex"))


@given(hnp.arrays(np.float32, st.integers(1, 400), elements=st.floats(-(2.0**99), 2.0**99, width=32)))
@settings(max_examples=30)
def test_statistics_equal_numpys_in_float64(array: np.ndarray[Any, Any]) -> None:
    stats = array_stats(array)
    assert stats is not None
    wide = array.astype(np.float64)
    assert math.isclose(stats.mean, wide.mean(), rel_tol=1e-12, abs_tol=1e-12 * np.abs(wide).max())
    assert math.isclose(stats.var, wide.var(), rel_tol=1e-9, abs_tol=1e-18 * np.abs(wide).max() ** 2)
    assert (stats.min, stats.max) == (array.min(), array.max())
    assert array[stats.argmin] == array.min() and array[stats.argmax] == array.max()
    assert stats.quantiles is not None
    wanted = np.quantile(wide, (0.5, 0.9, 0.95, 0.99))
    assert np.allclose(stats.quantiles, wanted, rtol=1e-9, atol=1e-12 * np.abs(wide).max())


def test_integers_are_exact_and_bfloat16_is_read() -> None:
    stats = array_stats(np.array([2**63 - 1, -(2**63)]))
    assert stats is not None and (stats.min, stats.max) == (-(2**63), 2**63 - 1)
    stats = array_stats(np.array([1, 3]).astype(to_numpy("bfloat16")))
    assert stats is not None and (stats.mean, stats.std) == (2.0, 1.0)
    stats = array_stats(np.array([-8, 7]).astype(to_numpy("int4")))
    assert stats is not None and (stats.min, stats.max, stats.avg_magnitude) == (-8, 7, 7.5)


def test_the_magnitude_of_the_least_integer_does_not_wrap() -> None:
    least = np.array([-128, -128], np.int8)
    assert "avg-magnitude=-128" in theirs.str_output_stats(least)  # Polygraphy's
    assert "avg-magnitude=128" in stats_text(least)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_a_range_with_fewer_numbers_than_bins_is_counted(kind: type[np.floating]) -> None:
    found = histogram(np.array([1, np.nextafter(kind(1), kind(2))] * 3, kind))
    assert found is not None and sum(found[0]) == 6 and len(found[1]) == 11


def test_nan_and_infinity_are_counted() -> None:
    assert stats_text(np.array([1.0, np.nan, np.inf])).endswith("nan=1, inf=1")
    stats = array_stats(np.array([1.0, np.inf, -1.0]))
    assert stats is not None and stats.mean == math.inf and (stats.nan, stats.inf, stats.argmax) == (0, 1, (1,))
    assert stats.quantiles is not None and stats.quantiles[0] == 1.0 and stats.quantiles[3] == math.inf
    found = histogram(np.array([0.0, 1.0, np.nan, np.inf]))
    assert found is not None and sum(found[0]) == 2
    assert histogram_text(np.array([0.0, np.nan])).endswith("1 values are not finite")


def test_arrays_without_values_have_no_statistics() -> None:
    assert stats_text(np.zeros((0, 3))) == "no elements"
    assert histogram(np.zeros(0)) is None and histogram(np.array([np.nan])) is None
    assert histogram_text(np.array([True])) == ""

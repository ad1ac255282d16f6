"""The numbers and verdicts of one pair of tensors, beside real Polygraphy's."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from polygraphy.comparator import (
    CosineSimilarityCompareFunc,
    IndicesCompareFunc,
    L2CompareFunc,
    PsnrCompareFunc,
    SimpleCompareFunc,
    SnrCompareFunc,
)
from support.polycompare import polygraphy_says
from support.versions import since

from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK
from layerwise._tool.debugtools.compare.arithmetic.metrics import array_stats, compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import QUANTILES, summary
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.arithmetic.totals import worst

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]
DEFAULT = Rule()
RNG = np.random.default_rng(7)


def sample(dtype: Any, shape: tuple[int, ...] = (3, 50)) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        return RNG.integers(0, 100, shape).astype(kind)
    return RNG.standard_normal(shape).astype(kind)


def same(x: float | None, y: float) -> bool:
    return x is not None and (float(x) == y or (math.isnan(x) and math.isnan(y)))


def assert_like_polygraphy(a: np.ndarray, b: np.ndarray, rule: Rule = DEFAULT) -> Comparison:
    ours = compare_arrays(a, b, rule, medians=True)
    func = SimpleCompareFunc(
        atol=rule.atol,
        rtol=rule.rtol,
        check_error_stat=rule.stat,
        error_quantile=rule.quantile,
    )
    theirs = polygraphy_says(func, a, b)
    assert ours.passed is bool(theirs)
    totals = ours.totals
    assert totals is not None
    assert same(float(worst(totals.abs)), theirs.max_absdiff)
    assert same(float(worst(totals.rel)), theirs.max_reldiff)
    for mine, other in ((totals.abs.mean, theirs.mean_absdiff), (totals.rel.mean, theirs.mean_reldiff)):
        assert mine == pytest.approx(other, rel=1e-5, nan_ok=True)
    assert ours.order_abs["median"] == pytest.approx(theirs.median_absdiff, rel=1e-6, nan_ok=True)
    return ours


@pytest.mark.parametrize("second", FLOATS)
@pytest.mark.parametrize("first", FLOATS)
@pytest.mark.parametrize("size", [1, 77, CHUNK + 3])
def test_floats_have_polygraphys_numbers(first: Any, second: Any, size: int) -> None:
    a = sample(first, (size,))
    b = (a.astype(np.float64) * (1 + 1e-4 * RNG.standard_normal(size))).astype(second)
    b[::7] = 0
    assert_like_polygraphy(a, b)


@pytest.mark.parametrize("second", [*INTEGERS, bool])
@pytest.mark.parametrize("first", [*INTEGERS, bool])
def test_integers_have_polygraphys_numbers_where_it_does_not_overflow(first: Any, second: Any) -> None:
    a, b = sample(first), sample(second)
    b = np.where((a == 0) & (b == 0), 1, b).astype(b.dtype)
    assert_like_polygraphy(a, b)
    assert_like_polygraphy(np.where(a == 0, 1, a).astype(a.dtype), np.where(a == 0, 1, a).astype(a.dtype))


@pytest.mark.parametrize("kind", [*INTEGERS, bool])
def test_equal_zeros_of_integers_are_no_distance_apart(kind: Any) -> None:
    a = np.array([0, 1, 1, 0], kind)
    equal = compare_arrays(a, a.copy(), DEFAULT, statistics=True)
    assert equal.passed and equal.totals is not None
    assert (worst(equal.totals.rel), equal.totals.rel.mean, equal.order_rel["p99"]) == (0, 0, 0)
    other = compare_arrays(a, np.array([0, 1, 0, 0], kind), DEFAULT)
    assert other.totals is not None and other.over == 1 and worst(other.totals.rel) == math.inf


@pytest.mark.parametrize(("first", "second"), [(np.float32, np.int64), (np.int8, np.float16), (np.float64, bool)])
def test_mixed_kinds_are_promoted_as_polygraphy_does(first: Any, second: Any) -> None:
    assert_like_polygraphy(sample(first), sample(second))


SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-5, 1.00001e-5, math.inf, -math.inf, math.nan, 1e-30, 3e38, 1e-45])


@since("numpy", "2.0", "Polygraphy's arithmetic is another there")
@settings(max_examples=75)
@given(
    a=hnp.arrays(np.float32, 6, elements=SPECIAL | st.floats(width=32)),
    b=hnp.arrays(np.float32, 6, elements=SPECIAL | st.floats(width=32)),
    stat=st.sampled_from(["elemwise", "max", "mean"]),
    infinities=st.booleans(),
)
def test_any_floats_get_polygraphys_verdict(a: np.ndarray, b: np.ndarray, stat: Any, infinities: bool) -> None:
    rule = Rule(stat=stat, infinities_equal=infinities)
    ours = compare_arrays(a, b, rule)
    theirs = polygraphy_says(SimpleCompareFunc(check_error_stat=stat, infinities_compare_equal=infinities), a, b)
    assert ours.totals is not None
    assert same(float(worst(ours.totals.abs)), theirs.max_absdiff)
    assert same(float(worst(ours.totals.rel)), theirs.max_reldiff)
    if stat != "mean":  # Polygraphy's mean overflows in float32
        assert ours.passed is bool(theirs)


@pytest.mark.parametrize("stat", ["max", "mean", "median", "quantile"])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-4, 1.0])
def test_statistics_give_polygraphys_verdict(stat: Any, tolerance: float) -> None:
    a = sample(np.float32)
    b = a + np.float32(1e-4) * sample(np.float32)
    assert_like_polygraphy(a, b, Rule(atol=tolerance, rtol=tolerance, stat=stat, quantile=0.9))


@pytest.mark.parametrize("tolerance", [
    0.5, 1e-5, 0.25, pytest.param(0.1, marks=since("numpy", "2.0", "Polygraphy's arithmetic is another there")),
])  # fmt: skip
def test_the_boundary_is_inclusive_in_the_tensors_own_precision(tolerance: float) -> None:
    b = np.zeros(4, np.float32)
    for a in (b + np.float32(tolerance), np.nextafter(b + np.float32(tolerance), np.float32(9))):
        assert_like_polygraphy(a, b, Rule(atol=tolerance, rtol=0.0))


@pytest.mark.parametrize(
    ("metric", "func"),
    [
        ("l2", L2CompareFunc()),
        ("cosine_similarity", CosineSimilarityCompareFunc()),
        ("psnr", PsnrCompareFunc()),
        ("snr", SnrCompareFunc()),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-3, 0.5])
def test_distances_agree_with_polygraphy(metric: Any, func: Any, noise: float) -> None:
    a = sample(np.float64)
    b = a + noise * sample(np.float64)
    ours = compare_arrays(a, b, Rule(), metrics=[metric])
    theirs = polygraphy_says(func, a, b)
    value = {"l2": ours.l2, "cosine_similarity": ours.cosine, "psnr": ours.psnr, "snr": ours.snr}[metric]
    assert value == pytest.approx(next(iter(theirs.metric_values().values())), rel=1e-9)
    assert ours.passed is bool(theirs)


def test_cosine_of_almost_parallel_vectors_does_not_cancel() -> None:
    b = np.full(1 << 20, 0.1, np.float32)
    a = b.copy()
    a[0] += np.float32(1e-3)
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    distance = np.sum((exact_a / np.linalg.norm(exact_a) - exact_b / np.linalg.norm(exact_b)) ** 2) / 2
    cosine = compare_arrays(a, b, Rule()).cosine
    assert cosine is not None and cosine < 1
    assert 1 - cosine == pytest.approx(distance, rel=1e-3)


@pytest.mark.parametrize(("a", "b", "cosine"), [([0, 0], [0, 0], 1.0), ([0, 0], [1, 2], 0.0), ([1, 0], [-1, 0], -1.0)])
def test_cosine_of_zero_and_opposite_vectors(a: list[float], b: list[float], cosine: float) -> None:
    assert compare_arrays(np.array(a, np.float32), np.array(b, np.float32), Rule()).cosine == cosine


def test_places_counts_and_statistics() -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = a.copy()
    b[1, 2, 0], b[0, 1, 1], a[0, 2, 2], a[1, 0, 3] = 90, -50, np.nan, np.inf
    result = compare_arrays(a, b, Rule())
    totals = result.totals
    assert totals is not None
    assert math.isnan(totals.abs.high) and totals.abs.high_at == 10
    assert (totals.a.nans, totals.a.infs, totals.a.first_nan, totals.a.first_inf) == (1, 1, 10, 15)
    assert totals.b.nans == totals.b.infs == 0
    assert (totals.b.moments.low, totals.b.moments.low_at) == (-50, 5)
    assert (totals.b.moments.high, totals.b.moments.high_at) == (90, 20)
    assert totals.b.magnitude / 24 == pytest.approx(float(np.mean(np.abs(b))))
    assert result.over == 4
    assert result.passed is False


def test_long_tensors_place_their_extremes() -> None:
    a = RNG.standard_normal(3 * CHUNK + 17).astype(np.float32)
    b = a.copy()
    b[2 * CHUNK + 5] += 1
    b[CHUNK + 1] = np.nan
    side = array_stats(b)
    assert side is not None and side.first_nan == CHUNK + 1
    b[CHUNK + 1] = a[CHUNK + 1]
    totals = compare_arrays(a, b, Rule()).totals
    assert totals is not None
    assert totals.abs.high_at == 2 * CHUNK + 5
    assert totals.over == 1
    assert totals.a.moments.high_at == int(a.argmax())
    assert totals.a.moments.mean == pytest.approx(float(a.astype(np.float64).mean()), rel=1e-9)
    assert totals.a.moments.deviation == pytest.approx(float(a.astype(np.float64).std()), rel=1e-9)


def test_empty_tensors_pass_everything() -> None:
    empty = np.zeros((0, 3), np.float32)
    result = compare_arrays(
        empty, empty, Rule(), metrics=["simple", "l2", "cosine_similarity", "psnr", "snr", "indices"]
    )
    assert result.passed is True
    assert polygraphy_says(SimpleCompareFunc(), empty, empty)


def test_scalars_and_layouts() -> None:
    assert compare_arrays(np.float32(1).reshape(()), np.float32(2).reshape(()), Rule()).over == 1
    a = sample(np.float32, (40, 30))
    b = np.asfortranarray(a)
    b[3, 4] += 1
    totals = compare_arrays(a, b, Rule()).totals
    assert totals is not None and totals.abs.high_at == 3 * 30 + 4


def test_shapes_must_match_unless_switched_off() -> None:
    a = np.arange(6.0).reshape(2, 3)
    result = compare_arrays(a, a.T, Rule(), metrics=["simple", "l2"])
    assert result.passed is False and "shapes differ" in result.note
    assert compare_arrays(a, a.T, Rule(), shape_check=False).passed is True
    assert compare_arrays(a, a.reshape(6), Rule(), shape_check=False).passed is True
    assert compare_arrays(a, np.arange(7.0), Rule(), shape_check=False).passed is False


@settings(max_examples=30)
@given(shape=hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), data=st.data())
def test_reshaping_agrees_with_polygraphy(shape: tuple[int, ...], data: st.DataObject) -> None:
    a = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    other = data.draw(st.permutations(shape)) if data.draw(st.booleans()) else [math.prod(shape)]
    b = np.arange(math.prod(shape), dtype=np.float32).reshape(other)
    ours = compare_arrays(a, b, Rule(), shape_check=False)
    try:
        theirs = bool(polygraphy_says(SimpleCompareFunc(check_shapes=False), a, b))
    except Exception:  # it fails on views that are not contiguous
        return
    assert ours.passed is theirs


def test_strings_are_equal_or_not() -> None:
    a = np.array(["x", "y"], object)
    assert compare_arrays(a, a.copy(), Rule()).passed is True
    result = compare_arrays(a, np.array(["x", "z"], object), Rule())
    assert (result.passed, result.over) == (False, 1)
    assert compare_arrays(a, np.zeros(2, np.float32), Rule()).passed is False


@settings(max_examples=40)
@given(
    a=hnp.arrays(np.int64, (2, 5), elements=st.integers(0, 6)),
    b=hnp.arrays(np.int64, (2, 5), elements=st.integers(0, 6)),
    tolerance=st.integers(0, 3),
)
def test_indices_agree_with_polygraphy(a: np.ndarray, b: np.ndarray, tolerance: int) -> None:
    ours = compare_arrays(a, b, Rule(index_tolerance=tolerance), metrics=["indices"])
    assert ours.passed is polygraphy_says(IndicesCompareFunc(index_tolerance=tolerance), a, b)


def test_quantiles_and_medians_are_exact_when_asked_for() -> None:
    a, b = sample(np.float32, (999,)), sample(np.float32, (999,))
    result = compare_arrays(a, b, Rule(), statistics=True)
    error = np.abs(a - b)
    assert result.order_abs["p95"] == pytest.approx(float(np.quantile(error, 0.95)), rel=1e-6)
    assert result.order_rel["median"] == pytest.approx(float(np.median(error / np.abs(b))), rel=1e-6)
    assert result.order_sides[1]["p90"] == pytest.approx(float(np.quantile(b, 0.9)), rel=1e-6)
    assert compare_arrays(a, b, Rule()).order_abs == {}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4])
def test_types_that_numpy_lacks_are_compared_in_wider_ones(dtype: Any) -> None:
    a = np.array([1, 2, 3, -4], dtype)
    b = np.array([1, 2, 3, -3], dtype)
    result = compare_arrays(a, b, Rule())
    assert result.totals is not None
    assert (result.totals.abs.high, result.over, result.dtypes[0]) == (1, 1, np.dtype(dtype).name)


def test_complex_numbers_are_compared_by_magnitude() -> None:
    a = np.array([1 + 1j, 2, 0], np.complex64)
    result = compare_arrays(a, a + np.complex64(3 + 4j), Rule())
    assert result.totals is not None and result.totals.abs.high == pytest.approx(5)
    assert compare_arrays(a, a, Rule()).passed is True


@given(
    values=st.sampled_from(["float16", "float32", "float64"]).flatmap(
        lambda kind: hnp.arrays(kind, st.integers(1, 300), elements=st.floats(width=16))
    )
)
@example(values=np.array([0, 1e-6, 0, 0, 0, 1, 1, 1], np.float16))
@settings(max_examples=50)
def test_quantiles_are_numpys_to_the_last_bit_and_infinite_between_infinities(values: np.ndarray) -> None:
    places = list(QUANTILES.values())
    with np.errstate(all="ignore"):
        wanted = np.quantile(values, places).astype(np.float64)
        wanted[0] = np.median(values)  # which rounds to the type of the values
        low, high = (np.quantile(values, places, method=method) for method in ("lower", "higher"))
        found = summary(values.copy())
        assert np.array_equal(list(found.values()), np.where(low == high, low, wanted), equal_nan=True)

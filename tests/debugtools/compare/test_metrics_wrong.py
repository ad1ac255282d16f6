"""Where real Polygraphy is wrong, and ours is not: both run on the same data."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polygraphy.comparator import (
    L2CompareFunc,
    PerceptualMetricsCompareFunc,
    PsnrCompareFunc,
    SimpleCompareFunc,
)
from polygraphy.json import from_json, to_json
from support.polycompare import polygraphy_says

from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule


def test_int32_extremes_do_not_pass_for_equal() -> None:
    a, b = np.array([2**31 - 1], np.int32), np.array([-1], np.int32)
    assert bool(polygraphy_says(SimpleCompareFunc(), a, b)) is True
    ours = compare_arrays(a, b, Rule())
    assert ours.passed is False
    assert ours.totals is not None and ours.totals.abs.high == 2**31


def test_uint64_differences_do_not_wrap() -> None:
    a, b = np.array([0], np.uint64), np.array([1], np.uint64)
    assert polygraphy_says(SimpleCompareFunc(), a, b).max_absdiff > 1e19
    ours = compare_arrays(a, b, Rule(atol=1))
    assert ours.passed is True
    assert ours.totals is not None and ours.totals.abs.high == 1


@pytest.mark.parametrize(("metric", "func"), [("l2", L2CompareFunc()), ("psnr", PsnrCompareFunc())])
def test_bool_tensors_have_distances(metric: str, func: object) -> None:
    a, b = np.array([True, False, True]), np.array([True, True, True])
    with pytest.raises(TypeError):
        polygraphy_says(func, a, b)
    ours = compare_arrays(a, b, Rule(l2=2, psnr=0), metrics=[metric])  # type: ignore[list-item]
    assert (ours.l2, ours.passed) == (1.0, True)


def test_bfloat16_keeps_its_type(tmp_path: object) -> None:
    a = np.array([1, 2.5], ml_dtypes.bfloat16)
    assert from_json(to_json({"x": a}))["x"].dtype.kind == "V"
    path = f"{tmp_path}/outputs.json"
    RunResults([("r", [IterationResult({"x": a}, 0.1, "r")])]).save(path)
    back = load_results(path)["r"][0].outputs["x"]
    assert back.dtype == a.dtype
    assert compare_arrays(back, a, Rule()).passed is True


def test_an_absent_lpips_does_not_pass() -> None:
    if importlib.util.find_spec("lpips"):
        pytest.skip("lpips is installed")
    a = np.zeros((1, 3, 8, 8), np.float32)
    func = PerceptualMetricsCompareFunc()
    func._lpips_initialized = True  # as it is after it failed to load; without torch it even crashes
    assert bool(polygraphy_says(func, a, a + 1)) is True
    ours = compare_arrays(a, a + 1, Rule(), metrics=["perceptual_metrics"])
    assert ours.passed is False
    assert "pip install" in ours.note


WIDE = [np.int64, np.uint64, np.int32, np.uint32, np.int8]


@settings(max_examples=100)
@given(data=st.data(), first=st.sampled_from(WIDE), second=st.sampled_from(WIDE), tolerance=st.integers(0, 2**40))
def test_integers_of_all_widths_are_exact(data: st.DataObject, first: type, second: type, tolerance: int) -> None:
    def values(dtype: type) -> list[int]:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        edge = st.sampled_from([v for v in (low, low + 1, -1, 0, 1, high - 1, high) if low <= v <= high])
        return data.draw(st.lists(edge | st.integers(low, high), min_size=3, max_size=3))

    x, y = values(first), values(second)
    ours = compare_arrays(np.array(x, first), np.array(y, second), Rule(atol=tolerance, rtol=0.0))
    exact = [abs(p - q) for p, q in zip(x, y, strict=True)]
    assert ours.totals is not None
    assert ours.totals.abs.high == min(max(exact), 2**64 - 1)
    assert ours.over == sum(error > tolerance for error in exact)
    assert ours.l2 == pytest.approx(sum(error**2 for error in exact) ** 0.5, rel=1e-9)

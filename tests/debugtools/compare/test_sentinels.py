"""Elements that a mask hides are counted and left out of norms and tolerances; nothing else is."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

ROUNDING = Rule(auto=True)
CAUSAL = np.triu(np.ones((16, 16), bool), 1)
SCORES = np.random.default_rng(0).standard_normal((2, 4, 16, 16)).astype(np.float32) * 2
MASKS: dict[str, tuple[Any, float]] = {
    "largest FP32": (np.float32, float(np.finfo(np.float32).min)),
    "infinite": (np.float32, -math.inf),
    "-1e9": (np.float32, -1e9),
    "-1e4": (np.float32, -1e4),
    "largest FP16": (np.float16, -65504.0),
    "infinite in FP16": (np.float16, -math.inf),
    "-1e4 in FP16": (np.float16, -1e4),
}


def masked(scores: Array, kind: Any, value: float) -> Array:
    with np.errstate(all="ignore"):
        return (scores.astype(kind) + np.where(CAUSAL, value, 0).astype(kind)).astype(kind)


@pytest.mark.parametrize("name", MASKS)
def test_masked_scores_are_judged_by_what_the_mask_leaves(name: str) -> None:
    kind, value = MASKS[name]
    reference, unit = masked(SCORES, kind, value), float(np.finfo(kind).eps)
    hidden = 8 * int(CAUSAL.sum())
    near = compare_arrays(masked(SCORES * np.float32(1 + unit), kind, value), reference, ROUNDING)
    wrong = compare_arrays(masked(SCORES * np.float32(0.9), kind, value), reference, ROUNDING)
    for result in (near, wrong):
        assert result.totals is not None and result.totals.sentinels == hidden
        assert f"{hidden} of {SCORES.size} elements are sentinels" in result.note
    assert near.passed is True and wrong.passed is False
    assert wrong.rel_l2 == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("name", [name for name, (_, value) in MASKS.items() if math.isfinite(value)])
def test_a_mask_that_is_not_the_same_on_both_sides_is_compared(name: str) -> None:
    kind, value = MASKS[name]
    reference = masked(SCORES, kind, value)
    result = compare_arrays((reference * kind(0.9)).astype(kind), reference, ROUNDING)
    assert result.passed is False and result.totals is not None and result.totals.sentinels == 0


def test_sides_of_two_types_may_have_masks_of_two_values() -> None:
    result = compare_arrays(masked(SCORES, np.float16, -1e4), masked(SCORES, np.float32, -3.4e38), ROUNDING)
    assert result.passed is True and result.totals is not None and result.totals.sentinels == 8 * int(CAUSAL.sum())


def test_a_mask_of_its_own_in_the_narrower_type_agrees_with_the_wider_one() -> None:
    narrow, wide = (
        masked(np.zeros_like(SCORES), np.float16, -65504.0),
        masked(np.zeros_like(SCORES), np.float32, -3.4e38),
    )
    for a, b in ((narrow, wide), (wide, narrow)):
        assert compare_arrays(a, b, ROUNDING).passed is True
    assert compare_arrays((wide * 1e-34).astype(np.float32), narrow, ROUNDING).passed is False


@pytest.mark.parametrize("narrow", [-65504.0, -1e4])
def test_the_constant_that_a_mask_is_made_of_may_be_narrower_on_either_side(narrow: float) -> None:
    wide, other = np.float32(np.finfo(np.float32).min), np.float16(narrow)
    for a, b in ((wide, other), (other, wide)):
        result = compare_arrays(np.array(a), np.array(b), ROUNDING)
        assert result.passed is not False and result.totals is not None and result.totals.sentinels == 1
    for a, b in ((wide, np.float16(-60.0)), (np.float32(-12.0), other), (-wide, other)):
        assert compare_arrays(np.array(a), np.array(b), ROUNDING).passed is False


@pytest.mark.parametrize("scores", [SCORES, np.float32(0)])
def test_a_mask_of_infinity_is_one_of_the_lowest_number(scores: Array) -> None:
    lowest, endless = np.float32(np.finfo(np.float32).min), np.float32(-np.inf)
    one, other = (np.where(CAUSAL if scores.ndim else True, value, scores) for value in (lowest, endless))
    for a, b in ((one, other), (other, one)):
        result = compare_arrays(a, b, ROUNDING)
        assert result.passed is True and result.totals is not None
        assert result.totals.sentinels == (8 * int(CAUSAL.sum()) if scores.ndim else 1)
    for far in (-one, np.where(one == lowest, np.float32(-1e20), one)):
        assert compare_arrays(far, other, ROUNDING).passed is False
        assert compare_arrays(other, far, ROUNDING).passed is False


def test_one_masked_row_that_is_not_masked_on_the_other_side_fails() -> None:
    reference = masked(SCORES, np.float32, -math.inf)
    suspect = reference.copy()
    suspect[0, 0, 3] = SCORES[0, 0, 3]
    assert compare_arrays(suspect, reference, ROUNDING).passed is False


@pytest.mark.parametrize("values", [[10000.0], [1e4, 2e4, 3e4, 1.0], [1e4, 1e4, 60.0, 1.0], [2.5e6, 2.5e6, 1.0]])
def test_values_that_no_mask_has_or_that_do_not_stand_alone_are_compared(values: list[float]) -> None:
    array = np.asarray(values, np.float32)
    result = compare_arrays(array, array.copy(), ROUNDING)
    assert result.totals is not None and result.totals.sentinels == 0 and result.totals.others is None


def test_tolerances_of_the_user_judge_all_elements_as_polygraphy_does() -> None:
    reference = masked(SCORES, np.float32, -math.inf)
    assert compare_arrays(reference.copy(), reference, Rule()).passed is False
    assert compare_arrays(reference.copy(), reference, Rule(infinities_equal=True)).passed is True


@settings(max_examples=30)
@given(
    a=hnp.arrays(np.float32, 24, elements=st.floats(-100, 100, width=32)),
    b=hnp.arrays(np.float32, 24, elements=st.floats(-100, 100, width=32)),
    mask=hnp.arrays(np.bool_, 24),
    value=st.sampled_from([-math.inf, float(np.finfo(np.float32).min), -1e30]),
)
def test_what_is_left_has_the_numbers_that_it_has_alone(a: Array, b: Array, mask: Array, value: float) -> None:
    """Sums over an array with sentinels are those over the elements that are none, zeros in their place."""
    hidden_a, hidden_b = (np.where(mask, np.float32(value), side) for side in (a, b))
    alone_a, alone_b = (np.where(mask, np.float32(0), side) for side in (a, b))
    result, alone = (
        compare_arrays(x, y, Rule(atol=1.0, rtol=0.0, infinities_equal=True))
        for x, y in ((hidden_a, hidden_b), (alone_a, alone_b))
    )
    assert result.totals is not None and result.totals.sentinels == int(mask.sum())
    for name in ("l2", "rel_l2", "cosine", "snr", "psnr", "over"):
        assert getattr(result, name) == pytest.approx(getattr(alone, name), nan_ok=True), name


def test_sides_that_computed_in_different_types_may_have_masks_of_their_own() -> None:
    """A graph in FP16 that onnxruntime runs in FP32 holds the largest FP16 value, its reference the largest of FP32."""
    kept = np.linspace(-2, 2, 30, dtype=np.float32)
    a, b = (np.concatenate([kept, np.full(2, low, np.float32)]) for low in (-65504.0, -3.4028235e38))
    mixed = compare_arrays(a, b, Rule(auto=True), types=("float16", "float32"))
    assert mixed.passed and mixed.totals is not None and mixed.totals.sentinels == 2
    assert not compare_arrays(a, b, Rule(auto=True), types=("float32", "float32")).passed

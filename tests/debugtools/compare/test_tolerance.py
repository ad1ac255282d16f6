"""Rules per tensor, and the tolerance that a dtype implies."""

import math

import pytest

from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, Tolerances, rounding_bound
from layerwise._tool.debugtools.compare.spec import ToleranceSpec


def test_a_rule_takes_the_tensors_own_value_then_the_default() -> None:
    spec = ToleranceSpec(
        atol={"": 1e-3, "y": 1e-2}, rtol={"y": 0.5}, stat={"y": "max"}, quantile={"": 0.5}, l2={"z": 2}
    )
    tolerances = Tolerances(spec)
    y, z = tolerances.rule("y"), tolerances.rule("z")
    assert (y.atol, y.rtol, y.stat, y.quantile) == (1e-2, 0.5, "max", 0.5)
    assert (z.atol, z.rtol, z.stat, z.l2, y.l2) == (1e-3, 1e-5, "elemwise", 2, 1e-5)
    assert tolerances.rule("y") is y


def test_defaults_are_polygraphys() -> None:
    rule = Tolerances(ToleranceSpec()).rule("any")
    assert (rule.atol, rule.rtol, rule.stat, rule.quantile) == (1e-5, 1e-5, "elemwise", 0.99)
    assert (rule.l2, rule.cosine, rule.psnr, rule.snr, rule.lpips) == (1e-5, 0.997, 30, 20, 0.1)


def test_the_bound_follows_the_coarser_dtype_and_the_depth() -> None:
    assert rounding_bound(["float32", "float32"]) == 16 * 2**-24
    assert rounding_bound(["float32", "float16"], 4) == 16 * 2**-11 * 2
    assert rounding_bound(["bfloat16"]) > rounding_bound(["float16"]) > rounding_bound(["float32"])
    assert rounding_bound(["int64", "int64"]) == 0


def test_auto_applies_to_floats_without_a_tolerance_of_their_own() -> None:
    tolerances = Tolerances(ToleranceSpec(auto=True, atol={"y": 0.1}))
    assert not tolerances.rule("y").auto
    rule = tolerances.rule("x")
    derived = rule.derived(["float32", "float32"], [], 100.0, 9)
    assert derived.bound == pytest.approx(16 * 2**-24 * 3)
    assert (derived.rtol, derived.atol) == pytest.approx((32 * derived.bound, 3200 * derived.bound))
    assert rule.derived(["float32", "float32"], ["bfloat16"], 1.0, 1).bound == pytest.approx(16 * 2**-8)
    assert rule.derived(["float16", "float16"], [], 1.0, 4).floor == 2**-23
    assert rule.derived(["int8", "int8"], ["bfloat16"], 5.0, 9).atol == 1
    assert rule.derived(["int64", "int64"], ["float32"], 5.0, 9).atol == 0
    assert rule.derived(["float32", "float32"], [], math.inf, 1).atol == 0
    assert Rule().derived(["float32"], [], 1.0, 1) == Rule()


def test_tolerances_for_unknown_tensors_are_told_with_near_names() -> None:
    tolerances = Tolerances(ToleranceSpec(atol={"": 1, "logit": 2}, cosine={"logits": 0.9}))
    (line,) = tolerances.unknown_names(["logits", "mask"])
    assert "'logit'" in line and "did you mean 'logits'" in line

"""What the canary says when looking at tensors moved the outputs."""

import numpy as np

from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.observing.canary import Canary

PLAIN = np.array([1.0, 2.0], np.float32)


def told(observed: np.ndarray, rule: Rule) -> tuple[bool, str]:
    canary = Canary(("simple",))
    canary.check("y", "runner", PLAIN, observed, 1)
    canary.verdicts("y", (PLAIN, PLAIN), (observed, PLAIN), rule)
    report = canary.report()
    assert report is not None
    return report.ok, report.text


def test_a_verdict_that_flips_by_rounding_alone_is_flagged_as_that() -> None:
    ok, text = told(np.nextafter(PLAIN, np.float32(9)), Rule(atol=0.0, rtol=0.0))
    assert not ok
    assert "within what rounding explains; the verdict changes for y" in text


def test_what_rounding_does_not_explain_is_flagged_without_a_verdict_that_flips() -> None:
    ok, text = told(PLAIN + np.float32(0.1), Rule(atol=1.0, rtol=1.0))
    assert not ok
    assert "beyond what rounding explains" in text and "verdict" not in text


def test_a_rule_by_which_rounding_decides_holds_for_both_pairs_as_it_was_derived() -> None:
    """An FP32 output behind nodes in FP16: looking moves it by less than they round."""
    rule = Rule(auto=True).derived(("float32", "float32"), ("float16",), 2.0, 4)
    off = PLAIN * np.float32(1.0005)
    canary = Canary(("simple",))
    canary.check("y", "runner", PLAIN, off, 4, ("float16",))
    canary.verdicts("y", (off, PLAIN), (np.nextafter(off, np.float32(9)), PLAIN), rule)
    report = canary.report()
    assert report is not None and report.ok, report


def test_rounding_alone_is_no_finding() -> None:
    ok, text = told(np.nextafter(PLAIN, np.float32(9)), Rule())
    assert ok and "within what rounding explains" in text

"""The last sentence of a comparison: what was found, how sure that is, and what to do next."""

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import RowSummary
from layerwise._tool.debugtools.compare.spec import CompareSpec, compares_layers, rules_of

_LOCATE = "`debug locate` tells which layer is wrong by itself"
_HERE = {
    "leap": "its inputs agree, so the fault is there",
    "overflow": "it overflows where the reference does not",
    "nan": "its NaN does not come from its inputs",
    "propagated": f"its inputs are off already; {_LOCATE}",
    "random": "random numbers are in it, which each side draws for itself",
}


def conclusion(result: CompareResult, spec: CompareSpec) -> str:
    """Return the sentence; "" where there is nothing to add: outputs that all agree, nothing compared."""
    if not result.n_compared or result.nothing_compared or spec.compare_script:
        return ""
    layers = compares_layers(spec)
    said = result.first_bad or result.not_compared or result.first_nonfinite
    if not said and not layers:
        return ""
    rounding = bool(rules_of(spec.tolerance, layers=layers).auto)
    return f"{_found(result, layers, rounding)}{_nonfinite(result)}{_left_out(result)}{_doubt(result)}."


def _found(result: CompareResult, layers: bool, rounding: bool) -> str:
    if result.first_bad is None:
        what = "no further apart than rounding explains" if rounding else "within the tolerances"
        return f"The sides agree: {_count(result.n_compared)}, {what}"
    first = _label(result.first_bad)
    count = result.n_failed
    head = f"1 tensor is wrong, {first}" if count == 1 else f"{_count(count)} are wrong, the first is {first}"
    if not layers:
        why = "" if rounding else "; `--tolerance auto` asks whether rounding explains it"
        return f"{head}{why}; `--mark-all` shows where it begins"
    return f"{head}: {_HERE.get(result.first_bad.finding, f'the error grew up to there; {_LOCATE}')}"


def _nonfinite(result: CompareResult) -> str:
    if result.first_nonfinite is None:
        return ""
    verb = "holds" if result.n_nonfinite == 1 else "hold"
    first = f"{'' if result.n_nonfinite == 1 else 'the first '}{_label(result.first_nonfinite)}"
    return f". {_count(result.n_nonfinite)} {verb} nothing but infinities and NaN on both sides: {first}"


def _left_out(result: CompareResult) -> str:
    count = len({each.tensor for each in result.not_compared if each.reason != "whole numbers"})
    return f". {_count(count)} {'was' if count == 1 else 'were'} not compared" if count else ""


def _doubt(result: CompareResult) -> str:
    """What makes the verdict less sure."""
    if result.canary is None or result.canary.ok:
        return ""
    return ". Looking changed the outputs, so layers may not be what the plain run computes"


def _count(number: int) -> str:
    return f"{number} tensor{'' if number == 1 else 's'}"


def _label(row: RowSummary) -> str:
    place = f"#{row.i} " if row.i >= 0 else ""
    op = f"{shown(row.op, 40)} " if row.op else ""
    name = shown(row.node or row.tensor, 80)
    return f"{place}{op}{name}"

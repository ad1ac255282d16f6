"""The last sentence of a comparison: what was found, how sure that is, and what to do next."""

from msgspec import UNSET

from layerwise._tool.backends.onnxrt.saturation import AVOIDED
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult
from layerwise._tool.debugtools.compare.result import FAR, CompareResult, Saturated
from layerwise._tool.debugtools.compare.rows import RowSummary
from layerwise._tool.debugtools.compare.spec import CompareSpec, compares_layers, rules_of

_ALONE = "a second runner, --reference-model or --load-outputs gives something to compare with"
_LOCATE = "`debug locate` tells which layer is wrong by itself"
_HERE = {
    "leap": "its inputs agree, so the fault is there; `debug locate` confirms it",
    "overflow": "it overflows where the reference does not",
    "nan": "its NaN does not come from its inputs",
    "propagated": f"its inputs are off already; {_LOCATE}",
    "random": "random numbers are in it, which each side draws for itself",
}


def conclusion(result: CompareResult, spec: CompareSpec) -> str:
    """Return the sentence."""
    invalid = "" if result.valid in (UNSET, True) else " Outputs are not finite where they should be."
    held = result.quantised
    wrong = f" Of {held.text}." if held is not None and held.wrong else ""
    saturated = "" if result.saturated is None else f" {saturation_text(result.saturated)}"
    return f"{_sentence(result, spec)}{invalid}{wrong}{saturated}"


def saturation_text(found: Saturated) -> str:
    """What saturates, what it does to a tensor and how to avoid it, as sentences."""
    where = " and ".join(shown(name, 80) for name in found.runners)
    more = "" if found.nodes == 1 else f", the first of {found.nodes} such nodes"
    return (
        f"The kernels that {where} runs for uint8 times int8 saturate on this CPU ({shown(found.first, 160)}{more}): "
        f"{shown(found.tensor, 80)} is off by {found.error:.2g} (relative L2), by {found.left:.2g} where they do not. "
        f"{AVOIDED}"
    )


def _sentence(result: CompareResult, spec: CompareSpec) -> str:
    if result.nothing_compared:
        return result.nothing_compared[0]
    if not result.n_compared:
        truth = "`--truth` measures both sides of a comparison; " if spec.truth else ""
        return f"Nothing was compared: {truth}{_ALONE}."
    if spec.compare_script:
        return f"The function that was given says that the sides {'agree' if result.passed else 'do not agree'}."
    if result.averages is not UNSET:
        return f"{_averaged(result, spec)}{_left_out(result)}."
    layers = compares_layers(spec)
    rounding = _by_elements(spec) and bool(rules_of(spec.tolerance, layers=layers).auto)
    more = (_ill_conditioned, _nonfinite, _left_out, _doubt)
    said = f"{_found(result, spec, layers, rounding)}{''.join(told(result) for told in more)}."
    agree = result.first_bad is None and not layers
    return f"{said} Layers were not looked at: `--mark-all` does." if agree else said


def _averaged(result: CompareResult, spec: CompareSpec) -> str:
    """Where averages over the iterations decide."""
    averages = result.averages or []
    bad = list(dict.fromkeys(each.tensor for each in averages if not each.passed))
    if not bad:
        good = counted(len({each.tensor for each in averages}), "tensor")
        return f"The sides agree: {good}, the averages over {result.iterations} iterations {_within(spec)}"
    first = shown(bad[0], 80)
    count = counted(len(bad), "tensor")
    fail = "exceed the tolerances" if _by_elements(spec) else f"fail by {_metrics(spec)}"
    return f"On the average of {result.iterations} iterations {count} {fail}, the first is {first}"


def _found(result: CompareResult, spec: CompareSpec, layers: bool, rounding: bool) -> str:
    held = result.quantised
    if result.first_bad is None and held is not None and held.explained and held.cost:
        cost = f"{held.cost:.2g} (relative L2) at the worst output"
        return f"The sides differ by what few bits cost: {cost}; {_alike(held)}"
    if result.first_bad is None and held is not None and held.wrong:
        lose = "loses" if held.wrong == 1 else "lose"
        return (
            f"{counted(held.wrong, 'quantised tensor')} {lose} more than its format explains, no other layer is wrong"
        )
    if result.first_bad is None:
        tensors = counted(result.n_compared, "tensor")
        if _by_elements(spec) and (result.apart or 0.0) > FAR:
            return f"No layer is wrong: {tensors}, each as far apart as rounding explains of what it read"
        what = "no further apart than rounding explains" if rounding else _within(spec)
        return f"The sides agree: {tensors}, {what}"
    first = _label(result.first_bad)
    count = result.n_failed
    head = (
        f"1 tensor is wrong, {first}" if count == 1 else f"{counted(count, 'tensor')} are wrong, the first is {first}"
    )
    if result.saturated is not None and result.saturated.tensor == result.first_bad.tensor:
        return f"{head}, since kernels saturate"
    if not layers:
        why = "" if rounding or not _by_elements(spec) else "; `--tolerance auto` asks whether rounding explains it"
        return f"{head}{why}; `--mark-all` shows where it begins"
    return f"{head}: {_HERE.get(result.first_bad.finding, f'what comes before it passes; {_LOCATE}')}"


def _by_elements(spec: CompareSpec) -> bool:
    """Whether errors of elements are judged, which tolerances and rounding are about."""
    return "simple" in spec.metrics


def _within(spec: CompareSpec) -> str:
    return "within the tolerances" if _by_elements(spec) else f"by {_metrics(spec)}"


def _metrics(spec: CompareSpec) -> str:
    return ", ".join(name.replace("_", " ") for name in spec.metrics)


def _ill_conditioned(result: CompareResult) -> str:
    """What explains more than one step's rounding."""
    first, count = result.first_ill_conditioned, result.n_ill_conditioned
    if first is None:
        return ""
    more = "" if count == 1 else f" and {counted(count - 1, 'more tensor')}"
    apart = f", up to {result.apart:.2g} (relative L2)" if result.apart else ""
    return f". Small differences become large at {_label(first)}{more}{apart}"


def _alike(held: QuantisedResult) -> str:
    if held.left is None:
        return f"rounding the same tensors moves the float model by {held.moved or 0.0:.2g}"
    return f"with its weights rounded alike, the float model is {held.left:.2g} off"


def _nonfinite(result: CompareResult) -> str:
    if result.first_nonfinite is None:
        return ""
    verb = "holds" if result.n_nonfinite == 1 else "hold"
    first = f"{'' if result.n_nonfinite == 1 else 'the first '}{_label(result.first_nonfinite)}"
    return f". {counted(result.n_nonfinite, 'tensor')} {verb} NaN, or nothing but infinities, on both sides: {first}"


def _left_out(result: CompareResult) -> str:
    count = len({each.tensor for each in result.not_compared if each.reason != "whole numbers"})
    left = f". {counted(count, 'tensor')} {'was' if count == 1 else 'were'} not compared" if count else ""
    masked = f". Elements that masks hide were left out of {counted(result.n_masked, 'tensor')}"
    return f"{left}{masked if result.n_masked else ''}"


def _doubt(result: CompareResult) -> str:
    """What makes the verdict less sure."""
    if result.canary is None or result.canary.ok:
        return ""
    return ". Looking changed the outputs, so layers may not be what the plain run computes"


def _label(row: RowSummary) -> str:
    place = f"#{row.i} " if row.i >= 0 else ""
    op = f"{shown(row.op, 40)} " if row.op else ""
    name = shown(row.node or row.tensor, 80)
    return f"{place}{op}{name}"

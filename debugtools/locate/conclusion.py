"""The last sentence of a locate job: what was found, how sure that is, and what to do next."""

from layerwise._tool.backends.onnxrt.saturation import AVOIDED
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.compare.conclusion import saturation_text
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow

_WRONG = {"overflow": "overflows where the reference does not", "nan": "is where NaN begins"}
_PRECISION = "`debug precision` finds the nodes that need a finer type."
_REDUCE = "`debug reduce` proves it."
_TRUTH = "`debug locate --truth` tells whether its type explains that."


def conclusion(result: LocateResult, *, reducible: bool = True) -> str:
    """Return the sentence. reducible: the suspect is a graph that can be cut."""
    saturated = result.saturated
    if not result.suspects:
        if saturated is not None:
            return f"No suspect among {counted(result.tensors, 'tensor')}. {saturation_text(saturated)}"
        return f"{result.summary[:1].upper()}{result.summary[1:]}. {_next_without(result)}".strip()
    parts = [_first(result.suspects[0]), _others(result)]
    if result.suspects[0].diagnosis == "saturation":
        parts.append(AVOIDED)
    else:
        parts += [_outputs(result), _level(result), _next(result) if reducible else ""]
        parts.append("" if saturated is None else saturation_text(saturated))
    return " ".join(filter(None, parts))


def _first(suspect: SuspectRow) -> str:
    label = f"#{suspect.i} {shown(suspect.op, 40)} {shown(suspect.node, 80)}"
    evidence = suspect.evidence.partition("; ")[0]
    if suspect.diagnosis in ("quantisation", "saturation"):
        return f"{label}: {evidence}."
    if suspect.local is None and evidence.startswith("it "):
        return f"{label} {evidence.removeprefix('it ')}."
    if suspect.diagnosis == "ill-conditioned":
        times = suspect.amplification
        makes = "rounding errors large" if times is None else f"errors {times:.3g} times larger"
        return f"No node is wrong by itself; {label} makes {makes}."
    if suspect.diagnosis == "kernel" and suspect.times is not None and suspect.times > 1:
        return f"{label} is wrong by itself, {suspect.times:.3g} times what rounding explains."
    return f"{label} {_WRONG.get(suspect.diagnosis) or f'is suspected: {evidence}'}."


def _others(result: LocateResult) -> str:
    more = sum(suspect.diagnosis != "clean" for suspect in result.suspects[1:])
    if more == len(result.suspects) - 1:
        more = result.n_suspects - 1  # of which the worst were told
    return f"{more} more node{' is' if more == 1 else 's are'} suspected." if more > 0 else ""


def _outputs(result: LocateResult) -> str:
    return "" if result.outputs_differ else "No output that was compared differs for it."


def _level(result: LocateResult) -> str:
    level = f"Most nodes are off by about {result.level:.2g}: the suspect computes in lower precision."
    return level if result.level else ""


def _next(result: LocateResult) -> str:
    if result.suspects[0].diagnosis != "ill-conditioned":
        return _REDUCE
    return _TRUTH if result.truth is None else _PRECISION


def _next_without(result: LocateResult) -> str:
    if result.level:
        return _PRECISION
    if result.passed and result.outputs_differ:
        return "The outputs differ; `run --mark-all` tells whether that is what few bits cost."
    if result.passed:
        return "If they should not, give inputs that show it (--load-inputs)."
    return _TRUTH if result.outputs_differ and not result.stopped else ""

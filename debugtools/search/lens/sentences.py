"""What a lens found, in a sentence or two."""

from msgspec.structs import replace

from layerwise._tool.backends.onnxrt.saturation import AVOIDED
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.lens.rows import LensResult


def concluded(result: LensResult) -> LensResult:
    """Return the result with its summary and conclusion."""
    summary = _summary(result)
    parts = [summary, _lost(result), _needs(result), _adds(result), _runs(result), _left_out(result)]
    return replace(result, summary=summary, conclusion=" ".join(filter(None, parts)))


def _summary(result: LensResult) -> str:
    every = f"all {result.candidates} nodes in {result.format}"
    if result.kept is not None and result.adds is None and not result.frontier:
        how = "" if result.real else ", with FP32 nodes that round"
        text = f"With {result.candidates} nodes in {result.format} and {len(result.kept)} kept in FP32"
        off = f"the outputs are off by {_error(result.error)}; the mixed model, run once, by {_error(result.proved)}"
        written = f"{shown(result.path, 300)} is written. " if result.path else ""
        return f"{written}{text} {off}{how}."
    if result.kept is None and not result.passed:
        return (
            f"No set of nodes was found whose mixed model keeps the bound, in {result.runs} tries: it may be less than "
            "what two runs in FP32 differ by."
        )
    if result.kept is None:
        worst = ", ".join(shown(name, 60) for name in result.worst[:3])
        return f"With {every} the outputs are off by {_error(result.all_low)}; the worst nodes are {worst}."
    if not result.kept:
        text = f"The bound is kept with {every}: nothing needs to stay in FP32"
    else:
        names = ", ".join(shown(row.node, 60) for row in result.kept[:3])
        more = f" and {len(result.kept) - 3} more" if len(result.kept) > 3 else ""
        sure = "not one of them can be left out" if result.minimal else "fewer may do"
        if result.minimal and result.by_prediction:
            sure += f", {result.by_prediction} of them by prediction"
        text = f"{len(result.kept)} of {result.candidates} nodes must stay in FP32 ({sure}): {names}{more}"
        if result.saved is not None:
            text += f"; {result.saved:.0%} of the {result.cost_unit} that {result.format} saves is saved"
    proof = f"the mixed model is off by {_error(result.proved)}" + (
        "" if result.real else ", with FP32 nodes that round"
    )
    return f"{text}. Run once: {proof}." if result.passed else f"{text}. But {proof}: it does not keep the bound."


def _lost(result: LensResult) -> str:
    if result.lost is None:
        return ""
    return (
        f"Kernels lose more here than {result.format} does: what rounding puts at {_error(result.rounding)} was off by "
        f"{_error(result.lost)} when it ran, so mixed models were run to choose. On another machine fewer nodes may do "
        "(on x86 without VNNI, sums of 16 bits overflow)."
    )


def _adds(result: LensResult) -> str:
    if result.adds is None:
        return ""
    if result.adds:
        return f"Squares add: {result.within} of {result.sets} sets were predicted within 15 %."
    return (
        f"Squares do not add for this model: only {result.within} of {result.sets} sets were predicted within 15 % "
        f"(measured over predicted: {result.factor:.2g}, the median). Predictions are a guide here, no more."
    )


def _runs(result: LensResult) -> str:
    if not result.one_by_one or not result.kept:
        return ""
    return (
        f"That took {result.runs} runs; keeping one node after another, the best of all each time, takes "
        f"{result.one_by_one}."
    )


def _needs(result: LensResult) -> str:
    if not result.needs:
        return ""
    if result.saturated is not None:
        return (
            f"That is with {result.needs}: without it onnxruntime's kernels for uint8 times int8 saturate on this CPU, "
            f"and the mixed model is off by {_error(result.saturated)}. {AVOIDED}"
        )
    return f"onnxruntime's fusions refuse the mixed model: load it there with {result.needs} (`layerwise run` does so)."


def _left_out(result: LensResult) -> str:
    if not result.left_out:
        return ""
    told = ", ".join(f"{count} {shown(op, 40)}" for op, count in result.left_out.items())
    return f"Not looked at, since they lie in bodies or functions: {told}."


def _error(value: float | None) -> str:
    return "values that are not finite" if value is None else f"{value:.2g} (relative L2)"

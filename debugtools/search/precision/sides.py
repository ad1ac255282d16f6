"""The two sides of a precision search, and what the runner makes of low nodes."""

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.search.precision.engines import full
from layerwise._tool.debugtools.search.precision.spec import PrecisionSpec

_CPU = frozenset({"cpu", "cpuexecutionprovider"})


def two_sides(spec: PrecisionSpec) -> CompareSpec:
    """The comparison with a runner for the candidates first and the reference second. UsageError without a model."""
    compare = spec.search.compare
    if compare is None:
        raise UsageError("there is no model to search in")
    given = next((runner for runner in compare.runners if runner.kind != "saved"), RunnerSpec(kind="onnxrt"))
    others = [runner for runner in compare.runners if runner is not given]
    suspect = full(given) if given.kind == "trt" else given
    reference = others or [msgspec.structs.replace(suspect, name="")]
    return msgspec.structs.replace(
        compare, runners=[suspect, *reference], marks=MarkSpec(), observe="auto", statistics=False,
        save_outputs=None, save_inputs=None, save_accuracy=None, save_heatmaps=None, save_error_plots=None,
    )  # fmt: skip


def computes_low(runner: RunnerSpec) -> bool:
    """Whether nodes of a low type are computed in it: not by onnxruntime on the CPU."""
    first = runner.providers[0].lower() if runner.providers else "cpu"
    return runner.kind != "onnxrt" or first not in _CPU

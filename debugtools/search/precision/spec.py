"""What to search for, as plain values."""

from typing import Literal

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.search.spec import DebugSpec

LowType = Literal["float16", "bfloat16", "int8"]


class PrecisionSpec(Spec, frozen=True):
    """Which nodes must stay in FP32 for the model to pass when the others are low.

    search: the model and its sides, who judges, files. The first side runs the candidates (onnxruntime on the CPU where
    none is named); the second one is the reference (the FP32 model on the first side's runner where there is none).
    Its mode: ddmin by predicted effect, then delta debugging; bisect and linear keep the first or last k nodes
    (direction), as Polygraphy does. Its output: the model that passes.
    low: the type of the nodes that are not kept; int8 on TensorRT alone, calibrated with the inputs of the comparison.
    emulate: candidates are FP32 nodes between Cast round trips. None: where two sides judge on a CPU, which would
        compute low nodes in FP32.
    limit: verdicts after which ddmin makes a set that passes no smaller.
    layers: the layer table of the model found; save_layer_outputs: a file for all its tensors and the reference's.
    """

    search: DebugSpec = DebugSpec()
    low: LowType = "float16"
    direction: Literal["forward", "reverse"] = "forward"
    emulate: bool | None = None
    limit: int = 200
    layers: bool = False
    save_layer_outputs: str | None = None


def rounds_like(low: LowType) -> Literal["float16", "bfloat16"]:
    """The floating type that rounds as `low` does: INT8 keeps 8 bits of the largest value."""
    return "bfloat16" if low == "int8" else low

"""What a search must know before it takes a TensorRT side apart."""

from collections.abc import Callable

import onnx

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.surgery.precision.conversion import every_node, labels

_LOW = {"fp16": "float16", "bf16": "bfloat16", "int8": "bfloat16", "fp8": "float8_e4m3fn"}
# of int8, 8 bits of the largest value


def asked_types(spec: RunnerSpec) -> list[str]:
    """The types below FP32 that a runner was told to compute in, whatever the model's own are."""
    if spec.kind != "trt":
        return []
    config = trt_options(spec.options).config
    return [kind for flag, kind in _LOW.items() if getattr(config, flag)]


def asked_level(spec: RunnerSpec) -> float:
    """Half a rounding (relative) to the coarsest of these types; 0 if there is none."""
    return unit_roundoff(asked_types(spec)) / 2


def full_side(side: ModelSide) -> ModelSide:
    """What computes a TensorRT side's model in FP32: onnxruntime if it can, since every build is dear. Another side as
    it is.
    """
    known = all(onnx.defs.has(node.op_type, node.domain) for node in side.model.cut.nodes)
    if side.spec.kind != "trt" or not known:
        return side
    return ModelSide(
        side.index, RunnerSpec(kind="onnxrt", model=side.spec.model), side.name, side.naming.rename, side.model
    )


def check_engine_side(side: ModelSide, warn: Callable[[str], None]) -> None:
    """UsageError where the options name a node that the model lacks: its parts would pass it over.

    Warns of an engine that is loaded: it cannot be cut.
    """
    if side.spec.kind != "trt":
        return
    options = trt_options(side.spec.options)
    labels(list(every_node(side.model.cut.nodes)), options.network.layer_precisions, ())
    if options.engine is not None:
        warn(
            f"{shown(options.engine)} runs as a whole alone: parts of the model are built anew, without the options "
            "that the engine was built with; give them with --trt instead of --trt-engine"
        )

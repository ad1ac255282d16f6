"""How a TensorRT runner computes a choice of precision.

In the graph: its low nodes are low in the ONNX model, and the network is strongly typed (always on 11, on 10 where the
user asks for it). By flags, on 10 alone: the FP32 model with the builder's flag for the low type, and the layers of the
nodes that are kept constrained to FP32.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.building.config import by_flags
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions, to_dict, trt_options
from layerwise._tool.debugtools.search.precision.spec import LowType

_FLAGS: dict[str, str] = {"float16": "fp16", "bfloat16": "bf16", "int8": "int8"}


def full(runner: RunnerSpec) -> RunnerSpec:
    """The runner with nothing below FP32: what a choice is added to."""
    options = trt_options(runner.options)
    config = msgspec.structs.replace(options.config, fp16=False, bf16=False, fp8=False, int8=False)
    return _with(runner, options, config, {})


def uses_flags(runner: RunnerSpec) -> bool:
    """Whether TensorRT is asked by flags. MissingDependency where it is not installed."""
    return by_flags(tensorrt(), trt_options(runner.options))


def in_graph(runner: RunnerSpec) -> RunnerSpec:
    """The runner for models whose nodes have the types that they are to have."""
    options = trt_options(runner.options)
    network = msgspec.structs.replace(options.network, strongly_typed=True, layer_precisions={})
    return msgspec.structs.replace(runner, options=to_dict(msgspec.structs.replace(options, network=network)))


def flagged(runner: RunnerSpec, low: LowType, kept: Iterable[str] = ()) -> RunnerSpec:
    """The runner that makes everything `low` but the layers of the nodes in `kept`, by a constraint that must hold
    unless the user said that it may not.
    """
    options = trt_options(runner.options)
    constraint = options.config.precision_constraints or "obey"
    config = msgspec.structs.replace(options.config, precision_constraints=constraint)
    config = msgspec.structs.replace(config, **{_FLAGS[low]: True})
    return _with(runner, options, config, dict.fromkeys(kept, "float32"))


def calibrated(runner: RunnerSpec, feeds: FeedSpec, cache: Path) -> RunnerSpec:
    """The runner with INT8's ranges from these inputs, kept in `cache` unless the user names another file."""
    options = trt_options(runner.options)
    config = msgspec.structs.replace(
        options.config, calibration=feeds, calibration_cache=options.config.calibration_cache or str(cache)
    )  # fmt: skip
    return _with(runner, options, config, {})


def uncached(runner: RunnerSpec) -> RunnerSpec:
    """The runner for single nodes: their tensors are none that a cache of the whole model knows."""
    options = trt_options(runner.options)
    return _with(runner, options, msgspec.structs.replace(options.config, calibration_cache=None), {})


def words(low: LowType, kept: Iterable[str]) -> list[str]:
    """The options of `convert` and `run` that build an engine of this choice on any version."""
    named = [f"{name}:float32" for name in kept]
    constraint = ["--precision-constraints", "obey"] if named else []
    return [f"--{_FLAGS[low]}", *constraint, *(["--layer-precisions", *named] if named else [])]


def _with(runner: RunnerSpec, options: TrtOptions, config: ConfigOptions, precisions: dict[str, str]) -> RunnerSpec:
    network = msgspec.structs.replace(options.network, layer_precisions=precisions)
    return msgspec.structs.replace(
        runner, options=to_dict(msgspec.structs.replace(options, config=config, network=network))
    )

"""How reduced precision is requested: builder flags on a weakly typed network of 10, or types in the graph."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from layerwise._tool.backends.builds import OF_PROCESS
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.capabilities import able
from layerwise._tool.backends.trt.options import TrtOptions


def by_flags(trt: Any, options: TrtOptions) -> bool:
    """Return whether the builder chooses reduced precision: on 10, unless the network is to be strongly typed."""
    return able(trt, "fp16_flag") and not (options.network.strongly_typed or options.config.graph_precision)


def reduces(options: TrtOptions) -> bool:
    """Return whether any precision below FP32 is requested."""
    config = options.config
    return config.fp16 or config.bf16 or config.int8 or config.fp8


def in_graph(
    trt: Any, model: Loadable, options: TrtOptions, tell: Callable[[str], None]
) -> AbstractContextManager[Loadable]:
    """Yield the model with the requested precision written into its graph, and report that way.

    UsageError for FP8 if the model does not contain it, and for FP16 and bfloat16 together.
    """
    config = options.config
    if config.fp16 and config.bf16:
        raise UsageError("--fp16 and --bf16 together: in a strongly typed network a node has one type; choose one")
    wanted = options.network
    if not (reduces(options) or wanted.layer_precisions or wanted.tensor_dtypes):
        return nullcontext(model)
    assert OF_PROCESS.reduced is not None, "nobody has handed over what writes precision into a graph"
    return OF_PROCESS.reduced(model, options, tell)

"""What a search must know before it takes a TensorRT side apart."""

from collections.abc import Callable

from backends.text import shown
from backends.trt.options import trt_options
from debugtools.compare.sides import ModelSide
from surgery.conversion import labels
from surgery.precision_bodies import every_node


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

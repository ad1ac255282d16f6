"""Prepares a bundle's model for TensorRT alone: precision written into the graph, every size fixed."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.building.precision import by_flags, in_graph
from layerwise._tool.backends.trt.inference.parts import fixed
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.backends.trt.variants import part_options
from layerwise._tool.surgery.precision.lowering import fill


def settle(path: Path, runner: RunnerSpec, feed: Mapping[str, NDArray[Any]]) -> None:
    """Rewrite the model at `path` in the form in which its runner parses parts. LayerwiseError if it gets too large."""
    trt, options = tensorrt(), part_options(trt_options(runner.options))
    with ModelFile(path) as file:
        model = Loadable(data=file.structure_bytes(), folder=file.folder)
        lowered = nullcontext(model) if by_flags(trt, options) else in_graph(trt, model, options, lambda text: None)
        with lowered as found:
            settled = fixed(found, feed)
            whole = fill(parse_model(settled.read()), settled.data_folder() or path.parent)
    if whole.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF:
        raise LayerwiseError("the bundle's model is larger than 2 GB: reduce it first")
    atomic_write(path, whole.SerializeToString())


def ends_of(path: Path) -> list[str]:
    """Return the names of a model's inputs."""
    return [value.name for value in onnx.load(path, load_external_data=False).graph.input]

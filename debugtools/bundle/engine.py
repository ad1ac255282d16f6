"""The model of a bundle as TensorRT alone can build it: its precision in the graph, every size fixed."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from backends.errors import LayerwiseError
from backends.filesystem.files import atomic_write
from backends.model.file import ModelFile
from backends.model.protos import parse_model
from backends.runner import Loadable
from backends.specs import RunnerSpec
from backends.trt.building.precision import by_flags, in_graph
from backends.trt.inference.parts import fixed
from backends.trt.library import tensorrt
from backends.trt.options import trt_options
from backends.trt.variants import part_options
from surgery.precision.lowering import fill


def settle(path: Path, runner: RunnerSpec, feed: Mapping[str, NDArray[Any]]) -> None:
    """Write the model at `path` anew, as the runner has its parts parsed. LayerwiseError where it gets too large."""
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
    """The names of a model's inputs."""
    return [value.name for value in onnx.load(path, load_external_data=False).graph.input]

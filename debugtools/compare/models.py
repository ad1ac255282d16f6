"""A model as a comparison sees it: its graph ready to be cut, read while the sessions open."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from backends.model import ModelFile
from backends.runner import Loadable
from backends.specs import ModelOptions
from backends.tensors import TensorInfo, dtype_name

if TYPE_CHECKING:
    from surgery.cut import GraphCut


class Model:
    """One model file. Parsing its graph starts at once, in a thread: importing onnx takes longer than a session."""

    def __init__(self, path: str, options: ModelOptions) -> None:
        self.path = path
        self.file = ModelFile(path, options.external_data_dir, options.ignore_external_data)
        pool = ThreadPoolExecutor(1, "parse")
        self._cut: Future[GraphCut] = pool.submit(self._parse)
        pool.shutdown(wait=False)

    def _parse(self) -> "GraphCut":
        from surgery.cut import GraphCut

        return GraphCut(self.file.structure())

    @property
    def cut(self) -> "GraphCut":
        """The graph in topological order. BadFile if the model cannot be parsed."""
        return self._cut.result()

    def whole(self) -> Loadable:
        """The whole model for a runner, its weights left in the file."""
        return Loadable(data=self.file.structure_bytes(), folder=self.file.folder)

    @cached_property
    def inputs(self) -> list[TensorInfo]:
        """The graph's inputs, initializers not among them."""
        wanted = set(self.cut.inputs)
        found = []
        for value in self.cut.model.graph.input:
            if value.name in wanted:
                tensor = value.type.tensor_type
                dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
                shape = tuple(dims) if tensor.HasField("shape") else None
                found.append(TensorInfo(value.name, dtype_name(tensor.elem_type), shape))
        return found

"""A model as a comparison sees it, read while the sessions open."""

from collections.abc import Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import ENGINE_SUFFIXES, ModelOptions
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut
    from layerwise._tool.surgery.wire.makers import Maker


class Model:
    """One model file. `prepare` says how much of its graph will be needed; the rest is never read."""

    def __init__(self, path: str, options: ModelOptions) -> None:
        self.path = path
        self.file = ModelFile(path, options.external_data_dir, options.ignore_external_data)
        self._cut: Future[GraphCut] | None = None
        self._makers: Future[dict[str, Maker] | None] | None = None

    has_graph = True

    def prepare(self, *, whole_graph: bool, pool: ThreadPoolExecutor | None = None) -> None:
        """Start reading, in a thread (of `pool`, if it is given): the whole graph (importing onnx takes longer than a
        session), or its nodes.
        """
        own = pool or ThreadPoolExecutor(1, "parse")
        if whole_graph and self._cut is None:
            self._cut = own.submit(self._parse)
        elif not whole_graph and self._makers is None:
            self._makers = own.submit(self._read_makers)
        if pool is None:
            own.shutdown(wait=False)

    def prepare_sizes(self, pool: ThreadPoolExecutor) -> None:
        """Start finding out what the tensors of the graph take, where its inputs have fixed shapes."""
        pool.submit(self._infer_sizes)

    def _read_makers(self) -> "dict[str, Maker] | None":
        from layerwise._tool.surgery.wire.makers import makers

        return makers(self.file.structure_bytes())

    def maker(self, name: str) -> "Maker | None":
        """The node that makes a tensor, None for inputs, initializers and names that are not in the graph."""
        self.prepare(whole_graph=False)
        assert self._makers is not None
        found = self._makers.result()
        if found is not None:
            return found.get(name)
        from layerwise._tool.surgery.wire.makers import Maker

        cut, i = self.cut, self.cut.maker.get(name)
        return None if i is None else Maker(i, cut.nodes[i].name, cut.nodes[i].op_type)

    @cached_property
    def operators(self) -> frozenset[str]:
        """The types of the main graph's nodes."""
        if self._cut is not None:
            return frozenset(node.op_type for node in self.cut.nodes)
        self.prepare(whole_graph=False)
        assert self._makers is not None
        found = self._makers.result()
        return frozenset(
            (node.op_type for node in self.cut.nodes) if found is None else (maker.op for maker in found.values())
        )

    def layers(self) -> Set[str]:
        """The tensors that nodes make and that are not the graph's outputs."""
        return self.cut.maker.keys() - set(self.cut.outputs)

    def tensors(self) -> Set[str]:
        """The names of what nodes of the main graph make."""
        self.prepare(whole_graph=False)
        assert self._makers is not None
        found = self._makers.result()
        return self.cut.maker.keys() if found is None else found.keys()

    def _parse(self) -> "GraphCut":
        from layerwise._tool.surgery.cut.segments import GraphCut

        return GraphCut(self.file.structure())

    def _infer_sizes(self) -> None:
        infos = _inputs(self.cut)
        fixed = {each.name: [dim for dim in each.shape or () if isinstance(dim, int)] for each in infos}
        if all(each.shape is not None and len(fixed[each.name]) == len(each.shape) for each in infos):
            self.cut.estimates(fixed)  # feeds have these shapes

    @cached_property
    def cut(self) -> "GraphCut":
        """The graph in topological order. BadFile if the model cannot be parsed."""
        self.prepare(whole_graph=True)
        assert self._cut is not None
        return self._cut.result()

    def weight_bytes(self) -> int:
        """Bytes of all weights; 0 if the file cannot be read, which is said where it is run."""
        try:
            return sum(weight.nbytes for weight in self.file.weights().values())
        except LayerwiseError:
            return 0

    def whole(self) -> Loadable:
        """The whole model for a runner, its weights left in the file."""
        return Loadable(data=self.file.structure_bytes(), folder=self.file.folder)

    @cached_property
    def inputs(self) -> list[TensorInfo]:
        """The graph's inputs, initializers not among them."""
        return _inputs(self.cut)


class UnreadModel(Model):
    """A model without an ONNX file that could be read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def prepare(self, *, whole_graph: bool, pool: ThreadPoolExecutor | None = None) -> None:
        """There is nothing to read."""

    def prepare_sizes(self, pool: ThreadPoolExecutor) -> None:
        """Nothing of it is inferred."""

    def maker(self, name: str) -> "Maker | None":
        return None

    @cached_property
    def operators(self) -> frozenset[str]:
        return frozenset()

    def tensors(self) -> Set[str]:
        return frozenset()

    def weight_bytes(self) -> int:
        return 0

    def whole(self) -> Loadable:
        return Loadable(path=Path(self.path))


class OpaqueModel(UnreadModel):
    """An engine, a PyTorch module, or a script that makes a network: something to run, with no ONNX graph."""

    has_graph = False

    def layers(self) -> Set[str]:
        return frozenset()

    @property
    def cut(self) -> "GraphCut":
        raise UsageError(f"{shown(self.path)} has no ONNX graph: its layers cannot be observed, only its outputs")


def make_model(path: str, options: ModelOptions, kind: str = "") -> Model:
    """A model as the comparison sees it; kind: of the runner whose own it is. BadFile as `ModelFile`."""
    opaque = kind == "torch" or Path(path).suffix.lower() in (*ENGINE_SUFFIXES, ".py")
    return OpaqueModel(path) if opaque else Model(path, options)


def _inputs(cut: "GraphCut") -> list[TensorInfo]:
    wanted = set(cut.inputs)
    found = []
    for value in cut.model.graph.input:
        if value.name in wanted:
            tensor = value.type.tensor_type
            dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
            shape = tuple(dims) if tensor.HasField("shape") else None
            found.append(TensorInfo(value.name, dtype_name(tensor.elem_type), shape))
    return found

"""Determines what of one graph can be folded, and computes it with onnxruntime's CPU provider."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, packed_nbytes
from layerwise._tool.surgery.folding.constants import weight
from layerwise._tool.surgery.folding.options import KEPT, SMALL
from layerwise._tool.surgery.model.proto import stored_bytes
from layerwise._tool.surgery.model.structure import Graph, Structure
from layerwise._tool.surgery.rewrite.tidy import needed

_PLAIN = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", options={"arena": False})
Known = tuple[int, tuple[int | None, ...]]
Allowed = Callable[["ConstantRegion", str, int], bool]


class Evaluator:
    """Runs parts of one graph of a model. Loads onnxruntime, so use it only in a process that may crash.

    errors: why tensors have no value, one for each part that failed.
    """

    def __init__(self, model: Structure, graph: Graph) -> None:
        self.model, self.graph = model, graph
        self.errors: list[str] = []

    def values(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the values that can be computed, of tensors only: failing sets are halved and retried."""
        if not names:
            return {}
        try:
            found = self._run(names)
        except LayerwiseError as error:
            if len(names) == 1:
                self.errors.append(f"{names[0]}: {error}")
                return {}
            middle = len(names) // 2
            return {**self.values(names[:middle]), **self.values(names[middle:])}
        return {name: found[name] for name in names if name in found}

    def _run(self, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        from layerwise._tool.backends.onnxrt.runner import open_onnxrt

        part = Loadable(data=self._part(names).SerializeToString(), folder=self.model.folder)
        with open_onnxrt(_PLAIN, part, name="folding") as runner:
            return runner.infer({}).outputs

    def _part(self, names: Sequence[str]) -> onnx.ModelProto:
        part = onnx.ModelProto(ir_version=max(self.model.ir_version, 4))
        for domain, version in self.model.opsets.items():
            part.opset_import.add(domain=domain, version=version)
        part.functions.extend(self.model.functions)
        part.graph.name = "folding"
        nodes, read = needed(self.graph, names)
        part.graph.node.extend(nodes)
        for node in part.graph.node:
            node.name = ""  # onnxruntime requires different ones
        tensors = (weight(self.graph, name) for name in sorted(read))
        part.graph.initializer.extend(tensor for tensor in tensors if tensor is not None)
        for name in names:
            part.graph.output.add(name=name)
        return part


def within(threshold: int | None) -> Allowed:
    """Return the rule of which tensors may become constants.

    threshold: maximum bytes; None: `SMALL`, or the bytes of the weights that they are computed from and that
    nothing else reads.
    """

    def allowed(region: "ConstantRegion", name: str, size: int) -> bool:
        if threshold is not None:
            return size <= threshold
        return size <= SMALL or size <= sum(map(stored_bytes, region.freed_by(name)))

    return allowed


@dataclass
class ConstantRegion:
    """The nodes of a graph (in topological order) that depend only on constants.

    types: element type and lengths of tensors, if known. can: whether a node may be computed at all.
    kept: foldable nodes that stay anyway, by id: their tensors are too large, or cannot be computed. recursive:
    inputs of a tensor that cannot be computed are folded as far as possible; otherwise they stay, too.
    """

    graph: Graph
    types: Mapping[str, Known]
    can: Callable[[onnx.NodeProto], bool]
    allowed: Allowed
    recursive: bool = False
    kept: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.nodes: dict[int, onnx.NodeProto] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        for node in self.graph.nodes:
            if node.op_type in KEPT or not all(self._is_constant(name) for name in reads(node)) or not self.can(node):
                continue
            self.nodes[id(node)] = node
            self.makers.update((name, node) for name in node.output if name)

    def _is_constant(self, name: str) -> bool:
        return name in self.makers or weight(self.graph, name) is not None

    def frontier(self) -> list[str]:
        """Return tensors that become constants: made here, read by what stays."""
        outputs = [name for name in self.graph.output_names if name in self.makers]
        stays = [node for node in self.graph.nodes if id(node) not in self.nodes]
        waiting = [*outputs, *(name for node in stays for name in reads(node) if name in self.makers)]
        found: dict[str, None] = {}
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self.makers[name]
            if id(node) not in self.kept and self._is_too_large(name):
                self.kept.add(id(node))
            if id(node) in self.kept:
                waiting += [read for read in reads(node) if read in self.makers]
            else:
                found[name] = None
        return [name for name in found if id(self.makers[name]) not in self.kept]

    def values(self, evaluate: Callable[[Sequence[str]], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Return the new constants. A node with an output without a value, or with a too large one, is kept, and
        its inputs are considered instead, repeatedly.
        """
        found: dict[str, NDArray[Any]] = {}
        while True:
            names = self.frontier()
            found.update(evaluate([name for name in names if name not in found]))
            lost = [name for name in names if name not in found]
            bad = [name for name in names if name in found and self._is_refused(name, found[name])]
            if not lost and not bad:
                return {name: found[name] for name in names}
            self.kept.update(id(self.makers[name]) for name in (*lost, *bad))
            if not self.recursive:
                self.kept.update(id(node) for name in lost for node in self._needs(name)[0])

    def freed_by(self, name: str) -> Iterator[onnx.TensorProto]:
        """Return the weights that a tensor is computed from and only nodes here read: these nodes free them."""
        outputs = set(self.graph.output_names)
        for weight_name, tensor in self._needs(name)[1].items():
            readers = self.graph.lookups.readers.get(weight_name, ())
            inside = weight_name in self.graph.initializers and all(id(node) in self.nodes for node in readers)
            if inside and weight_name not in outputs:
                yield tensor

    def _needs(self, name: str) -> tuple[list[onnx.NodeProto], dict[str, onnx.TensorProto]]:
        """Return the nodes and the weights that a tensor is computed from."""
        weights: dict[str, onnx.TensorProto] = {}
        nodes: dict[int, onnx.NodeProto] = {}
        waiting = [name]
        while waiting:
            name = waiting.pop()
            node = self.makers.get(name)
            tensor = weight(self.graph, name) if node is None else None
            if tensor is not None:
                weights[name] = tensor
            if node is not None and id(node) not in nodes:
                nodes[id(node)] = node
                waiting += reads(node)
        return list(nodes.values()), weights

    def _is_refused(self, name: str, value: NDArray[Any]) -> bool:
        return not self.allowed(self, name, packed_nbytes(dtype_name(value), value.shape))

    def _is_too_large(self, name: str) -> bool:
        """Return whether a tensor is known to be too large before it is computed."""
        kind, shape = self.types.get(name, (0, (None,)))
        if None in shape or dtype_name(kind) == "unknown":
            return False
        lengths = [length for length in shape if length is not None]
        return not self.allowed(self, name, packed_nbytes(dtype_name(kind), lengths))

"""Computes tensors that depend only on constants with onnxruntime's CPU provider."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, MissingPackage
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.folding.constants import weight
from layerwise._tool.surgery.model.structure import Graph, Structure

_PLAIN = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", options={"arena": False})


class Evaluator:
    """Runs parts of one graph of a model. Loads onnxruntime, so use it only in a process that may crash."""

    def __init__(self, model: Structure, graph: Graph) -> None:
        self.model, self.graph = model, graph

    def values(self, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """Return the values of `names`; non-tensors (sequences, optionals) are omitted.

        LayerwiseError from onnxruntime, for all of them together.
        """
        from layerwise._tool.backends.onnxrt.runner import open_onnxrt

        part = Loadable(data=self._part(names).SerializeToString(), folder=self.model.folder)
        with open_onnxrt(_PLAIN, part, name="folding") as runner:
            return runner.infer({}).outputs

    def nodes_for(self, names: Iterable[str]) -> list[onnx.NodeProto]:
        """Return the nodes that compute `names`, in graph order."""
        makers = self.graph.lookups.makers
        chosen: set[int] = set()
        waiting = list(names)
        while waiting:
            node = makers.get(waiting.pop())
            if node is not None and id(node) not in chosen:
                chosen.add(id(node))
                waiting += reads(node)
        return [node for node in self.graph.nodes if id(node) in chosen]

    def _part(self, names: Sequence[str]) -> onnx.ModelProto:
        part = onnx.ModelProto(ir_version=max(self.model.ir_version, 4))
        for domain, version in self.model.opsets.items():
            part.opset_import.add(domain=domain, version=version)
        part.functions.extend(self.model.functions)
        part.graph.name = "folding"
        nodes = self.nodes_for(names)
        part.graph.node.extend(nodes)
        for node in part.graph.node:
            node.name = ""  # onnxruntime requires different ones
        for name in dict.fromkeys(name for node in nodes for name in reads(node)):
            tensor = weight(self.graph, name)
            if tensor is not None:
                part.graph.initializer.append(tensor)
        for name in names:
            part.graph.output.add(name=name)
        return part


class Attempts:
    """Gets the values of many tensors even if some cannot be computed.

    failed: tensors without a value. errors: why, one for each part that failed.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.failed: set[str] = set()
        self.errors: list[str] = []

    def values(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return the values that can be computed: failing sets are halved and retried."""
        if not names:
            return {}
        try:
            found = dict(self._evaluator.values(names))
        except MissingPackage:
            raise
        except LayerwiseError as error:
            if len(names) == 1:
                self.failed.add(names[0])
                self.errors.append(f"{names[0]}: {error}")
                return {}
            middle = len(names) // 2
            return {**self.values(names[:middle]), **self.values(names[middle:])}
        self.failed.update(name for name in names if name not in found)
        return {name: found[name] for name in names if name in found}

"""A model without its weights, as an immutable value: an edit makes a new one.

Versions of a model share all equal parts. Protos in a structure are never modified: `changed` returns a
modified copy. Large weights are references into the files they came from (`folder`), so no version costs their bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.graph_value import AnyGraph, Graph, Nodes, changed, graph_parts, node_label
from layerwise._tool.surgery.model.proto import remainder

__all__ = ["AnyGraph", "Graph", "Nodes", "Scope", "Structure", "changed", "function_name", "node_label"]

Scope = tuple[str, ...]
"""Where a graph stands: () is the main graph, then pairs of a node and its attribute, outermost first ("branches[1]"
where the attribute holds several graphs); ("function", "domain:name") is a function's body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure(Graph):
    """A whole model. The graph part is the main graph.

    opsets: domain ("" is ai.onnx) -> version. metadata: metadata_props. folder: external locations are relative to it,
    None if there are none. base: the file it was read from. rest: all other fields of the ModelProto.
    """

    functions: tuple[onnx.FunctionProto, ...] = ()
    opsets: Mapping[str, int]
    ir_version: int
    metadata: Mapping[str, str]
    rest: onnx.ModelProto
    folder: Path | None = None
    base: Path | None = None

    @classmethod
    def open(cls, model: ModelFile) -> "Structure":
        """Read a model's structure; weights of 1 KiB and more stay in its files. BadFile if it cannot be parsed."""
        return cls.from_proto(parse_model(model.structure_bytes(), model.path), model.folder, model.real_path)

    @classmethod
    def from_proto(cls, model: onnx.ModelProto, folder: Path | None = None, base: Path | None = None) -> "Structure":
        """Convert a ModelProto, which must not be changed afterwards."""
        outside = ("graph", "functions", "opset_import", "ir_version", "metadata_props")
        return Structure(
            **graph_parts(model.graph),
            functions=tuple(model.functions),
            opsets={entry.domain: entry.version for entry in model.opset_import},
            ir_version=model.ir_version,
            metadata={entry.key: entry.value for entry in model.metadata_props},
            rest=remainder(model, outside),
            folder=folder,
            base=base,
        )

    def proto(self) -> onnx.ModelProto:
        """Return an independent ModelProto; large weights are external, relative to `folder`."""
        model = onnx.ModelProto()
        model.CopyFrom(self.rest)
        model.ir_version = self.ir_version
        for domain, version in self.opsets.items():
            model.opset_import.add(domain=domain, version=version)
        for key, value in self.metadata.items():
            model.metadata_props.add(key=key, value=value)
        model.functions.extend(self.functions)
        model.graph.MergeFrom(self.graph_proto())
        return model

    # Scopes

    def at(self, scope: Scope, edit: Callable[[Graph], Graph]) -> "Structure":
        """Return the model with the result of `edit` at `scope`. LayerwiseError if there is no such graph."""
        function = self._function(scope)
        if function is None:
            result = _within(self, _steps(scope), edit)
            assert isinstance(result, Structure)
            return result
        graph = _within(Graph.of_function(self.functions[function]), _steps(scope[2:]), edit)
        functions = [*self.functions]
        functions[function] = graph.function_proto()
        return self.with_(functions=tuple(functions))

    def _function(self, scope: Scope) -> int | None:
        if scope[:1] != ("function",) or len(scope) < 2:
            return None
        return next((i for i, f in enumerate(self.functions) if function_name(f) == scope[1]), None)


def function_name(function: onnx.FunctionProto) -> str:
    """Return "domain:name", followed by ":overload" if there is one, as in the graph index."""
    name = f"{function.domain}:{function.name}" if function.domain else function.name
    overload = getattr(function, "overload", "")
    return f"{name}:{overload}" if overload else name


def _within(graph: Graph, steps: Sequence[tuple[str, str]], edit: Callable[[Graph], Graph]) -> Graph:
    if not steps:
        return edit(graph)
    (name, attribute), *deeper = steps
    node = graph.node(name)
    body = _within(Graph.of(_body(node, attribute), graph), deeper, edit)
    new = changed(node)
    _body(new, attribute).CopyFrom(body.graph_proto())
    return graph.replaced({id(node): [new]})


def _body(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    stem, _, number = name.partition("[")
    bodies: list[onnx.GraphProto] = [a.g for a in node.attribute if a.name == name and a.HasField("g")]
    if not bodies and number[:-1].isdecimal():
        bodies = [g for a in node.attribute if a.name == stem for g in a.graphs][int(number[:-1]) :]
    if bodies:
        return bodies[0]
    raise LayerwiseError(f"node {shown(node_label(node), 120)!r} has no body {shown(name, 60)!r}")


def _steps(scope: Scope) -> list[tuple[str, str]]:
    if len(scope) % 2:
        raise LayerwiseError(f"a scope is pairs of a node and an attribute, not {shown(' '.join(scope), 200)!r}")
    return list(zip(scope[::2], scope[1::2], strict=True))

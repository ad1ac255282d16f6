"""Groups a graph's nodes by what decides backend support: operator, version, types, attributes set."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import onnx
from onnx import TensorProto, defs

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import subgraphs
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.checks.lint.structure import labels
from layerwise._tool.surgery.cut.pieces import Pieces
from layerwise._tool.surgery.types.node_types import tensor_types


@dataclass(frozen=True)
class Signature:
    """Common properties of nodes. version: of the operator's schema, or the opset if there is none.

    types: element types of the inputs, each once, None if unknown.
    """

    op: str
    domain: str
    version: int
    types: tuple[str, ...] | None


@dataclass
class Group:
    """The nodes of one signature, by position; testing the first tests all."""

    signature: Signature
    positions: list[int] = field(default_factory=list)


class Operators:
    """The operators of a model's main graph; a node with bodies is a separate group."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.pieces = Pieces(model, model.graph)
        self.names = labels(self.pieces.nodes)
        self._opsets = {"" if i.domain == "ai.onnx" else i.domain: i.version for i in model.opset_import}
        self.types = {name: tensor.data_type for name, tensor in self.pieces.weights.items()}
        with suppress(LayerwiseError):  # then only what the model declares is known
            self.types |= tensor_types(model)
        self._propagate()
        self.groups = self._grouped()

    def model_of(self, position: int) -> bytes | None:
        """Return one node as a loadable model; None if the type of one of its inputs is unknown."""
        kinds: dict[str, onnx.TypeProto] = {}
        for name in self.pieces.feeds([position]):
            kind = self._type_of(name)
            if kind is None:
                return None
            kinds[name] = kind
        return self.pieces.build([position], kinds, [name for name in self.pieces.nodes[position].output if name])

    def _type_of(self, name: str) -> onnx.TypeProto | None:
        number = self.types.get(name, TensorProto.UNDEFINED)
        if number != TensorProto.UNDEFINED:
            return onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=number))
        declared = self.pieces.types.get(name)
        return declared if declared is not None and declared.WhichOneof("value") else None

    def _grouped(self) -> Sequence[Group]:
        found: dict[object, Group] = {}
        for position, node in enumerate(self.pieces.nodes):
            signature = self._signature(node)
            attributes = tuple(sorted(attribute.name for attribute in node.attribute))
            outputs = tuple(self.types.get(name, 0) for name in node.output)
            alone = position if any(subgraphs(node)) else None
            key = (signature, attributes, len(node.input), outputs, alone)
            found.setdefault(key, Group(signature)).positions.append(position)
        return list(found.values())

    def _signature(self, node: onnx.NodeProto) -> Signature:
        domain = "" if node.domain == "ai.onnx" else node.domain
        names = [name for name in node.input if name]
        known = all(self._type_of(name) is not None for name in names)
        types = tuple(dict.fromkeys(map(self._type_name, names))) if known else None
        schema = self._schema(node)
        version = int(schema.since_version) if schema else self._opsets.get(domain, 0)
        return Signature(node.op_type, domain, version, types)

    def _type_name(self, name: str) -> str:
        number = self.types.get(name)
        return dtype_name(number) if number else "sequence or optional"

    def _schema(self, node: onnx.NodeProto) -> "defs.OpSchema | None":
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            return defs.get_schema(node.op_type, self._opsets.get(domain, 0), domain)
        except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
            return None

    def _propagate(self) -> None:
        """Give outputs that inference left untyped (it stops at shape mismatches) the type of their inputs."""
        for position in self.pieces.order:
            node = self.pieces.nodes[position]
            schema = None if all(name in self.types for name in node.output if name) else self._schema(node)
            if schema is None:
                continue
            bound = {
                formal.type_str: self.types[name]
                for formal, name in zip(schema.inputs, node.input, strict=False)
                if name in self.types
            }
            for formal, name in zip(schema.outputs, node.output, strict=False):
                if name and name not in self.types and formal.type_str in bound:
                    self.types[name] = bound[formal.type_str]

"""What is different in two models where a tensor is made: nodes, attributes, inputs, weights."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import captures, reads
from layerwise._tool.backends.tensors import format_shape
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.locate.origin import calls, is_torch
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.debugtools.locate.similar_weights import similar_weights
from layerwise._tool.debugtools.locate.tensor_error import error_of
from layerwise._tool.surgery.cut.explode import Regions
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.proto import default_of
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.rewrite.rewiring import making, reading

_LISTED = 4
_UNSAID = frozenset(  # what two equal nodes or weights need not have in common
    {"name", "doc_string", "metadata_props", "raw_data", "external_data", "data_location", "float_data", "int32_data",
     "int64_data", "double_data", "uint64_data", "string_data"}
)  # fmt: skip
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


class Differences:
    """Holds a suspect's graph against a reference's; other: the reference's name of a tensor of the suspect's graph.

    aligned: their weights do not belong together by names.
    """

    def __init__(self, suspect: Part, reference: Part, other: Callable[[str], str], *, aligned: bool = False) -> None:
        self._aligned = aligned
        self._suspect, self._reference, self._other = suspect, reference, other
        self._mine, self._theirs = suspect.cut, reference.cut

    @cached_property
    def _common(self) -> frozenset[str]:
        """The reference's tensors that have a counterpart."""
        return frozenset(self._other(name) for name in self._mine.maker)

    def in_reference(self, region: Sequence[int], tensor: str) -> Sequence[int]:
        """The reference's nodes that make the counterpart of a tensor of the suspect's graph from what its region
        reads, or from what has another counterpart."""
        own = self._other(tensor)
        if own not in self._theirs.maker:
            return ()
        within = {self._other(name) for i in region for name in self._mine.nodes[i].output}
        return Regions(self._theirs, self._common - within | {own}).of(own).nodes

    def of(self, region: Sequence[int], tensor: str) -> list[str]:
        """Say what is different where a tensor of the suspect's graph is made; region: its nodes there."""
        own = self._other(tensor)
        if own not in self._theirs.maker:
            return ["the reference has it as a weight"] if own in self._theirs.initializers else []
        mine = [self._mine.nodes[i] for i in region]
        theirs = [self._theirs.nodes[i] for i in self.in_reference(region, tensor)]
        weights = list(self._similar(mine, theirs) if self._aligned else self._weights(mine))
        if any(map(is_torch, mine)) != any(map(is_torch, theirs)):
            return [f"computed by {calls(mine)}, in the reference by {calls(theirs)}", *weights]
        pairs, extra, missing = _paired(mine, theirs)
        lines = [f"extra here: {_listed(extra)}"] if extra else []
        lines += [f"missing here: {_listed(missing)}"] if missing else []
        for node, other in pairs:
            lines += self._attributes(node, other)
            lines += self._inputs(node, other)
        return lines + weights

    def _attributes(self, node: onnx.NodeProto, other: onnx.NodeProto) -> Iterator[str]:
        if (node.domain, node.op_type) != (other.domain, other.op_type):
            yield f"operator {shown(node.op_type, 60)}, in the reference {shown(other.op_type, 60)}"
            return
        mine, theirs = ({a.name: a for a in n.attribute} for n in (node, other))
        for name in dict.fromkeys([*mine, *theirs]):
            a, b = mine.get(name), theirs.get(name)
            if a is not None and b is not None and a.type == b.type == onnx.AttributeProto.GRAPH:
                yield from self._body(f"its {shown(name, 60)}", a.g, b.g)
            elif a is None or b is None:
                part, present = (self._theirs, b) if a is None else (self._mine, a)
                if present is not None and not _by_default(part, node, present):
                    yield f"attribute {shown(name, 60)} is {_value(a)}, in the reference {_value(b)}"
            elif _bytes(a) != _bytes(b):
                yield f"attribute {shown(name, 60)} is {_value(a)}, in the reference {_value(b)}"

    def _body(self, name: str, mine: onnx.GraphProto, theirs: onnx.GraphProto) -> Iterator[str]:
        if _structure(mine, self._other) != _structure(theirs, str):
            yield f"{name} is not the reference's"
            return
        for a, b in zip(_tensors(mine), _tensors(theirs), strict=True):
            with suppress(LayerwiseError):  # a weight that cannot be read is told where it is used
                weight = f"weight {shown(a.name, 80)} of {name}" if a.name else f"a weight of {name}"
                yield from _unequal(weight, self._suspect.value(a), self._reference.value(b))

    def _inputs(self, node: onnx.NodeProto, other: onnx.NodeProto) -> Iterator[str]:
        named = [self._other(name) for name in node.input]
        if sorted(named) == sorted(other.input) and named != list(other.input):
            yield f"it reads {_names(node.input)}, in the reference in the order {_names(other.input)}"

    def _weights(self, nodes: Sequence[onnx.NodeProto]) -> Iterator[str]:
        for name in dict.fromkeys(name for node in nodes for name in node.input if name in self._mine.initializers):
            own = self._other(name)
            if own in self._theirs.initializers:
                yield from self._weight(name, own)

    def _similar(self, mine: Sequence[onnx.NodeProto], theirs: Sequence[onnx.NodeProto]) -> Iterator[str]:
        return similar_weights(mine, self._suspect, theirs, self._reference)

    def _weight(self, name: str, own: str) -> Iterator[str]:
        with suppress(LayerwiseError):  # a weight that cannot be read is told where it is used
            yield from _unequal(f"weight {shown(name, 80)}", self._suspect.weight(name), self._reference.weight(own))


def _unequal(weight: str, mine: Array, theirs: Array) -> Iterator[str]:
    if mine.shape != theirs.shape:
        yield f"{weight} is {format_shape(mine.shape)}, in the reference {format_shape(theirs.shape)}"
    elif not np.array_equal(mine, theirs):
        error = error_of(mine, theirs, (), 1)
        if error.rel or error.abs:  # else NaN at the same places
            size = f": off by {error.rel:.3g}, at most {error.abs:.3g}" if math.isfinite(error.rel) else ""
            yield f"{weight} is not the reference's{size}"


def _paired(
    mine: Sequence[onnx.NodeProto], theirs: Sequence[onnx.NodeProto]
) -> tuple[list[tuple[onnx.NodeProto, onnx.NodeProto]], list[onnx.NodeProto], list[onnx.NodeProto]]:
    """Nodes of both sides that stand for each other (by name, by operator, or one against one), and the others."""
    if len(mine) == len(theirs) == 1:
        return [(mine[0], theirs[0])], [], []
    pairs, extra, left = [], [], list(theirs)
    for node in mine:
        alike = [other for other in left if other.op_type == node.op_type]
        match = next((other for other in alike if other.name == node.name), alike[0] if alike else None)
        if match is None:
            extra.append(node)
        else:
            left.remove(match)
            pairs.append((node, match))
    return pairs, extra, left


def _structure(body: onnx.GraphProto, outside: Callable[[str], str]) -> bytes:
    """A body without the values of its weights and without the names that it gives itself.

    outside: the common name of a tensor that the body reads from around it.
    """
    made = (name for node in body.node for name in node.output)
    own = [*(value.name for value in body.input), *(tensor.name for tensor in _initializers(body)), *made]
    names = {name: outside(name) for name in captures(body)}
    names |= {name: f"%{number}" for number, name in enumerate(filter(None, dict.fromkeys(own)))}
    copy = onnx.GraphProto()
    copy.node.extend(making(reading(node, names), names) for node in body.node)
    copy.initializer.extend(_initializers(body))
    for tensor in copy.initializer:
        tensor.name = names[tensor.name]
    copy.sparse_initializer.extend(body.sparse_initializer)
    for value in body.output:
        copy.output.add().name = names.get(value.name, value.name)
    for part in (*copy.node, *_tensors(copy)):
        for field, _ in part.ListFields():
            if field.name in _UNSAID:
                part.ClearField(field.name)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data


def _initializers(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Those of a graph, in the order in which its nodes read them first."""
    order = {name: number for number, name in enumerate(dict.fromkeys(name for n in graph.node for name in reads(n)))}
    return sorted(graph.initializer, key=lambda tensor: order.get(tensor.name, len(order)))


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The weights of a graph, its Constant nodes and its bodies."""
    yield from _initializers(graph)
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.type == onnx.AttributeProto.TENSOR:
            yield attribute.t
        for body in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
            yield from _tensors(body)


def _by_default(graph: GraphCut, node: onnx.NodeProto, given: onnx.AttributeProto) -> bool:
    """Whether an attribute has the value that it has where it is left out."""
    versions = {entry.domain: entry.version for entry in graph.model.opset_import}
    default = default_of(node.op_type, node.domain, given.name, versions.get(node.domain, 0))
    value = onnx.helper.get_attribute_value(given)
    return bool(default == (value.decode("utf-8", "replace") if isinstance(value, bytes) else value))


def _bytes(attribute: onnx.AttributeProto) -> bytes:
    data: bytes = attribute.SerializeToString(deterministic=True)
    return data


def _value(attribute: onnx.AttributeProto | None) -> str:
    if attribute is None:
        return "not set"
    if attribute.type in _GRAPHS:
        return "a graph"
    if attribute.type in (onnx.AttributeProto.TENSOR, onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.TENSORS):
        return _tensor_text(attribute.t)
    value = onnx.helper.get_attribute_value(attribute)
    return shown(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value), 60)


def _tensor_text(tensor: onnx.TensorProto) -> str:
    size = format_shape(tuple(tensor.dims))
    if tensor.data_location == onnx.TensorProto.EXTERNAL or not tensor.ByteSize() < 1024:
        return f"a tensor of {size}"
    try:
        return shown(str(onnx.numpy_helper.to_array(tensor).tolist()), 60)
    except Exception:  # damaged values: whoever runs them says so
        return f"a tensor of {size}"


def _listed(nodes: Sequence[onnx.NodeProto]) -> str:
    texts = [f"{shown(node.op_type, 40)} {shown(node_label(node), 60)}" for node in nodes[:_LISTED]]
    return ", ".join(texts) + (f" and {len(nodes) - _LISTED} more" if len(nodes) > _LISTED else "")


def _names(names: Sequence[str]) -> str:
    return ", ".join(shown(name, 60) for name in names)

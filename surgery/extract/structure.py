"""Extracts a part of a model as a separate model, with protobuf objects."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.protos import set_shape
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.tensors import TensorInfo, to_onnx
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.extract.wire import End
from layerwise._tool.surgery.model.structure import Graph, Structure, changed
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, unmade
from layerwise._tool.surgery.types.shapes import with_shapes


def extract(model: Structure, inputs: Sequence[End] | None, outputs: Sequence[End] | None) -> Structure:
    """Return what computes `outputs` from `inputs` (None: the model's own), with the weights that it needs.

    Missing shapes and types are the model's, inferred if it does not declare them. Names of tensors of
    the main graph. UsageError for an unknown tensor, or if the outputs need more inputs than these.
    """
    check_defined(model, (end.name for end in (*(inputs or ()), *(outputs or ()))))
    if missing(model, inputs, outputs):
        model = with_shapes(model)[0]
    part = _cut(model, inputs)
    if outputs is not None:
        ends = {end.name for end in outputs}
        values = {name: value for name, value in part.values.items() if name not in ends}
        part = part.with_(outputs=tuple(_declared(model, end) for end in outputs), values=values)
    part = cleaned_model(part)
    _check_fed(part)
    return part


def missing(model: Structure, inputs: Sequence[End] | None, outputs: Sequence[End] | None) -> list[str]:
    """Return tensors whose type, or shape as an input, neither the caller nor the model states."""
    ends = [(end, True) for end in inputs or ()] + [(end, False) for end in outputs or ()]
    found = []
    for end, needs_shape in ends:
        tensor = _declared(model, end).type.tensor_type
        known = tensor.elem_type and (tensor.HasField("shape") or not needs_shape)
        if not known and _declared(model, end).type.WhichOneof("value") in (None, "tensor_type"):
            found.append(end.name)
    return found


def filled(ends: Sequence[End] | None, known: Mapping[str, TensorInfo], shapes: bool = True) -> list[End] | None:
    """Return the ends, with missing fields filled in from `known`."""
    if ends is None:
        return None
    result = []
    for end in ends:
        info = known.get(end.name)
        if info is not None:
            end = End(end.name, end.shape or (info.shape if shapes else None), end.dtype or info.dtype)  # noqa: PLW2901
        result.append(end)
    return result


def borders(graph: Graph, nodes: Collection[onnx.NodeProto]) -> tuple[list[str], list[str]]:
    """Return the tensors that `nodes` read from outside (no weights), and those that are read outside."""
    inside = {id(node) for node in nodes}
    made = {name for node in nodes for name in node.output if name}
    read = dict.fromkeys(name for node in nodes for name in reads(node))
    weights = graph.initializers.keys() | graph.sparse_names()
    ins = [name for name in read if name not in made and name not in weights]
    ends = set(graph.output_names)
    outs = [
        name
        for node in nodes
        for name in node.output
        if name and (name in ends or any(id(r) not in inside for r in graph.lookups.readers.get(name, (node,))))
    ]
    unread = [name for node in nodes for name in node.output if name and name not in graph.lookups.readers]
    return ins, list(dict.fromkeys([*outs, *(name for name in unread if name in ends or not outs)]))


def around(graph: Graph, node: onnx.NodeProto, before: int = 1, after: int = 1) -> list[onnx.NodeProto]:
    """Return the node and its neighbours, so many steps up and down, in graph order."""
    chosen = {id(node)}
    up, down = [node], [node]
    for _ in range(before):
        up = [maker for n in up for maker in _makers(graph, n)]
        chosen |= {id(n) for n in up}
    for _ in range(after):
        down = [reader for n in down for name in n.output if name for reader in graph.lookups.readers.get(name, ())]
        chosen |= {id(n) for n in down}
    return [n for n in graph.nodes if id(n) in chosen]


def _makers(graph: Graph, node: onnx.NodeProto) -> Iterable[onnx.NodeProto]:
    return (graph.lookups.makers[name] for name in reads(node) if name in graph.lookups.makers)


def _cut(model: Structure, inputs: Sequence[End] | None) -> Structure:
    """Return the model with other inputs, disconnected from their makers."""
    if inputs is None:
        return model
    names = {end.name for end in inputs}
    weights = {name: tensor for name, tensor in model.initializers.items() if name not in names}
    listed = tuple(value for value in model.inputs if value.name in weights)  # before IR 4 every weight is one
    values = {name: value for name, value in model.values.items() if name not in names}
    fed = tuple(_declared(model, end) for end in inputs)
    return unmade(model, names).with_(inputs=(*fed, *listed), initializers=weights, values=values)


def _declared(model: Structure, end: End) -> onnx.ValueInfoProto:
    """Return what will be declared of an input or output."""
    known = model.value(end.name)
    value = changed(known) if known is not None else onnx.ValueInfoProto(name=end.name)
    weight = model.initializers.get(end.name)
    tensor = value.type.tensor_type
    if weight is not None and not tensor.elem_type:
        tensor.elem_type = weight.data_type
        set_shape(value, tuple(weight.dims))
    if end.dtype is not None:
        tensor.elem_type = to_onnx(end.dtype)
    if end.shape is not None:
        set_shape(value, end.shape)
    return value


def check_defined(model: Structure, names: Iterable[str]) -> None:
    """Raise UsageError, with similar names, for one that is no tensor of the main graph."""
    known = _given(model)
    for wanted in names:
        if wanted not in known:
            near = get_close_matches(wanted, [*model.lookups.makers, *model.input_names], n=3)
            hint = f"; did you mean {', '.join(shown(name, 80) for name in near)}?" if near else ""
            raise UsageError(f"Tensor: {shown(wanted, 120)} does not exist in the model{hint}")


def _check_fed(part: Structure) -> None:
    """Raise UsageError if a node, or an output, needs an undefined tensor."""
    known = _given(part)
    for name in (*part.lookups.readers, *part.output_names):
        if name not in known:
            readers = part.lookups.readers.get(name, ())
            read_by = ", ".join(shown(node.name or node.op_type, 60) for node in readers[:3]) or "the graph"
            raise UsageError(
                f"the outputs need the tensor {shown(name, 120)} too (read by {read_by}): make it an input, "
                "or cut further up"
            )


def _given(model: Structure) -> set[str]:
    """Return names of tensors that are fed, stored or made."""
    fed = {value.name for value in model.inputs}
    return fed | model.lookups.makers.keys() | model.initializers.keys() | model.sparse_names()

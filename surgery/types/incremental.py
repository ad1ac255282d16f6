"""Infers types and shapes of a model's tensors once, and after an edit only where it can have changed them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import onnx

from layerwise._tool.backends.model.protos import inferred
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.model.structure import INLINE_LIMIT
from layerwise._tool.surgery.model.lookups import difference
from layerwise._tool.surgery.model.structure import Nodes, Structure, function_name
from layerwise._tool.surgery.model.versions import callers, changed_functions
from layerwise._tool.surgery.saving.streamed import is_external, nbytes
from layerwise._tool.surgery.types.shapes import without_weights

_MOST_WAVES = 8
_MOST_NODES = 400
_MOST_CONTEXT = 64
Values = dict[str, onnx.ValueInfoProto]


@dataclass(frozen=True, slots=True)
class Types:
    """known: name of a main-graph tensor -> its type and shape; the rest identifies the version it is valid for."""

    known: Values
    nodes: Nodes
    inputs: tuple[onnx.ValueInfoProto, ...]
    initializers: Mapping[str, onnx.TensorProto]
    functions: tuple[onnx.FunctionProto, ...]

    def is_of(self, structure: Structure) -> bool:
        """True if it is valid for exactly this version."""
        same = structure.nodes is self.nodes and structure.inputs is self.inputs
        return same and structure.initializers is self.initializers and structure.functions is self.functions


def types_of(structure: Structure) -> Mapping[str, onnx.ValueInfoProto]:
    """Return types and shapes of the main graph's tensors as far as onnx infers them; weights are not read.

    The first call for a model infers everything, later versions only what an edit can have changed.
    """
    before = next((entry for entry in structure.carried if isinstance(entry, Types)), None)
    if before is not None and before.is_of(structure):
        return before.known
    known = None if before is None else _carried(structure, before)
    if known is None:
        known = _whole(structure if before is None else _without_stale(structure, before))
    _keep(structure, known)
    return known


def learn(structure: Structure, values: Iterable[onnx.ValueInfoProto]) -> None:
    """Adopt the result of `types_of` for the same version from another process."""
    _keep(structure, {value.name: value for value in values})


def _keep(structure: Structure, known: Values) -> None:
    structure.carried[:] = [entry for entry in structure.carried if not isinstance(entry, Types)]
    version = structure.nodes, structure.inputs, structure.initializers, structure.functions
    structure.carried.append(Types(known, *version))


def _whole(structure: Structure) -> Values:
    model = without_weights(structure).proto()
    with suppress(Exception):  # any model that inference cannot handle: declarations remain
        model = inferred(model, values=True)
    graph = model.graph
    return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}


def _without_stale(structure: Structure, before: Types) -> Structure:
    """Return the model without declarations of tensors that depend on what changed."""
    waiting = [name for node in _changed_nodes(structure, before) for name in node.output]
    stale: set[str] = set(waiting)
    waiting += _changed_sources(structure, before)
    while waiting:
        for node in structure.lookups.readers.get(waiting.pop(), ()):
            new = [name for name in node.output if name not in stale]
            stale.update(new)
            waiting += new
    values = {name: value for name, value in structure.values.items() if name not in stale}
    outputs = (onnx.ValueInfoProto(name=v.name) if v.name in stale else v for v in structure.outputs)
    return structure.with_(values=values, outputs=tuple(outputs))


def _carried(structure: Structure, before: Types) -> Values | None:
    """Return the updated types, None if too much may have changed."""
    gone, new = difference(before.nodes, structure.nodes)[0], _changed_nodes(structure, before)
    sources = _changed_sources(structure, before)
    known = dict(before.known)
    for name in (name for node in gone for name in node.output):
        if name not in structure.lookups.makers:
            known.pop(name, None)
    known.update({value.name: value for value in structure.inputs})
    readers = structure.lookups.readers
    wave = {id(node): node for node in [*new, *(n for name in sources for n in readers.get(name, ()))]}
    for _ in range(_MOST_WAVES):
        if not wave:
            return known
        if len(wave) > _MOST_NODES:
            return None
        changed = _take(structure, known, wave.values())
        if changed is None:
            return None
        wave = {id(node): node for name in changed for node in readers.get(name, ())}
    return None


def _changed_nodes(structure: Structure, before: Types) -> list[onnx.NodeProto]:
    """Return new nodes, and those that call functions that differ."""
    new = difference(before.nodes, structure.nodes)[1]
    return [*new, *callers(structure, changed_functions(before.functions, structure.functions))]


def _changed_sources(structure: Structure, before: Types) -> list[str]:
    """Return inputs and weights that changed."""
    old = {value.name: value for value in before.inputs}
    names = [value.name for value in structure.inputs if old.get(value.name) != value]
    if structure.initializers is not before.initializers:
        was = before.initializers
        names += [name for name, tensor in structure.initializers.items() if was.get(name) is not tensor]
    return names


def _take(structure: Structure, known: Values, nodes: Iterable[onnx.NodeProto]) -> list[str] | None:
    """Infer the outputs of `nodes`, record changes, and return their names; None if less is known than before."""
    nodes = list(nodes)
    model = part(structure, known, nodes)
    with suppress(Exception):  # a tensor without a result was known before, or is unknown
        model = inferred(model, values=True)
    found = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    changed = []
    for name in (name for node in nodes for name in node.output if name):
        old, new = known.get(name), found.get(name)
        if old == new or (new is None and old is None):
            continue
        if new is None or _is_less(new, old):
            return None
        known[name] = new
        changed.append(name)
    return changed


def _is_less(new: onnx.ValueInfoProto, old: onnx.ValueInfoProto | None) -> bool:
    if old is None or new.type.WhichOneof("value") not in (None, "tensor_type"):
        return False
    return old.type.tensor_type.HasField("shape") and not new.type.tensor_type.HasField("shape")


def part(
    structure: Structure, known: Mapping[str, onnx.ValueInfoProto], nodes: Sequence[onnx.NodeProto]
) -> onnx.ModelProto:
    """Return `nodes` as a separate model whose inputs have the `known` types, including nodes that compute shapes.

    Weights are included by type and shape, small ones with their values.
    """
    chosen = _with_context(structure, known, nodes)
    made = {name for node in chosen for name in node.output}
    model = onnx.ModelProto(ir_version=max(structure.ir_version, 4))
    for domain, version in structure.opsets.items():
        model.opset_import.add(domain=domain, version=version)
    called = {f"{node.domain}:{node.op_type}" if node.domain else node.op_type for node in chosen}
    if called & {function_name(function) for function in structure.functions}:
        model.functions.extend(structure.functions)
    graph = model.graph
    graph.name = "part"
    graph.node.extend(chosen)
    for name in dict.fromkeys(name for node in chosen for name in reads(node) if name not in made):
        _add_source(structure, known, graph, name)
    outputs = (name for node in nodes for name in node.output if name)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs))
    return model


def _add_source(
    structure: Structure, known: Mapping[str, onnx.ValueInfoProto], graph: onnx.GraphProto, name: str
) -> None:
    tensor = structure.initializers.get(name)
    if tensor is not None and not is_external(tensor) and nbytes(tensor) < INLINE_LIMIT:
        graph.initializer.append(tensor)
    elif tensor is not None:
        graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    elif structure.has(name):
        graph.input.append(known.get(name) or onnx.ValueInfoProto(name=name))


def _with_context(
    structure: Structure, known: Mapping[str, onnx.ValueInfoProto], nodes: Sequence[onnx.NodeProto]
) -> list[onnx.NodeProto]:
    """Return `nodes` and those that compute the shapes they read, in topological order."""
    makers = structure.lookups.makers
    chosen = {id(node): node for node in nodes}
    waiting = [name for node in nodes for name in node.input]
    while waiting and len(chosen) < len(nodes) + _MOST_CONTEXT:
        maker = makers.get(name := waiting.pop())
        if maker is not None and id(maker) not in chosen and (maker.op_type == "Constant" or _is_shape(known, name)):
            chosen[id(maker)] = maker
            waiting += maker.input
    ordered: dict[int, onnx.NodeProto] = {}
    for node in chosen.values():
        _place(node, chosen, makers, ordered)
    return list(ordered.values())


def _place(
    last: onnx.NodeProto,
    chosen: Mapping[int, onnx.NodeProto],
    makers: Mapping[str, onnx.NodeProto],
    ordered: dict[int, onnx.NodeProto],
) -> None:
    """Append a node to `ordered`, after those of `chosen` that it reads; cycles are broken arbitrarily."""
    path, seen = [last], {id(last)}
    while path:
        node = path[-1]
        before = [m for name in reads(node) if (m := makers.get(name)) is not None and id(m) in chosen]
        new = next((m for m in before if id(m) not in ordered and id(m) not in seen), None)
        if new is None:
            ordered.setdefault(id(node), path.pop())
        else:
            seen.add(id(new))
            path.append(new)


def _is_shape(known: Mapping[str, onnx.ValueInfoProto], name: str) -> bool:
    value = known.get(name)
    if value is None:
        return False
    tensor = value.type.tensor_type
    return tensor.elem_type == onnx.TensorProto.INT64 and tensor.HasField("shape") and len(tensor.shape.dim) <= 1


def settled(before: Structure, after: Structure) -> Structure:
    """Return `after` with only those declared types and shapes (of inner tensors and outputs) that are still valid.

    If inference differs from that for `before`, its result is declared instead; if it has none, nothing
    is. Call it before the model is saved, checked or run.
    """
    if after.nodes is before.nodes and after.inputs is before.inputs and after.initializers is before.initializers:
        return after
    old = types_of(before)
    after.learn_from(before)
    new, made = types_of(after), after.lookups.makers
    values = {}
    for name, value in after.values.items():
        current = value if old.get(name) == new.get(name) else new.get(name)
        if current is not None and current.type.WhichOneof("value") and name in made:
            values[name] = current
    outputs = [
        value if old.get(value.name) == new.get(value.name) else _output(value, new.get(value.name))
        for value in after.outputs
    ]
    return after.with_(values=values, outputs=tuple(outputs))


def _output(declared: onnx.ValueInfoProto, found: onnx.ValueInfoProto | None) -> onnx.ValueInfoProto:
    """Return the declaration of an output: engines and the checker require a type, even an outdated one."""
    return declared if found is None or not found.type.WhichOneof("value") else found

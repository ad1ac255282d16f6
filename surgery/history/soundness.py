"""Checks whether a model is still valid after an edit. Only changes are checked, so large graphs cost little more."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import onnx
import onnx.checker
from onnx import helper

from layerwise._tool.backends.errors import raise_scarce
from layerwise._tool.backends.model.protos import all_tensors, inferred
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.text import in_full, shown
from layerwise._tool.surgery.model.lookups import difference
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.streamed import is_external
from layerwise._tool.surgery.types.incremental import part, types_of

_MOST_AT_ONCE = 2000  # nodes; more are checked in groups, so that one bad node does not hide all others
_MOST_PROBLEMS = 20


class Problem(NamedTuple):
    """A problem. node: label of the node, "" for the whole model. All text is escaped."""

    node: str
    message: str


def edit_problems(before: Structure, after: Structure) -> list[Problem]:
    """Return problems of `after` that `before` did not have: connections, onnx.checker, type inference."""
    _, new = difference(before.nodes, after.nodes)
    found = [*_ends(after), *_lost(before, after), *_connections(after, new)]
    if found:
        return found[:_MOST_PROBLEMS]
    functions = after.functions if after.functions is not before.functions else ()
    return [*_functions(after, functions), *_nodes(after, new, _retyped(before, after, new))][:_MOST_PROBLEMS]


def problems(structure: Structure) -> list[Problem]:
    """Return all problems of a model."""
    found = [*_ends(structure), *_connections(structure, structure.nodes)]
    found = found or [*_functions(structure, structure.functions), *_nodes(structure, structure.nodes, ())]
    return found[:_MOST_PROBLEMS]


def _ends(structure: Structure) -> Iterator[Problem]:
    for value in structure.outputs:
        if not structure.defines(value.name):
            yield Problem("", f"output {in_full(value.name)!r} is made by nothing")
    twice = {name for name in structure.output_names if structure.output_names.count(name) > 1}
    yield from (Problem("", f"output {in_full(name)!r} is listed twice") for name in sorted(twice))


def _lost(before: Structure, after: Structure) -> Iterator[Problem]:
    """Return tensors that are read, but were made only before the edit."""
    gone, _ = difference(before.nodes, after.nodes)
    names = [name for node in gone for name in node.output]
    names += before.initializers.keys() - after.initializers.keys()
    names += {value.name for value in before.inputs} - {value.name for value in after.inputs}
    for name in dict.fromkeys(names):
        readers = after.lookups.readers.get(name, ()) if name and not after.defines(name) else ()
        yield from (_unmade(after, node, name) for node in readers)


def _connections(structure: Structure, nodes: Iterable[onnx.NodeProto]) -> Iterator[Problem]:
    known = structure.lookups
    fed = {value.name for value in structure.inputs} | structure.initializers.keys() | structure.sparse_names()
    place = dict(zip(map(id, structure.nodes), count()))
    for node in nodes:
        at, label = place[id(node)], in_full(structure.label(node))
        for name in reads(node):
            maker = known.makers.get(name)
            if maker is None and name not in fed:
                yield _unmade(structure, node, name)
            elif maker is not None and place[id(maker)] >= at:
                yield Problem(label, f"it reads {in_full(name)!r}, which is made later: sort the graph")
        for name in filter(None, node.output):
            if known.makers.get(name) is not node or name in fed:
                yield Problem(label, f"tensor {in_full(name)!r} is made more than once")
            elif any(place[id(reader)] < at for reader in known.readers.get(name, ())):
                yield Problem(label, f"it makes {in_full(name)!r}, which is read earlier: sort the graph")


def _unmade(structure: Structure, node: onnx.NodeProto, name: str) -> Problem:
    return Problem(in_full(structure.label(node)), f"it reads {in_full(name)!r}, which nothing makes")


def _retyped(before: Structure, after: Structure, new: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return unchanged nodes that read tensors of another type or shape."""
    old, seen = types_of(before), {id(node) for node in new}
    found: dict[int, onnx.NodeProto] = {}
    for name, value in types_of(after).items():
        was = old.get(name)
        if was is value or (was is None and name not in before.initializers) or was == value:
            continue
        found.update((id(node), node) for node in after.lookups.readers.get(name, ()) if id(node) not in seen)
    return list(found.values())


def _nodes(structure: Structure, new: Sequence[onnx.NodeProto], retyped: Sequence[onnx.NodeProto]) -> Iterator[Problem]:
    """Return the findings of onnx's checker for new nodes, and of inference for these and for nodes with new inputs."""
    known = types_of(structure)
    for nodes, check in ((new, True), (retyped, False)):
        sure = [node for node in nodes if _is_known(structure, known, node)]
        rest = [node for node in nodes if not _is_known(structure, known, node)]
        for some in (sure, rest):
            for start in range(0, len(some), _MOST_AT_ONCE):
                yield from _refused(structure, known, some[start : start + _MOST_AT_ONCE], check, some is sure)


def _is_known(structure: Structure, known: Mapping[str, onnx.ValueInfoProto], node: onnx.NodeProto) -> bool:
    """Return whether inference can be strict with the node: its operator and the types of all its inputs are known."""
    if not _are_standard([node]):
        return False
    values = (known.get(name) for name in node.input if name and name not in structure.initializers)
    return all(value is not None and value.type.WhichOneof("value") for value in values)


def _refused(
    structure: Structure,
    known: Mapping[str, onnx.ValueInfoProto],
    nodes: Sequence[onnx.NodeProto],
    check: bool,
    sure: bool,
) -> Iterator[Problem]:
    message, strict = _refusal(structure, known, nodes, check)
    if message is None and (strict or not sure):
        return
    for node in nodes:
        message, _ = _refusal(structure, known, [node], check)
        if message is not None:
            yield Problem(in_full(structure.label(node)), message)


def _refusal(
    structure: Structure, known: Mapping[str, onnx.ValueInfoProto], nodes: Sequence[onnx.NodeProto], check: bool
) -> tuple[str | None, bool]:
    """Return onnx's findings about nodes, and whether it was strict."""
    model = part(structure, known, nodes)
    strict = _are_standard(model.graph.node) and all(value.type.WhichOneof("value") for value in model.graph.input)
    try:
        if check:
            onnx.checker.check_model(_all_typed(model))
        inferred(model, check_type=strict, strict=strict, values=True)
    except Exception as error:  # ValidationError, InferenceError and other exceptions of native code
        raise_scarce(error)
        return _short(error), strict
    return None, strict


def _are_standard(nodes: Iterable[onnx.NodeProto]) -> bool:
    """Strict inference rejects operators, and inputs, that it does not know."""
    return all(onnx.defs.has(node.op_type, "" if node.domain == "ai.onnx" else node.domain) for node in nodes)


def _all_typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with some type for all inputs and outputs: the checker requires one, whichever it is.

    External data inside nodes are removed: the checker would look for their files in the current folder.
    """
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    graph = typed.graph
    for tensor in all_tensors(typed):
        if is_external(tensor):
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]))
    for values in (graph.input, graph.output):
        names = [value.name for value in values]
        del values[:]
        values.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in names)
    return typed


def _functions(structure: Structure, functions: Iterable[onnx.FunctionProto]) -> Iterator[Problem]:
    for function in functions:
        model = onnx.ModelProto(ir_version=max(structure.ir_version, 8))
        for domain, version in {function.domain: 1, **structure.opsets}.items():
            model.opset_import.add(domain=domain, version=version)
        model.functions.append(function)
        model.graph.name = "part"
        try:
            onnx.checker.check_model(model)
        except Exception as error:  # as above
            raise_scarce(error)
            yield Problem(in_full(function.name), _short(error))


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    for noise in ("==> Context: Bad node spec for node.", "==> Context:"):
        text = text.partition(noise)[0]
    return shown(text or type(error).__name__, 400)

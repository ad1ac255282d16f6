"""From what is typed in Surgery to edits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from glob import escape
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.shell import shell_words
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits import AnyEdit, Constant, Edit, Tensor, edit_from
from layerwise._tool.surgery.edits.attributes import RenameNode, RenameTensor, SetAttribute, SetOp
from layerwise._tool.surgery.edits.ends import MarkOutputs, SetInputs, SetOutputs, UnmarkOutputs
from layerwise._tool.surgery.edits.nodes import DeleteNodes, InsertNode, ReplaceNode
from layerwise._tool.surgery.edits.whole import Extract, Fold
from layerwise._tool.tui.controllers.edit_target import Target

Edits = Sequence[Edit]
LOW = ("float16", "bfloat16")
FAMILIES: Mapping[str, type[Edit]] = {str(kind.__struct_config__.tag): kind for kind in AnyEdit.__args__}
"""Every kind of edit by its name."""


def words(text: str) -> list[str]:
    """What is typed as words; quotes keep spaces together. UsageError for a quote that does not end."""
    try:
        return shell_words(text)
    except ValueError as error:
        raise UsageError(f"{shown(text, 60)}: {error}") from None


def delete(target: Target, text: str) -> Edits:
    """Delete the nodes; who read them reads what they read."""
    return [DeleteNodes(nodes=target.labels, leave=text.strip() == "alone", scope=target.scope)]


def insert(target: Target, text: str) -> Edits:
    """`OP [name=value …] [with OPERAND …] [before | on TENSOR]`: a node after each of the chosen ones, or there."""
    op, attributes, operands, place = _operator(text)
    domain, name = _domain(op)
    parts: dict[str, Any] = {"op": name, "domain": domain, "attributes": attributes, "operands": operands}
    if place[:1] == ["on"]:
        return [InsertNode(tensor=tensor, scope=target.scope, **parts) for tensor in place[1:]]
    if place == ["before"]:
        pairs = [(_first_input(target, label), [label]) for label in target.labels]
    else:
        pairs = [(_first(target, label), []) for label in target.labels]
    return [InsertNode(tensor=tensor, readers=tuple(readers), scope=target.scope, **parts) for tensor, readers in pairs]


def replace(target: Target, text: str) -> Edits:
    """`OP [name=value …] [with OPERAND …]`: another node in the place of each; `with` gives it other inputs."""
    op, attributes, operands, _ = _operator(text)
    domain, name = _domain(op)
    inputs = operands or None
    return [
        ReplaceNode(node=label, op=name, domain=domain, attributes=attributes, inputs=inputs, scope=target.scope)
        for label in target.labels
    ]


def set_op(target: Target, text: str) -> Edits:
    """`OP`: another operator, all else stays."""
    domain, name = _domain(_only(text, "which operator?"))
    return [SetOp(nodes=target.labels, op=name, domain=domain, scope=target.scope)]


def set_attribute(target: Target, text: str) -> Edits:
    """`NAME=VALUE …`; an empty value removes the attribute."""
    pairs = [word.partition("=") for word in words(text)]
    if not pairs or not all(name and equals for name, equals, _ in pairs):
        raise UsageError("write NAME=VALUE; NAME= removes it")
    return [
        SetAttribute(nodes=target.labels, name=name, value=_value(value) if value else None, scope=target.scope)
        for name, _, value in pairs
    ]


def rename(target: Target, text: str) -> Edits:
    """`NAME`: the node's name."""
    return [RenameNode(node=target.one, to=_only(text, "which name?"), scope=target.scope)]


def rename_tensor(target: Target, text: str) -> Edits:
    """`[TENSOR] NAME`: a tensor's name, the node's first output if none is given."""
    names = words(text)
    if len(names) not in (1, 2):
        raise UsageError("write NAME, or TENSOR NAME")
    old = names[0] if len(names) == 2 else _first(target, target.one)
    return [RenameTensor(tensor=old, to=names[-1], scope=target.scope)]


def outputs(target: Target, text: str) -> Edits:
    """Make what the nodes make graph outputs, or end that where all of it is."""
    if target.scope:
        raise UsageError("only tensors of the main graph can be outputs of the model")
    names = tuple(words(text)) or tuple(target.outputs)
    ends = set(target.graph.output_names)
    if names and set(names) <= ends:
        return [UnmarkOutputs(tensors=names)]
    return [MarkOutputs(tensors=tuple(name for name in names if name not in ends))]


def precision(target: Target, text: str) -> Edits:
    """`float16 | bfloat16`: compute the nodes in it."""
    if target.scope:
        raise UsageError("only nodes of the main graph can be computed in another precision")
    low = {"fp16": "float16", "bf16": "bfloat16"}.get(text.strip(), text.strip())
    if low not in LOW:
        raise UsageError(f"which precision: {' or '.join(LOW)}?")
    value = {"edit": "convert-precision", "to": low, "nodes": [escape(label) for label in target.labels]}
    return [edit_from(value)]


def fold(target: Target, text: str) -> Edits:
    """Fold all constants."""
    return [Fold(threshold=int(text) if text.strip().isdecimal() else None)]


def extract(target: Target, text: str) -> Edits:
    """`alone`, `around [STEPS]`, `to` (inputs to here), `from` (here to the outputs), or `INPUT … -> OUTPUT …`."""
    if target.scope:
        raise UsageError("only parts of the main graph can be extracted")
    typed = words(text) or ["alone"]
    if "->" in typed:
        at = typed.index("->")
        return _part(typed[:at], typed[at + 1 :])
    if typed[0] == "to":
        return _part([], target.outputs)
    if typed[0] == "from":
        return _from_here(target)
    if typed[0] not in ("alone", "around"):
        raise UsageError("write alone, around STEPS, to, from, or INPUT … -> OUTPUT …")
    near = typed[0] == "around"
    steps = int(typed[1]) if near and typed[1:] and typed[1].isdecimal() else int(near)
    return [Extract(nodes=target.labels, before=steps, after=steps)]


def any_edit(target: Target, text: str) -> Edits:
    """`KIND field=value …`: any edit there is. Lists are JSON, or names with commas between them."""
    kind, *rest = words(text) or [""]
    if kind not in FAMILIES:
        raise UsageError(f"kinds of edits: {', '.join(sorted(FAMILIES))}")
    lists = {field.name for field in msgspec.structs.fields(FAMILIES[kind]) if "tuple" in str(field.type)}
    values: dict[str, Any] = {"edit": kind}
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{shown(word, 60)}: write field=value; {kind} has {', '.join(fields(kind))}")
        made = _value(value)
        values[name] = value.split(",") if name in lists and isinstance(made, str) else made
    return [edit_from(values)]


def fields(kind: str) -> list[str]:
    """The fields of a kind of edit, those that must be given first."""
    found = msgspec.structs.fields(FAMILIES[kind])
    return [field.name for field in sorted(found, key=lambda field: not field.required)]


VERBS: Mapping[str, Callable[[Target, str], Edits]] = {
    "delete": delete, "insert": insert, "replace": replace, "op": set_op, "attr": set_attribute, "rename": rename,
    "rename-tensor": rename_tensor, "output": outputs, "precision": precision, "fold": fold, "extract": extract,
    "edit": any_edit,
}  # fmt: skip


def _from_here(target: Target) -> Edits:
    """Feed what the nodes make, and give the outputs that depend on it; what else they need is fed as before."""
    readers, waiting = target.graph.lookups.readers, target.outputs
    below = dict.fromkeys(waiting)
    while waiting:
        made = [name for node in readers.get(waiting.pop(), ()) for name in node.output if name and name not in below]
        below |= dict.fromkeys(made)
        waiting += made
    ends = [name for name in target.graph.output_names if name in below]
    if not ends:
        raise UsageError("no output depends on it")
    cut: list[Edit] = [SetInputs(inputs=tuple(map(Tensor, target.outputs)))]
    if len(ends) < len(target.graph.outputs):
        cut.insert(0, SetOutputs(outputs=tuple(map(Tensor, ends))))
    return cut


def _part(inputs: Iterable[str], ends: Iterable[str]) -> Edits:
    """What lies between tensors; none are the model's own."""
    sides = [tuple(map(Tensor, names)) or None for names in (inputs, ends)]
    return [Extract(inputs=sides[0], outputs=sides[1])]


def _operator(text: str) -> tuple[str, dict[str, Any], tuple[Any, ...], list[str]]:
    """Operator, attributes, operands and the place: from `before` or `on` to the end."""
    typed = words(text)
    if not typed:
        raise UsageError("which operator? For example: Relu, Clip with 0 with 6, com.microsoft:Gelu")
    op, *rest = typed
    at = next((place for place, word in enumerate(rest) if word in ("before", "after", "on")), len(rest))
    attributes: dict[str, Any] = {}
    operands: list[Any] = []
    waiting = iter(rest[:at])
    for word in waiting:
        name, equals, value = word.partition("=")
        if word == "with":
            operands.append(_operand(next(waiting, "")))
        elif equals and name:
            attributes[name] = _value(value)
        else:
            raise UsageError(f"{shown(word, 60)}: write name=value, or with OPERAND")
    return op, attributes, tuple(operands), rest[at:]


def _operand(word: str) -> "str | Constant":
    """A tensor's name, or a constant: a number or a list of numbers; `:int64` after it says its type."""
    number, colon, dtype = word.rpartition(":")
    made = _value(number if colon else word)
    if not word or isinstance(made, str | dict | None):
        return word
    return Constant(values=made, dtype=dtype if colon else "float32")


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text


def _domain(op: str) -> tuple[str, str]:
    domain, _, name = op.rpartition(":")
    return domain, name


def _only(text: str, question: str) -> str:
    typed = words(text)
    if len(typed) != 1:
        raise UsageError(question)
    return typed[0]


def _first(target: Target, label: str) -> str:
    made = [str(name) for name in target.graph.node(label).output if name]
    if not made:
        raise UsageError(f"{shown(label, 60)} makes nothing")
    return made[0]


def _first_input(target: Target, label: str) -> str:
    graph = target.graph
    read = [str(name) for name in graph.node(label).input if name]
    computed = [name for name in read if name not in graph.initializers]
    if not read:
        raise UsageError(f"{shown(label, 60)} reads nothing")
    return (computed or read)[0]

"""Replaces whatever computes some tensors from others by one node."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import onnx
from onnx import helper

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits.operands import attributes
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import making, reread
from layerwise._tool.surgery.rewrite.tidy import cleaned_model, in_order, unmade


def insert_between(
    model: Structure,
    inputs: Sequence[str],
    outputs: Sequence[str],
    op: str,
    name: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Structure:
    """Return the model in which a node `op` computes `outputs` from `inputs`; what did so before is removed if unused.

    An output that is also an input becomes a separate tensor, which all readers of the input read instead: the node
    is inserted on that tensor. A graph output keeps its name. attrs: numbers, text and lists of them.
    UsageError for an unknown tensor; LayerwiseError if an input depends on an output.
    """
    for tensor in (*inputs, *outputs):
        _check(model, tensor)
    reads, makes = list(inputs), list(outputs)
    for i, tensor in enumerate(outputs):
        if tensor in inputs:
            model, before, after = _split(model, tensor)
            reads = [before if other == tensor else other for other in reads]
            makes[i] = after
    rest = unmade(model, makes)
    assert isinstance(rest, Structure)
    node = helper.make_node(op, reads, makes, name or rest.fresh_node(f"{op}_inserted"))
    node.attribute.extend(attributes(attrs or {}, op))
    return _finished(rest, node)


def _finished(model: Structure, node: onnx.NodeProto) -> Structure:
    place = {name: i for i, other in enumerate(model.nodes) for name in other.output}
    after = max((place[name] + 1 for name in node.input if name in place), default=0)
    model = model.with_(nodes=(*model.nodes[:after], node, *model.nodes[after:]))
    ordered = in_order(cleaned_model(model))
    assert isinstance(ordered, Structure)
    return ordered


def _split(model: Structure, tensor: str) -> tuple[Structure, str, str]:
    """Split a tensor in two: one for its maker, one for its readers."""
    if not model.read_outside(tensor) or tensor not in model.lookups.makers:
        after = model.fresh(f"{tensor}_inserted")
        outputs = tuple(changed(v, name=after) if v.name == tensor else v for v in model.outputs)
        split = reread(model, {tensor: after}).with_(outputs=outputs)
        assert isinstance(split, Structure)
        return split, tensor, after
    before = model.fresh(f"{tensor}_inserted")
    maker = model.lookups.makers[tensor]
    split = model.replaced({id(maker): [making(maker, {tensor: before})]})
    return split, before, tensor


def _check(model: Structure, tensor: str) -> None:
    if not model.defines(tensor):
        near = get_close_matches(tensor, [*model.lookups.makers, *model.input_names], n=3)
        hint = f"; did you mean {', '.join(shown(name, 80) for name in near)}?" if near else ""
        raise UsageError(f"Tensor: {shown(tensor, 120)} does not exist in the model{hint}")

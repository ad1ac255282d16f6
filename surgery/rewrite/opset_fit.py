"""Decides by schema whether the operators of a model, as used, mean the same in two opsets."""

from collections.abc import Sequence

import onnx
from onnx import defs, helper

from layerwise._tool.backends.model.protos import all_graphs
from layerwise._tool.backends.text import shown

Formals = Sequence[defs.OpSchema.FormalParameter]


def changed_operators(model: onnx.ModelProto, start: int, to: int) -> list[str]:
    """Return operators that differ between two opsets, as the model uses them, in more than their supported types."""
    nodes = [node for graph in all_graphs(model) for node in graph.node if not node.domain]
    return sorted({shown(node.op_type, 60) for node in nodes if not _same_but_for_types(node, start, to)})


def _same_but_for_types(node: onnx.NodeProto, start: int, to: int) -> bool:
    try:
        old, new = (defs.get_schema(node.op_type, version, "") for version in (start, to))
    except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
        return False
    if old.since_version == new.since_version:
        return True
    fits = _formals_fit(old.inputs, new.inputs, node.input) and _formals_fit(old.outputs, new.outputs, node.output)
    stated = {attribute.name for attribute in node.attribute if not is_default(node, attribute, start)}
    return fits and not new.deprecated and _attributes_fit(old, new, stated)


def _attributes_fit(old: defs.OpSchema, new: defs.OpSchema, used: set[str]) -> bool:
    """Attributes of both opsets are equal, those of only one are unused."""
    common = old.attributes.keys() & new.attributes.keys()
    return used <= common and all(_told(old.attributes[name]) == _told(new.attributes[name]) for name in common)


def _told(attribute: "defs.OpSchema.Attribute") -> object:
    return attribute.type, attribute.required, attribute.default_value.SerializeToString()


def _formals_fit(old: Formals, new: Formals, names: Sequence[str]) -> bool:
    """Given inputs and outputs exist at the same position, and required ones are given."""
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    if any(formal.option == variadic for formal in (*old, *new)):
        return [formal.option for formal in old] == [formal.option for formal in new]
    wanted = [formal.option == defs.OpSchema.FormalParameterOption.Single for formal in new]
    given = [bool(name) for name in names]
    return len(given) <= len(new) and all(not want or (i < len(given) and given[i]) for i, want in enumerate(wanted))


def is_default(node: onnx.NodeProto, attribute: onnx.AttributeProto, version: int) -> bool:
    """Return whether the attribute has its default value in that opset."""
    try:
        known = defs.get_schema(node.op_type, version, "").attributes.get(attribute.name)
    except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
        return False
    if known is None or not known.default_value.type:
        return False
    return bool(helper.get_attribute_value(known.default_value) == helper.get_attribute_value(attribute))


def unknown_attributes(node: onnx.NodeProto, version: int) -> list[onnx.AttributeProto]:
    """Return the attributes that the operator does not have in that opset."""
    try:
        known = {} if node.domain else defs.get_schema(node.op_type, version, "").attributes
    except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
        return []
    return [] if node.domain else [attribute for attribute in node.attribute if attribute.name not in known]

"""Converts a model to another opset with onnx's version converter; weights stay in place.

The converter supports few downgrades. Where it has none, a step of one version is still taken if the operators, as
used in the model, differ only in their supported types (Add 14 and 13, for example) and the types fit; operators that
ONNX defines by simpler ones (Gelu, LayerNormalization) are expanded.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import onnx
import onnx.version_converter
from onnx import defs, helper, numpy_helper

from layerwise._tool.backends.errors import LayerwiseError, raise_scarce
from layerwise._tool.backends.model.protos import all_graphs, inferred
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.model.proto import schema_of
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.inlining import inlined, written_out
from layerwise._tool.surgery.saving.streamed import is_external

_NO_WAY = re.compile(r"No (?:Adapter|Previous|Schema).*")
_FLATTENED = frozenset({"Softmax", "LogSoftmax", "Hardmax"})  # before 13 they flatten the dimensions after their axis
_STANDARD = ("", "ai.onnx")
Formals = Sequence[defs.OpSchema.FormalParameter]


def convert_opset(structure: Structure, version: int, note: Callable[[str], None] = lambda text: None) -> Structure:
    """Return the model in opset `version` of ONNX's own domain; `note` gets messages for the user.

    Local functions are inlined first, since the converter loses them. LayerwiseError naming the operators that cannot
    be converted.
    """
    newest = defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise LayerwiseError(f"there is no opset {version} here: 1 to {newest}")
    if opset_of(structure) == version:
        return structure
    if structure.functions:
        note(f"{len(structure.functions)} local functions are inlined: onnx's converter cannot keep them")
    model = inlined(structure).proto()
    model = _converted(_plain_reshapes(_named_standard(model)), version, note)
    model.ir_version = max(structure.ir_version, helper.find_min_ir_version_for(model.opset_import, True))
    return Structure.from_proto(model, structure.folder, structure.base)


def opset_of(structure: Structure) -> int:
    """Return the version of ONNX's own domain; 1 if the model states none."""
    return next((structure.opsets[name] for name in _STANDARD if name in structure.opsets), 1)


def _named_standard(model: onnx.ModelProto) -> onnx.ModelProto:
    """The converter recognises ONNX's own domain only by its empty name."""
    for entry in model.opset_import:
        entry.domain = "" if entry.domain == "ai.onnx" else entry.domain
    for graph in all_graphs(model):
        for node in graph.node:
            node.domain = "" if node.domain == "ai.onnx" else node.domain
    return model


def _plain_reshapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove allowzero (opset 14) from Reshapes to constant lengths without a 0, where it has no effect."""
    for graph in all_graphs(model):
        constants = {tensor.name: tensor for tensor in getattr(graph, "initializer", ())}
        values = ((n.output[0], a) for n in graph.node if n.op_type == "Constant" for a in n.attribute)
        constants |= {name: attribute.t for name, attribute in values if attribute.name == "value"}
        for node in (node for node in graph.node if node.op_type == "Reshape" and len(node.input) > 1):
            lengths = constants.get(node.input[1])
            if lengths is not None and not is_external(lengths) and numpy_helper.to_array(lengths).all():
                kept = [attribute for attribute in node.attribute if attribute.name != "allowzero"]
                del node.attribute[:]
                node.attribute.extend(kept)
    return model


def _converted(model: onnx.ModelProto, version: int, note: Callable[[str], None]) -> onnx.ModelProto:
    try:
        return _one_way(model, version)
    except LayerwiseError:
        start = _opset(model)
        if abs(version - start) < 2 and version > start:
            raise
    step = 1 if version > start else -1
    for to in range(start + step, version + step, step):
        model = _step(model, to, note)
    return model


def _step(model: onnx.ModelProto, to: int, note: Callable[[str], None]) -> onnx.ModelProto:
    """Convert one version up or down."""
    try:
        return _one_way(model, to)
    except LayerwiseError as error:
        start = _opset(model)
        changed = changed_operators(model, start, to)
        simpler = written_out(model, changed) if to < start and changed else None
        if simpler is not None:
            with suppress(LayerwiseError):  # its expansion may have no equivalent either
                stepped = _step(simpler, to, note)
                note(f"opset {to} has no equal of {', '.join(changed)}: written out in simpler operators")
                return stepped
        if changed:
            raise LayerwiseError(f"{error} (operators that are not the same there: {', '.join(changed)})") from None
    relabelled = _relabelled(model, to)
    note(f"opset {start} to {to}: onnx's converter has no way; the operators used differ in the types they take alone")
    return relabelled


def _one_way(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    start = _opset(model)
    if version < 13 <= start:
        _state_axes(model, version)
    if version < 9 <= start and any(node.op_type == "Scan" for graph in all_graphs(model) for node in graph.node):
        raise LayerwiseError(f"opset {version}: its Scan goes over a batch too, which no later one does")
    try:
        converted = onnx.version_converter.convert_version(model, version)
    except Exception as error:  # ConvertError, RuntimeError
        raise_scarce(error)
        found = _NO_WAY.search(str(error))
        reason = (found.group() if found else str(error)).replace("$", "")
        raise LayerwiseError(f"opset {start} to {version}: onnx cannot convert it: {shown(reason, 300)}") from None
    return _without_new_attributes(converted, start, version)


def _without_new_attributes(model: onnx.ModelProto, start: int, version: int) -> onnx.ModelProto:
    """Remove attributes that `version` does not have and that have their default value in `start`."""
    for graph in all_graphs(model):
        for node in graph.node:
            for attribute in unknown_attributes(node, version):
                if not is_default(node, attribute, start):
                    raise LayerwiseError(
                        f"opset {version}: {node.op_type} {shown(node.name or node.output[0], 120)!r} has an attribute "
                        f"{shown(attribute.name, 60)!r} that it does not know"
                    )
                node.attribute.remove(attribute)
    return model


def _state_axes(model: onnx.ModelProto, version: int) -> None:
    """The converter does not change these, although the meaning and default of their axis changed in opset 13. Only the
    last axis means the same before, from opset 11 on.
    """
    nodes = (node for graph in all_graphs(model) for node in graph.node if node.op_type in _FLATTENED)
    for node in nodes:
        stated = next((a for a in node.attribute if a.name == "axis"), None)
        if version < 11 or (stated is not None and stated.i != -1):
            raise LayerwiseError(
                f"opset {version}: {node.op_type} {shown(node.name or node.output[0], 120)!r} has no equal: before "
                "opset 13 it takes its axis and all behind it together"
            )
        if stated is None:
            node.attribute.append(helper.make_attribute("axis", -1))


def _relabelled(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for entry in result.opset_import:
        entry.version = entry.version if entry.domain else to
    result = _without_new_attributes(result, _opset(model), to)
    try:
        inferred(result, check_type=True)
    except Exception as error:  # InferenceError, RuntimeError
        raise_scarce(error)
        raise LayerwiseError(f"opset {to} does not take the model's types: {in_words(error)}") from None
    return result


def _opset(model: onnx.ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if not entry.domain), 1)


def changed_operators(model: onnx.ModelProto, start: int, to: int) -> list[str]:
    """Return operators that differ between two opsets, as the model uses them, in more than their supported types."""
    nodes = [node for graph in all_graphs(model) for node in graph.node if not node.domain]
    return sorted({shown(node.op_type, 60) for node in nodes if not _same_but_for_types(node, start, to)})


def _same_but_for_types(node: onnx.NodeProto, start: int, to: int) -> bool:
    old, new = schema_of(node.op_type, start), schema_of(node.op_type, to)
    if old is None or new is None:
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
    schema = schema_of(node.op_type, version)
    known = None if schema is None else schema.attributes.get(attribute.name)
    if known is None or not known.default_value.type:
        return False
    return bool(helper.get_attribute_value(known.default_value) == helper.get_attribute_value(attribute))


def unknown_attributes(node: onnx.NodeProto, version: int) -> list[onnx.AttributeProto]:
    """Return the attributes that the operator does not have in that opset."""
    schema = None if node.domain else schema_of(node.op_type, version)
    return [] if schema is None else [a for a in node.attribute if a.name not in schema.attributes]

"""Inlines functions: those of the model, and those by which ONNX defines operators."""

import inspect
from collections.abc import Sequence
from typing import Any

import onnx
import onnx.inliner
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.expansion import check_functions
from layerwise._tool.backends.model.protos import inferred
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.model.proto import schema_of
from layerwise._tool.surgery.model.structure import Structure


def inlined(structure: Structure) -> Structure:
    """Return the model without local functions; unchanged if it has none.

    Code that only sees the nodes of the main graph (precision, quantisation, onnx's version converter) then sees what
    the functions compute. LayerwiseError if onnx cannot inline them.
    """
    if not structure.functions:
        return structure
    check_functions(structure.proto().SerializeToString())
    try:
        model = onnx.inliner.inline_local_functions(structure.proto())
    except Exception as error:  # native code raises its own
        raise LayerwiseError(f"onnx cannot inline the model's functions: {in_words(error)}") from None
    return Structure.from_proto(model, structure.folder, structure.base)


def written_out(model: onnx.ModelProto, op_types: Sequence[str]) -> onnx.ModelProto | None:
    """Return the model with all nodes of these operators, of ONNX's own domain, expanded to simpler ones.

    None if ONNX does not define each of them so, if their types are unknown, or if this onnx is too old.
    """
    inline = onnx.inliner.inline_selected_functions
    version = next((entry.version for entry in model.opset_import if not entry.domain), 1)
    if "inline_schema_functions" not in inspect.signature(inline).parameters or not all(
        _is_defined(op_type, version) for op_type in op_types
    ):
        return None
    try:
        typed = inferred(model)
        known = {value.name for value in typed.graph.value_info}
        weights = [tensor for tensor in typed.graph.initializer if tensor.name not in known]
        typed.graph.value_info.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in weights)
        result: onnx.ModelProto = inline(typed, [("", op_type) for op_type in op_types], inline_schema_functions=True)
    except Exception:  # native code raises its own exceptions, for unknown types and much else
        return None
    return None if any(node.op_type in op_types for node in result.graph.node) else result


def _is_defined(op_type: str, version: int) -> bool:
    schema: Any = schema_of(op_type, version)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)

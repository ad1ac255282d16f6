"""Attributes and constants for new nodes, in the JSON form of edits."""

import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import numpy as np
import onnx
from onnx import helper, numpy_helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_row
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.model.structure import Graph

_TYPES: dict[str, int] = {
    name.lower(): number for name, number in onnx.AttributeProto.AttributeType.items() if name != "UNDEFINED"
}
_NOT_FINITE = ("inf", "-inf", "nan")
_PLAIN = ("float", "int", "string", "floats", "ints", "strings", "tensor")


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A constant tensor. values: nested lists or a number; shape: that of the values unless given (then they are flat).

    JSON has no infinity and no NaN: they are the strings "inf", "-inf" and "nan".
    """

    values: Any
    dtype: str = "float32"
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "values", spelled(self.values))

    def tensor(self, name: str) -> onnx.TensorProto:
        """Return it as a TensorProto. LayerwiseError if the values do not fit."""
        try:
            array = np.array(self.values, dtype_row(self.dtype).numpy)
            array = array if self.shape is None else array.reshape(self.shape)
            return numpy_helper.from_array(array, name)
        except (ValueError, TypeError, OverflowError, KeyError, NotImplementedError) as error:
            raise LayerwiseError(f"a constant does not fit {shown(self.dtype, 40)}: {in_words(error, 200)}") from None


Operand = str | Constant
"""The name of a tensor ("" for an omitted input), or a constant."""


def spelled(value: Any) -> Any:
    """Return a JSON value with infinities and NaN as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [spelled(item) for item in value]
    return {key: spelled(item) for key, item in value.items()} if isinstance(value, dict) else value


def attribute(name: str, value: Any, kind: str = "") -> onnx.AttributeProto:
    """Return an attribute. kind: one of _PLAIN, "" infers it from the value. LayerwiseError if it does not fit."""
    if kind and kind not in _PLAIN:
        raise LayerwiseError(f"there is no kind of attribute {shown(kind, 40)!r}: there are {', '.join(_PLAIN)}")
    try:
        if kind == "tensor" or (not kind and isinstance(value, Mapping)):
            return helper.make_attribute(name, msgspec.convert(value, Constant).tensor(""))
        kind = kind or ("float" if value in _NOT_FINITE else "")
        return helper.make_attribute(name, _fitting(value, kind), attr_type=_TYPES[kind] if kind else None)
    except (ValueError, TypeError, msgspec.ValidationError) as error:
        raise LayerwiseError(f"attribute {shown(name, 60)!r}: {in_words(error, 200)}") from None


def attributes(values: Mapping[str, Any], op: str = "", domain: str = "") -> list[onnx.AttributeProto]:
    """Return attributes in order; the operator's schema determines their kinds, if it is known."""
    return [attribute(name, value, schema_kind(op, domain, name)) for name, value in values.items()]


def schema_kind(op: str, domain: str, name: str) -> str:
    """Return an attribute's kind in the operator's schema; "" if there is none."""
    try:
        schema = onnx.defs.get_schema(op, "" if domain == "ai.onnx" else domain)
    except (onnx.defs.SchemaError, TypeError):
        return ""
    if name not in schema.attributes:
        return ""
    number = int(cast(Any, schema.attributes[name].type).value)
    return next((kind for kind in _PLAIN if _TYPES[kind] == number), "")


def kind_of(attribute: onnx.AttributeProto) -> str:
    """Return the kind of an attribute; "" for graphs and the like."""
    return next((kind for kind in _PLAIN if _TYPES[kind] == attribute.type), "")


def add_operand(graph: Graph, operand: Operand, wish: str) -> tuple[Graph, str]:
    """Return the graph with the operand, and its name: a constant becomes an initializer (a node in a function)."""
    if isinstance(operand, str):
        if operand and not graph.has(operand):
            raise LayerwiseError(f"there is no tensor {shown(operand, 120)!r}")
        return graph, operand
    name = graph.fresh(wish)
    return with_constant(graph, operand, name), name


def with_constant(graph: Graph, constant: Constant, name: str) -> Graph:
    """Return the graph with a new tensor: an initializer, or a node in a function."""
    tensor = constant.tensor(name)
    if graph.is_function:
        node = helper.make_node("Constant", [], [name], graph.fresh_node(name), value=tensor)
        return graph.with_(nodes=(node, *graph.nodes))
    return graph.with_(initializers={**graph.initializers, name: tensor})


def _fitting(value: Any, kind: str) -> Any:
    if kind in ("float", "floats"):
        return [float(v) for v in value] if kind == "floats" else float(value)
    if kind in ("ints", "strings") and not isinstance(value, list | tuple):
        return [value]
    wanted = {"int": int, "string": str}.get(kind)
    if wanted is not None and not isinstance(value, wanted):
        raise ValueError(f"{value!r} is not of kind {kind}")
    return list(value) if isinstance(value, tuple) else value

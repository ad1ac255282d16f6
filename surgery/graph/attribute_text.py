"""Attributes as short text of bounded length."""

from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.record_values import Attribute, read_attribute, read_initializer, read_type
from layerwise._tool.backends.model.records import Span, read_graph
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.model.weight_arrays import inline_array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown

_VALUES = 32
_CHARACTERS = 400
_PREVIEW_BYTES = 4096
_TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "target_type", "stash_type", "softmax_precision"}
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _TYPE = 1, 2, 3, 4, 5, 13
_LIST_OF = {6: _FLOAT, 7: _INT, 8: _STRING, 9: _TENSOR, 10: _GRAPH, 14: _TYPE}


def attribute_text(data: bytes, span: Span) -> tuple[str, str]:
    """Return the name and the value of the attribute at `span` of a structure's bytes, both escaped."""
    attribute = read_attribute(data, *span, _VALUES)
    name = shown(attribute.name, _CHARACTERS)
    if attribute.reference:
        return name, shown(f"@{attribute.reference}", _CHARACTERS)
    kind = _LIST_OF.get(attribute.kind, attribute.kind)
    texts = [_value(data, kind, value) for value in attribute.values]
    if attribute.kind == _INT and attribute.name in _TYPE_ATTRIBUTES and texts:
        known = dtype_name(attribute.values[0])
        return name, known if known != "unknown" else texts[0]
    if attribute.kind not in _LIST_OF:
        return name, shown(texts[0] if texts else "", _CHARACTERS)
    return name, shown(_listed(attribute, texts), _CHARACTERS)


def _listed(attribute: Attribute, texts: list[str]) -> str:
    more = f", … ({attribute.total} in all)" if attribute.total > len(texts) else ""
    return f"[{', '.join(texts)}{more}]"


def _value(data: bytes, kind: int, value: Any) -> str:
    if kind == _FLOAT:
        return str(np.float32(value))
    if kind == _INT:
        return str(value)
    if kind == _STRING:
        return shown(value[: 4 * _CHARACTERS].decode(errors="backslashreplace"), _CHARACTERS)
    if kind == _TENSOR:
        return tensor_text(data, read_initializer(data, value))
    if kind == _GRAPH:
        graph = read_graph(data, *value)
        return f"graph {shown(graph.name, 100)} ({len(graph.nodes)} nodes)"
    if kind == _TYPE:
        return read_type(data, *value)[0]
    return f"({value[1] - value[0]} bytes)" if isinstance(value, tuple) else "?"


def tensor_text(data: bytes, tensor: TensorRecord) -> str:
    """Return type, shape and the first values of a tensor in a structure's bytes; no values if they are not
    inline."""
    head = f"{dtype_name(tensor.dtype)} {tensor.dims[:_VALUES]}"
    if tensor.external is not None or tensor.end - tensor.start > _PREVIEW_BYTES:
        return head
    try:
        values = inline_array(Path(), tensor, data).reshape(-1)
    except LayerwiseError:
        return head
    return f"{head} {', '.join(str(v) for v in values[:_VALUES])}{', …' if values.size > _VALUES else ''}"

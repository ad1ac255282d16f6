"""Values as Python source."""

import math
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.protos import all_tensors, dims_of
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import changed
from layerwise._tool.surgery.saving.streamed import embed, is_external

_MOST_INLINE = 64  # elements of an array that is written inline in the script
_PLAIN = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool"})


class Stored:
    """Tensors too large for a script's text, in a .npz file next to it. folder: of external data."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.arrays: dict[str, NDArray[np.uint8]] = {}

    def tensor(self, tensor: TensorProto) -> str:
        """Return source for the values of a tensor: an array, or code that reads the stored one."""
        if is_external(tensor):
            assert self._folder is not None
            tensor = changed(tensor)
            embed(tensor, self._folder)
        kind = _kind(tensor.data_type)
        if kind in _PLAIN and math.prod(tensor.dims) <= _MOST_INLINE:
            array = numpy_helper.to_array(tensor)
            values = repr(array.reshape(-1).tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
            return f"np.array({values}, np.{_numpy_name(kind)}).reshape({tuple(array.shape)})"
        key = f"tensor_{len(self.arrays)}"
        self.arrays[key] = np.frombuffer(tensor.SerializeToString(), np.uint8)
        return f"stored({key!r})"

    def whole(self, graph: onnx.GraphProto) -> onnx.GraphProto:
        """Return a subgraph with its external data embedded."""
        model = onnx.ModelProto(graph=graph)
        for tensor in all_tensors(model):
            if is_external(tensor):
                assert self._folder is not None
                embed(tensor, self._folder)
        return model.graph


def attribute(value: onnx.AttributeProto, stored: Stored, graph: str) -> str:
    """Return source for the value of an attribute in a graph. LayerwiseError if graphsurgeon cannot represent it."""
    kinds = onnx.AttributeProto
    if value.ref_attr_name:
        kind = onnx.AttributeProto.AttributeType.Name(value.type)
        return f"reference({value.ref_attr_name!r}, {kind!r})"
    if value.type == kinds.FLOAT:
        return _number(value.f)
    if value.type == kinds.INT:
        return repr(value.i)
    if value.type == kinds.STRING:
        return repr(_text(value.s))
    if value.type == kinds.FLOATS:
        return f"[{', '.join(map(_number, value.floats))}]"
    if value.type == kinds.INTS:
        return repr(list(value.ints))
    if value.type == kinds.STRINGS:
        return repr([_text(text) for text in value.strings])
    if value.type == kinds.TENSOR:
        return f"gs.Constant({value.t.name!r}, {stored.tensor(value.t)})"
    if value.type == kinds.GRAPH:
        return f"body({graph}, {stored.whole(value.g).SerializeToString()!r})"
    raise LayerwiseError(f"graphsurgeon cannot hold the attribute {shown(value.name, 80)!r}")


def value_arguments(value: onnx.ValueInfoProto) -> str:
    """Return source for a tensor's type and shape, as two arguments."""
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        raise LayerwiseError(f"graphsurgeon cannot declare {shown(value.name, 80)!r}: it is no tensor")
    tensor = value.type.tensor_type
    dtype = _dtype(tensor.elem_type) if tensor.elem_type else "None"
    if not tensor.HasField("shape"):
        return f"{dtype}, None"
    return f"{dtype}, {dims_of(value)!r}"


def _dtype(number: int) -> str:
    kind = _kind(number)
    same = kind in _PLAIN and helper.np_dtype_to_tensor_dtype(np.dtype(kind)) == number
    return f"np.{_numpy_name(kind)}" if same else f"onnx.TensorProto.{TensorProto.DataType.Name(number)}"


def _kind(number: int) -> str:
    """Return NumPy's name of an element type."""
    if number not in TensorProto.DataType.values():
        raise LayerwiseError(f"there is no element type {number}")
    return str(np.dtype(helper.tensor_dtype_to_np_dtype(number)))


def _numpy_name(kind: str) -> str:
    return "bool_" if kind == "bool" else kind


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise LayerwiseError(f"graphsurgeon cannot hold text that is not UTF-8: {data[:40]!r}") from None

"""Types and sizes of a graph's tensors, from shape inference; no weights are read."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import onnx
from msgspec import Struct

from layerwise._tool.backends.model.protos import inferred, set_shape
from layerwise._tool.backends.tensors import dtype_name, packed_nbytes


class Estimate(Struct, frozen=True):
    """One tensor: bytes (None: unknown) and dimensions (None: unknown). opaque: a sequence, optional or map."""

    nbytes: int | None = None
    opaque: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def length(self) -> int:
        """Elements, if it is a vector; else 0."""
        return self.shape[0] if self.shape is not None and len(self.shape) == 1 else 0


_LONGEST_SHAPE = 10_000  # inference with values makes an object of each element of a vector: gigabytes for long ones


def estimates(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, Estimate]:
    """Return what inference finds about the main graph's tensors when the inputs have `shapes`.

    `model`: a structure; it is not changed. If inference fails, only declared types are known.
    """
    fixed = with_input_shapes(model, shapes)
    known = _inferred(fixed, values=False)
    complete = all(
        name in known and known[name].nbytes is not None for node in model.graph.node for name in node.output
    )
    if complete or any(estimate.length > _LONGEST_SHAPE for estimate in known.values()):
        return known
    return _inferred(fixed, values=True)


def with_input_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Return a copy of the model whose inputs have these shapes, where they are tensors."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name in shapes and value.type.HasField("tensor_type"):
            set_shape(value, shapes[value.name])
    return fixed


def _inferred(model: onnx.ModelProto, *, values: bool) -> dict[str, Estimate]:
    with suppress(Exception):  # any model that inference cannot handle; the sizes are only a plan
        model = inferred(model, values=values)
    graph = model.graph
    return {value.name: _estimate(value) for value in (*graph.input, *graph.output, *graph.value_info)}


def _estimate(value: onnx.ValueInfoProto) -> Estimate:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return Estimate(opaque=kind is not None)
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or not tensor.elem_type:
        return Estimate()
    dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
    if any(length < 0 for length in dims) or dtype_name(tensor.elem_type) == "unknown":
        return Estimate()
    name = dtype_name(tensor.elem_type)
    return Estimate(max(math.prod(dims), packed_nbytes(name, dims)), shape=tuple(dims))

"""Shapes of an engine's tensors for given input shapes: ONNX's inference, then a run where that does not reach."""

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ._types import numpy_of

DATA_DEPENDENT = ("NonZero", "NonMaxSuppression", "Unique", "Compress", "If", "Loop", "StringSplit")


Shapes = dict[str, tuple[int, ...]]


def output_shapes(engine: Any, shapes: Shapes, values: dict[str, Any]) -> Shapes:
    """The shape of every output; -1 where it depends on the data."""
    model = onnx.ModelProto()
    model.CopyFrom(engine._plan.model)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes[value.name], strict=True):
            dim.dim_value = size
    for name, array in values.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    names = [value.name for value in model.graph.output]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    found = {value.name: value for value in onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output}
    known = {name: _shape(found[name]) for name in names}
    if all(shape is not None and -1 not in shape for shape in known.values()):
        return {name: shape for name, shape in known.items() if shape is not None}
    declared = {entry["name"]: tuple(entry["shape"]) for entry in engine._plan.header["io"]}
    if any(node.op_type in DATA_DEPENDENT for node in model.graph.node):
        return {name: known[name] or declared[name] for name in names}
    try:
        return _ran(engine, shapes, values)
    except Exception:  # zeros are no fit input; onnxruntime's own exception types are not public
        return {name: known[name] or tuple(declared[name]) for name in names}


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)


def _ran(engine: Any, shapes: Shapes, values: dict[str, Any]) -> Shapes:
    session = engine._session()
    feeds = {
        entry["name"]: values.get(entry["name"], np.zeros(shapes[entry["name"]], _kind(entry["dtype"])))
        for entry in engine._plan.header["io"]
        if entry["mode"] == "INPUT"
    }
    names = [output.name for output in session.get_outputs()]
    return {name: array.shape for name, array in zip(names, session.run(None, feeds), strict=True)}


def _kind(name: str) -> Any:
    from ._arguments import CLASSES

    return numpy_of(getattr(CLASSES["DataType"], name))

"""Constant nodes whose values lie in a file beside the model."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.reference.evaluate import Evaluation


def model(location: str) -> onnx.ModelProto:
    held = onnx.TensorProto(name="held", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "4"), ("length", "16")):
        held.external_data.add(key=key, value=value)
    node = helper.make_node("Constant", [], ["y"], value=held)
    made = onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 21)])
    made.graph.node.append(node)
    return made


def test_a_constants_values_are_read_from_the_models_folder(tmp_path: Path) -> None:
    values = np.arange(5, dtype="<f4")
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    given = model("w.bin")
    found = Evaluation(given, tmp_path).run({}, ["y"])["y"]
    assert found.tolist() == values[1:].tolist()
    assert given.graph.node[0].attribute[0].t.data_location == TensorProto.EXTERNAL
    with pytest.raises(BadFile, match="outside"):
        Evaluation(model("../w.bin"), tmp_path)
    with pytest.raises(BadFile, match="missing"):
        Evaluation(model("none.bin"), tmp_path)

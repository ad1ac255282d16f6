"""Other types for a model's inputs and outputs: the inside computes as before, even bodies that read an input."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, parser

from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.ends import with_end_types

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c, float[2] through) => (float[2] y, float[2] z, float[2] through) {
    y = If (c) <then_branch = t () => (float[2] a) { a = Add(x, x) }, else_branch = e () => (float[2] b) { b = Neg(x) }>
    z = Exp(y)
}"""
TYPES = {"x": TensorProto.FLOAT16, "y": TensorProto.FLOAT16, "through": TensorProto.DOUBLE, "unknown": TensorProto.INT8}


def run(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feed)]


def test_inputs_and_outputs_are_cast_and_the_inside_is_unchanged() -> None:
    model = parser.parse_model(MODEL)
    typed = with_end_types(Structure.from_proto(model), TYPES).proto()
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*typed.graph.input, *typed.graph.output)}
    assert kinds == {"x": 10, "c": 9, "through": 11, "y": 10, "z": 1}
    x = np.array([0.5, -1.5])
    for choice in (True, False):
        plain = run(model, {"x": x.astype("f"), "c": np.array(choice), "through": x.astype("f")})
        found = run(typed, {"x": x.astype(np.float16), "c": np.array(choice), "through": x})
        assert [array.dtype.name for array in found] == ["float16", "float32", "float64"]
        for a, b in zip(plain, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3)


def test_requesting_the_existing_types_changes_nothing() -> None:
    structure = Structure.from_proto(parser.parse_model(MODEL))
    assert with_end_types(structure, {"x": TensorProto.FLOAT, "y": TensorProto.FLOAT}) is structure

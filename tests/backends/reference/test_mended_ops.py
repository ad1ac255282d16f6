"""Operators of ONNX's reference evaluator that are mended give what onnxruntime gives."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

STATISTICS = ", float[6] s, float[6] b, float[6] mean, float[6] var"
NORM = f"(float[2,6,4,4] x{STATISTICS}) => (float[2,6,4,4] y) {{ y = BatchNormalization(x, s, b, mean, var) }}"
CASES = {
    "batch norm, opset 7": (7, NORM),
    "batch norm, opset 9": (9, NORM),
    "batch norm, opset 15": (15, NORM),
    "batch norm that trains": (15, f"""(float[2,6,4,4] x{STATISTICS}) => (float[2,6,4,4] y, float[6] m, float[6] v) {{
        y, m, v = BatchNormalization<training_mode=1>(x, s, b, mean, var) }}"""),
    "layer norm of large numbers": (17, """(float16[2,64] x, float16[64] s, float16[64] b) => (float16[2,64] y)
        <float16 far = {600}> { h = Mul(x, far)  y = LayerNormalization(h, s, b) }""".replace("  ", " ")),
    "response norm": (13, "(float[2,6,4,4] x) => (float[2,6,4,4] y) { y = LRN<size=5, alpha=0.1>(x) }"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_reference_evaluator_gives_what_onnxruntime_gives(case: str) -> None:
    opset, text = CASES[case]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}').SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    half = "float16" in text
    kind = np.float16 if half else np.float32
    feed = {value.name: random.uniform(0.5, 2, value.shape).astype(kind) for value in session.get_inputs()}
    with open_runner(RunnerSpec(kind="reference"), Loadable(data=model, folder=None), name="reference") as runner:
        found = runner.infer(feed).outputs
    for name, expected in zip(found, session.run(None, feed), strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-2 if half else 1e-5, atol=1e-2 if half else 1e-6)

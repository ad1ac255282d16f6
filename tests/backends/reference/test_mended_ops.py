"""Operators of ONNX's reference evaluator that are mended give what onnxruntime gives."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

STATISTICS = ", float[6] s, float[6] b, float[6] mean, float[6] var"
NORM = f"(float[2,6,4,4] x{STATISTICS}) => (float[2,6,4,4] y) {{ y = BatchNormalization(x, s, b, mean, var) }}"

LAYERS = {"LSTM": (4, 2), "GRU": (3, 1), "RNN": (1, 1)}  # gates, states


def recurrent(op: str, gates: int, states: int, directions: int, how: str) -> str:
    """A layer of three rows, the second shorter, the third of one step."""
    rows = gates * 4
    outs = ["y", "h", "c"][: states + 1]
    shapes = [f"float[5,{directions},3,4] y", *(f"float[{directions},3,4] {name}" for name in outs[1:])]
    return f"""(float[5,3,2] x, float[{directions},{rows},2] w, float[{directions},{rows},4] r,
        float[{directions},{2 * rows}] b) => ({", ".join(shapes)}) <int32[3] ends = {{5, 3, 1}}>
        {{ {", ".join(outs)} = {op}<hidden_size=4, {how}>(x, w, r, b, ends) }}"""


CASES = {
    "batch norm, opset 7": (7, NORM),
    "batch norm, opset 9": (9, NORM),
    "batch norm, opset 15": (15, NORM),
    "batch norm that trains": (15, f"""(float[2,6,4,4] x{STATISTICS}) => (float[2,6,4,4] y, float[6] m, float[6] v) {{
        y, m, v = BatchNormalization<training_mode=1>(x, s, b, mean, var) }}"""),
    "layer norm of large numbers": (17, """(float16[2,64] x, float16[64] s, float16[64] b) => (float16[2,64] y)
        <float16 far = {600}> { h = Mul(x, far)  y = LayerNormalization(h, s, b) }""".replace("  ", " ")),
    **{f"{op}, lengths": (14, recurrent(op, *sizes, 2, 'direction="bidirectional"')) for op, sizes in LAYERS.items()},
    **{f"{op}, backwards": (14, recurrent(op, *sizes, 1, 'direction="reverse", clip=0.8'))
       for op, sizes in LAYERS.items()},
    "GRU, reset first, other functions": (14, recurrent(
        "GRU", 3, 1, 1, 'linear_before_reset=1, activations=["Sigmoid", "Relu"]')),
    "LSTM, coupled gates": (14, recurrent("LSTM", 4, 2, 1, "input_forget=1")),
    "grid sample, opset 16": (16, """(float[2,3,6,6] x, float[2,4,4,2] g) => (float[2,3,4,4] y)
        <float less = {0.5}> { h = Mul(g, less)  y = GridSample<mode="bilinear">(x, h) }""".replace("  ", " ")),
    "dequantised, opset 13": (13, """(float[3,4] x) => (float[3,4] y) <float s = {0.01}, uint8 z = {7}>
        { h = QuantizeLinear(x, s, z)  y = DequantizeLinear(h, s, z) }""".replace("  ", " ")),
    **{f"convolution, {how}, steps of {step}": (17, f"""(float[2,6,13,11] x, float[4,3,3,2] w) => (float[n,c,h,v] y)
        {{ y = Conv<auto_pad="{how}", strides=[{step}, 1], group=2>(x, w) }}""")
       for how in ("VALID", "SAME_UPPER", "SAME_LOWER") for step in (1, 3)},
    "convolution, VALID, dilated": (17, """(float[2,6,13,11] x, float[4,6,3,2] w, float[4] b) => (float[n,c,h,v] y)
        { y = Conv<auto_pad="VALID", dilations=[2, 1]>(x, w, b) }"""),
    "convolution of integers, SAME_LOWER": (17, """(float[2,6,13,11] x, float[4,6,3,2] w) => (float[n,c,h,v] y)
        <float s = {0.02}> { a, t, z = DynamicQuantizeLinear(x)  v = Div(w, s)  k = Cast<to=2>(v)
        h = ConvInteger<auto_pad="SAME_LOWER", strides=[2, 3]>(a, k, z)  y = Cast<to=1>(h) }"""),
    "quantised convolution, SAME_UPPER": (17, """(float[2,6,13,11] x, float[4,6,3,2] w) => (float[n,c,h,v] y)
        <float s = {0.03125}, float r = {1}, uint8 z = {0}> {
        a = QuantizeLinear(x, s, z)  k = QuantizeLinear(w, s, z)
        h = QLinearConv<auto_pad="SAME_UPPER", strides=[2, 1]>(a, s, z, k, s, z, r, z)
        y = DequantizeLinear(h, r, z) }"""),
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
    low, high = (-0.7, 0.7) if "hidden_size" in text else (0.5, 2)
    feed = {value.name: random.uniform(low, high, value.shape).astype(kind) for value in session.get_inputs()}
    with open_runner(RunnerSpec(kind="reference"), Loadable(data=model, folder=None), name="reference") as runner:
        found = runner.infer(feed).outputs
    for name, expected in zip(found, session.run(None, feed), strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-2 if half else 1e-5, atol=1e-2 if half else 1e-6)

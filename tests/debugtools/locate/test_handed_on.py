"""Nodes that hand a tensor on as it is, where the other side rounds it to few bits: none is accused."""

from pathlib import Path

import numpy as np
import onnx
from support.locating import between
from support.models import from_text, with_weights

FEED = {"x": np.random.default_rng(1).standard_normal((1, 16, 32)).astype(np.float32)}


def model(attention: str, tail: str, power: float = 2.0) -> onnx.ModelProto:
    """A product, what an attention makes of it, a mean of squares. tail: of inner tensors' names."""
    random = np.random.default_rng(2)
    text = f"""
    g (float[1, 16, 32] x) => (float[1, 16, 1] y)
    {{
        a{tail} = MatMul (x, w)
        s{tail} = Softmax (a{tail})
        {attention}
        m{tail} = MatMul (d{tail}, v)
        [power] p{tail} = Pow (m{tail}, two)
        y = ReduceMean <axes = [2]> (p{tail})
    }}
    """
    weights = {"w": random.standard_normal((32, 16)), "v": random.standard_normal((16, 32)), "two": np.float64(power)}
    single = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    scales = {"scale": np.float32(1 / 255), "zero": np.uint8(0)}
    return with_weights(from_text(text, opset=17), **single, **({} if "Quantize" not in attention else scales))


def test_a_cast_beside_a_rounding_is_not_accused_for_it(tmp_path: Path) -> None:
    casts = "c = Cast <to = 1> (s) d = Cast <to = 1> (c)"
    rounds = """
    q2 = QuantizeLinear (s2, scale, zero)
    r2 = DequantizeLinear (q2, scale, zero)
    c2 = Cast <to = 1> (r2)
    d2 = Cast <to = 1> (c2)
    """
    found = between(model(casts, "", power=4.0), model(rounds, "2"), tmp_path, FEED)
    [suspect] = found.suspects
    assert "power" in {each["node"] for each in suspect["region"]}

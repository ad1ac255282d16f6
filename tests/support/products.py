"""Networks of square products, small enough to be quantised for each test, and what they are fed with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from support.models import from_text, with_weights

Array = NDArray[Any]
ROWS, WIDTH = 16, 32
FEED: dict[str, Array] = {"x": np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)}
"""Of a network's `x`."""


def drawn(count: int) -> list[Array]:
    """Weights [32, 32], normally distributed."""
    random = np.random.default_rng(0)
    return [(random.standard_normal((WIDTH, WIDTH)) / 6).astype(np.float32) for _ in range(count)]


def network(body: str, weights: Sequence[Array], *, more: str = "", opset: int = 17, ir: int = 8) -> onnx.ModelProto:
    """x [16, 32] float32 → y [16, 32]. body: the nodes, in ONNX's text form, of weights `w0`, `w1`, …; more: further
    inputs, each with a comma before it."""
    kind = f"float[{ROWS},{WIDTH}]"
    model = from_text(f"g ({kind} x{more}) => ({kind} y) {{ {body} }}", opset=opset, ir=ir)
    return with_weights(model, **{f"w{number}": weight for number, weight in enumerate(weights)})


_RESIDUAL = "[first] a = MatMul(x, w0) [relu] b = Relu(a) [second] c = MatMul(b, w1) "


def two_products() -> onnx.ModelProto:
    """Two square products, a rectifier and a residual sum."""
    return network(_RESIDUAL + "[sum] y = Add(c, b)", drawn(2))


def three_products() -> onnx.ModelProto:
    """Three square products, a rectifier and a residual sum."""
    return network(_RESIDUAL + "[sum] d = Add(c, b) [third] y = MatMul(d, w2)", drawn(3))


def embedded_products() -> onnx.ModelProto:
    """The same, the last weight a table of embeddings too, of which a second input, rows [16], chooses."""
    nodes = "[sum] d = Add(c, b) [table] e = Gather(w2, rows) [embedded] f = Add(d, e) [third] y = MatMul(f, w2)"
    return network(_RESIDUAL + nodes, drawn(3), more=f", int64[{ROWS}] rows")

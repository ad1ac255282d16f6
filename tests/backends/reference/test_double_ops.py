"""Operators for FP64 give what ONNX's own give."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.reference.double_ops import DOUBLE_OPS
from layerwise._tool.backends.reference.evaluate import Evaluation

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).standard_normal((2, 6, 13, 11))
KERNEL = {"kernel_shape": [3, 2]}
WINDOWS: list[dict[str, Any]] = [
    {},
    {"strides": [2, 2], "pads": [1, 1, 0, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID"},
]


def evaluated(node: onnx.NodeProto, feed: dict[str, Array], ops: tuple[type, ...]) -> Array:
    model = onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 21)])
    model.graph.node.append(node)
    found: Array = Evaluation(model, None, ops).run(feed, ["y"])["y"]
    return found


def both(op: str, *inputs: Array, **settings: Any) -> tuple[Array, Array]:
    """An operator's result by ours and by ONNX's."""
    names = [f"x{place}" for place in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **settings)
    feed = dict(zip(names, inputs, strict=True))
    return evaluated(node, feed, DOUBLE_OPS), evaluated(node, feed, ())


@pytest.mark.parametrize("window", [*WINDOWS, {"dilations": [2, 1]}])
@pytest.mark.parametrize("group", [1, 2, 6])
def test_convolutions_are_onnxs(window: dict[str, Any], group: int) -> None:
    random = np.random.default_rng(1)
    w, b = random.standard_normal((12, 6 // group, 3, 2)), random.standard_normal(12)
    mine, theirs = both("Conv", X, w, b, group=group, **window)
    assert mine.dtype == np.float64
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [*WINDOWS, {"ceil_mode": 1, "strides": [2, 2]}])
def test_pools_are_onnxs(window: dict[str, Any]) -> None:
    for op, settings in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})):
        mine, theirs = both(op, X, **KERNEL, **settings, **window)
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)


def test_a_pool_does_not_tell_places() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2, 2])
    with pytest.raises(LayerwiseError, match="largest elements"):
        evaluated(node, {"x": X}, DOUBLE_OPS)


def test_elements_are_gathered() -> None:
    places = np.random.default_rng(2).integers(-6, 6, (2, 4, 13, 11))
    mine, theirs = both("GatherElements", X, places, axis=1)
    np.testing.assert_array_equal(mine, theirs)
    single = evaluated(helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1),
                       {"x": np.arange(6.0).reshape(1, 6), "i": np.array([[4]])}, DOUBLE_OPS)  # fmt: skip
    assert single.tolist() == [[4.0]]


def test_the_error_function_has_all_digits_of_fp64() -> None:
    mine, _ = both("Erf", np.array([0.5, -1.0, 3.0]))
    np.testing.assert_allclose(mine, [0.5204998778130465, -0.8427007929497149, 0.9999779095030014], rtol=1e-15)


def test_quantised_values_are_taken_back_in_fp64() -> None:
    x = np.arange(-6, 6, dtype=np.int8).reshape(2, 6)
    per_axis, _ = both("DequantizeLinear", x, np.array([0.1, 0.2]), np.array([1, 2], np.int8), axis=0)
    np.testing.assert_allclose(per_axis, (x - np.array([[1], [2]])) * [[0.1], [0.2]], rtol=1e-15)
    blocks, _ = both("DequantizeLinear", x, np.array([[0.1, 0.2], [0.3, 0.4]]), axis=1, block_size=3)
    np.testing.assert_allclose(blocks, x * np.repeat([[0.1, 0.2], [0.3, 0.4]], 3, axis=1), rtol=1e-15)

"""What long sums explain."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from layerwise._tool.debugtools.compare.arithmetic.sums import terms
from layerwise._tool.debugtools.compare.table.step import step_bound

FLOATS = ("float32", "float32")
SHAPES = {"a": (4, 300), "b": (300, 8), "x": (2, 16, 30, 30), "w": (32, 16, 3, 3)}


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 100_000), signed=st.booleans())
def test_sums_one_after_the_other_stay_within_the_bound(seed: int, count: int, signed: bool) -> None:
    rows = np.random.default_rng(seed).standard_normal((16, count)).astype(np.float32)
    values = rows if signed else np.abs(rows)
    naive = np.cumsum(values, axis=1, dtype=np.float32)[:, -1].astype(np.float64)
    exact = values.sum(axis=1, dtype=np.float64)
    node = helper.make_node("ReduceSum", ["v"], ["s"])
    bound = step_bound(FLOATS, terms(node, {"v": values.shape}.get, 16), 1, one_backend=False)
    assert np.linalg.norm(naive - exact) <= bound * np.linalg.norm(exact) + 1e-300


@pytest.mark.parametrize(
    ("node", "size", "count"),
    [
        (helper.make_node("MatMul", ["a", "b"], ["y"]), 32, 300),
        (helper.make_node("Gemm", ["b", "a"], ["y"], transA=1), 32, 300),
        (helper.make_node("Conv", ["x", "w"], ["y"]), 1, 16 * 9),
        (helper.make_node("Conv", ["x", "made"], ["y"], kernel_shape=[3, 3], group=2), 1, 8 * 9),
        (helper.make_node("GlobalAveragePool", ["x"], ["y"]), 32, 900),
        (helper.make_node("ReduceMean", ["a"], ["y"], axes=[1]), 4, 300),
        (helper.make_node("Softmax", ["a"], ["y"]), 1200, 300),
        (helper.make_node("InstanceNormalization", ["x", "w", "w"], ["y"]), 1, 900),
        (helper.make_node("Add", ["x", "x"], ["y"]), 1, 1),
        (helper.make_node("MatMul", ["unknown", "b"], ["y"]), 1, 300),
        (helper.make_node("Gemm", ["unknown", "a"], ["y"], transB=1), 1, 300),
        (helper.make_node("MatMul", ["unknown", "other"], ["y"]), 1, 1),
    ],
)
def test_the_length_of_a_sum_is_read_from_shapes(node: onnx.NodeProto, size: int, count: int) -> None:
    assert terms(node, SHAPES.get, size) == count


@settings(max_examples=60, deadline=None)
@given(term=st.floats(0.5, 2.0, width=32), count=st.integers(8, 20_000))
def test_equal_terms_that_are_added_by_fours_stay_within_the_bound(term: float, count: int) -> None:
    """As onnxruntime multiplies one row with a matrix: each addition to a sum between two powers of two is rounded by
    the same amount.
    """
    groups = np.full(count, 4 * term, np.float32)
    error = float(np.cumsum(groups, dtype=np.float32)[-1]) / (4.0 * term * count) - 1
    bound = step_bound(FLOATS, 4 * count, 1, one_backend=True, one_sided=True, equal=True)
    assert abs(error) <= bound
    assert bound < 4 * count * 2.0**-24


@settings(max_examples=40, deadline=None)
@given(length=st.integers(2, 600), rows=st.integers(1, 5))
def test_fourier_transforms_of_any_length_stay_within_the_bound(length: int, rows: int) -> None:
    """onnxruntime takes angles in the type itself where the length is no power of two."""
    x = np.random.default_rng(length).standard_normal((rows, length, 1)).astype(np.float32)
    node = helper.make_node("DFT", ["x"], ["y"], axis=1)
    ends = [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("y", 1, None)]
    model = helper.make_model(
        helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (made,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    exact = np.fft.fft(x[..., 0].astype(np.float64))
    error = np.linalg.norm(made[..., 0] + 1j * made[..., 1] - exact)
    bound = step_bound(FLOATS, terms(node, {"x": x.shape}.get, made.size), 1, one_backend=False)
    assert error <= bound * np.linalg.norm(exact)
    assert bound <= 20 * length * 2.0**-24

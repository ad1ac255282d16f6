"""2:4 sparsity: the same weights as in real Polygraphy are found and pruned, without its bugs."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper, numpy_helper
from support import models

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.weights.sparsity import candidates, is_sparse, prune_2_4, pruned


def products(model: onnx.ModelProto) -> dict[str, int]:
    structure = Structure.from_proto(model)
    return {product.weight: product.axis for product in candidates(structure.nodes, structure.initializers).eligible}


def arrays(structure: Structure) -> dict[str, np.ndarray]:
    return {name: tensor_array(tensor, structure.folder) for name, tensor in structure.initializers.items()}


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.sampled_from([4, 8]), st.integers(1, 3)),
        elements=st.integers(-3, 3).map(float) | st.just(float("nan")) | st.just(float("inf")),
    )
)
def test_pruning_gives_2_4_sparsity_and_keeps_the_two_largest(array: np.ndarray) -> None:
    result = pruned(array, 1)
    assert is_sparse(result, 1)
    fours = np.moveaxis(array.reshape(array.shape[0], -1, 4, array.shape[2]), 2, -1)
    kept = np.moveaxis(result.reshape(fours.shape[0], -1, 4, array.shape[2]), 2, -1)
    same = (kept == fours) | np.isnan(fours)
    assert (same | (kept == 0)).all()
    size = np.where(np.isnan(fours), np.inf, np.abs(fours))
    largest = np.sort(size, axis=-1)[..., 2:]
    left = np.sort(np.where(np.isnan(kept), np.inf, np.abs(kept)), axis=-1)[..., 2:]
    np.testing.assert_array_equal(left, largest)
    np.testing.assert_array_equal(pruned(result, 1), result)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_pruning_equals_polygraphys(seed: int) -> None:
    from polygraphy.tools.sparse import SparsityPruner

    model = _small(np.random.default_rng(seed))
    mine = arrays(prune_2_4(Structure.from_proto(model)))
    with np.errstate(over="ignore"):  # it compares FP16 with FP64's largest number
        theirs = {t.name: numpy_helper.to_array(t) for t in SparsityPruner(model).prune().graph.initializer}
    assert mine.keys() == theirs.keys()
    for name, want in theirs.items():
        np.testing.assert_array_equal(mine[name], want, err_msg=name)


def _small(rng: np.random.Generator) -> onnx.ModelProto:
    """Weights with many equal values, behind casts, transposes and both kinds of Gemm."""
    model = models.from_text(
        """g (float[1,4,6,6] x) => (float[1,8] y, float[1,8] z) {
            [conv] c = Conv(x, wc)
            [pool] p = GlobalAveragePool(c)
            [flat] f = Flatten(p)
            [gemm] g = Gemm<transB=1>(f, wg)
            [turn] wt = Transpose<perm=[1,0]>(wm)
            [mul] y = MatMul(g, wt)
            [narrow] h = Cast<to=10>(f)
            [half] k = MatMul(h, wh)
            [wide] z = Cast<to=1>(k)
        }"""
    )
    shapes = {"wc": (8, 4, 3, 3), "wg": (8, 8), "wm": (8, 8), "wh": (8, 8)}
    for name, shape in shapes.items():
        kind = np.float16 if name == "wh" else np.float32
        values = rng.integers(-4, 5, shape).astype(kind)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def test_the_summed_axis_is_found_through_transposes_and_batches() -> None:
    model = models.from_text(
        """g (float[2,3,8] x) => (float[2,3,4] y, float[8,4,3] t) {
            [batched] y = MatMul(x, w)
            [turn] v = Transpose<perm=[1,2,0]>(u)
            [turned] t = MatMul(v, a)
        }"""
    )
    models.with_weights(model, w=np.ones((2, 8, 4), np.float32), u=np.ones((4, 8, 4), np.float32))
    models.with_weights(model, a=np.ones((4, 3), np.float32))
    # v[i, j, k] = u[k, i, j], and the last axis of v is summed over: the first of u
    assert products(model) == {"w": 1, "u": 0, "a": 0}


def test_a_transpose_without_order_reverses() -> None:
    model = models.from_text("g (float[1,8] x) => (float[1,4] y) { v = Transpose(w)  y = MatMul(x, v) }")
    assert products(models.with_weights(model, w=np.ones((4, 8), np.float32))) == {"w": 1}


def test_weights_that_cannot_be_sparse_are_reported() -> None:
    model = models.from_text(
        "g (float[1,6] x, int32[1,4] i) => (float[1,4] y, int32[1,4] j) { y = MatMul(x, w)  j = MatMul(i, k) }"
    )
    models.with_weights(model, w=np.ones((6, 4), np.float32), k=np.ones((4, 4), np.int32))
    structure = Structure.from_proto(model)
    found = candidates(structure.nodes, structure.initializers)
    assert not found.eligible
    assert dict(found.skipped)["w"] == "the length of axis 0 (6 in [6, 4]) is not a multiple of 4"
    assert "int32" in dict(found.skipped)["k"]


@pytest.mark.parametrize("number", [0, 8, 16, 255, 2**31 - 1, -1])
def test_invalid_types_are_reported(number: int) -> None:
    model = models.from_text("g (float[1,4] x) => (float[1,4] y) { y = MatMul(x, w) }")
    models.with_weights(model, w=np.ones((4, 4), np.float32)).graph.initializer[0].data_type = number
    structure = Structure.from_proto(model)
    found = candidates(structure.nodes, structure.initializers)
    assert ("w" in dict(found.skipped)) == (number != 16)


def test_a_cycle_of_casts_terminates() -> None:
    nodes = [
        helper.make_node("Cast", ["b"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "b"], ["y"]),
    ]
    assert candidates(nodes, {}).eligible == ()


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_narrow_types_are_pruned_by_magnitude(kind: type) -> None:
    array = np.array([[1, -4, 2, 3], [0.5, 0, 0, 7]], kind)
    assert pruned(array, 1).astype(float).tolist() == [[0, -4, 0, 3], [0.5, 0, 0, 7]]
    assert pruned(array, 1).dtype == array.dtype


def test_chosen_weights_of_a_file_are_pruned_and_the_rest_stays_there(tmp_path: Path) -> None:
    with ModelFile(models.save(models.mlp(width=32), tmp_path / "m.onnx")) as file:
        structure = Structure.open(file)
    result = prune_2_4(structure, {"w1"})
    outside = {t.name for t in result.initializers.values() if t.data_location == TensorProto.EXTERNAL}
    assert outside == {"w0", "w2"}
    assert is_sparse(arrays(result)["w1"], 0) and not is_sparse(arrays(result)["w0"], 0)

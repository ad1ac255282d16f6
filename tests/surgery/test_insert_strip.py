"""Inserting a node between tensors; stripping and restoring weights."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import models, surgeon_zoo
from support.models import from_text
from support.surgeon_sides import outputs_of

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits.patterns import insert_between
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.weights.sparsity import is_sparse, prune_2_4
from layerwise._tool.surgery.weights.strip import reconstructed, stripped

X = np.linspace(-1, 1, 16, dtype=np.float32)[None]


def opened(model: onnx.ModelProto, folder: Path) -> Structure:
    return Structure.open(ModelFile(models.save(model, folder / "model.onnx")))


def run(structure: Structure, folder: Path) -> np.ndarray:
    path = folder / "new.onnx"
    save(structure, path, overwrite=True)
    onnx.checker.check_model(str(path))
    return np.asarray(outputs_of(path, {"x": X})[0])


def test_a_node_is_inserted_on_a_tensor(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    before = run(structure, tmp_path)
    inside = insert_between(structure, ["m0"], ["m0"], "Identity", "probe")
    assert [node.name for node in inside.nodes][:3] == ["/fc0/MatMul", "probe", "/fc0/Add"]
    assert np.array_equal(run(inside, tmp_path), before)
    end = insert_between(structure, ["y"], ["y"], "Neg")
    assert end.output_names == ["y"] and np.array_equal(run(end, tmp_path), -before)
    front = insert_between(structure, ["x"], ["x"], "Neg")
    assert front.input_names == ["x"]
    assert np.array_equal(run(front, tmp_path), run(insert_between(front, ["y"], ["y"], "Identity"), tmp_path))


def test_a_node_replaces_several(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    short = insert_between(structure, ["x"], ["h1"], "LeakyRelu", attrs={"alpha": 0.25})
    assert [node.op_type for node in short.nodes] == ["LeakyRelu", "MatMul", "Add", "Relu"]
    assert short.nodes[0].attribute[0].f == 0.25 and list(short.initializers) == ["w2", "b2"]
    run(short, tmp_path)


def test_one_output_of_several_can_be_replaced(tmp_path: Path) -> None:
    model = from_text(
        """parts (float[1,16] x) => (float[1,8] y) <int64[2] sizes = {8, 8}> {
            [split] a, b = Split<axis=1>(x, sizes) [sum] y = Add(a, b)
        }"""
    )
    structure = insert_between(opened(model, tmp_path), ["b"], ["a"], "Neg")
    assert np.array_equal(run(structure, tmp_path), np.zeros((1, 8), np.float32))


def test_impossible_insertions_are_rejected(tmp_path: Path) -> None:
    structure = opened(models.mlp(), tmp_path)
    with pytest.raises(UsageError, match="mm0 does not exist in the model; did you mean m0"):
        insert_between(structure, ["mm0"], ["m0"], "Identity")
    with pytest.raises(LayerwiseError, match="cycle"):
        insert_between(structure, ["h1"], ["h0"], "Identity")


def weights() -> onnx.ModelProto:
    """One weight for each way in which a weight is stripped, or is not."""
    model = from_text(
        """all (float[1,4,8,8] x, float[1,16] v, int64[1] i) => (float[1,n] a, float[1,m] b, float[1,k] c, float[k] d) {
            [conv] a1 = Conv(x, conv_w, conv_b)
            [flat] a = Flatten(a1)
            [turn] t = Transpose<perm=[1,0]>(turned)
            [mm] b = MatMul(v, t)
            [q] q1 = QuantizeLinear(quantised, scale)
            [dq] q2 = DequantizeLinear(q1, scale)
            [gemm] c = Gemm(v, q2)
            [add] s = Add(added, added)
            [gather] g = Gather<axis=0>(table, i)
            [small] h = Gather<axis=0>(short, i)
            [d1] d = Flatten<axis=0>(g)
        }"""
    )
    random = np.random.default_rng(0)
    shapes = {"conv_w": (4, 4, 3, 3), "conv_b": (4,), "turned": (8, 16), "quantised": (16, 8), "added": (8,)}
    shapes |= {"table": (32, 32), "short": (4, 4)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return models.with_weights(model, **arrays, scale=np.array(0.1, np.float32))


def test_the_expected_weights_are_stripped(tmp_path: Path) -> None:
    bare, names = stripped(opened(weights(), tmp_path))
    assert sorted(names) == ["conv_b", "conv_w", "quantised", "table", "turned"]
    path = tmp_path / "bare.onnx"
    save(bare, path)
    model = onnx.load(path)
    docs = {tensor.name: tensor.doc_string for tensor in model.graph.initializer}
    assert docs["conv_w"] == "TRT_WEIGHTLESS/" and docs["added"] == "" and model.doc_string == "TRT_WEIGHTLESS"
    assert all(not tensor.raw_data for tensor in model.graph.initializer if tensor.name in names)
    _, names = stripped(opened(weights(), tmp_path), {"conv_w", "table"})
    assert sorted(names) == ["conv_b", "quantised", "turned"]


def test_restored_weights_are_random_and_keep_sparsity(tmp_path: Path) -> None:
    sparse = prune_2_4(opened(models.mlp(), tmp_path))
    bare, names = stripped(sparse)
    assert names == ["w0", "w1", "w2"]
    assert bare.initializers["w0"].doc_string == "TRT_WEIGHTLESS/SPARSE_2_4"
    path = tmp_path / "bare.onnx"
    save(bare, path)
    whole, again = reconstructed(Structure.open(ModelFile(path)))
    assert again == names
    for name in names:
        array = numpy_helper.to_array(whole.initializers[name])
        assert array.shape == (16, 16) and is_sparse(array, 0) and np.abs(array).sum() > 10
    assert np.isfinite(run(whole, tmp_path)).all()
    assert reconstructed(whole)[1] == []
    assert reconstructed(Structure.open(ModelFile(path)))[0].initializers == whole.initializers  # the same each time


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8])
def test_restored_weights_keep_their_types(kind: int, tmp_path: Path) -> None:
    model = models.mlp()
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    array = numpy_helper.to_array(model.graph.initializer[0]).astype(dtype)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w0"))
    whole, names = reconstructed(stripped(opened(model, tmp_path))[0])
    assert "w0" in names and whole.initializers["w0"].data_type == kind
    assert numpy_helper.to_array(whole.initializers["w0"]).shape == array.shape


def test_weights_in_typed_fields_and_external_files_are_stripped(tmp_path: Path) -> None:
    model = surgeon_zoo.large_weights()
    tensor = helper.make_tensor("w1", TensorProto.FLOAT, [128, 128], np.ones(128 * 128, np.float32))
    model.graph.initializer[1].CopyFrom(tensor)
    bare, names = stripped(opened(model, tmp_path))
    assert sorted(names) == ["w0", "w1"]
    assert not any(bare.initializers[name].float_data for name in names)
    path = models.with_external_weights(surgeon_zoo.large_weights(), tmp_path / "external.onnx")
    bare, _ = stripped(Structure.open(ModelFile(path)))
    save(bare, tmp_path / "bare.onnx")
    assert not (tmp_path / "bare.onnx.data").exists() and (tmp_path / "bare.onnx").stat().st_size < 1000

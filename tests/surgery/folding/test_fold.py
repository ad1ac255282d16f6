"""Constant folding: the model computes the same, foldable nodes are gone, and it does not grow by default."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import models, surgeon_zoo
from support.graphs import feed_for, random_model
from support.models import from_text
from support.surgeon_sides import feed_of, outputs_of, same

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.folding.options import FoldOptions
from layerwise._tool.surgery.folding.structure import fold_constants
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.shapes import with_shapes

ANY_SIZE = FoldOptions(threshold=1 << 40)


def folded(model: onnx.ModelProto, folder: Path, options: FoldOptions | None = None) -> onnx.ModelProto:
    """Fold a model as a file, and check that it is valid and computes the same."""
    source, target = models.save(model, folder / "model.onnx"), folder / "folded.onnx"
    with ModelFile(source) as file:
        result = fold_constants(with_shapes(Structure.open(file))[0], options)
        save(result, target, overwrite=True)
    onnx.checker.check_model(str(target))
    feed = feed_of(source)
    assert same(outputs_of(source, feed), outputs_of(target, feed))
    return onnx.load(target)


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), shuffled=st.booleans(), limit=st.sampled_from([None, 0, 200, 1 << 30]))
def test_any_folded_graph_computes_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffled: bool, limit: int | None
) -> None:
    folder = tmp_path_factory.mktemp("fold")
    model = random_model(seed, shuffled=shuffled)
    source, target = models.save(model, folder / "model.onnx"), folder / "folded.onnx"
    with ModelFile(source) as file:
        result = fold_constants(with_shapes(Structure.open(file))[0], FoldOptions(threshold=limit))
        save(result, target)
    feed = feed_for(seed)
    assert same(outputs_of(source, feed), outputs_of(target, feed))
    assert "If" not in {node.op_type for node in result.nodes}  # all are decided
    assert "Constant" not in {node.op_type for node in result.nodes}
    again = fold_constants(result, FoldOptions(threshold=limit))
    assert again.nodes == result.nodes and again.initializers == result.initializers


@pytest.mark.parametrize(
    ("maker", "left"),
    [
        (surgeon_zoo.constant_chain, ["MatMul"]),
        (surgeon_zoo.constants_of_all_kinds, ["Mul", "Add", "Sub"]),
        (surgeon_zoo.static_shapes, ["Reshape"]),
        (surgeon_zoo.sliced_shape, ["Reshape"]),
        (surgeon_zoo.partly_dynamic_shapes, ["Shape", "Gather", "Concat", "Reshape"]),
        (surgeon_zoo.decided_if, ["Mul", "Add", "Relu", "Neg"]),
        (surgeon_zoo.nested_ifs, ["Relu", "Neg", "Exp", "Add", "Relu", "Add"]),
        (surgeon_zoo.quantised, ["QuantizeLinear", "DequantizeLinear", "MatMul"]),
        (surgeon_zoo.several_outputs, ["Add"]),
        (surgeon_zoo.unsorted, ["MatMul"]),
        (surgeon_zoo.duplicate_names, ["Reshape"]),
        (surgeon_zoo.optional_inputs, ["Clip", "Add", "Resize"]),
        (surgeon_zoo.weights_as_inputs, ["MatMul"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_expected_nodes_remain(maker: surgeon_zoo.Maker, left: list[str], tmp_path: Path) -> None:
    assert ops(folded(maker(), tmp_path, ANY_SIZE)) == left


def test_float_arithmetic_becomes_integer_only_if_equal(tmp_path: Path) -> None:
    model = folded(surgeon_zoo.shapes_in_floats(), tmp_path, ANY_SIZE)
    kept = {node.name: node.op_type for node in model.graph.node}
    assert "to_float" in kept and "part" in kept and "back2" in kept  # times 0.5
    assert "back" not in kept  # times 2.0


def test_an_overridable_default_is_not_a_constant(tmp_path: Path) -> None:
    model = folded(surgeon_zoo.defaults(), tmp_path, ANY_SIZE)
    assert [value.name for value in model.graph.input] == ["x", "w"]
    assert ops(model) == ["Add", "Mul", "Add"]
    other = {"x": np.ones(4, np.float32), "w": np.full(4, 5, np.float32)}
    assert np.allclose(outputs_of(tmp_path / "folded.onnx", other)[0], 12)


def test_random_numbers_stay_random(tmp_path: Path) -> None:
    model = from_text(
        """draws (float[2] x) => (float[2] y) {
            [draw] r = RandomUniform<shape=[2], dtype=1>()
            [twice] t = Add(r, r)
            [use] y = Mul(x, t)
        }"""
    )
    path = models.save(model, tmp_path / "m.onnx")
    result = fold_constants(Structure.open(ModelFile(path)), ANY_SIZE)
    assert [node.op_type for node in result.nodes] == ["RandomUniform", "Add", "Mul"]


def test_a_model_does_not_grow_by_default(tmp_path: Path) -> None:
    small = folded(surgeon_zoo.expanding(), tmp_path)
    assert ops(small) == ["Expand", "Add"]  # the mean is one number: it is folded, the 1 MB it comes from is not
    assert (tmp_path / "folded.onnx").stat().st_size < 2000
    assert ops(folded(surgeon_zoo.expanding(), tmp_path, ANY_SIZE)) == ["Add"]
    assert ops(folded(surgeon_zoo.expanding(), tmp_path, FoldOptions(threshold=1 << 19))) == ["Expand", "Add"]
    assert ops(folded(surgeon_zoo.large_weights(), tmp_path)) == ["MatMul", "Relu", "MatMul"]  # no more bytes than now


def test_a_weight_that_is_read_elsewhere_is_not_stored_twice(tmp_path: Path) -> None:
    model = surgeon_zoo.large_weights()
    model.graph.node[3].input[1] = "w0"  # as a language model's head shares the table of its tokens
    assert ops(folded(model, tmp_path)) == ["Transpose", "MatMul", "Relu", "MatMul"]
    assert ops(folded(model, tmp_path, ANY_SIZE)) == ["MatMul", "Relu", "MatMul"]


def test_what_cannot_be_computed_stays_with_a_warning(tmp_path: Path) -> None:
    model = from_text(
        """fails (float[2] x) => (float[2] y, float[2] z) <float[2] a = {1.0, 2.0}, float[3] b = {1.0, 2.0, 3.0}> {
            [first] c = Add(a, a)
            [second] d = Mul(c, c)
            [broken] e = Add(d, b)
            [good] f = Neg(a)
            [y1] y = Add(x, f)
            [z1] z = MatMul(e, x)
        }"""
    )
    path = models.save(model, tmp_path / "m.onnx")
    said: list[tuple[str, str]] = []
    structure = Structure.open(ModelFile(path))
    basic = fold_constants(structure, ANY_SIZE, lambda level, text: said.append((level, text)))
    assert [node.name for node in basic.nodes] == ["first", "second", "broken", "y1", "z1"]
    assert any(level == "warning" and text.startswith("Not folded") and "e:" in text for level, text in said)
    recursive = fold_constants(structure, FoldOptions(threshold=1 << 40, partitioning="recursive"))
    assert [node.name for node in recursive.nodes] == ["broken", "y1", "z1"]


def test_a_custom_operator_does_not_stop_the_rest(tmp_path: Path) -> None:
    model = from_text(
        """custom (float[2] x) => (float[2] y) <float[2] a = {1.0, 2.0}> {
            [own] b = my.domain.Nonesuch(a)
            [twice] c = Add(a, a)
            [sum] d = Add(b, c)
            [use] y = Mul(x, d)
        }"""
    )
    model.opset_import.add(domain="my.domain", version=1)
    path = models.save(model, tmp_path / "m.onnx")
    result = fold_constants(Structure.open(ModelFile(path)), ANY_SIZE)
    assert [node.name for node in result.nodes] == ["own", "sum", "use"]


def test_bodies_and_functions_are_folded_too(tmp_path: Path) -> None:
    loop = folded(surgeon_zoo.constants_in_bodies(), tmp_path, ANY_SIZE)
    assert [node.op_type for node in loop.graph.node[0].attribute[0].g.node] == ["Identity", "Add"]
    called = folded(surgeon_zoo.functions(), tmp_path, ANY_SIZE)
    assert [node.op_type for node in called.graph.node] == ["Scale", "Add"]
    assert [node.op_type for node in called.functions[0].node] == ["Constant", "Mul"]


def test_shapes_are_not_folded_on_request(tmp_path: Path) -> None:
    kept = folded(surgeon_zoo.static_shapes(), tmp_path, FoldOptions(threshold=1 << 40, shapes=False))
    assert "Shape" in ops(kept)
    one = folded(surgeon_zoo.static_shapes(), tmp_path, FoldOptions(threshold=1 << 40, passes=1, infer=False))
    assert ops(one) == ["Reshape"]


def test_unfolded_weights_stay_in_place(tmp_path: Path) -> None:
    path = models.with_external_weights(surgeon_zoo.large_weights(), tmp_path / "m.onnx")
    result = fold_constants(Structure.open(ModelFile(path)), FoldOptions(threshold=1000))
    assert {tensor.data_location for tensor in result.initializers.values()} == {onnx.TensorProto.EXTERNAL}


def test_a_cycle_is_an_error(tmp_path: Path) -> None:
    model = from_text("c (float[2] x) => (float[2] y) { [a] p = Add(x, q) [b] q = Neg(p) [c] y = Neg(q) }")
    path = models.save(model, tmp_path / "m.onnx")
    with pytest.raises(LayerwiseError, match="cycle"):
        fold_constants(Structure.open(ModelFile(path)), ANY_SIZE)

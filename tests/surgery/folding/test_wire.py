"""Folding in wire format gives the same result as folding with the engine, or declines."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support import models, surgeon_zoo
from support.models import from_text
from support.surgeon_sides import feed_of, outputs_of, same

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.folding.options import FoldOptions
from layerwise._tool.surgery.folding.structure import fold_constants
from layerwise._tool.surgery.folding.wire import fold_bytes
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.shapes import with_shapes
from layerwise._tool.surgery.wire.graph import reading
from layerwise._tool.surgery.wire.pieces import length, save_pieces

FLOAT = TensorProto.FLOAT
PLAIN = (  # there is nothing to compute in them
    *("without_shapes", "tail", "mlp", "conv_net", "dynamic_model", "old_ir", "left_out_bias", "left_out_outputs"),
)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"


def both_ways(path: Path, folder: Path, options: FoldOptions) -> tuple[onnx.ModelProto, onnx.ModelProto] | None:
    """The model folded on the wire, and with the engine; None if the first is not for it."""
    with ModelFile(path) as file:
        folded = fold_bytes(file.structure_bytes(), file.folder, options, True)
        if folded is None:
            return None
        save_pieces(folder / "wire.onnx", folded.pieces)
        save(fold_constants(with_shapes(Structure.open(file))[0], options), folder / "engine.onnx")
    wire, engine = (onnx.load(folder / f"{name}.onnx") for name in ("wire", "engine"))
    assert folded.nodes == len(wire.graph.node)
    onnx.checker.check_model(wire)
    return wire, engine


def described(model: onnx.ModelProto) -> dict[str, Any]:
    graph = model.graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    return {
        "nodes": list(graph.node),
        "ends": (list(graph.input), list(graph.output)),
        "inner": {value.name: value for value in graph.value_info},
        "weights": {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in weights.items()},
        "head": (model.ir_version, list(model.opset_import), model.producer_name, graph.name),
    }


@pytest.mark.parametrize("threshold", [None, 4096, 1 << 20])
def test_a_light_model_folds_like_with_the_engine(threshold: int | None, tmp_path: Path) -> None:
    folded = both_ways(LIGHT, tmp_path, FoldOptions(threshold=threshold))
    assert folded is not None and described(folded[0]) == described(folded[1])
    sizes = [(tmp_path / f"{name}.onnx").stat().st_size for name in ("wire", "engine")]
    assert sizes[0] == sizes[1]
    if threshold is None:
        assert sizes[0] < 1.1 * LIGHT.stat().st_size  # it is told the shapes of its tensors, no more


@pytest.mark.parametrize("maker", surgeon_zoo.MAKERS.values(), ids=surgeon_zoo.MAKERS)
def test_every_model_folds_like_with_the_engine_or_is_declined(maker: surgeon_zoo.Maker, tmp_path: Path) -> None:
    path = models.save(maker(), tmp_path / "m.onnx")
    folded = both_ways(path, tmp_path, FoldOptions(threshold=1 << 20))
    assert (folded is None) == (maker.__name__ not in PLAIN)
    if folded is not None:
        assert described(folded[0]) == described(folded[1])


@st.composite
def plain_models(draw: st.DrawFn) -> onnx.ModelProto:
    """Fills, Constant nodes and weights of 4 and 1200 bytes, some read by Adds, some outputs, some by nobody."""
    old = draw(st.booleans())
    kinds = draw(st.lists(st.sampled_from(("fill", "constant", "weight", "default")), min_size=1, max_size=8))
    sizes = draw(st.lists(st.sampled_from((1, 300)), min_size=len(kinds), max_size=len(kinds)))
    nodes, weights, inputs = [], [], [helper.make_tensor_value_info("x", FLOAT, [300])]
    for i, kind in enumerate(kinds):
        name, size = f"t{i}", sizes[i]
        array = np.full(size, i, np.float32)
        if kind == "fill":
            weights.append(numpy_helper.from_array(np.array([size]), f"shape{i}"))
            nodes.append(helper.make_node("ConstantOfShape", [f"shape{i}"], [name]))
        elif kind == "constant":
            nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            weights.append(numpy_helper.from_array(array, name))
        if kind == "default" or old:
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in weights[len(inputs) - 1 :]]
    last, outputs = "x", []
    for i in range(len(kinds)):
        use = draw(st.sampled_from(("read", "output", "nothing")))
        if use == "read":
            nodes.append(helper.make_node("Add", [last, f"t{i}"], [f"h{i}"]))
            last = f"h{i}"
        elif use == "output":
            outputs.append(helper.make_tensor_value_info(f"t{i}", FLOAT, [sizes[i]]))
    nodes.append(helper.make_node("Neg", [last], ["y"]))
    outputs.append(helper.make_tensor_value_info("y", FLOAT, [300]))
    graph = helper.make_graph(nodes, "plain", inputs, outputs, weights)
    return helper.make_model(graph, ir_version=3 if old else 10, opset_imports=[helper.make_opsetid("", 9)])


@settings(max_examples=15)
@given(model=plain_models(), limit=st.sampled_from([None, 0, 200, 1 << 30]), passes=st.sampled_from([None, 1]))
def test_any_plain_graph_folds_like_with_the_engine(
    tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto, limit: int | None, passes: int | None
) -> None:
    folder = tmp_path_factory.mktemp("wire")
    options = FoldOptions(threshold=limit, passes=passes)
    folded = both_ways(models.save(model, folder / "m.onnx"), folder, options)
    assert folded is not None and described(folded[0]) == described(folded[1])
    feed = {"x": np.ones(300, np.float32)}
    assert same(outputs_of(folder / "wire.onnx", feed), outputs_of(folder / "m.onnx", feed))


def filling(value: TensorProto | None, dims: list[int], kind: int) -> onnx.ModelProto:
    """Return a graph that outputs the result of a ConstantOfShape."""
    attributes = {} if value is None else {"value": value}
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["filled"], **attributes),
             helper.make_node("Identity", ["x"], ["y"])]  # fmt: skip
    graph = helper.make_graph(
        nodes, "filling", [helper.make_tensor_value_info("x", 1, [1])],
        [helper.make_tensor_value_info("y", 1, [1]), helper.make_tensor_value_info("filled", kind, dims)],
        [helper.make_tensor("shape", TensorProto.INT64, [len(dims)], dims)],
    )  # fmt: skip
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


KINDS = ("FLOAT", "FLOAT16", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL")


@settings(max_examples=15)
@given(
    kind=st.sampled_from(KINDS),
    value=st.integers(-3, 120),
    dims=st.lists(st.integers(0, 40), max_size=3),
    raw=st.booleans(),
)
def test_fills_of_every_type_have_the_right_values(
    tmp_path_factory: pytest.TempPathFactory, kind: str, value: int, dims: list[int], raw: bool
) -> None:
    folder, number = tmp_path_factory.mktemp("fill"), TensorProto.DataType.Value(kind)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    array = np.array([abs(value) if dtype.kind in "ub" else value]).astype(dtype)
    tensor = numpy_helper.from_array(array) if raw else helper.make_tensor("", number, [1], array)
    path = models.save(filling(tensor, dims, number), folder / "m.onnx")
    folded = both_ways(path, folder, FoldOptions(threshold=1 << 30))
    assert folded is not None
    made = numpy_helper.to_array(next(t for t in folded[0].graph.initializer if t.name == "filled"))
    assert made.dtype == dtype and np.array_equal(made, np.full(dims, array[0]))
    assert described(folded[0])["weights"] == described(folded[1])["weights"]


def test_a_fill_without_a_value_is_zeros_and_constant_nodes_become_weights(tmp_path: Path) -> None:
    path = models.save(filling(None, [2, 3], TensorProto.FLOAT), tmp_path / "m.onnx")
    folded = both_ways(path, tmp_path, FoldOptions())
    assert folded is not None and np.array_equal(outputs_of(tmp_path / "wire.onnx", feed_of(path))[1], np.zeros((2, 3)))
    model = from_text(
        """c (float[400] x) => (float[400] y) { [a] s = Constant<value = float {2.0}>() [b] y = Mul(x, s)}"""
    )
    large = numpy_helper.from_array(np.arange(400, dtype=np.float32))
    model.graph.node.insert(0, helper.make_node("Constant", [], ["big"], value=large))
    model.graph.node[2].input[1] = "big"
    path = models.save(model, tmp_path / "constants.onnx")
    (tmp_path / "wire.onnx").unlink()
    (tmp_path / "engine.onnx").unlink()
    folded = both_ways(path, tmp_path, FoldOptions())
    assert folded is not None and [t.name for t in folded[0].graph.initializer] == ["big"]
    assert same(outputs_of(tmp_path / "wire.onnx", feed_of(path)), outputs_of(path, feed_of(path)))


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (int64[1] y) { y = Shape(x) }",
        "(float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { z = Neg(w) y = Add(x, z) }",
        "(float[2] x) => (float[2] y) { y = Neg(z) z = Abs(x) }",
        "(float[2] x) => (float[2] y) { r = RandomUniform<shape=[2]>() y = Add(x, r) }",
        "(float[2] x) => (float[2] y) <int64[1] s = {-2}> { z = ConstantOfShape(s) y = Add(x, z) }",
        "(float[2] x) => (float[2] y) <int64[1] s = {9000}> { z = ConstantOfShape(s) w = Neg(z) y = Add(x, w) }",
    ],
    ids=("a shape", "arithmetic", "unsorted", "random", "negative", "kept and read"),
)
def test_unsupported_graphs_are_left_to_the_engine(text: str, tmp_path: Path) -> None:
    with ModelFile(models.save(from_text(f"left {text}"), tmp_path / "m.onnx")) as file:
        assert fold_bytes(file.structure_bytes(), file.folder, FoldOptions(), True) is None


@settings(max_examples=15)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_bytes_are_reported(tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]) -> None:
    data = bytearray(LIGHT.read_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    path = tmp_path_factory.mktemp("damaged") / "m.onnx"
    path.write_bytes(data)
    with suppress(BadFile), reading(path), ModelFile(path) as file:
        folded = fold_bytes(file.structure_bytes(), file.folder, FoldOptions(threshold=1 << 16), False)
        assert folded is None or length(folded.pieces) > 0

"""A model in parts, whoever says which nodes are taken."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support import models

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.debugtools.engines.capability.action import NodeGroup, Whole, largest, partition
from layerwise._tool.surgery.saving.model import save

Answer = list[tuple[list[int], bool]]


def runs(model: onnx.ModelProto, taken: Callable[[onnx.NodeProto], bool]) -> Answer:
    """Runs of nodes that are taken, or not."""
    found: Answer = []
    for at, node in enumerate(model.graph.node):
        if not found or found[-1][1] != taken(node):
            found.append(([], taken(node)))
        found[-1][0].append(at)
    return found


def ladder(reads: list[tuple[int, int]]) -> onnx.ModelProto:
    """Node i adds two earlier tensors (0 is the input) and a weight of its own."""
    names = ["x", *(f"t{i}" for i in range(len(reads)))]
    nodes, weights = [], []
    for i, (first, second) in enumerate(reads):
        weights.append(numpy_helper.from_array(np.full((2, 300), i + 1, np.float32), f"w{i}"))
        nodes.append(helper.make_node("Sum", [names[first % (i + 1)], names[second % (i + 1)], f"w{i}"], [names[i + 1]],
                                      f"n{i}"))  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 300]) for name in ("x", names[-1])]
    graph = helper.make_graph(nodes, "ladder", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@settings(max_examples=20)
@given(
    reads=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12),
    bad=st.sets(st.integers(0, 11)),
)
def test_parts_hold_every_node_once_and_together_do_what_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, reads: list[tuple[int, int]], bad: set[int]
) -> None:
    folder, model = tmp_path_factory.mktemp("parts"), ladder(reads)
    path = models.save(model, folder / "m.onnx")
    with ModelFile(path) as file:
        whole = Whole(file)
        parts = partition(
            whole, lambda asked: runs(_read(asked), lambda node: int(node.name[1:]) not in bad), deep=True
        )
        assert sorted(at for part in parts for at in part.nodes) == list(range(len(reads)))
        assert {at for part in parts if not part.supported for at in part.nodes} == bad & set(range(len(reads)))
        for part in parts:
            save(whole.piece(part), folder / part.file)
    known = {"x": np.ones((2, 300), np.float32)}
    expected = _run(path, known)
    for part in parts:
        found = onnx.load(folder / part.file)
        onnx.checker.check_model(found)
        assert all(value.type.tensor_type.HasField("shape") for value in found.graph.input)
        known |= _run(folder / part.file, {value.name: known[value.name] for value in found.graph.input})
    assert all(np.array_equal(known[name], value) for name, value in expected.items())


@pytest.mark.parametrize("make", [models.if_model, models.loop_model, models.function_model, models.conv_net])
def test_every_node_alone_does_what_it_does_in_the_model(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    """Bodies that read tensors around them, functions, weights of their own."""
    path = models.save(make(), tmp_path / "m.onnx")
    with ModelFile(path) as file:
        whole = Whole(file)
        alone = [([at], at % 2 == 0) for at in range(len(whole.pieces.nodes))]
        parts = partition(whole, lambda _: alone, deep=False)
        for part in parts:
            save(whole.piece(part), tmp_path / part.file)
    known = {value.name: _feed(value) for value in onnx.load(path).graph.input}
    expected = _run(path, known)
    for part in parts:
        wanted = [value.name for value in onnx.load(tmp_path / part.file).graph.input]
        known |= _run(tmp_path / part.file, {name: known[name] for name in wanted})
    assert all(np.array_equal(known[name], value) for name, value in expected.items())


def test_parts_that_are_not_taken_are_asked_for_again_until_nothing_comes_of_it(tmp_path: Path) -> None:
    path = models.save(ladder([(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]), tmp_path / "m.onnx")
    asked = []

    def ask(model: Loadable) -> Answer:
        names = [node.name for node in _read(model).graph.node]
        asked.append(names)
        coarse = {5: [([0], True), ([1, 2, 3, 4], False)], 4: [([0], False), ([1], True)]}
        return coarse.get(len(names), [])

    with ModelFile(path) as file:
        whole = Whole(file)
        assert partition(whole, ask, deep=False) == [NodeGroup((0,), True), NodeGroup((1, 2, 3, 4), False)]
        parts = partition(whole, ask, deep=True)
    assert [(part.nodes, part.supported) for part in parts] == [((0,), True), ((1,), False), ((2,), True),
                                                              ((3, 4), False)]  # fmt: skip
    assert sorted(asked[2:]) == [["n1"], ["n1", "n2", "n3", "n4"], ["n3", "n4"]]
    best = largest(parts)
    assert best is not None and best.nodes == (0,) and largest(parts[1:2]) is None


def test_a_part_whose_types_nobody_knows_is_a_model_all_the_same(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mystery", ["a"], ["b"], domain="my")]
    nodes.append(helper.make_node("Tanh", ["b"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2]), ("y", None))]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    path = models.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    with ModelFile(path) as file:
        whole = Whole(file)
        parts = partition(whole, lambda asked: runs(_read(asked), lambda node: node.op_type != "Mystery"), deep=True)
        first, second, third = (whole.piece(part).proto().graph for part in parts)
    assert first.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert not second.output[0].HasField("type") and not third.input[0].HasField("type")


def _feed(value: onnx.ValueInfoProto) -> np.ndarray:
    tensor = value.type.tensor_type
    shape = [dim.dim_value or 2 for dim in tensor.shape.dim]
    return np.ones(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def _read(model: Loadable) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.read())


def _run(path: Path, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))

"""Live cuts: any set of nodes, run alone on the reference's tensors, gives the reference's values bit for bit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.graphs import feed_for, random_model, run_whole
from support.models import if_model, loop_model, save, scan_model, with_external_weights

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.surgery.cut import file as live_file
from layerwise._tool.surgery.cut.file import write_cut
from layerwise._tool.surgery.cut.live import LiveCut, LiveCuts
from layerwise._tool.surgery.cut.segments import GraphCut

SPEC = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", threads=1)
Array = NDArray[Any]


def opened(model: onnx.ModelProto, folder: Path) -> tuple[ModelFile, GraphCut]:
    onnx.save(model, folder / "model.onnx")
    file = ModelFile(folder / "model.onnx")
    return file, GraphCut(file.structure())


def run_cut(graph: GraphCut, part: LiveCut, tensors: Mapping[str, Array], folder: Path) -> Mapping[str, Array]:
    feed = {name: tensors[name] for name in part.feeds}
    data = graph.build(part, {name: to_onnx(dtype_name(array)) for name, array in feed.items()})
    with open_runner(SPEC, Loadable(data=data, folder=folder)) as runner:
        return runner.infer(feed).outputs


def same(made: Mapping[str, Array], tensors: Mapping[str, Array]) -> bool:
    return all(array.tobytes() == tensors[name].tobytes() for name, array in made.items())


def check_invariants(
    graph: GraphCut, part: LiveCut, known: Mapping[str, Array], constants: frozenset[str] = frozenset()
) -> None:
    inside = set(part.nodes)
    made = {name for i in part.nodes for name in graph.nodes[i].output if name}
    assert list(part.nodes) == sorted(inside)
    assert not made & set(part.feeds)
    reads = {name for i in part.nodes for name in graph.reads[i]}
    assert reads <= made | set(part.feeds) | graph.initializers.keys()
    assert set(part.feeds) <= set(known) - constants
    live = set()
    for name in made & set(known) - constants:
        readers = [i for i, names in enumerate(graph.reads) if name in names]
        if name in graph.outputs or not readers or not set(readers) <= inside:
            live.add(name)
    assert set(part.gives) == live


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_any_set_of_nodes_is_bit_equal_to_the_reference(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("live")
    model, feed = random_model(seed), feed_for(seed)
    file, graph = opened(model, folder)
    tensors = feed | run_whole(model, sorted(graph.maker), feed)
    lowered = frozenset(node.output[0] for node in graph.nodes if node.op_type == "Constant")
    constants = lowered if data.draw(st.booleans()) else frozenset()
    cuts = LiveCuts(graph, tensors, constants)
    chosen = data.draw(st.sets(st.sampled_from(cuts.judgeable(range(len(graph.nodes)))), min_size=1))
    part = cuts.cut(chosen)
    assert {i for i in part.nodes if graph.nodes[i].output[0] not in constants} == chosen and part.glue == ()
    check_invariants(graph, part, tensors, constants)
    assert same(run_cut(graph, part, tensors, file.folder), tensors)
    frozen = data.draw(st.sets(st.sampled_from(part.feeds))) if part.feeds else set()
    write_cut(folder / "cut.onnx", graph, part, tensors, file.folder, frozen=frozen)
    written = onnx.load(folder / "cut.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert {tensor.name for tensor in written.graph.initializer} <= {n for i in part.nodes for n in graph.reads[i]}
    with open_runner(SPEC, Loadable(path=folder / "cut.onnx")) as runner:
        made = runner.infer({name: tensors[name] for name in part.feeds if name not in frozen}).outputs
        assert same(made, tensors) and set(made) == set(part.gives)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_tensor_that_cannot_be_fed_adds_its_maker(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    model, feed = random_model(seed), feed_for(seed)
    file, graph = opened(model, tmp_path_factory.mktemp("glue"))
    tensors = feed | run_whole(model, sorted(graph.maker), feed)
    hidden = data.draw(st.sets(st.sampled_from(sorted(graph.maker)), max_size=10))
    known = {name: array for name, array in tensors.items() if name not in hidden}
    cuts = LiveCuts(graph, known)
    chosen = data.draw(st.sets(st.integers(0, len(graph.nodes) - 1), min_size=1))
    part = cuts.cut(chosen)
    assert chosen <= set(part.nodes) and set(part.glue) == set(part.nodes) - chosen
    check_invariants(graph, part, known)
    if part.gives:
        assert same(run_cut(graph, part, known, file.folder), tensors)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_contiguous_cut_has_no_gaps(tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject) -> None:
    _, graph = opened(random_model(seed), tmp_path_factory.mktemp("whole"))
    chosen = data.draw(st.sets(st.integers(0, len(graph.nodes) - 1), min_size=1))
    whole = LiveCuts(graph, set(graph.maker)).contiguous(chosen)
    below = [reachable(graph, i) for i in range(len(graph.nodes))]
    between = {j for i in chosen for j in below[i] if any(end in below[j] for end in chosen)}
    assert set(whole) == chosen | between


def reachable(graph: GraphCut, start: int) -> set[int]:
    found = {start}
    for i in range(start + 1, len(graph.nodes)):
        if any(graph.maker.get(name) in found for name in graph.reads[i]):
            found.add(i)
    return found


@pytest.mark.parametrize(
    ("model", "feed"),
    [
        (if_model(), {"cond": np.array(True), "x": np.arange(4, dtype=np.float32)}),
        (loop_model(), {"trips": np.array(3, np.int64), "x": np.array([1, 2], np.float32)}),
        (scan_model(), {"state": np.zeros(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
    ],
    ids=["If", "Loop", "Scan"],
)
def test_bodies_read_fed_tensors(model: onnx.ModelProto, feed: dict[str, Array], tmp_path: Path) -> None:
    file, graph = opened(model, tmp_path)
    tensors = feed | run_whole(model, sorted(graph.maker), feed)
    cuts = LiveCuts(graph, tensors)
    for i in range(len(graph.nodes)):
        part = cuts.cut([i])
        assert same(run_cut(graph, part, tensors, file.folder), tensors)
        write_cut(tmp_path / "one.onnx", graph, part, tensors, file.folder)
        onnx.checker.check_model(onnx.load(tmp_path / "one.onnx"))


def test_sequences_add_their_maker(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("SequenceConstruct", ["r", "y"], ["seq"], "pair"),
        helper.make_node("ConcatFromSequence", ["seq"], ["joined"], "join", axis=0),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "y")]
    outputs = [helper.make_tensor_value_info("joined", TensorProto.FLOAT, [8, 4])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    file, graph = opened(model, tmp_path)
    feed = feed_for(0)
    tensors = feed | run_whole(model, ["r", "joined"], feed)
    cuts = LiveCuts(graph, tensors)
    assert cuts.judgeable(range(3)) == [0, 2]
    part = cuts.cut([2])
    assert part.nodes == (1, 2) and part.glue == (1,) and part.feeds == ("r", "y")
    assert same(run_cut(graph, part, tensors, file.folder), tensors)


def test_random_operators_are_not_judged(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], "noise"),
        helper.make_node("Add", ["x", "noise"], ["s"], "add"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "s")]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:]), ir_version=8)
    _, graph = opened(model, tmp_path)
    assert LiveCuts(graph, {"x", "noise", "s"}).judgeable(range(2)) == [1]


def big_weights(path: Path) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("MatMul", ["a", "w1"], ["b"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in ("x", "b")]
    weights = [numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), f"w{i}") for i in range(2)]
    return helper.make_model(
        helper.make_graph(nodes, "g", values[:1], values[1:], weights),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )


@pytest.mark.parametrize("external", [False, True], ids=["embedded", "external"])
@pytest.mark.parametrize("limit", [live_file.EMBED_LIMIT, 100], ids=["one-file", "beside"])
def test_a_written_cut_is_self_contained(
    tmp_path: Path, external: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_file, "EMBED_LIMIT", limit)
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    model = big_weights(source)
    feed = {"x": np.eye(64, dtype=np.float32)}
    tensors = feed | run_whole(model, ["a", "b"], feed)
    path = with_external_weights(model, source / "m.onnx") if external else save(model, source / "m.onnx")
    file = ModelFile(path)
    graph = GraphCut(file.structure())
    part = LiveCuts(graph, tensors).cut([1])
    write_cut(target / "cut.onnx", graph, part, tensors, file.folder)
    for left in source.iterdir():
        left.unlink()
    assert len(list(target.iterdir())) == (1 if limit > 100 else 2)
    written = onnx.load(target / "cut.onnx")
    assert [tensor.name for tensor in written.graph.initializer] == ["w1"]
    assert [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in written.graph.input] == [[64, 64]]
    with open_runner(SPEC, Loadable(path=target / "cut.onnx")) as runner:
        assert same(runner.infer({"a": tensors["a"]}).outputs, tensors)

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from support.cpu_time import cpu_seconds
from support.sample_models import DATA, FLOAT, if_model, mlp, model, node_test_models
from support.views import reached

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import action_index, build_index
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.surgery.model.topological_order import topological_order


def index_of(proto: onnx.ModelProto | bytes, folder: Path, shape_inference: bool = True) -> GraphIndex:
    path = folder / "m.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    with ModelFile(path) as file:
        return build_index(file, folder / "index", shape_inference=shape_inference)


def names(index: GraphIndex, tensors: list[int]) -> list[str]:
    return [index.tensor_name(t) if t >= 0 else "" for t in tensors]


def n_nodes(graph: Any) -> int:
    bodies = [g for n in graph.node for a in n.attribute for g in [*([a.g] if a.HasField("g") else []), *a.graphs]]
    return len(graph.node) + sum(n_nodes(body) for body in bodies)


def assert_agrees(index: GraphIndex, proto: onnx.ModelProto) -> None:
    graph = proto.graph
    main = index.main_nodes().tolist()
    assert index.n_nodes == n_nodes(graph) + sum(n_nodes(f) for f in proto.functions)
    assert sorted(index.node_position(i) for i in main) == list(range(len(graph.node)))
    made: dict[str, int] = {}
    readers: dict[str, set[int]] = {}
    for i in main:
        node = graph.node[index.node_position(i)]
        assert (index.node_name(i), index.node_op(i)) == (node.name, node.op_type)
        assert names(index, index.node_inputs(i)) == list(node.input)
        assert names(index, index.node_outputs(i)) == list(node.output)
        assert [name for name, _ in index.attributes(i)] == [a.name for a in node.attribute]
        for name in node.output:
            made.setdefault(name, i)
        for name in node.input:
            readers.setdefault(name, set()).add(i)
    initializers = {t.name for t in graph.initializer}
    for name in {*made, *readers} - {""}:
        tensor = index.find_tensor(name)
        assert index.tensor_name(tensor) == name
        assert index.producer(tensor) == made.get(name, -1)
        assert readers.get(name, set()) <= set(index.consumers(tensor).tolist())
        assert (index.tensor_kind(tensor) == "initializer") == (name in initializers)
    for i in range(index.n_nodes):
        assert not index.meta["has_cycle"]
        assert all(p < i for p in index.parents(i) if index.node_scope(p) == index.node_scope(i))
        assert all(i in index.children(p) for p in index.parents(i))


@st.composite
def random_graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """Nodes of up to 3 inputs and 2 outputs over one pool of names, in random order; no cycles."""
    known, nodes = ["x", "w", ""], []
    for i in range(draw(st.integers(0, 12))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        made = [f"t{i}_{k}" for k in range(draw(st.integers(1, 2)))]
        nodes.append(
            helper.make_node(draw(st.sampled_from(["Sum", "Relu", "Max"])), reads, made, draw(st.text(max_size=5)))
        )
        known += made
    outputs = draw(st.lists(st.sampled_from([n for n in known if n]), max_size=3, unique=True))
    weight = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    return model(draw(st.permutations(nodes)), ["x"], outputs, [weight], shape=[2])


@given(random_graphs())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_index_agrees_with_onnx_on_random_graphs(tmp_path: Path, proto: onnx.ModelProto) -> None:
    assert_agrees(index_of(proto, tmp_path, shape_inference=False), proto)


def test_the_index_agrees_with_onnx_on_all_node_tests(tmp_path: Path) -> None:
    samples = node_test_models()
    assert len(samples) > 1000
    seen = set()
    for name, data in samples:
        proto = onnx.load_from_string(data)
        shape = str([(n.op_type, len(n.input), len(n.output), [a.name for a in n.attribute]) for n in proto.graph.node])
        if shape not in seen:
            seen.add(shape)
            index = index_of(data, tmp_path, shape_inference=False)
            assert index.meta["problems"] == [], name
            assert_agrees(index, proto)
    assert len(seen) > 500


@pytest.mark.parametrize("name", ["densenet121", "shufflenet"])
def test_the_index_agrees_with_onnx_on_real_models(tmp_path: Path, name: str) -> None:
    proto = onnx.load(DATA / "light" / f"light_{name}.onnx")
    index = index_of(proto, tmp_path)
    assert_agrees(index, proto)
    assert index.meta["n_initializers"] == len(proto.graph.initializer)
    inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.value_info}
    for value in inferred.values():
        dims = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        assert index.tensor_shape(index.find_tensor(value.name)) == dims
    last = int(index.main_nodes()[-1])
    assert len(reached(last, index.parents)) > 0.5 * index.n_nodes
    assert last in reached(0, index.children)


def test_the_index_has_shapes_types_and_weights(tmp_path: Path) -> None:
    index = index_of(mlp(width=32), tmp_path)
    hidden, weight, x = (index.find_tensor(n) for n in ("g1", "w1", "x"))
    assert (index.tensor_dtype(hidden), index.tensor_shape(hidden)) == ("float32", ("N", 32))
    assert [index.tensor_kind(t) for t in (x, weight, hidden, index.find_tensor("r2"))] == [
        "input",
        "initializer",
        "node",
        "output",
    ]
    place = index.weight(weight)
    assert place is not None
    file, offset, nbytes = place
    with ModelFile(tmp_path / "m.onnx") as model_file:
        expected = model_file.array("w1").tobytes()
    assert Path(file).read_bytes()[offset : offset + nbytes] == expected
    assert index.weight(index.find_tensor("b0")) is not None
    assert index.weight(x) is None
    assert index.meta["inputs"] == ["x"]
    assert index.meta["outputs"] == ["r2"]
    assert index.meta["opsets"] == {"": 17}
    assert (index.find_node("gemm_1"), index.find_node("nope"), index.find_tensor("nope")) == (2, -1, -1)


def test_bodies_are_scopes_and_captures_are_reads(tmp_path: Path) -> None:
    index = index_of(if_model(), tmp_path)
    owner, inner = index.find_node("choose"), index.find_node("then_add")
    assert [s["kind"] for s in index.meta["scopes"]] == ["main", "body", "body"]
    scope = index.meta["scopes"][index.node_scope(inner)]
    assert (scope["owner"], scope["attribute"], scope["name"]) == (owner, "then_branch", "then")
    x, w = index.find_tensor("x"), index.find_tensor("w")
    assert {owner, inner, index.find_node("else_mul"), index.find_node("sum")} == set(index.consumers(x).tolist())
    assert set(index.node_captures(owner)) == {x, w}
    assert index.consumers(w).tolist() == [owner, inner]
    assert index.main_nodes().tolist() == [index.find_node(n) for n in ("sum", "greater", "choose")]
    assert dict(index.attributes(owner))["then_branch"] == "graph then (1 nodes)"
    assert index.weight(index.find_tensor("inner")) is not None


def test_functions_are_scopes(tmp_path: Path) -> None:
    body = [helper.make_node("Add", ["a", "a"], ["b"], name="double")]
    function = helper.make_function("mine", "Double", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    proto = model([helper.make_node("Double", ["x"], ["y"], domain="mine", name="call")], ["x"], ["y"], shape=[2])
    proto.functions.append(function)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    index = index_of(proto, tmp_path)
    assert index.meta["functions"] == ["mine:Double"]
    double = index.find_node("double")
    assert index.meta["scopes"][index.node_scope(double)]["kind"] == "function"
    assert index.node_domain(index.find_node("call")) == "mine"
    assert names(index, index.node_inputs(double)) == ["a", "a"]


def test_broken_graphs_are_shown_as_they_are(tmp_path: Path) -> None:
    long = "n" * 10_000
    nodes = [
        helper.make_node("Add", ["loop_b", "x"], ["loop_a"], name="first"),
        helper.make_node("Relu", ["loop_a"], ["loop_b"], name="second"),
        helper.make_node("Relu", ["nowhere"], ["y"], name=long),
        helper.make_node("Relu", ["x"], ["y"], name="line\nbreak\x1b[31m"),
        helper.make_node("Clip", ["x", "", ""], ["", "z"], name=""),
        helper.make_node("Relu", ["x"], ["x"], name=""),
    ]
    index = index_of(model(nodes, ["x"], ["y", "ghost"], shape=[2]), tmp_path)
    assert index.meta["has_cycle"]
    problems = "\n".join(index.meta["problems"])
    for part in ("cycle", "'nowhere'", "'y' is made more than once", "'ghost'"):
        assert part in problems
    assert [index.node_position(i) for i in range(6)] == list(range(6)), "a cycle keeps the file's order"
    assert index.tensor_kind(index.find_tensor("nowhere")) == "missing"
    assert index.producer(index.find_tensor("y")) == 2
    assert (index.node_name(2), index.find_node(long)) == (long, 2)
    assert index.node_inputs(4)[1:] == [-1, -1]
    assert index.search("break").tolist() == [3]
    assert reached(0, index.parents) == {0, 1, 5}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_topological_order_is_stable_and_complete(edges: list[tuple[int, int]]) -> None:
    reads: list[list[int]] = [[] for _ in range(31)]
    for a, b in edges:
        reads[max(a, b)].append(min(a, b))
    forwards = [[s for s in sources if s < node] for node, sources in enumerate(reads)]
    assert topological_order(forwards) == (list(range(31)), [])
    backwards = [[30 - s for s in sources] for sources in reversed(forwards)]
    order, cycle = topological_order(backwards)
    place = {node: i for i, node in enumerate(order)}
    assert not cycle
    assert sorted(order) == list(range(31))
    assert all(place[s] < place[node] for node, sources in enumerate(backwards) for s in sources)


def test_queries_find_the_expected_nodes(tmp_path: Path) -> None:
    def node(op: str, read: str, made: str, name: str) -> onnx.NodeProto:
        return helper.make_node(op, [read], [made], name=name, **({"to": 10} if op == "Cast" else {}))

    nodes = [
        node("Relu", "x", "enc/act", "/Enc/relu one"),
        node("Cast", "enc/act", "half", "/enc/CAST"),
        node("LeakyRelu", "half", "üBER", "leaky"),
    ]
    index = index_of(model(nodes, ["x"], ["üBER"], shape=[2]), tmp_path)

    def found(query: str) -> list[int]:
        return index.search(query).tolist()

    assert found("") == [0, 1, 2] == found("e")
    assert found("relu") == [0, 2] == found("op:RELU")
    assert found("op:relu name:enc") == [0]
    assert found("!op:relu") == [1]
    assert found("enc !cast") == [0]
    assert found('"relu one"') == [0]
    assert found("dtype:float16") == [1]
    assert found("ÜBER") == [2]
    assert found("name:half") == []
    assert found("half") == [1]
    assert found("op: zzz") == []
    assert found("!") == []
    assert found("a" * 10_000) == []


def big_graph(count: int) -> onnx.ModelProto:
    ops = ["Relu", "Sigmoid", "Tanh", "Neg"]
    tensors = ["x", *[f"/block.{i // 50}/layer.{i // 10}/out_{i}" for i in range(count)]]
    nodes = [
        helper.make_node(ops[i % 4], [tensors[i]], [tensors[i + 1]], name=f"/block.{i // 50}/{ops[i % 4]}_{i}")
        for i in range(count)
    ]
    return model(nodes, ["x"], [tensors[-1]], shape=[4])


def test_thirty_thousand_nodes_are_indexed_quickly(tmp_path: Path) -> None:
    index_of(big_graph(30_000), tmp_path)
    started = cpu_seconds()
    index = GraphIndex.open(tmp_path / "index")
    assert cpu_seconds() - started < 0.1
    best = 9.0
    for query in ("layer.99", "relu", "e", "op:tanh !block.1"):
        started = cpu_seconds()
        assert index.search(query).size
        best = min(best, cpu_seconds() - started)
    assert best < 0.1, "seconds; 2 to 20 ms on an idle machine"
    assert len(reached(29_999, index.parents)) == 29_999


class Context(SimpleNamespace):
    """What the action needs from a job's context."""

    def progress(self, *state: Any) -> None:
        self.states = [*getattr(self, "states", []), state]

    def warn(self, text: str) -> None:
        self.warnings = [*getattr(self, "warnings", []), text]


def test_the_action_builds_once_and_again_when_the_model_changes(tmp_path: Path) -> None:
    path, cache = tmp_path / "m.onnx", tmp_path / "cache"
    path.write_bytes(mlp().SerializeToString())
    context = Context(params={"path": str(path), "cache": str(cache)})
    assert not has_index(index_folder(cache, path))
    first = action_index(context)
    assert first["built"]
    assert context.states[-1][:2] == (5, 5)
    assert index_folder(cache, path) == Path(first["folder"])
    assert has_index(index_folder(cache, path))
    assert not action_index(context)["built"]
    path.touch()
    assert not has_index(index_folder(cache, path)), "a touched file is not known until the action has looked"
    assert action_index(context) == {**first, "built": False}, "the structure is the same"
    path.write_bytes(mlp(layers=5).SerializeToString())
    third = action_index(context)
    assert third["built"]
    assert third["folder"] != first["folder"]
    assert third["n_nodes"] == 10
    index_file = next(Path(third["folder"]).iterdir())
    index_file.write_bytes(index_file.read_bytes()[:200])
    assert action_index(context)["built"], "a damaged index is built anew"


def test_a_model_changed_in_place_with_size_and_time_kept_is_read_anew(tmp_path: Path) -> None:
    path, cache = tmp_path / "m.onnx", tmp_path / "cache"
    path.write_bytes(mlp().SerializeToString())
    action_index(Context(params={"path": str(path), "cache": str(cache)}))
    assert has_index(index_folder(cache, path))
    state, name = path.stat(), mlp().graph.node[0].output[0].encode()
    with path.open("r+b") as file:
        data = file.read()
        file.seek(data.index(name))
        file.write(name[:-1] + b"~")
    while path.stat().st_ctime_ns == state.st_ctime_ns or path.stat().st_mtime_ns != state.st_mtime_ns:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # until the clock has ticked
    assert not has_index(index_folder(cache, path))


def test_copies_of_a_model_have_separate_indexes(tmp_path: Path) -> None:
    folders = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        path = tmp_path / place / "m.onnx"
        path.write_bytes(mlp().SerializeToString())
        folder = action_index(Context(params={"path": str(path), "cache": str(tmp_path / "cache")}))["folder"]
        weight = GraphIndex.open(Path(folder)).weight(GraphIndex.open(Path(folder)).find_tensor("w0"))
        assert weight is not None
        assert weight[0] == str(path)
        folders.append(folder)
    assert len(set(folders)) == 2


@pytest.mark.parametrize("data", [b"", b"LAYERWISE", b"x" * 500, b"LAYERWISE GRAPH 1\n" + b"\xff" * 60])
def test_a_file_that_is_not_an_index_is_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "graph.index").write_bytes(data)
    with pytest.raises(BadFile):
        GraphIndex.open(tmp_path)


def test_failed_inference_is_a_warning(tmp_path: Path) -> None:
    bad = model([helper.make_node("Reshape", ["x"], ["y"], name="r")], ["x"], ["y"], shape=[2])
    bad.graph.value_info.append(helper.make_tensor_value_info("y", FLOAT, [3, 3]))
    bad.opset_import[0].version = 9999
    index = index_of(bad, tmp_path)
    assert index.n_nodes == 1
    assert any("not inferred" in w for w in index.meta["warnings"])

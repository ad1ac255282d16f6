"""Exploded graphs: fed with a graph's own tensors, every region reproduces its tensor bit for bit."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support import models
from support.graphs import feed_for, random_model
from support.heavy import make_heavy

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.surgery.cut.explode import Exploder, Regions
from layerwise._tool.surgery.cut.randomness import Randomness
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.cut.sizes import estimates

SPEC = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", threads=1, options={"arena": False})
Feed = dict[str, Any]


class Exploding:
    """A model on disk, all tensors of its own run, and its exploded parts run on them."""

    def __init__(self, model: onnx.ModelProto, folder: Path, feed: Feed) -> None:
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        self.file = ModelFile(path)
        self.cut = GraphCut(self.file.structure())
        known = estimates(self.cut.model, {name: array.shape for name, array in feed.items()})
        self.made = [name for name in self.cut.maker if not (name in known and known[name].opaque)]
        self.values = {**feed, **self._whole(feed)}

    def _whole(self, feed: Feed) -> Feed:
        if not self.made:
            return {}
        (segment,) = self.cut.segments(self.made, None)
        data = self.cut.build(segment, {name: to_onnx(dtype_name(feed[name])) for name in segment.feeds})
        with open_runner(SPEC, Loadable(data=data, folder=self.file.folder)) as runner:
            return dict(runner.infer({name: feed[name] for name in segment.feeds}).outputs)

    def run(self, cuts: Collection[str], names: list[str], own: Collection[str] = ()) -> Feed:
        """Return the results of the regions between `cuts` for `names`."""
        exploder = Exploder(self.cut, cuts)
        types = {name: to_onnx(dtype_name(self.values[name])) for name in exploder.feeds(names, own)}
        part = exploder.build(names, types, own)
        with open_runner(SPEC, Loadable(data=part.data, folder=self.file.folder)) as runner:
            outputs = runner.infer({name: self.values[name] for name in part.feeds}).outputs
        return {part.gives[name]: array for name, array in outputs.items()}

    def half(self) -> bool:
        """Whether there are FP16 or bfloat16 tensors."""
        return any(dtype_name(array) in ("float16", "bfloat16") for array in self.values.values())

    def check(self, cuts: Collection[str] | None = None, own: Collection[str] = ()) -> None:
        """All tensors are the reference's; absent optional values apart."""
        names = [name for name in self.made if name in self.values]
        found = self.run([n for n in names if cuts is None or n in cuts], names, own)
        assert found.keys() == set(names)
        for name in names:
            assert same(found[name], self.values[name]), name


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind in "OUS":
        return bool(np.array_equal(a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), shuffled=st.booleans(), data=st.data())
def test_every_region_of_any_graph_is_bit_equal(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffled: bool, data: st.DataObject
) -> None:
    exploding = Exploding(random_model(seed, shuffled=shuffled), tmp_path_factory.mktemp("explode"), feed_for(seed))
    cuts = data.draw(st.sets(st.sampled_from(sorted(exploding.made))))
    names = data.draw(st.lists(st.sampled_from(sorted(exploding.made)), min_size=1, unique=True))
    constants = [name for name in cuts if exploding.cut.nodes[exploding.cut.maker[name]].op_type == "Constant"]
    found = exploding.run(cuts, names, own=constants)
    assert {name: same(found[name], exploding.values[name]) for name in names} == dict.fromkeys(names, True)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_regions_read_only_tensors_at_the_cuts(seed: int, data: st.DataObject) -> None:
    cut = GraphCut(random_model(seed))
    cuts = data.draw(st.sets(st.sampled_from(sorted(cut.maker))))
    regions = Regions(cut, cuts)
    for name in cut.maker:
        region = regions.of(name)
        inside = {made for i in region.nodes for made in cut.nodes[i].output}
        assert region.nodes[-1] == cut.maker[name]
        for i in region.nodes[:-1]:
            assert not cuts.issuperset(made for made in cut.nodes[i].output if made)
        for read in {read for i in region.nodes for read in cut.reads[i]}:
            assert (read in region.feeds) + (read in inside - cuts) + (read in cut.initializers) == 1
        assert all(feed in cuts or feed in cut.inputs for feed in region.feeds)


@pytest.mark.parametrize(
    ("model", "feed"),
    [
        (models.if_model(), {"cond": np.array(True), "x": np.arange(4, dtype=np.float32)}),
        (models.if_model(), {"cond": np.array(False), "x": np.arange(4, dtype=np.float32)}),
        (models.loop_model(), {"trips": np.array(5), "x": np.array([1, 2], np.float32)}),
        (models.loop_model(), {"trips": np.array(0), "x": np.array([1, 2], np.float32)}),
        (models.scan_model(), {"state": np.zeros(2, np.float32), "xs": np.ones((3, 2), np.float32)}),
        (models.dynamic_model(), {"x": np.array([[1, -1, 2], [4, 5, 6]], np.float32)}),
        (models.dynamic_model(), {"x": -np.ones((2, 3), np.float32)}),
        (models.string_model(), {"x": np.array(["a", "b"], object)}),
        (models.sequence_model(), {"x": np.ones(2, np.float32)}),
        (models.function_model(), {"x": np.arange(3, dtype=np.float32)}),
        (models.bf16_model(), {"x": np.arange(6).reshape(2, 3).astype(models.helper.tensor_dtype_to_np_dtype(16))}),
        (models.conv_net(), {"image": np.random.default_rng(0).standard_normal((1, 3, 16, 16), np.float32)}),
    ],
)
def test_models_of_every_kind_explode_bit_equal(model: onnx.ModelProto, feed: Feed, tmp_path: Path) -> None:
    exploding = Exploding(model, tmp_path, feed)
    exploding.check()
    exploding.check(cuts=exploding.made[::2])
    exploding.check(cuts=())


def test_onnx_node_tests_explode_bit_equal(tmp_path: Path) -> None:
    """Expanded functions, optionals, sequences, LSTM, Q/DQ and all else onnxruntime supports, a case each."""
    taken = set[str]()
    for case in models.node_cases().values():
        kinds = " ".join(sorted({node.op_type for node in case.model.graph.node}))
        if kinds in taken:
            continue
        feed = {name: value for name, value in case.feed.items() if isinstance(value, np.ndarray)}
        nodes = case.model.graph.node
        if len(feed) < len(case.feed) or any(map(Randomness(GraphCut(case.model)).draws, nodes)):
            continue
        try:
            exploding = Exploding(case.model, tmp_path, feed)
        except LayerwiseError:  # not an operator of onnxruntime's CPU provider
            continue
        if not exploding.made:  # all sequences and optionals
            continue
        if len(nodes) > 1 and exploding.half():  # the CPU provider rounds to FP16 only where FP16 nodes end
            continue
        exploding.check()
        taken.add(kinds)
    assert len(taken) > 120


def test_a_real_network_explodes_with_its_weights_in_the_file(tmp_path: Path) -> None:
    model = onnx.load(make_heavy(tmp_path, "squeezenet"))
    name = model.graph.input[0].name
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    exploding = Exploding(model, tmp_path, {name: image})
    exploding.check()
    exploder = Exploder(exploding.cut, exploding.made)
    part = exploder.build(exploding.made, dict.fromkeys(exploder.feeds(exploding.made), 1))
    assert len(part.data) < 100_000 < exploding.file.size


def one_body_deep(outer: list[onnx.NodeProto], inner: list[onnx.NodeProto]) -> onnx.ModelProto:
    """x -> the outer nodes, then an If whose body is `inner`, giving y."""
    body = helper.make_graph(inner, "body", [], [onnx.ValueInfoProto(name=inner[-1].output[0])])
    choose = helper.make_node("If", ["yes"], ["y"], name="choose", then_branch=body, else_branch=body)
    graph = helper.make_graph(
        [*outer, choose],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(True), "yes")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_generated_names_do_not_clash_with_names_in_bodies(tmp_path: Path) -> None:
    outer = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["b"])]
    inner = [
        helper.make_node("Add", ["a", "b"], ["a__local"]),
        helper.make_node("Mul", ["a__local", "b"], ["b__local"]),
        helper.make_node("Sub", ["b__local", "a"], ["y__local"]),
    ]
    exploding = Exploding(one_body_deep(outer, inner), tmp_path, {"x": np.arange(4, dtype=np.float32)})
    exploding.check()


def test_nested_bodies_with_captures_and_shadowed_names_explode(tmp_path: Path) -> None:
    deepest = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["deep"])], "deepest", [], [onnx.ValueInfoProto(name="deep")]
    )
    outer = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])]
    inner = [
        helper.make_node("If", ["yes"], ["c"], then_branch=deepest, else_branch=deepest),
        helper.make_node("Mul", ["c", "x"], ["d"]),
    ]
    Exploding(one_body_deep(outer, inner), tmp_path, {"x": np.arange(4, dtype=np.float32)}).check()


def small(nodes: list[onnx.NodeProto], outputs: list[str], weights: Feed, ir: int = 8) -> onnx.ModelProto:
    """A model of x float32 [2, 8]; before IR 4 its weights are inputs too."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    if ir < 4:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], tensors)
    return helper.make_model(graph, ir_version=ir, opset_imports=[helper.make_opsetid("", 13)])


X = {"x": np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)}


def test_special_graph_forms_explode_bit_equal(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "a"], ["b"]),
        helper.make_node("Slice", ["b", "zero", "zero"], ["none"]),
        helper.make_node("Concat", ["none", "b"], ["c"], axis=0),
        helper.make_node("Split", ["c"], ["p", "q"], axis=1),
        helper.make_node("Sub", ["p", "q"], ["d"]),
    ]
    weights = {"w": np.ones(8, np.float32), "zero": np.zeros(1, np.int64)}
    for ir in (3, 8):
        exploding = Exploding(small(nodes, ["d", "x", "w", "a"], weights, ir), tmp_path, X)
        assert exploding.values["none"].shape == (0, 8)
        exploding.check()


def test_a_wrong_constant_is_blamed_instead_of_its_readers(tmp_path: Path) -> None:
    def model(value: float) -> onnx.ModelProto:
        constant = numpy_helper.from_array(np.full((8, 3), value, np.float32))
        nodes = [
            helper.make_node("Constant", [], ["k"], value=constant),
            helper.make_node("MatMul", ["x", "k"], ["y"]),
        ]
        return small(nodes, ["y"], {})

    (tmp_path / "good").mkdir()
    good, bad = Exploding(model(2.0), tmp_path / "good", X), Exploding(model(3.0), tmp_path, X)
    good.check(own=["k"])
    bad.values = good.values
    found = bad.run(bad.made, ["k", "y"])
    assert float(found["k"][0, 0]) == 3.0 and np.allclose(found["y"], good.values["y"])
    assert np.allclose(bad.run(bad.made, ["y"], own=["k"])["y"], 1.5 * good.values["y"])


def test_random_nodes_are_recognised_at_any_depth() -> None:
    inner = helper.make_function(
        "local", "Draws", ["x"], ["y"], [helper.make_node("RandomNormalLike", ["x"], ["y"])], []
    )
    outer = helper.make_function("local", "Calls", ["x"], ["y"], [helper.make_node("Draws", ["x"], ["y"])], [])
    draw = helper.make_node("RandomNormal", [], ["r"], shape=[2])
    body = helper.make_graph([draw], "body", [], [onnx.ValueInfoProto(name="r")])
    nodes = [
        (True, draw),
        (True, helper.make_node("If", ["train"], ["i"], then_branch=body, else_branch=body)),
        (True, helper.make_node("Calls", ["x"], ["c"], domain="local")),
        (True, helper.make_node("Dropout", ["x", "", "train"], ["d3"])),
        (False, helper.make_node("Dropout", ["x", "", "off"], ["d2"])),
        (False, helper.make_node("Dropout", ["x"], ["d1"])),
        (False, helper.make_node("Relu", ["x"], ["y"])),
    ]
    weights = {"off": np.array(False), "train": np.array(True)}
    model = small([node for _, node in nodes], ["y"], weights)
    model.functions.extend([outer, inner])
    randomness = Randomness(GraphCut(model))
    assert randomness.functions == {"Calls", "Draws"}
    assert [randomness.draws(node) for _, node in nodes] == [expected for expected, _ in nodes]

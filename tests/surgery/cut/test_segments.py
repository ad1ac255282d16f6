"""Segments of a model, run one after the other, are bit-equal to the whole model."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.graphs import feed_for, random_model, run_whole

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.surgery.cut.segments import GraphCut, Segment
from layerwise._tool.surgery.cut.sizes import estimates

SPEC = RunnerSpec(kind="onnxrt", graph_optimization_level="disable", threads=1, options={"arena": False})


def streamed(cut: GraphCut, plan: list[Segment], folder: Path, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run all segments, feeding each only its feeds."""
    made = dict(feed)
    for segment in plan:
        data = cut.build(segment, {name: to_onnx(dtype_name(made[name])) for name in segment.feeds})
        with open_runner(SPEC, Loadable(data=data, folder=folder)) as runner:
            made |= runner.infer({name: made[name] for name in segment.feeds}).outputs
    return made


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), shuffled=st.booleans(), data=st.data())
def test_any_cut_of_any_graph_is_bit_equal(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffled: bool, data: st.DataObject
) -> None:
    model = random_model(seed, shuffled=shuffled)
    path = tmp_path_factory.mktemp("cut") / "model.onnx"
    onnx.save(model, path)
    cut = GraphCut(ModelFile(path).structure())
    wanted = data.draw(st.sets(st.sampled_from(sorted(cut.maker)), min_size=1)) | set(cut.outputs)
    limit = data.draw(st.sampled_from([None, 0, 100, 300, 5000]))
    feed = feed_for(seed)
    known = estimates(cut.model, {name: array.shape for name, array in feed.items()})
    plan = cut.segments(wanted, limit, known)
    nodes = [i for segment in plan for i in segment.nodes]
    assert nodes == cut.needed(wanted)
    names = sorted(wanted)
    expected = run_whole(onnx.load(path) if not shuffled else sorted_copy(model, cut), names, feed)
    given_out = streamed(cut, plan, path.parent, feed)
    for name in names:
        assert given_out[name].tobytes() == expected[name].tobytes()


def sorted_copy(model: onnx.ModelProto, cut: GraphCut) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(cut.nodes)
    return copy


def test_a_segment_feeds_and_outputs_only_live_tensors(tmp_path: Path) -> None:
    onnx.save(random_model(3), tmp_path / "model.onnx")
    cut = GraphCut(ModelFile(tmp_path / "model.onnx").structure())
    plan = cut.segments(cut.outputs, 0)
    later: set[str] = set()
    for segment in reversed(plan):
        assert set(segment.gives) <= later | set(cut.outputs)
        later |= set(segment.feeds)


def test_weights_stay_in_the_model_file(tmp_path: Path) -> None:
    onnx.save(random_model(1), tmp_path / "model.onnx")
    cut = GraphCut(ModelFile(tmp_path / "model.onnx").structure())
    part = onnx.ModelProto.FromString(cut.build(cut.segments(["wide"], None)[-1], {"x": 1, "y": 1}))
    big = next(tensor for tensor in part.graph.initializer if tensor.name == "big")
    assert big.data_location == TensorProto.EXTERNAL and not big.raw_data


def test_sequences_never_cross_a_cut(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "y"], ["seq"]),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ConcatFromSequence", ["seq"], ["joined"], axis=0),
        helper.make_node("Add", ["r", "y"], ["sum"]),
    ]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in ("x", "y")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("joined", "sum")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.save(model, tmp_path / "model.onnx")
    cut = GraphCut(ModelFile(tmp_path / "model.onnx").structure())
    plan = cut.segments(["joined", "r", "sum"], 0, estimates(cut.model, {}))
    assert all("seq" not in segment.feeds for segment in plan) and len(plan) > 1
    feed = feed_for(0)
    assert streamed(cut, plan, tmp_path, feed)["joined"].shape == (8, 4)


def test_invalid_requests_are_reported(tmp_path: Path) -> None:
    cut = GraphCut(random_model(2))
    with pytest.raises(UsageError, match="makes no tensor 'nowhere'"):
        cut.segments(["nowhere"], None)
    loop = [helper.make_node("Relu", ["b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(LayerwiseError, match="cycle through node 'first'"):
        GraphCut(helper.make_model(helper.make_graph(loop, "g", [], [])))

"""The demo pair has exactly the documented problems, measured node by node with the reference evaluator."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.reference.evaluate import Evaluation
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.surgery.demo import TROUBLE, DemoPaths, demo_feed, demo_model, make_demo
from layerwise._tool.surgery.precision.nodes import convert_precision

HEALTHY = 5e-3


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> DemoPaths:
    return make_demo(tmp_path_factory.mktemp("demo") / "made")


class Local(NamedTuple):
    """FP16 error of one node that reads the reference's tensors, rounded to FP16."""

    error: float
    finite_inputs: bool
    finite: bool


@pytest.fixture(scope="module")
def local_errors() -> dict[str, Local]:
    model = demo_model()
    tensors = [node.output[0] for node in model.graph.node]
    reference = Evaluation(model, None).run(demo_feed(), tensors) | demo_feed()
    reference |= {weight.name: numpy_helper.to_array(weight) for weight in model.graph.initializer}
    return {node.name: _local(node, reference) for node in model.graph.node}


def _local(node: onnx.NodeProto, reference: dict[str, np.ndarray]) -> Local:
    with np.errstate(all="ignore"):
        feed = {n: _half(reference[n]) for n in node.input}
        infos = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feed.items()
        ]
        result = onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT16, None)
        graph = onnx.helper.make_graph([node], "one", infos, [result])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
        got = ReferenceEvaluator(model).run(None, feed)[0].astype(np.float64)
        want = reference[node.output[0]].astype(np.float64)
        error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
    return Local(error, all(np.isfinite(array).all() for array in feed.values()), bool(np.isfinite(got).all()))


def _half(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16) if array.dtype == np.float32 else array


def test_the_demo_is_small_and_reproducible(paths: DemoPaths, tmp_path: Path) -> None:
    again = make_demo(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert sum(path.stat().st_size for path in paths) < 20_000_000


@pytest.mark.parametrize("which", ["fp32", "fp16"])
def test_the_demo_models_are_valid(paths: DemoPaths, which: str) -> None:
    onnx.checker.check_model(str(getattr(paths, which)), full_check=True)


def test_exactly_the_documented_nodes_overflow(local_errors: dict[str, Local]) -> None:
    born = {name for name, local in local_errors.items() if local.finite_inputs and not local.finite}
    assert born == {name for name, kind in TROUBLE.items() if kind == "overflow"}


def test_exactly_the_documented_nodes_lose_accuracy(local_errors: dict[str, Local]) -> None:
    leaps = {name for name, local in local_errors.items() if local.finite and local.error > HEALTHY}
    assert leaps == {name for name, kind in TROUBLE.items() if kind == "leap"}
    (softmax,) = leaps
    assert local_errors[softmax].error > 0.05
    assert np.median([local.error for local in local_errors.values()]) < 5e-4


def test_the_reference_is_finite_and_the_fp16_output_is_wrong(paths: DemoPaths) -> None:
    found = {}
    for path in (paths.fp32, paths.fp16):
        with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
            (feed,) = make_feeds(FeedSpec(files=[str(paths.inputs)]), runner.inputs, pytest.fail)
            found[path] = runner.infer(feed).outputs["logits"]
    good, bad = found[paths.fp32], found[paths.fp16]
    assert np.isfinite(good).all() and np.isfinite(bad).all()
    assert np.linalg.norm(good - bad) > 0.5 * np.linalg.norm(good)


def test_onnxruntime_shows_what_true_fp16_does_layer_by_layer(paths: DemoPaths) -> None:
    model = demo_model()
    names = [node.output[0] for node in model.graph.node]
    true = Evaluation(convert_precision(model, "float16"), None).run(demo_feed(), names)
    emulated = onnx.load(paths.fp16)
    del emulated.graph.output[:]
    emulated.graph.output.extend(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names)
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=emulated.SerializeToString())) as runner:
        shown = runner.infer(demo_feed()).outputs
    for name in names:
        want = true[name].astype(np.float64)
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(shown[name]), finite, err_msg=name)
        error = np.linalg.norm(shown[name][finite] - want[finite])
        assert error <= 0.05 * np.linalg.norm(want[finite]), name

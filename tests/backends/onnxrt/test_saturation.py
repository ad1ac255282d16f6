"""Products of uint8 and int8 on this CPU: what the probe tells of them, and runners that are exact on every CPU."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.onnxrt.saturation import SETTING, may_saturate, precise, saturates
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

CPU = RunnerSpec(kind="onnxrt", threads=1)
UNFUSED = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable")


@dataclass
class Product:
    """A model, what it is fed with, and what it gives."""

    model: onnx.ModelProto
    a: np.ndarray
    exact: np.ndarray

    def is_exact(self, spec: RunnerSpec) -> bool:
        with open_runner(spec, Loadable(data=self.model.SerializeToString())) as runner:
            return bool(np.array_equal(runner.infer({"a": self.a}).outputs["y"], self.exact))


@pytest.fixture(scope="module")
def product() -> Product:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 256, (16, 32)).astype(np.uint8), random.integers(-128, 128, (32, 32)).astype(np.int8)
    ends = [helper.make_tensor_value_info("a", TensorProto.UINT8, [16, 32]),
            helper.make_tensor_value_info("y", TensorProto.INT32, [16, 32])]  # fmt: skip
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(b, "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Product(model, a, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("spec", [CPU, UNFUSED])
def test_the_probe_tells_whether_products_are_exact_and_precise_runners_always_are(
    spec: RunnerSpec, product: Product
) -> None:
    assert product.is_exact(spec) is not saturates()
    assert product.is_exact(precise(spec))
    assert may_saturate(spec) is saturates() and not may_saturate(precise(spec))


def test_the_setting_does_nothing_for_a_graph_that_is_not_optimised(product: Product) -> None:
    spec = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable",
                      options={"session_config": {SETTING: "1"}})  # fmt: skip
    assert may_saturate(spec) is saturates() is not product.is_exact(spec)


def test_what_runs_elsewhere_is_not_asked_about() -> None:
    assert not may_saturate(RunnerSpec(kind="reference"))

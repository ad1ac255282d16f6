"""Products of uint8 and int8 on this CPU: what the probe tells of them, and runners that are exact on every CPU."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.onnxrt.saturation import SETTING, may_saturate, precise, saturates, way_of
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


@pytest.fixture(scope="module", params=[2, 4], ids=["no zero points", "zero points"])
def product(request: pytest.FixtureRequest) -> Product:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 256, (16, 32)).astype(np.uint8), random.integers(-128, 128, (32, 32)).astype(np.int8)
    ends = [helper.make_tensor_value_info("a", TensorProto.UINT8, [16, 32]),
            helper.make_tensor_value_info("y", TensorProto.INT32, [16, 32])]  # fmt: skip
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"][: request.param], ["y"])
    held = {"b": b, "za": np.array(0, np.uint8), "zb": np.array(0, np.int8)}
    weights = [numpy_helper.from_array(held[name], name) for name in node.input[1:]]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Product(model, a, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("spec", [CPU, UNFUSED])
def test_the_probe_tells_whether_products_are_exact_and_precise_runners_always_are(
    spec: RunnerSpec, product: Product
) -> None:
    assert product.is_exact(spec) is not saturates()
    exact = precise(spec, product.model)
    assert product.is_exact(exact)
    assert may_saturate(spec) is saturates() and not may_saturate(exact)


def test_the_setting_does_nothing_for_a_graph_that_is_not_optimised(product: Product) -> None:
    spec = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable",
                      session_config={SETTING: "1"})  # fmt: skip
    assert may_saturate(spec) is saturates() is not product.is_exact(spec)


def test_what_runs_elsewhere_is_not_asked_about() -> None:
    assert not may_saturate(RunnerSpec(kind="reference"))


BODY = """If (c) <then_branch = t () => (int32[1,1] p) { p = PRODUCT },
                else_branch = e () => (int32[1,1] q) { q = PRODUCT }>"""
FUNCTION = '<domain: "own", opset_import: ["": 17]> f (a, b) => (y) { y = MatMulInteger(a, b) }'
MODELS = {
    "missing": ("y = MatMulInteger(a, b)", "", "reference"),
    "of the other factor alone": ("y = MatMulInteger(a, b, za)", "", "reference"),
    "there": ("y = MatMulInteger(a, b, za, zb)", "", "onnxrt"),
    "of the weight alone": ('y = MatMulInteger(a, b, "", zb)', "", "onnxrt"),
    "of a dequantised weight": ("f = DequantizeLinear(b, s) y = Cast<to=6>(f)", "", "reference"),
    "in a body": (f"y = {BODY.replace('PRODUCT', 'MatMulInteger(a, b)')}", "", "reference"),
    "there, in a body": (f"y = {BODY.replace('PRODUCT', 'MatMulInteger(a, b, za, zb)')}", "", "onnxrt"),
    "in a function": ("y = own.f(a, b)", FUNCTION, "reference"),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_onnxruntime_before_1_30_gets_the_setting_where_all_weights_have_zero_points(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, function, kind = MODELS[name]
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (bool c, uint8[1,2] a, uint8 za) => (int32[1,1] y) <int8[2,1] b = {{1, 2}}, int8 zb = {{0}}, float s = {{1}}>
        {{ {body} }} {function}""")
    for version, expected in (("1.29.1", kind), ("1.30.0", "onnxrt")):
        monkeypatch.setattr("onnxruntime.__version__", version)
        found = precise(CPU, model)
        assert (found.kind, way_of(found) == f"{SETTING}=1") == (expected, expected == "onnxrt")

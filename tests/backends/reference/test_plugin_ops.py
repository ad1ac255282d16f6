"""CPU references of TensorRT plugins, compared with ONNX's operators, Polygraphy and the plugins' documentation."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support import models

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.reference.plugin_ops import PLUGINS
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((2, 6, 4, 4)).astype(np.float32)
C6 = RANDOM.standard_normal(6).astype(np.float32)
B6 = RANDOM.standard_normal(6).astype(np.float32)


def node_model(op: str, inputs: dict[str, np.ndarray], domain: str = "", **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(op, list(inputs), ["y"], f"the {op}", domain=domain, **attributes)
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in inputs.items()],
        [helper.make_tensor_value_info("y", next(iter(types.values()), TensorProto.FLOAT), None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def plugin(op: str, inputs: dict[str, np.ndarray], domain: str = "trt.plugins", **attributes: Any) -> np.ndarray:
    model = node_model(op, inputs, domain, **attributes)
    with open_runner(RunnerSpec(kind="pluginref"), Loadable(data=model.SerializeToString())) as runner:
        return runner.infer(inputs).outputs["y"]


def onnx_op(op: str, inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    result: np.ndarray = ReferenceEvaluator(node_model(op, inputs, **attributes)).run(None, inputs)[0]
    return result


def close(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_instance_normalization_equals_onnx() -> None:
    want = onnx_op("InstanceNormalization", {"x": X, "s": C6, "b": B6}, epsilon=1e-3)
    close(plugin("InstanceNormalization_TRT", {"x": X, "s": C6, "b": B6}, epsilon=1e-3), want)
    close(plugin("InstanceNormalization_TRT", {"x": X}, epsilon=1e-3, scales=C6.tolist(), bias=B6.tolist()), want)
    fused = plugin("InstanceNormalization_TRT", {"x": X, "s": C6, "b": B6}, epsilon=1e-3, relu=1, alpha=0.5)
    close(fused, np.where(want < 0, want * np.float32(0.5), want))


@pytest.mark.parametrize("op", ["Identity", "InstanceNormalization", "MeanVarianceNormalization"])
def test_polygraphys_plugins_equal_polygraphys_results(op: str) -> None:
    polygraphy = pytest.importorskip("polygraphy.backend.pluginref")
    from polygraphy.backend.onnx import gs_from_onnx

    inputs = {"x": X} | ({"s": C6, "b": B6} if op == "InstanceNormalization" else {})
    with polygraphy.PluginRefRunner(gs_from_onnx(node_model(op, inputs))) as runner:
        want = runner.infer(inputs)["y"]
    close(plugin(op, inputs, domain=""), want)


def test_group_and_layer_normalization_equal_onnx() -> None:
    flat = onnx_op("InstanceNormalization", {"x": X.reshape(2, 3, -1), "s": np.ones(3, "f"), "b": np.zeros(3, "f")})
    want = flat.reshape(X.shape) * C6[:, None, None] + B6[:, None, None]
    close(plugin("GroupNormalizationPlugin", {"x": X, "s": C6, "b": B6}, num_groups=3), want)
    row = X[:, 0]
    gamma, beta = C6[:4], B6[:4]
    want = onnx_op("LayerNormalization", {"x": row, "g": gamma, "b": beta})
    close(plugin("LayerNorm", {"x": row, "g": gamma, "b": beta}), want)


@pytest.mark.parametrize(("version", "shape"), [("1", (3, 2, 6, 1, 1)), ("3", (1, 6, 5, 1))])
def test_skip_layer_normalization(version: str, shape: tuple[int, ...]) -> None:
    x, skip = RANDOM.standard_normal((2, *shape)).astype(np.float32)
    axis = 2 if version == "1" else 1
    gamma, beta = (helper.make_tensor(n, 1, [1, 1, 6], v) for n, v in (("gamma", C6), ("beta", B6)))
    got = plugin(
        "CustomSkipLayerNormPluginDynamic", {"x": x, "s": skip}, gamma=gamma, beta=beta, plugin_version=version
    )
    moved = np.moveaxis(x + skip, axis, -1)
    want = onnx_op("LayerNormalization", {"x": np.ascontiguousarray(moved), "g": C6, "b": B6})
    close(got, np.moveaxis(want, -1, axis))


def test_activations() -> None:
    rows = RANDOM.standard_normal((2, 3, 6)).astype(np.float32)
    inner = np.sqrt(2 / np.pi) * ((rows + C6) + 0.044715 * (rows + C6) ** 3)
    close(
        plugin("CustomGeluPluginDynamic", {"x": rows}, bias=helper.make_tensor("bias", 1, [1, 1, 6], C6)),
        (0.5 * (rows + C6) * (1 + np.tanh(inner))).astype(np.float32),
    )
    close(plugin("LReLU_TRT", {"x": X}, negSlope=0.25), onnx_op("LeakyRelu", {"x": X}, alpha=0.25))
    close(plugin("Mish_TRT", {"x": X}), (X * np.tanh(np.log1p(np.exp(X)))).astype(np.float32))
    close(plugin("Clip_TRT", {"x": X}, clipMin=-0.5, clipMax=0.25), np.clip(X, np.float32(-0.5), np.float32(0.25)))
    half = X.astype(np.float16)
    assert plugin("Mish_TRT", {"x": half}).dtype == np.float16


@pytest.mark.parametrize(("across", "axes"), [(0, (1,)), (1, (1, 2, 3))])
def test_l2_normalization(across: int, axes: tuple[int, ...]) -> None:
    norm = np.sqrt((X**2).sum(axes, keepdims=True))
    weights = helper.make_tensor("weights", 1, [6], C6)
    got = plugin("Normalize_TRT", {"x": X}, acrossSpatial=across, channelShared=0, eps=1e-10, weights=weights)
    close(got, X / norm * C6[:, None, None])


def test_reorg_equals_its_readme() -> None:
    x = np.arange(2 * 4 * 36, dtype=np.float32).reshape(2, 4, 6, 6)
    y = plugin("Reorg_TRT", {"x": x}, stride=2)
    assert y.shape == (2, 16, 3, 3)
    assert y[0, 0].tolist() == [[0, 2, 4], [6, 8, 10], [24, 26, 28]]
    assert y[0, 5].tolist() == [[31, 33, 35], [49, 51, 53], [55, 57, 59]]
    assert y[1, 15].tolist() == [[259, 261, 263], [277, 279, 281], [283, 285, 287]]


def test_coordinate_channels_equal_their_readme() -> None:
    y = plugin("CoordConvAC", {"x": np.zeros((1, 1, 5, 5), np.float32)})
    assert y.shape == (1, 3, 5, 5)
    assert y[0, 1, :, 0].tolist() == y[0, 2, 0].tolist() == [-1, -0.5, 0, 0.5, 1]


def test_resize_nearest() -> None:
    np.testing.assert_array_equal(plugin("ResizeNearest_TRT", {"x": X}, scale=2.0), X.repeat(2, 2).repeat(2, 3))


def test_plugins_and_onnx_operators_run_in_one_graph() -> None:
    model = models.from_text("g (float[2,6,4,4] x) => (float[2,6,4,4] y) { a = Neg(x)\n b = Mish_TRT(a)\n y = Abs(b) }")
    with open_runner(RunnerSpec(kind="pluginref"), Loadable(data=model.SerializeToString())) as runner:
        y = runner.infer({"x": X}).outputs["y"]
    close(y, np.abs(plugin("Mish_TRT", {"x": -X})))


def test_operators_without_a_reference_are_named() -> None:
    with pytest.raises(
        LayerwiseError, match=r"no CPU reference for EfficientNMS_TRT; plugins that have one: .*Mish_TRT"
    ):
        plugin("EfficientNMS_TRT", {"x": X})
    with pytest.raises(LayerwiseError, match=r"node 'the Reorg_TRT' .* a stride of 3 does not fit"):
        plugin("Reorg_TRT", {"x": X}, stride=3)
    with pytest.raises(LayerwiseError, match="lacks its parameter 'scales'"):
        plugin("InstanceNormalization_TRT", {"x": X})


def test_every_plugin_is_documented() -> None:
    assert all(function.__doc__ for function in PLUGINS.values())

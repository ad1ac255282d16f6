"""The onnxruntime runner on CUDA; skipped where CUDA does not load."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from support import models

from layerwise._tool.backends.errors import MissingDependency
from layerwise._tool.backends.installed import doubled
from layerwise._tool.backends.onnxrt.runner import optimized_model
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec


def opened(model: onnx.ModelProto, **options: object) -> Runner:
    return open_runner(cuda_spec(**options), Loadable(data=model.SerializeToString()))


def cuda_spec(**options: object) -> RunnerSpec:
    return RunnerSpec(kind="onnxrt", providers=["cuda"], **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def cuda() -> None:
    try:
        opened(models.mlp(width=4)).close()
    except MissingDependency as error:
        pytest.skip(str(error))


def test_cuda_is_close_to_the_cpu_without_fallbacks() -> None:
    feed = {"image": np.random.default_rng(0).random((1, 3, 16, 16), np.float32)}
    with opened(models.conv_net(), tf32=False) as runner:
        got = runner.infer(feed).outputs["scores"]
        assert runner.fallbacks() == []
        assert runner.notes() == list(filter(None, [doubled()]))  # a machine may have two onnxruntimes
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=models.conv_net().SerializeToString())) as runner:
        np.testing.assert_allclose(got, runner.infer(feed).outputs["scores"], rtol=1e-4, atol=1e-5)


def test_a_node_without_a_cuda_kernel_is_listed() -> None:
    model = models.from_text(
        "g (float[2,2] x) => (float y) { [on_gpu] s = Add(x, x)\n [on_cpu] y = Det(s) }",
    )
    with opened(model) as runner:
        assert runner.infer({"x": np.eye(2, dtype=np.float32)}).outputs["y"] == 4
        (fallen,) = runner.fallbacks()
    assert fallen == "on_cpu (Det) on CPU"


def test_bfloat16_keeps_its_bits() -> None:
    x = np.array([[0, 1, -2], [0.5, 3e38, -0.25]]).astype(ml_dtypes.bfloat16)
    with opened(models.bf16_model()) as runner:
        outputs = runner.infer({"x": x}).outputs
    assert outputs["y"].tobytes() == x.tobytes()
    assert outputs["z"].tolist() == x.astype(np.float32).tolist()


def test_tf32_can_be_switched_on_and_off() -> None:
    random = np.random.default_rng(1)
    x = {"x": random.standard_normal((64, 512)).astype(np.float32)}
    model = models.mlp(width=512, layers=1)
    with opened(model, tf32=True) as runner:
        fast = runner.infer(x).outputs["y"]
    with opened(model, tf32=False) as runner:
        exact = runner.infer(x).outputs["y"]
    with open_runner(RunnerSpec(kind="reference"), Loadable(data=model.SerializeToString())) as runner:
        want = runner.infer(x).outputs["y"]
    assert np.abs(exact - want).max() < 5e-5
    assert np.abs(fast - want).max() > 1e-4


def test_the_optimised_graph_is_bit_equal(tmp_path: Path) -> None:
    model = Loadable(data=models.conv_net(channels=32, size=32).SerializeToString())
    feed = {"image": np.random.default_rng(0).random((1, 3, 32, 32), np.float32)}
    with open_runner(cuda_spec(), model) as runner:
        want = runner.infer(feed).outputs["scores"]
    dumped = optimized_model(cuda_spec(), model, tmp_path / "optimised.onnx")
    with open_runner(cuda_spec(graph_optimization_level="disable"), dumped) as runner:
        np.testing.assert_array_equal(runner.infer(feed).outputs["scores"], want)

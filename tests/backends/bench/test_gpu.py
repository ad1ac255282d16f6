"""Benchmarks on CUDA; tests that need CUDA are skipped where it does not load."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support import models

from layerwise._tool.backends.bench.loop import BenchPlan, measure
from layerwise._tool.backends.bench.onnxrt import output_shapes
from layerwise._tool.backends.bench.onnxrt_profile import read_profile
from layerwise._tool.backends.bench.timed import Setup, open_subject
from layerwise._tool.backends.errors import MissingDependency, UsageError
from layerwise._tool.backends.onnxrt.session import open_session
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

MODEL = Loadable(data=models.conv_net().SerializeToString())
FEED = {"image": np.random.default_rng(0).random((1, 3, 16, 16), np.float32)}
CUDA = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False)


def test_graph_output_shapes_are_declared_or_measured_by_a_run() -> None:
    spec = RunnerSpec(kind="onnxrt")
    dynamic = Loadable(data=models.dynamic_model().SerializeToString())
    feed = {"x": np.array([[1, -1, 2], [3, 4, 5]], np.float32)}
    found = [
        output_shapes(open_session(spec, MODEL), spec, MODEL, {}),
        output_shapes(open_session(spec, dynamic), spec, dynamic, feed),
    ]
    assert {name: tuple(shape) for name, shape in found[0].items()} == {"scores": (1, 4)}
    assert found[1] == {"y": (2, 2)}


@pytest.fixture(scope="module")
def cuda() -> None:
    try:
        open_runner(CUDA, MODEL).close()
    except MissingDependency as error:
        pytest.skip(str(error))


def timed(setup: Setup, streams: int = 1) -> tuple[tuple[str, ...], list[Mapping[str, Any]], list[Any]]:
    """Phases, the outputs of each stream, and the timings of the first."""
    subject = open_subject(CUDA, MODEL, setup, "cuda")
    running = subject.streams(FEED, streams)
    found = measure(running, BenchPlan(warm_up=0, duration=0, iterations=20))
    outputs = [stream.outputs() for stream in running]
    subject.close()
    return running[0].phases, outputs, found.streams[0]


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("transfers", [True, False])
@pytest.mark.parametrize("cuda_graph", [True, False])
@pytest.mark.parametrize("streams", [1, 3])
def test_every_mode_gives_the_outputs_of_the_cpu(transfers: bool, cuda_graph: bool, streams: int) -> None:
    setup = Setup(transfers, cuda_graph)
    if cuda_graph and streams > 1:
        with pytest.raises(UsageError, match="one stream only"):
            timed(setup, streams)
        return
    phases, outputs, timings = timed(setup, streams)
    assert phases == (("h2d", "compute", "d2h") if transfers else ("compute",))
    for start, end, *lengths in timings:
        assert sum(lengths) == pytest.approx(end - start, abs=1e-9)
    with open_runner(RunnerSpec(kind="onnxrt"), MODEL) as runner:
        wanted = runner.infer(FEED).outputs["scores"]
    for found in outputs:
        np.testing.assert_allclose(found["scores"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("cuda")
def test_layers_ran_on_the_gpu(tmp_path: Path) -> None:
    from layerwise._tool.backends.bench.onnxrt import profiled

    path, graph = profiled(CUDA, MODEL, lambda inputs: FEED, lambda nodes: 10, tmp_path)
    layers = read_profile(path, 3)
    assert graph is not None and {layer.provider for layer in layers} == {"CUDA"}
    assert {layer.name for layer in layers} <= {node.name for node in onnx.load(graph).graph.node}
    assert all(len(layer.runs_ms) == 7 for layer in layers)

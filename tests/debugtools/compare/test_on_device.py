"""Comparisons whose tensors stay where they are made: the same rows as on the host, or the reason why they do not stay.

The kernel is run by the CPU, with onnxruntime's CPU provider for the device; on a GPU by itself where there is one.
"""

import math
from pathlib import Path
from typing import Any, Literal

import msgspec
import onnx
import pytest
from support.comparing import ORT, Compared, run_compare
from support.cuda_emulator import MetricsOnCpu, build
from support.models import conv_net

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.observing.on_device import OnDevice, on_device
from layerwise._tool.debugtools.compare.run import ComparisonRun
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

CUDA = RunnerSpec(kind="onnxrt", providers=["cuda"], tf32=False)
AUTO = ToleranceSpec(auto=True)


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> MetricsOnCpu:
    library = build(tmp_path_factory.mktemp("kernels"))
    if library is None:
        pytest.skip("no C++20 compiler with _Float16 here")
    return MetricsOnCpu(library)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A model, and one whose weights differ a little; integers among their tensors."""
    folder, paths = tmp_path_factory.mktemp("models"), []
    for seed, name in ((0, "a.onnx"), (0, "b.onnx")):
        model = conv_net(seed=seed)
        for weights in model.graph.initializer if name == "b.onnx" else ():
            array = onnx.numpy_helper.to_array(weights)
            if array.dtype.kind == "f":
                weights.CopyFrom(onnx.numpy_helper.from_array(array * array.dtype.type(1.001), weights.name))
        value = model.graph.node[0].output[0]
        model.graph.node.append(onnx.helper.make_node("Shape", [value], ["its_shape"], "shape"))
        onnx.save(model, folder / name)
        paths.append(str(folder / name))
    return paths[0], paths[1]


def compared(models: tuple[str, str], runner: RunnerSpec, **more: Any) -> CompareSpec:
    sides = [msgspec.structs.replace(runner, model=models[1]), runner]
    feeds = FeedSpec(iterations=2)
    return CompareSpec(model=models[0], runners=sides, marks=MarkSpec(everything=True), feeds=feeds, **more)


def assert_same(mine: Compared, other: Compared) -> None:
    assert mine.result["passed"] == other.result["passed"]
    keys = [
        [(row["iteration"], row["tensor"], row["mode"], row["passed"]) for row in done.table()]
        for done in (mine, other)
    ]
    assert sorted(keys[0]) == sorted(keys[1])
    rows = {(row["iteration"], row["tensor"]): row for row in other.table()}
    for row in mine.table():
        same(row, rows[row["iteration"], row["tensor"]])


def same(mine: Any, other: Any) -> None:
    """Equal, numbers to 1e-9: deviations and ratios of the sums lose some of their digits."""
    if isinstance(mine, dict):
        assert mine.keys() == other.keys()
        for key in mine:
            same(mine[key], other[key])
    elif isinstance(mine, list):
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            same(a, b)
    elif isinstance(mine, float) and math.isfinite(mine):
        assert mine == pytest.approx(other, rel=1e-9, abs=1e-9)
    else:
        assert mine == other or (mine != mine and other != other)


@pytest.mark.parametrize(
    ("observe", "tolerance", "figures"),
    [("every", AUTO, False), ("every", AUTO, True), ("executed", ToleranceSpec(), False), ("marked", AUTO, False)],
    ids=["every-auto", "every-figures", "executed-fixed", "marked-auto"],
)
def test_the_rows_are_those_of_the_host(
    observe: Literal["every", "executed", "marked"],
    tolerance: ToleranceSpec,
    figures: bool,
    models: tuple[str, str],
    on_cpu: MetricsOnCpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = ["simple", "l2", "cosine_similarity", "psnr", "snr"]
    plain = msgspec.structs.replace(ORT, graph_optimization_level="extended")  # no CPU's layouts, as on a GPU
    spec = compared(models, plain, observe=observe, tolerance=tolerance, metrics=metrics, figures=figures)
    wanted = run_compare(spec)
    device, there = OnDevice(frozenset((0, 1)), on_cpu, lambda text: None), list[int]()  # type: ignore[arg-type]
    monkeypatch.setattr(ComparisonRun, "_device", lambda run: device)
    monkeypatch.setattr(OnDevice, "free", lambda device: 1 << 30)
    measure = on_cpu.measure
    monkeypatch.setattr(on_cpu, "measure", lambda pairs: there.append(len(pairs)) or measure(pairs))
    done = run_compare(spec)
    assert sum(there) >= 8 and max(there) > 1 and any(row["passed"] is False for row in done.table())
    assert_same(done, wanted)


def test_why_tensors_do_not_stay_is_said(models: tuple[str, str]) -> None:
    told: list[str] = []

    def ask(spec: CompareSpec) -> OnDevice | None:
        setup = Setup(spec)
        return on_device(spec, setup.sides, setup.pairs, told.append)

    assert ask(compared(models, ORT)) is None and not told
    assert ask(compared(models, CUDA, validate=True)) is None
    assert told.pop() == "layers are copied from the GPU and compared on the host: values are validated"
    assert ask(compared(models, CUDA, metrics=["indices"])) is None and "indices needs the values" in told.pop()
    if ask(compared(models, CUDA)) is None:  # no GPU here, or no cuda-python
        assert told[0].startswith("layers are copied from the GPU and compared on the host: ")


def test_without_kernels_tensors_are_compared_on_the_host(
    models: tuple[str, str], on_cpu: MetricsOnCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = compared(models, ORT, tolerance=AUTO)
    wanted, told = run_compare(spec), list[str]()
    device = OnDevice(frozenset((0, 1)), on_cpu, told.append)  # type: ignore[arg-type]

    def refuse() -> None:
        raise LayerwiseError("NVRTC cannot compile the metrics kernel")

    monkeypatch.setattr(on_cpu, "ready", refuse)
    monkeypatch.setattr(ComparisonRun, "_device", lambda run: device)
    monkeypatch.setattr(OnDevice, "free", lambda device: 1 << 30)
    assert_same(run_compare(spec), wanted)
    assert told == ["layers are copied from the GPU and compared on the host: NVRTC cannot compile the metrics kernel"]


@pytest.mark.parametrize("observe", ["every", "executed", "marked"])
def test_on_the_gpu(observe: Literal["every", "executed", "marked"], models: tuple[str, str], tmp_path: Path) -> None:
    try:
        open_runner(CUDA, Loadable(path=Path(models[0]))).close()
    except MissingDependency as error:
        pytest.skip(str(error))
    spec = compared(models, CUDA, observe=observe, tolerance=AUTO)
    done = run_compare(spec)
    wanted = run_compare(msgspec.structs.replace(spec, validate=True))
    assert "layers stay on the GPU and are compared there" in done.texts("log")
    assert any("values are validated" in text for text in wanted.texts("log"))
    assert_same(done, wanted)

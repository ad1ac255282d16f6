"""`layerwise bench` on TensorRT: trtexec's command lines on the fake of both versions, and on the real bindings."""

import json
from pathlib import Path

import onnx
import pytest
from support.bench import chain_pair
from support.cli import layerwise_on_fake
from trt.conftest import ON_10, ON_11

from layerwise._tool.backends.bench.trtexec_files import read_profile, read_times
from layerwise._tool.debugtools.bench.profile_child import ModelNode, Origins

LAYERS = 4
QUICK = ["--warmUp=0", "--duration=0", "--iterations=15"]
BUILD = ["--shapes=x:1x8", "--memPoolSize=workspace:16", "--builderOptimizationLevel=3",
         "--timingCacheFile=timing.cache", "--profilingVerbosity=detailed", "--saveEngine=chain.plan"]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chain_pair(tmp_path, LAYERS)
    return tmp_path


def bench(folder: Path, environment: dict[str, str], *words: str, code: int = 0) -> dict[str, object]:
    done = layerwise_on_fake("bench", *words, *QUICK, "--json", cwd=folder, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@ON_11
def test_trtexec_command_lines_build_save_load_and_time(folder: Path, fake_trt: dict[str, str]) -> None:
    exports = ["--dumpProfile", "--exportProfile=p.json", "--exportLayerInfo=l.json", "--exportTimes=t.json"]
    built = bench(folder, fake_trt, "--onnx=chain.onnx", *BUILD, *exports)
    run = built["runs"][0]  # type: ignore[index]
    assert run["runs"] == 15 and list(run["phases"]) == ["h2d", "enqueue", "compute", "d2h"]
    parts = sum(run["phases"][name]["mean"] for name in ("h2d", "compute", "d2h"))
    assert parts == pytest.approx(run["latency"]["mean"], rel=1e-6)
    times = read_times(folder / "t.json")
    assert set(times.phases) == {"h2d", "compute", "d2h"} and len(times.latency) == 15
    names = [node.name for node in onnx.load(folder / "chain.onnx").graph.node]
    assert [layer.name for layer in read_profile(folder / "p.json")] == names
    assert [row["node"] for row in built["layers"]] == names  # type: ignore[attr-defined]
    assert len(json.loads((folder / "l.json").read_text())["Layers"]) == len(names)
    assert (folder / "timing.cache").stat().st_size and (folder / "chain.plan").stat().st_size
    loaded = bench(folder, fake_trt, "--loadEngine=chain.plan", "--infStreams=2", "--exportOutput=o.json")
    assert loaded["runs"][0]["runs"] == 30  # type: ignore[index]
    on_cpu = bench(folder, fake_trt, "chain.onnx", "--onnxrt", "--exportOutput=cpu.json")
    assert on_cpu["passed"]
    ours, theirs = (json.loads((folder / name).read_text())[0]["values"] for name in ("o.json", "cpu.json"))
    assert ours == pytest.approx(theirs, abs=1e-3)


@ON_10
def test_a_cuda_graph_is_timed_without_copies(folder: Path, fake_trt: dict[str, str]) -> None:
    bench(folder, fake_trt, "--onnx=chain.onnx", *BUILD, "--buildOnly")
    found = bench(folder, fake_trt, "--loadEngine=chain.plan", "--useCudaGraph", "--noDataTransfers", "--dumpProfile")
    assert list(found["runs"][0]["phases"]) == ["enqueue", "compute"]  # type: ignore[index]
    assert len(found["layers"]) == 2 * LAYERS  # type: ignore[arg-type]


@ON_10
def test_tensorrt_and_onnxruntime_alternate(folder: Path, fake_trt: dict[str, str]) -> None:
    found = bench(folder, fake_trt, "chain.onnx", "--trt", "--onnxrt")
    assert [run["runner"] for run in found["runs"]] == ["trt", "onnxrt cpu"]  # type: ignore[attr-defined]
    assert found["comparisons"][0]["verdict"] in ("faster", "slower", "no difference")  # type: ignore[index]


@ON_11
def test_an_error_of_tensorrt_is_one_message(folder: Path, fake_trt: dict[str, str]) -> None:
    (folder / "broken.plan").write_bytes(b"no engine")
    found = bench(folder, fake_trt, "--loadEngine=broken.plan", code=1)
    assert "broken.plan" in found["error"]["summary"]  # type: ignore[index]


def test_every_call_exists_in_the_real_bindings(folder: Path, forwarded_trt: dict[str, str]) -> None:
    found = bench(folder, forwarded_trt, "--onnx=chain.onnx", *BUILD, "--dumpProfile")
    assert len(found["layers"]) == 2 * LAYERS  # type: ignore[arg-type]
    called = Path(forwarded_trt["LAYERWISE_FAKE_TRT_FORWARD_LOG"]).read_text()
    for name in ("get_tensor_address", "execute_async_v3", "create_engine_inspector", "get_engine_information"):
        assert name in called


@pytest.mark.parametrize(
    "layer", ["/layer.1/Tanh", "/layer.1/MatMul + /layer.1/Tanh", "PWN(/layer.1/MatMul, /layer.1/Tanh)",
              "{ForeignNode[/layer.0/MatMul.../layer.1/Tanh]}"],
)  # fmt: skip
def test_a_fused_layer_maps_to_the_last_node_in_its_name(folder: Path, layer: str) -> None:
    origins = Origins(onnx.load(folder / "chain.onnx"))
    assert origins.place(layer, []) == ModelNode("/layer.1/Tanh_output_0", "/layer.1/Tanh", "Tanh")
    assert origins.place("Reformatting CopyNode for Input Tensor 0", []) == ModelNode()
    assert Origins(None).place(layer, []) == ModelNode()


@ON_11
def test_fp32_and_fp16_are_built_saved_and_compared(folder: Path, fake_trt: dict[str, str]) -> None:
    """A typical command.sh: two builds, two timings, and which is faster."""
    for kind in ([], ["--fp16"]):
        name = "fp16" if kind else "fp32"
        build = ["--onnx=chain.onnx", "--shapes=x:1x8", *kind, f"--saveEngine={name}.plan", "--buildOnly"]
        bench(folder, fake_trt, *build)
        bench(folder, fake_trt, f"--loadEngine={name}.plan", "-o", f"result-{name}.json")
    words = ("bench", "result-fp16.json", "--against", "result-fp32.json")
    found = layerwise_on_fake(*words, cwd=folder, env=fake_trt)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "trt against result-fp32.json (trt): " in found.stdout or "% of the median latency" in found.stdout

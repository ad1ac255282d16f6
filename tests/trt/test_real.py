"""To be run with TensorRT and a GPU: `python -m pytest -m trt tests/trt/test_real.py`.

What it verifies: engines built from ONNX agree with onnxruntime in FP32, FP16 and INT8, whole and tensor by tensor;
profiles, shapes that depend on data, tactics, timing caches, refit, weight streaming, CUDA graphs, the inspector and
the parser's errors behave as Layerwise assumes. Elsewhere it runs on the fake, which only tests the suite itself.
"""

import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import Done, layerwise, layerwise_on_fake
from trt.conftest import fake_environment

Go = Callable[..., Done]
LOADER = """
import numpy as np

def load_data():
    for seed in range(4):
        yield {"x": np.random.default_rng(seed).random((2, 3, 16, 16), dtype=np.float32)}
"""


def save(path: Path, nodes: list[onnx.NodeProto], out: onnx.ValueInfoProto, **weights: np.ndarray) -> None:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", given, [out], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("real")
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(size=(8, 3, 3, 3)).astype("f") * 0.2,
        "v": rng.normal(size=(8 * 14 * 14, 64)).astype("f") * 0.02,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Flatten", ["r"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "v"], ["m"], "matmul"),
        helper.make_node("Softmax", ["m"], ["y"], "softmax", axis=-1),
    ]
    save(place / "m.onnx", nodes, helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64]), **weights)
    found = [helper.make_node("NonZero", ["x"], ["y"], "nonzero")]
    save(place / "found.onnx", found, helper.make_tensor_value_info("y", TensorProto.INT64, [4, "k"]))
    unknown = [helper.make_node("NoSuchOperator", ["x"], ["y"], "strange", domain="nowhere")]
    save(place / "unknown.onnx", unknown, helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    (place / "load.py").write_text(LOADER)
    return place


@pytest.fixture(params=[10, 11, pytest.param(0, marks=pytest.mark.trt)], ids=["fake10", "fake11", "real"])
def version(request: pytest.FixtureRequest) -> int:
    """Of the fake; 0 for the real thing."""
    if request.param == 0 and "trt" not in str(request.config.getoption("-m")):
        pytest.skip("needs TensorRT and a GPU: -m trt")
    return int(request.param)


@pytest.fixture
def place(version: int, folder: Path) -> Path:
    place = folder / str(version)
    if not place.exists():
        shutil.copytree(folder, place, ignore=shutil.ignore_patterns("[0-9]*"))
    return place


@pytest.fixture
def go(version: int, place: Path, workspace: Path) -> Go:
    if version:
        return partial(layerwise_on_fake, cwd=place, env={**os.environ, **fake_environment(version)})
    importlib.import_module("tensorrt")
    return partial(layerwise, cwd=place, env=os.environ)


def passed(done: Done) -> Done:
    assert done.returncode == 0, done.stdout + done.stderr
    return done


SHAPES = ("--trt-min-shapes", "x:[1,3,16,16]", "--trt-opt-shapes", "x:[2,3,16,16]", "--trt-max-shapes", "x:[4,3,16,16]")
LARGE = ("--trt-min-shapes", "x:[8,3,16,16]", "--trt-opt-shapes", "x:[8,3,16,16]", "--trt-max-shapes", "x:[8,3,16,16]")
FED = ("--input-shapes", "x:[3,3,16,16]")


def test_an_engine_gives_onnxruntimes_numbers(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "m.engine", *SHAPES))
    passed(go("run", "m.onnx", "--onnxrt", "--trt-engine", "m.engine", *FED, "--atol", "1e-3"))


def test_every_tensor_marked_agrees(go: Go) -> None:
    done = passed(go("run", "m.onnx", "--onnxrt", "--trt", *SHAPES, *FED, "--mark-all", "--atol", "1e-3"))
    assert "5 tensors compared, 0 failed" in done.stdout


@pytest.mark.parametrize(("flags", "tolerance"), [(["--fp16"], "1e-2"), (["--int8", "--data-loader-script"], "1e-1")])
def test_lower_precisions_stay_within_tolerance(go: Go, flags: list[str], tolerance: str) -> None:
    words = [*flags, "load.py"] if "--int8" in flags else flags
    passed(go("run", "m.onnx", "--onnxrt", "--trt", *SHAPES, *words, "--atol", tolerance, "--rtol", tolerance))


def test_each_profile_accepts_its_shapes(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "two.engine", *SHAPES, *LARGE))
    large = ("--input-shapes", "x:[8,3,16,16]")
    passed(go("run", "two.engine", "--trt", "--optimization-profile", "1", *large))
    outside = go("run", "two.engine", "--trt", *large)
    assert outside.returncode == 2 and "does not fit profile 0" in outside.stderr


def test_data_dependent_shapes_are_returned(go: Go) -> None:
    passed(go("run", "found.onnx", "--onnxrt", "--trt", *SHAPES, *FED))


def test_tactics_are_recorded_and_replayed(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "a.engine", *SHAPES, "--save-tactics", "a.json"))
    passed(go("convert", "m.onnx", "-o", "b.engine", *SHAPES, "--load-tactics", "a.json", "--save-tactics", "b.json"))
    passed(go("inspect", "tactics", "b.json"))


def test_a_timing_cache_serves_the_whole_second_build(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "c.engine", *SHAPES, "--save-timing-cache", "t.cache"))
    again = ("--load-timing-cache", "t.cache", "--error-on-timing-cache-miss")
    passed(go("convert", "m.onnx", "-o", "d.engine", *SHAPES, *again))


def test_a_stripped_engine_is_refitted(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "s.engine", *SHAPES, "--strip-plan", "--refittable"))
    passed(go("run", "m.onnx", "--onnxrt", "--trt-engine", "s.engine", *FED, "--atol", "1e-3"))


def test_weight_streaming_gives_the_same_outputs(go: Go) -> None:
    streamed = ("--strongly-typed", "--weight-streaming", "--weight-streaming-budget", "50%")
    passed(go("run", "m.onnx", "--onnxrt", "--trt", *SHAPES, *streamed, *FED, "--atol", "1e-3"))


def test_a_bench_with_cuda_graph_times_layers(go: Go) -> None:
    short = ("--warmUp=0", "--duration=0", "--iterations=10", "--useCudaGraph", "--dumpProfile", "--json")
    done = passed(go("bench", "--onnx=m.onnx", "--shapes=x:2x3x16x16", *SHAPES, "--trt", *short))
    assert {layer["tensor"] for layer in json.loads(done.stdout)["layers"]} >= {"y"}


def test_nodes_rejected_by_the_parser_are_named(go: Go) -> None:
    done = go("convert", "unknown.onnx", "-o", "u.engine")
    assert done.returncode == 1 and "NoSuchOperator" in done.stderr


def test_an_engine_is_inspected(go: Go) -> None:
    passed(go("convert", "m.onnx", "-o", "i.engine", *SHAPES, "--profiling-verbosity", "detailed"))
    told = passed(go("inspect", "model", "i.engine", "--show", "layers", "attrs"))
    assert "x" in told.stdout and "(4, 3, 16, 16)" in told.stdout.replace("[", "(").replace("]", ")")


def test_builds_are_repeated_and_sorted(go: Go, place: Path) -> None:
    check = ("--check", sys.executable, "-c", "raise SystemExit(0)")
    words = ("--until", "2", "--artifacts-dir", "sorted", "--artifacts", "r.json", "--save-tactics", "r.json")
    passed(go("debug", "build", "m.onnx", *SHAPES, *words, *check))
    assert len(list((place / "sorted" / "good").iterdir())) == 2


def test_a_half_precision_engine_is_searched_layer_by_layer(go: Go) -> None:
    strict = ("--atol", "1e-6", "--rtol", "1e-6")
    done = go("debug", "locate", "m.onnx", "--trt", "--fp16", *SHAPES, "--onnxrt", *strict, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert isinstance(json.loads(done.stdout)["suspects"], list)

"""The real Polygraphy works on the fake TensorRT, so it can serve as a reference."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support import models
from support.cli import layerwise
from support.plans import plan_header

SHAPES = ["--trt-min-shapes", "x:[1,16]", "--trt-opt-shapes", "x:[2,16]", "--trt-max-shapes", "x:[4,16]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(models.mlp(), tmp_path / "model.onnx")
    return tmp_path


def polygraphy(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Polygraphy's command line."""
    command = [str(Path(sys.executable).with_name("polygraphy")), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=170, check=False
    )


def test_run_compares_the_fake_with_onnxruntime(folder: Path, polygraphy_trt: dict[str, str]) -> None:
    done = polygraphy(
        folder, polygraphy_trt, "run", "model.onnx", "--trt", "--onnxrt", "--trt-outputs", "mark", "all",
        "--onnx-outputs", "mark", "all", "--input-shapes", "x:[3,16]", "--save-engine", "model.plan", *SHAPES,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed: 1/1 iterations" in done.stdout
    assert (folder / "model.plan").read_bytes().startswith(b"LWFAKEPLAN")


def test_run_finds_an_injected_bad_tactic(folder: Path, polygraphy_trt: dict[str, str]) -> None:
    fault = json.dumps({"bad_tactic": {"layers": ["/fc1/MatMul"], "scale": 1.5}})
    environment = {**polygraphy_trt, "LAYERWISE_FAKE_TRT_FAULTS": fault}
    done = polygraphy(
        folder, environment, "run", "model.onnx", "--trt", "--onnxrt", "--input-shapes", "x:[3,16]", *SHAPES
    )
    assert done.returncode == 1 and "FAILED | Output: 'y'" in done.stdout


def test_inspect_reads_engines_and_networks(folder: Path, polygraphy_trt: dict[str, str]) -> None:
    built = polygraphy(folder, polygraphy_trt, "convert", "model.onnx", "-o", "model.plan", *SHAPES)
    assert built.returncode == 0, built.stdout + built.stderr
    engine = polygraphy(folder, polygraphy_trt, "inspect", "model", "model.plan", "--show", "layers")
    assert "---- 9 Layer(s) ----" in engine.stdout and "/fc2/Relu [Op: Activation]" in engine.stdout
    network = polygraphy(
        folder, polygraphy_trt, "inspect", "model", "model.onnx", "--convert-to", "trt", "--show", "layers", "attrs"
    )
    assert "/fc0/MatMul.op0 = MatrixOperation.NONE" in network.stdout and "._state" not in network.stdout
    assert "/fc1/Add.op = ElementWiseOperation.SUM" in network.stdout


OPTIONS = """--tf32 --sparse-weights --version-compatible --exclude-lean-runtime --refittable --strip-plan --direct-io
--disable-compilation-cache --weight-streaming --strongly-typed --pool-limit tactic_dram:1.5G workspace:1e9
--builder-optimization-level 4 --max-aux-streams 3 --tiling-optimization-level fast --runtime-platform windows_amd64
--hardware-compatibility-level ampere_plus --tactic-sources jit_convolutions --trt-safety-restricted --mark-debug y
--preview-features runtime_activation_resize_10_10 --plugin-instancenorm --onnx-flags enable_plugin_override
--engine-capability safety --trt-outputs-by-type matrix_multiply --trt-exclude-outputs y"""
PROFILES = [*SHAPES, "--trt-min-shapes", "x:[8,16]", "--trt-opt-shapes", "x:[8,16]", "--trt-max-shapes", "x:[9,16]"]
DLA = ["--use-dla", "--allow-gpu-fallback", "--fp16", "--precision-constraints", "obey"]


@pytest.mark.parametrize("options", [[*shlex.split(OPTIONS), *PROFILES], [*DLA, *SHAPES]], ids=["many", "dla"])
def test_the_same_options_give_the_same_config(
    folder: Path, polygraphy_trt: dict[str, str], trt_version: int, options: list[str]
) -> None:
    if trt_version == 11 and "--fp16" in options:
        pytest.skip("TensorRT 11 has no flags for precision, and Polygraphy nothing else")
    environment = {**polygraphy_trt, "LAYERWISE_FAKE_TRT_FAULTS": '{"dla_cores": 1}'}
    theirs = polygraphy(folder, environment, "convert", "model.onnx", "-o", "theirs.plan", *options)
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    ours = layerwise("convert", "model.onnx", "-o", "ours.plan", *options, cwd=folder, env=environment)
    assert ours.returncode == 0, ours.stdout + ours.stderr
    a, b = plan_header(folder / "theirs.plan"), plan_header(folder / "ours.plan")
    known = {"layers", "missing"}
    assert {name: a[name] for name in a if name not in known} == {name: b[name] for name in b if name not in known}
    assert [layer["precision"] for layer in a["layers"]] == [layer["precision"] for layer in b["layers"]]


def test_tactics_are_recorded_and_replayed_on_10(
    folder: Path, polygraphy_trt: dict[str, str], trt_version: int
) -> None:
    if trt_version != 10:
        pytest.skip("TensorRT 11 has no algorithm selectors")
    for option in ("--save-tactics", "--load-tactics"):
        done = polygraphy(
            folder, polygraphy_trt, "convert", "model.onnx", "-o", "model.plan", option, "replay.json", *SHAPES
        )
        assert done.returncode == 0, done.stdout + done.stderr
    shown = polygraphy(folder, polygraphy_trt, "inspect", "tactics", "replay.json")
    assert shown.stdout.count("Layer: ") == 9, shown.stdout


def tactics(engine: Path) -> list[int]:
    """Return the choices of the layers of a fake engine."""
    data = engine.read_bytes().removeprefix(b"LWFAKEPLAN")
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return [layer["tactic"] for layer in header["layers"]]


def test_tactic_replays_are_exchanged_with_polygraphy_on_10(
    folder: Path, polygraphy_trt: dict[str, str], trt_version: int
) -> None:
    if trt_version != 10:
        pytest.skip("TensorRT 11 has no algorithm selectors")
    words = ("model.onnx", *SHAPES, "--save-tactics", "replay.json")
    theirs = polygraphy(
        folder, polygraphy_trt, "debug", "build", *words, "--until", "2", "--artifacts", "replay.json",
        "polygraphy_debug.engine", "--check", "true",
    )  # fmt: skip
    assert theirs.returncode == 0, theirs.stdout + theirs.stderr
    sorted_files = sorted((folder / "polygraphy_artifacts" / "good").iterdir())
    replays, engines = [[file for file in sorted_files if file.suffix == kind] for kind in (".json", ".engine")]
    assert len(replays) == len(engines) == 2
    words = ("convert", "model.onnx", *SHAPES, "-o", "ours.engine", "--load-tactics", str(replays[0]))
    ours = layerwise(*words, "--save-tactics", "ours.json", cwd=folder, env=polygraphy_trt)
    assert ours.returncode == 0, ours.stdout + ours.stderr
    assert tactics(folder / "ours.engine") == tactics(engines[0])
    assert json.loads((folder / "ours.json").read_text()) == json.loads(replays[0].read_text())
    back = polygraphy(
        folder, polygraphy_trt, "convert", "model.onnx", *SHAPES, "-o", "back.engine", "--load-tactics", "ours.json"
    )
    assert back.returncode == 0, back.stdout + back.stderr
    assert tactics(folder / "back.engine") == tactics(engines[0])

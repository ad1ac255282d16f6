"""The real Polygraphy, written for the real TensorRT, works on the fake: it can be the other side of a comparison."""

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support import models

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

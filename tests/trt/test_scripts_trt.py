"""Generated TensorRT scripts (`--gen-script`, templates) run unchanged and do the same as the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.cli import layerwise
from support.forks import forked_line, forked_script, line_zygote
from support.plans import plan_header
from support.scenes import prepare

from layerwise.json import save_json

Go = Callable[..., str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("scripts"))


@pytest.fixture
def go(files: Path, trt_version: int, tmp_path: Path) -> Go:
    """Run a command line, or a script, with the fake `tensorrt`; return its output."""
    for path in files.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())

    def run(*words: str, code: int = 0) -> str:
        if words[0].endswith(".py"):
            found, said = forked_script(line_zygote(trt_version), (tmp_path / words[0]).read_text(), tmp_path)
        else:
            found, said = forked_line(line_zygote(trt_version), list(words), tmp_path)
        assert found == code, said
        return said

    return run


SHAPES = "--trt-min-shapes input:[1,3,224,224] --trt-max-shapes input:[4,3,224,224]"
LINES = {
    "run model.onnx --onnxrt --trt": "PASSED",
    "run model.onnx --onnxrt --trt --input-shapes input:[2,3,224,224] input:[3,3,224,224] --iterations 2": "PASSED",
    f"run model.onnx --onnxrt --trt {SHAPES} --mark-all --save-engine a.engine --load-inputs inputs.json": "PASSED",
    f"run model.onnx --onnxrt --trt --fp16 {SHAPES} --atol 1e-2 --rtol 1e-2 --trt-outputs output1 output2": "PASSED",
    "run model.onnx --onnxrt --trt --fp16": "FAILED",
    "run model.onnx --onnxrt --trt --load-inputs batches.json": "PASSED",
    "run model.onnx --onnxrt --trt --int8 --calibration-cache c.cache --calib-base-cls IInt8MinMaxCalibrator "
    "--rtol 5e-2 --atol 1e-2 --data-loader-script data_loader.py": "PASSED",
    "run model.onnx --onnxrt --trt --save-tactics t.json": "PASSED",
    "run example.py:create_network --trt --save-outputs o.json": "",
    "run model.onnx --trt --strongly-typed --refittable --sparse-weights --pool-limit workspace:1G --max-aux-streams 2 "
    "--trt-outputs-by-type activation --save-timing-cache t.cache --trt-npps change.py --trt-cpps change.py": "",
}


DIFFER = ("--fp16", "--int8", "--strongly-typed", "--save-tactics")
"""What is said otherwise on the two versions; other lines are written and run on one of them each."""
ON = [(version, line) for number, line in enumerate(LINES) for version in (10, 11)
      if version == 10 + number % 2 or any(option in line for option in DIFFER)]  # fmt: skip


@pytest.mark.parametrize(("trt_version", "line"), ON, indirect=["trt_version"])
def test_a_generated_script_does_the_same_as_its_command_line(line: str, go: Go, tmp_path: Path) -> None:
    (tmp_path / "change.py").write_text(
        "def postprocess(network):\n    network.name = 'changed'\n"
        "def postprocess_config(builder, network, config):\n    config.builder_optimization_level = 4\n"
    )
    feeds = [{"input": np.ones((batch, 3, 224, 224), np.float32)} for batch in (3, 2)]
    save_json(feeds, tmp_path / "batches.json")
    words = line.split()
    go(*words, "--gen-script", "same.py")
    wanted = LINES[line]
    said = go("same.py", code=int(wanted == "FAILED"))
    if wanted:
        assert f"{wanted} | Output: 'output1'" in said
    for option in ("--save-engine", "--save-outputs", "--save-timing-cache", "--save-tactics"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).stat().st_size


def test_a_script_loads_an_engine_and_reports_omissions(go: Go, tmp_path: Path) -> None:
    go("convert", "model.onnx", "-o", "e.engine")
    go("run", "model.onnx", "--onnxrt", "--trt-engine", "e.engine", "--gen-script", "same.py")
    assert "EngineFromPath('e.engine')" in (tmp_path / "same.py").read_text()
    assert "PASSED | Output: 'output1'" in go("same.py")
    go("run", "e.engine", "--trt", "--optimization-profile", "0", "--gen-script", "alone.py")
    go("alone.py")
    more = ("--exclude-tactics", "replay.json", "--trt-cuda-graph", "--trt-contexts", "2")
    printed = go("run", "model.onnx", "--trt", *more, "--gen-script", "-")
    for option in ("--exclude-tactics", "--trt-cuda-graph", "--trt-contexts"):
        assert f"# {option} has no counterpart here" in printed


def test_a_network_template_runs_as_a_model(go: Go, tmp_path: Path, trt_version: int) -> None:
    go("template", "trt-network", "identity.onnx", "-o", "network.py", "--strongly-typed")
    script = tmp_path / "network.py"
    script.write_text(script.read_text() + '    network.get_layer(0).name = "renamed"\n')
    go("convert", "network.py", "-o", "n.engine")
    header = plan_header(tmp_path / "n.engine")
    assert [layer["name"] for layer in header["layers"]] == ["renamed"]
    assert header["major"] == trt_version
    go("template", "trt-network", "-o", "empty.py")
    uncommented = (tmp_path / "empty.py").read_text().replace("# made =", "made =")
    (tmp_path / "empty.py").write_text(uncommented.replace("# network.mark_output", "network.mark_output"))
    go("run", "empty.py", "--trt", "--save-outputs", "made.json")
    assert "(Unnamed Layer* 0)" in json.dumps(json.loads((tmp_path / "made.json").read_text()))


def test_a_config_template_configures_a_build(go: Go, tmp_path: Path, trt_version: int) -> None:
    options = ["--tf32", "--refittable", "--workspace", "1G", "--builder-optimization-level", "2"]
    go("template", "trt-config", "-o", "config.py", *options, "--trt-min-shapes", "X:[1,2,4,4]")
    script = tmp_path / "config.py"
    script.write_text(script.read_text() + "    config.set_flag(tensorrt.BuilderFlag.STRIP_PLAN)\n")
    go("convert", "dynamic_identity.onnx", "-o", "c.engine", "--trt-config-script", "config.py")
    header = plan_header(tmp_path / "c.engine")
    assert {"TF32", "REFIT", "STRIP_PLAN"} <= set(header["flags"])
    assert (header["config"]["level"], header["config"]["pools"]) == (2, {"WORKSPACE": 1 << 30})
    assert header["profiles"][0]["shapes"] == {"X": [[1, 2, 4, 4]] * 3}
    go("template", "trt-config", "-o", "half.py", "--fp16")
    assert "TensorRT 11 has no flags for precision" in (tmp_path / "half.py").read_text()
    words = ("convert", "identity.onnx", "-o", "h.engine", "--trt-config-script", "half.py")
    told = go(*words, code=0 if trt_version == 10 else 2)
    assert trt_version == 10 or "has no BuilderFlag.FP16 (TensorRT 10 only)" in told


def test_templates_are_written_without_tensorrt(files: Path, tmp_path: Path) -> None:
    done = layerwise("template", "trt-network", files / "model.onnx", "-o", "n.py", "--onnx-outputs", "*", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ModifyOutputs" in (tmp_path / "n.py").read_text()
    failed = subprocess.run([sys.executable, "n.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "No module named 'tensorrt'" in failed.stderr
    engine = layerwise("template", "trt-network", "m.engine", "-o", "n.py", "--overwrite", cwd=tmp_path)
    assert engine.returncode == 2 and "starts from an ONNX model" in engine.stderr
    missing = layerwise("template", "trt-config", "none.onnx", "-o", "c.py", cwd=tmp_path)
    assert missing.returncode == 2 and "there is no such file" in missing.stderr

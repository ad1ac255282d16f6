"""`layerwise run` as users run it: real processes, their output and exit codes."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import layerwise
from support.models import mlp

from layerwise._tool.surgery.precision.nodes import emulate_precision

PAIR = ("run", "m.onnx", "--onnxrt", "--onnxrt")


def scaled(model: onnx.ModelProto, factor: float) -> onnx.ModelProto:
    for weight in model.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(factor), weight.name))
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "m.onnx")
    onnx.save(scaled(mlp(), 1.01), tmp_path / "off.onnx")
    return tmp_path


def test_equal_runners_pass_with_the_lines_people_look_for(folder: Path) -> None:
    done = layerwise(*PAIR, cwd=folder)
    assert done.returncode == 0
    for line in (
        r"\[I\] RUNNING \| Command: layerwise run m.onnx --onnxrt --onnxrt",
        r"\[I\] Accuracy Comparison \| onnxrt-runner-N0-\S+ vs. onnxrt-runner-N1-\S+",
        r"\[I\] Iteration: 0",
        r"\[I\]     simple \| Comparing Output: 'y' \(dtype=float32, shape=\(1, 16\)\) with 'y' \(",
        r"\[I\]         Tolerance: \[abs=1e-05, rel=1e-05\] \| Checking elemwise error",
        r"\[I\]             Minimum Required Tolerance: elemwise error \| \[abs=0\] OR \[rel=0\]",
        r"\[I\]             Absolute Difference \| Stats: mean=0, std-dev=0, var=0, median=0, min=0",
        r"\[I\]         PASSED \| Output: 'y' \| Difference is within tolerance \(rel=1e-05, abs=1e-05\)",
        r"\[I\]     PASSED \| simple \| All outputs matched \| Outputs: \['y'\]",
        r"\[I\] Accuracy Summary \| .* \| Passed: 1/1 iterations \| Pass Rate: 100.00%",
        r"\[I\] PASSED \| Runtime: \d+\.\d{3}s \| Command: layerwise run",
    ):
        assert re.search(line, done.stdout), line
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_a_reference_model_is_the_second_side(folder: Path) -> None:
    done = layerwise("run", "m.onnx", "--onnxrt", "--reference-model", "off.onnx", "--json", cwd=folder)
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)["rows"]
    backwards = layerwise("run", "off.onnx", "--onnxrt", "--reference-model", "m.onnx", "--json", cwd=folder)
    (swapped,) = json.loads(backwards.stdout)["rows"]
    assert row["stats"][0] == swapped["stats"][1]
    assert row["max_abs"] == swapped["max_abs"]
    assert row["max_rel"] < swapped["max_rel"]  # off.onnx is the larger one


def test_failures_are_told_and_exit_with_1(folder: Path) -> None:
    line = ("run", "m.onnx", "--onnxrt", "--reference-model", "off.onnx", "--compare", "simple", "l2", "psnr")
    done = layerwise(*line, cwd=folder)
    assert done.returncode == 1
    assert "[E]         FAILED | Output: 'y' | Difference exceeds tolerance (rel=1e-05, abs=1e-05)" in done.stdout
    assert "[E]     FAILED | simple | Mismatched outputs: ['y']" in done.stdout
    assert re.search(r"\[E\]         L2 Norm: \S+ \(tolerance: 1e-05\) \| FAILED", done.stdout)
    assert re.search(r"\[E\] FAILED \| Runtime: ", done.stdout)
    wide = layerwise(*line[:-3], "simple", "--atol", "y:10", cwd=folder)
    assert wide.returncode == 0


def test_every_tensor_is_compact_and_ends_with_what_matters(folder: Path) -> None:
    onnx.save(mlp(layers=9), folder / "deep.onnx")
    onnx.save(scaled(mlp(layers=9), 1.01), folder / "deep_off.onnx")
    line = ("run", "deep.onnx", "--onnxrt", "--reference-model", "deep_off.onnx", "--mark-all")
    done = layerwise(*line, cwd=folder)
    assert done.returncode == 1
    assert "Comparing Output" not in done.stdout
    assert len(re.findall(r"FAILED \| Output: '\w+' \| #\d+ \w+ \| float32", done.stdout)) >= 17
    assert re.search(r"layerwise run: 27 tensors compared, \d+ failed, canary ok", done.stdout)
    assert re.search(r"first bad    #0 MatMul /fc0/MatMul   m0   max abs", done.stdout)
    assert re.search(r"next         layerwise run deep.onnx .* --onnx-outputs m0", done.stdout)
    full = layerwise(*line, "-v", cwd=folder)
    assert full.stdout.count("Comparing Output") == 27


def test_tensors_that_one_side_lacks_take_one_line_and_are_a_warning_only_where_they_were_named(folder: Path) -> None:
    onnx.save(emulate_precision(mlp(), "float16"), folder / "half.onnx")
    line = ("run", "half.onnx", "--onnxrt", "--reference-model", "m.onnx", "--atol", "1")
    count = len(json.loads(layerwise(*line, "--mark-all", "--json", cwd=folder).stdout)["result"]["unmatched"])
    told = [text for text in layerwise(*line, "--mark-all", cwd=folder).stdout.splitlines() if "unmatched" in text]
    expected = f"[I] unmatched    {count} tensors without a counterpart, first x__float16; --json lists them"
    assert told == [expected] and len(expected) < 120
    named = layerwise(*line, "--onnx-outputs", "m0", "m0__exact", cwd=folder)
    assert "[W] unmatched    1 tensor without" in named.stdout


def test_runners_run_in_the_order_typed(folder: Path) -> None:
    done = layerwise("run", "m.onnx", "--onnx", "--onnxrt", "--onnx", "--json", cwd=folder)
    names = json.loads(done.stdout)["result"]["runners"]
    assert [name.split("-N")[0] for name in names] == ["reference-runner", "onnxrt-runner", "reference-runner"]


def test_tensors_are_matched_by_name_or_by_a_map(folder: Path) -> None:
    renamed = onnx.compose.add_prefix(mlp(), "x_", rename_edges=False, rename_inputs=False, rename_outputs=True)
    onnx.save(renamed, folder / "renamed.onnx")
    line = ("run", "m.onnx", "--onnxrt", "--reference-model", "renamed.onnx")
    assert layerwise(*line, "--strict-names", cwd=folder).returncode != 0
    similar = layerwise(*line, cwd=folder)
    assert similar.returncode == 0 and "output: x_y corresponds to output: y" in similar.stdout
    assert layerwise(*line, "--strict-names", "--rename", "y=x_y", cwd=folder).returncode == 0


def test_json_is_strict_and_alone_on_stdout(folder: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), folder / "log.onnx")
    done = layerwise("run", "log.onnx", "--onnxrt", "--onnxrt", "--val-range", "[0,0]", "--json", cwd=folder)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    document = json.loads(done.stdout, parse_constant=refuse)
    assert done.returncode == document["exit_code"] == 1
    assert document["rows"][0]["max_abs"] == "nan"
    assert document["rows"][0]["inf"] == [2, 2]
    broken = layerwise("run", "nowhere.onnx", "--onnxrt", "--json", cwd=folder)
    assert "nowhere.onnx" in json.loads(broken.stdout)["error"]["summary"]
    assert broken.returncode == json.loads(broken.stdout)["exit_code"] != 0


def test_validation_finds_what_is_not_finite(folder: Path) -> None:
    test_json_is_strict_and_alone_on_stdout(folder)
    done = layerwise("run", "log.onnx", "--onnxrt", "--validate", "--val-range", "[-2,-1]", cwd=folder)
    assert done.returncode == 1
    assert "FAILED | Errors detected in output: y" in done.stdout
    assert "FAILED | Output Validation" in done.stdout
    assert layerwise("run", "m.onnx", "--onnxrt", "--validate", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("m.onnx", "--onnxrt", "--trt"), 1, "pip install 'layerwise[trt]'"),
        (("m.engine", "--onnxrt"), 2, "only --trt runs it"),
        (("script.py", "--onnxrt"), 2, "script.py is taken for a TensorRT engine or network script"),
        (("m.onnx", "--onnxrt", "--trt-engine", "x.engine"), 1, "TensorRT cannot be imported"),
        (("m.pb", "--tf"), 2, "tf2onnx"),
        (("m.onnx", "--model-type", "caffe"), 2, "tf2onnx"),
        (("--onnxrt",), 2, "no model"),
        (("m.onnx", "--onnxrt", "--rtol", "much"), 2, "'much' is not a tolerance"),
        (("m.onnx", "--onnxrt", "--input-shapes", "x:1x16"), 2, "input:[1,3,224,224]"),
        (("m.onnx", "--onnxrt", "--rtol", "nan"), 2, "'nan' is not a tolerance"),
        (("m.onnx", "--onnxrt", "--val-range", "[0,inf]"), 2, "both ends of a range are finite"),
        (("m.onnx", "--onnxrt", "--seed", "-5"), 2, "--seed is -5: give 0 to 4294967295"),
        (("m.onnx", "--onnxrt", "--no-such-option"), 2, "--no-such-option"),
        (("m.onnx", "--onnxrt", "--graph-optimization-level", "fast"), 2, "ORT_ENABLE_ALL"),
        (("m.onnx", "--onnxrt", "--memory-budget", "lots"), 2, "512M"),
        (("m.onnx", "--onnxrt", "--providers", "tpu"), 2, "tpu"),
        (("missing.onnx", "--onnxrt"), 1, "missing.onnx"),
    ],
)
def test_errors_say_what_to_do(folder: Path, options: tuple[str, ...], code: int, words: str) -> None:
    done = layerwise("run", *options, cwd=folder)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_runners_may_bring_all_the_models(folder: Path) -> None:
    done = layerwise("run", "--runner", "onnxrt,model=m.onnx", "--runner", "onnxrt,model=m.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Pass Rate: 100.00%" in done.stdout


def test_tensorrt_options_are_accepted_where_nothing_needs_them(folder: Path) -> None:
    options = "--fp16 --int8 --tf32 --workspace 4G --pool-limit workspace:1G --trt-min-shapes x:[1,16] --tactic-sources"
    assert layerwise(*PAIR, *options.split(), cwd=folder).returncode == 0


def test_logging_options(folder: Path) -> None:
    assert "[V]" not in layerwise(*PAIR, cwd=folder).stdout
    assert layerwise(*PAIR, "-q", cwd=folder).stdout.count("Tolerance:") == 0
    assert layerwise(*PAIR, "--silent", cwd=folder).stdout == ""
    levels = ("info", "comparator:ERROR", "backend:ERROR")
    assert layerwise(*PAIR, "--verbosity", *levels, cwd=folder).stdout.count("\n") == 2
    stamped = layerwise(*PAIR, "--log-format", "timestamp", "line-info", "--log-file", "logs/run.log", cwd=folder)
    assert re.match(r"\[I\] \(\d\d:\d\d:\d\d\) \[tui/cli/leaf.py:\d+\] RUNNING", stamped.stdout)
    assert (folder / "logs" / "run.log").read_text() == stamped.stdout


def test_a_generated_script_comes_to_the_same_verdict(folder: Path) -> None:
    line = ("run", "m.onnx", "--onnxrt", "--onnx", "--reference-model", "off.onnx", "--mark", "a0", "--iterations", "2",
            "--compare", "simple", "l2", "--rtol", "1e-4", "y:1e-3", "--save-outputs", "out.json")  # fmt: skip
    assert layerwise(*line, "--gen-script", "script.py", cwd=folder).returncode == 0
    for extra, code in (((), 1), (("--atol", "100", "--compare", "simple"), 0)):
        words = [*line, *extra]
        if extra:
            words = [word for word in words if word != "l2"]
        run = layerwise(*words, cwd=folder)
        assert layerwise(*words, "--gen-script", "script.py", cwd=folder).returncode == 0
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert (run.returncode, done.returncode) == (code, code), done.stderr
        assert "Iteration: 1" in done.stdout
    printed = layerwise(*line, "--gen-script", "-", cwd=folder)
    assert compile(printed.stdout, "script", "exec")


def test_interrupting_cancels_the_job_and_exits_with_130(folder: Path) -> None:
    (folder / "slow.py").write_text(
        "import time\ndef load_data():\n    print('READY', flush=True)\n    time.sleep(60)\n    yield {}\n"
    )
    words = [sys.executable, "-m", "layerwise", *PAIR, "--data-loader-script", "slow.py"]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    home = Path(os.environ["LAYERWISE_HOME"])
    deadline = time.monotonic() + 30
    while not any("READY" in log.read_text() for log in home.glob("jobs/*/log.txt")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert "[W] Job 1 is cancelled. Go on where it stopped with: layerwise jobs retry 1\n" in out


def on_a_terminal(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """What a command writes to a terminal 80 columns wide."""
    leader, follower = pty.openpty()
    size = struct.pack("HHHH", 24, 80, 0, 0)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, size)
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(words, cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    text = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(leader, 65536):
            text += chunk
    os.close(leader)
    assert process.wait(timeout=30) == 0
    return text.decode()


@pytest.mark.parametrize("colours", [True, False])
def test_progress_and_colours_on_a_terminal_leave_lines_whole(folder: Path, colours: bool) -> None:
    words = [sys.executable, "-m", "layerwise", *PAIR, "--mark-all"]
    environment = {} if colours else {"NO_COLOR": "1"}
    text = on_a_terminal(words, folder, environment)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert re.search(
        r"Accuracy Summary \| onnxrt-runner-N0-\S+ vs. onnxrt-runner-N1-\S+ \| Passed: 1/1 iterations", plain
    )
    assert "layerwise run: 9 tensors compared, 0 failed, canary ok" in plain
    assert ("\x1b[92m[I] PASSED" in text) == colours
    assert text.endswith("--mark-all\x1b[0m\r\n" if colours else "--mark-all\r\n")


def test_averages_over_the_iterations(folder: Path) -> None:
    line = ("run", "m.onnx", "--onnxrt", "--reference-model", "off.onnx", "--iterations", "3", "--check-average",
            "--compare", "l2", "simple", "--check-error-stat", "mean")  # fmt: skip
    done = layerwise(*line, cwd=folder)
    assert done.returncode == 1
    assert re.search(r"\[E\] Accuracy Summary \| \S+ vs. \S+ \| Passed: 0/1 outputs", done.stdout)
    assert re.search(r"\[E\]     y \| L2 Norm: \S+ \| FAILED", done.stdout)
    assert layerwise(*line, "--atol", "9", "--l2-threshold", "9", cwd=folder).returncode == 0


@pytest.mark.parametrize("saving", [
    "--save-outputs {}/x.json", "--save-outputs {}/x.safetensors", "--save-outputs {}/x/", "--save-inputs {}/x.json",
    "--save-inputs {}/x/", "--save-input-blob {}/x", "--save-accuracy-results {}/x.json", "--save-onnx {}/x.onnx",
    "--save-heatmaps {}/x",
])  # fmt: skip
def test_where_nothing_can_be_written_is_said_in_one_line(folder: Path, saving: str) -> None:
    done = layerwise(*PAIR, *saving.format("/proc").split(), cwd=folder)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "/proc/x" in done.stderr


def test_an_infinite_tolerance_sets_no_limit(folder: Path) -> None:
    onnx.save(mlp(seed=1), folder / "other.onnx")
    words = ("run", "m.onnx", "--onnxrt", "--reference-model", "other.onnx")
    assert layerwise(*words, cwd=folder).returncode == 1
    assert layerwise(*words, "--atol", "y:inf", cwd=folder).returncode == 0
    assert layerwise(*words, "--compare", "l2", "--l2-threshold", "inf", cwd=folder).returncode == 0

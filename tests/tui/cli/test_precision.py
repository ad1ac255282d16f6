"""`layerwise debug precision`, as people type it."""

import json
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.cli import layerwise
from support.models import from_text

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.debugtools.search.lens.spec import LensSpec
from layerwise._tool.debugtools.search.spec import PrecisionSpec
from layerwise._tool.tui.cli.debug.lens import to_lens
from layerwise._tool.tui.cli.debug.precision import fill_precision, to_precision
from layerwise._tool.tui.cli.parser import Parser
from layerwise.comparator import RunResults

MODEL = from_text(
    "g (float[4,8] x) => (float[4,8] y) <float[1] k = {4096}> {"
    "  [relu] r = Relu(x) [up] u = Mul(r, k) [square] q = Mul(u, u) [root] s = Sqrt(q) [down] y = Div(s, k) }"
)
NEEDED = ["square", "root"]
TIGHT = ("--atol", "1e-2", "--rtol", "1e-2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(MODEL, tmp_path / "reduced.onnx")
    save_feeds(tmp_path / "inputs.json", [{"x": np.random.default_rng(1).random((4, 8), np.float32) * 8}])
    return tmp_path


def test_golden_outputs_and_layers(folder: Path) -> None:
    """The line that guides show, as it stands."""
    made = layerwise("run", "reduced.onnx", "--onnxrt", "--save-outputs", "onnxrt_outputs.json", cwd=folder)
    assert made.returncode == 0
    done = layerwise(
        "debug", "precision", "reduced.onnx", "--golden-outputs", "onnxrt_outputs.json", "--mark-all",
        "--save-layer-outputs", "analysis.json", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 5 nodes must stay in FP32 (not one of them can be left out): square, root." in done.stdout
    assert "The original model passes" in done.stdout and "Error against low nodes" in done.stdout
    assert {"r", "u", "q", "s", "y"} <= set(RunResults.load(folder / "analysis.json")[0][1][0])


def test_json_has_the_nodes_the_frontier_and_the_verdicts(folder: Path) -> None:
    done = layerwise(
        "debug", "precision", "reduced.onnx", *TIGHT, "--load-inputs", "inputs.json", "-o", "mixed.onnx", "--json",
        cwd=folder,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 0 and document["passed"] and document["search"] == "precision"
    assert [node["node"] for node in document["found"][0]["nodes"]] == NEEDED
    assert document["found"][0]["file"]["verdict"] and document["found"][0]["path"] == "mixed.onnx"
    assert document["frontier"][0]["kept"] == 0
    assert all(row["by"] == "comparison" for row in document["verdicts"])
    kinds = {tensor.name: tensor.data_type for tensor in onnx.load(folder / "mixed.onnx").graph.initializer}
    assert onnx.TensorProto.FLOAT16 in kinds.values()


def test_a_person_judges_and_the_machine_finishes(folder: Path) -> None:
    done = layerwise(
        "debug", "precision", "reduced.onnx", "--interactive", *TIGHT, "--load-inputs", "inputs.json",
        "-o", "mixed.onnx", cwd=folder, input="f\na\n",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Did 'polygraphy_debug.onnx' [p]ass or [f]ail?" in done.stdout
    assert "The machine finds it bad" in done.stdout and "Mixed model: mixed.onnx" in done.stdout
    assert "2 of 5 nodes must stay in FP32" in done.stdout


def test_nothing_found_is_1_and_wrong_usage_2(folder: Path) -> None:
    onnx.save(from_text("g (float[4,8] x) => (float[4,8] y) { y = Sigmoid(x) }"), folder / "other.onnx")
    for words, code, message in [
        (("reduced.onnx", "--onnxrt", "--reference-model", "other.onnx"), 1, "fails in FP32 already"),
        (("reduced.onnx", "--int8"), 2, "--int8 is not in this version"),
        (("reduced.onnx", "-p", "float16"), 2, "--precision float16 is not in this version"),
        (("reduced.onnx", "--max-checks", "0"), 2, "--max-checks must be 1 or more"),
        (("reduced.onnx", "--interactive", "--check", "true"), 2, "one of them judges"),
        (("nowhere.onnx",), 1, "nowhere.onnx"),
        ((), 2, "the path of the model"),
    ]:
        done = layerwise("debug", "precision", *words, cwd=folder)
        assert (done.returncode, message in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def parsed(line: str) -> PrecisionSpec:
    parser = Parser("layerwise debug precision")
    fill_precision(parser)
    return to_precision(parser.parse_args(shlex.split(line)))


def test_options_of_polygraphy_mean_the_same() -> None:
    spec = parsed("m.onnx --mode linear --dir reverse -p float32 --fp16")
    assert (spec.search.mode, spec.direction, spec.low) == ("linear", "reverse", "float16")
    assert not spec.search.interactive and parsed("m.onnx --bf16").low == "bfloat16"
    checked = parsed("m.onnx -o x.onnx --fail-code 3 --check sh run.sh --mode bisect").search
    assert checked.check is not None and checked.check.command == ["sh", "run.sh", "--mode", "bisect"]
    assert checked.check.fail_codes == [3] and checked.mode == "ddmin"


def test_detached_and_attached(folder: Path) -> None:
    words = ("debug", "precision", "reduced.onnx", *TIGHT, "--load-inputs", "inputs.json", "--detach")
    started = layerwise(*words, cwd=folder)
    assert started.returncode == 0 and "layerwise attach 1" in started.stdout
    attached = layerwise("attach", "1", cwd=folder)
    assert attached.returncode == 0 and "2 of 5 nodes must stay in FP32" in attached.stdout


def lens_of(*words: str) -> LensSpec:
    parser = Parser(prog="layerwise debug precision")
    fill_precision(parser)
    return to_lens(parser.parse_args(["model.onnx", *words]))


def test_the_options_of_the_lens() -> None:
    few = lens_of("--to", "int4")
    assert few.rounding.weight_scales == "block" and not few.rounding.activations and few.bound is None
    spec = lens_of("--to", "uint8", "--asymmetric", "--calibration", "mse", "--bound", "sqnr:30", "--cost", "bytes")
    assert spec.bound is not None and (spec.bound.metric, spec.bound.value) == ("sqnr", 30.0)
    assert not spec.rounding.symmetric_activations and spec.cost == "bytes"
    score = lens_of("--to", "int8", "--bound", "score:a.py:f:0.9").bound
    assert score is not None and (score.script, score.value) == ("a.py:f", 0.9)
    assert lens_of("--to", "int8", "--atol", "1e-3").bound is not None


@pytest.mark.parametrize("words", [
    ("--bound", "0"), ("--bound", "x:1"), ("--bound", "cosine:1"), ("--bound", "tolerance"), ("--cost", "time"),
    ("-o", "m.onnx"), ("--block", "0"), ("--onnxrt", "--onnxrt"), ("--percentile", "0"), ("--golden-outputs", "a.json"),
])  # fmt: skip
def test_what_does_not_fit_the_lens_is_told(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        lens_of("--to", "int8", *words)

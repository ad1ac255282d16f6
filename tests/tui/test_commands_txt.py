"""Command lines that people already have: each runs here, or ends in the one error that says what is missing."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.cli import layerwise

from layerwise.comparator import RunResults
from layerwise.json import save_json
from tui.cli.run_parser import parser

LINES = [
    line
    for line in (Path(__file__).parent.parent / "data" / "commands.txt").read_text().splitlines()
    if line.startswith("layerwise ")
]
NEEDS_TENSORRT = re.compile(r" --trt\b| --trt-engine|\.engine|\.plan|--convert-to trt|--trt-network-func")


def identity(path: Path, name: str, dtype: int, shape: list[int | str]) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["Y"])], "identity",
        [helper.make_tensor_value_info(name, dtype, shape)],
        [helper.make_tensor_value_info("Y", dtype, shape)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def replay() -> dict[str, object]:
    """A tactic replay of one layer, as --save-tactics writes it."""
    fields = {"dtype": "DataType.FLOAT", "strides": [4, 1], "vectorized_dim": -1, "components_per_element": 1}
    tensor = {**fields, "polygraphy_class": "TensorInfo"}
    algorithm = {"implementation": 1, "tactic": 2, "inputs": [tensor], "outputs": [tensor]}
    layers = {"conv": {**algorithm, "polygraphy_class": "Algorithm"}}
    return {"replay": layers, "polygraphy_class": "TacticReplayData"}


def outputs(value: float) -> RunResults:
    results = RunResults()
    results.add([{"Y": np.full((1, 3, 8, 8), value, np.float32)}], 0.1, "runner")
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("commands")
    for name in ("model", "clean", "identity", "identity_fp16", "resnet50"):
        identity(place / f"{name}.onnx", "input", TensorProto.FLOAT, [1, 3, 8, 8])
    identity(place / "dynamic_identity.onnx", "X", TensorProto.FLOAT, ["n", 2, "h", "w"])
    (place / "results").mkdir()
    outputs(1.0).save(place / "results" / "model_fp32.json")
    outputs(1.001).save(place / "results" / "model_fp16.json")
    feed = {"input": np.full((1, 3, 8, 8), 0.5, np.float32)}
    save_json([feed], place / "inputs.json")
    outputs(0.5).save(place / "outputs_fp32.json")
    outputs(0.5).save(place / "outputs.json")
    outputs(0.5).save(place / "inference_results.json")
    for name, value in (("expected", 1.0), ("actual", 1.0005)):
        outputs(value).save(place / f"{name}.json")
    (place / "replays" / "good").mkdir(parents=True)
    for name in ("build1.json", "build2.json", "replay.json", "model.tactic", "replays/good/0.json"):
        (place / name).write_text(json.dumps(replay()))
    save_json([feed], place / "model-input.txt")
    outputs(0.5).save(place / "model-output.txt")
    (place / "example.py").write_text("def load_network(): pass\n")
    return place


@pytest.mark.parametrize("line", LINES)
def test_a_line_runs_or_says_what_is_missing(line: str, folder: Path) -> None:
    words = shlex.split(line)[1:]
    if NEEDS_TENSORRT.search(line):
        assert_tensorrt_is_told(words, folder)
        return
    for option, value in pairwise(words):
        if option in ("-o", "--output"):
            (folder / value).unlink(missing_ok=True)
    done = layerwise(*words, cwd=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def assert_tensorrt_is_told(words: list[str], folder: Path) -> None:
    if words[0] == "run":
        parser().parse_args(words[1:])
    done = layerwise(*words, cwd=folder)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_the_list_is_whole() -> None:
    assert len(LINES) >= 60
    assert sum(not NEEDS_TENSORRT.search(line) for line in LINES) >= 12

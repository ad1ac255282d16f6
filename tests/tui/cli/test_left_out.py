"""Every command that gives a verdict: where nothing was compared it fails, says so and why."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.cli import layerwise
from support.output_kinds import write_model

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.results.accuracy import AccuracyResult, AccuracyResults, SimpleResult
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.debugtools.diff.action import diff_files
from layerwise._tool.debugtools.diff.spec import DiffSpec

NOTHING = "nothing was compared"
ARRAY = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nothing")
    kinds = {
        "y": {"y": "tensor"}, "zero": {"y": "zero"}, "seq0": {"s": "seq0"}, "none": {"o": "none"},
        "seq2": {"y": "tensor", "s": "seq2"}, "seq3": {"y": "tensor", "s": "seq3"},
        "two": {"y": "tensor", "z": "tensor"},
    }  # fmt: skip
    for name, outputs in kinds.items():
        write_model(path / f"{name}.onnx", outputs)
    save(path / "three.json", [{"y": -ARRAY}] * 3)
    (path / "inputs.json").write_text("[]")
    (path / "no_feeds.py").write_text("def load_data():\n    return []\n")
    return path


def save(path: Path, iterations: list[dict[str, Any]]) -> None:
    results = RunResults()
    results.append("golden", [IterationResult(outputs) for outputs in iterations])
    results.save(path)


RUNS = {
    "y.onnx --onnxrt --onnxrt --exclude-outputs *": 1,
    "y.onnx --onnxrt --onnxrt --exclude-outputs * --check-average --check-error-stat max": 1,
    "y.onnx --onnxrt --onnxrt --exclude-outputs y --fail-fast": 1,
    "y.onnx --onnxrt --onnxrt --mark-all --exclude-outputs *": 1,
    "y.onnx --onnxrt --onnxrt --onnx-outputs y --exclude-outputs y": 1,
    "two.onnx --onnxrt --onnxrt --exclude-outputs y z shifted --observe every": 1,
    "zero.onnx --onnxrt --onnxrt --mark-all --observe executed --exclude-outputs shifted": 1,
    "seq2.onnx --onnxrt --onnxrt --exclude-outputs y s": 1,
    "zero.onnx --onnxrt --onnx": 1,
    "zero.onnx --onnxrt --onnx --compare l2 cosine_similarity psnr snr": 1,
    "zero.onnx --onnxrt --onnxrt --no-shape-check": 1,
    "seq0.onnx --onnxrt --onnx": 1,
    "none.onnx --onnxrt --onnx": 1,
    "none.onnx --onnxrt --reference-model none.onnx": 1,
    "y.onnx --onnxrt --onnxrt --compare indices --index-tolerance 6": 1,
    "y.onnx --onnxrt --onnxrt --data-loader-script no_feeds.py": 2,
    "y.onnx --onnxrt --onnxrt --load-inputs inputs.json": 2,
}


IN_JSON = list(RUNS)[:9:4]


@pytest.mark.parametrize("line", RUNS)
def test_a_run_that_compares_nothing_fails(folder: Path, line: str) -> None:
    done = layerwise("run", *line.split(), cwd=folder)
    said = done.stdout + done.stderr
    assert done.returncode == RUNS[line], said
    assert NOTHING in said or "no inputs in there" in said
    assert "PASSED" not in said and "Traceback" not in said
    if RUNS[line] == 1:
        (view,) = Workspace().list_jobs()
        (result,) = [event["data"] for event in read_events(view.folder) if event["type"] == "result"]
        assert result["passed"] is False and result["nothing_compared"]
        assert all(item["reason"] and item["text"] for item in result["not_compared"])
        assert result["n_compared"] == 0
    if line in IN_JSON:
        told = json.loads(layerwise("run", *line.split(), "--json", cwd=folder).stdout)
        assert told["passed"] is False and told["result"]["nothing_compared"] and told["result"]["n_compared"] == 0
        assert [item["reason"] for item in told["result"]["not_compared"]] == [
            item["reason"] for item in result["not_compared"]
        ]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("two.onnx --onnxrt --reference-model y.onnx", 0, "not compared: z: onnxrt"),
        ("y.onnx --onnxrt --reference-model two.onnx", 0, "not compared: z: onnxrt"),
        ("seq2.onnx --onnxrt --reference-model y.onnx", 0, "not compared: s: onnxrt"),
        ("seq2.onnx --onnxrt --reference-model seq3.onnx", 1, "sequence lengths differ: 2 and 3"),
        ("seq2.onnx --onnxrt --reference-model seq3.onnx --exclude-outputs s", 0, "PASSED"),
        ("two.onnx --onnxrt --onnxrt --exclude-outputs z", 0, "PASSED"),
    ],
)
def test_what_has_no_counterpart_is_told_beside_the_verdict(folder: Path, line: str, code: int, said: str) -> None:
    done = layerwise("run", *line.split(), cwd=folder)
    assert done.returncode == code and said in done.stdout, done.stdout
    assert ("not compared: s" in done.stdout) == ("not compared: s" in said)


@pytest.mark.parametrize("model", ["zero", "seq0", "none"])
@pytest.mark.parametrize(
    "line", ["debug reduce {} -o small.onnx", "debug bisect {}", "debug repeat {} --until 2",
             "debug repeat {} --until auto", "debug precision {} -o mixed.onnx", "triage {} -o report",
             "debug locate {}"],
)  # fmt: skip
def test_a_search_does_not_take_nothing_for_good(folder: Path, line: str, model: str) -> None:
    done = layerwise(*line.format(f"{model}.onnx --onnxrt --onnx").split(), cwd=folder)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert NOTHING in said or "no output was compared" in said
    assert "Traceback" not in said and "passes" not in said.replace("Whether the model passes", "")


# ── saved accuracy ──

MEASURED = SimpleResult({f"{stat}_{kind}diff": 0.0 for stat in ("max", "mean", "median") for kind in ("abs", "rel")},
                        stored=True)  # fmt: skip
ITERATIONS: dict[str, list[dict[str, Any]]] = {
    "none": [], "an empty one": [{}], "two empty ones": [{}, {}], "one": [{"y": MEASURED}],
    "one and an empty one": [{"y": MEASURED}, {}], "different outputs": [{"y": MEASURED}, {"z": MEASURED}],
}  # fmt: skip


@pytest.mark.parametrize("options", ["", "--check-average --check-error-stat max", "--compare simple"])
def test_saved_accuracy_of_nothing_does_not_pass(tmp_path: Path, options: str) -> None:
    cases = [(AccuracyResults([]), False), (AccuracyResults([AccuracyResult()]), False)]
    for one, other in product(ITERATIONS, ITERATIONS):
        pairs = {("a", "b"): ITERATIONS[one], ("b", "c"): ITERATIONS[other]}
        held = all(any(iterations) for iterations in pairs.values())
        cases.append((AccuracyResults([AccuracyResult({pair: list(its) for pair, its in pairs.items()})]), held))
    for number, (results, held) in enumerate(cases):
        assert results.passed is held
        if number % 4 and held:
            continue
        results.save(tmp_path / "accuracy.json")
        done = layerwise("check", "accuracy", "accuracy.json", *options.split(), cwd=tmp_path)
        assert done.returncode == (not held), done.stdout + done.stderr
        assert held or ("compared" in done.stdout and "PASSED" not in done.stdout.splitlines()[-1])
        pairs = [its for result in results.results for its in result.pairs.values()]
        gaps = any(len({*map(tuple, its)}) > 1 for its in pairs)
        assert ("not in iteration" in done.stdout) == bool(gaps), done.stdout
    told = json.loads(layerwise("check", "accuracy", "accuracy.json", "--json", cwd=tmp_path).stdout)
    assert told["passed"] is not bool(told["nothing_compared"])


# ── files ──


def results_file(path: Path, runners: list[list[dict[str, Any]]]) -> str:
    results = RunResults()
    for number, iterations in enumerate(runners):
        results.append(f"runner{number}", [IterationResult(outputs) for outputs in iterations])
    results.save(path)
    return str(path)


HELD: dict[str, list[list[dict[str, Any]]]] = {
    "no runner": [], "no iteration": [[]], "no output": [[{}]], "two without": [[{}, {}], [{}]],
    "no element": [[{"y": ARRAY[:0]}]], "no elements": [[{"y": ARRAY[:0], "z": ARRAY.reshape(3, 1)[:, :0]}]],
    "one": [[{"y": ARRAY}]], "one and an empty one": [[{"y": ARRAY, "z": ARRAY[:0]}]],
    "a string": [[{"y": np.array(["a"], object)}]],
}  # fmt: skip
SOMETHING = {"one", "one and an empty one", "a string"}


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_files_that_hold_nothing_are_not_equal(tmp_path: Path, suffix: str) -> None:
    for one, other in product(HELD, HELD):
        a, b = (results_file(tmp_path / f"{side}.{suffix}", HELD[name]) for side, name in (("a", one), ("b", other)))
        found = diff_files(DiffSpec(a=a, b=b))
        assert found.equal is (one == other and one in SOMETHING), (one, other, found.summary)
        if one == other and one not in SOMETHING:
            assert NOTHING in found.summary


def test_sequences_of_other_lengths_differ(tmp_path: Path) -> None:
    for a, b in product(range(4), repeat=2):
        sides = [{"y": ARRAY} | {f"s[{i}]": ARRAY for i in range(count)} for count in (a, b)]
        paths = [results_file(tmp_path / f"{n}.json", [[outputs]]) for n, outputs in enumerate(sides)]
        assert diff_files(DiffSpec(a=paths[0], b=paths[1])).equal is (a == b)


@pytest.mark.parametrize("content", ["folder", "folder of folders", "bytes", "{}", "[]", "onnx"])
def test_empty_files_and_folders_are_not_equal(tmp_path: Path, content: str) -> None:
    suffix = {"onnx": ".onnx", "{}": ".json", "[]": ".json", "bytes": ".bin"}.get(content, "")
    for side in ("a", "b"):
        path = tmp_path / f"{side}{suffix}"
        if "folder" in content:
            (path / "inner" if "folders" in content else path).mkdir(parents=True)
        else:
            path.write_text(content if suffix == ".json" else "")
        if content == "onnx":
            onnx.save(onnx.ModelProto(ir_version=10, graph=onnx.GraphProto(name="empty")), path)
    done = layerwise("inspect", "diff", f"a{suffix}", f"b{suffix}", cwd=tmp_path)
    assert done.returncode == 1 and NOTHING in done.stdout, done.stdout + done.stderr
    told = json.loads(layerwise("inspect", "diff", f"a{suffix}", f"b{suffix}", "--json", cwd=tmp_path).stdout)
    assert told["equal"] is False and told["differences"]["nothing_compared"]

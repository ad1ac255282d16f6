"""`debug precision --check` builds engines and marks layers as Polygraphy's does, both on the fake TensorRT 10."""

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper
from support.cli import Done, layerwise, layerwise_on_fake

OPERATORS = ("Abs", "Neg", "Tanh", "Softplus", "Exp", "Sigmoid")
SAME = re.compile(r"(Selecting .*|(?:PASSED|FAILED) \| Iteration \d+|Finished \d+ iteration.*|Could not find .*"
                  r"|To achieve acceptable accuracy, .*?precision)")  # fmt: skip
CHECK = ("--check", "grep", "-q", '"softplus", "outputs": .."t4", "FLOAT", .2, 8..., "precision": "FLOAT"')
ENGINE = "polygraphy_debug.engine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        nodes = [helper.make_node(op, [f"t{i}"], [f"t{i + 1}"], op.lower()) for i, op in enumerate(OPERATORS)]
        ends = [helper.make_tensor_value_info(name, 1, [2, 8]) for name in ("t0", f"t{len(nodes)}")]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / name / "c.onnx")
    return tmp_path


def both(folder: Path, environment: dict[str, str], *words: str) -> tuple[subprocess.CompletedProcess[str], Done]:
    line = ("debug", "precision", "c.onnx", *words)
    theirs = subprocess.run(
        [str(Path(sys.executable).with_name("polygraphy")), *line], cwd=folder / "theirs", env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    home = {**environment, "LAYERWISE_HOME": str(folder / "home")}
    return theirs, layerwise(*line, cwd=folder / "ours", env=home)


def said(done: subprocess.CompletedProcess[str] | Done) -> list[str]:
    """The lines that scripts read; Polygraphy tells the result before it counts."""
    return sorted(SAME.findall(done.stdout + done.stderr), key=lambda line: line.startswith("Finished"))


def left(folder: Path) -> list[str]:
    """Files, without the time in names of artifacts."""
    return sorted(re.sub(r"_\d+-\d+-\d+_\d+-\d+-\d+", "", str(path.relative_to(folder))) for path in folder.rglob("*"))


@pytest.mark.parametrize("trt_version", [10], ids=["trt10"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ("--fp16", "--artifacts", ENGINE, "tactics.json", "--save-tactics", "tactics.json", *CHECK),
        ("--fp16", "--int8", "--mode", "linear", "--dir", "reverse", "--no-remove-intermediate", *CHECK),
        ("--tf32", "-p", "float32", "--check", "grep", "-q", "nothing like it", ENGINE),
    ],
    ids=["bisect", "linear", "never"],
)
def test_layers_are_marked_as_polygraphy_marks_them(
    folder: Path, polygraphy_trt: dict[str, str], words: tuple[str, ...]
) -> None:
    line = (*words, ENGINE) if words[-1] != ENGINE else words
    theirs, ours = both(folder, polygraphy_trt, *line)
    assert theirs.returncode == ours.returncode == 0, ours.stdout + ours.stderr
    assert said(ours) == said(theirs) and len(said(ours)) > 2
    assert left(folder / "ours") == left(folder / "theirs")


@pytest.mark.parametrize("trt_version", [10], ids=["trt10"], indirect=True)
def test_a_replay_of_polygraphy_answers(folder: Path, polygraphy_trt: dict[str, str]) -> None:
    theirs, _ = both(folder, polygraphy_trt, "--fp16", *CHECK, ENGINE)
    (folder / "theirs" / "polygraphy_debug_replay.json").rename(folder / "ours" / "known.json")
    again = layerwise(
        "debug", "precision", "c.onnx", "--fp16", "--load-debug-replay", "known.json", "--check", "false",
        cwd=folder / "ours", env={**polygraphy_trt, "LAYERWISE_HOME": str(folder / "home")},
    )  # fmt: skip
    assert said(again)[-1] == said(theirs)[-1] and "CAPTURED" not in again.stdout


@pytest.mark.parametrize(
    ("trt_version", "words", "reason"),
    [
        (10, (), "at least one precision besides float32"),
        (10, ("-p", "float16", "--int8"), "Please also specify `--fp16`"),
        (10, ("--fp16", "--strongly-typed"), "strongly typed"),
        (10, ("--fp16", "--jobs", "2"), "builds take turns"),
        (11, ("--fp16",), "is not available on TensorRT version 11"),  # Polygraphy ends with that too
    ],
    indirect=["trt_version"],
)
def test_what_cannot_be_marked_is_refused(
    folder: Path, fake_trt: dict[str, str], words: tuple[str, ...], reason: str
) -> None:
    environment = {**fake_trt, "LAYERWISE_HOME": str(folder / "home")}
    done = layerwise_on_fake(
        "debug", "precision", "c.onnx", *words, "--check", "true", cwd=folder / "ours", env=environment
    )
    assert done.returncode in (1, 2) and reason in done.stdout + done.stderr
    assert "Traceback" not in done.stderr and not list((folder / "ours").glob("*.engine"))

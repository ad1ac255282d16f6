"""One optimised session with all marked tensors as outputs, as Polygraphy has it: both tools agree on golden files."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from polygraphy.comparator import RunResults as TheirResults
from support.cli import layerwise, polygraphy
from support.comparing import OFF, ORT, REFERENCE, Compared, run_compare
from support.graphs import SIDE, random_model
from support.heavy import heavy_model
from support.models import conv_net, from_text

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

ALL = MarkSpec(everything=True)
EXACT = ToleranceSpec(atol={"": 0.0}, rtol={"": 0.0})
Observe = Literal["every", "executed", "marked"]


@pytest.fixture(scope="module", params=["conv_net", "squeezenet"])
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.onnx, in.json and golden.json: all tensors, written by the real Polygraphy."""
    folder = tmp_path_factory.mktemp(request.param)
    onnx.save(conv_net(16, 32) if request.param == "conv_net" else heavy_model("squeezenet"), folder / "model.onnx")
    words = ["--onnx-outputs", "mark", "all", "--save-inputs", "in.json", "--save-outputs", "golden.json"]
    assert polygraphy("run", "model.onnx", "--onnxrt", *words, cwd=folder).returncode == 0
    return folder


def against_golden(folder: Path, **more: Any) -> Compared:
    saved = RunnerSpec(kind="saved", results=str(folder / "golden.json"))
    feeds = FeedSpec(files=[str(folder / "in.json")])
    spec = CompareSpec(model=str(folder / "model.onnx"), runners=[ORT, saved], feeds=feeds, marks=ALL, tolerance=EXACT)
    return run_compare(msgspec.structs.replace(spec, **more))


def test_layers_that_polygraphy_saved_are_met_bit_for_bit(golden: Path) -> None:
    done = against_golden(golden)
    assert done.result["passed"] is True
    assert {row["mode"] for row in done.table()} == {"marked"}
    ((_, (theirs,)),) = TheirResults.load(str(golden / "golden.json")).items()
    assert {row["tensor"] for row in done.table()} == set(theirs)
    assert any("as those of the saved outputs were" in text for text in done.texts("log"))
    unfused = against_golden(golden, observe="every")
    assert unfused.result["passed"] is False  # fusion really changes these models
    assert {row["mode"] for row in unfused.table()} == {"saved"}


def test_the_command_lines_agree_on_golden_files_of_either(golden: Path) -> None:
    words = ["run", "model.onnx", "--onnxrt", "--load-inputs", "in.json"]
    ours = layerwise(*words, "--mark-all", "--load-outputs", "golden.json", cwd=golden)
    assert ours.returncode == 0, ours.stdout
    saved = layerwise(*words, "--mark-all", "--observe", "marked", "--save-outputs", "ours.json", cwd=golden)
    assert saved.returncode == 0, saved.stdout
    theirs = polygraphy(*words, "--onnx-outputs", "mark", "all", "--load-outputs", "ours.json", cwd=golden)
    assert theirs.returncode == 0, theirs.stdout
    ((_, (found,)),), ((_, (wanted,)),) = (
        TheirResults.load(str(golden / name)).items() for name in ("ours.json", "golden.json")
    )
    assert set(found) == set(wanted)
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


def test_some_tensors_that_polygraphy_saved_are_met_too(golden: Path, tmp_path: Path) -> None:
    names = [node.output[0] for node in onnx.load(golden / "model.onnx").graph.node if node.op_type == "Conv"][:2]
    words = ["--load-inputs", "in.json", "--onnx-outputs", *names, "--save-outputs", str(tmp_path / "golden.json")]
    assert polygraphy("run", "model.onnx", "--onnxrt", *words, cwd=golden).returncode == 0
    saved = RunnerSpec(kind="saved", results=str(tmp_path / "golden.json"))
    done = against_golden(golden, runners=[ORT, saved], marks=MarkSpec(names=names, only=True))
    assert done.result["passed"] is True and [row["tensor"] for row in done.table()] == names


def marked_outputs(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What onnxruntime gives, optimised: as the model is, and with all tensors as outputs."""
    plain = [value.name for value in model.graph.output]
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output]
    marked = onnx.ModelProto.FromString(model.SerializeToString())
    del marked.graph.output[:]
    marked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    found = []
    for each, wanted in ((model, plain), (marked, names)):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(each.SerializeToString(), options)
        found.append(dict(zip(wanted, session.run(wanted, feed), strict=True)))
    return found[0], found[1]


@settings(max_examples=10)
@given(seed=st.integers(0, 999), convolutions=st.booleans())
def test_rows_saved_values_and_canary_are_those_of_the_session(
    tmp_path_factory: pytest.TempPathFactory, seed: int, convolutions: bool
) -> None:
    folder = tmp_path_factory.mktemp("marked")
    model = conv_net(8, 16, seed) if convolutions else random_model(seed)
    onnx.save(model, folder / "model.onnx")
    saved = str(folder / "layers.safetensors")
    spec = CompareSpec(model=str(folder / "model.onnx"), runners=[ORT, OFF], marks=ALL, observe="marked")
    done = run_compare(msgspec.structs.replace(spec, save_outputs=saved))
    random = np.random.RandomState(1)
    shapes = {"image": (1, 3, 16, 16)} if convolutions else {"x": (SIDE, SIDE), "y": (SIDE, SIDE)}
    feed = {name: random.random_sample(shape).astype(np.float32) for name, shape in shapes.items()}
    plain, marked = marked_outputs(model, feed)
    outputs = load_results(saved)[0][0].outputs
    assert {row["tensor"] for row in done.table()} == set(outputs) == set(marked)
    assert all(outputs[name].tobytes() == marked[name].tobytes() for name in marked)
    with np.errstate(all="ignore"):
        errors = [
            np.abs(marked[name] - plain[name]).max()
            for name in plain
            if not np.array_equal(marked[name], plain[name], equal_nan=True)
        ]
    assert done.result["canary"]["moved"] == max(errors, default=0)


def test_what_constants_make_is_not_marked_as_polygraphy_does_not(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = from_text(
        "m (float[2] x) => (float[2] y) { c = Constant<value = float[2] {1.0, 2.0}>() s = Add(x, c) y = Relu(s) }"
    )
    onnx.save(model, path)
    done = run_compare(CompareSpec(model=str(path), runners=[ORT, OFF], marks=ALL, observe="marked"))
    assert [row["tensor"] for row in done.table()] == ["s", "y"]


@pytest.mark.parametrize("observe", ["every", "executed", "marked"])
@pytest.mark.parametrize("name", ["out.json", "out.safetensors", "folder"])
def test_saved_outputs_remember_how_they_were_observed_and_auto_follows(
    tmp_path: Path, observe: Observe, name: str
) -> None:
    onnx.save(conv_net(16, 32), tmp_path / "model.onnx")
    path = str(tmp_path / name)
    spec = CompareSpec(
        model=str(tmp_path / "model.onnx"), runners=[ORT, REFERENCE], marks=ALL, feeds=FeedSpec(iterations=2)
    )
    first = run_compare(msgspec.structs.replace(spec, observe=observe, save_outputs=path))
    results = load_results(path)
    assert [it.observed for it in results[0]] == [observe] * 2 and results[1][0].observed == "every"
    saved = RunnerSpec(kind="saved", results=path)
    again = run_compare(msgspec.structs.replace(spec, runners=[ORT, saved], tolerance=EXACT))
    assert again.result["passed"] is True and again.result["n_rows"] == first.result["n_rows"]
    assert {row["mode"] for row in again.table()} == {"marked" if observe == "marked" else "saved"}


def test_plain_outputs_say_nothing_and_change_nothing(tmp_path: Path) -> None:
    onnx.save(conv_net(16, 32), tmp_path / "model.onnx")
    path = str(tmp_path / "out.json")
    run_compare(CompareSpec(model=str(tmp_path / "model.onnx"), runners=[ORT], save_outputs=path))
    assert load_results(path)[0][0].observed == "" and "observed" not in Path(path).read_text()
    saved = RunnerSpec(kind="saved", results=path)
    done = run_compare(CompareSpec(model=str(tmp_path / "model.onnx"), runners=[ORT, saved], marks=ALL))
    assert {row["mode"] for row in done.table()} == {"saved"} and done.result["passed"] is True


def test_a_budget_that_cannot_hold_all_at_once_is_refused(golden: Path) -> None:
    for observe in ("marked", "auto"):
        with pytest.raises(UsageError, match=r"held at once.*--observe every"):
            against_golden(golden, observe=observe, memory_budget=1 << 20)
    assert against_golden(golden, memory_budget=4 << 30).result["passed"] is True


def test_a_graph_input_handed_through_is_saved_and_compared(tmp_path: Path) -> None:
    shape = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    outputs = [shape, helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [shape], outputs)
    onnx.save(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "model.onnx"
    )
    path = str(tmp_path / "out.safetensors")
    done = run_compare(
        CompareSpec(
            model=str(tmp_path / "model.onnx"), runners=[ORT, OFF], marks=ALL, observe="marked", save_outputs=path
        )
    )
    assert {row["tensor"]: row["mode"] for row in done.table()} == {"x": "plain", "y": "marked"}
    assert set(load_results(path)[0][0].outputs) == {"x", "y"}


def test_one_tensor_is_looked_at_among_all_that_were_marked(golden: Path) -> None:
    feeds = FeedSpec(files=[str(golden / "in.json")])
    spec = CompareSpec(model=str(golden / "model.onnx"), runners=[ORT, OFF], feeds=feeds, marks=ALL, observe="marked")
    row = max(run_compare(spec).table(), key=lambda row: row["max_abs"])
    assert row["max_abs"] > 0
    view = {"compare": msgspec.to_builtins(spec), "tensor": row["tensor"], "mode": row["mode"]}
    done = run_inline(JobSpec(action="tensor_view", params=view), lambda event: None, Workspace(), ACTIONS)
    assert done.result is not None and done.result["row"]["max_abs"] == row["max_abs"]


def test_the_next_step_of_a_failure_keeps_what_was_marked(golden: Path) -> None:
    words = ["--load-inputs", "in.json", "--load-outputs", "golden.json", "--mark-all"]
    faulty = ["--runner", "onnxrt,graph-optimization-level=disable", *words, "--rtol", "0", "--atol", "0"]
    done = layerwise("run", "model.onnx", *faulty, cwd=golden)
    (following,) = [line for line in done.stdout.splitlines() if " next  " in line and " run " in line]
    assert done.returncode == 1
    assert "--observe marked" in following and "--mark-all" in following and "--statistics" in following

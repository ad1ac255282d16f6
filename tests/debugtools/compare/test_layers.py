"""Comparisons of every marked tensor: streamed, with findings, canary, saved layers, other models, retries."""

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.comparing import OFF, ORT, REFERENCE, run_compare
from support.graphs import SIDE, random_model, run_whole
from support.layers import overflowing

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare import memory
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

ALL = MarkSpec(everything=True)


def test_every_tensor_has_a_row_and_outputs_come_from_the_plain_run(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, REFERENCE], marks=ALL))
    assert done.result["passed"] is True
    modes = {row["tensor"]: row["mode"] for row in done.table()}
    assert modes == {"a": "every", "b": "every", "c": "every", "y": "plain", "z": "plain"}
    assert [row["i"] for row in sorted(done.table(), key=lambda row: row["tensor"])] == [0, 1, 2, 3, 4]
    progress = [event for event in done.events if event["type"] == "progress"]
    assert (progress[-1]["done"], progress[-1]["total"], progress[-1]["unit"]) == (5, 5, "tensors")


def test_the_first_bad_layer_leaps_and_those_behind_it_propagate(model: str, faulty: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT], marks=ALL))
    assert done.result["first_bad"]["tensor"] == "b"
    assert done.row("a")["finding"] == "" and done.row("b")["finding"] == "leap"
    assert done.row("z")["finding"] == "propagated"
    assert done.row("b")["ampl"] is None and done.row("z")["ampl"] == pytest.approx(1.0, rel=1e-3)
    assert done.row("c")["ampl"] < 1


def test_an_overflow_is_found_where_it_happens(tmp_path: Path) -> None:
    good = overflowing(tmp_path / "good.onnx", half=False)
    bad = RunnerSpec(kind="onnxrt", threads=1, model=overflowing(tmp_path / "bad.onnx", half=True))
    feeds = FeedSpec(val_range={"": (0.5, 1.0)})
    done = run_compare(CompareSpec(model=good, runners=[bad, ORT], marks=ALL, feeds=feeds))
    findings = {row["tensor"]: row["finding"] for row in done.table()}
    assert findings == {"big": "", "sq0": "", "sq": "overflow", "s": "propagated", "y": "propagated"}
    assert done.row("sq")["inf"] == [16, 0]


@settings(max_examples=8)
@given(seed=st.integers(0, 999), segment=st.sampled_from([100, 500, 4000]))
def test_streamed_tensors_are_those_of_the_unsegmented_run(
    tmp_path_factory: pytest.TempPathFactory, seed: int, segment: int
) -> None:
    folder = tmp_path_factory.mktemp("streamed")
    onnx.save(random_model(seed), folder / "model.onnx")
    saved = str(folder / "layers.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SEGMENT", segment)
        patch.setattr(memory, "WAITING", 200)
        spec = CompareSpec(
            model=str(folder / "model.onnx"), runners=[OFF, ORT], marks=ALL, observe="every", save_outputs=saved
        )
        done = run_compare(spec)
    assert not list((done.folder / "artifacts").rglob("*.raw"))
    outputs = load_results(saved)[0][0].outputs
    rng = np.random.RandomState(1)
    feed = {name: rng.random_sample((SIDE, SIDE)).astype(np.float32) for name in ("x", "y")}
    names = sorted(outputs)
    expected = run_whole(onnx.load(folder / "model.onnx"), names, feed)
    assert len(names) == len(done.table())
    assert all(outputs[name].tobytes() == expected[name].tobytes() for name in names)


def test_marks_choose_by_name_glob_type_and_exclusion(model: str) -> None:
    def tensors(marks: MarkSpec) -> list[str]:
        done = run_compare(CompareSpec(model=model, runners=[ORT, OFF], marks=marks))
        return sorted(row["tensor"] for row in done.table())

    assert tensors(MarkSpec(names=["b"])) == ["b", "y", "z"]
    assert tensors(MarkSpec(names=["[ab]"], exclude=["z"])) == ["a", "b", "y"]
    assert tensors(MarkSpec(op_types=["Sigmoid"])) == ["c", "y", "z"]
    assert tensors(MarkSpec(names=["a", "y"], only=True)) == ["a", "y"]
    assert tensors(MarkSpec(everything=True, exclude=["b"])) == ["a", "c", "y", "z"]
    with pytest.raises(UsageError, match="makes no tensor 'sigmoid_out'"):
        tensors(MarkSpec(names=["sigmoid_out"]))
    with pytest.raises(UsageError, match="did you mean 'Sigmoid'"):
        tensors(MarkSpec(op_types=["Sigmoit"]))


def test_amplification_is_unknown_where_inputs_are_not_observed(model: str, faulty: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT], marks=MarkSpec(names=["c"])))
    assert done.row("c")["ampl"] is None and done.row("c")["finding"] == ""
    assert done.row("y")["ampl"] is not None


def test_the_canary_tells_whether_looking_moved_the_outputs(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, OFF], marks=ALL))
    assert done.result["canary"] == {"ok": True, "moved": 0.0, "text": done.result["canary"]["text"]}
    assert "bit-equal" in done.result["canary"]["text"]
    assert run_compare(CompareSpec(model=model, runners=[ORT, OFF])).result["canary"] is None


def test_layers_of_a_file_are_a_side(model: str, faulty: RunnerSpec, tmp_path: Path) -> None:
    path = str(tmp_path / "golden.json")
    run_compare(CompareSpec(model=model, runners=[ORT], marks=ALL, save_outputs=path))
    assert set(load_results(path)[0][0].outputs) == {"a", "b", "c", "y", "z"}
    saved = RunnerSpec(kind="saved", results=path)
    done = run_compare(CompareSpec(model=model, runners=[faulty, saved], marks=ALL))
    assert {row["mode"] for row in done.table()} == {"saved"} and done.result["n_rows"] == 5
    assert done.result["first_bad"]["tensor"] == "b"
    chosen = run_compare(CompareSpec(model=model, runners=[OFF, saved], marks=MarkSpec(names=["b"])))
    assert chosen.result["n_rows"] == 3 and chosen.result["passed"] is True


def test_a_model_with_other_nodes_and_names_is_compared_by_name_and_map(tmp_path: Path) -> None:
    good = overflowing(tmp_path / "good.onnx", half=False)
    other = onnx.load(overflowing(tmp_path / "half.onnx", half=True))
    for node in other.graph.node:
        node.input[:] = ["scaled" if name == "big" else name for name in node.input]
        node.output[:] = ["scaled" if name == "big" else name for name in node.output]
    onnx.save(other, tmp_path / "half.onnx")
    side = RunnerSpec(kind="onnxrt", threads=1, model=str(tmp_path / "half.onnx"))
    feeds = FeedSpec(val_range={"": (0.01, 0.1)})
    rules = ToleranceSpec(rtol={"": 1e-2})
    named = CompareSpec(model=good, runners=[side, ORT], marks=ALL, feeds=feeds, tolerance=rules, align="names")
    plain = run_compare(named)
    assert {row["tensor"] for row in plain.table()} == {"sq0", "sq", "s", "y"}
    assert any("big: not in" in text for text in plain.result["unmatched"])
    mapped = run_compare(
        CompareSpec(model=good, runners=[ORT, side], marks=ALL, feeds=feeds, tolerance=rules, rename={"big": "scaled"})
    )
    assert mapped.row("big")["tensor2"] == "scaled" and mapped.result["passed"] is True


@pytest.mark.parametrize("observe", ["executed", "auto"])
def test_executed_mode_shows_what_optimisation_does_and_moves_nothing(
    tmp_path: Path, observe: Literal["executed", "auto"]
) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(conv_model(), path)
    tolerance = ToleranceSpec(auto=True)
    done = run_compare(CompareSpec(model=path, runners=[ORT, OFF], marks=ALL, observe=observe, tolerance=tolerance))
    assert done.result["canary"]["moved"] == 0.0 and done.result["passed"] is True
    modes = {row["tensor"]: row["mode"] for row in done.table()}
    assert modes["relu1"] == "executed" and modes["y"] == "plain"
    assert "conv1" not in modes  # fused with its Relu
    assert any("fused away" in text for text in done.texts("log"))


def conv_model() -> onnx.ModelProto:
    """Convolutions of 16 channels and more, which the CPU provider blocks and fuses with their Relu."""
    rng = np.random.default_rng(0)
    nodes, weights, name = [], [], "x"
    for i, (inside, outside) in enumerate([(3, 16), (16, 24), (24, 32)], 1):
        weight = rng.standard_normal((outside, inside, 3, 3)).astype(np.float32) / 10
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"conv{i}"], pads=[1] * 4, name=f"c{i}"))
        nodes.append(helper.make_node("Relu", [f"conv{i}"], [f"relu{i}"], name=f"r{i}"))
        name = f"relu{i}"
    nodes.append(helper.make_node("GlobalAveragePool", [name], ["y"], name="pool"))
    graph = helper.make_graph(
        nodes,
        "convs",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_iterations_share_sessions_and_give_a_row_each(model: str, faulty: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT], marks=ALL, feeds=FeedSpec(iterations=3)))
    assert done.result["n_rows"] == 15 and done.result["iterations"] == 3
    assert [row["iteration"] for row in done.table() if row["tensor"] == "b"] == [0, 1, 2]


def test_one_runner_can_be_observed_and_validated_alone(tmp_path: Path) -> None:
    bad = overflowing(tmp_path / "bad.onnx", half=True)
    saved = tmp_path / "layers.safetensors"
    feeds = FeedSpec(val_range={"": (0.5, 1.0)})
    done = run_compare(
        CompareSpec(model=bad, runners=[ORT], marks=ALL, feeds=feeds, validate=True, save_outputs=str(saved))
    )
    assert done.result["passed"] is False
    assert {row["tensor"] for row in done.table("validate")} == {"sq16", "sq", "s", "y"}
    assert len(load_results(saved)[0][0].outputs) == 6


def test_tolerance_from_the_dtype_scales_with_the_values(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, OFF], marks=ALL, tolerance=ToleranceSpec(auto=True)))
    row = done.row("b")
    assert row["rtol"] == pytest.approx(32 * 16 * 2**-24 * 2**0.5)
    assert 0 < row["atol"] < row["rtol"] * row["stats"][1]["max"]


def test_a_retry_makes_only_the_rows_that_are_missing(model: str, faulty: RunnerSpec) -> None:
    spec = CompareSpec(model=model, runners=[faulty, ORT], marks=ALL)
    first = run_compare(spec)
    lines = (first.folder / "events.jsonl").read_text().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if '"tensor":"b"' in line.replace(" ", ""))
    (first.folder / "events.jsonl").write_text("".join(lines[: cut + 1]))
    EventWriter(first.folder).write("state", state="running", attempt=2)
    again = run_compare(spec, first.folder, attempt=2)
    tensors = [row["tensor"] for row in again.table()]
    assert sorted(tensors) == ["a", "b", "c", "y", "z"] and again.result["n_rows"] == 5
    assert {row["tensor"]: row["finding"] for row in again.table()}["c"] == "propagated"


def test_stopping_at_the_first_failure_leaves_whole_files(model: str, faulty: RunnerSpec, tmp_path: Path) -> None:
    path = str(tmp_path / "layers.json")
    done = run_compare(CompareSpec(model=model, runners=[faulty, ORT], marks=ALL, fail_fast=True, save_outputs=path))
    assert done.result["n_failed"] == 1 and done.table()[-1]["tensor"] == "b"
    assert {"a", "b"} <= set(load_results(path)[0][0].outputs)

"""Comparisons of graph outputs: pairs, iterations, verdicts, files, scripts."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from polygraphy.comparator import RunResults as PolygraphyResults
from support.comparing import OFF, ORT, REFERENCE, run_compare
from support.layers import chain

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.results.io import load_accuracy, load_results
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec


@pytest.fixture
def model(tmp_path: Path) -> str:
    return chain(tmp_path / "model.onnx")


@pytest.fixture
def other(tmp_path: Path) -> RunnerSpec:
    """A runner with a model of its own that differs in y only."""
    return RunnerSpec(kind="onnxrt", threads=1, model=chain(tmp_path / "other.onnx", step=1.01))


def test_two_runners_of_one_model_agree(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, REFERENCE]))
    assert done.result["passed"] is True
    assert [row["tensor"] for row in done.table()] == ["y", "z"]
    row = done.row("y")
    assert (row["mode"], row["node"], row["op"], row["i"], row["pair"]) == ("plain", "shift", "Add", 3, [0, 1])
    assert row["shape"] == [2, 8] and row["dtype"] == ["float32", "float32"] and row["size"] == 16
    assert row["metrics"] == {"simple": True} and row["passed"] is True
    assert set(row["stats"][0]) == {"mean", "std", "min", "argmin", "max", "argmax", "avg_magnitude"}
    assert done.table("inputs")[0]["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 8]}]
    assert [run["index"] for run in done.table("runs")] == [0, 1]
    assert done.result["summary"][0]["rate"] == 1.0


def test_a_difference_is_found_and_the_first_bad_output_named(model: str, other: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[other, ORT]))
    assert done.result["passed"] is False
    assert (done.result["n_rows"], done.result["n_failed"]) == (2, 1)
    assert done.result["first_bad"]["tensor"] == done.result["worst"]["tensor"] == "y"
    row = done.row("y")
    assert row["max_abs"] == pytest.approx(0.01, rel=1e-4) and row["over"] == 16
    assert row["required"]["abs"] == row["max_abs"]


def test_tolerances_are_per_output_and_unknown_names_are_told(model: str, other: RunnerSpec) -> None:
    rules = ToleranceSpec(atol={"y": 0.1, "typo_y": 1.0})
    done = run_compare(CompareSpec(model=model, runners=[other, ORT], tolerance=rules))
    assert done.result["passed"] is True
    assert done.row("y")["atol"] == 0.1 and done.row("z")["atol"] == 1e-5
    assert any("typo_y" in text for text in done.texts("warning"))


def test_three_runners_are_compared_in_pairs(model: str, other: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, other, OFF]))
    verdicts = {(tuple(row["pair"]), row["tensor"]): row["passed"] for row in done.table()}
    assert verdicts == {((0, 1), "y"): False, ((0, 1), "z"): True, ((1, 2), "y"): False, ((1, 2), "z"): True}
    assert [entry["passed"] for entry in done.result["summary"]] == [0, 0]


def test_iterations_and_warm_up(model: str) -> None:
    feeds = FeedSpec(iterations=3, val_range={"": (-1.0, 1.0)})
    done = run_compare(CompareSpec(model=model, runners=[ORT, OFF], feeds=feeds, warm_up=2))
    assert done.result["iterations"] == 3
    assert [row["iteration"] for row in done.table() if row["tensor"] == "y"] == [0, 1, 2]
    assert len({row["stats"][0]["mean"] for row in done.table() if row["tensor"] == "y"}) == 3


def test_runners_one_after_the_other_give_the_same(model: str, other: RunnerSpec) -> None:
    spec = CompareSpec(model=model, runners=[ORT, other], feeds=FeedSpec(iterations=2))
    together = run_compare(spec).table()
    apart = run_compare(CompareSpec(model=model, runners=spec.runners, feeds=spec.feeds, sequential=True)).table()
    assert [row["max_abs"] for row in together] == [row["max_abs"] for row in apart]


def test_fail_fast_stops_at_the_first_failure(model: str, other: RunnerSpec) -> None:
    done = run_compare(CompareSpec(model=model, runners=[other, ORT], fail_fast=True, feeds=FeedSpec(iterations=4)))
    assert done.result["passed"] is False and len(done.table()) == 1


def test_all_metrics_at_once(model: str, other: RunnerSpec) -> None:
    metrics = ["simple", "l2", "cosine_similarity", "psnr", "snr", "indices"]
    done = run_compare(CompareSpec(model=model, runners=[other, ORT], metrics=metrics))  # type: ignore[arg-type]
    assert done.row("z")["metrics"] == dict.fromkeys(metrics, True)
    assert done.row("y")["metrics"]["cosine_similarity"] is True
    assert done.row("y")["metrics"]["l2"] is False
    assert {entry["metric"] for entry in done.result["summary"]} == set(metrics)


def test_an_absent_lpips_fails_with_what_to_install(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, OFF], metrics=["perceptual_metrics"]))
    assert done.result["passed"] is False
    assert "layerwise[perceptual]" in done.row("y")["note"] or "rank 3" in done.row("y")["note"]


@pytest.mark.parametrize("name", ["out.json", "out.safetensors", "folder"])
def test_outputs_are_saved_and_serve_as_a_side(model: str, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    run_compare(CompareSpec(model=model, runners=[ORT], feeds=FeedSpec(iterations=2), save_outputs=path))
    assert set(load_results(path)[0][1].outputs) == {"y", "z"}
    saved = RunnerSpec(kind="saved", results=path)
    done = run_compare(CompareSpec(model=model, runners=[OFF, saved], feeds=FeedSpec(iterations=2)))
    assert done.result["passed"] is True and done.result["n_rows"] == 4
    assert {row["mode"] for row in done.table()} == {"saved"}
    files = run_compare(CompareSpec(runners=[saved, saved]))
    assert files.result["passed"] is True and files.result["n_rows"] == 4
    if name == "out.json":
        assert len(PolygraphyResults.load(path)) == 1


def test_inputs_and_accuracy_are_saved(model: str, other: RunnerSpec, tmp_path: Path) -> None:
    spec = CompareSpec(
        model=model,
        runners=[other, ORT],
        metrics=["simple", "l2"],
        save_inputs=str(tmp_path / "in.json"),
        save_input_blob=str(tmp_path / "blob"),
        save_accuracy=str(tmp_path / "accuracy.json"),
    )
    run_compare(spec)
    loaded = load_accuracy(tmp_path / "accuracy.json")
    assert loaded.passed is False and len(loaded.results) == 2
    assert (tmp_path / "blob" / "0000000000" / "x.bin").stat().st_size == 64
    again = run_compare(
        CompareSpec(model=model, runners=[other, ORT], feeds=FeedSpec(files=[str(tmp_path / "in.json")]))
    )
    assert again.row("y")["max_abs"] == pytest.approx(0.01, rel=1e-4)


def test_average_over_iterations(model: str, other: RunnerSpec) -> None:
    base = CompareSpec(model=model, runners=[other, ORT], check_average=True, feeds=FeedSpec(iterations=2))
    with pytest.raises(UsageError, match="statistic to average"):
        run_compare(base)
    for atol, passed in ((0.1, True), (1e-3, False)):
        rules = ToleranceSpec(stat={"": "mean"}, atol={"": atol})
        spec = CompareSpec(model=model, runners=base.runners, check_average=True, feeds=base.feeds, tolerance=rules)
        assert run_compare(spec).result["passed"] is passed


def test_top_k_is_compared_after_postprocessing(model: str, other: RunnerSpec) -> None:
    feeds = FeedSpec(val_range={"": (-1.0, 1.0)})
    done = run_compare(
        CompareSpec(
            model=model, runners=[other, ORT], feeds=feeds, postprocess={"y": "top-3,axis=1"}, metrics=["indices"]
        )
    )
    assert done.result["passed"] is True
    assert done.row("y")["shape"] == [2, 3] and done.row("y")["dtype"][0] == "int64"
    with pytest.raises(UsageError, match="top-K"):
        run_compare(CompareSpec(model=model, runners=[ORT, OFF], postprocess={"": "top-x"}))


def test_scripts_postprocess_and_compare(model: str, other: RunnerSpec, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "def postprocess_outputs(result):\n"
        "    return {'total': result['y'].sum(keepdims=True), 'z': result['z']}\n"
        "def compare_outputs(first, second):\n"
        "    assert first.runner_name != second.runner_name\n"
        "    return {name: abs(first[name] - second[name]).max() < 1 for name in first}\n"
        "def broken(first, second):\n"
        "    return first['nothing']\n"
    )
    done = run_compare(
        CompareSpec(model=model, runners=[other, ORT], postprocess_script=str(script), compare_script=str(script))
    )
    assert [(row["tensor"], row["metrics"]) for row in done.table()] == [
        ("total", {"script": True}),
        ("z", {"script": True}),
    ]
    with pytest.raises(LayerwiseError, match=r"mine\.py, line 7"):
        run_compare(CompareSpec(model=model, runners=[other, ORT], compare_script=f"{script}:broken"))


def test_validation_finds_what_is_not_finite(tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    np.savez(inputs, x=np.full((2, 8), np.inf, np.float32))
    model = chain(tmp_path / "model.onnx")
    done = run_compare(CompareSpec(model=model, runners=[ORT], feeds=FeedSpec(files=[str(inputs)]), validate=True))
    assert done.result["passed"] is False and done.result["valid"] is False
    (row,) = done.table("validate")
    assert (row["tensor"], row["inf"], row["first"]) == ("z", 16, [0, 0])


def test_outputs_must_have_the_same_names_or_be_mapped(model: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    run_compare(CompareSpec(model=model, runners=[ORT], save_outputs=str(path)))
    renamed = load_results(path)
    result = renamed[0][0]
    result.outputs = {f"new_{name}": array for name, array in result.outputs.items()}
    renamed.save(tmp_path / "renamed.json")
    saved = RunnerSpec(kind="saved", results=str(tmp_path / "renamed.json"))
    with pytest.raises(UsageError, match="no outputs in common"):
        run_compare(CompareSpec(model=model, runners=[ORT, saved], strict_names=True))
    similar = run_compare(CompareSpec(model=model, runners=[ORT, saved]))
    assert similar.result["passed"] is True and similar.row("z")["tensor2"] == "new_z"
    assert "output: new_y corresponds to output: y" in " ".join(similar.texts("warning"))
    mapped = run_compare(CompareSpec(model=model, runners=[ORT, saved], rename={"y": "new_y", "z": "new_z"}))
    assert mapped.result["passed"] is True
    assert mapped.row("y")["tensor2"] == "new_y"
    with pytest.raises(UsageError, match="no other side has a new_q"):
        run_compare(CompareSpec(model=model, runners=[ORT, saved], rename={"y": "new_q"}))
    with pytest.raises(UsageError, match="no side has a tensor q"):
        run_compare(CompareSpec(model=model, runners=[ORT, saved], rename={"q": "new_y"}))


def test_exclusions_of_what_is_not_there_are_told(model: str) -> None:
    marks = MarkSpec(exclude=["z", "yy"])
    done = run_compare(CompareSpec(model=model, runners=[ORT, ORT], marks=marks))
    assert [row["tensor"] for row in done.table()] == ["y"]
    assert done.texts("warning") == ["'yy' is excluded, which is not compared; did you mean 'y'?"]


def test_no_iteration_is_no_failure_and_fewer_are_refused(model: str) -> None:
    done = run_compare(CompareSpec(model=model, runners=[ORT, ORT], feeds=FeedSpec(iterations=0)))
    assert done.result["passed"] is True and done.result["iterations"] == 0
    with pytest.raises(UsageError, match="give 0 or more"):
        run_compare(CompareSpec(model=model, runners=[ORT, ORT], feeds=FeedSpec(iterations=-1)))


def test_a_retry_does_not_repeat_rows(model: str, other: RunnerSpec) -> None:
    spec = CompareSpec(model=model, runners=[other, ORT], feeds=FeedSpec(iterations=2))
    first = run_compare(spec)
    EventWriter(first.folder).write("state", state="running", attempt=2)
    again = run_compare(spec, first.folder, attempt=2)
    assert len(again.table()) == len(first.table()) == 4
    assert again.result["n_rows"] == 4 and again.result["passed"] is False


def test_plots_are_drawn(model: str, other: RunnerSpec, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run_compare(
        CompareSpec(
            model=model,
            runners=[other, ORT],
            save_heatmaps=str(tmp_path / "heat"),
            save_error_plots=str(tmp_path / "plots"),
        )
    )
    assert len(list((tmp_path / "heat").glob("*.png"))) == 2
    assert len(list((tmp_path / "plots").glob("*.png"))) == 4


def test_wrong_requests_are_told(model: str) -> None:
    with pytest.raises(UsageError, match="nothing to run"):
        run_compare(CompareSpec(model=model))
    with pytest.raises(UsageError, match="no model"):
        run_compare(CompareSpec(runners=[ORT]))


def two_outputs(path: Path, one: str, other: str) -> str:
    """A model with two outputs, twice and thrice its input."""
    factors = [numpy_helper.from_array(np.float32(factor), f"by{factor}") for factor in (2, 3)]
    nodes = [helper.make_node("Mul", ["x", f"by{factor}"], [name]) for factor, name in ((2, one), (3, other))]
    x, *outputs = (helper.make_tensor_value_info(name, 1, [4]) for name in ("x", one, other))
    graph = helper.make_graph(nodes, "g", [x], outputs, factors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_outputs_of_other_names_are_paired_one_to_one(tmp_path: Path) -> None:
    """`s` lies within `boxes` too."""
    model = two_outputs(tmp_path / "long.onnx", "scores", "boxes")
    other = RunnerSpec(kind="onnxrt", model=two_outputs(tmp_path / "short.onnx", "s", "b"))
    done = run_compare(CompareSpec(model=model, runners=[ORT, other]))
    assert done.result["passed"] is True
    assert [row["tensor"] for row in done.table()] == ["scores", "boxes"]

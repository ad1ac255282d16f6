"""Which backends take a model: loaded and run as it is, and where not, which kinds of nodes are at fault."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper
from support import bad_models, models
from support.cli import layerwise

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.checks.compatibility.action import compatibility
from layerwise._tool.debugtools.checks.compatibility.spec import CompatibilitySpec

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
ORT, REFERENCE = RunnerSpec(kind="onnxrt"), RunnerSpec(kind="reference")
Row = dict[str, Any]


def probed(model: onnx.ModelProto, folder: Path, *runners: RunnerSpec, **fields: Any) -> tuple[Row, list[Row]]:
    """The job's result and its table of operators."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    spec = CompatibilitySpec(model=str(path), runners=list(runners), **fields)
    job, lock = Workspace().create(JobSpec(action="compatibility", params=msgspec.to_builtins(spec)))
    os.close(lock)
    result = msgspec.to_builtins(compatibility(JobContext(job, 1)))
    rows = [event["row"] for event in read_events(job) if event.get("table") == "operators"]
    return result, rows


def codes(rows: list[Row], backend: int = 0) -> dict[tuple[str, str], int]:
    """Operator and code to number of nodes."""
    return {(row["op"], row["code"]): row["nodes"] for row in rows if row["backend"] == backend}


def test_a_sound_model_is_taken_by_all(tmp_path: Path) -> None:
    result, rows = probed(models.conv_net(), tmp_path, ORT, REFERENCE)
    assert result["passed"] and [backend["takes"] for backend in result["backends"]] == [True, True]
    assert {row["code"] for row in rows} == {"taken"}
    assert sum(row["nodes"] for row in rows) == 2 * len(models.conv_net().graph.node)
    gemm = next(row for row in rows if row["op"] == "Gemm")
    assert (gemm["version"], gemm["types"]) == (13, ["float32"])


@pytest.mark.parametrize("runner", [ORT, REFERENCE], ids=["onnxrt", "onnx"])
@pytest.mark.parametrize(("kind", "op"), [("bad_op", "MatMull"), ("bad_opset", "Gelu"), ("custom_op", "Mystery")])
def test_operators_without_a_schema(kind: str, op: str, runner: RunnerSpec, tmp_path: Path) -> None:
    result, rows = probed(bad_models.KINDS[kind](), tmp_path, runner)
    assert not result["passed"]
    assert codes(rows)[op, "no schema"] == 1
    assert codes(rows)["Relu", "taken"] == 1


def test_a_type_that_one_backend_has_no_kernel_for(tmp_path: Path) -> None:
    model = models.from_text(
        """g (bfloat16[2] x, float[2] f) => (bfloat16[2] y, float[2] z) {
            [a] h = Mul(x, x)
            [b] y = Mul(h, x)
            [c] z = Mul(f, f)
        }"""
    )
    result, rows = probed(model, tmp_path, ORT, REFERENCE)
    assert [backend["takes"] for backend in result["backends"]] == [False, True]
    assert codes(rows) == {("Mul", "no kernel"): 2, ("Mul", "taken"): 1}
    refused = rows[0]
    assert (refused["types"], refused["first"], refused["version"]) == (["bfloat16"], "a", 14)


def test_nodes_that_load_and_fail_when_they_run(tmp_path: Path) -> None:
    result, rows = probed(bad_models.gather_out_of_range(), tmp_path, ORT, REFERENCE)
    assert not result["passed"]
    for backend in (0, 1):
        assert codes(rows, backend) == {("Gather", "fails"): 1, ("Relu", "taken"): 2}
    assert rows[0]["first"] == "Gather_a" and "out of data bounds" in rows[0]["reason"]


def test_types_behind_a_node_whose_shapes_do_not_fit_are_still_known(tmp_path: Path) -> None:
    _, rows = probed(bad_models.matmul_shapes(), tmp_path, ORT)
    assert codes(rows) == {("MatMul", "fails"): 2, ("MatMul", "taken"): 1, ("Relu", "taken"): 1}


def test_what_stands_behind_an_unknown_operator_is_not_known(tmp_path: Path) -> None:
    _, rows = probed(bad_models.custom_op(), tmp_path, ORT)
    assert codes(rows)["Tanh", "unknown"] == 1


def test_bodies_are_tried_with_their_node(tmp_path: Path) -> None:
    model = models.if_model()
    node = next(entry for entry in model.graph.node if entry.op_type == "If")
    node.attribute[0].g.node[0].attribute.append(helper.make_attribute("bogus", 1))
    _, rows = probed(model, tmp_path, ORT)
    assert codes(rows) == {("If", "refused"): 1, ("Mul", "taken"): 1}


def test_a_large_model_of_few_kinds_is_probed_in_seconds(tmp_path: Path) -> None:
    model = onnx.load(LIGHT / "light_densenet121.onnx")
    model.graph.node[-1].attribute.append(helper.make_attribute("bogus", 1))
    result, rows = probed(model, tmp_path, ORT)
    assert result["backends"][0]["seconds"] < 10
    assert sum(row["nodes"] for row in rows if row["code"] != "taken") == 1


def test_a_provider_that_is_not_here_and_tensorrt_say_so(tmp_path: Path) -> None:
    absent = RunnerSpec(kind="onnxrt", providers=["migraphx", "cpu"])
    result, rows = probed(models.mlp(), tmp_path, absent, RunnerSpec(kind="trt"), ORT)
    assert [backend["available"] for backend in result["backends"]] == [False, False, True]
    assert [backend["takes"] for backend in result["backends"]] == [False, False, True]
    assert "migraphx" in result["backends"][0]["name"] and "TensorRT cannot be" in result["backends"][1]["reason"]
    assert {row["backend"] for row in rows} == {2}


def test_nodes_that_fall_back_from_cuda_are_counted(tmp_path: Path) -> None:
    cuda = RunnerSpec(kind="onnxrt", providers=["cuda", "cpu"])
    model = models.from_text("g (float[2,2] x) => (float y) { [on_gpu] s = Add(x, x)\n [on_cpu] y = Det(s) }")
    result, rows = probed(model, tmp_path, cuda)
    if not result["backends"][0]["available"]:
        pytest.skip(result["backends"][0]["reason"])
    assert result["passed"]
    assert codes(rows) == {("Det", "elsewhere"): 1, ("Add", "taken"): 1, ("Det", "taken"): 1}


def test_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no input"):
        probed(models.mlp(), tmp_path, ORT, feeds=FeedSpec(shapes={"nope": [[1]]}))
    with pytest.raises(BadFile):
        compatibility_of_missing(tmp_path)


def compatibility_of_missing(folder: Path) -> None:
    job, lock = Workspace().create(
        JobSpec(action="compatibility", params={"model": str(folder / "none.onnx"), "runners": [{"kind": "onnxrt"}]})
    )
    os.close(lock)
    compatibility(JobContext(job, 1))


def test_inputs_that_cannot_be_made_leave_it_at_loading(tmp_path: Path) -> None:
    model = models.from_text("g (seq(float[2]) s) => (float[2] y) <int64 i = {0}> { [at] y = SequenceAt(s, i) }")
    result, _ = probed(model, tmp_path, ORT)
    assert result["passed"] and not result["backends"][0]["ran"]


def test_the_command_prints_a_table_and_its_exit_code_says_who_takes_it(tmp_path: Path) -> None:
    (tmp_path / "good.onnx").write_bytes(bad_models.good().SerializeToString())
    (tmp_path / "bad.onnx").write_bytes(bad_models.bad_op().SerializeToString())
    good = layerwise("check", "compatibility", "good.onnx", "--onnxrt", "--onnx", cwd=tmp_path)
    assert good.returncode == 0 and "onnx takes the model: 2 nodes load and run" in good.stdout
    bad = layerwise("check", "compatibility", "bad.onnx", "--onnxrt", cwd=tmp_path)
    assert bad.returncode == 1
    line = next(line for line in bad.stdout.splitlines() if "no schema" in line)
    assert line.split()[:5] == ["1", "MatMull", "17", "float32", "no"]


def test_the_command_names_tensorrt_as_not_there_beside_the_others(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(bad_models.good().SerializeToString())
    done = layerwise("check", "compatibility", "m.onnx", "--trt", "--onnxrt", "--json", cwd=tmp_path)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [backend["name"] for backend in document["backends"]] == ["trt", "onnxrt (cpu)"]
    assert [backend["takes"] for backend in document["backends"]] == [False, True]
    assert layerwise("check", "compatibility", "m.onnx", cwd=tmp_path).returncode == 2


def test_given_inputs_reach_the_model(tmp_path: Path) -> None:
    model = bad_models.good()
    np.savez(tmp_path / "x.npz", x=np.ones((3, 3), np.float32))
    with pytest.raises(UsageError):
        probed(model, tmp_path, ORT, feeds=FeedSpec(files=[str(tmp_path / "x.npz")]))

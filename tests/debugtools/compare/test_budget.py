"""Memory stays within a budget: measured in a real worker process."""

from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from onnx import TensorProto, helper
from support.comparing import OFF, ORT

from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

MB = 1 << 20
NODES, TENSOR = 60, 4 * MB
BUDGET = 200 * MB


def large_chain(path: Path) -> str:
    """60 nodes, each with an output of 4 MB: marking all of them is 480 MB for two runners."""
    ops, names = ["Neg", "Abs", "Sin", "Relu"], ["x"]
    nodes = []
    for i in range(NODES):
        name = f"t{i}"
        reads = [names[-1], names[-4]] if i % 7 == 6 else [names[-1]]
        nodes.append(helper.make_node("Add" if len(reads) == 2 else ops[i % 4], reads, [name]))
        names.append(name)
    nodes.append(helper.make_node("ReduceMean", [names[-1]], ["y"], keepdims=0))
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [TENSOR // 4])
    graph = helper.make_graph(nodes, "large", [info], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


def run(spec: CompareSpec) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    view = run_inline(JobSpec(action="compare", params=msgspec.to_builtins(spec)), events.append, Workspace(), ACTIONS)
    assert view.state == "done", view
    assert view.result is not None
    return view.result, events


def test_the_peak_stays_within_the_budget(tmp_path: Path) -> None:
    path = large_chain(tmp_path / "large.onnx")
    marks = MarkSpec(everything=True)
    result, events = run(CompareSpec(model=path, runners=[ORT, OFF], marks=marks, memory_budget=BUDGET))
    assert result["n_rows"] == NODES + 1 and result["passed"] is True
    if not result["peak_memory"]:
        pytest.skip("this system does not tell a process's peak")
    assert result["peak_memory"] <= 1.1 * BUDGET
    assert not [event for event in events if event["type"] == "warning" and "budget" in event["text"]]


def test_a_budget_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    path = large_chain(tmp_path / "large.onnx")
    result, events = run(CompareSpec(model=path, runners=[ORT], marks=MarkSpec(names=["t5"]), memory_budget=50 * MB))
    assert result["passed"] is True
    assert [event for event in events if event["type"] == "warning" and "budget of 52 MB" in event["text"]]

"""The job `bench` on real models."""

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.bench import LAYERS, chain_pair
from support.forked import ForkedWorker
from support.forked_jobs import forked_jobs
from support.jobs import events_of, jobs_home, until, wait_for
from support.models import bf16_model, conv_net, dynamic_model, loop_model, mlp, save, sequence_model, string_model

from layerwise._tool.backends.bench.trtexec_files import read_profile, read_times
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS

QUICK = {"warm_up": 0.0, "duration": 0.0, "iterations": 20}
CPU = [{"kind": "onnxrt", "threads": 1}]
__all__ = ["jobs_home"]  # a fixture


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker imports anew; that of a submitted job does."""
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)


Rows = dict[str, list[dict[str, Any]]]


def bench(model: Path, **params: Any) -> tuple[JobView, Rows, list[str]]:
    """The job as it ended, its rows by table, and what it warned of."""
    rows: Rows = {}
    said: list[str] = []

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "row":
            rows.setdefault(event["table"], []).append(event["row"])
        elif event["type"] == "warning":
            said.append(event["text"])

    given = {"model": str(model), "runners": CPU, "plan": QUICK, **params}
    return run_inline(JobSpec(action="bench", params=given), listen, Workspace(), ACTIONS), rows, said


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chain_pair(tmp_path_factory.mktemp("models"))[0]


def test_a_run_is_told_in_numbers(chain: Path) -> None:
    view, rows, _ = bench(chain, plan={**QUICK, "streams": 2, "warm_up_runs": 3})
    row = rows["runs"][0]
    assert view.state == "done" and view.result is not None and view.result["runs"] == rows["runs"]
    assert (row["runs"], row["streams"], row["warm_ups"]) == (40, 2, 6)
    assert row["qps"] == pytest.approx(row["runs"] / row["seconds"]) == row["items_per_second"]
    latency = row["latency"]
    listed = [latency["min"], *latency["percentiles"].values(), latency["max"]]
    assert listed == sorted(listed) and list(latency["percentiles"]) == ["90", "95", "99"]
    assert row["phases"] == {"compute": latency}
    assert view.result["measured_on"]["versions"] and view.result["measured_on"]["cpus"] >= 1


def test_every_file_holds_what_was_measured(chain: Path, tmp_path: Path) -> None:
    names = {"times": "t.json", "profile": "p.json", "layers": "l.json", "output": "o.json", "report": "r.json"}
    exports = {key: str(tmp_path / name) for key, name in names.items()}
    view, rows, _ = bench(chain, exports=exports, profile=True, layers=True)
    assert view.state == "done"
    latencies = read_times(tmp_path / "t.json").latency
    report = json.loads((tmp_path / "r.json").read_text())
    assert len(latencies) == 20 and report["runs"][0]["latency_ms"] == pytest.approx(latencies, abs=1e-5)
    assert max(latencies) == pytest.approx(rows["runs"][0]["latency"]["max"])
    assert [layer.name for layer in read_profile(tmp_path / "p.json")] == [row["name"] for row in rows["profile"]]
    listed = json.loads((tmp_path / "l.json").read_text())["Layers"]
    assert {layer["Name"] for layer in listed} == {row["name"] for row in rows["profile"]}
    assert listed[0]["Metadata"] == "[ONNX Layer: /layer.0/MatMul]" and listed[0]["Inputs"][0]["Dimensions"] == [1, 8]
    for key in ("times", "profile", "report"):
        exports[key] = exports[key].replace(".json", ".csv")
    bench(chain, exports=exports, profile=True)
    tables = {name: list(csv.DictReader((tmp_path / name).open())) for name in ("t.csv", "p.csv", "r.csv")}
    assert [len(table) for table in tables.values()] == [20, 2 * LAYERS, 1]
    assert float(tables["r.csv"][0]["p99_ms"]) >= float(tables["r.csv"][0]["median_ms"])


def test_the_outputs_are_those_of_a_loop_written_by_hand(chain: Path, tmp_path: Path) -> None:
    raw = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
    raw.tofile(tmp_path / "x.bin")
    exports = {"output": str(tmp_path / "o.json")}
    view, _, _ = bench(chain, exports=exports, raw_inputs={"x": str(tmp_path / "x.bin")})
    assert view.state == "done"
    session = onnxruntime.InferenceSession(chain, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": raw})[0]
    found = json.loads((tmp_path / "o.json").read_text())[0]
    assert found["name"] == "y" and found["dimensions"] == "1x8"
    np.testing.assert_allclose(np.array(found["values"], np.float32), wanted[0], rtol=1e-6)


def test_layers_are_the_nodes_of_the_model_where_they_can_be(tmp_path: Path) -> None:
    """Convolutions are fused and blocked: their layers are still the model's nodes."""
    path = save(conv_net(), tmp_path / "conv.onnx")
    model = onnx.load(path)
    nodes = {node.name: node for node in model.graph.node}
    view, rows, _ = bench(path, profile=True)
    assert view.state == "done"
    layers = rows["profile"]
    assert sum(row["percent"] for row in layers) == pytest.approx(100)
    assert {row["node"] for row in layers} <= {*nodes, ""}
    of_model = [row for row in layers if row["node"]]
    assert any(row["op"] == "Conv" or row["op"] == "FusedConv" for row in of_model)
    for row in of_model:
        assert row["tensor"] in nodes[row["node"]].output
    assert all(row["calls"] == layers[0]["calls"] >= 5 for row in layers)


def test_nodes_without_a_name_are_told_apart(chain: Path, tmp_path: Path) -> None:
    model = onnx.load(chain)
    hostile = ['a"b', "c\\d", "e\nf", "", "", "", "ü\x1b[31m"]
    for node, name in zip(model.graph.node, hostile, strict=False):
        node.name = name
    view, rows, _ = bench(save(model, tmp_path / "names.onnx"), profile=True)
    assert view.state == "done"
    made = [node.output[0] for node in model.graph.node]
    assert [row["tensor"] for row in rows["profile"]] == made


def test_a_body_runs_once_a_trip(tmp_path: Path) -> None:
    np.array(4, np.int64).tofile(tmp_path / "trips.bin")
    view, rows, _ = bench(save(loop_model(), tmp_path / "loop.onnx"), profile=True,
                          raw_inputs={"trips": str(tmp_path / "trips.bin")})  # fmt: skip
    assert view.state == "done"
    calls = {row["op"]: row["calls"] for row in rows["profile"]}
    assert calls["Add"] % calls["Loop"] == 0 and calls["Add"] >= 4 * calls["Loop"]


def test_batch_sizes(tmp_path: Path) -> None:
    path = save(dynamic_model(), tmp_path / "dynamic.onnx")
    feeds = {"shapes": {"x": [[9, 5]]}, "val_range": {"": [1.0, 2.0]}}
    view, rows, _ = bench(path, batches=[1, 4], feeds=feeds, exports={"output": str(tmp_path / "o.json")})
    assert view.state == "done" and [row["batch"] for row in rows["runs"]] == [1, 4]
    assert rows["runs"][1]["items_per_second"] == pytest.approx(4 * rows["runs"][1]["qps"])
    assert json.loads((tmp_path / "o.json").read_text())[0]["dimensions"] == "4x5"


def test_runners_in_turns_are_compared_with_the_last_and_with_a_report(chain: Path, tmp_path: Path) -> None:
    before = str(tmp_path / "before.json")
    bench(chain, exports={"report": before})
    runners = [*CPU, {"kind": "onnxrt", "threads": 1, "graph_optimization_level": "disable"}]
    view, rows, _ = bench(chain, runners=runners, against=before)
    assert view.state == "done" and view.result is not None
    pairs = [(row["name"], row["reference"]) for row in rows["comparisons"]]
    plain, other = (row["runner"] for row in rows["runs"])
    assert pairs == [(plain, other), (plain, f"before.json ({plain})"), (other, f"before.json ({plain})")]
    assert all(row["words"] and row["verdict"] in ("faster", "slower", "no difference") for row in rows["comparisons"])
    assert [row["runs"] for row in rows["runs"]] == [20, 20]


@pytest.mark.parametrize("make", [bf16_model, string_model, sequence_model])
def test_types_that_numpy_lacks_strings_and_sequences(tmp_path: Path, make: Any) -> None:
    view, rows, _ = bench(save(make(), tmp_path / "m.onnx"))
    assert view.state == "done", view.card
    assert rows["runs"][0]["runs"] == 20


def test_any_runner_can_be_timed_from_outside(tmp_path: Path) -> None:
    path = save(mlp(), tmp_path / "mlp.onnx")
    view, rows, said = bench(path, runners=[{"kind": "reference"}], profile=True)
    assert view.state == "done" and rows["runs"][0]["runs"] == 20 and "profile" not in rows
    assert any("cannot be timed by this version" in text for text in said)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"cuda_graph": True}, "has no CUDA graphs"),
        ({"runners": [{"kind": "reference"}], "plan": {**QUICK, "streams": 2}}, "runs one stream"),
        ({"batches": [2]}, "first dimension is dynamic; the inputs: x [1, 8]"),
        ({"runners": []}, "nothing to time"),
        ({"against": "/nowhere.json"}, "No such file"),
        ({"raw_inputs": {"x": "/nowhere.bin"}}, "No such file"),
        ({"exports": {"report": "/dev/null/r.json"}}, "cannot be written"),
        ({"feeds": {"shapes": {"z": [[1]]}}}, "has no input z"),
        ({"plan": {"speed": 9}}, "does not fit"),
    ],
)
def test_what_cannot_be_timed_is_said(chain: Path, params: dict[str, Any], why: str) -> None:
    view, _, _ = bench(chain, **params)
    assert view.state == "failed" and view.card is not None
    assert view.card["kind"] == "error" and why in view.card["summary"]


def test_a_model_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"not a model")
    view, _, _ = bench(path)
    assert view.state == "failed" and view.card is not None and "broken.onnx" in view.card["summary"]


@pytest.mark.parametrize("streams", [1, 2])
def test_a_bench_without_end_is_cancelled_like_any_job(chain: Path, jobs_home: Workspace, streams: int) -> None:
    plan = {**QUICK, "duration": 3600.0, "streams": streams}
    spec = JobSpec(action="bench", params={"model": str(chain), "runners": CPU, "plan": plan})
    client = JobClient(jobs_home, ACTIONS)
    with forked_jobs():
        job = asyncio.run(client.submit(spec))
    until(lambda: any(event["type"] == "progress" for event in events_of(jobs_home, job)))
    asyncio.run(client.cancel(job))
    wait_for(jobs_home, job, "cancelled")


def test_opening_alone(chain: Path) -> None:
    view, rows, _ = bench(chain, skip_inference=True, profile=True)
    assert view.state == "done" and not rows and view.result is not None
    assert view.result["opening_seconds"].keys() == {"onnxrt cpu, 1 thread"}

"""Files of trtexec, read and written; onnxruntime's profile, read into layers."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.backends.bench.onnxrt_profile import read_profile as read_onnxrt
from layerwise._tool.backends.bench.trtexec_files import (
    ProfileLayer,
    is_profile,
    read_profile,
    read_times,
    write_profile,
    write_times,
)
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.debugtools.bench.exports import read_report
from layerwise._tool.debugtools.bench.rows import ROWS

NEW = """[
  { "startEnqMs" : 0.1, "endEnqMs" : 0.3, "startH2dMs" : 0.1, "endH2dMs" : 0.2, "startComputeMs" : 0.2,
    "endComputeMs" : 1.2, "startD2hMs" : 1.2, "endD2hMs" : 1.3, "h2dMs" : 0.1, "computeMs" : 1.0, "d2hMs" : 0.1,
    "latencyMs" : 1.2 }
, { "startEnqMs" : 1.1, "endEnqMs" : 1.3, "startH2dMs" : 1.1, "endH2dMs" : 1.2, "startComputeMs" : 1.3,
    "endComputeMs" : 2.6, "startD2hMs" : 2.6, "endD2hMs" : 2.7, "h2dMs" : 0.1, "computeMs" : 1.3, "d2hMs" : 0.1,
    "latencyMs" : 1.5 }
]
"""
OLD = """[
  { "startEnqMs" : 0, "endEnqMs" : 1, "startInMs" : 0, "endInMs" : 1, "startComputeMs" : 1, "endComputeMs" : 3,
    "startOutMs" : 3, "endOutMs" : 4, "inMs" : 1, "computeMs" : 2, "outMs" : 1, "latencyMs" : 4, "endToEndMs" : 4 }
]
"""
PROFILE = """[
  { "count" : 300 }
, { "name" : "Conv_0 + Relu_1", "timeMs" : 60.0, "averageMs" : 0.2, "medianMs" : 0.19, "percentage" : 75.0 }
, { "name" : "MatMul_2", "timeMs" : 20.0, "averageMs" : 0.0667, "percentage" : 25.0 }
]
"""
MS = st.floats(0, 1e4)


def test_times_of_trtexec_new_and_old(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(NEW)
    (tmp_path / "old.json").write_text(OLD)
    new, old = read_times(tmp_path / "new.json"), read_times(tmp_path / "old.json")
    assert new.latency == [1.2, 1.5] and new.phases == {"h2d": [0.1, 0.1], "compute": [1.0, 1.3], "d2h": [0.1, 0.1]}
    assert new.seconds == pytest.approx(0.0026)
    assert old.latency == [4] and old.phases == {"h2d": [1], "compute": [2], "d2h": [1]} and old.seconds == 0.004


def test_a_profile_of_trtexec(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(PROFILE)
    assert is_profile(path)
    assert read_profile(path) == [
        ProfileLayer("Conv_0 + Relu_1", 0.2, 0.19, 75.0, 60.0), ProfileLayer("MatMul_2", 0.0667, 0.0667, 25.0, 20.0),
    ]  # fmt: skip


@given(st.lists(st.tuples(MS, MS, MS), min_size=1, max_size=20))
def test_times_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, runs: list[Any]) -> None:
    path = tmp_path_factory.mktemp("times") / "times.json"
    timings = [(float(i), float(i) + sum(run), *run) for i, run in enumerate(runs)]
    path.write_text(write_times(timings, ("h2d", "compute", "d2h")))
    found = read_times(path)
    assert found.latency == pytest.approx([sum(run) * 1000 for run in runs], rel=1e-6, abs=1e-6)
    for place, name in enumerate(("h2d", "compute", "d2h")):
        wanted = [run[place] * 1000 for run in runs]
        assert found.phases.get(name, [0.0] * len(runs)) == pytest.approx(wanted)
    for row in json.loads(path.read_text()):
        assert row["startH2dMs"] <= row["endH2dMs"] == row["startComputeMs"] <= row["endComputeMs"] == row["startD2hMs"]


@given(st.lists(st.builds(ProfileLayer, st.text(), MS, MS, st.floats(0, 100), MS), min_size=1, max_size=10))
def test_a_profile_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, layers: list[ProfileLayer]
) -> None:
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    path.write_text(write_profile(layers, 7))
    assert read_profile(path) == layers and json.loads(path.read_text())[0] == {"count": 7}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not valid JSON"), ("{}", "no file of trtexec"), ("[1]", "no file of trtexec"), ("[]", "no latencyMs"),
        ('[{"latencyMs": "1"}]', "not a number"), ('[{"latencyMs": true}]', "not a number"),
        ("[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_times_is_said(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(text)
    with pytest.raises(BadFile, match=why):
        read_times(path)


@pytest.mark.parametrize("text", ["[]", '[{"count": 1}]', '[{"name": "a"}]', '[{"name": "a", "averageMs": null}]'])
def test_what_is_no_profile_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(BadFile):
        read_profile(path)


# ── onnxruntime's profile ──


def event(name: str, start: float, length: float, op: str = "", thread: int = 1) -> dict[str, Any]:
    kind = {"cat": "Node", "args": {"op_name": op, "provider": "CPUExecutionProvider"}} if op else {"cat": "Session"}
    return {**kind, "name": f"{name}_kernel_time" if op else name, "ts": start, "dur": length, "tid": thread}


def write_events(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(events))
    return path


def test_a_loop_has_its_own_time_only_and_its_body_counts_each_trip(tmp_path: Path) -> None:
    events = []
    for run in range(3):
        at = run * 1000.0
        events += [
            event("model_run", at, 400), event("repeat", at + 10, 300, "Loop"), event("twice", at + 20, 100, "Add"),
            event("twice", at + 130, 100, "Add"), event("after", at + 320, 50, "Relu"),
        ]  # fmt: skip
    layers = read_onnxrt(write_events(tmp_path / "p.json", events), skip=1)
    assert [(layer.name, layer.calls, layer.runs_ms) for layer in layers] == [
        ("repeat", 2, [0.1, 0.1]), ("twice", 4, [0.2, 0.2]), ("after", 2, [0.05, 0.05]),
    ]  # fmt: skip
    assert layers[0].provider == "CPU" and layers[1].op == "Add"


def test_nodes_on_several_threads_are_not_inside_each_other(tmp_path: Path) -> None:
    events = [event("model_run", 0, 100), event("a", 10, 50, "Conv", thread=1), event("b", 20, 30, "Conv", thread=2)]
    layers = read_onnxrt(write_events(tmp_path / "p.json", events), skip=0)
    assert {layer.name: layer.runs_ms for layer in layers} == {"a": [0.05], "b": [0.03]}


def test_an_interrupted_run_does_not_make_a_layer_slow(tmp_path: Path) -> None:
    events = []
    for run in range(20):
        length = 50_000 if run == 7 else 100 + run
        events += [event("model_run", run * 1e6, 60_000), event("a", run * 1e6 + 1, length, "Conv")]
    layer = read_onnxrt(write_events(tmp_path / "p.json", events), skip=0)[0]
    assert 0.1 <= layer.typical_ms <= 0.12 < layer.mean_ms


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "[3]", '[{"cat": "Node"}]', '[{"cat": "Node", "name": "a_kernel_time", "ts": 1, "dur": 1}]'],
)
def test_what_is_no_profile_of_onnxruntime_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(BadFile, match=r"p\.json"):
        read_onnxrt(path, skip=0)


@given(st.text(max_size=12), st.booleans())
def test_names_of_a_profile_of_onnxruntime_are_read_escaped_or_not(
    tmp_path_factory: pytest.TempPathFactory, name: str, escaped: bool
) -> None:
    """onnxruntime escapes them from 1.31 on; a name that has a backslash is taken for escaped where it may be one."""
    raw = json.dumps(name)[1:-1] if escaped else name.replace("\\", "/")
    kept = name if escaped else raw
    events = [
        '{"cat" : "Session","pid" :1,"tid" :1,"dur" :9,"ts" :1,"ph" : "X","name" :"model_run","args" : {}}',
        f'{{"cat" : "Node","pid" :1,"tid" :1,"dur" :5,"ts" :2,"ph" : "X","name" :"{raw}_kernel_time","args" : '
        '{"op_name" : "Tanh","provider" : "CPUExecutionProvider"}}',
    ]
    path = tmp_path_factory.mktemp("profile") / "p.json"
    path.write_bytes(("[\n" + ",\n".join(events) + "\n]\n").encode())
    assert [(layer.name, layer.op) for layer in read_onnxrt(path, skip=0)] == [(kept, "Tanh")]


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    for read in (read_times, read_profile, lambda path: read_onnxrt(path, 0)):
        with pytest.raises(BadFile, match="No such file"):
            read(tmp_path / "none.json")


FIGURES = {"min": 1.0, "max": 4.0, "mean": 2.0, "median": 1.5, "percentiles": {"90": 3.0, "99": 4.0}, "cov": 12.5}
RUN = {
    "runner": "onnxrt", "batch": 2, "streams": 1, "runs": 3, "seconds": 0.5, "warm_ups": 4, "qps": 6.0,
    "items_per_second": 12.0, "latency": FIGURES, "phases": {"compute": FIGURES},
}  # fmt: skip
LAYER = {
    "runner": "onnxrt", "batch": 2, "i": 0, "name": "/fc/Add", "op": "Add", "provider": None, "tensor": "y",
    "node": "/fc/Add", "calls": 3, "mean_ms": 0.5, "median_ms": 0.4, "total_ms": 1.5, "typical_ms": 0.45,
    "percent": 100.0,
}  # fmt: skip
COMPARED = {
    "name": "onnxrt", "reference": "trt", "batch": 2, "ratio": 1.0, "low": 0.9, "high": 1.1, "p": 0.5,
    "verdict": "no difference", "words": "onnxrt against trt: no difference",
}  # fmt: skip


@pytest.mark.parametrize(("table", "row"), [("runs", RUN), ("profile", LAYER), ("comparisons", COMPARED)])
def test_rows_of_before_are_read_and_written_again_as_they_were(table: str, row: dict[str, Any]) -> None:
    assert msgspec.to_builtins(msgspec.convert(row | {"of_later": 1}, ROWS[table])) == row


def test_a_report_of_before_is_read(tmp_path: Path) -> None:
    told = {"format": "layerwise bench 1", "passed": True, "runs": [RUN | {"latency_ms": [1.0, 2.0, 3.0]}],
            "comparisons": [COMPARED], "opening_seconds": {"onnxrt": 0.1}, "measured_on": {"model": "m.onnx"},
            "layers": [LAYER]}  # fmt: skip
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(told))
    report = read_report(path)
    assert report is not None and msgspec.to_builtins(report) == told | {"conclusion": ""}
    path.write_text(json.dumps(told | {"runs": [RUN | {"latency_ms": []}]}))
    with pytest.raises(BadFile):
        read_report(path)

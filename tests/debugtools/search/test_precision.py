"""Which nodes must stay in FP32: measured, searched, verified; on models whose trouble is known."""

import asyncio
import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.debugging import Searched, as_read, job_folder
from support.forked_jobs import forked_jobs
from support.jobs import events_of, jobs_home, kill, pids_of, until, wait_for
from support.models import from_text, if_model, mlp, string_model

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.reference.evaluate import Evaluation
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise._tool.debugtools.search.precision.measure import Measured
from layerwise._tool.debugtools.search.precision.run import debug_precision, frontier
from layerwise._tool.debugtools.search.precision.scores import effects, enough, sensitivities
from layerwise._tool.debugtools.search.rows import Numbers, VerdictRow
from layerwise._tool.debugtools.search.spec import CheckSpec, DebugSpec, PrecisionSpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.demo import demo_feed, demo_model
from layerwise._tool.surgery.precision.nodes import emulate_precision

__all__ = ["jobs_home"]
pytestmark = pytest.mark.usefixtures("workspace")
TIGHT = ToleranceSpec(atol={"": 2e-2}, rtol={"": 2e-2})


def troubled() -> onnx.ModelProto:
    """x -> relu -> a matrix -> times 2^12, squared (beyond FP16), root, over 2^12 -> another matrix -> y.

    What must stay in FP32: up, square and root.
    """
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w0"], ["m"], "first"),
        helper.make_node("Mul", ["m", "k"], ["big"], "up"),
        helper.make_node("Mul", ["big", "big"], ["sq"], "square"),
        helper.make_node("Sqrt", ["sq"], ["s"], "root"),
        helper.make_node("Div", ["s", "k"], ["d"], "down"),
        helper.make_node("MatMul", ["d", "w1"], ["y"], "second"),
    ]
    weights = {"w0": rng.standard_normal((16, 16)) / 4, "w1": rng.standard_normal((16, 16)) / 4, "k": np.array(2.0**9)}
    graph = helper.make_graph(
        nodes, "troubled", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


NEEDED = {"square", "root"}  # 512 m stays below 65504, its square does not


def spec_of(folder: Path, model: onnx.ModelProto, feed: dict[str, Any] | None = None, **more: Any) -> PrecisionSpec:
    onnx.save(model, folder / "model.onnx")
    files = []
    if feed:
        save_feeds(folder / "inputs.json", [feed])
        files = [str(folder / "inputs.json")]
    own = {key: more.pop(key) for key in list(more) if key in PrecisionSpec.__struct_fields__}
    tolerance, runners = more.pop("tolerance", TIGHT), more.pop("runners", [])
    compare = CompareSpec(
        model=str(folder / "model.onnx"), feeds=FeedSpec(files=files), tolerance=tolerance, runners=runners
    )
    search = DebugSpec(compare=compare, output=str(folder / "mixed.onnx"), **more)
    return PrecisionSpec(search=search, **own)


def search(spec: PrecisionSpec, folder: Path | None = None, attempt: int = 1) -> Searched:
    folder = folder or job_folder(spec, "precision")  # type: ignore[arg-type]
    context = JobContext(folder, attempt)
    context.writer.write("state", state="running", attempt=attempt)
    return Searched(as_read(debug_precision(context)), list(read_events(folder)), folder)


def passes(outputs: dict[str, Any], golden: dict[str, Any], tolerance: float = 2e-2) -> bool:
    difference = {name: np.abs(outputs[name] - golden[name]) for name in golden}
    return all(
        bool(((off <= tolerance) | (off <= tolerance * np.abs(golden[name]))).all()) for name, off in difference.items()
    )


# The effect of single nodes


def test_effects_follow_the_paths() -> None:
    """y = (x + x') where x' passes a node that makes errors ten times as large."""
    model = from_text("g (float[4] a) => (float[4] y) { b = Relu(a) c = Exp(b) d = Neg(b) y = Add(c, d) }")
    gains = {(1, "b", "c"): 10.0, (2, "b", "d"): 1.0, (3, "c", "y"): 0.5, (3, "d", "y"): 0.25}
    reach = sensitivities(GraphCut(model), gains)
    assert reach["y"] == 1 and reach["c"] == 0.5 and reach["d"] == 0.25
    assert reach["b"] == pytest.approx(math.hypot(5.0, 0.25))
    found = effects(GraphCut(model), Measured({0: 0.1, 1: math.inf, 2: 0.0, 3: 0.2}, gains))
    assert found[0] == pytest.approx(0.1 * reach["b"]) and found[3] == 0.2
    assert found[1] == math.inf and found[2] == 0


@settings(max_examples=50)
@given(st.lists(st.floats(0, 10) | st.just(math.inf), max_size=30), st.floats(1e-6, 10))
def test_enough_leaves_no_more_than_is_allowed(values: list[float], allowed: float) -> None:
    effect = dict(enumerate(values))
    count = enough(effect, allowed)
    rest = sorted(values, reverse=True)[count:]
    assert math.sqrt(sum(value * value for value in rest)) <= allowed * (1 + 1e-6) + 1e-6
    assert all(math.isfinite(value) for value in rest)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1) | st.just(math.nan)), max_size=20))
def test_the_frontier_is_of_points_that_nothing_beats(points: list[tuple[int, float]]) -> None:
    measured = [(kept, Numbers(tensor="y", rel_l2=error)) for kept, error in points]
    rows = [VerdictRow(n=0, nodes=kept, verdict=Verdict.BAD, measured=numbers) for kept, numbers in measured]
    chosen = frontier(rows, 20)
    best = [math.inf if point.rel_l2 is None else point.rel_l2 for point in chosen]
    assert best == sorted(best, reverse=True) and len(set(best)) == len(best)
    assert [point.low for point in chosen] == sorted({point.low for point in chosen}, reverse=True)
    for kept, error in points:
        assert math.isnan(error) or any(p.kept <= kept and (p.rel_l2 or 0.0) <= error for p in chosen)


# The search


def test_the_nodes_that_overflow_are_kept_and_nothing_else(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    done = search(spec_of(tmp_path, troubled(), feed))
    assert done.result["passed"] and done.result["verified"] and done.result["original"] == "good"
    (found,) = done.result["found"]
    assert {node["node"] for node in found["nodes"]} == NEEDED and found["minimal"]
    assert done.result["all_low"] == "bad" and done.result["lowerable"] == 7
    local = {row["node"]: row["local"] for row in done.table("precision")}
    assert local["square"] == local["root"] == math.inf and local["first"] < 1e-3
    assert {point["low"] for point in done.result["frontier"]} >= {7, 5, 0}
    assert done.table("best")[-1]["labels"] == sorted(NEEDED, reverse=True) or done.table("best")[-1]["count"] == 2


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERWISE_HOME", str(folder / "home"))
        return search(spec_of(folder, demo_model(), demo_feed()))


def test_the_file_passes_where_fp16_is_computed_in_fp16(demo: Searched) -> None:
    golden = Evaluation(demo_model(), None).run(demo_feed(), ["last_hidden_state", "logits"])
    mixed = onnx.load(demo.result["found"][0]["path"])
    onnx.checker.check_model(mixed, full_check=True)
    assert passes(Evaluation(mixed, None).run(demo_feed(), list(golden)), golden)
    assert sum(tensor.data_type == TensorProto.FLOAT16 for tensor in mixed.graph.initializer) > 50


def test_a_transformer_keeps_few_nodes_in_few_runs(demo: Searched) -> None:
    """The overflow needs two nodes; the sharp attention at least the product of queries and keys, and its scaling."""
    truth = {"/encoder/layer.6/output/LayerNorm/Pow", "/encoder/layer.6/output/LayerNorm/ReduceMean_1"}
    truth |= {"/encoder/layer.3/attention/self/MatMul", "/encoder/layer.3/attention/self/Div"}
    (kept,) = demo.found
    assert len(kept) <= 2 * len(truth) and len(truth & set(kept)) >= 3
    rows = [row for row in demo.table("verdicts") if not row["phase"]]
    assert len({row["key"] for row in rows}) == len(rows) == demo.result["checks"] <= 30


def test_every_kept_node_is_needed(demo: Searched) -> None:
    golden = unfused(demo_model())
    (kept,) = demo.found
    assert passes(unfused(emulate_precision(demo_model(), "float16", keep=kept)), golden)
    for name in kept:
        assert not passes(unfused(emulate_precision(demo_model(), "float16", keep=set(kept) - {name})), golden), name


def unfused(model: onnx.ModelProto) -> dict[str, Any]:
    spec = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
    with open_runner(spec, Loadable(data=model.SerializeToString())) as runner:
        return dict(runner.infer(demo_feed()).outputs)


def test_masks_do_not_hide_the_rest(tmp_path: Path) -> None:
    """Logits beside -1e9: what is wrong with them must be seen beside the mask, which may well be -inf."""
    model = from_text(
        "g (float[2,8] x, bool[2,8] seen) => (float[2,8] y) <float[1] far = {-1e9}, float[1] k = {4096}> {"
        "  [up] a = Add(x, k) [down] b = Sub(a, k) [mask] m = Where(seen, b, far) [soft] y = Softmax(m) }"
    )
    rng = np.random.default_rng(2)
    seen = np.arange(8) < np.array([[5], [6]])
    feed = {"x": rng.standard_normal((2, 8)).astype(np.float32), "seen": seen}
    done = search(spec_of(tmp_path, model, feed))
    assert done.found == [["up", "down"]]
    local = {row["node"]: row["local"] for row in done.table("precision")}
    assert local["mask"] < 1e-3


def test_nothing_needs_to_stay_where_all_passes(tmp_path: Path) -> None:
    done = search(spec_of(tmp_path, mlp()))
    assert done.result["passed"] and done.found == [[]] and done.result["checks"] == 1
    assert "nothing needs to stay" in done.result["summary"]
    low = {tensor.data_type for tensor in onnx.load(tmp_path / "mixed.onnx").graph.initializer}
    assert low == {TensorProto.FLOAT16}


def test_without_tolerances_rounding_of_the_low_type_passes(tmp_path: Path) -> None:
    done = search(spec_of(tmp_path, troubled(), {"x": np.full((4, 16), 3, np.float32)}, tolerance=ToleranceSpec()))
    assert done.result["passed"] and set(done.found[0]) == NEEDED
    assert "tolerance: " in done.texts("log") and "float16" in done.texts("log")


def test_bfloat16_has_the_range(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    done = search(spec_of(tmp_path, troubled(), feed, low="bfloat16", tolerance=ToleranceSpec()))
    assert done.found == [[]] and done.result["low"] == "bfloat16"


def test_a_reference_that_differs_in_fp32_is_said_to(tmp_path: Path) -> None:
    from layerwise._tool.backends.results.inference import IterationResult, RunResults

    other = {"y": np.full((1, 16), 9, np.float32)}
    RunResults([("golden", [IterationResult(other, 0.0, "golden")])]).save(tmp_path / "golden.json")
    runners = [RunnerSpec(kind="saved", results=str(tmp_path / "golden.json"))]
    done = search(spec_of(tmp_path, mlp(), runners=runners))
    assert not done.result["passed"] and "fails in FP32 already" in done.result["summary"]
    assert done.result["original"] == "bad" and not (tmp_path / "mixed.onnx").exists()


@pytest.mark.parametrize(("mode", "direction", "kept"), [
    ("bisect", "forward", 5), ("linear", "forward", 5), ("bisect", "reverse", 4), ("linear", "reverse", 4),
])  # fmt: skip
def test_layers_are_kept_from_one_end_as_polygraphy_keeps_them(
    tmp_path: Path, mode: str, direction: str, kept: int
) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    done = search(spec_of(tmp_path, troubled(), feed, mode=mode, direction=direction))
    names = [node.name for node in troubled().graph.node]
    assert done.found == [names[:kept] if direction == "forward" else names[-kept:]]
    assert not done.table("precision")


def test_nodes_of_one_name_are_kept_together_by_a_runner_that_takes_them(tmp_path: Path) -> None:
    model = troubled()
    for node in model.graph.node:
        node.name = "same" if node.name in ("square", "relu") else node.name
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    done = search(spec_of(tmp_path, model, feed, runners=[RunnerSpec(kind="reference")]))
    assert sorted(done.found[0]) == ["root", "same", "same"] and not done.result["emulated"]


@pytest.mark.parametrize("model", [string_model(), from_text("g (int64[2] x) => (int64[2] y) { y = Neg(x) }")])
def test_a_model_with_nothing_to_lower_is_refused(tmp_path: Path, model: onnx.ModelProto) -> None:
    with pytest.raises(UsageError, match="no node of this model can compute in float16"):
        search(spec_of(tmp_path, model))


def test_what_is_no_model_is_an_error_and_control_flow_is_not(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x01garbage")
    compare = CompareSpec(model=str(tmp_path / "bad.onnx"))
    with pytest.raises(LayerwiseError, match=r"bad\.onnx"):
        search(PrecisionSpec(search=DebugSpec(compare=compare)))
    with pytest.raises(UsageError, match="no model"):
        search(PrecisionSpec())
    assert search(spec_of(tmp_path, if_model())).result["passed"]


# Other judges, and what is left on disk


def test_a_command_judges_several_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.py").write_text(CHECK)
    check = CheckSpec(command=[sys.executable, "check.py"], parallel=2)
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    done = search(spec_of(tmp_path, troubled(), feed, check=check, save_replay="replay.json"))
    assert done.result["passed"] and set(done.found[0]) == NEEDED and done.result["by"] == "command"
    assert "--emulate" in done.texts("warning")
    assert (tmp_path / "replay.json").exists()
    again = search(spec_of(tmp_path, troubled(), feed, check=check, load_replay="replay.json"))
    assert again.found == done.found and again.result["checks"] == 0


def test_layers_of_what_was_found_are_shown_and_saved(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    path = tmp_path / "layers.json"
    done = search(spec_of(tmp_path, troubled(), feed, layers=True, save_layer_outputs=str(path)))
    rows = {row["tensor"]: row for row in done.table("layers")}
    assert {"m", "big", "sq", "s", "y"} <= rows.keys() and 0 < rows["m"]["rel_l2"] < 1e-3
    from polygraphy.comparator import RunResults as Theirs

    runs = Theirs.load(str(path))
    assert len(runs) == 2 and {"sq", "y"} <= set(runs[0][1][0])


def test_the_workspace_is_cleared_of_weights(tmp_path: Path) -> None:
    done = search(spec_of(tmp_path, troubled()))
    assert not list(done.folder.rglob("*.bin"))


CHECK = """
import onnx, sys
inferred = onnx.shape_inference.infer_shapes(onnx.load("polygraphy_debug.onnx")).graph.value_info
types = {value.name: value.type.tensor_type.elem_type for value in inferred}
sys.exit(types["sq"] == 10 or types["s"] == 10)
"""
"""Fails where the square or the root is FP16."""


def kept_names(result: dict[str, Any]) -> Collection[str]:
    return {node["node"] for found in result["found"] for node in found["nodes"]}


def test_a_killed_search_goes_on_where_it_was(
    jobs_home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the third check runs: the verdicts before are there, the nodes are not measured again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.sh").write_text(
        f"echo run >> {tmp_path}/runs\n"
        f"[ $(wc -l < {tmp_path}/runs) = 4 ] && [ ! -e {tmp_path}/go ] && echo $$ > {tmp_path}/pid && sleep 1000\n"
        f"{sys.executable} check.py\n"
    )
    (tmp_path / "check.py").write_text(CHECK)
    check = CheckSpec(command=["sh", "check.sh"])
    feed = {"x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32) * 4}
    spec = spec_of(tmp_path, troubled(), feed, check=check)
    job = JobSpec(action="debug_precision", params=msgspec.to_builtins(spec), cpus=0, cwd=str(tmp_path))
    with forked_jobs():
        number = asyncio.run(JobClient(jobs_home, ACTIONS).submit(job))
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    kill(pids_of(jobs_home, number)[0])
    wait_for(jobs_home, number, "failed")
    before = rows_of(jobs_home, number, "verdicts")
    assert len(before) == 3
    (tmp_path / "go").touch()
    with forked_jobs():
        asyncio.run(JobClient(jobs_home, ACTIONS).retry(number))
    view = wait_for(jobs_home, number, "done", seconds=60)
    after = rows_of(jobs_home, number, "verdicts")
    assert after[: len(before)] == before and kept_names(view.result) == NEEDED
    assert len((tmp_path / "runs").read_text().splitlines()) == len(after) + 1
    assert len(rows_of(jobs_home, number, "precision")) == 7


def rows_of(home: Workspace, job: int, table: str) -> list[dict[str, Any]]:
    return [e["row"] for e in events_of(home, job) if e["type"] == "row" and e["table"] == table]

"""The linter: which nodes fail, found in linear time; no false alarms; hostile files are findings."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support import bad_models, models
from support.bad_models import build, node, value, weight
from support.cli import layerwise
from support.cpu_time import cpu_seconds
from support.graphs import feed_for, random_model
from support.linting import lint_file, lint_model, messages

from layerwise._tool.backends.errors import BadFile, MissingDependency, UsageError
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.checks.lint.isolate import Isolation
from layerwise._tool.debugtools.checks.lint.report import LintFindings
from layerwise._tool.debugtools.checks.lint.structure import labels
from layerwise._tool.debugtools.checks.lint.trial import Trial
from layerwise._tool.surgery.cut.pieces import Pieces

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def isolated(model: onnx.ModelProto, feed: dict[str, object], folder: Path) -> LintFindings:
    """Every node tried alone or in chunks, whether the model is sound or not."""
    pieces, report = Pieces(model, model.graph), LintFindings()
    Isolation(pieces, labels(pieces.nodes), Trial(RunnerSpec(kind="onnxrt"), folder), report, feed).run()
    return report


def spoil(model: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    """Give nodes an attribute that no operator has."""
    spoilt = [entry for entry in model.graph.node if entry.name in names or entry.output[0] in names]
    assert len(spoilt) == len(names)
    for entry in spoilt:
        entry.attribute.append(helper.make_attribute("bogus", 1))
    return model


SOUND = (
    *(models.mlp, models.conv_net, models.if_model, models.loop_model, models.scan_model, models.sequence_model),
    *(models.dynamic_model, models.function_model, models.bf16_model, models.string_model, bad_models.old_ir),
    *(partial(random_model, seed) for seed in range(3)),
)


@pytest.mark.parametrize("make", SOUND)
def test_sound_models_are_sound(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    result, report = lint_model(make(), tmp_path)
    assert result["passed"] and messages(report) == []
    assert result["failing"] == 0 < result["passing"] == len(make().graph.node) - result["unjudged"]
    idle = messages(report, "warning", "onnx_graphsurgeon")
    assert result["unjudged"] == sum(text.startswith("Does not affect") for text in idle)


@pytest.mark.parametrize("name", ["light_densenet121", "light_resnet50", "light_shufflenet"])
def test_onnxs_own_models_of_ir_version_3_pass(name: str) -> None:
    result, report = lint_file(LIGHT / f"{name}.onnx")
    assert result["passed"] and result["failing"] == result["unjudged"] == 0
    assert len(report["summary"]["passing"]) == len(onnx.load(LIGHT / f"{name}.onnx").graph.node)


def test_densenet121_with_several_faults_takes_seconds(tmp_path: Path) -> None:
    model = spoil(onnx.load(LIGHT / "light_densenet121.onnx"), "r907", "fc6_1")
    started = cpu_seconds()
    result, report = lint_model(model, tmp_path)
    assert cpu_seconds() - started < 10
    assert report["summary"]["failing"] == ["n907"]
    assert result["passing"] + result["failing"] + result["unjudged"] == len(model.graph.node)


def test_time_is_linear_in_the_nodes(tmp_path: Path) -> None:
    def chain(length: int) -> onnx.ModelProto:
        nodes = [node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(length)]
        return spoil(build(nodes, [value("t0")], [value(f"t{length}")]), f"Neg_t{length}")

    seconds = []
    for length in (1_000, 8_000):
        started = cpu_seconds()
        _, report = lint_model(chain(length), tmp_path)
        seconds.append(cpu_seconds() - started)
        assert report["summary"]["failing"] == [f"Neg_t{length}"]
        assert len(report["summary"]["passing"]) == length - 1
    assert seconds[1] < 20 * seconds[0]


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), faults=st.sets(st.integers(0, 24), max_size=4))
def test_what_fails_and_what_was_not_reached_follow_from_the_faults(seed: int, faults: set[int]) -> None:
    model = random_model(seed)
    makers = {name: entry for entry in model.graph.node for name in entry.output}
    bad = {makers[f"t{i}"].name for i in faults}
    spoil(model, *bad)
    report = isolated(model, dict(feed_for(seed)), Path("/"))
    pieces = Pieces(model, model.graph)
    reach: dict[str, bool] = {}  # tensor -> whether it can be made
    failing, passing = set(), set()
    for name, entry, read in zip(labels(pieces.nodes), pieces.nodes, pieces.reads, strict=True):
        there = all(reach.get(tensor, True) for tensor in read)
        verdict = failing if entry.name in bad else passing
        if there:
            verdict.add(name)
        reach.update(dict.fromkeys(entry.output, there and verdict is passing))
    assert {name for name in report.failing if "/" not in name} == failing
    assert set(report.passing) == passing


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_model_passes_node_by_node_too(seed: int, tmp_path: Path) -> None:
    model = random_model(seed, n_nodes=200, shuffled=True)
    report = isolated(model, dict(feed_for(seed)), tmp_path)
    assert report.entries == [] and len(report.passing) == len(model.graph.node)


def test_nodes_of_onnxs_own_tests_pass_alone_where_their_model_runs(tmp_path: Path) -> None:
    trial = Trial(RunnerSpec(kind="onnxrt"), tmp_path)
    ran = 0
    for name, case in list(models.node_cases().items())[::6]:
        if trial.whole(case.model.SerializeToString(), case.feed) is None:
            report = isolated(case.model, case.feed, tmp_path)
            assert report.failing == [], name
            assert len(report.passing) == len(case.model.graph.node), name
            ran += 1
    assert ran > 150


def test_several_independent_faults_are_found_at_once(tmp_path: Path) -> None:
    result, report = lint_model(bad_models.several(), tmp_path)
    assert report["summary"] == {"passing": ["MatMul_1", "NonZero"], "failing": ["MatMul_0", "Add_0", "MatMul_3"]}
    assert (result["passing"], result["failing"], result["unjudged"]) == (2, 3, 1)
    assert messages(report, source="onnxruntime") == [
        " Incompatible dimensions for matrix multiplication",
        " Incompatible dimensions",
        " Incompatible dimensions for matrix multiplication",
    ]


def test_the_report_is_saved_where_it_was_asked_for(tmp_path: Path) -> None:
    _, report = lint_model(bad_models.several(), tmp_path, output=str(tmp_path / "report.json"))
    assert json.loads((tmp_path / "report.json").read_text()) == report


def test_two_runs_give_the_same_report(tmp_path: Path) -> None:
    first, second = (lint_model(bad_models.several(), tmp_path)[1] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn"])
def test_small_floats_that_onnxruntime_has_no_kernel_for_are_no_failure(kind: str, tmp_path: Path) -> None:
    number = TensorProto.DataType.Value(kind.upper())
    model = models.from_text(
        f"g (float[2,3] x) => (float[2,3] y) {{ [down] h = Cast<to={number}>(x)\n [move] m = Mul(h, h)\n"
        "[up] w = Cast<to=1>(m)\n [last] y = Relu(w) }"
        if kind == "bfloat16"
        else f"g (float[2,3] x) => (float[2,3] y) {{ [down] h = Cast<to={number}>(x)\n [move] m = Transpose(h)\n"
        "[back] n = Transpose(m)\n [up] w = Cast<to=1>(n)\n [last] y = Relu(w) }"
    )
    result, report = lint_model(model, tmp_path)
    assert result["passed"], report
    assert result["passing"] == len(model.graph.node)


def test_a_type_without_kernel_is_said_and_the_rest_is_still_checked(tmp_path: Path) -> None:
    model = models.from_text(
        """g (bfloat16[2,2] x, float[3,2] w) => (float[2,2] y) {
            [mix] m = Mul(x, x)
            [up] u = Cast<to=1>(m)
            [wrong] y = MatMul(u, w)
        }"""
    )
    _, report = lint_model(model, tmp_path)
    assert report["summary"]["failing"] == ["wrong"]
    assert report["summary"]["passing"] == ["mix", "up"]
    (text,) = messages(report, "warning", "onnxruntime")
    assert "implementation for Mul" in text and "reference evaluator" in text


def test_bodies_are_entered_where_their_node_fails(tmp_path: Path) -> None:
    _, report = lint_model(bad_models.bad_body(), tmp_path)
    assert report["summary"]["failing"] == ["choose", "choose/then_branch/bad"]
    assert report["summary"]["passing"] == ["Abs_z"]


@pytest.mark.parametrize(
    ("make", "inner", "bad"),
    [(models.loop_model, "plus", "repeat/body/plus"), (models.scan_model, "sum", "running/body/sum")],
)
def test_loops_and_scans_are_entered(make: Callable[[], onnx.ModelProto], inner: str, bad: str, tmp_path: Path) -> None:
    model = make()
    owner = next(entry for entry in model.graph.node if entry.name == bad.partition("/")[0])
    for entry in owner.attribute[0].g.node if owner.attribute[0].g.node else owner.attribute[1].g.node:
        if entry.name == inner:
            entry.attribute.append(helper.make_attribute("bogus", 1))
    _, report = lint_model(model, tmp_path)
    assert report["summary"]["failing"] == [owner.name, bad]


def test_a_branch_that_is_not_taken_may_not_fit_the_data(tmp_path: Path) -> None:
    def branch(name: str, inner: list[onnx.NodeProto]) -> onnx.GraphProto:
        return helper.make_graph(inner, name, [], [value(inner[-1].output[0], ["n"])])

    rows = numpy_helper.from_array(np.array([5], np.int64), "rows")
    nodes = [
        node("If", ["c"], ["y"], "choose", then_branch=branch("then", [node("Gather", ["x", "rows"], ["t"])]),
             else_branch=branch("else", [node("Softmax", ["x"], ["e"], bogus=1)])),
    ]  # fmt: skip
    model = build(nodes, [value("c", [], TensorProto.BOOL), value("x", [2])], [value("y", ["n"])], [rows])
    feeds = FeedSpec(val_range={"c": (0.0, 0.0)})
    _, report = lint_model(model, tmp_path, feeds=feeds)
    assert report["summary"]["failing"] == ["choose", "choose/else_branch/Softmax_e"]


def test_sequences_cross_from_node_to_node(tmp_path: Path) -> None:
    model = models.from_text(
        """seq (float[2] x) => (float[2] y, float[2] z) <int64 one = {1}> {
            [pair] s = SequenceConstruct(x, x)
            [pick] y = SequenceAt(s, one)
            [bad] z = Softmax<bogus=1>(x)
        }"""
    )
    _, report = lint_model(model, tmp_path)
    assert report["summary"] == {"passing": ["pair", "pick"], "failing": ["bad"]}


def test_local_functions_come_along(tmp_path: Path) -> None:
    model = models.function_model()
    model.graph.node.append(node("MatMull", ["y"], ["w"], "bad"))
    model.graph.output.append(value("w"))
    _, report = lint_model(model, tmp_path)
    assert report["summary"] == {"passing": ["call"], "failing": ["bad"]}


def custom_model() -> onnx.ModelProto:
    nodes = [node("BlackmanWindow", ["n"], ["w"], "own"), node("Relu", ["w"], ["a"]), node("Nope", ["a"], ["b"])]
    domain = "ai.onnx.contrib"
    nodes[0].domain, nodes[0].op_type = domain, "NegPos"
    nodes[0].output.append("other")
    model = build(nodes, [value("n")], [value("b")], opsets={"": 17, domain: 1})
    return model


def test_custom_operators_are_a_warning_and_nodes_with_their_library(tmp_path: Path) -> None:
    onnxruntime_extensions = pytest.importorskip("onnxruntime_extensions")
    _, without = lint_model(custom_model(), tmp_path)
    assert without["summary"] == {"passing": ["own"], "failing": []}
    assert len(messages(without, "warning", "onnxruntime")) == 1
    runner = RunnerSpec(kind="onnxrt", custom_ops=[onnxruntime_extensions.get_library_path()])
    _, given_library = lint_model(custom_model(), tmp_path, runner=runner)
    assert given_library["summary"] == {"passing": ["own", "Relu_a"], "failing": ["Nope_b"]}


def test_external_data_is_read_where_it_lies(tmp_path: Path) -> None:
    path = models.with_external_weights(spoil(models.mlp(width=32), "/fc2/Relu"), tmp_path / "m.onnx")
    _, report = lint_file(path)
    assert report["summary"]["failing"] == ["/fc2/Relu"] and len(report["summary"]["passing"]) == 8


def test_a_weight_that_is_too_short_is_found_wherever_it_lies(tmp_path: Path) -> None:
    model = models.mlp(width=32)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    result, report = lint_model(model, tmp_path)
    assert not result["passed"]
    assert "raw_data size (4092 bytes) is too small" in messages(report, source="onnx_checker")[0]


def test_external_data_that_is_missing_is_a_finding(tmp_path: Path) -> None:
    path = models.with_external_weights(models.mlp(width=32), tmp_path / "m.onnx")
    (tmp_path / "weights.bin").unlink()
    result, report = lint_file(path)
    assert not result["passed"] and "weights.bin" in messages(report, source="onnx_loader")[0]
    ignoring = ModelOptions(ignore_external_data=True)
    assert lint_file(path, model_options=ignoring)[0]["passed"]


def test_given_inputs_are_used(tmp_path: Path) -> None:
    index = value("i", [1], TensorProto.INT64)
    model = build([node("Gather", ["w", "i"], ["y"])], [index], [value("y", [1, 2])], [weight("w", 2, 2)])
    assert lint_model(model, tmp_path)[0]["passed"]
    far = FeedSpec(val_range={"": (7, 7)})
    result, report = lint_model(model, tmp_path, feeds=far)
    assert not result["passed"] and "out of data bounds" in messages(report)[0]
    with pytest.raises(UsageError, match="has no input"):
        lint_model(model, tmp_path, feeds=FeedSpec(shapes={"nope": [[1]]}))


def test_warnings_of_onnxruntime_are_passed_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = bad_models.good()
    model.graph.initializer.append(weight("idle", 4))
    result, report = lint_model(model, tmp_path)
    assert result["passed"]
    assert any("Removing initializer 'idle'" in text for text in messages(report, "warning", "onnxruntime"))


def test_what_cannot_be_had_is_no_finding(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        lint_file(tmp_path / "none.onnx")
    with pytest.raises(UsageError, match="fits no provider"):
        lint_model(bad_models.good(), tmp_path, runner=RunnerSpec(kind="onnxrt", providers=["warp"]))
    with pytest.raises(MissingDependency):
        lint_model(bad_models.good(), tmp_path, runner=RunnerSpec(kind="onnxrt", providers=["migraphx"]))
    with pytest.raises(BadFile, match="no such custom-op library"):
        lint_model(bad_models.good(), tmp_path, runner=RunnerSpec(kind="onnxrt", custom_ops=["none.so"]))


def test_a_file_that_is_no_model_is_a_finding(tmp_path: Path) -> None:
    for data in (b"", b"not a model", bad_models.good().SerializeToString()[:40]):
        (tmp_path / "m.onnx").write_bytes(data)
        result, report = lint_file(tmp_path / "." / ".." / tmp_path.name / "m.onnx")
        assert not result["passed"]
        assert {entry["source"] for entry in report["lint_entries"]} <= {"onnx_loader", "onnx_checker"}


def test_a_hundred_thousand_findings_do_not_matter(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], [f"dead{i}"]) for i in range(5_000)] + [node("Neg", ["x"], ["y"])]
    result, report = lint_model(build(nodes, [value("x")], [value("y")]), tmp_path)
    assert result["passed"] and len(report["lint_entries"]) == 5_000


def test_the_command_prints_findings_as_polygraphy_does(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(bad_models.several().SerializeToString())
    done = layerwise("check", "lint", "m.onnx", "-o", "report.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "[E] LINT | Name: MatMul_3, Op: MatMul |  Incompatible dimensions for matrix multiplication" in done.stdout
    assert "[W] LINT | Input: 'A' does not affect outputs, can be removed." in done.stdout
    assert "2 nodes pass, 3 fail, 1 were not reached" in done.stdout
    document = json.loads(layerwise("check", "lint", "m.onnx", "--json", cwd=tmp_path).stdout)
    report = json.loads((tmp_path / "report.json").read_text())
    assert {key: document[key] for key in report} == report
    assert (document["exit_code"], document["result"]["unjudged"]) == (1, 1)


def test_the_command_takes_inputs_and_onnxruntime_options(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(models.dynamic_model().SerializeToString())
    words = ("--input-shapes", "x:[3,5]", "--val-range", "[-1,1]", "--providers", "cpu")
    level = ("--graph-optimization-level", "ORT_DISABLE_ALL")
    assert layerwise("check", "lint", "m.onnx", *words, *level, cwd=tmp_path).returncode == 0
    assert layerwise("check", "lint", "m.onnx", "--input-shapes", "nope:[1]", cwd=tmp_path).returncode == 2
    assert layerwise("check", "lint", "none.onnx", cwd=tmp_path).returncode == 1

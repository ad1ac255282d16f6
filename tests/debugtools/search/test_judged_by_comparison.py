"""Searches judged by the comparison: what is found, on real models with planted faults."""

import itertools
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.debugging import ORT, job_folder, planted, saved, search, sides
from support.models import conv_net, from_text, mlp, with_weights

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.search.judges.hints import expected_seconds
from layerwise._tool.debugtools.search.judges.original import Original
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise.comparator import RunResults

pytestmark = pytest.mark.usefixtures("workspace")


def names(model: onnx.ModelProto) -> list[str]:
    return [node.name for node in model.graph.node]


def rerun(path: str, inputs: str, golden: str) -> bool:
    """Whether a found model, on its saved inputs, differs from the saved outputs."""
    spec = CompareSpec(
        model=path, runners=[ORT, RunnerSpec(kind="saved", results=golden)], feeds=FeedSpec(files=[inputs]),
        tolerance=ToleranceSpec(auto=True),
    )  # fmt: skip
    from support.comparing import run_compare

    return run_compare(spec).result["passed"] is False


@pytest.mark.parametrize("mode", ["ddmin", "bisect", "linear"])
@pytest.mark.parametrize("fault", ["/fc1/Add", "/fc2/MatMul", "/fc0/Relu"])
def test_a_fault_is_found_alone(tmp_path: Path, mode: str, fault: str) -> None:
    bad, good = saved(tmp_path, mlp(layers=4), fault)
    done = search(DebugSpec(compare=sides(bad, good), mode=mode, output=str(tmp_path / "reduced.onnx")))  # type: ignore[arg-type]
    assert done.result["passed"] and done.found == [[fault]]
    (found,) = done.result["found"]
    assert found["minimal"] and found["verdict"] == "bad" and found["path"] == str(tmp_path / "reduced.onnx")
    assert names(onnx.load(tmp_path / "reduced.onnx")) == [fault]
    assert rerun(found["path"], found["inputs"], found["golden"])


@pytest.mark.parametrize("count", [2, 5])
def test_several_faults_are_found_in_one_search(tmp_path: Path, count: int) -> None:
    model = mlp(layers=10)
    faults = names(model)[:: len(names(model)) // count][:count]
    bad, good = saved(tmp_path, model, *faults)
    done = search(DebugSpec(compare=sides(bad, good), output=str(tmp_path / "reduced.onnx")))
    assert sorted(itertools.chain(*done.found)) == sorted(faults)
    assert done.result["verified"] and f"{count} independent culprits" in done.result["summary"]
    paths = [Path(found["path"]) for found in done.result["found"]]
    assert [path.name for path in paths] == ["reduced.onnx", *(f"reduced_{k}.onnx" for k in range(2, count + 1))]
    assert all(len(onnx.load(path).graph.node) == 1 for path in paths)


def test_hints_make_the_search_short(tmp_path: Path) -> None:
    model = mlp(layers=20)
    bad, good = saved(tmp_path, model, "/fc7/Add")
    done = search(DebugSpec(compare=sides(bad, good)))
    assert done.found == [["/fc7/Add"]] and done.result["checks"] <= 3


@pytest.mark.parametrize("fault", ["conv1", "add", "fc"])
def test_bisect_names_the_first_bad_node(tmp_path: Path, fault: str) -> None:
    bad, good = saved(tmp_path, conv_net(), fault)
    done = search(DebugSpec(compare=sides(bad, good)), "bisect")
    assert done.found == [[fault]] and done.result["verified"]
    assert len(onnx.load(done.result["found"][0]["path"]).graph.node) == 1


def test_what_passes_is_said_to_pass(tmp_path: Path) -> None:
    bad, good = saved(tmp_path, mlp())
    done = search(DebugSpec(compare=sides(bad, good)))
    assert done.result["passed"] is False and done.result["original"] == "good" and done.result["found"] == []
    assert "there is no failure to search for" in done.result["summary"]
    assert len(done.table("verdicts")) == 0


def test_rounding_that_adds_up_has_no_culprit(tmp_path: Path) -> None:
    """A tolerance below what optimisation moves fails the whole, and blames nobody."""
    onnx.save(conv_net(channels=32, size=32), tmp_path / "m.onnx")
    off = msgspec.structs.replace(ORT, graph_optimization_level="disable")
    spec = CompareSpec(
        model=str(tmp_path / "m.onnx"), runners=[ORT, off],
        tolerance=ToleranceSpec(atol={"scores": 0.0}, rtol={"scores": 0.0}),
    )  # fmt: skip
    done = search(DebugSpec(compare=spec))
    assert done.result["original"] == "bad" and done.result["found"] == [] and not done.result["passed"]
    assert "no node by more than rounding explains" in done.result["summary"]


def test_a_fault_of_one_percent_in_half_precision_is_the_culprit(tmp_path: Path) -> None:
    def model(factor: float) -> onnx.ModelProto:
        body = "a = MatMul(x, w) [fault] b = Mul(a, k) c = Relu(b) y = MatMul(c, w)"
        made = from_text(f"m (float16[4,64] x) => (float16[4,64] y) {{ {body} }}")
        weights = np.random.default_rng(0).standard_normal((64, 64)) / 8
        return with_weights(made, w=weights.astype(np.float16), k=np.array(factor, np.float16))

    onnx.save(model(1.0), tmp_path / "good.onnx")
    onnx.save(model(1.01), tmp_path / "bad.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx")), "reduce")
    assert [[node["node"] for node in found["nodes"]] for found in done.result["found"]] == [["fault"]]


def test_what_fails_only_with_what_comes_before_it(tmp_path: Path) -> None:
    """Forty nodes in a row, each off by less than rounding explains; together they are not."""

    def model(factor: float) -> onnx.ModelProto:
        calls = [f"Mul(t{k}, w)" if 2 <= k < 42 else f"Relu(t{k})" for k in range(50)]
        body = " ".join(f"[n{k}] t{k + 1} = {call}" for k, call in enumerate(calls))
        made = from_text(f"m (float[8] t0) => (float[8] t50) {{ {body} }}")
        return with_weights(made, w=np.array(factor, np.float32))

    onnx.save(model(1.0), tmp_path / "good.onnx")
    onnx.save(model(1.0 + 6e-7), tmp_path / "bad.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx")), "bisect")
    (found,) = done.result["found"]
    assert done.result["verified"] and "only with what comes before it" in done.result["summary"]
    first = int(found["nodes"][0]["node"].removeprefix("n"))
    assert found["with_all_before"] == first + 1 == len(onnx.load(found["path"]).graph.node) > 1


def test_what_magnifies_rounding_is_no_culprit(tmp_path: Path) -> None:
    """A difference of two means that agree in six digits: correct evaluations differ by a tenth of it."""
    model = from_text(
        """m (float[1,5001] x) => (float[1,1] y) <float c = {0.50001}> {
            [mean] a = ReduceMean<keepdims=1>(x)
            [difference] d = Sub(a, c)
            [scaled] y = Mul(d, k)
        }"""
    )
    with_weights(model, k=np.array(1000, np.float32))
    onnx.save(model, tmp_path / "m.onnx")
    from layerwise._tool.backends.feeds.writer import save_feeds

    x = np.random.default_rng(1).random((1, 5001)).astype(np.float32)
    save_feeds(tmp_path / "in.json", [{"x": x - x.mean() + np.float32(0.50002)}])
    spec = CompareSpec(
        model=str(tmp_path / "m.onnx"), runners=[ORT, RunnerSpec(kind="reference")],
        feeds=FeedSpec(files=[str(tmp_path / "in.json")]), tolerance=ToleranceSpec(atol={"y": 0.0}, rtol={"y": 0.0}),
    )  # fmt: skip
    done = search(DebugSpec(compare=spec))
    assert done.result["original"] == "bad" and done.table("verdicts")[0]["measured"]["rel_l2"] > 1e-4
    assert done.result["found"] == [] and "no node by more than rounding explains" in done.result["summary"]


def test_the_iteration_that_fails_is_searched(tmp_path: Path) -> None:
    """A fault that shows with given inputs only: the second feed is negative, the first one is not."""
    good = from_text("m (float[4] x) => (float[4] y) { [abs] a = Abs(x) [out] y = Sigmoid(a) }")
    bad = from_text("m (float[4] x) => (float[4] y) { [abs] a = Relu(x) [out] y = Sigmoid(a) }")
    onnx.save(good, tmp_path / "good.onnx")
    onnx.save(bad, tmp_path / "bad.onnx")
    from layerwise._tool.backends.feeds.writer import save_feeds

    save_feeds(tmp_path / "in.json", [{"x": np.full(4, 2, np.float32)}, {"x": np.full(4, -2, np.float32)}])
    feeds = FeedSpec(files=[str(tmp_path / "in.json")])
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx", feeds=feeds)))
    assert done.found == [["abs"]] and done.table("search")[0]["iteration"] == 1
    alone = FeedSpec(files=[str(tmp_path / "in.json")], iterations=1)
    missed = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx", feeds=alone)))
    assert missed.result["original"] == "good"


def test_what_cannot_run_is_found_by_its_error(tmp_path: Path) -> None:
    good = mlp(layers=6)
    onnx.save(good, tmp_path / "good.onnx")
    bad = planted(good)
    bad.graph.node[10].op_type = "NoSuchOperator"
    onnx.save(bad, tmp_path / "bad.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx")))
    assert done.result["original"] == "bad" and done.found == [["/fc3/Add"]]
    assert "NoSuchOperator" in done.result["found"][0]["note"]


def test_a_marked_tensor_is_searched_instead_of_the_outputs(tmp_path: Path) -> None:
    """Two faults, of which one lies behind the tensor: it is left alone."""
    bad, good = saved(tmp_path, mlp(layers=6), "/fc1/Add", "/fc4/Add")
    marks = MarkSpec(names=["h2"], only=True)
    done = search(DebugSpec(compare=sides(bad, good, marks=marks)))
    assert done.found == [["/fc1/Add"]]


def test_saved_outputs_are_a_reference(tmp_path: Path) -> None:
    """Only what the file holds can be fed: what lies between its tensors stays together, as glue."""
    bad, good = saved(tmp_path, mlp(layers=6), "/fc3/Add")
    from support.comparing import run_compare

    golden = tmp_path / "golden.json"
    run_compare(CompareSpec(model=str(good), runners=[ORT], marks=MarkSpec(names=["h*"]), save_outputs=str(golden)))
    assert set(RunResults.load(golden)[0][1][0]) >= {"h0", "h3", "y"}
    runners = [ORT, RunnerSpec(kind="saved", results=str(golden))]
    done = search(DebugSpec(compare=CompareSpec(model=str(bad), runners=runners)))
    assert done.found == [["/fc3/Relu"]]
    assert [node["node"] for node in done.result["found"][0]["glue"]] == ["/fc3/MatMul", "/fc3/Add"]


def test_half_precision_takes_the_references_tensors(tmp_path: Path) -> None:
    """The suspect computes in FP16, one of its weights is wrong; FP16's own rounding is nobody's fault."""
    from onnx import numpy_helper

    good = mlp(layers=5)
    onnx.save(good, tmp_path / "good.onnx")
    bad = planted(good, "/fc2/MatMul", scale=1.1)
    for tensor in bad.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*bad.graph.input, *bad.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(bad, tmp_path / "bad.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx")))
    assert done.found == [["/fc2/MatMul"]]


def test_a_wrong_constant_is_blamed_itself(tmp_path: Path) -> None:
    def model(value: float) -> onnx.ModelProto:
        constant = helper.make_tensor("v", TensorProto.FLOAT, [1], [value])
        nodes = [
            helper.make_node("Relu", ["x"], ["r"], "relu"),
            helper.make_node("Constant", [], ["c"], "constant", value=constant),
            helper.make_node("Mul", ["r", "c"], ["m"], "mul"),
            helper.make_node("Add", ["m", "c"], ["y"], "add"),
        ]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:])
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    onnx.save(model(1.0), tmp_path / "good.onnx")
    onnx.save(model(1.5), tmp_path / "bad.onnx")
    done = search(DebugSpec(compare=sides(tmp_path / "bad.onnx", tmp_path / "good.onnx")))
    assert done.found == [["constant"]]


def test_the_best_so_far_is_on_disk(tmp_path: Path) -> None:
    bad, good = saved(tmp_path, mlp(layers=8), "/fc5/Add")
    output, passing = tmp_path / "out" / "reduced.onnx", tmp_path / "passes.onnx"
    done = search(DebugSpec(compare=sides(bad, good), mode="bisect", output=str(output), min_good=str(passing)))
    sizes = [row["count"] for row in done.table("best")]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1
    assert done.result["min_good"] == str(passing)
    onnx.checker.check_model(onnx.load(passing), full_check=True)


def test_one_way_reductions(tmp_path: Path) -> None:
    model = mlp(layers=6)
    bad, good = saved(tmp_path, model, "/fc3/Add")
    outputs = search(DebugSpec(compare=sides(bad, good), mode="bisect", reduce_inputs=False))
    assert outputs.found[0] == names(model)[: names(model).index("/fc3/Add") + 1]
    inputs = search(DebugSpec(compare=sides(bad, good), mode="bisect", reduce_outputs=False))
    assert inputs.found[0] == names(model)[names(model).index("/fc3/Add") :]


def test_requests_that_cannot_be_met_are_told(tmp_path: Path) -> None:
    bad, good = saved(tmp_path, mlp())
    with pytest.raises(UsageError, match="nothing judges"):
        search(DebugSpec(compare=CompareSpec(model=str(bad), runners=[ORT])))
    swapped = CompareSpec(model=str(bad), runners=[RunnerSpec(kind="saved", results="x.json"), ORT])
    with pytest.raises(LayerwiseError, match=r"x\.json: No such file"):
        search(DebugSpec(compare=swapped))
    three = sides(bad, good)
    with pytest.raises(UsageError, match="two sides"):
        search(DebugSpec(compare=msgspec.structs.replace(three, runners=[*three.runners, ORT])))


def test_a_search_counts_in_expected_seconds(tmp_path: Path) -> None:
    """Nodes that take long are dear."""
    bad, good = saved(tmp_path, conv_net(channels=16, size=64), "fc")
    setup = Setup(sides(bad, good))
    context = JobContext(job_folder(DebugSpec(), "bisect"), 1)
    number, feed = next(Original(context, setup).feeds())
    subject = Subject(context, setup, number, feed)
    cost = dict(zip(names(onnx.load(bad)), expected_seconds(subject, subject.items), strict=True))
    subject.close()
    setup.close()
    assert cost["conv1"] > cost["conv0"] > cost["relu0"] > cost["flatten"] > 0

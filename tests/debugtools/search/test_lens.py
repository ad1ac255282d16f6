"""The lens: the switchboard beside a model built for each candidate alone, the prediction, the choice and its proof."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.debugging import Searched, as_read, job_folder
from support.products import FEED, ROWS, WIDTH, three_products

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.onnxrt.saturation import SETTING, precise, saturates
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.lens.choose import Doubts, Trying, choose_by_squares
from layerwise._tool.debugtools.search.lens.knapsack import Item, cheapest
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.run import debug_lens
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec, Rounding
from layerwise._tool.debugtools.search.lens.writing import mixed_model

pytestmark = pytest.mark.usefixtures("workspace")
ORT = RunnerSpec(kind="onnxrt", threads=1)
AS_WRITTEN = RunnerSpec(kind="onnxrt", threads=1, graph_optimization_level="disable")


def network(outlier: float = 1.0) -> onnx.ModelProto:
    """x -> Conv -> Relu -> MatMul by a transposed weight -> a softmax -> MatMul -> y. outlier: one channel of the
    second weight's input is that many times as large, and its row as much smaller.
    """
    rng = np.random.default_rng(0)
    large = np.ones(32, np.float32)
    large[3] = outlier
    weights = {
        "k": rng.standard_normal((32, 4, 3)) / 3 * large[:, None, None],
        "w": (rng.standard_normal((24, 32)) / 5) / large,
        "v": rng.standard_normal((24, 16)) / 4,
        "u": rng.standard_normal((16, 8)) / 4,
    }
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Transpose", ["r"], ["t"], "move", perm=[0, 2, 1]),
        helper.make_node("Transpose", ["w"], ["wt"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["t", "wt"], ["m"], "first"),
        helper.make_node("Softmax", ["m"], ["s"], "soft", axis=-1),
        helper.make_node("MatMul", ["s", "v"], ["n"], "second"),
        helper.make_node("Gemm", ["flat", "u"], ["y"], "last"),
    ]
    nodes.insert(7, helper.make_node("ReduceMax", ["n"], ["flat"], "pool", axes=[1], keepdims=0))
    graph = helper.make_graph(
        nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4, 10])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 8])],
        [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def feed(seed: int = 1) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal((3, 4, 10)).astype(np.float32)}


def lens_of(folder: Path, **rounding: Any) -> Lens:
    onnx.save(network(), folder / "model.onnx")
    lens = Lens(Model(str(folder / "model.onnx"), ModelOptions()), ORT, Rounding(**rounding), [feed(), feed(2)])
    lens.begin()
    return lens


def job(folder: Path, model: onnx.ModelProto, to: str = "int8", attempt: Path | None = None, **more: Any) -> Searched:
    onnx.save(model, folder / "model.onnx")
    save_feeds(folder / "inputs.json", [more.pop("fed", feed())])
    compare = CompareSpec(model=str(folder / "model.onnx"), feeds=FeedSpec(files=[str(folder / "inputs.json")]),
                          runners=[more.pop("runner", ORT)])  # fmt: skip
    rounding = Rounding(to=to, **more.pop("rounding", {}))  # type: ignore[arg-type]
    spec = LensSpec(compare=compare, rounding=rounding, **more)
    where = attempt or job_folder(spec, "lens")  # type: ignore[arg-type]
    context = JobContext(where, 2 if attempt else 1)
    context.writer.write("state", state="running", attempt=2 if attempt else 1)
    return Searched(as_read(debug_lens(context)), list(read_events(where)), where)


@pytest.mark.parametrize(("to", "more"), [
    ("int8", {}), ("uint8", {"symmetric_activations": False, "symmetric_weights": False}), ("fp8e4m3", {}),
    ("int4", {"weight_scales": "block", "block": 20, "activations": False}), ("mxfp4", {}), ("nvfp4", {}),
    ("fp16", {}), ("int8", {"activation_scales": "channel"}),
])  # fmt: skip
def test_a_switched_node_does_what_a_model_of_it_alone_does(tmp_path: Path, to: str, more: dict[str, Any]) -> None:
    lens = lens_of(tmp_path, to=to, **more)
    every = [one.i for one in lens.candidates]
    assert {"conv", "first", "second", "last"} <= {one.label for one in lens.candidates}
    emulate = to == "fp16" or "activation_scales" in more  # onnxruntime computes otherwise on a CPU
    for low in [*([i] for i in every), every]:
        model = mixed_model(lens, low, emulate=emulate).proto()
        with open_runner(AS_WRITTEN, Loadable(data=model.SerializeToString(), folder=tmp_path)) as runner:
            alone = lens.errors_of(runner.infer(fed).outputs for fed in lens.feeds).worst
        assert lens.measured(low).worst == pytest.approx(alone, rel=1e-3, abs=1e-6) and alone > 1e-6
    lens.close()


def test_nothing_is_moved_while_all_switches_are_off(tmp_path: Path) -> None:
    lens = lens_of(tmp_path)
    with open_runner(ORT, Loadable(path=tmp_path / "model.onnx")) as runner:
        assert lens.errors_of(runner.infer(fed).outputs for fed in lens.feeds).worst < 1e-6
    assert lens.measured([]).worst == 0
    lens.close()


def test_nodes_measured_at_once_are_told_as_one_after_the_other(tmp_path: Path) -> None:
    def told(threads: int) -> list[dict[str, Any]]:
        folder = tmp_path / str(threads)
        folder.mkdir()
        done = job(folder, network(), runner=RunnerSpec(kind="onnxrt", threads=threads), split=True)
        return [
            {key: value for key, value in row.items() if key not in ("seconds", "time")}
            for table in ("effects", "sets") for row in done.table(table)
        ]  # fmt: skip

    at_once, single = told(4), told(1)
    assert len(single) > 5 and len({row["key"] for row in single if "key" in row}) == sum(
        "key" in row for row in single
    )
    for row, other in zip(at_once, single, strict=True):
        assert msgspec.json.encode(row) == msgspec.json.encode(other)


def test_the_error_of_one_of_several_is_raised_in_its_turn(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "model.onnx")
    runner = RunnerSpec(kind="onnxrt", threads=2)
    lens = Lens(Model(str(tmp_path / "model.onnx"), ModelOptions()), runner, Rounding(), [feed()])
    lens.begin(at_once=True)
    first, second = (one.i for one in lens.candidates[:2])

    def does(i: int) -> float:
        return lens.measured([i]).worst

    found = lens.several([first, -1, second], does)
    assert next(found) > 0
    with pytest.raises(KeyError):
        next(found)
    assert list(lens.several([first, second], does)) == [does(first), does(second)]
    lens.close()


def test_an_outlier_channel_is_found_kept_and_proved(tmp_path: Path) -> None:
    done = job(tmp_path, network(outlier=300.0), split=True, bound=Bound(value=0.02), cost="nodes",
               output=str(tmp_path / "mixed.onnx"), lists=str(tmp_path / "lists"))  # fmt: skip
    rows = sorted(done.table("effects"), key=lambda row: -row["effect"])
    assert rows[0]["node"] == "first" and rows[0]["activation"] > 5 * rows[0]["weight"]
    result = done.result
    assert result["passed"] and result["minimal"] and result["real"] and result["proved"] <= 0.02
    assert [row["node"] for row in result["kept"]] == ["first"] and result["lost"] is None
    mixed = onnx.load(tmp_path / "mixed.onnx")
    onnx.checker.check_model(mixed, full_check=True)
    assert sum(node.op_type == "DequantizeLinear" for node in mixed.graph.node) >= 5
    assert "first" in (tmp_path / "lists" / "onnxruntime.py").read_text()
    assert "first:fp32" in (tmp_path / "lists" / "tensorrt.txt").read_text()
    assert "1 of 4 nodes must stay in FP32" in result["conclusion"]
    if saturates():  # else the same kernels are exact
        assert result["needs"] == "session.x64quantprecision=1" and result["saturated"] > 0.02
        assert (
            f"the mixed model is off by {result['saturated']:.2g} (relative L2). On such CPUs" in result["conclusion"]
        )
    else:
        assert result["needs"] == "" and result["saturated"] is None
    again = job(tmp_path, network(outlier=300.0), attempt=done.folder, split=True, bound=Bound(value=0.02),
                cost="nodes", output=str(tmp_path / "mixed.onnx"), lists=str(tmp_path / "lists"))  # fmt: skip
    assert len(again.table("effects")) == 4 and again.result["kept"] == result["kept"]


def test_where_kernels_lose_more_than_the_format_mixed_models_are_measured(tmp_path: Path) -> None:
    """onnxruntime's kernels as the user asks for them, which saturate on CPUs without VNNI."""
    as_asked = msgspec.structs.replace(ORT, session_config={SETTING: "0"})
    model = network(outlier=300.0)
    result = job(tmp_path, model, runner=as_asked, bound=Bound(value=0.02), cost="nodes").result
    assert result["passed"] and result["real"] and result["needs"] == "" and result["proved"] <= 0.02
    assert (result["lost"] is not None) is ("Kernels lose more" in result["conclusion"]) is saturates()
    kept = [row["node"] for row in result["kept"]]
    assert "first" in kept
    for node in kept:
        keep = [other for other in kept if other != node]
        less = job(tmp_path, model, runner=as_asked, prove=True, keep=keep, bound=Bound(value=0.02))
        assert less.result["proved"] > 0.02


@pytest.mark.parametrize("scales", ["tensor", "channel"])
def test_products_of_equal_sizes_are_proved_where_kernels_saturate(tmp_path: Path, scales: str) -> None:
    """onnxruntime loads no model with the setting in which several DequantizeLinear read one weight or zero point."""
    twice = three_products()
    twice.graph.initializer[2].raw_data = twice.graph.initializer[0].raw_data
    result = job(tmp_path, twice, fed=FEED, bound=Bound(value=0.05), rounding={"weight_scales": scales},
                 output=str(tmp_path / "mixed.onnx")).result  # fmt: skip
    assert result["passed"] and result["kept"] == [] and result["lost"] is None
    mixed = onnx.load(tmp_path / "mixed.onnx")
    weights = {t.name for t in mixed.graph.initializer if t.data_type == TensorProto.INT8 and len(t.dims) == 2}
    read = [node.input for node in mixed.graph.node if node.op_type == "DequantizeLinear" and node.input[0] in weights]
    assert len(read) == len({codes for codes, _, _ in read}) == len({zero for _, _, zero in read}) == 3
    with open_runner(precise(ORT, mixed), Loadable(path=tmp_path / "mixed.onnx")) as runner:
        assert runner.infer(FEED).outputs["y"].shape == (ROWS, WIDTH)


def test_a_score_of_the_users_is_a_bound(tmp_path: Path) -> None:
    script = tmp_path / "score.py"
    script.write_text("def near(outputs, reference):\n"
                      "    return -max(abs(a['y'] - b['y']).max() for a, b in zip(outputs, reference))\n")  # fmt: skip
    done = job(
        tmp_path, network(), to="int4", cost="bytes", bound=Bound(metric="score", value=-0.01, script=f"{script}:near")
    )
    assert done.result["passed"] and 0 < len(done.result["kept"]) <= 4


def test_what_cannot_be_low_is_said(tmp_path: Path) -> None:
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4, 10])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4, 10])])  # fmt: skip
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(UsageError, match="no node of this model can be int8"):
        job(tmp_path, model)
    old = network()
    old.opset_import[0].version = 11
    with pytest.raises(UsageError, match="opset 13 or later"):
        job(tmp_path, old)
    quantised = network()
    quantised.graph.node.append(helper.make_node("DequantizeLinear", ["q", "s"], ["unused"]))
    with pytest.raises(UsageError, match="quantised already"):
        job(tmp_path, quantised)


# The choice, by itself


def items(rng: np.random.Generator, count: int) -> list[Item]:
    squares = rng.gamma(0.3, 1.0, count)
    return [
        Item((float(square),), float(cost)) for square, cost in zip(squares, rng.integers(1, 20, count), strict=True)
    ]


def test_no_cheaper_set_keeps_the_bound() -> None:
    """Beside every subset, where squares add and where they do not: two nodes whose errors are one."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        given = items(rng, 9)
        both = float(rng.uniform(0, 0.6)) * (seed % 2)

        def holds(kept: frozenset[int], given: list[Item] = given, both: float = both) -> bool:
            left = sum(item.squares[0] for k, item in enumerate(given) if k not in kept)
            return left + (both if not {0, 1} & kept else 0.0) <= 1

        def cost(kept: frozenset[int], given: list[Item] = given) -> float:
            return sum(given[k].cost for k in kept)

        subsets = (frozenset(some) for size in range(10) for some in itertools.combinations(range(9), size))
        best = min(cost(kept) for kept in subsets if holds(kept))
        choice = choose_by_squares(Trying(given, holds, 200), Doubts())
        assert choice.kept is not None and holds(choice.kept) and choice.minimal
        assert not any(holds(choice.kept - {k}) for k in choice.kept)
        if not both:
            assert cost(choice.kept) <= best + 1e-9 and cheapest(given) == choice.kept


def test_specs_come_back_from_their_json() -> None:
    spec = LensSpec(rounding=Rounding(to="mxfp8", block=16), bound=Bound(metric="sqnr", value=30.0))
    assert msgspec.convert(msgspec.to_builtins(spec), LensSpec) == spec


def test_what_onnxruntime_fuses_of_fp8_is_run_as_written_and_that_is_said(tmp_path: Path) -> None:
    written = str(tmp_path / "mixed.onnx")
    done = job(tmp_path, network(), to="fp8e4m3", prove=True, output=written)
    assert done.result["real"] and done.result["needs"] == "session.disable_quant_qdq=1"
    assert "load it there with session.disable_quant_qdq=1" in done.result["conclusion"]
    with open_runner(ORT, Loadable(path=Path(written))) as runner:
        assert np.isfinite(runner.infer(feed()).outputs["y"]).all()
    fused = RunnerSpec(kind="onnxrt", session_config={"session.disable_quant_qdq": "0"})
    with pytest.raises(LayerwiseError, match="cannot load"), open_runner(fused, Loadable(path=Path(written))):
        pass


def test_a_score_that_is_not_a_number_is_refused_and_one_may_change_what_it_gets(tmp_path: Path) -> None:
    script = tmp_path / "score.py"
    script.write_text("def none(outputs, reference):\n    return float('nan')\n"
                      "def spoil(outputs, reference):\n"
                      "    outputs[0]['y'][:] = reference[0]['y'][:] = 0\n    return 1.0\n")  # fmt: skip
    with pytest.raises(UsageError, match="not a number"):
        job(tmp_path, network(), bound=Bound(metric="score", value=0.5, script=f"{script}:none"))
    done = job(tmp_path, network(), bound=Bound(metric="score", value=0.5, script=f"{script}:spoil"))
    assert 0 < done.result["proved"] < 1


@pytest.mark.parametrize("bound", [Bound(), Bound(metric="cosine", value=1.0), Bound(metric="max_abs")])
def test_a_bound_that_leaves_no_room_keeps_every_node(tmp_path: Path, bound: Bound) -> None:
    done = job(tmp_path, network(), bound=bound)
    assert done.result["kept"] is None or len(done.result["kept"]) == 4


def test_a_model_in_another_type_is_told(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.zeros((4, 4), np.float16), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    half = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(half, tmp_path / "half.onnx")
    with pytest.raises(UsageError, match="its products are in float16"):
        Lens(Model(str(tmp_path / "half.onnx"), ModelOptions()), ORT, Rounding(), [{"x": np.zeros((1, 4), np.float16)}])

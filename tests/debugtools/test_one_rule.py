"""The layer table, `debug locate` and `debug reduce` judge the same tensor by the same rule."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import OFF, ORT, run_compare
from support.debugging import search
from support.locating import run_locate

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.compare.table.between import Step
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import DebugSpec

SIZE = 2048


def made_weights(value: float, layers: int, off: int | None = None) -> onnx.ModelProto:
    """Dense layers behind a Relu, their weights made by nodes and all equal to `value`; onnxruntime leaves the Dropout
    of each layer out. off: the layer of which one column is 1 % larger.
    """
    nodes = [helper.make_node("Relu", ["x"], ["r0"], "relu0"), helper.make_node("Dropout", ["r0"], ["d0"], "dropout0")]
    weights = [numpy_helper.from_array(np.int64([SIZE, SIZE]), "shape")]
    for i in range(1, layers + 1):
        weight = numpy_helper.from_array(np.float32([value]), "value")
        if i == off:
            values = np.full((SIZE, SIZE), value, np.float32)
            values[:, 7] *= np.float32(1.01)
            weights.append(numpy_helper.from_array(values, f"w{i}"))
        else:
            nodes.append(helper.make_node("ConstantOfShape", ["shape"], [f"w{i}"], f"weight{i}", value=weight))
        nodes += [
            helper.make_node("Gemm", [f"d{i - 1}", f"w{i}"], [f"g{i}"], f"gemm{i}"),
            helper.make_node("Relu", [f"g{i}"], [f"r{i}"], f"relu{i}"),
            helper.make_node("Dropout", [f"r{i}"], [f"d{i}"], f"dropout{i}"),
        ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, SIZE]) for name in ("x", f"d{layers}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def spec_of(tmp_path: Path, suspect: onnx.ModelProto, reference: onnx.ModelProto, values: Array) -> CompareSpec:
    """The suspect, optimised, against the reference as it is."""
    paths = [str(tmp_path / name) for name in ("suspect.onnx", "reference.onnx")]
    for path, model in zip(paths, (suspect, reference), strict=True):
        onnx.save(model, path)
    save_feeds(tmp_path / "in.safetensors", [{"x": values}])
    feeds = FeedSpec(files=[str(tmp_path / "in.safetensors")])
    second = OFF if suspect is reference else msgspec.structs.replace(OFF, model=paths[1])
    return CompareSpec(model=paths[0], runners=[ORT, second], feeds=feeds, observe="executed")


def verdicts(spec: CompareSpec) -> tuple[list[str], list[str], list[str]]:
    """The red tensors of the layer table of `run --mark-all`, those of the one of `debug locate`, and its suspects."""
    table = run_compare(msgspec.structs.replace(spec, marks=MarkSpec(everything=True))).table()
    located = run_locate(LocateSpec(compare=spec))
    red = [[row["tensor"] for row in rows if row["passed"] is False] for rows in (table, located.table())]
    return red[0], red[1], [suspect["tensor"] for suspect in located.suspects]


@pytest.mark.parametrize("value", [0.0021, 0.013, 0.02])
def test_sums_of_equal_terms_accuse_nobody(value: float, tmp_path: Path) -> None:
    """Their lengths are told by no weight and by no tensor that is observed; each addition is rounded alike."""
    model = made_weights(value, layers=3)
    values = np.random.default_rng(0).random((1, SIZE), dtype=np.float32)
    assert verdicts(spec_of(tmp_path, model, model, values)) == ([], [], [])


def test_one_column_that_is_off_is_found_among_sums_of_equal_terms(tmp_path: Path) -> None:
    good, bad = made_weights(0.02, layers=3), made_weights(0.02, layers=3, off=2)
    values = np.random.default_rng(0).random((1, SIZE), dtype=np.float32)
    in_run, in_locate, suspects = verdicts(spec_of(tmp_path, bad, good, values))
    assert in_run[0] == in_locate[0] == suspects[0] == "r2"


@pytest.mark.parametrize("mode", ["ddmin", "bisect", "linear"])
def test_reducing_finds_the_one_layer_that_is_off_among_sums_of_equal_terms(mode: Any, tmp_path: Path) -> None:
    good, bad = made_weights(0.02, layers=3), made_weights(0.02, layers=3, off=3)
    values = np.random.default_rng(0).random((1, SIZE), dtype=np.float32)
    spec = msgspec.structs.replace(spec_of(tmp_path, bad, good, values), observe="auto")
    done = search(DebugSpec(compare=spec, mode=mode, output=str(tmp_path / "reduced.onnx")))
    assert done.found == [["gemm3"]]


def test_the_layer_table_of_locate_is_that_of_run(tmp_path: Path) -> None:
    """One sum that is so long that its error is more than that of so few nodes usually is: what the node makes of what
    each side read tells both tables that it is right.
    """
    length = 25088
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("ConstantOfShape", ["s"], ["w"], value=numpy_helper.from_array(np.float32([0.02]), "v")),
        helper.make_node("Gemm", ["r", "w"], ["g"], "gemm"),
        helper.make_node("LeakyRelu", ["g"], ["y"], "last"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, k]) for n, k in (("x", length), ("y", 64))]
    shape = [numpy_helper.from_array(np.int64([length, 64]), "s")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], shape)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    spec = spec_of(tmp_path, model, model, np.random.default_rng(0).random((1, length), dtype=np.float32))
    assert verdicts(spec) == ([], [], [])
    assert [row["diagnosis"] for row in run_locate(LocateSpec(compare=spec)).table()] == ["clean", "clean"]


def dense(first: float = 0.0, second: float = 0.0) -> onnx.ModelProto:
    """Three dense layers of 256; the weights of the first two are off by so much, up or down."""
    drawn = np.random.default_rng(0)
    nodes, weights = [], []
    for i, error in enumerate((first, second, 0.0), 1):
        values = drawn.standard_normal((256, 256)) / 16
        off = 1 + error * drawn.choice([-1.0, 1.0], 256)
        weights.append(numpy_helper.from_array((values * off).astype(np.float32), f"w{i}"))
        before = f"r{i - 1}" if i > 1 else "x"
        nodes.append(helper.make_node("MatMul", [before, f"w{i}"], [f"g{i}"], f"product{i}"))
        nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], f"relu{i}"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 256]) for name in ("x", "r3")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("observe", ["executed", "every"])
def test_a_layer_that_is_off_by_itself_is_red_though_its_inputs_errors_could_explain_it(
    observe: Any, tmp_path: Path
) -> None:
    """The inputs of the second are off by what rounding explains; an operator may enlarge that three times."""
    values = np.random.default_rng(1).standard_normal((16, 256)).astype(np.float32)
    for second, found in ((7.5e-7, ["g2"]), (0.0, [])):
        spec = spec_of(tmp_path, dense(1.5e-7, second), dense(), values)
        in_run, in_locate, suspects = verdicts(msgspec.structs.replace(spec, observe=observe))
        assert in_run[:1] == in_locate[:1] == suspects[:1] == found


def test_the_length_of_an_inner_sum_is_told_by_what_its_own_node_makes() -> None:
    """A mean over 300 numbers is a sum of 300, whatever is made of it afterwards."""
    node = helper.make_node("ReduceMean", ["d"], ["m"], axes=[1], keepdims=1)
    shapes = {"d": (4, 300), "m": (4, 1)}
    inner = Step(node, {}, str, shapes.get, last=False)
    assert inner.terms(lambda _: None, 1200) == 300
    assert Step(node, {}, str, shapes.get).terms(lambda _: None, 4) == 300

"""FP16 and bfloat16 per node: valid graphs, minimal casts, and emulation that agrees with the reference evaluator."""

from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support import models
from support.heavy import heavy_model
from support.views import low_nodes

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import Evaluation
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.precision.nodes import convert_precision, emulate_precision
from layerwise._tool.surgery.precision.plan import LowType

FLOAT, HALF, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16


def ops(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def types(model: onnx.ModelProto) -> dict[str, int]:
    """Return types of all tensors by strict inference: every node must accept its inputs."""
    onnx.checker.check_model(model)
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, check_type=True).graph
    known = {value.name: value.type.tensor_type.elem_type for value in [*graph.input, *graph.value_info, *graph.output]}
    return known | {tensor.name: tensor.data_type for tensor in graph.initializer}


def run(kind: str, model: onnx.ModelProto, feed: dict[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    loadable = Loadable(data=model.SerializeToString())
    with open_runner(RunnerSpec(kind=kind, **options), loadable) as runner:  # type: ignore[arg-type]
        return dict(runner.infer(feed).outputs)


# True FP16


def test_a_chain_has_casts_at_its_ends_only() -> None:
    low = convert_precision(models.mlp(), "float16")
    assert ops(low) == {"Cast": 2, "MatMul": 3, "Add": 3, "Relu": 3}
    found = types(low)
    assert found["x"] == found["y"] == FLOAT
    assert {found[name] for name in ("m0", "a1", "h0", "w0", "b2")} == {HALF}
    assert {tensor.name for tensor in low.graph.initializer} == {"w0", "w1", "w2", "b0", "b1", "b2"}


def test_kept_nodes_have_one_cast_on_each_side() -> None:
    low = convert_precision(models.mlp(), "float16", keep={"/fc1/MatMul", "/fc1/Add"})
    assert ops(low)["Cast"] == 4
    found = types(low)
    assert found["m1"] == found["a1"] == found["w1"] == FLOAT
    assert found["h0"] == found["h1"] == HALF
    kept = next(node for node in low.graph.node if node.name == "/fc1/MatMul")
    assert found[kept.input[0]] == FLOAT


def test_one_cast_serves_all_readers_and_a_shared_weight_has_both_forms() -> None:
    model = models.from_text(
        """g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
            [a] p = Mul(x, w)
            [b] q = Add(x, w)
            [c] r = Sub(x, w)
            [d] y = Add(p, q)
            [e] z = Add(r, r)
        }"""
    )
    low = convert_precision(model, "float16", keep={"c", "e"})
    found = types(low)
    assert ops(low)["Cast"] == 2  # x down, y up
    assert found["w"] == FLOAT and found["w__float16"] == HALF


def test_graph_outputs_and_captures_keep_their_name_and_type() -> None:
    model = models.from_text(
        """g (bool c, float[2] x) => (float[2] y, float[2] h) {
            [before] h = Add(x, x)
            [inner] u = Mul(h, h)
            [branch] y = If (c) < then_branch = t () => (float[2] a) { [in_then] a = Add(h, u) },
                                  else_branch = e () => (float[2] b) { [in_else] b = Neg(u) } >
        }"""
    )
    low = convert_precision(model, "float16")
    found = types(low)
    assert found["h"] == found["u"] == found["y"] == FLOAT
    assert low_nodes(model, "float16") == ["before", "inner"]
    feed = {"c": np.array(True), "x": np.array([1.5, 3], np.float32)}
    assert run("reference", low, feed)["y"].tolist() == [12, 42]
    assert run("onnxrt", emulate_precision(model, "float16"), feed)["y"].tolist() == [12, 42]


def test_inputs_with_a_fixed_type_stay() -> None:
    model = models.from_text(
        """g (float[1,1,2,2] x, int64[1] i) => (float[1,1,4,4] y, int64[4] s, float[1] f, float[3] c)
            <float[4] scales = {1, 1, 2, 2}, int64[1] three = {3}> {
            [resize] y = Resize<mode="nearest">(x, , scales)
            [shape] s = Shape(y)
            [cast] f = Cast<to=1>(i)
            [fill] c = ConstantOfShape<value = float[1] {0.1}>(three)
        }"""
    )
    low = convert_precision(model, "float16")
    found = types(low)
    assert found["scales"] == FLOAT
    assert found["s"] == TensorProto.INT64
    feed = {"x": np.full((1, 1, 2, 2), 0.1, np.float32), "i": np.array([70000])}
    true, emulated = run("reference", low, feed), run("onnxrt", emulate_precision(model, "float16"), feed)
    assert true["c"].tolist() == [np.float32(np.float16(0.1))] * 3
    for name, want in true.items():
        np.testing.assert_array_equal(emulated[name], want)
    assert true["f"].tolist() == [np.inf]


def test_shape_accepts_either_form() -> None:
    model = models.from_text("g (float[2] x) => (int64[1] s, float[2] y) { h = Add(x, x)\n s = Shape(h)\n y = Neg(h) }")
    assert ops(convert_precision(model, "float16"))["Cast"] == 2


def test_constants_follow_their_readers() -> None:
    model = models.from_text(
        """g (float[2] x) => (float[2] y, float[2] z) {
            [k] c = Constant<value = float[2] {0.1, 70000}>()
            [a] y = Add(x, c)
            [b] z = Mul(x, c)
        }"""
    )
    low = convert_precision(model, "float16", keep={"b"})
    assert ops(low)["Constant"] == 2
    feed = {"x": np.ones(2, np.float32)}
    got = run("reference", low, feed)
    assert got["z"].tolist() == [np.float32(0.1), 70000]
    assert got["y"][1] == np.inf
    np.testing.assert_array_equal(run("onnxrt", emulate_precision(model, "float16", keep={"b"}), feed)["y"], got["y"])


def test_random_draws_quantisation_and_unknown_operators_stay_fp32() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
        g (float[2] x) => (float[2] y, float[2] z) <float scale = {0.1}, int8 zero = {0}> {
            [q] q = QuantizeLinear(x, scale, zero)
            [d] d = DequantizeLinear(q, scale, zero)
            [r] r = RandomNormalLike(d)
            [m] m = mine.Op(d)
            [s] y = Add(d, r)
            [t] z = Add(m, m)
        }"""
    )
    assert low_nodes(model, "float16") == ["s"]


def test_value_infos_are_updated() -> None:
    model = onnx.shape_inference.infer_shapes(models.mlp())
    for low, m0 in ((convert_precision(model, "float16"), HALF), (emulate_precision(model, "float16"), FLOAT)):
        infos = {value.name: value.type.tensor_type for value in low.graph.value_info}
        assert infos["m0"].elem_type == m0
        assert len(infos) == len(low.graph.value_info)
        assert all(info.HasField("shape") for info in infos.values())
        types(low)


def test_bfloat16_requires_a_newer_opset() -> None:
    with pytest.raises(LayerwiseError, match="bfloat16 needs opset 13"):
        convert_precision(models.from_text("g (float[2] x) => (float[2] y) { y = Neg(x) }", opset=12), "bfloat16")
    model = models.mlp(seed=4)
    feed = {"x": np.linspace(-1, 1, 16, dtype=np.float32)[None]}
    true = run("reference", convert_precision(model, "bfloat16"), feed)["y"]
    emulated = run("onnxrt", emulate_precision(model, "bfloat16"), feed)["y"]
    np.testing.assert_array_equal(emulated, emulated.astype(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_allclose(emulated, true, rtol=2**-6, atol=2**-6)


def test_unchanged_weights_stay_in_the_model_file(tmp_path: Path) -> None:
    file = ModelFile(models.save(models.mlp(width=32), tmp_path / "mlp.onnx"))
    structure = file.structure()
    low = convert_precision(structure, "float16", keep={"/fc1/MatMul"}, folder=file.folder)
    external = {t.name for t in low.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    assert external == {"w1"}
    feed = {"x": np.ones((1, 32), np.float32)}
    with open_runner(
        RunnerSpec(kind="reference"), Loadable(data=low.SerializeToString(), folder=file.folder)
    ) as runner:
        got = runner.infer(feed).outputs["y"]
    want = run("reference", convert_precision(models.mlp(width=32), "float16", keep={"/fc1/MatMul"}), feed)["y"]
    np.testing.assert_array_equal(got, want)


def test_the_given_model_is_not_modified() -> None:
    model = models.conv_net()
    before = model.SerializeToString()
    convert_precision(model, "float16")
    emulate_precision(model, "bfloat16")
    assert model.SerializeToString() == before


def test_a_weight_that_is_also_an_input_is_converted() -> None:
    model = models.from_text("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }", opset=8, ir=3)
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3], np.float32), "w"))
    low = convert_precision(model, "float16")
    assert {value.name: value.type.tensor_type.elem_type for value in low.graph.input} == {"x": FLOAT, "w": HALF}
    onnx.checker.check_model(low)


def test_a_real_network_is_converted() -> None:
    model = heavy_model("squeezenet")
    low = convert_precision(model, "float16")
    types(low)
    assert ops(low)["Cast"] == 2
    emulated = emulate_precision(model, "float16")
    image = {model.graph.input[0].name: np.random.default_rng(0).random((1, 3, 224, 224), np.float32)}
    half, plain = (run("onnxrt", m, image)[m.graph.output[0].name] for m in (emulated, model))
    assert 0 < np.abs(half - plain).max() < 1e-2


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_onnx_own_node_tests_stay_valid(low: LowType) -> None:
    lowered = 0
    for case in list(models.node_cases().values())[::5]:
        try:
            types(case.model)
            names = low_nodes(case.model, low)
        except (LayerwiseError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue  # an opset too old for this type, or a test that strict inference refuses as it is
        if not names:
            continue
        lowered += 1
        for model in (convert_precision(case.model, low), emulate_precision(case.model, low)):
            found = types(model)
            for value in case.model.graph.output:
                assert found[value.name] == value.type.tensor_type.elem_type, case.name
    assert lowered > 150


# Emulation agrees with the reference evaluator

UNARY = ("Relu", "Neg", "Abs", "Sqrt", "Exp", "Tanh", "Sigmoid", "Reciprocal", "Identity", "Erf", "Log", "Floor")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "MatMul")
MOVES = ("Transpose", "ReduceMean", "Concat")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray], list[str]]:
    """A random graph of square tensors with a large dynamic range, its feed, and nodes to keep."""
    scale = draw(st.sampled_from([0.01, 1.0, 30.0, 300.0]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tensors, nodes = ["x", "w"], []
    for i in range(draw(st.integers(1, 8))):
        op = draw(st.sampled_from([*UNARY, *BINARY, *MOVES]))
        inputs = [draw(st.sampled_from(tensors)) for _ in range(2 if op in (*BINARY, "Concat") else 1)]
        nodes += _square(op, inputs, f"t{i}")
        tensors.append(f"t{i}")
    weight = numpy_helper.from_array((scale * random.standard_normal((4, 4))).astype(np.float32), "w")
    info = helper.make_tensor_value_info("x", FLOAT, [4, 4])
    results = [helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, [4, 4])]
    graph = helper.make_graph(nodes, "g", [info], results, [weight])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    keep = draw(st.lists(st.sampled_from([node.name for node in nodes]), max_size=3))
    feed = {"x": (scale * random.standard_normal((4, 4))).astype(np.float32)}
    return model, feed, keep


def _square(op: str, inputs: list[str], output: str) -> list[onnx.NodeProto]:
    if op == "Concat":
        joined = helper.make_node("Concat", inputs, [f"{output}_all"], f"n{output}_all", axis=0)
        split = helper.make_node("Split", [f"{output}_all"], [f"{output}_rest", output], f"n{output}", axis=0)
        return [joined, split]
    if op == "ReduceMean":
        mean = helper.make_node(op, inputs, [f"{output}_mean"], f"n{output}_mean", axes=[1])
        return [mean, helper.make_node("Sub", [inputs[0], f"{output}_mean"], [output], f"n{output}")]
    return [helper.make_node(op, inputs, [output], f"n{output}")]


@settings(max_examples=60)
@given(graphs())
def test_emulation_on_onnxruntime_equals_true_fp16_on_the_reference_evaluator(
    case: tuple[onnx.ModelProto, dict[str, np.ndarray], list[str]],
) -> None:
    model, feed, keep = case
    low, emulated = convert_precision(model, "float16", keep=keep), emulate_precision(model, "float16", keep=keep)
    types(low)
    types(emulated)
    _agree_node_by_node(model, low, emulated, feed, frozenset(keep))


def _agree_node_by_node(
    model: onnx.ModelProto,
    low: onnx.ModelProto,
    emulated: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    keep: frozenset[str],
) -> None:
    """Compare tensor by tensor, in order, as long as the two have the same values: differences of an ulp may grow."""
    names = [name for node in model.graph.node for name in node.output]
    true = Evaluation(low, None).run(feed, names)
    marked = onnx.ModelProto()
    marked.CopyFrom(emulated)
    del marked.graph.output[:]
    marked.graph.output.extend(helper.make_tensor_value_info(name, FLOAT, None) for name in names)
    shown = run("onnxrt", marked, feed)
    values = {name: array.astype(np.float32) for name, array in true.items()} | feed
    values["w"] = numpy_helper.to_array(model.graph.initializer[0])
    spoiled: set[str] = set()
    for node in model.graph.node:
        inherited = bool(spoiled.intersection(node.input))
        for name in node.output:
            want, got = values[name], shown[name]
            if np.array_equal(want, got, equal_nan=True):
                continue
            spoiled.add(name)
            largest = _largest_inside(node, values)
            if not inherited and largest < 65504:
                _close(want, got, largest, node.name in keep, f"{name}: {node.op_type}")


def _largest_inside(node: onnx.NodeProto, values: dict[str, np.ndarray]) -> float:
    """The reference evaluator adds up in FP16 inside these operators: their error follows the sums, not the result."""
    with np.errstate(all="ignore"):
        read = [np.abs(values[name].astype(np.float16).astype(np.float32)) for name in node.input]
        if node.op_type == "MatMul":
            return float((read[0] @ read[1]).max())
        return float(4 * read[0].max()) if node.op_type == "ReduceMean" else 0.0


def _close(want: np.ndarray, got: np.ndarray, largest: float, kept: bool, what: str) -> None:
    """A node kept in FP32 agrees as FP32 does, others within three steps of FP16."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=what)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want), err_msg=what)
    finite = np.isfinite(want)
    size = np.maximum(np.abs(want[finite]), largest)
    allowed = 1e-6 + 1e-5 * size if kept else 3 * np.spacing(size.astype(np.float16)).astype(np.float32)
    error = np.abs(got[finite] - want[finite])
    assert (error <= allowed).all(), f"{what}: {error.max()}"

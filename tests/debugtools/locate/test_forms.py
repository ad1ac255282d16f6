"""Faults between two forms of one network: what an optimiser fused, what is rounded and taken back."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from support.aligning import LENGTH, WIDTH, encoder, renamed
from support.locating import ORT, Located, between, run_locate
from support.models import from_text, with_weights

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.align.alignment import AlignedPair, Layout
from layerwise._tool.debugtools.compare.sides.naming import Naming
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fused.onnx: what onnxruntime makes of an encoder of two layers, under other names; and its input."""
    made = tmp_path_factory.mktemp("forms")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath, options.log_severity_level = str(made / "fused.onnx"), 4
    onnxruntime.InferenceSession(encoder(parts=True).SerializeToString(), options, providers=["CPUExecutionProvider"])
    fused = onnx.load(made / "fused.onnx")
    assert "FusedMatMul" in {node.op_type for node in fused.graph.node}
    onnx.save(renamed(fused)[0], made / "fused.onnx")
    x = np.random.default_rng(4).standard_normal((2, LENGTH, WIDTH)).astype(np.float32)
    np.savez(made / "in.npz", x=x)
    return made


def located(folder: Path, model: onnx.ModelProto) -> Located:
    onnx.save(model, folder / "suspect.onnx")
    runners = [ORT, msgspec.structs.replace(ORT, model=str(folder / "fused.onnx"))]
    feeds = FeedSpec(files=[str(folder / "in.npz")])
    return run_locate(LocateSpec(compare=CompareSpec(model=str(folder / "suspect.onnx"), runners=runners, feeds=feeds)))


def region(found: Located) -> list[str]:
    return [node["node"] for node in found.suspects[0]["region"]]


def test_a_fault_before_a_fused_product_is_named_first(folder: Path) -> None:
    """The product's result is not what the fused one gives: that one is scaled."""
    model = encoder(parts=True)
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "l0.n1.scale")
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32([1, -1] * 16), weight.name))
    reader = next(node for node in model.graph.node if "l0.n1.scale" in node.input)
    assert reader.output[0] in region(located(folder, model))


def test_what_is_rounded_and_taken_back_is_a_fault(folder: Path) -> None:
    model, nodes, make = encoder(parts=True), [], onnx.helper.make_node
    for node in model.graph.node:
        nodes.append(node)
        if "l1.up.b" in node.input:
            name, node.output[0] = node.output[0], "precise"
            nodes += [make("Cast", ["precise"], ["narrow"], to=10), make("Cast", ["narrow"], [name], to=1)]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    assert {name, "narrow"} & set(region(located(folder, model)))


def test_nothing_planted_accuses_nobody(folder: Path) -> None:
    assert [each for each in located(folder, encoder(parts=True)).suspects if each["diagnosis"] == "kernel"] == []


def test_what_follows_the_tensor_that_is_the_other_form_s_output_is_compared_with_it(tmp_path: Path) -> None:
    """The first form's inner sum is the second's output; the logarithm behind it is the fault."""
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32), "w")
    texts = (
        "mine (float[3, 4] x) => (float[3, 6] y) { [dense] a = MatMul(x, w) [sum] b = Add(a, a) [log] y = Log(b) }",
        "theirs (float[3, 4] x) => (float[3, 6] out) { p = MatMul(x, w) out = Add(p, p) }",
    )
    models = [from_text(text) for text in texts]
    for model in models:
        model.graph.initializer.append(weight)
    feed = {"x": np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)}
    assert [(row["node"], row["diagnosis"]) for row in between(*models, tmp_path, feed).suspects] == [("log", "nan")]


def test_a_node_of_several_outputs_is_no_majority_of_nodes(tmp_path: Path) -> None:
    """Three outputs of one LSTM are off, two tensors behind it are right: it is at fault, not the precision of all."""
    random = np.random.default_rng(6)
    held = {name: (random.standard_normal(shape) / 2).astype(np.float32)
            for name, shape in (("w", (1, 16, 3)), ("r", (1, 16, 4)), ("head", (4, 5)))}  # fmt: skip
    models = []
    for factor in (1.06, 1.0):
        model = from_text(
            """g (float[5, 2, 3] x) => (float[5, 2, 5] y) <int64[1] one = {1}> {
                [cell] a, b, c = LSTM <hidden_size = 4> (x, w, r)
                [flat] d = Squeeze(a, one)
                [dense] y = MatMul(d, head)
            }"""
        )
        own = {**held, "w": held["w"] * np.float32(factor)}
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in own.items())
        models.append(model)
    feed = {"x": random.standard_normal((5, 2, 3)).astype(np.float32)}
    assert between(*models, tmp_path, feed).nodes == ["cell"]


SCALAR = """g (float[2, 6] x) => (float[b, c] y) {
    a = Abs(x)  one = Constant<value = int64 {3}>()  n = Unsqueeze(one, zero)
    shape = Concat<axis=0>(n, four)  r = Reshape(a, shape)  y = Neg(r) }"""
VECTOR = """g (float[2, 6] x) => (float[b, c] y) {
    a = Abs(x)  n = Constant<value = int64[1] {3}>()
    shape = Concat<axis=0>(n, four)  r = Reshape(a, shape)  y = Neg(r) }"""


@pytest.mark.parametrize("texts", [(SCALAR, VECTOR), (VECTOR, SCALAR)], ids=["of a scalar", "of one element"])
def test_a_scalar_and_a_tensor_of_one_element_are_one_value(texts: tuple[str, str], tmp_path: Path) -> None:
    weights = {"zero": np.int64([0]), "four": np.int64([4])}
    models = [
        with_weights(from_text(text), **{name: value for name, value in weights.items() if name in text})
        for text in texts
    ]
    models[1] = renamed(models[1])[0]
    for value, name in zip((*models[1].graph.input, *models[1].graph.output), "xy", strict=True):
        for node in models[1].graph.node:
            node.input[:] = [name if each == value.name else each for each in node.input]
            node.output[:] = [name if each == value.name else each for each in node.output]
        value.name = name
    x = np.random.default_rng(6).standard_normal((2, 6)).astype(np.float32)
    found = between(*models, tmp_path, {"x": x})
    assert found.nodes == [] and found.result["tensors"] >= 4


def test_a_layout_makes_scalars_and_back() -> None:
    naming = Naming({})
    naming.align([AlignedPair("a", "b", "certain", ("value",), Layout(after=()))], ["a"], ["b"])
    scalar = naming.laid("a", np.int64([3]))
    assert scalar.shape == () and naming.unlaid("a", scalar).shape == (1,)

"""Two models compared: what was done to one of them is what is reported, whatever its nodes are called."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from support import models
from support.graphs import random_model

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.diff.models import diff_models
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec

Model = onnx.ModelProto
many = settings(max_examples=20, suppress_health_check=list(HealthCheck))


def compared(a: Model, b: Model, folder: Path, **fields: Any) -> DiffOutcome:
    paths = [folder / name for name in ("a.onnx", "b.onnx")]
    for path, model in zip(paths, (a, b), strict=True):
        path.write_bytes(model.SerializeToString())
    return diff_models(DiffSpec(a=str(paths[0]), b=str(paths[1]), **fields))


def found(outcome: DiffOutcome, key: str) -> list[dict[str, Any]]:
    return [item.fields for section in outcome.sections if section.key == key for item in section.items]


def counts(outcome: DiffOutcome) -> dict[str, int]:
    """How many differences each section has, empty ones left out."""
    return {section.key: len(section.items) for section in outcome.sections if section.items}


def copied(model: Model) -> Model:
    other = Model()
    other.CopyFrom(model)
    return other


def renamed(model: Model) -> Model:
    """Every node, inner tensor and weight under another name; bodies read the new names too."""
    other = copied(model)
    kept = {value.name for value in [*other.graph.input, *other.graph.output]}

    def new(name: str) -> str:
        return name if name in kept or not name else f"new/{name}"

    def rename(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            node.name = new(node.name)
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    rename(attribute.g)
                    for value in attribute.g.output:
                        value.name = new(value.name)
        for tensor in graph.initializer:
            tensor.name = new(tensor.name)

    rename(other.graph)
    return other


@many
@given(seed=st.integers(0, 10_000))
@example(seed=35)  # an Identity of an Identity of a weight, which is listed before it
def test_a_model_is_equal_to_itself_in_another_order(seed: int, tmp_path: Path) -> None:
    model, other = random_model(seed), random_model(seed)
    nodes = list(other.graph.node)
    np.random.default_rng(seed).shuffle(nodes)  # type: ignore[arg-type]
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    outcome = compared(model, other, tmp_path)
    assert outcome.equal and counts(outcome) == {}


@many
@given(seed=st.integers(0, 10_000))
def test_other_names_do_not_make_another_model(seed: int, tmp_path: Path) -> None:
    model = random_model(seed)
    outcome = compared(model, renamed(model), tmp_path)
    assert outcome.equal
    assert set(counts(outcome)) <= {"nodes_renamed", "weights_renamed"}
    for pair in found(outcome, "nodes_renamed"):
        assert pair["b"].replace("new/", "") == pair["a"]


@many
@given(seed=st.integers(0, 10_000), place=st.integers(0, 24), rename=st.booleans())
def test_one_changed_attribute_is_one_changed_node(seed: int, place: int, rename: bool, tmp_path: Path) -> None:
    model = random_model(seed)
    twins = len({(node.op_type, *node.input) for node in model.graph.node}) < len(model.graph.node)
    assume(not (rename and twins))  # of two nodes alike, nothing tells which is which once all names are others
    other = renamed(model) if rename else copied(model)
    model.graph.node[place].attribute.append(helper.make_attribute("mark", 1))
    outcome = compared(model, other, tmp_path)
    assert not outcome.equal
    (changed,) = found(outcome, "nodes_changed")
    label = model.graph.node[place].name or model.graph.node[place].output[0]
    assert changed["node"] == label
    assert changed["changes"] == ["mark: 1 → none"]
    assert set(counts(outcome)) <= {"nodes_changed", "nodes_renamed", "weights_renamed"}


def numbered(ops: list[str]) -> Model:
    """A chain whose nodes and tensors are numbered: a node put in between shifts all names after it."""
    nodes, x, weights = [], "x", []
    for i, op in enumerate(ops):
        name, _, size = op.partition(":")
        inputs = [x]
        if size:
            weights.append(numpy_helper.from_array(np.full(4, float(size), np.float32), f"w{i}"))
            inputs.append(f"w{i}")
        nodes.append(helper.make_node(name, inputs, [f"{i}"], f"{name}_{i}"))
        x = f"{i}"
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "numbered", values[:1], values[1:], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("at", [0, 3, 5, 8])
def test_numbered_names_that_shift_do_not_mislead(at: int, tmp_path: Path) -> None:
    ops = ["Mul:2", "Relu", "Add:3", "Relu", "Mul:4", "Relu", "Add:5", "Relu", "Mul:6"]
    more = [*ops[:at], "Mul:9", "Relu", *ops[at:]]
    a, b = numbered(ops), numbered(more)
    for model in (a, b):
        model.graph.node[-1].output[0] = model.graph.output[0].name = "out"
    outcome = compared(a, b, tmp_path)
    assert {entry["op"] for entry in found(outcome, "nodes_only_b")} == {"Mul", "Relu"}
    assert found(outcome, "nodes_only_a") == []
    assert [entry["name"] for entry in found(outcome, "weights_only_b")] == [f"w{at}"]
    assert found(outcome, "weights_changed") == []
    assert len(found(outcome, "nodes_changed")) <= 1


def test_a_node_put_in_between(tmp_path: Path) -> None:
    model = models.conv_net()
    other = copied(model)
    other.graph.node.insert(3, helper.make_node("Relu", ["r0"], ["again"], "extra"))
    other.graph.node[4].input[0] = "again"
    outcome = compared(model, other, tmp_path)
    assert counts(outcome) == {"operators": 1, "nodes_changed": 1, "nodes_only_b": 1}
    assert found(outcome, "nodes_only_b") == [{"node": "extra", "op": "Relu"}]
    assert found(outcome, "nodes_changed")[0]["changes"] == ["input 0: r0 → again"]
    assert found(outcome, "operators") == [{"op": "Relu", "a": 2, "b": 3}]
    back = compared(other, model, tmp_path)
    assert found(back, "nodes_only_a") == [{"node": "extra", "op": "Relu"}]


def test_a_changed_weight_says_how_far(tmp_path: Path) -> None:
    model, other = models.conv_net(), models.conv_net()
    weight = numpy_helper.to_array(other.graph.initializer[0]).copy()
    weight[0, 0, 0, :2] += (0.5, -0.25)
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, other.graph.initializer[0].name))
    outcome = compared(model, other, tmp_path)
    assert counts(outcome) == {"weights_changed": 1}
    (changed,) = found(outcome, "weights_changed")
    assert changed["name"] == "w0" and changed["over"] == 2 and changed["size"] == weight.size
    assert changed["max_abs"] == pytest.approx(0.5, rel=1e-6)
    assert "max abs 0.5 in 'w0'" in outcome.summary
    near = ToleranceSpec(atol={"": 1.0})
    assert compared(model, other, tmp_path, tolerance=near).equal


def test_weights_in_external_files_are_compared_by_value(tmp_path: Path) -> None:
    model = models.mlp(width=32)
    (tmp_path / "outside").mkdir()
    inside, outside = tmp_path / "in.onnx", tmp_path / "outside" / "out.onnx"
    onnx.save(model, inside)
    models.with_external_weights(copied(model), outside)
    assert diff_models(DiffSpec(a=str(inside), b=str(outside))).equal
    data = (tmp_path / "outside" / "weights.bin").read_bytes()
    (tmp_path / "outside" / "weights.bin").write_bytes(data[:-4] + b"\0\0\xc0\x7f")  # a NaN in the last bias
    changed = found(diff_models(DiffSpec(a=str(inside), b=str(outside))), "weights_changed")
    assert [entry["name"] for entry in changed] == ["b2"]


def test_constants_are_compared_by_value_wherever_they_lie(tmp_path: Path) -> None:
    def constant(value: float, before: str) -> Model:
        values = numpy_helper.from_array(np.full(600, value, np.float32))
        nodes = [helper.make_node("Constant", [], ["c"], "k", value=values),
                 helper.make_node("Add", ["x", "c"], ["y"], "add")]  # fmt: skip
        infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [600]) for n in "xy"]
        graph = helper.make_graph(nodes, "g", infos[:1], infos[1:])
        return helper.make_model(graph, ir_version=8, producer_name=before)

    equal = compared(constant(1, "a"), constant(1, "a producer with a longer name"), tmp_path)
    assert equal.equal and set(counts(equal)) == {"notes"}
    (changed,) = found(compared(constant(1, ""), constant(1.5, ""), tmp_path), "nodes_changed")
    assert changed["node"] == "k" and "max abs 0.5" in changed["changes"][0]


@pytest.mark.parametrize(
    ("change", "key", "fields"),
    [
        (lambda m: m.opset_import[0].__setattr__("version", 20), "model", {"a": 21, "b": 20}),
        (lambda m: setattr(m, "ir_version", 9), "model", {"a": 10, "b": 9}),
        (lambda m: m.graph.input[0].__setattr__("name", "pixels"), "inputs", {"name": "image", "b": "none"}),
        (
            lambda m: m.graph.output[0].type.tensor_type.__setattr__("elem_type", 10),
            "outputs",
            {"a": "float32 1x4", "b": "float16 1x4"},
        ),
    ],
)
def test_what_a_model_says_of_itself(
    change: Callable[[Model], None], key: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    other = models.conv_net()
    change(other)
    outcome = compared(models.conv_net(), other, tmp_path)
    assert not outcome.equal
    assert fields.items() <= found(outcome, key)[0].items()


def test_bodies_and_functions_are_compared_too(tmp_path: Path) -> None:
    other = models.if_model()
    other.graph.node[1].attribute[0].g.node[0].op_type = "Mul"
    (changed,) = found(compared(models.if_model(), other, tmp_path), "nodes_changed")
    assert changed["node"] == "choose/then_branch/in_then" and changed["changes"] == ["operator: Add → Mul"]
    function = models.function_model()
    function.functions[0].node[0].op_type = "Mul"
    (changed,) = found(compared(models.function_model(), function, tmp_path), "nodes_changed")
    assert changed["node"] == "local.Twice/inside"


def test_twenty_thousand_nodes_take_a_second(tmp_path: Path) -> None:
    def chain(count: int, extra: int) -> Model:
        nodes, x = [], "t0"
        for i in range(count):
            if i == extra:
                nodes.append(helper.make_node("Abs", [x], ["extra"], "extra"))
                x = "extra"
            nodes.append(helper.make_node(("Relu", "Tanh", "Neg")[i % 3], [x], [f"t{i + 1}"], f"n{i}"))
            x = f"t{i + 1}"
        values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("t0", x)]
        return helper.make_model(helper.make_graph(nodes, "long", values[:1], values[1:]), ir_version=8)

    a, b = chain(20_000, -1), chain(20_000, 10_000)
    started = time.process_time()
    outcome = compared(a, b, tmp_path)
    assert time.process_time() - started < 3  # 0.5 s when nothing else runs
    assert counts(outcome) == {"operators": 1, "nodes_changed": 1, "nodes_only_b": 1}


def test_many_nodes_that_are_all_alike_stay_linear(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], [f"y{i}"], f"n{i}") for i in range(30_000)]
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("x", "y29999")]
    model = helper.make_model(helper.make_graph(nodes, "wide", values[:1], values[1:]), ir_version=8)
    other = copied(model)
    for node in other.graph.node:
        node.name = ""
    started = time.process_time()
    assert compared(model, other, tmp_path).equal
    assert time.process_time() - started < 10


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(models.mlp().SerializeToString())
    (tmp_path / "b.onnx").write_bytes(b"nothing")
    with pytest.raises(BadFile, match=r"b\.onnx"):
        diff_models(DiffSpec(a=str(tmp_path / "a.onnx"), b=str(tmp_path / "b.onnx")))

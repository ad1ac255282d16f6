"""Known-bad kinds of graphs: what a linter is for. Each maker returns a model with one defect, or a few."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Node = NodeProto


def value(name: str, shape: list[int | str] | None = None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """A typed graph input or output; 2x2 float32 by default."""
    return helper.make_tensor_value_info(name, dtype, [2, 2] if shape is None else shape)


def build(
    nodes: list[Node],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: list[TensorProto] | None = None,
    *,
    ir: int = 8,
    opsets: dict[str, int] | None = None,
    name: str = "g",
) -> onnx.ModelProto:
    """A model, unchecked."""
    graph = helper.make_graph(nodes, name, inputs, outputs, weights or [])
    imports = [helper.make_opsetid(domain, version) for domain, version in (opsets or {"": 17}).items()]
    return helper.make_model(graph, ir_version=ir, opset_imports=imports)


def weight(name: str, *shape: int) -> TensorProto:
    """Ones, float32."""
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def node(op: str, inputs: list[str], outputs: list[str], name: str = "", **attributes: Any) -> Node:
    """A node named after its operator and first output, unless a name is given."""
    return helper.make_node(op, inputs, outputs, name or f"{op}_{outputs[0]}", **attributes)


def bad_op() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("MatMull", ["a", "a"], ["b"]), node("Relu", ["b"], ["c"])]
    return build([*nodes, node("Tanh", ["x"], ["d"])], [value("x")], [value("c"), value("d")])


def bad_opset() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Gelu", ["a"], ["b"])]
    return build(nodes, [value("x")], [value("b")])


def bad_attribute() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Softmax", ["a"], ["b"], sharpness=3), node("Relu", ["b"], ["c"])]
    return build(nodes, [value("x")], [value("c")])


def bad_attribute_value() -> onnx.ModelProto:
    return build([node("Softmax", ["x"], ["a"], axis=7), node("Relu", ["x"], ["b"])], [value("x")],
                 [value("a"), value("b")])  # fmt: skip


def missing_attribute() -> onnx.ModelProto:
    return build([node("Cast", ["x"], ["a"]), node("Relu", ["x"], ["b"])], [value("x")], [value("a"), value("b")])


def bad_arity() -> onnx.ModelProto:
    return build([node("Add", ["x"], ["a"]), node("Relu", ["x"], ["b"])], [value("x")], [value("a"), value("b")])


def matmul_shapes() -> onnx.ModelProto:
    nodes = [
        node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["x", "x"], ["c"]),
        node("MatMul", ["c", "w"], ["d"]),
    ]  # fmt: skip
    return build(nodes, [value("x")], [value("b"), value("d")], [weight("w", 3, 2)])


def add_shapes() -> onnx.ModelProto:
    nodes = [node("Add", ["x", "w"], ["a"]), node("Mul", ["x", "x"], ["b"]), node("Add", ["b", "w"], ["c"])]
    return build(nodes, [value("x")], [value("a"), value("c")], [weight("w", 3)])


def reshape_at_run() -> onnx.ModelProto:
    shape = numpy_helper.from_array(np.array([3, -1], np.int64), "shape")
    nodes = [node("NonZero", ["x"], ["a"]), node("Reshape", ["a", "shape"], ["b"]), node("Relu", ["x"], ["c"])]
    outputs = [value("b", ["n", "m"], TensorProto.INT64), value("c")]
    return build(nodes, [value("x", [5, 1])], [outputs[0], value("c", [5, 1])], [shape])


def gather_out_of_range() -> onnx.ModelProto:
    index = numpy_helper.from_array(np.array([9], np.int64), "index")
    nodes = [node("Gather", ["x", "index"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["x"], ["c"])]
    return build(nodes, [value("x")], [value("b", [1, 2]), value("c")], [index])


def mixed_types() -> onnx.ModelProto:
    whole = numpy_helper.from_array(np.ones((2, 2), np.int64), "whole")
    nodes = [node("Add", ["x", "whole"], ["a"]), node("Relu", ["x"], ["b"])]
    return build(nodes, [value("x")], [value("a"), value("b")], [whole])


def unsupported_type() -> onnx.ModelProto:
    nodes = [node("Not", ["x"], ["a"]), node("Relu", ["x"], ["b"])]
    return build(nodes, [value("x")], [value("a"), value("b")])


def wrong_value_info() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["b"])]
    model = build(nodes, [value("x")], [value("b")])
    model.graph.value_info.append(value("a", dtype=TensorProto.INT64))
    return model


def wrong_output_type() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x")], [value("a", dtype=TensorProto.INT64)])


def duplicate_names() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"], "same"), node("Tanh", ["a"], ["b"], "same"), node("Neg", ["b"], ["c"])]
    return build(nodes, [value("x")], [value("c")])


def cyclic() -> onnx.ModelProto:
    nodes = [node("Add", ["x", "c"], ["a"]), node("Relu", ["a"], ["c"]), node("Tanh", ["x"], ["d"])]
    return build(nodes, [value("x")], [value("c"), value("d")])


def unsorted() -> onnx.ModelProto:
    return build([node("Relu", ["a"], ["b"]), node("Tanh", ["x"], ["a"])], [value("x")], [value("b")])


def missing_tensor() -> onnx.ModelProto:
    nodes = [node("Add", ["x", "nowhere"], ["a"]), node("Relu", ["a"], ["b"]), node("Tanh", ["x"], ["c"])]
    return build(nodes, [value("x")], [value("b"), value("c")])


def missing_output() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x")], [value("a"), value("nowhere")])


def empty_graph_name() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x")], [value("a")], name="")


def empty_initializer_name() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x")], [value("a")], [weight("", 2)])


def unnamed_nodes() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["b"])]
    return build(nodes, [value("x")], [value("b")], [weight("w", 3, 2)])


def invalid_dtype() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x", dtype=0)], [value("a")])


def invalid_weight_dtype() -> onnx.ModelProto:
    model = build([node("Add", ["x", "w"], ["a"])], [value("x")], [value("a")], [weight("w", 2)])
    model.graph.initializer[0].data_type = 77
    return model


def short_weight() -> onnx.ModelProto:
    model = build([node("Add", ["x", "w"], ["a"])], [value("x")], [value("a")], [weight("w", 2)])
    model.graph.initializer[0].raw_data = b"\0" * 6
    return model


def duplicate_outputs() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"], "first"), node("Tanh", ["x"], ["a"], "second"), node("Neg", ["a"], ["b"])]
    return build(nodes, [value("x")], [value("b")])


def duplicate_inputs() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x"), value("x")], [value("a")])


def no_opset() -> onnx.ModelProto:
    model = build([node("Relu", ["x"], ["a"])], [value("x")], [value("a")])
    del model.opset_import[:]
    return model


def future_opset() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"])], [value("x")], [value("a")], opsets={"": 999})


def custom_op() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Mystery", ["a"], ["b"], domain="my.ops"), node("Tanh", ["b"], ["c"])]
    return build(nodes, [value("x")], [value("c")], opsets={"": 17, "my.ops": 1})


def custom_op_without_import() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Mystery", ["a"], ["b"], domain="my.ops"), node("Tanh", ["b"], ["c"])]
    return build(nodes, [value("x")], [value("c")])


def unused_inputs() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], ["a"]), node("Tanh", ["B"], ["b"]), node("Neg", ["b"], ["c"])]
    return build(nodes, [value("x"), value("A"), value("B")], [value("a")])


def unused_failing() -> onnx.ModelProto:
    nodes = [node("MatMul", ["x", "w"], ["dead"]), node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"])]
    return build(nodes, [value("x")], [value("b")], [weight("w", 3, 2)])


def several() -> onnx.ModelProto:
    """The faults of one report: an empty graph name, three independent failing nodes, unused inputs and nodes."""
    nodes = [
        node("MatMul", ["x", "w"], ["m0"], "MatMul_0"), node("Add", ["x", "v"], ["s"], "Add_0"),
        node("MatMul", ["x", "x"], ["m1"], "MatMul_1"), node("NonZero", ["m1"], ["z"], "NonZero"),
        node("MatMul", ["m1", "w"], ["m3"], "MatMul_3"), node("Tanh", ["m3"], ["t"], "Tanh_0"),
    ]  # fmt: skip
    outputs = [value("t"), value("s"), value("z", [2, "n"], TensorProto.INT64)]
    return build(nodes, [value("x"), value("A")], outputs, [weight("w", 3, 2), weight("v", 3)], name="")


def bad_body() -> onnx.ModelProto:
    """An If whose taken branch has an impossible MatMul among good nodes."""

    def branch(op: str, extra: list[Node]) -> onnx.GraphProto:
        nodes = [node(op, ["x"], [f"{op}_h"], f"{op}_in"), *extra]
        return helper.make_graph(nodes, op, [], [value(nodes[-1].output[0], ["n", "m"])])

    then = branch("Relu", [node("MatMul", ["Relu_h", "w"], ["then_out"], "bad")])
    other = branch("Neg", [node("Tanh", ["Neg_h"], ["else_out"], "fine")])
    nodes = [node("If", ["c"], ["y"], "choose", then_branch=then, else_branch=other), node("Abs", ["x"], ["z"])]
    return build(nodes, [value("c", [], TensorProto.BOOL), value("x")], [value("y", ["n", "m"]), value("z")],
                 [weight("w", 3, 2)])  # fmt: skip


def no_nodes() -> onnx.ModelProto:
    return build([], [value("x")], [value("x")])


def good() -> onnx.ModelProto:
    return build([node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"])], [value("x")], [value("b")],
                 [weight("w", 2, 2)])  # fmt: skip


def old_ir() -> onnx.ModelProto:
    """IR version 3: every initializer is a graph input too."""
    nodes = [node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"])]
    return build(nodes, [value("x"), value("w")], [value("b")], [weight("w", 2, 2)], ir=3, opsets={"": 9})


KINDS: dict[str, Callable[[], onnx.ModelProto]] = {
    make.__name__: make
    for make in (
        bad_op, bad_opset, bad_attribute, bad_attribute_value, missing_attribute, bad_arity, matmul_shapes, add_shapes,
        reshape_at_run, gather_out_of_range, mixed_types, unsupported_type, wrong_value_info, wrong_output_type,
        duplicate_names, cyclic, unsorted, missing_tensor, missing_output, empty_graph_name, empty_initializer_name,
        unnamed_nodes, invalid_dtype, invalid_weight_dtype, short_weight, duplicate_outputs, duplicate_inputs,
        no_opset, future_opset, custom_op, custom_op_without_import, unused_inputs, unused_failing, several, bad_body,
        no_nodes, good, old_ir,
    )
}  # fmt: skip

"""A small model with all that edits may meet, opened and edited, and models compared node for node."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import Edit, edit_from
from layerwise._tool.surgery.model.structure import Structure


def opened(path: Path) -> Structure:
    """A model as edits take it."""
    with ModelFile(path) as file:
        return Structure.open(file)


def edit(kind: str, **fields: Any) -> Edit:
    """An edit as its JSON describes it."""
    return edit_from({"edit": kind, **fields})


def varied_model(path: Path) -> Path:
    """Write a model with a large weight, computed shapes, an If whose bodies capture, a function, two outputs."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((16, 32)).astype(np.float32),
        "b": rng.standard_normal(32).astype(np.float32),
        "zero": np.array(0, np.int64),
        "tail": np.array([4, 8], np.int64),
        "axis": np.array([0], np.int64),
        "scale": np.array(0.5, np.float32),
    }
    then = helper.make_graph(
        [helper.make_node("Relu", ["sum"], ["then_relu"], "then_relu"),
         helper.make_node("Mul", ["then_relu", "scale"], ["then_y"], "then_mul")],
        "then", [], [helper.make_tensor_value_info("then_y", TensorProto.FLOAT, None)])  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Neg", ["sum"], ["else_y"], "else_neg")],
        "else", [], [helper.make_tensor_value_info("else_y", TensorProto.FLOAT, None)])  # fmt: skip
    function = helper.make_function(
        "my", "Twice", ["a"], ["c"],
        [helper.make_node("Add", ["a", "a"], ["d"], "twice_add"),
         helper.make_node("Identity", ["d"], ["c"], "twice_id")],
        [helper.make_opsetid("", 17)])  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "matmul"),
        helper.make_node("Add", ["product", "b"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["r1"], "relu"),
        helper.make_node("Shape", ["r1"], ["shape"], "shape"),
        helper.make_node("Gather", ["shape", "zero"], ["rows"], "gather"),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["rows1"], "unsqueeze"),
        helper.make_node("Concat", ["rows1", "tail"], ["target"], "concat", axis=0),
        helper.make_node("Reshape", ["r1", "target"], ["cube"], "reshape"),
        helper.make_node("Twice", ["cube"], ["doubled"], "twice", domain="my"),
        helper.make_node("If", ["flag"], ["chosen"], "if", then_branch=then, else_branch=other),
        helper.make_node("Sigmoid", ["chosen"], ["s1"], "sigmoid"),
        helper.make_node("Sigmoid", ["chosen"], ["s2"], "sigmoid2"),
        helper.make_node("Add", ["s1", "s2"], ["y"], "last"),
        helper.make_node("LeakyRelu", ["doubled"], ["z"], "leaky", alpha=0.25),
    ]
    graph = helper.make_graph(
        nodes, "varied",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16]),
         helper.make_tensor_value_info("flag", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32]),
         helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 4, 8])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
        value_info=[helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["n", 32])])  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)
    onnx.save(model, path)
    return path


def nested_model(path: Path) -> Path:
    """The varied model with a Loop at its end, whose body has an If that reads tensors of both graphs around it."""
    model = onnx.load(varied_model(path))
    branches = {
        f"{way}_branch": helper.make_graph(
            [helper.make_node(op, ["now", "s1"], [f"{way}_sum"], f"{way}_{op}"),
             helper.make_node("Tanh", [f"{way}_sum"], [f"{way}_out"], f"{way}_tanh")],
            way, [], [helper.make_tensor_value_info(f"{way}_out", TensorProto.FLOAT, None)])
        for way, op in (("then", "Add"), ("else", "Sub"))
    }  # fmt: skip
    body = helper.make_graph(
        [helper.make_node("Relu", ["carried"], ["now"], "step"),
         helper.make_node("If", ["going"], ["chosen_inside"], "inner", **branches),
         helper.make_node("Identity", ["going"], ["go_on"], "go")],
        "body",
        [helper.make_tensor_value_info("turn", TensorProto.INT64, []),
         helper.make_tensor_value_info("going", TensorProto.BOOL, []),
         helper.make_tensor_value_info("carried", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("chosen_inside", TensorProto.FLOAT, None)])  # fmt: skip
    model.graph.node.append(helper.make_node("Loop", ["turns", "flag", "y"], ["looped"], "loop", body=body))
    model.graph.initializer.append(helper.make_tensor("turns", TensorProto.INT64, [], [2]))
    model.graph.output.append(helper.make_tensor_value_info("looped", TensorProto.FLOAT, None))
    onnx.save(model, path)
    return path


def described(model: onnx.ModelProto) -> dict[str, Any]:
    """All of a model that counts, comparable: nodes in order, inputs and outputs, weights that are used, functions."""
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    functions = [
        (f.domain, f.name, list(f.input), list(f.output), [_node(n, {}) for n in f.node]) for f in model.functions
    ]
    return {"graph": _graph(model.graph, {}), "opsets": opsets, "functions": functions, "ir": model.ir_version}


def _graph(graph: onnx.GraphProto, outer: dict[str, Any]) -> dict[str, Any]:
    weights = {**outer, **{tensor.name: _tensor(tensor) for tensor in graph.initializer}}
    own = {tensor.name for tensor in graph.initializer}
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    return {
        "nodes": [_node(node, weights) for node in graph.node],
        "inputs": [_value(value) for value in graph.input if value.name not in own],
        "outputs": [_value(value) for value in graph.output],
        "weights": {name: weights[name] for name in read if name in weights},  # graphsurgeon copies them into bodies
    }


def _node(node: onnx.NodeProto, outer: dict[str, Any]) -> dict[str, Any]:
    bodies = [_graph(body, outer) for a in node.attribute for body in ([a.g] if a.HasField("g") else a.graphs)]
    plain = {a.name: _attribute(a) for a in node.attribute if not a.HasField("g") and not a.graphs}
    return {
        "node": (node.op_type, node.domain, node.name, list(node.input), list(node.output)),
        "attributes": plain,
        "bodies": bodies,
    }


def _attribute(attribute: onnx.AttributeProto) -> Any:
    if attribute.HasField("t"):
        return _tensor(attribute.t)
    return attribute.type, attribute.ref_attr_name or helper.get_attribute_value(attribute)


def _tensor(tensor: onnx.TensorProto) -> Any:
    return tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()


def _value(value: onnx.ValueInfoProto) -> Any:
    tensor = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    return value.name, tensor.elem_type, dims if tensor.HasField("shape") else None

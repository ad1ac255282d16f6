"""Models that are large or hostile by their graph, made in a second."""

from pathlib import Path

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

OPS = ("Add", "Relu", "Mul", "Sigmoid", "Sub", "Tanh", "Softmax")


def chain_model(path: Path, n_nodes: int) -> Path:
    """Write a model of `n_nodes` nodes in blocks of seven, with names like an exporter's; returns `path`."""
    graph = GraphProto(name="chain")
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 56, 56]))
    before = "x"
    for i in range(n_nodes):
        op = OPS[i % len(OPS)]
        output = f"/encoder/layer.{i // len(OPS)}/{op}_output_0"
        inputs = [before, before] if op in ("Add", "Mul", "Sub") else [before]
        name = f"/encoder/layer.{i // len(OPS)}/{op}"
        graph.node.append(NodeProto(op_type=op, name=name, input=inputs, output=[output]))
        before = output
    graph.output.append(helper.make_tensor_value_info(before, TensorProto.FLOAT, None))
    return save(path, graph)


def save(path: Path, graph: GraphProto) -> Path:
    """Write `graph` as a model of opset 17."""
    model = ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return path

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


HOSTILE = (
    "\x1b[2J\x1b]52;c;aGFjaw==\x07evil",
    "[bold red]markup[/bold red] [@click=app.quit]quit[/]",
    "two\nlines\r\tand tabs",
    "n" * 10_000,
    "\u202egnp.exe\u202c \u05d0\u05d1\u05d2 \u0627\u0644",
    "宽字符节点名称" * 8,
    "e\u0301\u0301\u0301 \u200b\u200d zero",
    "\x9b31m c1",
    "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    "{not} %s a format",
    "",
)
"""Names that try to steer the terminal or the toolkit."""


def hostile_model(path: Path) -> Path:
    """Write a chain of nodes, outputs and attributes with HOSTILE names; returns `path`."""
    graph = GraphProto(name=HOSTILE[0], doc_string=HOSTILE[1])
    graph.input.append(helper.make_tensor_value_info("x" + HOSTILE[2], TensorProto.FLOAT, [1, HOSTILE[0], None]))
    before = graph.input[0].name
    for i, name in enumerate(HOSTILE):
        output = f"{name}{i}"
        attributes = [helper.make_attribute(HOSTILE[0], HOSTILE[1]), helper.make_attribute("text", HOSTILE[2])]
        node = NodeProto(op_type=f"Op{HOSTILE[1][:12]}" if i % 2 else "Relu", name=name, input=[before],
                         output=[output], domain="" if i % 2 == 0 else HOSTILE[0], attribute=attributes)  # fmt: skip
        graph.node.append(node)
        before = output
    graph.output.append(helper.make_tensor_value_info(before, TensorProto.FLOAT, None))
    return save(path, graph)

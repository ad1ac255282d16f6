"""A model with the metadata that PyTorch's exporter writes on nodes: two blocks, each with a projection and Tanh."""

import re
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8
LINES = {"MatMul": 12, "Add": 12, "Tanh": 14}


def note(node: onnx.NodeProto, module: str, source: str, file: str = "/src/net.py", line: int = 12) -> onnx.NodeProto:
    """Write on a node what the exporter would: it comes from `module` and, within, from the fx node `source`."""
    found = re.findall(r"[^.]+(?:\.\d+)?", module)
    scopes = ["", *(".".join(found[: level + 1]) for level in range(len(found)))]
    classes = ["net.Net", *("net.Block" if scope[-1].isdigit() else "torch.nn.Linear" for scope in scopes[1:])]
    values = {
        "name_scopes": repr([*scopes, source]), "class_hierarchy": repr([*classes, f"aten.{source}"]),
        "fx_node": f"%{source} : [num_users=1] = call_function[target=aten.{source}](args = (), kwargs = {{}})",
        "stack_trace": f'File "{file}", line {line}, in forward\n    x = f(x)\n'
                       '  File "/env/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return g(x)',
    }  # fmt: skip
    for key, value in values.items():
        node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    return node


def noted_pair(folder: Path, file: str = "/src/net.py", blocks: int = 2) -> tuple[Path, Path]:
    """Models noted.onnx, and wrong.onnx with a wrong weight in the last block.

    The nodes of block k: MatMul and Add of `block.k.proj`, Tanh of `block.k`; then a Cast that nobody noted, whose
    output y is the graph's.
    """
    paths = folder / "noted.onnx", folder / "wrong.onnx"
    for path in paths:
        rng = np.random.default_rng(0)
        nodes, weights, tensor = [], [], "x"
        for k in range(blocks):
            weight = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.float32(WIDTH**0.5)
            weight[0, 0] += np.float32(0.5 * (path.name == "wrong.onnx" and k == blocks - 1))
            weights += [numpy_helper.from_array(weight, f"w{k}"), numpy_helper.from_array(weight[0] * 0, f"b{k}")]
            for op, reads, made in (("MatMul", (tensor, f"w{k}"), f"mm_{k}"), ("Add", (f"mm_{k}", f"b{k}"), f"add_{k}"),
                                    ("Tanh", (f"add_{k}",), f"tanh_{k}")):  # fmt: skip
                module = f"block.{k}" if op == "Tanh" else f"block.{k}.proj"
                nodes.append(note(helper.make_node(op, reads, [made], f"node_{made}"), module, made, file, LINES[op]))
            tensor = f"tanh_{k}"
        nodes.append(helper.make_node("Cast", [tensor], ["y"], "node_cast", to=TensorProto.FLOAT))
        graph = helper.make_graph(
            nodes, "noted", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDTH])], weights,
        )  # fmt: skip
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return paths

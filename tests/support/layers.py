"""Models with known trouble in them."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(
    path: Path, nodes: list[onnx.NodeProto], outputs: list[str], weights: dict[str, np.ndarray] | None = None
) -> str:
    """Save a model of one input x, float32 (2, 8), and return its path."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return str(path)


def chain(path: Path, scale: float = 2.0, step: float = 1.0) -> str:
    """x -> a=Relu -> b=a*scale -> c=Sigmoid -> y=c+step, z=Neg(b)."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Mul", ["a", "scale"], ["b"], name="scale_it"),
        helper.make_node("Sigmoid", ["b"], ["c"], name="squash"),
        helper.make_node("Add", ["c", "step"], ["y"], name="shift"),
        helper.make_node("Neg", ["b"], ["z"], name="negate"),
    ]
    weights = {"scale": np.array(scale, np.float32), "step": np.array(step, np.float32)}
    return save(path, nodes, ["y", "z"], weights)


def overflowing(path: Path, half: bool) -> str:
    """x -> big=x*300 -> sq=big*big -> (through float16 if `half`) -> s=Sqrt -> y=s*1; 90000 is beyond float16."""
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["big"], name="scale"),
        helper.make_node("Mul", ["big", "big"], ["sq0"]),
    ]
    if half:
        nodes += [
            helper.make_node("Cast", ["sq0"], ["sq16"], to=TensorProto.FLOAT16),
            helper.make_node("Cast", ["sq16"], ["sq"], to=TensorProto.FLOAT, name="back"),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["sq0"], ["sq"], name="pass_on"))
    nodes += [helper.make_node("Sqrt", ["sq"], ["s"], name="root"), helper.make_node("Mul", ["s", "one"], ["y"])]
    return save(path, nodes, ["y"], {"k": np.array(1000, np.float32), "one": np.array(1, np.float32)})

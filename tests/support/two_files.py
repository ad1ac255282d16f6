"""The files that command lines of the comparison with Polygraphy name: models, data, scripts."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.sample_models import model
from support.two_files_more import make_data, odd_models, stripped

FLOAT = TensorProto.FLOAT


def make_files(folder: Path) -> None:
    """Write all into `folder`; a test uses what it names."""
    models = {
        "m": chain(0), "off": chain(0, 1e-3), "dyn": chain(0, rows="N"), "renamed": chain(0, end="out"),
        "two": two(), "fold": folded(), "nan": failing("Log"), "inf": failing("Div"), "ints": integers(),
        "conv": conv(), "cond": conditional(), "bad": wrong(), "unused": unused(), "square": chain(0, rows=8),
        "stripped": stripped(chain(0)), "attention": attention(), "doubles": doubles(), **odd_models(),
    }  # fmt: skip
    for name, proto in models.items():
        onnx.save(proto, folder / f"{name}.onnx")
    onnx.save(chain(0), folder / "ext.onnx", save_as_external_data=True, location="ext.data", size_threshold=0)
    (folder / "weights").mkdir()
    onnx.save(
        chain(0), folder / "weights" / "apart.onnx", save_as_external_data=True, location="a.data", size_threshold=0
    )
    (folder / "weights" / "apart.onnx").rename(folder / "apart.onnx")
    make_data(folder)


def attention() -> onnx.ModelProto:
    """x [1, 8, 8] → Relu → MatMul, Softmax, MatMul, all of the same tensor → y."""
    nodes = [
        helper.make_node("Relu", ["x"], ["q"], name="relu"),
        helper.make_node("MatMul", ["q", "q"], ["s"], name="scores"),
        helper.make_node("Softmax", ["s"], ["p"], name="softmax"),
        helper.make_node("MatMul", ["p", "q"], ["y"], name="mixed"),
    ]
    return model(nodes, ["x"], ["y"], [], shape=[1, 8, 8])


def chain(seed: int, off: float = 0.0, rows: int | str = 1, end: str = "y") -> onnx.ModelProto:
    """x [rows, 8] → Gemm → Relu → Gemm → Relu → y, the last weights `off`."""
    random = np.random.default_rng(seed)
    weights, nodes, name = [], [], "x"
    for n in range(2):
        w = random.standard_normal((8, 8), np.float32) + np.float32(off * n)
        weights += [numpy_helper.from_array(w, f"w{n}"), numpy_helper.from_array(np.ones(8, np.float32), f"b{n}")]
        out = end if n else "r0"
        nodes.append(helper.make_node("Gemm", [name, f"w{n}", f"b{n}"], [f"g{n}"], name=f"gemm_{n}"))
        nodes.append(helper.make_node("Relu", [f"g{n}"], [out], name=f"relu_{n}"))
        name = out
    return model(nodes, ["x"], [name], weights, shape=[rows, 8])


def two() -> onnx.ModelProto:
    """a, b [1, 4] → y, z, through tensors that both need."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["s"], name="add"),
        helper.make_node("Mul", ["s", "b"], ["y"], name="mul"),
        helper.make_node("Sub", ["s", "a"], ["z"], name="sub"),
    ]
    return model(nodes, ["a", "b"], ["y", "z"], shape=[1, 4])


def folded() -> onnx.ModelProto:
    """x [1, 8] reshaped by what its own shape says, added to constants that fold, one node unused."""
    weights = [numpy_helper.from_array(np.ones(8, np.float32), "w"), numpy_helper.from_array(np.array([0]), "zero")]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], name="shape"),
        helper.make_node("Reshape", ["x", "shape"], ["same"], name="reshape"),
        helper.make_node("Add", ["w", "w"], ["double"], name="double"),
        helper.make_node("Add", ["same", "double"], ["y"], name="last"),
        helper.make_node("Relu", ["x"], ["unused"], name="unused"),
    ]
    return model(nodes, ["x"], ["y"], weights, shape=[1, 8])


def failing(op: str) -> onnx.ModelProto:
    """x [1, 8] → y of NaN (Log) or Inf (Div)."""
    weights = [
        numpy_helper.from_array(np.full(1, -2, np.float32), "low"),
        numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
    ]
    nodes = [helper.make_node("Add", ["x", "low"], ["negative"], name="add")]
    inputs = ["negative"] if op == "Log" else ["negative", "zero"]
    nodes.append(helper.make_node(op, inputs, ["y"], name="fails"))
    return model(nodes, ["x"], ["y"], weights, shape=[1, 8])


def integers() -> onnx.ModelProto:
    """i int64 [4] → j, and a bool."""
    nodes = [
        helper.make_node("Mul", ["i", "i"], ["j"], name="square"),
        helper.make_node("Equal", ["i", "j"], ["same"], name="equal"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, [4]) for name in ("i", "j")]
    same = helper.make_tensor_value_info("same", TensorProto.BOOL, [4])
    graph = helper.make_graph(nodes, "ints", values[:1], [values[1], same])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def doubles() -> onnx.ModelProto:
    """x float64 [4] → y, which TensorRT computes in FP32."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.DOUBLE, [4]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"], name="add")], "doubles", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv() -> onnx.ModelProto:
    """x [1, 4, 4, 4] → Conv → y, a kernel that can be sparse."""
    kernel = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 4, 1, 1), np.float32), "k")
    return model([helper.make_node("Conv", ["x", "k"], ["y"], name="conv")], ["x"], ["y"], [kernel], shape=[1, 4, 4, 4])


def conditional() -> onnx.ModelProto:
    """x [4] → If with a branch each for small and large sums."""
    out = [helper.make_tensor_value_info("branch", FLOAT, [4])]
    then, other = (
        helper.make_graph([helper.make_node(op, ["x"], ["branch"], name=op)], op, [], out) for op in ("Abs", "Neg")
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], name="sum", keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["test"], name="greater"),
        helper.make_node("If", ["test"], ["y"], name="choose", then_branch=then, else_branch=other),
    ]
    return model(nodes, ["x"], ["y"], [numpy_helper.from_array(np.zeros((), np.float32), "zero")], shape=[4])


def wrong() -> onnx.ModelProto:
    """A MatMul whose shapes do not fit, and two nodes of one name."""
    weight = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="twice"),
        helper.make_node("MatMul", ["r", "w"], ["y"], name="matmul"),
        helper.make_node("Abs", ["x"], ["z"], name="twice"),
    ]
    return model(nodes, ["x"], ["y", "z"], [weight], shape=[1, 8])


def unused() -> onnx.ModelProto:
    """A sound model with an input and a node that nothing uses."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="relu"), helper.make_node("Abs", ["x"], ["nobody"], name="abs")
    ]  # fmt: skip
    return model(nodes, ["x", "idle"], ["y"], shape=[1, 8])

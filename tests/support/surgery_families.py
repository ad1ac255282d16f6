"""The nine families of onnx-graphsurgeon's examples as keys for the app and as words for `layerwise surgeon edit`.

The models are the demo's encoder and what an exporter would have written for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.surgery.demo import make_demo

POW, SUB = "/embeddings/LayerNorm/Pow", "/embeddings/LayerNorm/Sub_output_0"
TANH, TANH_OUT = "/pooler/activation/Tanh", "/pooler/activation/Tanh_output_0"
GELU = ("Div", "Erf", "Add", "Mul", "Mul")
CLIP = ':edit replace-pattern pattern=Min,Max op=Clip \'inputs=["$0.0","$1.1","$0.1"]\''
CLEAR = "\x15"


@dataclass(frozen=True)
class Step:
    """Keys, and what is then on the screen. change: they lead to a change on view; how many edits there are once enter
    has made it."""

    keys: tuple[str, ...]
    seen: str
    change: int = 0


@dataclass(frozen=True)
class Family:
    """what: what the app does for the family's end, said plainly; words: of `surgeon edit` with `model`; new: the same
    without a model; ops: counts of operators that the new model must have; fed: the inner tensor that it starts at."""

    what: str
    model: Callable[[Path], Path]
    steps: tuple[Step, ...]
    words: tuple[str, ...]
    ops: dict[str, int]
    same: bool = True
    fed: str = ""
    new: tuple[str, ...] = ()


def at(node: str) -> Step:
    """Put the cursor on a node."""
    return Step((f":goto {node}", "enter"), node)


def stub(folder: Path) -> Path:
    """Hardly a model: y = x."""
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"], "nothing")], "graph", sides[:1], sides[1:])
    path = folder / "stub.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def encoder(folder: Path) -> Path:
    """The demo's transformer, 411 nodes."""
    return make_demo(folder).fp32


def exported(folder: Path) -> Path:
    """The same as exporters write it: the batch is open, shapes are computed, weights are transposed by nodes."""
    model = onnx.load(encoder(folder))
    graph, nodes = model.graph, list(model.graph.node)
    weights = {tensor.name: tensor for tensor in graph.initializer}
    graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "first"))
    del graph.node[:]
    for node in nodes:
        if node.op_type == "Reshape":
            graph.node.extend(_shape_nodes(graph, node, numpy_helper.to_array(weights[node.input[1]])))
        elif node.op_type == "MatMul" and node.input[1] in weights:
            graph.node.append(_transposed(node, weights[node.input[1]]))
        graph.node.append(node)
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    path = folder / "exported.onnx"
    onnx.save(model, path)
    return path


def _shape_nodes(graph: onnx.GraphProto, node: onnx.NodeProto, target: np.ndarray) -> list[onnx.NodeProto]:
    """A Reshape's target, with the batch as it comes."""
    here, rest = node.name, f"rest:{node.input[1]}"
    if rest not in [tensor.name for tensor in graph.initializer]:
        graph.initializer.append(numpy_helper.from_array(target[1:], rest))
    made = [
        helper.make_node("Shape", [node.input[0]], [f"{here}/shape"], f"{here}/Shape"),
        helper.make_node("Gather", [f"{here}/shape", "first"], [f"{here}/batch"], f"{here}/Gather", axis=0),
        helper.make_node("Concat", [f"{here}/batch", rest], [f"{here}/to"], f"{here}/Concat", axis=0),
    ]
    node.input[1] = f"{here}/to"
    return made


def _transposed(node: onnx.NodeProto, weight: onnx.TensorProto) -> onnx.NodeProto:
    """The weight stored the other way round, and the node that turns it."""
    turned = np.ascontiguousarray(numpy_helper.to_array(weight).T)
    weight.CopyFrom(numpy_helper.from_array(turned, weight.name))
    made = helper.make_node("Transpose", [weight.name], [f"{node.name}/turned"], f"{node.name}/Transpose", perm=[1, 0])
    node.input[1] = made.output[0]
    return made


BUILD = ("--add-weight", "w", "[[1],[2],[3],[4]]:float32", "--add-node", "MatMul", "product", "x", "w",
         "--add-node", "LeakyRelu", "out", "product", "alpha=0.5", "--mark-output", "out")  # fmt: skip

FAMILIES = {
    "build a model": Family(
        "The app opens a model, so nothing is built from nothing there: a stub (y = x) is opened, `e` adds a weight "
        "and nodes, and the stub's own output and node go. On the command line `--new 17` starts from nothing: the "
        "same nodes.",
        stub,
        (
            Step(("ee", "add-weight", "enter"), ":edit add-weight"),
            Step(('name=w \'value={"values":[[1],[2],[3],[4]]}\'', "enter"), "add", 1),
            Step((":edit add-node op=MatMul inputs=x,w outputs=product", "enter"), "MatMul", 2),
            Step((':edit add-node op=LeakyRelu inputs=product outputs=out \'attributes={"alpha":0.5}\'', "enter"),
                 "LeakyRelu", 3),
            Step((":output out", "enter"), "out", 4),
            Step((":output y", "enter"), "y", 5),
            Step(("ee", "clean-up", "enter"), ":edit clean-up"),
            Step(("enter",), "clean up", 6),
        ),
        (*BUILD, "--unmark-output", "y", "--clean-up"),
        {"MatMul": 1, "LeakyRelu": 1, "Identity": 0},
        same=False,
        new=("--new", "17", "--add-input", "x:[3,4]:float32", *BUILD),
    ),
    "insert nodes": Family(
        "Two keys: `ei` on the row. Twice here, so that the second undoes the first and the outputs stay.",
        encoder,
        (
            at(TANH),
            Step(("ei", "Mul with 2.0", "enter"), f"insert Mul on {TANH_OUT}", 1),
            Step((f":insert Mul with 0.5 on {TANH_OUT}", "enter"), f"insert Mul on {TANH_OUT}", 2),
        ),
        ("--insert", TANH_OUT, "Mul", "2.0", "--insert", TANH_OUT, "Mul", "0.5"),
        {"Mul": 35},
    ),
    "delete nodes": Family(
        "Two keys: `ed`; who read it reads what it read.",
        encoder,
        (at("/classifier/Identity"), Step(("ed",), "delete /classifier/Identity", 1)),
        ("--delete", "/classifier/Identity"),
        {"Identity": 1},
    ),
    "replace nodes": Family(
        "A node by `er`: Pow(x, 2) becomes Mul(x, x). A subgraph by `ee`, replace-pattern: the eight GELUs that "
        "are written out as five nodes become one node each.",
        encoder,
        (
            at(POW),
            Step(("er", f"Mul with {SUB} with {SUB}", "enter"), "by Mul", 1),
            Step(("ee", "replace-pattern", "enter"), ":edit replace-pattern"),
            Step((f'pattern={",".join(GELU)} op=Gelu domain=com.microsoft \'inputs=["$0.0"]\'', "enter"), "by Gelu", 2),
        ),
        ("--replace", POW, "Mul", SUB, SUB, "--replace-pattern", ",".join(GELU), "com.microsoft:Gelu", "$0.0"),
        {"Pow": 16, "Erf": 0, "Gelu": 8},
    ),
    "traverse": Family(
        "Walking is no edit: `>` and `<` go to consumers and producers, the pane shows their attributes. What is "
        "reached is then renamed and made an output. On the command line the nodes are named.",
        encoder,
        (
            at("/pooler/Gather"),
            Step((">",), "/pooler/dense/MatMul"),
            Step((">",), "/pooler/dense/Add"),
            Step((">",), TANH),
            Step(("en", CLEAR, "rename pooled", "enter"), "to pooled", 1),
            Step(("eo",), "as output", 2),
            Step(("<",), "/pooler/dense/Add"),
        ),
        ("--rename-node", TANH, "pooled", "--mark-output", TANH_OUT),
        {"Tanh": 1},
    ),
    "fold constants": Family(
        "One key: `f`. The Transposes of weights go.",
        exported,
        (Step(("ef",), "fold constants", 1),),
        ("--fold",),
        {"Transpose": 32, "Shape": 32},
    ),
    "simplify shapes": Family(
        "Three edits: the input's shape is fixed (`e`, set-shape), shapes are inferred (`e`, infer-shapes), `f` folds "
        "what computed them.",
        exported,
        (
            Step((':edit set-shape \'tensors=[{"name":"input_ids","shape":[1,64]}]\'', "enter"), "input_ids", 1),
            Step((":edit infer-shapes", "enter"), "infer", 2),
            Step(("ef",), "fold constants", 3),
        ),
        ("--set-shape", "input_ids:[1,64]", "--infer-shapes", "--fold"),
        {"Transpose": 32, "Shape": 0, "Concat": 0},
    ),
    "isolate a subgraph": Family(
        "Two keys: `x`, `f` (from here to the outputs). The part is fed what the whole model computes there.",
        encoder,
        (at(TANH), Step(("ex", "f"), "2 edits: set outputs to logits", 2)),
        ("--set-outputs", "logits", "--set-inputs", TANH_OUT),
        {"MatMul": 1, "Add": 1, "Identity": 1},
        fed=TANH_OUT,
    ),
    "layer API": Family(
        "graphsurgeon registers Python functions as layers; the app registers nothing. For the same end a layer is one "
        "line of `i` (a clamp by Max and Min here), and a chain of nodes becomes one layer by `e`, replace-pattern. "
        "The bounds are those of tanh: the outputs stay.",
        encoder,
        (
            at(TANH),
            Step(("ei", "Max with -1.0", "enter"), "insert Max", 1),
            Step((f":insert Min with 1.0 on {TANH_OUT}", "enter"), "insert Min", 2),
            Step((CLIP, "enter"), "by Clip", 3),
        ),
        ("--insert", TANH_OUT, "Max", "-1.0", "--insert", TANH_OUT, "Min", "1.0",
         "--replace-pattern", "Min,Max", "Clip", "$0.0", "$1.1", "$0.1"),
        {"Min": 0, "Max": 0, "Clip": 1},
    ),
}  # fmt: skip

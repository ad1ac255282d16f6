"""Leaks between the rows of a batch, planted behind one tensor of a network."""

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.checks.invariants.feeds import take
from layerwise._tool.debugtools.checks.invariants.spec import InvariantsSpec
from layerwise._tool.debugtools.checks.invariants.subject import Subject

LEAK = "LEAK"
_PLAIN = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
Shape = tuple[int, ...]


def places(path: str) -> dict[str, Shape]:
    """Tensors of FP32 that change with the rows of a batch, which lie along their first axis; their shapes."""
    with ExitStack() as stack:
        file = stack.enter_context(ModelFile(path))
        subject = Subject(InvariantsSpec(model=path), file, stack)
        names = [name for name in subject.cut.maker if name not in subject.cut.outputs]
        rows = [axis.name for axis in subject.axes if axis.axis is not None]
        data = subject.cut.with_outputs(names)
        runner = stack.enter_context(open_runner(_PLAIN, Loadable(data=data, folder=file.folder), name="leaks"))
        feeds = (
            subject.feed,
            take(subject.feed, subject.batch, range(4)),
            take(subject.feed, subject.batch, [1, 1, 2, 3, 4]),
        )
        five, four, other = (runner.infer(feed).outputs for feed in feeds)
        behind = {name for row in rows for i in subject.cut.needed([row]) for name in subject.cut.nodes[i].output}
    return {
        name: five[name].shape
        for name in names
        if name in behind
        and five[name].dtype == np.float32
        and five[name].ndim >= 2
        and five[name].shape[0] == 5 == four[name].shape[0] + 1
        and five[name].shape[1:] == four[name].shape[1:]
        and not np.array_equal(five[name], other[name])
    }


class Leak:
    """A model in which `tensor` leaks: the node LEAK mixes its rows, and what read it reads `new`."""

    def __init__(self, model: onnx.ModelProto, tensor: str) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.tensor, self.new = tensor, f"{tensor}__leaked"
        self.nodes: list[onnx.NodeProto] = []
        for node in self.model.graph.node:
            for i, name in enumerate(node.input):
                if name == tensor:
                    node.input[i] = self.new

    def weight(self, name: str, value: object, kind: type = np.int64) -> str:
        """Add an initializer."""
        self.model.graph.initializer.append(numpy_helper.from_array(np.array(value, kind), f"leak_{name}"))
        return f"leak_{name}"

    def node(self, op: str, inputs: list[str], output: str, name: str = "", **attributes: object) -> str:
        """Add a node; its one output."""
        self.nodes.append(helper.make_node(op, inputs, [output], name or f"leak_{output}", **attributes))
        return output

    def add(self, mixed: str) -> None:
        """A tenth of what is mixed is added to the tensor."""
        part = self.node("Mul", [mixed, self.weight("tenth", 0.1, np.float32)], "leak_part")
        self.node("Add", [self.tensor, part], self.new)

    def done(self) -> onnx.ModelProto:
        """The model with the leak right behind its tensor."""
        nodes = list(self.model.graph.node)
        at = next(i for i, node in enumerate(nodes) if self.tensor in node.output) + 1
        nodes[at:at] = self.nodes
        del self.model.graph.node[:]
        self.model.graph.node.extend(nodes)
        return self.model


def _softmax(leak: Leak, shape: Shape) -> None:
    leak.add(leak.node("Softmax", [leak.tensor], "leak_mixed", LEAK, axis=0))


def _mean(leak: Leak, shape: Shape) -> None:
    total = leak.node("ReduceSum", [leak.tensor, leak.weight("axes", [0])], "leak_mixed", LEAK, keepdims=1)
    leak.add(total)


def _first_row(leak: Leak, shape: Shape) -> None:
    leak.add(leak.node("Gather", [leak.tensor, leak.weight("row", [0])], "leak_mixed", LEAK, axis=0))


def _cumulative(leak: Leak, shape: Shape) -> None:
    leak.add(leak.node("CumSum", [leak.tensor, leak.weight("axis", 0)], "leak_mixed", LEAK))


def _reshaped(leak: Leak, shape: Shape) -> None:
    perm = [1, 0, *range(2, len(shape))]
    turned = leak.node("Transpose", [leak.tensor], "leak_turned", perm=perm)
    leak.node("Reshape", [turned, leak.node("Shape", [leak.tensor], "leak_shape")], leak.new, LEAK)


def _trained(leak: Leak, shape: Shape) -> None:
    parts = [
        leak.weight(name, np.full(shape[1], value), np.float32)
        for name, value in zip("gbmv", (1, 0, 0, 1), strict=True)
    ]
    node = helper.make_node(
        "BatchNormalization", [leak.tensor, *parts], [leak.new, "leak_mean", "leak_var"], LEAK, training_mode=1
    )
    leak.nodes.append(node)


def _counted(leak: Leak, shape: Shape) -> None:
    sizes = leak.node("Shape", [leak.tensor], "leak_shape")
    rows = leak.node("Gather", [sizes, leak.weight("zero", 0)], "leak_rows")
    leak.node("Div", [leak.tensor, leak.node("Cast", [rows], "leak_count", to=TensorProto.FLOAT)], leak.new, LEAK)


LEAKS: dict[str, tuple[Callable[[Leak, Shape], None], int]] = {
    "softmax over the batch": (_softmax, 2), "sum over the batch": (_mean, 2), "constant batch index": (_first_row, 2),
    "sum along the batch": (_cumulative, 2), "reshape that mixes batch and sequence": (_reshaped, 3),
    "normalisation in training form": (_trained, 2), "division by the batch": (_counted, 2),
}  # fmt: skip
"""Kinds, and the fewest axes of a tensor that can leak so."""


def leaking(model: onnx.ModelProto, tensor: str, shape: Shape, kind: str) -> onnx.ModelProto:
    """The model with a leak of that kind behind a tensor of that shape."""
    leak = Leak(model, tensor)
    LEAKS[kind][0](leak, shape)
    return leak.done()

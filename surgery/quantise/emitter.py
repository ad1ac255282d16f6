"""Nodes that are made one after the other, with names that nothing else has."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper


class Emitter:
    """nodes and constants (initializers) whose names begin with `prefix`. opset: of ONNX's own operators."""

    def __init__(self, prefix: str, opset: int) -> None:
        self.prefix, self.opset = prefix, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._known: dict[bytes, str] = {}
        self._count = 0

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output; the name of that."""
        name = f"{self.prefix}{self._count}_{op_type}"
        self._count += 1
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name, **attributes))
        return name

    def taken(self) -> list[onnx.NodeProto]:
        """The nodes that were made since the last call."""
        made, self.nodes = self.nodes, []
        return made

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Add a constant, once; its name."""
        return self.tensor(numpy_helper.from_array(np.asarray(value, dtype)))

    def tensor(self, tensor: onnx.TensorProto, *, shared: bool = True) -> str:
        """Add a constant as it is; its name. shared: one of the same value that is there already is taken."""
        tensor.name = ""
        key = tensor.SerializeToString()
        if not shared or key not in self._known:
            tensor.name = f"{self.prefix}c{len(self.constants)}"
            self.constants.append(tensor)
            self._known.setdefault(key, tensor.name)
        return self._known[key] if shared else tensor.name

    def array(self, value: NDArray[Any]) -> str:
        """Add an array as a constant; its name."""
        return self.tensor(numpy_helper.from_array(np.asarray(value, order="C")))

    def squeezed(self, name: str, *, unsqueeze: bool = False, axes: tuple[int, ...]) -> str:
        """Squeeze or Unsqueeze along axes, as the opset has it."""
        op_type = "Unsqueeze" if unsqueeze else "Squeeze"
        if self.opset < 13:
            return self.op(op_type, name, axes=list(axes))
        return self.op(op_type, name, self.constant(axes, np.int64))

    def largest(self, name: str, axes: list[int] | None) -> str:
        """ReduceMax that keeps its dimensions, as the opset has it."""
        if self.opset < 18:
            return self.op("ReduceMax", name, keepdims=1, **({} if axes is None else {"axes": axes}))
        return self.op("ReduceMax", name, *([] if axes is None else [self.constant(axes, np.int64)]), keepdims=1)

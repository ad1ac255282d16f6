"""Parts of a module as models: what cuts, segments and exploded graphs of ONNX models are made of, run by torch.

A module's operators are written as the nodes of an ONNX structure, whose name says of which module it is. Parts of it
are run by calling the operators that their nodes stand for.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import DTYPES, TensorInfo, dtype_name, packed_nbytes, to_onnx
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.graph import FxGraph, FxNode
from layerwise._tool.backends.torch.hooks import Hooked
from layerwise._tool.backends.torch.traced import Traced
from layerwise._tool.backends.torch.values import first_sentence
from layerwise._tool.backends.torch_bridge import is_tensor, to_array

DOMAIN = "torch"
_METADATA = "pkg.torch.onnx."
_PREFIX = "torch module "
_KNOWN = frozenset(row.name for row in DTYPES)
_held: "dict[str, Held]" = {}
_numbers = itertools.count()


class Held:
    """A module whose parts may be run in this process. running: what every run needs around it.

    current: gives its operators for the shapes of the feed.
    """

    def __init__(
        self, running: Callable[[], AbstractContextManager[None]], current: Callable[[], Traced | Hooked]
    ) -> None:
        self.running, self.current = running, current
        self.name = f"{_PREFIX}{next(_numbers)}"
        _held[self.name] = self

    def close(self) -> None:
        _held.pop(self.name, None)


class PartRunner(RunnerBase):
    """Runs the operators that the nodes of a part stand for, in their order."""

    def __init__(self, spec: RunnerSpec, part: onnx.ModelProto, held: Held, name: str) -> None:
        self.spec, self.name, self._held = spec, name, held
        self._nodes = list(part.graph.node)
        self.inputs = [TensorInfo(value.name, dtype_name(value.type.tensor_type.elem_type), None)
                       for value in part.graph.input]  # fmt: skip
        self.outputs = [value.name for value in part.graph.output]

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as in `Runner.infer`. LayerwiseError names the operator that fails."""
        names = self.outputs if outputs is None else list(outputs)
        check_names(feed, [info.name for info in self.inputs], names, self.outputs)
        traced = self._held.current()
        start = time.perf_counter()
        with self._held.running():
            values = {name: traced.put(name, array) for name, array in feed.items()}
            for node in self._nodes:
                made = _called(traced, node, values)
                values.update(zip(node.output, made, strict=True))
            arrays = {name: _array(values[name]) for name in names}
        return IterationResult(arrays, time.perf_counter() - start, self.name)


def _called(traced: Traced | Hooked, node: onnx.NodeProto, values: Mapping[str, Any]) -> list[Any]:
    try:
        return traced.call(fx_name(node), {name: values[name] for name in node.input if name in values})
    except KeyError as error:
        raise LayerwiseError(
            f"{shown(node.name, 120)} cannot be run by itself: for inputs of these shapes the module has no {error}"
        ) from None
    except Exception as error:
        text = shown(first_sentence(error), 300)
        raise LayerwiseError(f"{shown(node.name, 120)} ({shown(node.op_type, 60)}) failed: {text}") from error


def _array(value: Any) -> Array:
    return to_array(value) if is_tensor(value) else np.asarray(value)


def fx_name(node: onnx.NodeProto) -> str:
    """The fx node that a node stands for."""
    return node.name.rpartition("/")[2]


def weight_of(graph: str, name: str) -> Array:
    """A weight of a module that is held, by the name of its structure. BadFile where there is none."""
    try:
        return _held[graph].current().weight(name)
    except KeyError:
        raise BadFile(graph, f"there is no weight {shown(name, 200)!r}") from None


def save_part(model: bytes, feed: Mapping[str, Array], path: Path) -> None:
    """Write a part of a module that is held as an exported program (.pt2), which holds its weights.

    feed: its inputs, in the order in which the program takes them. LayerwiseError where torch does not write it.
    """
    import torch

    part = parse_model(model, "a part of a module")
    held = _held[part.graph.name]
    traced = held.current()
    if isinstance(traced, Hooked):
        raise LayerwiseError("the operators of the module are not known: no part of it can be written")
    inputs = {name: traced.put(name, array) for name, array in feed.items()}
    gives = [value.name for value in part.graph.output]
    program = traced.part([fx_name(node) for node in part.graph.node], inputs, gives)
    try:
        torch.export.save(program, str(path))
    except Exception as error:
        raise LayerwiseError(f"torch cannot write the operators: {shown(first_sentence(error), 300)}") from error


def open_part(spec: RunnerSpec, model: Loadable, name: str) -> PartRunner:
    """Open a part of a module that is held. UsageError for a model that is none."""
    part = parse_model(model.read(), "a part of a module")
    held = _held.get(part.graph.name)
    if held is None:
        raise UsageError("a PyTorch module runs by itself: this takes an ONNX model, or a runner of one")
    return PartRunner(spec, part, held, name)


def as_onnx(graph: FxGraph, name: str) -> onnx.ModelProto:
    """The module's operators as an ONNX structure: names, types and shapes, no weights. name: of the Held module."""
    made = helper.make_graph(
        [_node(node) for node in graph.nodes],
        name,
        [_value(info) for info in graph.inputs],
        [_value(graph.tensors.get(output, TensorInfo(output, "", None))) for output in graph.outputs],
        [_weight(info) for info in graph.weights if info.dtype in _KNOWN],
        value_info=[_value(info) for name, info in graph.tensors.items() if name not in graph.outputs],
    )
    return helper.make_model(made, ir_version=10, opset_imports=[helper.make_opsetid(DOMAIN, 1)])


def _node(node: FxNode) -> onnx.NodeProto:
    scope = f"{node.scope[-1]}/" if node.scope and "." not in node.name else ""
    made = helper.make_node(node.op, node.inputs, node.outputs, name=f"{scope}{node.name}", domain=DOMAIN)
    made.attribute.extend(helper.make_attribute(key, value) for key, value in node.attributes.items())
    for key, value in (("name_scopes", repr([*node.scope, node.name])), ("fx_node", f"%{node.name}"),
                       ("stack_trace", node.line)):  # fmt: skip
        made.metadata_props.add(key=f"{_METADATA}{key}", value=value)
    return made


def _value(info: TensorInfo) -> onnx.ValueInfoProto:
    kind = to_onnx(info.dtype) if info.dtype in _KNOWN else 0
    return helper.make_tensor_value_info(info.name, kind, info.shape)


def _weight(info: TensorInfo) -> onnx.TensorProto:
    sizes = [int(size or 0) for size in info.shape or ()]
    made = onnx.TensorProto(name=info.name, data_type=to_onnx(info.dtype), dims=sizes)
    made.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "module"), ("offset", "0"), ("length", str(packed_nbytes(info.dtype, sizes)))):
        made.external_data.add(key=key, value=value)
    return made

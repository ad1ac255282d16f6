"""The bodies of a control-flow node, prepared for testing alone with the inputs of their first iteration."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.debugtools.checks.lint.structure import labels
from layerwise._tool.surgery.cut.pieces import Pieces

_BODY_ATTRIBUTES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


@dataclass(frozen=True)
class ProbedBody:
    """One body. feed: values of its own inputs, as far as known; runs: whether it would run with them."""

    attribute: str
    pieces: Pieces
    names: list[str]
    feed: dict[str, Any]
    runs: bool


def entered(outer: Pieces, position: int, feed: Mapping[str, Any], folder: Path) -> Iterator[ProbedBody]:
    """Yield the bodies of the node at `position`; `feed` has what the node reads, except weights (in `folder`)."""
    node = outer.nodes[position]
    feed = {**_weights(outer, node, folder), **feed}
    attributes = {attribute.name: attribute for attribute in node.attribute}
    for name in _BODY_ATTRIBUTES.get(node.op_type, ()) if node.domain in ("", "ai.onnx") else ():
        if name in attributes:
            graph = attributes[name].g
            own = [value.name for value in graph.input]
            first = _first_pass(node, attributes, feed)
            values = {inner: value for inner, value in zip(own, first, strict=False) if value is not None}
            runs = len(values) == len(own) and _taken(node, name, feed)
            yield ProbedBody(name, Pieces(outer.model, graph, outer), labels(graph.node), values, runs)


def _weights(outer: Pieces, node: onnx.NodeProto, folder: Path) -> dict[str, Any]:
    found = {}
    for name in filter(outer.is_weight, node.input):
        tensor = outer.weight(name)
        if tensor is not None:
            with suppress(LayerwiseError):  # a damaged weight: its readers have been reported
                found[name] = tensor_array(tensor, folder)
    return found


def _taken(node: onnx.NodeProto, attribute: str, feed: Mapping[str, Any]) -> bool:
    if node.op_type != "If":
        return True
    condition = feed.get(node.input[0]) if node.input else None
    return condition is not None and bool(np.asarray(condition).any()) == (attribute == "then_branch")


def _first_pass(
    node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], feed: Mapping[str, Any]
) -> Sequence[Any]:
    """Return the body's inputs in its first iteration, None for unknown ones."""
    if node.op_type == "Loop":
        states = [feed.get(name) for name in node.input[2:]]
        return [np.array(0, np.int64), np.array(True), *states]
    if node.op_type == "Scan":
        count = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
        split = max(0, len(node.input) - count)
        axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else []
        axes += [0] * (count - len(axes))
        slices = [_slice(feed.get(name), axis) for name, axis in zip(node.input[split:], axes, strict=False)]
        return [*(feed.get(name) for name in node.input[:split]), *slices]
    return []


def _slice(value: Any, axis: int) -> Any:
    if not isinstance(value, np.ndarray) or not -value.ndim <= axis < value.ndim or not value.shape[axis]:
        return None
    return np.ascontiguousarray(np.take(value, 0, axis))

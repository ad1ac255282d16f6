"""Replaces arithmetic on lengths in floating point by integer arithmetic.

`Cast(int64) <- Op <- Cast(float) <- Shape` is written by exporters and rejected by engines: a length must stay an
integer. Only if the result is the same: the operator is exact on integers, and constants are whole numbers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.folding.constants import weight
from layerwise._tool.surgery.model.structure import Graph, changed

_EXACT = frozenset({"Add", "Sub", "Mul", "Max", "Min", "Concat"})
_INTEGERS: dict[int, type[np.signedinteger[Any]]] = {TensorProto.INT32: np.int32, TensorProto.INT64: np.int64}
_FLOATS: dict[int, int] = {TensorProto.FLOAT: 1 << 24}  # represents all integers up to here
_LENGTHS = frozenset(
    {"Shape", "Size", "Gather", "Slice", "Squeeze", "Unsqueeze", "Concat", "Identity", "Cast", "Reshape"}
)


def without_casts(graph: Graph, types: Mapping[str, int], folder: Path | None) -> Graph:
    """Return the graph with such arithmetic in integers; unused nodes stay. types: TensorProto types."""
    for node in graph.nodes:
        new = _as_integers(graph, node, types, folder)
        if new is not None:
            graph = new
    return graph


def _as_integers(graph: Graph, node: onnx.NodeProto, types: Mapping[str, int], folder: Path | None) -> Graph | None:
    if node.op_type not in _EXACT or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
        return None
    backs = graph.lookups.readers.get(node.output[0], ())
    if not backs or graph.read_outside(node.output[0]) or not all(_casts_to(back, _INTEGERS) for back in backs):
        return None
    kinds = {_target(back) for back in backs}
    sources = [_source(graph, name, types, folder) for name in node.input]
    kinds |= {kind for kind, _ in filter(None, sources) if kind}
    if None in sources or len(kinds) != 1 or not any(kind for kind, _ in filter(None, sources)):
        return None
    kind = kinds.pop()
    return _rewritten(graph, node, backs, [name for _, name in filter(None, sources)], kind, folder)


def _rewritten(
    graph: Graph, node: onnx.NodeProto, backs: tuple[onnx.NodeProto, ...], reads: list[str], kind: int,
    folder: Path | None,
) -> Graph:  # fmt: skip
    weights = dict(graph.initializers)
    new = changed(node)
    del new.input[:]
    for name in reads:
        tensor = weight(graph, name)
        whole = name
        if tensor is not None and tensor.data_type not in _INTEGERS:
            whole = graph.fresh(f"{name}__integer", weights)
            weights[whole] = numpy_helper.from_array(tensor_array(tensor, folder).astype(_INTEGERS[kind]), whole)
        new.input.append(whole)
    new.output[0] = backs[0].output[0]
    others = [helper.make_node("Identity", [new.output[0]], list(back.output)) for back in backs[1:]]
    gone: dict[int, list[onnx.NodeProto]] = {id(back): [] for back in backs}
    return graph.replaced({**gone, id(node): [new, *others]}).with_(initializers=weights)


def _source(graph: Graph, name: str, types: Mapping[str, int], folder: Path | None) -> tuple[int, str] | None:
    """Return an input's origin as an integer: (its type, its name); type 0 for a constant. None: not an integer."""
    tensor = weight(graph, name)
    if tensor is not None:
        if tensor.data_type not in _FLOATS or np.prod(tensor.dims, dtype=float) > 64:
            return None
        values = tensor_array(tensor, folder)
        exact = np.isfinite(values).all() and bool((values == np.floor(values)).all())
        return (0, name) if exact and bool((np.abs(values) < _FLOATS[tensor.data_type]).all()) else None
    maker = graph.lookups.makers.get(name)
    if maker is None or not _casts_to(maker, _FLOATS) or not _is_length(graph, maker.input[0]):
        return None
    kind = types.get(maker.input[0], 0)
    return (kind, maker.input[0]) if kind in _INTEGERS else None


def _is_length(graph: Graph, name: str) -> bool:
    """Return whether a tensor comes from shapes and constants through data movement only: far below 2^24."""
    waiting, seen, found = [name], set(), False
    while waiting:
        name = waiting.pop()
        maker = graph.lookups.makers.get(name)
        if maker is None:
            if weight(graph, name) is None:
                return False
            continue
        if maker.op_type not in _LENGTHS:
            return False
        if maker.op_type in ("Shape", "Size"):
            found = True
        elif id(maker) not in seen:
            seen.add(id(maker))
            waiting += filter(None, maker.input)
    return found


def _casts_to(node: onnx.NodeProto, kinds: Mapping[int, object]) -> bool:
    return node.op_type == "Cast" and node.domain in ("", "ai.onnx") and _target(node) in kinds


def _target(node: onnx.NodeProto) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)

"""Finds tensors that make sizes unbounded: data-dependent sizes without an upper limit that a builder could know."""

from collections.abc import Mapping

import onnx

from layerwise._tool.backends.model.protos import dims_of
from layerwise._tool.surgery.cut.segments import GraphCut

SIZED_BY = {"Range": 1, "Pad": 1, "Resize": 3, "Tile": 1, "Expand": 1}
"""Operators whose output can have any size, and the input that tells it."""
Dims = tuple[int | str | None, ...]


def unbounded_tensors(model: onnx.ModelProto) -> list[str]:
    """Return the names of the tensors that determine another one's size without a limit, in topological order.

    These are the inputs of SIZED_BY that are computed at run time, and not by a Min, if the output has an unknown
    dimension: one without a value or a symbol of the graph's inputs or of an earlier tensor. The rule is Polygraphy's
    (0.53, `get_unbounded_dds_tensors`), except that everything derived from weights and constants alone is a constant.
    Only the main graph is examined. More dimensions are known after shape inference.
    """
    cut, shapes = GraphCut(model), _shapes(model.graph)
    known = {dim for value in model.graph.input for dim in shapes.get(value.name) or ()}
    constant = cut.initializers.keys() | cut.sparse.keys()
    found: dict[str, None] = {}
    for node, reads in zip(cut.nodes, cut.reads, strict=True):
        if constant.issuperset(reads):
            constant.update(node.output)
            continue
        new = _has_new_size(node, shapes, known)
        sized_by = list(node.input[SIZED_BY[node.op_type] :][:1]) if new and node.op_type in SIZED_BY else []
        for name in sized_by:
            if name in cut.maker and name not in constant and cut.nodes[cut.maker[name]].op_type != "Min":
                found[name] = None
    return list(found)


def _has_new_size(node: onnx.NodeProto, shapes: Mapping[str, Dims | None], known: set[int | str | None]) -> bool:
    """Return whether an output has an unknown shape or a dimension that earlier tensors lack; adds it to `known`."""
    new = False
    for name in filter(None, node.output):
        dims = shapes.get(name)
        symbols = {dim for dim in dims or () if not isinstance(dim, int)}
        new |= dims is None or None in symbols or not symbols <= known
        known |= symbols - {None}
    return new


def _shapes(graph: onnx.GraphProto) -> dict[str, Dims | None]:
    shapes: dict[str, Dims | None] = {}
    for value in [*graph.value_info, *graph.output, *graph.input]:
        shapes[value.name] = tuple(dims_of(value)) if value.type.tensor_type.HasField("shape") else None
    return shapes

"""Attention layers of a graph. Pattern 0: MatMul, Softmax, MatMul. Pattern 1: its queries and keys are multiplied
first by the square root of a constant over the square root of their size.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

_SCALE = (("Cast", 0), ("Div", 1), ("Cast", 0), ("Sqrt", 0), ("Cast", 0), ("Slice", 0), ("Shape", 0))
"""Upwards from the square roots to the queries: operators, and the input that leads on."""
_INPUTS = {"MatMul": 2, "Mul": 2, "Div": 2, "Slice": 3}  # of others: one


class Attention(NamedTuple):
    """A layer: the tensors that it is of, before they are scaled, and its nodes."""

    query: Any
    key: Any
    value: Any
    scores: Any
    softmax: Any
    mixed: Any


def attentions(graph: gs.Graph, pattern: int) -> list[Attention]:
    """The layers of a pattern, in the order of the graph."""
    outputs = {tensor.name for tensor in graph.outputs}
    plain = (found for node in graph.nodes for found in _plain(node, outputs))
    return list(plain) if not pattern else [found for layer in plain for found in _scaled(layer, outputs)]


def _plain(scores: Any, outputs: set[str]) -> Iterator[Attention]:
    softmax = _reader(scores, "Softmax", outputs) if _is(scores, "MatMul") else None
    mixed = _reader(softmax, "MatMul", outputs) if softmax else None
    if mixed:
        query, key = scores.inputs
        yield Attention(query, key, mixed.inputs[1], scores, softmax, mixed)


def _reader(node: Any, op: str, outputs: set[str]) -> Any:
    """The node that alone reads what another makes, first of all; None."""
    made = node.outputs[0]
    readers = {id(reader): reader for reader in made.outputs}
    if made.name in outputs or len(readers) != 1:
        return None
    (reader,) = readers.values()
    return reader if _is(reader, op) and reader.inputs[0] is made else None


def _scaled(layer: Attention, outputs: set[str]) -> Iterator[Attention]:
    products = [_maker(tensor, "Mul", outputs) for tensor in layer.scores.inputs]
    if not all(products):
        return
    roots = [_maker(product.inputs[1], "Sqrt", outputs) for product in products]
    if not all(roots) or roots[0] is roots[1] or roots[0].inputs[0] is not roots[1].inputs[0]:
        return
    tensor = roots[0].inputs[0]
    for n, (op, on) in enumerate(_SCALE):
        node = _maker(tensor, op, outputs, readers=1 if n else 2)
        if node is None:
            return
        tensor = node.inputs[on]
    query, key = (product.inputs[0] for product in products)
    if tensor is query:
        yield layer._replace(query=query, key=key)


def _maker(tensor: Any, op: str, outputs: set[str], readers: int = 1) -> Any:
    """The node that makes a tensor for so many readers; None."""
    fits = tensor.name not in outputs and len(tensor.inputs) == 1 and len(set(map(id, tensor.outputs))) == readers
    return tensor.inputs[0] if fits and _is(tensor.inputs[0], op) else None


def _is(node: Any, op: str) -> bool:
    return node.op == op and len(node.inputs) == _INPUTS.get(op, 1) and len(node.outputs) == 1

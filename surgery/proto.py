"""Small tools for building changed copies of a ModelProto."""

from collections import Counter

import onnx

from backends.reads import subgraphs


def all_names(graph: onnx.GraphProto) -> Counter[str]:
    """Return every tensor name in the graph and its bodies, at any depth: names a new tensor may not take."""
    names = Counter(value.name for value in [*graph.input, *graph.output, *graph.value_info])
    names.update(tensor.name for tensor in graph.initializer)
    for node in graph.node:
        names.update([*node.input, *node.output])
        for body in subgraphs(node):
            names += all_names(body)
    return names


def fresh(taken: Counter[str], wish: str) -> str:
    """Return `wish`, or with a number after it if that is `taken`, and take it."""
    name, number = wish, 1
    while taken[name]:
        number += 1
        name = f"{wish}_{number}"
    taken[name] += 1
    return name


def shell(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without its nodes, weights and value_info; nothing large is copied."""
    bare = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _set(bare, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name not in ("node", "initializer", "value_info"):
            _set(bare.graph, field.name, value)
    return bare


def _set(message: onnx.ModelProto | onnx.GraphProto, name: str, value: object) -> None:
    if isinstance(value, str | int | bytes):
        setattr(message, name, value)
    else:
        getattr(message, name).extend(value)

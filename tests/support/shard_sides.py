"""A split model up to its names, to be held against another; and its ranks, run in step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = NDArray[Any]


def content(path: Path) -> dict[str, Any]:
    """A model without the names of tensors between its inputs, weights and outputs, and of nodes, in no order."""
    model = onnx.load(path)
    graph = model.graph
    _remove_unread(graph)
    weights = {weight.name: weight for weight in graph.initializer}
    keys = {name: hash(("weight", name)) for name in weights} | {v.name: hash(("input", v.name)) for v in graph.input}
    waiting, nodes = list(graph.node), []
    while waiting:  # Polygraphy's are in no order
        ready = [node for node in waiting if all(name in keys for name in node.input)]
        assert ready, [node.name for node in waiting]
        for node in ready:
            attributes = sorted((a.name, a.type, repr(helper.get_attribute_value(a))) for a in node.attribute)
            nodes.append((node.domain, node.op_type, [keys[name] for name in node.input], attributes))
            keys |= {name: hash((repr(nodes[-1]), i)) for i, name in enumerate(node.output)}
        done = set(map(id, ready))
        waiting = [node for node in waiting if id(node) not in done]
    return {
        "nodes": sorted(map(repr, nodes)),
        "inputs": [(value.name, _kind(value)) for value in graph.input],
        "outputs": [(keys[value.name], _kind(value)) for value in graph.output],
        "values": sorted((keys[value.name], _kind(value)) for value in graph.value_info),
        "weights": {n: (w.data_type, list(w.dims), numpy_helper.to_array(w).tobytes()) for n, w in weights.items()},
        "opsets": [(entry.domain, entry.version) for entry in model.opset_import],
    }


def _remove_unread(graph: onnx.GraphProto) -> None:
    """Polygraphy leaves the nodes that Attention stands for, without their inputs."""
    while True:
        read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
        unread = [node for node in graph.node if not read & set(node.output)]
        for node in unread:
            graph.node.remove(node)
        if not unread:
            return


def _kind(value: onnx.ValueInfoProto) -> str:
    return repr(value.type)


def in_step(models: list[onnx.ModelProto], feeds: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Run a model of each rank, node after node on every rank; DistCollective does what it stands for."""
    ranks = [{**feeds, **{w.name: numpy_helper.to_array(w) for w in model.graph.initializer}} for model in models]
    for nodes in zip(*(model.graph.node for model in models), strict=True):
        node = nodes[0]
        if node.op_type == "DistCollective":
            operation = next(a.s for a in node.attribute if a.name == "collective_operation")
            made = _collective(operation, [values[node.input[0]] for values in ranks])
        else:
            made = [_run(node, values, models[0].opset_import) for values in ranks]
        for values, array in zip(ranks, made, strict=True):
            values[node.output[0]] = array
    return [{value.name: values[value.name] for value in models[0].graph.output} for values in ranks]


def _collective(operation: bytes, arrays: list[Array]) -> list[Array]:
    match operation:
        case b"all_gather":
            return [np.concatenate(arrays)] * len(arrays)
        case b"all_reduce":
            return [np.sum(arrays, axis=0)] * len(arrays)
        case b"reduce_scatter":
            return np.split(np.max(arrays, axis=0), len(arrays))
    raise AssertionError(operation)


def _run(node: onnx.NodeProto, values: Mapping[str, Array], opsets: Any) -> Array:
    ends = [
        [helper.make_tensor_value_info(name, 0, None) for name in names] for names in (set(node.input), node.output)
    ]
    model = helper.make_model(helper.make_graph([node], "one", *ends), opset_imports=opsets)
    (made,) = ReferenceEvaluator(model).run(None, {name: values[name] for name in node.input})
    return np.asarray(made)

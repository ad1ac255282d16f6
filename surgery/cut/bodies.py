"""The bodies of If, Loop and Scan as separate graphs."""

from collections.abc import Iterator, Mapping

import onnx

from layerwise._tool.backends.model.reads import captures
from layerwise._tool.surgery.cut.segments import GraphCut

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})


def bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Return the bodies of a node, each with the name of its attribute."""
    return ((attribute.name, attribute.g) for attribute in node.attribute if attribute.HasField("g"))


def body_graph(outer: GraphCut, body: onnx.GraphProto, types: Mapping[str, int]) -> GraphCut:
    """Return a body as a separate graph: its captures become inputs, or weights if they are weights outside.

    types: ONNX element types of tensors that may be captured. Weights stay in place, as in `outer`.
    """
    model = onnx.ModelProto(ir_version=outer.model.ir_version)
    model.opset_import.extend(outer.model.opset_import)
    model.functions.extend(outer.model.functions)
    model.graph.CopyFrom(body)
    for name in captures(body):
        if name in outer.initializers:
            model.graph.initializer.append(outer.initializers[name])
        elif name in outer.sparse:
            model.graph.sparse_initializer.append(outer.sparse[name])
        else:
            model.graph.input.add(name=name).type.tensor_type.elem_type = types.get(name, 0)
    return GraphCut(model)

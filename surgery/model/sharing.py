"""A model read anew that mostly equals one at hand: what is equal is taken from there."""

import onnx

from layerwise._tool.surgery.model.structure import Structure


def shared(structure: Structure, known: Structure) -> Structure:
    """Return `structure` with the very nodes and weights of `known` where they are equal.

    Memory is shared then, and whatever is derived of a version is carried over instead of being derived again.
    """
    makers, weights = known.lookups.makers, known.initializers
    result = structure.with_(
        nodes=tuple(_known_node(node, makers.get(next(filter(None, node.output), ""))) for node in structure.nodes),
        initializers={name: _same(tensor, weights.get(name)) for name, tensor in structure.initializers.items()},
    )
    result.learn_from(known)
    return result


def _known_node(node: onnx.NodeProto, known: onnx.NodeProto | None) -> onnx.NodeProto:
    return known if known is not None and known == node else node


def _same(tensor: onnx.TensorProto, known: onnx.TensorProto | None) -> onnx.TensorProto:
    return known if known is not None and known == tensor else tensor

"""Shares equal parts of a newly read model with one already in memory."""

import onnx

from layerwise._tool.surgery.model.structure import Structure


def shared(structure: Structure, known: Structure) -> Structure:
    """Return `structure` with the nodes and weights of `known` wherever they are equal.

    This shares memory, and lets derived data of a version be updated instead of rebuilt.
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

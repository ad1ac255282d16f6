"""Shares equal parts of a newly read model with one already in memory."""

from layerwise._tool.surgery.model.proto import Proto
from layerwise._tool.surgery.model.structure import Structure


def shared(structure: Structure, known: Structure) -> Structure:
    """Return `structure` with the nodes and weights of `known` wherever they are equal.

    This shares memory, and lets derived data of a version be updated instead of rebuilt.
    """
    makers, weights = known.lookups.makers, known.initializers
    result = structure.with_(
        nodes=tuple(_same(node, makers.get(next(filter(None, node.output), ""))) for node in structure.nodes),
        initializers={name: _same(tensor, weights.get(name)) for name, tensor in structure.initializers.items()},
    )
    result.learn_from(known)
    return result


def _same(part: Proto, known: Proto | None) -> Proto:
    return known if known is not None and known == part else part

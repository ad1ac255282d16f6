"""What aligning knows of one side's graph, whatever made it: an ONNX file, an fx graph, an engine's layers."""

import msgspec


class AlignNode(msgspec.Struct, frozen=True):
    """One operation. inputs and outputs: tensors by their names on this side; "" for what is left out.

    scope: the modules that it lies in, outermost first, where the exporter or the framework tells.
    source: the name that it had before (an fx node), where the exporter tells.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    scope: tuple[str, ...] = ()
    source: str = ""


class AlignGraph(msgspec.Struct, frozen=True):
    """Operations in topological order, with the graph's inputs and outputs in order and the names of its weights."""

    nodes: tuple[AlignNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: frozenset[str] = frozenset()

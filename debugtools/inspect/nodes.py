"""Which engine layers do each node of an ONNX model, by the names that TensorRT keeps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backends.text import shown
from backends.trt.inspect_layers import Layer


def layers_of_nodes(names: Sequence[str], layers: Sequence[Layer]) -> dict[str, list[str]]:
    """The layers that do each node; none where it was folded away, or where TensorRT does not say."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for layer in layers:
        for node in layer.nodes:
            if node in found and layer.name not in found[node]:
                found[node].append(layer.name)
    return found


def node_lines(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of the table, those of nodes without a layer last."""
    without = [name for name, layers in found.items() if not layers]
    yield f"---- {len(found)} ONNX Node(s), {len(without)} without a layer ----"
    for name, layers in found.items():
        if layers:
            yield f"{shown(name, 200)} -> {shown(', '.join(layers), 400)}"
    yield from (f"{shown(name, 200)} -> none" for name in without)


def node_document(found: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The same for machines."""
    return {name: list(layers) for name, layers in found.items()}

"""Which tensors of a network are read as shapes rather than as data."""

from typing import Any

SLOTS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "ConstantOfShape": (0,), "Slice": (1, 2, 3, 4), "Resize": (1, 2, 3),
    "Upsample": (1,), "Pad": (1, 3), "TopK": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Split": (1,), "Trilu": (1,),
    "Range": (0, 1, 2), "OneHot": (1,), "CenterCropPad": (1,), "Col2Im": (1, 2), "CumSum": (1,), "DFT": (1, 2),
    "AffineGrid": (1,), "MaxUnpool": (2,), "BlackmanWindow": (0,), "HannWindow": (0,), "HammingWindow": (0,),
    **{f"Reduce{kind}": (1,) for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp")},
    "ReduceSumSquare": (1,),
}  # fmt: skip
_THROUGH = ("Cast", "Concat", "Identity", "Gather", "Unsqueeze", "Squeeze", "Add", "Sub", "Mul", "Div", "Min", "Max",
            "Slice", "Reshape", "Floor", "Ceil", "Where", "Neg", "Abs", "Mod")  # fmt: skip


def shape_ids(network: Any) -> set[str]:
    """Ids of the tensors that a shape is made of, back to the inputs."""
    key = (len(network._layers), network._edits)
    if network._shape_ids is None or network._shape_ids[0] != key:
        network._shape_ids = (key, _found(network))
    known: set[str] = network._shape_ids[1]
    return known


def _found(network: Any) -> set[str]:
    found: set[str] = set()
    for layer in reversed(network._layers):
        found |= _read(layer)
        if any(tensor._id in found for tensor in layer.outputs) and _passes(layer):
            found |= {tensor._id for tensor in layer.inputs if tensor is not None}
    return found


def _read(layer: Any) -> set[str]:
    """Ids that this layer reads as shapes."""
    if layer.node is None:
        return {tensor._id for tensor in layer.inputs[1:] if layer.kind == "SHUFFLE" and tensor is not None}
    slots = SLOTS.get(layer.node.op_type, ())
    return {tensor._id for slot, tensor in zip(layer.slots, layer.inputs, strict=False) if slot in slots}


def _passes(layer: Any) -> bool:
    op = layer.node.op_type if layer.node is not None else layer.kind.title().replace("Concatenation", "Concat")
    return op in _THROUGH or op == "Elementwise"

"""Merges nodes that compute the same, and equal weights."""

import onnx

from layerwise._tool.backends.model.reads import subgraphs
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.cut.randomness import RANDOM_OPS
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import reading

_MOST_COMPARED = 1 << 20  # bytes; larger weights count as equal only if they are the same bytes of the same file


def deduplicated(structure: Structure) -> Structure:
    """Return the model with equal weights, and equal nodes of the main graph, merged.

    Nodes with bodies, random ones and those that make graph outputs stay. Two nodes are equal if operator,
    attributes and inputs are equal.
    """
    structure, names = _weights(structure)
    outputs = set(structure.output_names)
    first: dict[bytes, onnx.NodeProto] = {}
    kept: list[onnx.NodeProto] = []
    for old in structure.nodes:
        node = reading(old, names) if names else old
        if any(subgraphs(node)) or node.op_type in RANDOM_OPS or not outputs.isdisjoint(node.output):
            kept.append(node)
            continue
        same = first.setdefault(_key(node), node)
        if same is node:
            kept.append(node)
        else:
            names.update(zip(node.output, same.output, strict=True))
            names.pop("", None)
    values = {name: value for name, value in structure.values.items() if name not in names}
    return structure.with_(nodes=tuple(kept), values=values)


def _weights(structure: Structure) -> tuple[Structure, dict[str, str]]:
    ends = {value.name for value in (*structure.inputs, *structure.outputs)}
    first: dict[bytes, str] = {}
    names: dict[str, str] = {}
    for name, tensor in structure.initializers.items():
        same = first.setdefault(_values_key(tensor), name)
        if same != name and name not in ends:
            names[name] = same
    kept = {name: tensor for name, tensor in structure.initializers.items() if name not in names}
    return structure.with_(initializers=kept), names


def _values_key(tensor: onnx.TensorProto) -> bytes:
    bare = changed(tensor, name="", doc_string="")
    if not tensor.external_data and tensor.ByteSize() <= _MOST_COMPARED and tensor.data_type != tensor.STRING:
        array = tensor_array(tensor)
        return repr((tensor.data_type, tuple(tensor.dims))).encode() + array.tobytes()
    return bytes(bare.SerializeToString(deterministic=True))


def _key(node: onnx.NodeProto) -> bytes:
    bare = changed(node, name="", doc_string="")
    del bare.metadata_props[:]
    bare.output[:] = ["x" if name else "" for name in node.output]
    attributes = sorted(node.attribute, key=lambda attribute: attribute.name)
    del bare.attribute[:]
    bare.attribute.extend(attributes)
    return bytes(bare.SerializeToString(deterministic=True))

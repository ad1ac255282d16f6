"""A graph whose nodes can be switched to low precision one by one, by inputs of the graph: the switchboard.

Each candidate becomes an If. Switched off it is the node as it was, on the very weights of the file. Switched on it
reads its activations rounded by nodes in FP32 and its weights from inputs of the graph, which are fed as the format
holds them (or as they are). So a session is opened once for all subsets, and a candidate that is off costs nothing.
"""

from collections.abc import Mapping, Sequence

import onnx
from msgspec import Struct
from onnx import TensorProto, helper

from layerwise._tool.surgery.cut.segments import GraphCut, Segment
from layerwise._tool.surgery.quantise.arithmetic import Dims, fake_nodes
from layerwise._tool.surgery.quantise.candidates import Candidate, Operand
from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import Format


class Switch(Struct, frozen=True):
    """The inputs of the board that set one candidate: on, rounded (its activations), ends (its outputs are rounded; ""
    where none can be); for each operand a scale and a zero point, or the weight.
    """

    on: str
    rounded: str
    ends: str
    scales: dict[int, str]
    zeros: dict[int, str]
    weights: dict[int, str]


def switch(candidate: Candidate) -> Switch:
    """The names of a candidate's inputs of the board."""
    base = f"switch:{candidate.i}"
    acts, weights = candidate.activations, candidate.weights
    return Switch(
        f"{base}:on", f"{base}:rounded", f"{base}:ends" if candidate.outputs else "",
        {operand.position: f"{base}:scale{operand.position}" for operand in acts},
        {operand.position: f"{base}:zero{operand.position}" for operand in acts},
        {operand.position: f"{base}:weight{operand.position}" for operand in weights},
    )  # fmt: skip


def board(
    cut: GraphCut, segment: Segment, types: Mapping[str, int], chosen: Mapping[int, Candidate], form: Format,
    dims: Mapping[str, Dims],
) -> bytes:  # fmt: skip
    """The segment as a serialised model, its candidates switched. types: ONNX element types of what it is fed. chosen:
    position of a node -> its candidate; dims: of activations, for formats of blocks.
    """
    part = onnx.ModelProto.FromString(cut.build(segment, types))
    opset = next(entry.version for entry in part.opset_import if entry.domain in ("", "ai.onnx"))
    del part.graph.node[:]
    for i in segment.nodes:
        if i not in chosen:
            part.graph.node.append(cut.nodes[i])
            continue
        own = switch(chosen[i])
        part.graph.node.append(_switched(cut.nodes[i], chosen[i], own, form, dims, opset))
        for name in filter(None, (own.on, own.rounded, own.ends)):
            part.graph.input.append(helper.make_tensor_value_info(name, TensorProto.BOOL, []))
        for name in (*own.scales.values(), *own.zeros.values(), *own.weights.values()):
            part.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    data: bytes = part.SerializeToString()
    return data


def _switched(
    node: onnx.NodeProto, candidate: Candidate, own: Switch, form: Format, dims: Mapping[str, Dims], opset: int
) -> onnx.NodeProto:
    made = [name for name in node.output if name]
    low = Emitter(f"switch:{candidate.i}:", opset)
    inputs = dict(enumerate(node.input))
    for operand in candidate.operands:
        if operand.weight:
            inputs[operand.position] = own.weights[operand.position]
        else:
            inputs[operand.position] = _rounded(low, operand, own, form, dims.get(operand.name, ()))
    ends = _append(low, node, inputs, f"switch:{candidate.i}:low:")
    for position in candidate.outputs:
        name = ends[node.output[position]]
        ends[node.output[position]] = low.op("Where", own.ends, fake_nodes(low, name, form), name)
    full = Emitter(f"switch:{candidate.i}:f", opset)
    branches = {
        "then_branch": _branch(low, [ends[name] for name in made]),
        "else_branch": _branch(full, list(_append(full, node, {}, f"switch:{candidate.i}:full:").values())),
    }
    return helper.make_node("If", [own.on], made, node.name, **branches)


def _rounded(low: Emitter, operand: Operand, own: Switch, form: Format, dims: Dims) -> str:
    scale, zero = own.scales[operand.position], own.zeros[operand.position]
    held = fake_nodes(low, operand.name, form, scale, zero, axis=operand.axis, dims=dims)
    return low.op("Where", own.rounded, held, operand.name)


def _append(into: Emitter, node: onnx.NodeProto, inputs: Mapping[int, str], prefix: str) -> dict[str, str]:
    """Append a copy of a node with other inputs and other names of outputs; its output -> the copy's."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for position, name in inputs.items():
        copy.input[position] = name
    ends = {name: f"{prefix}{name}" for name in node.output if name}
    copy.output[:] = [ends.get(name, "") for name in node.output]
    into.nodes.append(copy)
    return ends


def _branch(made: Emitter, outputs: Sequence[str]) -> onnx.GraphProto:
    ends = [onnx.ValueInfoProto(name=name) for name in outputs]
    return helper.make_graph(made.nodes, "branch", [], ends, made.constants)

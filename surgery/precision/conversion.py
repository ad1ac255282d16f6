"""Converts a whole model to FP16 or bfloat16, keeping user-named nodes in FP32."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import onnx
from onnx import helper

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.reads import captures, every_node, subgraphs
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.proto import all_names, shell
from layerwise._tool.surgery.model.structure import Structure, node_label
from layerwise._tool.surgery.precision.nodes import Rewrite
from layerwise._tool.surgery.precision.plan import LowType, PrecisionPlan
from layerwise._tool.surgery.rewrite.inlining import inlined
from layerwise._tool.surgery.rewrite.tidy import in_order
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.node_types import tensor_types

__all__ = ["every_node", "lower_bodies"]


def lower_bodies(
    model: onnx.ModelProto, low: LowType, keep: Collection[str], folder: Path | None
) -> tuple[list[PrecisionPlan], list[str]]:
    """Rewrite all bodies of `model` in place, inner ones first.

    Captures stay in FP32 outside and are cast inside. Returns the bodies' plans, and the
    constants that were clipped. LayerwiseError as `surgery.precision.nodes.convert_precision`.
    """
    plans: list[PrecisionPlan] = []
    clipped: list[str] = []

    def lower(graph: onnx.GraphProto, types: Mapping[str, int]) -> None:
        for body in _bodies(graph.node):
            alone = _alone(model, body, types)
            lower(alone.graph, tensor_types(alone))
            plan = PrecisionPlan.of(alone, low, keep)
            rewrite = Rewrite(alone, low, plan, folder, emulate=False, saturate=True)
            rewrite.names += names  # also not used in other bodies: onnx's inference treats equal names as the same
            _put_back(body, rewrite.result().graph)
            names.update(rewrite.names.keys())
            plans.append(plan)
            clipped.extend(rewrite.clipped)

    names = all_names(model.graph)
    if any(True for _ in _bodies(model.graph.node)):
        lower(model.graph, tensor_types(model))
    return plans, clipped


def _bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for node in nodes:
        yield from subgraphs(node)


def _alone(model: onnx.ModelProto, body: onnx.GraphProto, types: Mapping[str, int]) -> onnx.ModelProto:
    """Return the body as a model: its captures become inputs, after its own."""
    alone = shell(model)
    alone.graph.CopyFrom(body)
    for name in captures(body):
        if name in types:
            alone.graph.input.append(helper.make_tensor_value_info(name, types[name], None))
    return alone


def _put_back(body: onnx.GraphProto, lowered: onnx.GraphProto) -> None:
    inputs = list(body.input)
    body.CopyFrom(lowered)
    del body.input[:]
    body.input.extend(inputs)


@dataclass(frozen=True)
class Converted:
    """A converted model. Counts are of the original nodes.

    low: nodes that now compute in the low type; kept: those that could but were kept in FP32; other: those that
    cannot. clipped: constants with values beyond the low type's range, now clipped to its largest value.
    """

    structure: Structure
    low: int
    kept: int
    other: int
    clipped: tuple[str, ...]


def to_low_precision(
    structure: Structure, low: LowType, keep: Collection[str] = (), *, bodies: bool = False
) -> Converted:
    """Convert all possible nodes to `low`, except those labelled in `keep`, with casts at the boundaries.

    bodies: those of If, Loop and Scan too, between their input and output types. Graph inputs and outputs keep
    their types. Constants beyond the range of `low` saturate, as in TensorRT: attention masks of -3.4e38 would
    otherwise be infinite, and infinity times zero is NaN. LayerwiseError as in
    `surgery.precision.nodes.convert_precision`.
    """
    model = in_order(structure).proto()
    plans, clipped = lower_bodies(model, low, keep, structure.folder) if bodies else ([], [])
    plans.append(PrecisionPlan.of(model, low, keep))
    rewrite = Rewrite(model, low, plans[-1], structure.folder, emulate=False, saturate=True)
    converted = Structure.from_proto(rewrite.result(), structure.folder, structure.base)
    slots = [slots for plan in plans for slots in plan.slots]
    done, kept = sum(slot is not None for slot in slots), sum(plan.held for plan in plans)
    return Converted(converted, done, kept, len(slots) - done - kept, (*clipped, *rewrite.clipped))


def labels(nodes: Sequence[onnx.NodeProto], names: Iterable[str], op_types: Iterable[str]) -> set[str]:
    """Return the labels of the nodes with these names (or first outputs, or globs of them) or operators.

    UsageError for one that no node has.
    """
    chosen: set[str] = set()
    for name in names:
        found = {label for node in nodes if (label := node_label(node)) == name or name in node.output}
        found = found or {label for node in nodes if fnmatchcase(label := node_label(node), name)}
        chosen |= _some(found, f"there is no node {shown(name, 120)!r}")
    for op_type in op_types:
        found = {node_label(node) for node in nodes if node.op_type.lower() == op_type.lower()}
        chosen |= _some(found, f"the model has no node of type {shown(op_type, 60)!r}")
    return chosen


def _some(found: set[str], complaint: str) -> set[str]:
    if not found:
        raise UsageError(complaint)
    return found


def in_half(model: ModelFile, folder: Path) -> Path:
    """Write the model, with nodes in FP16 where possible, to `folder`; return the file. Inputs and outputs keep their
    types. LayerwiseError if it cannot be converted or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "half.onnx"
    done = to_low_precision(inlined(Structure.open(model)), "float16", bodies=True)
    save(done.structure, path, overwrite=True)
    return path

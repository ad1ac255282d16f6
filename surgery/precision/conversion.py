"""Converts a whole model to FP16 or bfloat16, keeping user-named nodes in FP32."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.precision.bodies import lower_bodies
from layerwise._tool.surgery.precision.nodes import Rewrite
from layerwise._tool.surgery.precision.plan import LowType, PrecisionPlan, node_label
from layerwise._tool.surgery.rewrite.tidy import in_order


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
    ordered = in_order(structure)
    assert isinstance(ordered, Structure)
    model = ordered.proto()
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

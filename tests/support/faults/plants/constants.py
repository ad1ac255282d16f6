"""Wrong constants: one element, or a whole weight by a factor."""

import numpy as np
from support.faults.draft import Draft, Fault
from support.faults.running import Array

_INDEX_FIRST = ("Gather", "GatherElements", "GatherND")


def element(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """One of the larger elements of a weight changes its sign."""
    found = _weight(draft, i, random)
    if found is None or draft.node(i).op_type in _INDEX_FIRST:
        return None
    slot, value = found
    order = np.argsort(np.abs(value), axis=None)
    flat = int(order[-1 - random.integers(0, max(1, value.size // 10))])
    changed = value.copy()
    changed.reshape(-1)[flat] *= -1
    draft.set_weight(i, slot, changed)
    return draft.fault("constant element", i, f"input {slot}: element {flat} has the other sign")


def scaled(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A weight is too large by some percent, or by much."""
    found = _weight(draft, i, random)
    if found is None:
        return None
    slot, value = found
    factor = float(random.choice([1.02, 1.1, 0.5, 2.0]))
    draft.set_weight(i, slot, (value * factor).astype(value.dtype))
    return draft.fault("constant scaled", i, f"input {slot}: x{factor:g}")


def _weight(draft: Draft, i: int, random: np.random.Generator) -> tuple[int, Array] | None:
    """A float weight of the node that is not all zeros, and its place."""
    slots = range(len(draft.original(i).input))
    if draft.original(i).op_type == "Resize":
        return None  # scales and regions of interest
    values = [(slot, draft.weight(i, slot)) for slot in slots]
    fit = [(slot, v) for slot, v in values if v is not None and v.dtype == np.float32 and v.any()]
    return fit[int(random.integers(len(fit)))] if fit else None

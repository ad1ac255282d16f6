"""Wrong shape operators: the right shape with the elements in wrong places."""

import numpy as np
from onnx import helper
from support.faults.draft import Draft, Fault


def transpose(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A permutation that mixes up two axes of one length."""
    node, fact = draft.original(i), draft.fact(i)
    perm = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), None)
    if node.op_type != "Transpose" or fact is None or perm is None:
        return None
    pairs = _equal_axes(fact.shape)
    if not pairs:
        return None
    a, b = pairs[int(random.integers(len(pairs)))]
    wrong = list(perm)
    wrong[a], wrong[b] = perm[b], perm[a]
    changed = draft.node(i)
    del changed.attribute[:]
    changed.attribute.append(helper.make_attribute("perm", wrong))
    return draft.fault("transpose", i, f"perm: {perm} -> {wrong}")


def reshape(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """What is reshaped is read in another order: through a transposed copy."""
    node, fact = draft.original(i), draft.input_fact(i, 0)
    if node.op_type not in ("Reshape", "Flatten") or fact is None or not fact.floating or len(fact.shape) < 2:
        return None
    long = [k for k, length in enumerate(fact.shape) if length > 1]
    if len(long) < 2:
        return None
    a, b = sorted(int(k) for k in random.choice(long, 2, replace=False))
    perm = list(range(len(fact.shape)))
    perm[a], perm[b] = b, a
    turned = draft.before(i, "Transpose", [node.input[0]], perm=perm)
    out = draft.fact(i)
    if out is None:
        return None
    changed = draft.node(i)
    changed.op_type = "Reshape"
    del changed.attribute[:]
    del changed.input[:]
    changed.input.extend([turned, draft.constant(np.array(out.shape, np.int64))])
    return draft.fault("reshape order", i, f"of a copy with axes {a} and {b} changed", draft.label(i))


def pick(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A slice that starts one off, an index that is one off."""
    node, data, out = draft.original(i), draft.input_fact(i, 0), draft.fact(i)
    if node.op_type == "Gather" and data is not None:
        index = draft.weight(i, 1)
        axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
        if index is None or data.shape[axis] < 2:
            return None
        draft.set_weight(i, 1, (index + 1) % data.shape[axis])
        return draft.fault("slice or gather", i, "index one too large")
    if node.op_type != "Slice" or data is None or out is None:
        return None
    starts, ends, axes = (draft.weight(i, slot) for slot in (1, 2, 3))
    if starts is None or ends is None or axes is None or starts.size != 1:
        return None
    axis, start, length = int(axes[0]), int(starts[0]), out.shape[int(axes[0])]
    start %= data.shape[axis]
    shift = 1 if start + length < data.shape[axis] else -1
    if start + shift < 0:
        return None
    draft.set_weight(i, 1, np.array([start + shift], starts.dtype))
    draft.set_weight(i, 2, np.array([start + shift + length], ends.dtype))
    return draft.fault("slice or gather", i, f"from {start + shift} instead of {start}")


def order(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """Two parts of a Concat, or two outputs of a Split, change places."""
    node = draft.original(i)
    if node.op_type not in ("Concat", "Split"):
        return None
    names = list(node.input if node.op_type == "Concat" else node.output)
    known = [draft.facts.get(name) for name in names]
    pairs = [
        (a, b)
        for b, second in enumerate(known)
        for a, first in enumerate(known[:b])
        if first and second and first.shape == second.shape and names[a] != names[b]
    ]
    if not pairs:
        return None
    a, b = pairs[int(random.integers(len(pairs)))]
    changed = draft.node(i)
    places = changed.input if node.op_type == "Concat" else changed.output
    places[a], places[b] = names[b], names[a]
    return draft.fault("concat or split order", i, f"{a} and {b}")


def _equal_axes(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(a, b) for b in range(len(shape)) for a in range(b) if shape[a] == shape[b] > 1]

"""Faults of onnxruntime's own optimiser (1.31), which vanish as soon as an inner tensor is an output.

The model is right and what optimisation makes of it is not: the suspect is a runner with all optimisations, the
reference the same model without any. A marked tensor must exist, so nothing is fused, and both sides agree.

- order: LayerNormFusion takes Sub, Pow and Div of a layer norm for those of LayerNormalization whichever way round
  their inputs are: mean - x, 2 ** d and std / d become (x - mean) / std too.
- offset: the fused LayerNormalization works out the variance as E[x²] - E[x]², which cancels where the mean is large
  beside the spread; the operators in pieces subtract the mean first.
- padded: PadFusion makes a Pad with zeros before a MaxPool the pool's own pads, which count as the smallest number:
  where all neighbours are negative the maximum was the zero.
"""

import numpy as np
from support.faults.draft import Draft, Fault

OFFSETS = (1e4, 3e4)


def order(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A layer norm with Sub, Pow or Div the other way round, on purpose."""
    node = draft.original(i)
    if node.op_type not in ("Sub", "Pow", "Div") or "norm" not in node.name:
        return None
    changed = draft.node(i)
    changed.input[0], changed.input[1] = node.input[1], node.input[0]
    return draft.fault("vanishing: order", i, f"{node.op_type} is fused as if its inputs were the other way round")


def offset(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """What goes into a layer norm has a large mean."""
    node, fact = draft.original(i), draft.input_fact(i, 0)
    if node.op_type != "ReduceMean" or "norm" not in node.name or not node.name.endswith("/ReduceMean") or fact is None:
        return None
    reader = next((k for k in draft.readers(node.input[0]) if draft.original(k).op_type == "Sub"), None)
    if reader is None:
        return None
    lift = np.float32(random.choice(OFFSETS))
    lifted = draft.before(i, "Add", [node.input[0], draft.constant(lift)])
    draft.node(i).input[0] = lifted
    draft.node(reader).input[0] = lifted
    return draft.fault("vanishing: offset", i, f"mean of {lift:g} in a fused layer norm", draft.label(i))


def padded(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A maximum over neighbours, with zeros around the image."""
    fact = draft.fact(i)
    if fact is None or len(fact.shape) != 4 or not fact.floating or fact.low >= 0 or min(fact.shape[2:]) < 3:
        return None
    raw, name = draft.divert(i)
    pads = [0, 0, 1, 1, 0, 0, 1, 1]
    if draft.opset < 11:
        zeros = draft.after(i, "Pad", [raw], pads=pads)
    else:
        zeros = draft.after(i, "Pad", [raw, draft.constant(np.array(pads, np.int64))])
    draft.after(i, "MaxPool", [zeros], name, kernel_shape=[3, 3])
    return draft.fault("vanishing: padded", i, "a Pad with zeros is fused into a MaxPool, whose own pads are no zeros")


VANISHING = {"vanishing: order": order, "vanishing: offset": offset, "vanishing: padded": padded}

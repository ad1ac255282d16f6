"""Faults that only given inputs show.

Token models get a wrong row of their embeddings, which the usual tokens do not use; others a clip that the usual
activations do not reach, and inputs three times as large.
"""

from collections.abc import Iterator

import numpy as np
import onnx
from support.faults.corpus import COUNTS, Clean
from support.faults.draft import Draft, Fault
from support.faults.running import Array

_LARGER = 3.0
_TRIES = 40


def showing_feed(clean: Clean) -> dict[str, Array]:
    """Inputs that go where the usual ones do not."""
    feed = {}
    for name, array in clean.feed.items():
        unused = np.setdiff1d(np.arange(array.max() + 1), array) if array.dtype.kind == "i" else np.array([])
        if unused.size:
            shown = array.copy()
            shown.reshape(-1)[0] = unused[0]
            feed[name] = shown
        else:
            feed[name] = (array * _LARGER).astype(array.dtype)
    return feed


def hidden(usual: Clean, showing: Clean, seed: int, count: int) -> Iterator[tuple[Fault, onnx.ModelProto]]:
    """Give up to `count` faults that the usual inputs do not show at all."""
    random = np.random.default_rng([seed, *usual.name.encode(), 7])
    found = 0
    readers = [i for name in usual.feed for i in usual.base.readers.get(name, ())]
    for i in [*readers, *map(int, random.permutation(len(usual.base.nodes))[:_TRIES])]:
        draft = Draft(usual.base)
        fault = (_row if usual.base.nodes[i].op_type == "Gather" else _clip)(draft, i, showing)
        model = draft.model() if fault else None
        if fault is None or model is None or found == count:
            continue
        if usual.ratio(model) == 0 and showing.ratio(model) > COUNTS:
            found += 1
            yield fault, model


def _row(draft: Draft, i: int, showing: Clean) -> Fault | None:
    """One row of an embedding has the other sign."""
    rows, index = draft.weight(i, 0), draft.original(i).input[1]
    if rows is None or rows.dtype != np.float32 or index not in showing.feed:
        return None
    row = int(showing.feed[index].reshape(-1)[0])
    changed = rows.copy()
    changed[row] *= -1
    draft.set_weight(i, 0, changed)
    return draft.fault("hidden: row", i, f"row {row} has the other sign")


def _clip(draft: Draft, i: int, showing: Clean) -> Fault | None:
    """A result is cut off right above the largest of the usual values."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or draft.opset < 11 or fact.high <= 0:
        return None
    raw, name = draft.divert(i)
    draft.after(i, "Clip", [raw, "", draft.constant(np.float32(fact.high * 1.001))], name)
    return draft.fault("hidden: clip", i, f"cut off at {fact.high:.4g}")

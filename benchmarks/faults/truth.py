"""What an alignment should say, known by construction: which tensors of one form are which of another."""

from collections.abc import Mapping
from functools import cache

import numpy as np
from support.faults.corpus import Clean
from support.faults.running import Array

from benchmarks.faults.forms import Form
from layerwise._tool.debugtools.align.alignment import AlignedPair


def counted(clean: Clean, form: Form, pairs: list[AlignedPair]) -> dict[str, int]:
    """How many floating tensors of more than 4 elements have a counterpart; right, wrong (certain ones), missed.

    A counterpart holds the same values in any order within 1e-4; in a form of fewer bits, it is the tensor that bore
    the name, or one whose values are as near to it.
    """
    theirs = _seen(form.run(clean.feed, everything=True))
    found = {pair.tensor: pair for pair in pairs}
    count = {"tensors": 0, "right": 0, "wrong": 0, "wrong certain": 0, "missed": 0}
    by_size: dict[int, list[str]] = {}
    for name, array in theirs.items():
        by_size.setdefault(array.size, []).append(name)
    order = cache(lambda name: np.sort(theirs[name].ravel().astype(np.float64)))
    for name, array in _seen(clean.tensors).items():
        mine = np.sort(array.ravel().astype(np.float64))
        own = form.names.get(name, name)
        if form.low:
            bound = 2 * apart(mine, order(own)) + 1e-4 if own in theirs and theirs[own].size == array.size else -1.0
        else:
            bound = 1e-4
        if not any(apart(mine, order(other)) <= bound for other in by_size.get(array.size, ())):
            continue
        count["tensors"] += 1
        pair = found.get(name)
        if pair is None:
            count["missed"] += 1
            continue
        right = pair.other not in theirs or (
            theirs[pair.other].size == array.size and apart(mine, order(pair.other)) <= bound
        )
        count["right" if right else "wrong"] += 1
        count["wrong certain"] += not right and pair.confidence == "certain"
    return count


def _seen(found: Mapping[str, Array]) -> dict[str, Array]:
    """Floating tensors that are more than a few numbers and not all alike."""
    return {
        name: array
        for name, array in found.items()
        if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size > 4 and np.isfinite(array).all()
    }


def apart(mine: Array, theirs: Array) -> float:
    size = float(np.linalg.norm(mine))
    return float(np.linalg.norm(mine - theirs)) / size if size else float(np.abs(theirs).max(initial=0.0))

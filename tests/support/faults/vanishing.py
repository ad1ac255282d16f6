"""Faults that vanish under marking: onnxruntime's own results say so.

With all optimisations the plain outputs move by more than ten times the clean noise and fail; with every tensor marked
they pass.
"""

from collections.abc import Iterator

import numpy as np
import onnx
from support.faults import running
from support.faults.corpus import COUNTS, Clean
from support.faults.draft import Draft, Fault
from support.faults.plants.vanishing import VANISHING

_TRIES = 40


def vanishing(clean: Clean, seed: int, count: int) -> Iterator[tuple[Fault, onnx.ModelProto]]:
    """Give up to `count` faults of each kind that vanish when everything is marked."""
    for kind, plant in VANISHING.items():
        random = np.random.default_rng([seed, *clean.name.encode(), *kind.encode()])
        found = tries = 0
        for i in map(int, random.permutation(len(clean.base.nodes))):
            draft = Draft(clean.base)
            fault = plant(draft, i, random) if found < count and tries < _TRIES else None
            if fault is not None:
                tries += 1
                model = draft.model()
                if _vanishes(clean, model):
                    found += 1
                    yield fault, model


def _vanishes(clean: Clean, model: onnx.ModelProto) -> bool:
    right = running.run(model, clean.feed, running.OFF)
    plain = running.run(model, clean.feed)
    names = [name for node in model.graph.node for name in node.output if name]
    marked = running.run(running.marked(model, names), clean.feed)
    counts = any(running.moved(plain[name], array) > COUNTS * clean.noise[name] for name, array in right.items())
    fails = not all(running.passes(plain[name], array) for name, array in right.items())
    return counts and fails and all(running.passes(marked[name], array) for name, array in right.items())

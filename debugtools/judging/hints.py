"""Where to look first: nodes whose own error, on the reference's tensors, is beyond rounding."""

import math
from typing import Any

from numpy.typing import NDArray

from debugtools.compare.sides import ModelSide
from debugtools.compare.stream import observing
from debugtools.judging.subject import Subject
from debugtools.locate.errors import error_of
from debugtools.locate.local import LocalRuns
from debugtools.locate.part import Part
from surgery.explode import Exploder

Array = NDArray[Any]
_AT_ONCE = 64  # tensors of one exploded graph
_MOST = 100


def likely(subject: Subject) -> list[int]:
    """Return positions of nodes, the worst local error first; none where unfused nodes cannot tell the sides apart."""
    if _alike_unfused(subject):
        return []
    cut = subject.cut
    exploder = Exploder(cut, [name for name in cut.maker if name in subject.tensors])
    runs = LocalRuns(Part.model(subject.suspect), exploder)
    names = [name for i in subject.items for name in cut.nodes[i].output if name in subject.tensors]
    scores: dict[int, float] = {}
    for at in range(0, len(names), _AT_ONCE):
        chunk = names[at : at + _AT_ONCE]
        feed = {name: subject.tensors[name] for name in exploder.feeds(chunk, subject.constants)}
        for name, made in runs.run(chunk, feed, subject.constants):
            i = cut.maker[name]
            scores[i] = max(scores.get(i, 0.0), _units(subject, name, made))
    suspects = [i for i, units in scores.items() if units > 1]
    return sorted(suspects, key=lambda i: (-scores[i], i))[:_MOST]


def _units(subject: Subject, name: str, made: Array | str) -> float:
    """A local error in units of what rounding explains; a tensor that cannot be made is infinitely wrong."""
    if isinstance(made, str):
        return math.inf
    error = error_of(made, subject.tensors.raw(name), (), 1)
    return math.inf if error.onset else error.units


def _alike_unfused(subject: Subject) -> bool:
    other = subject.setup.sides[-1]
    return (
        not subject.differ and isinstance(other, ModelSide) and observing(other.spec) == observing(subject.suspect.spec)
    )

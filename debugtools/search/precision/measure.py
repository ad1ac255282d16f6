"""What one node alone does in low precision, and how each node passes on what is wrong with its inputs.

Both from parts of the graph that run on FP32 tensors, as the suspect's runner runs them (surgery.cut.explode): no
node sees another's error. A node that is low rounds its inputs, its weights and its outputs; all of that is its local
error.
A node's gain for an input is the relative L2 change of an output when that input alone moves by one rounding.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.locate.part import LocalRuns, Part, Result, fit
from layerwise._tool.debugtools.locate.tensor_error import error_of
from layerwise._tool.debugtools.search.at_once import at_once
from layerwise._tool.debugtools.search.precision.ways import LowGraph
from layerwise._tool.debugtools.search.spec import LowType, rounds_like
from layerwise._tool.surgery.cut.explode import Exploder
from layerwise._tool.surgery.precision.nodes import rounded

Tensors = Mapping[str, Array]
_AT_ONCE = 256  # nodes of one exploded graph
_BYTES_AT_ONCE = 64 << 20
_MASKED, _ALIKE = -9000.0, 0.99
_APART = 3  # inputs of a node that are moved one by one; further ones move together


@dataclass
class Measured:
    """local: node -> its error in low precision (relative L2; inf: overflow, or it cannot run). gains: (node, input,
    output) -> gain. failures: node -> why it cannot run.
    """

    local: dict[int, float] = field(default_factory=dict)
    gains: dict[tuple[int, str, str], float] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


class Measurer:
    """full: the FP32 graph, and what runs it. lowered: the same with these nodes low. tensors: all that it makes, and
    its inputs.
    """

    def __init__(self, full: Part, lowered: LowGraph, nodes: Sequence[int], low: LowType, tensors: Tensors) -> None:
        self._cut, self._low, self._tensors = full.cut, low, tensors
        self._unit = unit_roundoff([rounds_like(low)])
        self._constants = frozenset(node.output[0] for node in full.cut.nodes if node.op_type == "Constant")
        self.nodes, self._types = list(nodes), lowered.types
        shared = [name for name in full.cut.maker if name in lowered.cut.maker]
        self._low_runs = _Runs(Part(lowered.cut, lowered.folder, lowered.spec, "precision"), shared)
        self._full_runs = _Runs(full, list(full.cut.maker))

    def measure(self, report: Callable[[int, int], None]) -> Measured:
        """Measure all nodes, piece by piece. report(done, total) in nodes."""
        found, done = Measured(), 0
        lowered = frozenset(self.nodes)
        for piece in self._pieces():
            self._errors([i for i in piece if i in lowered], found)
            for moved, tasks in self._groups(piece):
                self._gains(moved, tasks, found)
            done += len(piece)
            report(done, len(self._cut.nodes))
        return found

    def _pieces(self) -> Iterator[list[int]]:
        return at_once(range(len(self._cut.nodes)), self._size, _AT_ONCE, _BYTES_AT_ONCE)

    def _size(self, i: int) -> int:
        """Bytes of what a node reads and makes."""
        names = [*self._cut.reads[i], *self._cut.nodes[i].output]
        return sum(self._tensors[name].nbytes for name in names if name in self._tensors)

    def _errors(self, nodes: Sequence[int], found: Measured) -> None:
        runs = self._low_runs
        names = self._outputs(nodes, runs.has)
        feed = {name: self._as_low(name) for name in runs.feeds(names, self._constants)}
        for name, made in runs.run(names, feed, self._constants):
            i = self._cut.maker[name]
            if isinstance(made, str):
                found.failures[i] = made
            error = _change(made, self._tensors[name]) if isinstance(made, np.ndarray) else math.inf
            found.local[i] = max(found.local.get(i, 0.0), error)

    def _as_low(self, name: str) -> Array:
        array = self._tensors[name]
        if array.dtype == np.float32 and self._low != "int8":
            array = rounded(array, self._low, emulate=True)
        return fit(array, self._types.get(name))

    def _groups(self, piece: Sequence[int]) -> Iterator[tuple[frozenset[str], list["_Task"]]]:
        """Inputs that can be moved in one run: no node of a group reads a moved tensor other than its task's."""
        groups: list[_Group] = []
        for task in (task for i in piece for task in self._tasks(i)):
            group = next((group for group in groups if group.takes(task)), None)
            if group is None:
                group = _Group()
                groups.append(group)
            group.add(task)
        for group in groups:
            yield frozenset(group.moved), group.tasks

    def _tasks(self, i: int) -> Iterator["_Task"]:
        reads = [name for name in dict.fromkeys(self._cut.reads[i]) if self._moves(name)]
        alone = reads if len(reads) <= _APART else reads[: _APART - 1]
        for name in alone:
            yield _Task(i, frozenset({name}), frozenset(reads) - {name})
        if len(alone) < len(reads):
            yield _Task(i, frozenset(reads[len(alone) :]), frozenset(alone))

    def _moves(self, name: str) -> bool:
        """Whether a node makes it, of floating values that can be moved."""
        made = name in self._cut.maker and name not in self._constants and name in self._tensors
        return made and self._tensors[name].dtype == np.float32

    def _gains(self, moved: frozenset[str], tasks: Sequence["_Task"], found: Measured) -> None:
        names = self._outputs([task.node for task in tasks], self._full_runs.has)
        wanted = self._full_runs.feeds(names, self._constants)
        feed = {name: self._moved(name) if name in moved else self._tensors[name] for name in wanted}
        made = dict(self._full_runs.run(names, feed, self._constants))
        for task in tasks:
            for name in self._outputs([task.node], made.__contains__):
                value = made[name]
                change = _change(value, self._tensors[name]) if isinstance(value, np.ndarray) else self._unit
                for read in task.moved:
                    found.gains[task.node, read, name] = min(change, 1.0) / self._unit

    def _moved(self, name: str) -> Array:
        """Every element moved by one rounding of the low type, up or down."""
        array = self._tensors[name]
        signs = np.random.default_rng(0).integers(0, 2, array.shape, np.int8) * 2 - 1
        with np.errstate(all="ignore"):
            return array * (1 + self._unit * signs).astype(np.float32)

    def _outputs(self, nodes: Sequence[int], has: Callable[[str], bool]) -> list[str]:
        outputs = [name for i in nodes for name in self._cut.nodes[i].output if name]
        return [name for name in outputs if name in self._tensors and has(name)]


@dataclass(frozen=True)
class _Task:
    node: int
    moved: frozenset[str]
    still: frozenset[str]


class _Group:
    def __init__(self) -> None:
        self.moved: set[str] = set()
        self._still: set[str] = set()
        self._nodes: set[int] = set()
        self.tasks: list[_Task] = []

    def takes(self, task: _Task) -> bool:
        clash = not self._still.isdisjoint(task.moved) or not self.moved.isdisjoint(task.still)
        return task.node not in self._nodes and not clash

    def add(self, task: _Task) -> None:
        self.moved |= task.moved
        self._still |= task.still
        self._nodes.add(task.node)
        self.tasks.append(task)


class _Runs:
    """Parts of one graph on tensors of another."""

    def __init__(self, part: Part, cuts: Sequence[str]) -> None:
        self._exploder = Exploder(part.cut, cuts)
        self._runs = LocalRuns(part, self._exploder)
        self.has = self._exploder.regions.cuts.__contains__

    def feeds(self, names: Sequence[str], own: frozenset[str]) -> tuple[str, ...]:
        return self._exploder.feeds(names, own)

    def run(self, names: Sequence[str], feed: Tensors, own: frozenset[str]) -> Iterator[tuple[str, Result]]:
        return self._runs.run(names, feed, own) if names else iter(())


def _change(array: Array, reference: Array) -> float:
    """Relative L2 change; inf where shapes differ, or where values are not finite that are in the reference.

    Large negative numbers that mask others out (-10000, -1e9 before a softmax) are left aside: they would hide the
    rest, and may well become -inf.
    """
    if array.shape != reference.shape:
        return math.inf
    seen = _unmasked(reference)
    if seen is not None:
        array, reference = array[seen], reference[seen]
    error = error_of(array, reference, (), 1)
    return math.inf if error.onset else error.rel


def _unmasked(array: Array) -> NDArray[np.bool_] | None:
    """Where an array is no mask; None if it has none."""
    lowest = float(array.min(initial=0)) if array.dtype.kind == "f" else 0.0
    if not -math.inf < lowest <= _MASKED:
        return None
    seen = array > lowest / 2
    masks = array[~seen]
    alike = masks.size > 1 and float(masks.max()) < _ALIKE * lowest
    return seen if alike and seen.any() and lowest < -1000 * np.median(np.abs(array[seen])) else None

"""Which nodes are suspected, worst first."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import Truth
from layerwise._tool.debugtools.compare.table.judging import LEAP
from layerwise._tool.debugtools.compare.table.layers import origin_fields
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.locate.rows import Inside, NodeRow, SuspectRow
from layerwise._tool.debugtools.locate.tensor_error import Error
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

Word = Literal["kernel", "ill-conditioned", "overflow", "nan", "quantisation", "saturation", "propagated", "clean"]
_ONSETS: dict[str, Word] = {"overflow": "overflow", "nan": "nan"}
STAND_OUT = 16.0
_FEW = 4  # tensors of an operator that are too few to tell what is normal for it
_ABOUT = 2.0
_UNRELATED = 1.0  # relative L2: the two have nothing in common
_BEHIND = 0.1  # of its error counts, where a suspect's inputs are as far off


def diagnose(local: Error | None, accumulated: Error | None, amplification: float | None, finding: str) -> Word:
    """Return the word for a tensor.

    local: the error of its region alone, None if that is not known; accumulated: the suspect's, None if it did not get
    there. finding: the layer table's. Numbers of the reference that the suspect's type cannot hold, and that it never
    had, are no overflow of it.
    """
    bad = accumulated is not None and accumulated.beyond
    if local is not None and local.onset:
        if accumulated is None or accumulated.onset:
            return _ONSETS[local.onset]
        return "propagated" if bad else "clean"
    if local is not None and local.conditioned:
        return "ill-conditioned" if bad else "clean"
    if local is not None and local.beyond:
        return "kernel"
    if accumulated is None or not bad:
        return "clean"
    if accumulated.onset and finding in _ONSETS:
        return _ONSETS[finding]
    return "ill-conditioned" if amplification is not None and amplification >= LEAP else "propagated"


@dataclass(slots=True)
class Suspect:
    """A tensor that speaks against the node that makes it.

    local: None if the node failed on the reference's inputs, with `failure`. region: positions of the nodes that make
    the tensor from tensors that both sides have. inputs: the largest relative error of what they read. inside: what
    is at fault in the body of a control-flow node. saturated: why the node is off, where its kernel saturates.
    """

    place: Place
    tensor: str
    word: Word
    local: Error | None
    accumulated: Error | None
    amplification: float | None
    region: tuple[int, ...]
    iteration: int
    inputs: float = 0.0
    failure: str = ""
    inside: Inside | None = None
    truth: Truth | UnsetType = UNSET
    saturated: Saturated | None = None

    @property
    def rank(self) -> tuple[int, float, int, int]:
        """Less is worse: where Inf and NaN begin and what cannot run, then the local error, then what only grew.

        Of two alike in size the one that reads what is as far off itself, or has nothing in common with the reference,
        comes behind: it may only be laid out for what the other makes. Where all is alike, the smaller region says
        more; where the reference is not finite, the first.
        """
        local, size, i = self.local, len(self.region), self.place.i
        if self.failure or self.word in _ONSETS.values():
            return 0, 0.0, size, i
        if local is not None and local.rel > 0:
            if math.isinf(local.abs):
                return 1, -math.inf, 0, i
            behind = self.inputs >= min(local.rel / _ABOUT, _UNRELATED)
            return 1, -local.units * (_BEHIND if behind else 1.0), size, i
        return 2, -(self.amplification or math.inf), size, i


class Suspects:
    """Takes in tensors as they are met; of the tensors of one node the worst counts, over all iterations."""

    def __init__(self) -> None:
        self._worst: dict[int, Suspect] = {}
        self._outputs: dict[int, dict[str, None]] = {}

    def add(self, suspect: Suspect) -> None:
        """Take in a tensor that is suspected."""
        i = suspect.place.i
        self._outputs.setdefault(i, {})[suspect.tensor] = None
        known = self._worst.get(i)
        if known is None or suspect.rank < known.rank:
            self._worst[i] = suspect

    def __len__(self) -> int:
        return len(self._worst)

    def ranked(self) -> list[tuple[Suspect, list[str]]]:
        """All suspected nodes, worst first, each with its tensors that are suspected."""
        worst = sorted(self._worst.values(), key=lambda suspect: suspect.rank)
        return [(suspect, list(self._outputs[suspect.place.i])) for suspect in worst]


def suspect_row(suspect: Suspect, outputs: list[str], cut: "GraphCut", evidence: list[str]) -> SuspectRow:
    """Return the row of table `suspects`; cut: the suspect's model."""
    local, accumulated, place = suspect.local, suspect.accumulated, suspect.place
    label = place.node or (node_label(cut.nodes[place.i]) if place.i >= 0 else suspect.tensor)
    return SuspectRow(
        i=place.i, node=label, op=place.op, outputs=outputs, tensor=suspect.tensor, iteration=suspect.iteration,
        local=local.rel if local else None, local_abs=local.abs if local else None,
        times=local.times if local else None,
        accumulated=accumulated.rel if accumulated else None, amplification=suspect.amplification,
        diagnosis=suspect.word, evidence="; ".join(evidence), inside=suspect.inside or UNSET, truth=suspect.truth,
        region=node_rows(cut, suspect.region),
        **origin_fields(place),
    )  # fmt: skip


def node_rows(cut: "GraphCut", nodes: Sequence[int]) -> list[NodeRow]:
    """Return the nodes at these positions."""
    return [NodeRow(i, node_label(cut.nodes[i]), cut.nodes[i].op_type) for i in nodes]


def evidence(suspect: Suspect, differences: Sequence[str], stopped: str) -> list[str]:
    """Return what speaks against a node, strongest first.

    differences: of the two models where the tensor is made. stopped: where the suspect's own run ended early.
    """
    lines = [_failure(suspect) if suspect.failure else _local(suspect)]
    lines += _accumulated(suspect, stopped)
    if len(suspect.region) > 1:
        lines.append(f"made by {len(suspect.region)} nodes from tensors that both sides have")
    return [line for line in [*lines, *differences] if line]


def _failure(suspect: Suspect) -> str:
    return f"it cannot run on the reference's inputs: {shown(suspect.failure, 300)}"


def _local(suspect: Suspect) -> str:
    local, saturated = suspect.local, suspect.saturated
    if local is None:
        return ""
    if saturated is not None:
        own = f"{suspect.place.op} {suspect.place.node}" == saturated.first
        which = "" if own else f" ({shown(saturated.first, 160)})"
        where = f"its kernel for uint8 times int8 saturates on this CPU{which}"
        off = f"on the reference's inputs it is off by {_number(saturated.error)} (relative L2)"
        return f"{where}: {off}, by {_number(saturated.left)} where it does not"
    if local.onset:
        what = "Inf" if local.onset == "overflow" else "NaN"
        return f"on the reference's inputs it gives {what} where the reference has none"
    if local.note:
        return f"on the reference's inputs: {local.note}"
    if suspect.word == "kernel" and not local.beyond:
        return "right on the reference's inputs when it is built alone: it goes wrong within the whole engine only"
    if math.isinf(local.abs):
        return "on the reference's inputs it has no Inf or NaN where the reference has them"
    if math.isinf(local.rel):
        return f"on the reference's inputs it is off by up to {_number(local.abs)} where the reference is zero"
    if local.rel == 0:
        return f"exact on the reference's inputs, but it makes errors {_number(suspect.amplification)} times larger"
    return f"on the reference's inputs it is off by {_number(local.rel)} (relative L2), {_in_bounds(local)}"


def _in_bounds(local: Error) -> str:
    if not local.bound:
        return "and its values are exact ones"
    if local.conditioned:
        return "which rounding its inputs once explains"
    if local.times is not None and local.times > 1:
        return f"{_number(local.times)} times what rounding explains"
    return "no more than rounding explains, but not the same bits"


def _accumulated(suspect: Suspect, stopped: str) -> list[str]:
    if suspect.accumulated is None:
        return [f"the suspect's own run ends before: {shown(stopped, 200)}"] if stopped else []
    inputs = "clean inputs" if suspect.inputs == 0 else f"inputs off by {_number(suspect.inputs)}"
    accumulated = suspect.accumulated
    off = _number(accumulated.rel) if math.isfinite(accumulated.rel) else "everything"
    return [f"in the whole run off by {off}, from {inputs}"]


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"


Found = tuple[Suspect, list[str]]


@dataclass
class NoiseFloor:
    """Own errors of nodes by operator: how many there are, and those beyond what rounding explains. A node of several
    floating outputs counts once, by the worst of them."""

    _nodes: dict[str, dict[tuple[int, int], float]] = field(default_factory=lambda: defaultdict(dict))
    _beyond: dict[str, dict[tuple[int, int], float]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, op: str, node: int, local: float, *, off: bool, iteration: int = 0) -> None:
        """Take in the own relative error of one of a node's tensors; off: beyond rounding."""
        for held in (self._nodes[op], *((self._beyond[op],) if off else ())):
            held[iteration, node] = max(held.get((iteration, node), 0.0), local)

    @property
    def _counts(self) -> dict[str, int]:
        return {op: len(held) for op, held in self._nodes.items()}

    @property
    def _off(self) -> dict[str, list[float]]:
        return {op: list(held.values()) for op, held in self._beyond.items()}

    @property
    def whole(self) -> bool:
        """Whether more than half of all tensors are off."""
        return sum(self._counts.values()) >= _FEW and 2 * sum(map(len, self._off.values())) > sum(self._counts.values())

    @property
    def level(self) -> float:
        """The median of the errors beyond rounding; 0 if the suspect as a whole computes as precisely as its types."""
        return median([e for errors in self._off.values() for e in errors]) if self.whole else 0.0

    def noise(self, op: str) -> float:
        """The own error up to which a tensor of this operator does not stand out."""
        errors, count = self._off.get(op, []), self._counts.get(op, 0)
        usual = median(errors) if count >= _FEW and 2 * len(errors) > count else 0.0
        return STAND_OUT * max(usual, self.level)

    def standing_out(self, found: Sequence[Found]) -> list[Found]:
        """Of suspects, worst first: those that stand out, then those that make errors grow, then one an operator.

        The last are left out where the whole suspect is imprecise: none of them explains anything by itself.
        """
        out, grown, usual = [], [], defaultdict[str, list[Found]](list)
        for suspect, outputs in found:
            local, noise = suspect.local, self.noise(suspect.place.op)
            if local is None or local.onset or not local.rel <= noise:
                out.append((suspect, outputs))
            elif _grows(suspect, noise / STAND_OUT):
                grown.append((replace(suspect, word="ill-conditioned"), outputs))
            else:
                usual[suspect.place.op].append((suspect, outputs))
        grown.sort(key=lambda entry: -(entry[0].amplification or 0.0))
        return [*out, *grown, *([] if self.whole else map(_first, usual.values()))]

    def told(self, op: str) -> str:
        """What a suspect of an operator should know of its like; "" if it is alone."""
        errors, count = self._off.get(op, []), self._counts.get(op, 0)
        if count < _FEW or not 2 * len(errors) > count:
            return ""
        return f"so are {len(errors)} of {count} nodes of {op}, {median(errors):.2g} in the middle"


def _grows(suspect: Suspect, level: float) -> bool:
    """Whether a node makes the errors of its inputs much larger, not its own. level: the usual error of its like; what
    is far below that in its inputs explains nothing.
    """
    bad = suspect.accumulated is not None and suspect.accumulated.beyond
    large = suspect.amplification is not None and suspect.amplification >= LEAP
    return bad and large and STAND_OUT * suspect.inputs >= level


def _first(found: Sequence[Found]) -> Found:
    """Of nodes of an operator, worst first, the first in the graph of those that are about as bad as the worst."""
    worst = found[0][0].local
    assert worst is not None
    near = [each for each in found if each[0].local is not None and each[0].local.rel >= worst.rel / _ABOUT]
    return min(near, key=lambda each: each[0].place.i)

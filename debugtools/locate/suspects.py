"""Which nodes are suspected, worst first."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.locate.diagnosis import Word
from layerwise._tool.debugtools.locate.errors import Error
from layerwise._tool.debugtools.locate.rows import Inside, NodeRow, SuspectRow
from layerwise._tool.surgery.precision.plan import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


@dataclass(slots=True)
class Suspect:
    """A tensor that speaks against the node that makes it.

    local: None if the node failed on the reference's inputs, with `failure`. region: positions of the nodes that make
    the tensor from tensors that both sides have. inputs: the largest relative error of what they read. inside: what
    is at fault in the body of a control-flow node.
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

    @property
    def rank(self) -> tuple[int, float, int, int]:
        """Less is worse: where Inf and NaN begin and what cannot run, then the local error, then what only grew.

        Where these are alike, the smaller region says more.
        """
        local, size, i = self.local, len(self.region), self.place.i
        if self.failure or (local is not None and local.onset):
            return 0, 0.0, size, i
        if local is not None and local.rel > 0:
            return 1, -local.units, size, i
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
        accumulated=accumulated.rel if accumulated else None, amplification=suspect.amplification,
        diagnosis=suspect.word, evidence="; ".join(evidence), inside=suspect.inside or UNSET,
        region=[NodeRow(i, node_label(cut.nodes[i]), cut.nodes[i].op_type) for i in suspect.region],
    )  # fmt: skip

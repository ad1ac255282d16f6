"""What is searched: the suspect's graph, the reference's tensors, and candidates made of them.

The reference's tensors are computed once, kept within a budget, given in the types that the suspect takes.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx.numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import dtype_name, is_floating, to_onnx
from layerwise._tool.debugtools.compare.aligning.when import align_sides
from layerwise._tool.debugtools.compare.observing.store import LazyArrays
from layerwise._tool.debugtools.compare.sides.feeds import digest
from layerwise._tool.debugtools.compare.sides.marks import marked_tensors
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.search.judges.original import ends
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.judges.reference_tensors import ReferenceTensors
from layerwise._tool.debugtools.search.rows import Node
from layerwise._tool.surgery.cut.file import Opener, write_cut
from layerwise._tool.surgery.cut.live import LiveCut, LiveCuts
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.surgery.cut.segments import GraphCut


_FROZEN_SIZE = 4096  # elements


class Subject:
    """One iteration of a search's two sides.

    targets: the tensors whose failure is searched. constants: those that Constant nodes make as the reference has them.
    items: positions of the nodes that can be asked about: those that
    the targets need and whose tensors the reference has.
    """

    def __init__(self, context: "JobContext", setup: Setup, iteration: int, feed: Mapping[str, Array]) -> None:
        self.setup = setup
        align_sides(context, setup, feed)
        self.suspect, reference = ends(setup)
        self.cut: GraphCut = self.suspect.model.cut
        folder = context.artifacts / "reference"
        budget = setup.spec.memory_budget

        def report(done: int, total: int, name: str) -> None:
            context.progress(done, total, "reference tensors", name)

        warn = context.warn if reference is self.suspect else None
        self.tensors = ReferenceTensors(self.suspect, reference, iteration, feed, folder, budget, report, warn)
        self.constants = self._constants()
        self.cuts = LiveCuts(self.cut, self.tensors, self.constants)
        self.targets = _targets(setup, self.suspect, self.cut)
        self.items = self.cuts.judgeable(self.cut.needed(self.targets))
        if not self.items:
            raise UsageError("the two sides have no tensor in common: names must match, or be mapped with --rename")
        self._base = digest(feed, self.suspect.model.file.structure_key().encode())

    def artifact(self, nodes: Iterable[int]) -> Artifact:
        """The live cut of `nodes` as an artifact."""
        part = self.cuts.cut(nodes)
        return Artifact(
            nodes=part.nodes, glue=part.glue, key=self._key(part), gives=part.gives,
            feeds=LazyArrays(part.feeds, self.tensors.__getitem__), build=lambda: self.build(part),
            write=lambda path, opener: self.write(part, path, opener), frozen=self._frozen(part),
        )  # fmt: skip

    def build(self, part: LiveCut) -> bytes:
        """A candidate's bytes for a session, its weights in the suspect's file."""
        return self.cut.build(part, {name: to_onnx(dtype_name(self.tensors[name])) for name in part.feeds})

    def write(self, part: LiveCut, path: Path, opener: Opener) -> None:
        """A candidate as a file that stands alone; small integers that nodes made are weights in it."""
        folder = self.suspect.model.file.folder
        write_cut(path, self.cut, part, self.tensors, folder, frozen=self._frozen(part), opener=opener)

    def _frozen(self, part: LiveCut) -> frozenset[str]:
        return frozenset(name for name in part.feeds if name in self.cut.maker and _is_index(self.tensors[name]))

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a weight, or of a tensor as the reference has it; None if it has none."""
        weight = self.cut.initializers.get(name)
        if weight is not None:
            return tuple(weight.dims)
        return self.tensors.raw(name).shape if name in self.tensors else None

    def describe(self, i: int) -> Node:
        """A node as rows and results name it; a Cast that stands for an operator (a precision round trip) as that."""
        node = self.cut.nodes[i]
        meant = self._meant(node) if node.op_type == "Cast" else node
        return Node(i, node_label(meant), meant.op_type, [name for name in node.output if name])

    def _meant(self, cast: onnx.NodeProto) -> onnx.NodeProto:
        """The operator that makes the same tensor in the reference's model, the Cast itself if there is none."""
        side = self.setup.sides[-1]
        if not isinstance(side, ModelSide) or side.model is self.suspect.model:
            return cast
        name = side.own(self.suspect.common(cast.output[0]))
        made = side.model.cut.maker.get(name)
        return cast if made is None else side.model.cut.nodes[made]

    def golden(self, artifact: Artifact) -> dict[str, Array]:
        """What the reference gives for a candidate's outputs, in its own types."""
        return {name: self.tensors.raw(name) for name in artifact.gives}

    def close(self) -> None:
        """Give the reference's tensors back."""
        self.tensors.close()

    def _constants(self) -> frozenset[str]:
        """Outputs of Constant nodes that are the reference's too."""
        found = set()
        for node in self.cut.nodes:
            if node.op_type == "Constant" and self._is_same_constant(node):
                found.add(node.output[0])
        return frozenset(found)

    def _is_same_constant(self, node: onnx.NodeProto) -> bool:
        name = node.output[0]
        if name not in self.tensors:
            return False
        if not self.differ:
            return True
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        if value is None or value.data_location == value.EXTERNAL:
            return False
        mine, other = onnx.numpy_helper.to_array(value), self.tensors[name]
        return mine.dtype == other.dtype and mine.tobytes() == other.tobytes()

    @cached_property
    def differ(self) -> bool:
        """Whether the reference runs another model, or is read from a file."""
        other = self.setup.sides[-1]
        return not isinstance(other, ModelSide) or other.model is not self.suspect.model

    def _key(self, part: LiveCut) -> str:
        digest = blake2b(self._base, digest_size=16)
        digest.update(np.asarray(part.nodes, np.int64).tobytes())
        return digest.hexdigest()


def _targets(setup: Setup, suspect: ModelSide, cut: "GraphCut") -> list[str]:
    marks = setup.spec.marks
    if marks.names or marks.op_types:
        assert setup.model is not None
        return [suspect.own(name) for name in marked_tensors(marks, setup.model.cut)]
    return [name for name in cut.outputs if name in cut.maker]


def _is_index(array: Array) -> bool:
    return array.size <= _FROZEN_SIZE and not is_floating(dtype_name(array)) and array.dtype.kind in "iub"

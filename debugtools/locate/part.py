"""A graph that a runner goes through: a side's model, or the body of one of its nodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool
from layerwise._tool.debugtools.compare.table.places import Place

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment

Array = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """folder: where the graph's external weights resolve. name: the runner's. values: as `Graph` has them."""

    cut: "GraphCut"
    folder: Path
    spec: RunnerSpec
    name: str
    values: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None = None

    @classmethod
    def observed(cls, side: ModelSide) -> "Part":
        """The graph that a side is observed in."""
        return cls(side.observed.cut, side.observed.folder, side.spec, side.name, side.observed.values)

    @classmethod
    def model(cls, side: ModelSide) -> "Part":
        """The main graph of a side's model."""
        return cls(side.model.cut, side.model.file.folder, side.spec, side.name)

    def stream(
        self, plan: "Sequence[Segment]", feed: Mapping[str, Array], pool: SessionPool
    ) -> Iterator[Mapping[str, Array]]:
        """Run the segments one after the other, giving what each makes."""
        if self.values is not None:
            seen = self.values(feed)
            return ({name: seen[name] for name in segment.gives if name in seen} for segment in plan)
        return iter(GraphStream(self.cut, plan, self.spec, self.name, self.folder, feed, pool))

    def weight(self, name: str) -> Array:
        """The value of an initializer. BadFile if it is damaged."""
        from layerwise._tool.backends.reference.evaluate import tensor_array  # it imports all reference operators

        return tensor_array(self.cut.initializers[name], self.folder)

    def weights(self, node: onnx.NodeProto) -> dict[str, Array]:
        """The initializers that a node takes as inputs."""
        return {name: self.weight(name) for name in node.input if name in self.cut.initializers}

    def place(self, name: str) -> Place:
        """Where a tensor of the graph is made."""
        i = self.cut.maker[name]
        return Place(i, self.cut.nodes[i].name, self.cut.nodes[i].op_type, depth=self.cut.depth[i])


def held(made: Mapping[str, Array]) -> int:
    """Bytes of the tensors of a segment."""
    return sum(array.nbytes for array in made.values())

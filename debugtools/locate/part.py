"""A graph that a runner goes through: a side's model, or the body of one of its nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from backends.specs import RunnerSpec
from debugtools.compare.sides import ModelSide
from debugtools.compare.stream import GraphStream, SessionPool

if TYPE_CHECKING:
    from surgery.cut import GraphCut, Segment

Array = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """folder: where the graph's external weights resolve. name: the runner's."""

    cut: "GraphCut"
    folder: Path
    spec: RunnerSpec
    name: str

    @classmethod
    def of(cls, side: ModelSide) -> "Part":
        """The graph that a side is observed in."""
        return cls(side.observed.cut, side.observed.folder, side.spec, side.name)

    def stream(
        self, plan: "Sequence[Segment]", feed: Mapping[str, Array], pool: SessionPool
    ) -> Iterator[Mapping[str, Array]]:
        """Run the segments one after the other, giving what each makes."""
        return iter(GraphStream(self.cut, plan, self.spec, self.name, self.folder, feed, pool))


def held(made: Mapping[str, Array]) -> int:
    """Bytes of the tensors of a segment."""
    return sum(array.nbytes for array in made.values())

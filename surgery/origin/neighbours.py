"""Modules of nodes whose exporter noted none (constants, what an optimiser put in), from the nodes around them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from layerwise._tool.surgery.origin.origin import Origin

COPIES = frozenset({"Cast", "CastLike", "Identity", "QuantizeLinear", "DequantizeLinear"})
"""Operators that give the tensor that they read another type, or only another name."""


FEW = 16


class Ends(NamedTuple):
    """A node's operator and the tensors that it reads and makes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]


class Wiring(Protocol):
    """Which nodes are connected, by number in topological order."""

    def copied(self, node: int) -> int:
        """The node whose tensor a copy (Cast, QuantizeLinear, …) copies, -1 for anything else."""
        ...

    def sources(self, node: int) -> Iterable[int]:
        """The nodes that make what it reads."""
        ...

    def readers(self, node: int) -> Iterable[int]:
        """The nodes that read what it makes."""
        ...


def fill(origins: list[Origin | None], wiring: Wiring) -> None:
    """Put in what is unambiguous.

    A copy (Cast, QuantizeLinear, …) belongs to what made its tensor. Connected nodes of which nothing is known belong
    to the innermost module that holds all that feed and read them; where there are only the former or the latter (at
    an end of the graph), they must be few. What reads no node's tensor (a constant) belongs to what reads it. Where
    nodes share only the outermost module, nothing is put in unless all of them lie directly in it.
    """

    def known(nodes: Iterable[int]) -> list[Origin]:
        return [origin for node in nodes if (origin := origins[node]) is not None]

    wanted = [i for i, origin in enumerate(origins) if origin is None]
    for i in wanted:
        copied = wiring.copied(i)
        made = origins[copied] if copied >= 0 else None
        origins[i] = made and Origin(made.modules, made.classes, told="neighbours")
    left = [i for i in wanted if origins[i] is None]
    inner = {i for i in left if any(True for _ in wiring.sources(i))}
    for region in _regions(inner, wiring):
        before = known(source for i in region for source in wiring.sources(i))
        behind = known(reader for i in region for reader in wiring.readers(i))
        if len(region) <= FEW or (before and behind):
            found = common([*before, *behind])
            for i in region:
                origins[i] = found
    for i in left:
        if i not in inner:
            origins[i] = common(known(wiring.readers(i)))


def _regions(nodes: set[int], wiring: Wiring) -> Iterator[list[int]]:
    """The parts of `nodes` that are connected among themselves."""
    seen: set[int] = set()
    for first in sorted(nodes):
        if first in seen:
            continue
        seen.add(first)
        region = [first]
        for node in region:  # grows while it is gone through
            for other in (*wiring.sources(node), *wiring.readers(node)):
                if other in nodes and other not in seen:
                    seen.add(other)
                    region.append(other)
        yield region


class NodeWiring:
    """The wiring of nodes given with their tensors; `wanted`: those whose readers are asked for."""

    def __init__(self, ends: Sequence[Ends], wanted: Iterable[int]) -> None:
        self._ends = ends
        self._makers = {name: i for i, node in enumerate(ends) for name in node.outputs if name}
        self._readers: dict[str, list[int]] = {name: [] for i in wanted for name in ends[i].outputs}
        for i, node in enumerate(ends):
            for name in node.inputs:
                if name in self._readers:
                    self._readers[name].append(i)

    def copied(self, node: int) -> int:
        found = self._ends[node]
        return self._makers.get(found.inputs[0], -1) if found.op in COPIES and found.inputs else -1

    def sources(self, node: int) -> Iterable[int]:
        return dict.fromkeys(self._makers[name] for name in self._ends[node].inputs if name in self._makers)

    def readers(self, node: int) -> Iterable[int]:
        return dict.fromkeys(reader for name in self._ends[node].outputs for reader in self._readers[name])


def common(origins: Sequence[Origin]) -> Origin | None:
    """The innermost module that holds all of `origins`; None without any, or where they only share the outermost."""
    if not origins:
        return None
    shortest = min(origins, key=lambda origin: len(origin.modules))
    same = 0
    for level, name in enumerate(shortest.modules):
        if any(origin.modules[level] != name for origin in origins):
            break
        same = level + 1
    if not same and any(origin.modules for origin in origins):
        return None
    classes = shortest.classes[: same + 1]
    return Origin(shortest.modules[:same], classes, told="neighbours")

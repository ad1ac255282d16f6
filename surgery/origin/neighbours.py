"""Modules of nodes whose exporter noted none (constants, what an optimiser put in), from the nodes around them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from layerwise._tool.surgery.origin.origin import Origin

COPIES = frozenset({"Cast", "CastLike", "Identity", "QuantizeLinear", "DequantizeLinear"})
"""Operators that give the tensor that they read another type, or only another name."""


class Ends(NamedTuple):
    """A node's operator and the tensors that it reads and makes."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]


def fill(origins: list[Origin | None], ends: Sequence[Ends]) -> None:
    """Put in what is unambiguous, in three steps; `ends`: of all nodes, in topological order.

    A copy (Cast, QuantizeLinear, …) belongs to what made its tensor. What is computed from weights and constants alone
    belongs to the innermost module that holds all its readers; any other node to the one that holds all nodes around
    it. Where that is only the outermost module, nothing is put in unless they all lie directly in it.
    """
    wanted = [i for i, origin in enumerate(origins) if origin is None]
    makers = {name: i for i, node in enumerate(ends) for name in node.outputs if name}
    around = _Around(origins, ends, makers, wanted)
    for i in wanted:
        if ends[i].op in COPIES and ends[i].inputs:
            maker = makers.get(ends[i].inputs[0])
            made = origins[maker] if maker is not None else None
            origins[i] = made and Origin(made.modules, made.classes, told="neighbours")
    for i in reversed(wanted):
        if origins[i] is None and not around.sources(i):
            origins[i] = common(around.readers(i))
    for i in wanted:
        if origins[i] is None:
            origins[i] = common([*around.sources(i), *around.readers(i)])


class _Around:
    """The known origins around nodes."""

    def __init__(
        self, origins: list[Origin | None], ends: Sequence[Ends], makers: dict[str, int], wanted: Sequence[int]
    ) -> None:
        self._origins, self._ends, self._makers = origins, ends, makers
        self._readers: dict[str, list[int]] = {name: [] for i in wanted for name in ends[i].outputs}
        for i, node in enumerate(ends):
            for name in node.inputs:
                if name in self._readers:
                    self._readers[name].append(i)

    def sources(self, i: int) -> list[Origin]:
        makers = dict.fromkeys(self._makers[name] for name in self._ends[i].inputs if name in self._makers)
        return self._known(makers)

    def readers(self, i: int) -> list[Origin]:
        return self._known(dict.fromkeys(reader for name in self._ends[i].outputs for reader in self._readers[name]))

    def _known(self, nodes: Iterable[int]) -> list[Origin]:
        return [origin for node in nodes if (origin := self._origins[node]) is not None]


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

"""The parts of a model in the result of a capability query."""

from msgspec import Struct


class PartRow(Struct, frozen=True, kw_only=True):
    """A part that was written. first, last: positions of its nodes; nodes: how many they are. operators: how many of
    each. op: the operator of the first node; reason: why it is not supported, "" where it is.
    """

    file: str
    first: int
    last: int
    nodes: int
    supported: bool
    operators: dict[str, int]
    op: str
    reason: str

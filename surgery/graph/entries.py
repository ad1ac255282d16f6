"""Parts of a graph while its index is built."""

from dataclasses import dataclass, field

from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.tensors import Dim
from layerwise._tool.surgery.graph.kinds import Kind


@dataclass(slots=True)
class TensorEntry:
    """A tensor. producer: its node, None if there is none. place: an initializer's message."""

    name: str
    scope: int
    kind: Kind
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None
    producer: "NodeEntry | None" = None
    is_output: bool = False
    place: TensorRecord | None = None


@dataclass(slots=True, eq=False)
class NodeEntry:
    """A node. inputs, outputs, captures: tensor numbers, -1 for an omitted optional one. position: in its
    graph's file order. captures: read by its bodies from outside. number: in the index.
    """

    node: Node
    scope: int
    position: int
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    captures: dict[int, None] = field(default_factory=dict)
    bodies: list["ScopeEntry"] = field(default_factory=list)
    number: int = -1


@dataclass(slots=True)
class ScopeEntry:
    """A graph: the main one (0), a body of If, Loop or Scan (with its owner and attribute), or a function."""

    number: int
    kind: str
    name: str
    parent: "ScopeEntry | None" = None
    owner: NodeEntry | None = None
    attribute: str = ""
    names: dict[str, int] = field(default_factory=dict)
    nodes: list[NodeEntry] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

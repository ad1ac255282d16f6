"""The index of a model's graph: read-only, memory-mapped, opened in about a millisecond. Imports only NumPy."""

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.columns import Strings, read_columns
from layerwise._tool.surgery.graph.kinds import INDEX_FILE, Kind

if TYPE_CHECKING:
    from typing_extensions import Self

    from layerwise._tool.surgery.graph.modules import Modules
    from layerwise._tool.surgery.graph.repeats import Repeat

Dim = int | str | None
Numbers = NDArray[np.int32]


class GraphIndex:
    """Nodes and tensors of a model by number.

    Nodes are numbered in topological order; the nodes of a body (If, Loop, Scan) follow the node that owns
    them, those of functions follow the main graph's. Scopes: 0 is the main graph, others are bodies and
    functions (meta["scopes"]). Omitted optional tensors have the number -1.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._c, self.meta = read_columns(folder / INDEX_FILE)
        self._names, self._texts = Strings(self._c, "name"), Strings(self._c, "text")
        self._modules: Modules | None = None
        self.n_nodes: int = self._c["node_name"].size
        self.n_tensors: int = self._c["tensor_name"].size

    @classmethod
    def open(cls, folder: Path) -> "Self":
        """Map the index in `folder`. BadFile if there is none, or it is damaged or from another version."""
        index = cls(folder)
        with suppress(OSError):  # a read-only cache is not pruned
            os.utime(folder / INDEX_FILE)
        return index

    # Nodes

    def node_name(self, node: int) -> str:
        """Name as in the model; may be empty, and is not always unique."""
        return self._names[self._c["node_name"][node]]

    def node_op(self, node: int) -> str:
        """Operator type."""
        return self._names[self._c["node_op"][node]]

    def node_domain(self, node: int) -> str:
        """Operator domain; "" is ai.onnx."""
        return self._names[self._c["node_domain"][node]]

    def node_scope(self, node: int) -> int:
        """Scope of the node."""
        return int(self._c["node_scope"][node])

    def node_position(self, node: int) -> int:
        """Position in its graph's node list, in file order: main graph node k is `model.graph.node[k]`."""
        return int(self._c["node_position"][node])

    def node_inputs(self, node: int) -> list[int]:
        """Tensors that its own inputs read, -1 for omitted ones."""
        return self._row("inputs", node)

    def node_outputs(self, node: int) -> list[int]:
        """Tensors that it makes, -1 for omitted ones."""
        return self._row("outputs", node)

    def node_captures(self, node: int) -> list[int]:
        """Tensors that its bodies read from outside."""
        return self._row("captures", node)

    def attributes(self, node: int) -> list[tuple[str, str]]:
        """Names and values as escaped text of bounded length."""
        start, end = self._c["attributes_at"][node : node + 2]
        pairs = zip(self._c["attributes"][start:end], self._c["attributes_text"][start:end], strict=True)
        return [(self._texts[name], self._texts[text]) for name, text in pairs]

    @cached_property
    def order(self) -> Numbers:
        """All nodes in display order."""
        return np.arange(self.n_nodes, dtype=np.int32)

    def repeats(self) -> "list[Repeat]":
        """Consecutive blocks of equal nodes in `order`. See surgery.graph.repeats."""
        from layerwise._tool.surgery.graph.repeats import find_repeats

        tokens, live = self.alike
        return find_repeats(tokens, self.node_name, live)

    @cached_property
    def alike(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A number for each node, equal for similar nodes; and the number of tensors that cross each position."""
        from layerwise._tool.surgery.graph.repeats import crossing, node_tokens

        return node_tokens(self._c), crossing(self._c)

    def modules(self) -> "Modules | None":
        """The modules that the nodes come from. See surgery.graph.modules.open_modules."""
        if self._modules is None:
            from layerwise._tool.surgery.graph.modules import open_modules

            self._modules = open_modules(self)
        return self._modules

    def main_nodes(self) -> Numbers:
        """The main graph's nodes, in topological order."""
        return self.scope_nodes(0)

    @property
    def node_scopes(self) -> Numbers:
        """The scope of every node."""
        return np.asarray(self._c["node_scope"])

    def scope_nodes(self, scope: int) -> Numbers:
        """The nodes of a scope, in topological order, without those of bodies inside it."""
        return np.flatnonzero(self._c["node_scope"] == scope).astype(np.int32)

    def bodies(self, node: int) -> list[int]:
        """The scopes that are bodies of a node."""
        return [number for number, scope in enumerate(self.meta["scopes"]) if scope["owner"] == node]

    # Tensors

    def tensor_name(self, tensor: int) -> str:
        """Name as in the model."""
        return self._names[self._c["tensor_name"][tensor]]

    def tensor_dtype(self, tensor: int) -> str:
        """Type name ("float32", "sequence(int64)"), "" if unknown."""
        return self._names[self._c["tensor_dtype"][tensor]]

    def tensor_shape(self, tensor: int) -> tuple[Dim, ...] | None:
        """Dimensions: numbers, symbols, None where one is unknown; None if the rank is unknown."""
        number = int(self._c["tensor_shape"][tensor])
        if number < 0:
            return None
        return tuple(self._dim(d) for d in self._row("shapes", number))

    def tensor_kind(self, tensor: int) -> str:
        """One of input, initializer, output, node, missing."""
        return Kind(int(self._c["tensor_kind"][tensor])).name.lower()

    def tensor_scope(self, tensor: int) -> int:
        """Scope that defines it."""
        return int(self._c["tensor_scope"][tensor])

    def is_output(self, tensor: int) -> bool:
        """True for outputs of its graph, including inputs and initializers that are outputs too."""
        return bool(self._c["tensor_is_output"][tensor])

    def producer(self, tensor: int) -> int:
        """The node that makes it (the first, if a broken model has several), -1 if none does."""
        return int(self._c["tensor_producer"][tensor])

    def consumers(self, tensor: int) -> Numbers:
        """The nodes that read it, ascending, including nodes whose body captures it."""
        start, end = self._c["consumers_at"][tensor : tensor + 2]
        return np.asarray(self._c["consumers"][start:end])

    def weight(self, tensor: int) -> tuple[str, int, int] | None:
        """File, offset and bytes of an initializer's values, None if they are not contiguous."""
        file = int(self._c["weight_file"][tensor])
        if file < 0:
            return None
        return (
            self.meta["files"][file],
            int(self._c["weight_at"][tensor]),
            int(self._c["weight_nbytes"][tensor]),
        )

    # Graph traversal

    def parents(self, node: int) -> list[int]:
        """Nodes that make what it reads, captures included; ascending."""
        return self._row("parents", node)

    def children(self, node: int) -> list[int]:
        """Nodes that read what it makes, captures included; ascending."""
        return self._row("children", node)

    def children_lists(self) -> tuple[list[int], list[int]]:
        """Two columns: where each node's children begin in the second, which holds those of all nodes."""
        return self._c["children_at"].tolist(), self._c["children"].tolist()

    # Finding

    def find_node(self, name: str) -> int:
        """The node of that name (the main graph's first), -1 if there is none."""
        return self._find("node", name)

    def find_tensor(self, name: str) -> int:
        """The tensor of that name (the main graph's first), -1 if there is none."""
        return self._find("tensor", name)

    def nodes_named(self, name: str) -> list[int]:
        """All nodes of that name, by scope."""
        return self._all("node", name)

    def tensors_named(self, name: str) -> list[int]:
        """All tensors of that name, by scope."""
        return self._all("tensor", name)

    def search(self, query: str) -> Numbers:
        """Nodes that match, ascending. See surgery.graph.search for the query syntax."""
        from layerwise._tool.surgery.graph.search import search

        return search(self._c, self._names, query, self.modules)

    def _row(self, name: str, number: int) -> list[int]:
        start, end = self._c[f"{name}_at"][number : number + 2]
        row: list[int] = self._c[name][start:end].tolist()
        return row

    def _dim(self, value: int) -> Dim:
        if value >= 0:
            return value
        return None if value == -1 else self._names[-2 - value]

    def _find(self, table: str, name: str) -> int:
        place = self._place(table, name)
        return int(self._c[f"{table}_sorted"][place]) if place >= 0 else -1

    def _all(self, table: str, name: str) -> list[int]:
        column, order = self._c[f"{table}_name"], self._c[f"{table}_sorted"]
        place = end = self._place(table, name)
        while 0 <= end < order.size and column[order[end]] == column[order[place]]:
            end += 1
        found: list[int] = order[place:end].tolist()
        return found

    def _place(self, table: str, name: str) -> int:
        """Return where the first of that name is in the sorted table, -1 if there is none."""
        column, order = self._c[f"{table}_name"], self._c[f"{table}_sorted"]
        wanted = name.encode(errors="surrogatepass")
        low, high = 0, order.size
        while low < high:
            middle = (low + high) // 2
            if self._names.raw(column[order[middle]]) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < order.size and self._names.raw(column[order[low]]) == wanted else -1

"""The modules of an index's nodes: columns beside the index, or made from the nodes' names. Imports only NumPy."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.surgery.graph.columns import Strings, read_columns
from layerwise._tool.surgery.graph.kinds import MODULES_FILE
from layerwise._tool.surgery.origin.names import named_origin
from layerwise._tool.surgery.origin.neighbours import COPIES, fill
from layerwise._tool.surgery.origin.origin import Origin, Path, SourceLine, Told, dotted

TOLD: tuple[Told, ...] = ("metadata", "name", "neighbours")
Codes = NDArray[np.int32]


class Indexed(Protocol):
    """What is read of an index."""

    folder: FilePath
    meta: dict[str, Any]
    n_nodes: int

    def node_name(self, node: int) -> str: ...

    def node_outputs(self, node: int) -> list[int]: ...

    def tensor_name(self, tensor: int) -> str: ...

    def node_op(self, node: int) -> str: ...

    def node_inputs(self, node: int) -> list[int]: ...

    def producer(self, tensor: int) -> int: ...

    def parents(self, node: int) -> list[int]: ...

    def children(self, node: int) -> list[int]: ...


class Modules:
    """paths: all modules that hold nodes. codes: for each node the place of its module in `paths`, -1 if unknown."""

    def __init__(self, paths: Sequence[Path], codes: Codes) -> None:
        self.paths, self.codes = paths, codes

    def path(self, node: int) -> Path | None:
        """The module of a node, None if it is unknown."""
        code = int(self.codes[node]) if 0 <= node < self.codes.size else -1
        return self.paths[code] if code >= 0 else None

    def text(self, node: int) -> str:
        """The same as PyTorch writes it, "" if unknown."""
        path = self.path(node)
        return "" if path is None else dotted(path)

    def origin(self, node: int) -> Origin | None:
        """All that is known of where a node comes from."""
        path = self.path(node)
        return None if path is None else Origin(path, told="name")

    def nodes_in(self, text: str) -> NDArray[np.bool_]:
        """A mask over nodes: those whose module's path, with a point behind it, contains `text`; case is ignored."""
        wanted = np.array([text in low for low in self._low] + [False], np.bool_)
        return np.asarray(wanted[self.codes])

    @cached_property
    def _low(self) -> list[str]:
        return [f"{dotted(path)}.".lower() for path in self.paths]


class NotedModules(Modules):
    """Those that an exporter noted, with classes, names and Python lines."""

    def __init__(self, file: FilePath, n_nodes: int) -> None:
        self._c, meta = read_columns(file)
        try:
            super().__init__([tuple(map(str, path)) for path in meta["paths"]], self._c["node_module"])
            self._classes = [tuple(map(str, names)) for names in meta["classes"]]
            self._lines = [SourceLine(str(file), int(line), str(name)) for file, line, name in meta["lines"]]
            self._sources = Strings(self._c, "source")
        except (KeyError, TypeError, ValueError) as error:
            raise BadFile(file, f"damaged: {error}") from error
        if self.codes.size != n_nodes:
            raise BadFile(file, "of another graph")

    def origin(self, node: int) -> Origin | None:
        path = self.path(node)
        if path is None:
            return None
        line = int(self._c["node_line"][node])
        return Origin(
            path, self._classes[int(self.codes[node])], self._sources[int(self._c["node_source"][node])],
            self._lines[line] if line >= 0 else None, TOLD[int(self._c["node_told"][node])],
        )  # fmt: skip


def open_modules(index: Indexed) -> Modules | None:
    """The modules of an index's nodes. None while nobody has read what the model's exporter noted, or the file is bad.

    Of a model whose exporter noted nothing they are made from the names and from the nodes around.
    """
    if not index.meta.get("noted"):
        return _from_names(index)
    try:
        return NotedModules(index.folder / MODULES_FILE, index.n_nodes)
    except BadFile:
        return None


def _from_names(index: Indexed) -> Modules:
    origins: list[Origin | None] = []
    for node in range(index.n_nodes):
        name, outputs = index.node_name(node), index.node_outputs(node)
        made = [index.tensor_name(outputs[0])] if not name and outputs and outputs[0] >= 0 else []
        origins.append(named_origin(name, made))
    if any(origin is not None for origin in origins):
        fill(origins, _IndexWiring(index))
    places: dict[Path, int] = {}
    found = [-1 if origin is None else places.setdefault(origin.modules, len(places)) for origin in origins]
    return Modules(list(places), np.array(found, np.int32))


class _IndexWiring:
    """Which nodes of an index are connected."""

    def __init__(self, index: Indexed) -> None:
        self._index = index
        self.sources, self.readers = index.parents, index.children

    def copied(self, node: int) -> int:
        inputs = self._index.node_inputs(node) if self._index.node_op(node) in COPIES else []
        return self._index.producer(inputs[0]) if inputs and inputs[0] >= 0 else -1

"""Reads where the nodes of an indexed model come from, into columns beside its index. Runs in a worker."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import read_attribute
from layerwise._tool.backends.model.records import Span, read_function, read_graph, read_model, read_node
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.surgery.graph.columns import Columns, StringTable, write_columns
from layerwise._tool.surgery.graph.index import GraphIndex
from layerwise._tool.surgery.graph.kinds import MODULES_FILE
from layerwise._tool.surgery.graph.modules import TOLD
from layerwise._tool.surgery.origin.graph import record_origins
from layerwise._tool.surgery.origin.metadata import MetadataReader
from layerwise._tool.surgery.origin.origin import Origin, SourceLine

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_GRAPH_KINDS = (5, 10)


def answer_modules(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Request to a warm worker. params: path (the model), folder (of its index). Answer: nodes with a module."""
    index = GraphIndex.open(Path(params["folder"]))
    with ModelFile(params["path"]) as model:
        if model.structure_key() != index.meta["hash"]:
            raise BadFile(model.path, "it has changed since it was opened")
        try:
            origins = index_origins(index, model.structure_bytes())
        except WireError as error:
            raise BadFile(model.path, f"damaged ONNX model: {error}") from error
    write_modules(index, origins)
    return {"nodes": sum(origin is not None for origin in origins)}


def index_origins(index: GraphIndex, structure: bytes) -> list[Origin | None]:
    """The origin of each node of the index, those of bodies and functions too. WireError for damaged bytes."""
    found: list[Origin | None] = [None] * index.n_nodes
    scopes, reader = _Scopes(index, structure), MetadataReader()
    for number in range(len(index.meta["scopes"])):
        owner = index.meta["scopes"][number]["owner"]
        nodes = scopes.nodes(number)
        told = record_origins(structure, nodes, found[owner] if owner >= 0 else None, reader)
        for node in index.scope_nodes(number).tolist():
            found[node] = told[index.node_position(node)]
    return found


class _Scopes:
    """Where the nodes of an index's scopes lie in the bytes; to be asked for in the order of their numbers."""

    def __init__(self, index: GraphIndex, structure: bytes) -> None:
        self._index, self._data = index, structure
        self._model = read_model(structure)
        graphs = [read_function(structure, *span).graph for span in self._model.functions]
        self._functions = iter([graph.nodes for graph in graphs])
        self._read: dict[int, list[Span]] = {0: self._model.graph.nodes}
        self._seen: Counter[tuple[int, str]] = Counter()

    def nodes(self, number: int) -> list[Span]:
        """Spans of a scope's nodes in file order. WireError where the model is not the one of the index."""
        if number not in self._read:
            self._read[number] = self._inner(self._index.meta["scopes"][number])
        if len(self._read[number]) != self._index.meta["scopes"][number]["n_nodes"]:
            raise WireError("other nodes than in the index")
        return self._read[number]

    def _inner(self, scope: dict[str, Any]) -> list[Span]:
        if scope["kind"] == "function":
            return next(self._functions, [])
        owner, earlier = scope["owner"], self._seen[scope["owner"], scope["attribute"]]
        self._seen[scope["owner"], scope["attribute"]] += 1
        span = self.nodes(self._index.node_scope(owner))[self._index.node_position(owner)]
        for place in read_node(self._data, *span).attributes:
            attribute = read_attribute(self._data, *place, 1 << 16)
            if attribute.name == scope["attribute"] and attribute.kind in _GRAPH_KINDS:
                return read_graph(self._data, *attribute.values[earlier]).nodes if earlier < attribute.total else []
        return []


def write_modules(index: GraphIndex, origins: list[Origin | None]) -> None:
    """Write the columns beside the index."""
    paths: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    lines: dict[SourceLine, int] = {}
    sources, columns = StringTable(), np.full((4, index.n_nodes), -1, np.int32)
    for node, origin in enumerate(origins):
        source = sources.add(origin.source if origin else "")
        if origin is not None:
            path = paths.setdefault((origin.modules, origin.classes), len(paths))
            line = -1 if origin.line is None else lines.setdefault(origin.line, len(lines))
            columns[:, node] = path, line, source, TOLD.index(origin.told)
    names = ("node_module", "node_line", "node_source", "node_told")
    made: Columns = dict(zip(names, columns, strict=True))
    meta = {
        "paths": [path for path, _ in paths], "classes": [classes for _, classes in paths],
        "lines": [(line.file, line.line, line.function) for line in lines],
    }  # fmt: skip
    write_columns(index.folder / MODULES_FILE, made | sources.columns("source"), meta)

"""Builds the index of a model: reads the structure, infers shapes, writes columns. Runs in a job, never in the app."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.states import FileState, settled_state
from layerwise._tool.backends.garbage import not_collecting
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.backends.tensors import Dim
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph.attribute_text import attribute_text
from layerwise._tool.surgery.graph.cache import has_index, index_folder, place_for, remember
from layerwise._tool.surgery.graph.collect import Collector, NodeEntry, TensorEntry
from layerwise._tool.surgery.graph.columns import Columns, StringTable, write_columns
from layerwise._tool.surgery.graph.index import GraphIndex
from layerwise._tool.surgery.graph.kinds import INDEX_FILE
from layerwise._tool.surgery.origin.graph import has_metadata
from layerwise._tool.surgery.types.infer import inferred_structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Progress = Callable[[int, int], None]
_STEPS = 5
UNKNOWN_DIM = -1
FIRST_SYMBOL = -2


def build_index(
    model: ModelFile, folder: Path, progress: Progress | None = None, shape_inference: bool = True
) -> GraphIndex:
    """Index `model` into `folder` (created if necessary) and open the index.

    progress(done, total) counts steps. Shapes that cannot be inferred stay unknown, with a message in meta["warnings"].
    BadFile if the model's bytes do not fit the format.
    """
    report = progress or (lambda done, total: None)
    report(0, _STEPS)
    structure = model.structure_bytes()
    warnings: list[str] = []
    if shape_inference:
        structure, warnings = inferred_structure(structure)
    report(1, _STEPS)
    try:
        with not_collecting():  # a million small objects that live to the end: collecting costs as much as building
            collector = Collector(structure)
            report(2, _STEPS)
            columns, meta = _Writer(collector, model).columns()
    except WireError as error:
        raise BadFile(model.path, f"damaged ONNX model: {error}") from error
    meta["warnings"] = warnings
    report(4, _STEPS)
    make_folder(folder)
    write_columns(folder / INDEX_FILE, columns, meta)
    report(_STEPS, _STEPS)
    return GraphIndex.open(folder)


class _Writer:
    """Converts what was collected to columns."""

    def __init__(self, collected: Collector, model: ModelFile) -> None:
        self._collected = collected
        self._model = model
        self._names = StringTable()
        self._texts = StringTable()
        self._files: dict[str, int] = {}
        self._attribute_cache: dict[bytes, tuple[int, int]] = {}

    def columns(self) -> tuple[Columns, dict[str, Any]]:
        columns = self._nodes(self._collected.nodes) | self._tensors(self._collected.tensors) | self._edges()
        columns |= self._attributes(self._collected.nodes)
        columns |= self._names.columns("name") | self._texts.columns("text")
        return columns, self._meta()

    def _nodes(self, nodes: list[NodeEntry]) -> Columns:
        names = self._names
        return {
            "node_name": int32(names.add(n.node.name) for n in nodes),
            "node_op": int32(names.add(n.node.op) for n in nodes),
            "node_domain": int32(names.add(n.node.domain) for n in nodes),
            "node_scope": int32(n.scope for n in nodes),
            "node_position": int32(n.position for n in nodes),
            "node_sorted": sorted_by([n.node.name for n in nodes], [n.scope for n in nodes]),
            **lists("inputs", [n.inputs for n in nodes]),
            **lists("outputs", [n.outputs for n in nodes]),
            **lists("captures", [list(n.captures) for n in nodes]),
        }

    def _tensors(self, tensors: list[TensorEntry]) -> Columns:
        shapes: dict[tuple[Dim, ...], int] = {}
        weights = [self._weight(t) for t in tensors]
        columns: Columns = {
            "tensor_name": int32(self._names.add(t.name) for t in tensors),
            "tensor_dtype": int32(self._names.add(t.dtype) for t in tensors),
            "tensor_scope": int32(t.scope for t in tensors),
            "tensor_kind": np.array([t.kind for t in tensors], np.uint8),
            "tensor_is_output": np.array([t.is_output for t in tensors], np.uint8),
            "tensor_producer": int32(t.producer.number if t.producer else -1 for t in tensors),
            "tensor_shape": int32(-1 if t.shape is None else shapes.setdefault(t.shape, len(shapes)) for t in tensors),
            "tensor_sorted": sorted_by([t.name for t in tensors], [t.scope for t in tensors]),
            "weight_file": int32(w[0] for w in weights),
            "weight_at": np.array([w[1] for w in weights], np.int64),
            "weight_nbytes": np.array([w[2] for w in weights], np.int64),
        }
        dims = [[self._dim(d) for d in shape] for shape in shapes]
        return columns | lists("shapes", dims, np.dtype(np.int64))

    def _dim(self, dim: Dim) -> int:
        if isinstance(dim, str):
            return FIRST_SYMBOL - self._names.add(dim)
        return UNKNOWN_DIM if dim is None or dim < 0 else min(dim, (1 << 63) - 1)

    def _weight(self, tensor: TensorEntry) -> tuple[int, int, int]:
        """Return file number, offset and bytes, (-1, -1, 0) if the values are not contiguous in a file."""
        place = tensor.place
        if place is None:
            return -1, -1, 0
        if place.external is not None and not self._model.ignore_external_data:
            file = str(self._model.folder / place.external.location)
            return self._file(file), place.external.offset, place.external.nbytes or 0
        ref = self._model.weights().get(tensor.name) if tensor.scope == 0 else None
        if ref is None or ref.offset < 0:
            return -1, -1, 0
        return self._file(str(ref.file)), ref.offset, ref.nbytes

    def _file(self, name: str) -> int:
        return self._files.setdefault(name, len(self._files))

    def _edges(self) -> Columns:
        """Return the readers of each tensor, and each node's parents and children, every list in ascending order."""
        tensors = self._collected.tensors
        consumers: list[list[int]] = [[] for _ in tensors]
        parents: list[list[int]] = []
        children: list[list[int]] = [[] for _ in self._collected.nodes]
        for node in self._collected.nodes:
            read = dict.fromkeys(n for n in (*node.inputs, *node.captures) if n >= 0)
            above = set()
            for number in read:
                consumers[number].append(node.number)
                producer = tensors[number].producer
                if producer is not None:
                    above.add(producer.number)
            parents.append(sorted(above))
            for parent in above:
                children[parent].append(node.number)
        return lists("consumers", consumers) | lists("parents", parents) | lists("children", children)

    def _attributes(self, nodes: list[NodeEntry]) -> Columns:
        pairs = [[self._attribute(span) for span in node.node.attributes] for node in nodes]
        names = lists("attributes", [[p[0] for p in row] for row in pairs])
        return names | {"attributes_text": int32(p[1] for row in pairs for p in row)}

    def _attribute(self, span: tuple[int, int]) -> tuple[int, int]:
        data = self._collected.data
        key = data[span[0] : span[1]] if span[1] - span[0] < 256 else None
        if key is None or key not in self._attribute_cache:
            name, text = attribute_text(data, span)
            pair = self._texts.add(name), self._texts.add(text)
            if key is None:
                return pair
            self._attribute_cache[key] = pair
        return self._attribute_cache[key]

    def _meta(self) -> dict[str, Any]:
        collected, model = self._collected, self._collected.model
        main = collected.scopes[0]
        return {
            "path": str(self._model.path.absolute()),
            "size": self._model.size,
            "hash": self._model.structure_key(),
            "ir_version": model.ir_version,
            "opsets": model.opsets,
            "producer": shown(f"{model.producer} {model.producer_version}".strip(), 200),
            "graph_name": model.graph.name,
            "doc": shown(model.graph.doc or model.doc, 2000),
            "noted": has_metadata(collected.data),
            "inputs": main.inputs,
            "outputs": main.outputs,
            "functions": [s.name for s in collected.scopes if s.kind == "function"],
            "scopes": [
                {
                    "kind": s.kind,
                    "name": s.name,
                    "parent": s.parent.number if s.parent else -1,
                    "owner": s.owner.number if s.owner else -1,
                    "attribute": s.attribute,
                    "inputs": s.inputs,
                    "outputs": s.outputs,
                    "n_nodes": len(s.nodes),
                }
                for s in collected.scopes
            ],
            "n_nodes": len(collected.nodes),
            "n_tensors": len(collected.tensors),
            "n_initializers": len(model.graph.initializers) + len(model.graph.sparse),
            "weight_bytes": sum(w.nbytes for w in self._model.weights().values()),
            "files": list(self._files),
            "has_cycle": collected.has_cycle,
            "problems": collected.problems,
        }


def int32(values: Iterable[int]) -> NDArray[np.int32]:
    """Return numbers as a column of int32."""
    return np.fromiter(values, np.int32)


def lists(name: str, rows: Sequence[Sequence[int]], dtype: np.dtype[Any] | None = None) -> Columns:
    """Return rows of different lengths as two columns: `<name>_at` (start of each row, plus the end) and `<name>`."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    flat = np.fromiter((v for row in rows for v in row), dtype or np.dtype(np.int32), int(at[-1]))
    return {f"{name}_at": at, name: flat}


def sorted_by(names: list[str], scopes: list[int]) -> NDArray[np.int32]:
    """Return row numbers sorted by name (UTF-8), then scope, for binary search by name."""
    keys = [name.encode() for name in names]
    return int32(sorted(range(len(names)), key=lambda i: (keys[i], scopes[i])))


def action_index(context: "JobContext") -> dict[str, Any]:
    """Build the model's index if it does not exist.

    params: path (the model), cache (folder of all indexes; default: the workspace's), external_data_dir,
    ignore_external_data.
    Result: folder, n_nodes, n_tensors, hash, built (false if it existed).
    """
    params = context.params
    cache = Path(params["cache"]) if params.get("cache") else _workspace_cache()
    path, external = Path(params["path"]), params.get("external_data_dir")
    ignore = bool(params.get("ignore_external_data"))
    folder = index_folder(cache, path, external, ignore)
    index = _opened(folder)
    built = False
    if index is None:
        state = _settled(path)
        with ModelFile(path, external, ignore) as model:
            folder = place_for(cache, model)
            index = _opened(folder)
            built = index is None
            if index is None:
                index = build_index(
                    model,
                    folder,
                    lambda done, total: context.progress(done, total, "steps", "indexing"),
                )
            remember(cache, model, state, folder, external)
        for warning in [*index.meta["warnings"], *index.meta["problems"]]:
            context.warn(warning)
    meta = index.meta
    return {
        "folder": str(folder),
        "n_nodes": index.n_nodes,
        "n_tensors": index.n_tensors,
        "hash": meta["hash"],
        "built": built,
    }


def _opened(folder: Path) -> GraphIndex | None:
    """Return the index in `folder`, None if there is none or it is damaged or from another version."""
    if not has_index(folder):
        return None
    try:
        return GraphIndex.open(folder)
    except BadFile:
        return None


def _settled(path: Path) -> FileState | None:
    try:
        return settled_state(path)
    except (OSError, ValueError):
        return None  # whoever opens the file says why


def _workspace_cache() -> Path:
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    cache: Path = Workspace().cache
    return cache

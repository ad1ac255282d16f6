"""The job action that indexes a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.cache import has_index, index_folder, place_for, remember
from layerwise._tool.surgery.graph.index import GraphIndex

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def action_index(context: "JobContext") -> dict[str, Any]:
    """Build the model's index if it does not exist.

    params: path (the model), cache (folder of all indexes; default: the workspace's), external_data_dir,
    ignore_external_data, shape_inference (default true).
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
        with ModelFile(path, external, ignore) as model:
            folder = place_for(cache, model)
            index = _opened(folder)
            built = index is None
            if index is None:
                index = build_index(
                    model,
                    folder,
                    lambda done, total: context.progress(done, total, "steps", "indexing"),
                    bool(params.get("shape_inference", True)),
                )
            remember(cache, model, folder, external)
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


def _workspace_cache() -> Path:
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    cache: Path = Workspace().cache
    return cache

"""`layerwise inspect model --visual`: the graph as one web page, coloured by a comparison where there is one."""

from argparse import Namespace
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, user_path
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.surgery.visual.page import MARK, page
from layerwise._tool.tui.cli.inspect.visual_errors import comparison_of, errors_of
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.submit import job_spec, run_shown


def write_page(args: Namespace, log: Log) -> int:
    """Write the page of a model; the exit code."""
    target = user_path(args.save_visual or f"{Path(args.model_file).stem}.html")
    _check_target(target)
    workspace = Workspace()
    folder = _index_folder(args, workspace, log)
    if folder is None:
        return 1
    index = GraphIndex.open(folder)
    view = comparison_of(args.model_file, args.job, workspace)
    errors = errors_of(view, index) if view else None
    if errors and not errors.rows:
        if args.job:
            raise UsageError(f"job {args.job} has no layers of this model: give the number of a comparison of it")
        view = errors = None
    text = page(index, Path(args.model_file).name, errors)
    try:
        atomic_write(target, text)
    except OSError as error:
        raise BadFile(target, f"cannot be written: {error.strerror}") from error
    told = {"path": str(target), "bytes": len(text.encode()), "nodes": index.n_nodes, "job": view.id if view else None}
    if args.json:
        print_json(told)
    else:
        coloured = f", coloured by job {view.id}" if view else ""
        size = f"{told['bytes']:,} bytes, {index.n_nodes:,} nodes"
        log.finish(f"Graph written to {shown(str(target), 1000)} ({size}{coloured}): open it in a browser")
    return 0


def _check_target(target: Path) -> None:
    """Only a page of ours is written over. UsageError for anything else that is there."""
    try:
        ours = not target.exists() or (target.is_file() and _begins(target, MARK.encode()))
    except OSError as error:
        raise UsageError(f"{shown(str(target), 1000)}: {error.strerror}") from error
    if not ours:
        raise UsageError(f"{shown(str(target), 1000)} is there and is no page of a graph: choose another name with -o")


def _begins(path: Path, text: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(text)) == text


def _index_folder(args: Namespace, workspace: Workspace, log: Log) -> Path | None:
    """Where the model's index is; a job makes it where there is none, for shapes are inferred by native code.

    None if that failed, which has been told then.
    """
    folder = index_folder(workspace.cache, Path(args.model_file), args.external_data_dir, args.ignore_external_data)
    try:
        if has_index(folder):
            GraphIndex.open(folder)
            return folder
    except BadFile:
        pass  # damaged, or of another version: the job makes a new one
    params = {
        "path": args.model_file, "cache": str(workspace.cache), "external_data_dir": args.external_data_dir,
        "ignore_external_data": args.ignore_external_data,
    }  # fmt: skip
    command = ["layerwise", "inspect", "model", args.model_file, "--visual"]
    spec = msgspec.structs.replace(job_spec("index", params, command, title=("index", args.model_file)), cpus=0)
    collector = Collector()
    code = run_shown(spec, collector.event, log)
    return Path(collector.result["folder"]) if collector.result and code == 0 else None

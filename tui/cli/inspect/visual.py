"""`layerwise inspect model --visual`: the graph as one web page, coloured by a comparison where there is one."""

import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.jobs.identity import Identity, differences, models_now, models_then, touched
from layerwise._tool.backends.jobs.journal.earlier_attempts import Earlier, typed
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.surgery.visual.node_results import NodeErrors, NodeResult
from layerwise._tool.surgery.visual.page import MARK, page
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.progress import run_shown
from layerwise._tool.tui.cli.submit import job_spec
from layerwise._tool.tui.controllers.errors_page import NodeErrors as WorstOfNodes
from layerwise._tool.tui.presenters.compare_text import rule_text, side_names
from layerwise._tool.tui.state.error_table import ErrorTable
from layerwise._tool.tui.state.jobs import COMPARING, comparison_params, is_about
from layerwise._tool.tui.state.session import Session


def write_page(args: Namespace, log: Log) -> int:
    """Write the page of a model; the exit code."""
    target = user_path(args.save_visual or f"{Path(args.model_file).stem}.html")
    _check_target(target)
    workspace = Workspace()
    folder, code = _index_folder(args, workspace, log)
    if folder is None:
        return code
    index = GraphIndex.open(folder)
    view = comparison_of(args.model_file, args.job, workspace)
    errors = errors_of(view, index) if view else None
    if errors and not errors.rows:
        if args.job:
            raise UsageError(f"job {args.job} has no layers of this model: give the number of a comparison of it")
        view = errors = None
    text = page(index, Path(args.model_file).name, errors)
    try:
        write_named(target, text)
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


def _index_folder(args: Namespace, workspace: Workspace, log: Log) -> tuple[Path | None, int]:
    """Where the model's index is; a job makes it where there is none, for shapes are inferred by native code.

    None, and the exit code, if that failed, which has been told then.
    """
    folder = index_folder(workspace.cache, Path(args.model_file), args.external_data_dir, args.ignore_external_data)
    try:
        if has_index(folder):
            GraphIndex.open(folder)
            return folder, 0
    except BadFile:
        pass  # damaged, or of another version: the job makes a new one
    params = {
        "path": args.model_file, "cache": str(workspace.cache), "external_data_dir": args.external_data_dir,
        "ignore_external_data": args.ignore_external_data,
    }  # fmt: skip
    command = ["layerwise", "inspect", "model", args.model_file, "--visual"]
    spec = msgspec.structs.replace(job_spec("index", params, command, title=("index", args.model_file)), cpus=0)
    collector = Collector()
    code = run_shown(spec, log, collector.event)
    return (Path(collector.result["folder"]), 0) if collector.result and code == 0 else (None, code or 1)


def comparison_of(model: str, job: str | None, workspace: Workspace) -> JobView | None:
    """The job that was asked for, else the newest with layers of this model, else none. UsageError: no such job."""
    if job:
        return workspace.view(job)
    views = (view for view in reversed(workspace.list_jobs()) if view.counts.get("layers"))
    return next((view for view in views if _about(view, Path(model))), None)


def _about(view: JobView, model: Path) -> bool:
    try:
        return is_about(view.spec, model, COMPARING)
    except LayerwiseError:
        return False


def errors_of(view: JobView, index: GraphIndex) -> NodeErrors:
    """The worst row of each node of an index, as the app's graph shows it."""
    session, table = Session(None), ErrorTable()
    session.index = index
    nodes = WorstOfNodes(session, table)
    for event in read_events(view.folder):
        if event["type"] == "dropped" and "layers" not in event["kept"]:
            session, table = Session(None), ErrorTable()
            session.index = index
            nodes = WorstOfNodes(session, table)
        for row in typed([event.get("row")], LayerRow) if event.get("table") == "layers" else ():
            nodes.note(table.add(row))
        for suspect in typed([event.get("row")], SuspectRow) if event.get("table") == "suspects" else ():
            table.accuse(suspect)
    nodes.publish(final=True)
    rows = {node: table.row(error.place) for node, error in session.errors.items()}
    told = {node: msgspec.convert(msgspec.to_builtins(row), NodeResult) for node, row in rows.items()}
    return NodeErrors(f"job {view.id}, {view.state}: {_sides(view)}", told, _facts(view, index, rows.values()),
                      view.spec.command)  # fmt: skip


def _spec(view: JobView) -> CompareSpec | None:
    try:
        return msgspec.convert(comparison_params(view.spec), CompareSpec)
    except msgspec.ValidationError:
        return None


def _sides(view: JobView) -> str:
    spec = _spec(view)
    return " against ".join(side_names(spec.runners)) if spec else view.spec.title


def _facts(view: JobView, index: GraphIndex, rows: Iterable[LayerRow]) -> dict[str, str]:
    spec, note = _spec(view), _change(view, Path(index.meta["path"]))
    verdicts = [row.passed for row in rows]
    return {
        "nodes": f"{sum(v is False for v in verdicts):,} fail, {sum(v is True for v in verdicts):,} pass, "
                 f"{sum(v is None for v in verdicts):,} not judged",
        **({"passes if": rule_text(spec)} if spec else {}),
        "ran": time.strftime("%Y-%m-%d %H:%M", time.localtime(view.created)),
        **({"note": note} if note else {}),
    }  # fmt: skip


def _change(view: JobView, model: Path) -> str:
    """Whether what the job compared has changed since, in words; by the file's time if the job wrote nothing down."""
    changed = "the model's file has changed since"
    known = typed([Earlier(view.folder, 0).identity], Identity)
    if not known:
        return changed if model.exists() and model.stat().st_mtime > view.created else ""
    then, now = models_then(known[0]), models_now(known[0], Path(view.spec.cwd))
    if differences(then, now, meanwhile=True):
        return changed
    return "the model's file may have changed since" if touched(then, now) else ""

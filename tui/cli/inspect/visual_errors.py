"""The errors that colour a page: which comparison they come from, and the worst of each node."""

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.visual.errors import NodeErrors
from layerwise._tool.tui.controllers.node_errors import NodeErrors as WorstOfNodes
from layerwise._tool.tui.presenters.compare_text import rule_text, side_names
from layerwise._tool.tui.state.about import COMPARING, comparison_params, is_about
from layerwise._tool.tui.state.error_table import ErrorTable
from layerwise._tool.tui.state.session import Session


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
    told = {node: msgspec.to_builtins(row) for node, row in rows.items()}
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
    spec, model = _spec(view), Path(index.meta["path"])
    newer = model.exists() and model.stat().st_mtime > view.created
    verdicts = [row.passed for row in rows]
    return {
        "nodes": f"{sum(v is False for v in verdicts):,} fail, {sum(v is True for v in verdicts):,} pass, "
                 f"{sum(v is None for v in verdicts):,} not judged",
        **({"passes if": rule_text(spec)} if spec else {}),
        "ran": time.strftime("%Y-%m-%d %H:%M", time.localtime(view.created)),
        **({"note": "the model's file has changed since"} if newer else {}),
    }  # fmt: skip

"""Jobs that the steps of a triage run: each in a process of its own, so that no crash takes the triage along."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.compare.spec import CompareSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_GPU = ("cuda", "tensorrt", "trt", "rocm", "migraphx")


@dataclass
class Done:
    """How a job ended: its result (empty if it failed), its rows by table, what went wrong."""

    job: int
    result: dict[str, Any]
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""


class SubJobs:
    """Runs jobs for a triage, one after the other; their progress is told as the triage's own."""

    def __init__(self, context: "JobContext", compare: CompareSpec) -> None:
        self._context, self._workspace = context, Workspace(context.folder.parent.parent)
        providers = [name.lower() for runner in compare.runners for name in runner.providers]
        engines = any(runner.kind == "trt" for runner in compare.runners) and bool(visible_gpus(os.environ))
        self._gpus = int(engines or any(name.startswith(_GPU) for name in providers))
        self._command = list(context.raw.get("command", []))

    def compare(self, spec: CompareSpec, title: str) -> Done:
        """Run a comparison. LayerwiseError if it compares nothing: neither answer would rest on anything."""
        done = self.run("compare", msgspec.to_builtins(spec), title)
        if nothing := done.result.get("nothing_compared"):
            raise LayerwiseError(f"{title} {nothing[0]} (job {done.job})")
        return done

    def run(self, action: str, params: dict[str, Any], title: str) -> Done:
        """Run a job to its end. LayerwiseError if the triage is being cancelled, UsageError if the request is wrong."""
        rows: dict[str, list[dict[str, Any]]] = {}
        job = JobSpec(
            action=action, params=params, title=f"triage: {title}", command=self._command,
            cwd=str(self._context.raw.get("cwd", "")), gpus=self._gpus,
        )  # fmt: skip
        view = run_inline(job, self._listener(rows, title), self._workspace)
        if view.state == "cancelled":
            raise LayerwiseError(f"cancelled while: {title}")
        card = view.card or {}
        summary = str(card.get("summary", ""))
        if card.get("lacking"):  # says nothing of the model
            raise LayerwiseError(f"{title} {card['lacking']} (job {view.id})")
        if card.get("exit_code") == UsageError.exit_code:
            raise UsageError(f"{title} {summary}")
        problem = summary or ("" if view.state == "done" else view.state)
        return Done(view.id, view.result or {}, rows, problem)

    def _listener(self, rows: dict[str, list[dict[str, Any]]], title: str) -> Callable[[Event], None]:
        def listen(event: Event) -> None:
            if event["type"] == "row":
                rows.setdefault(event["table"], []).append(event["row"])
            elif event["type"] == "progress":
                unit = str(event.get("unit", ""))
                self._context.progress(event["done"] or 0, event["total"], unit, title)

        return listen

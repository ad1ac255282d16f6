"""Jobs that the steps of a triage run: each in a process of its own, so that no crash takes the triage along."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.rows import CompareResult, LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import NodeRow

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Result = TypeVar("Result")
_GPU = ("cuda", "tensorrt", "trt", "rocm", "migraphx")


class Sanitized(msgspec.Struct, frozen=True):
    """What is read of the result of sanitising: how many nodes there were and are."""

    before: int = 0
    after: int = 0


class Reduced(msgspec.Struct, frozen=True):
    """What is read of the result of a reduction. found: a set of nodes and a model each."""

    summary: str = ""
    verified: bool = False
    found: list["FoundPart"] = []


class FoundPart(msgspec.Struct, frozen=True):
    """A part of the model that fails still."""

    nodes: list[NodeRow] = []
    path: str | None = None


class Bundled(msgspec.Struct, frozen=True):
    """What is read of the result of writing a bundle. passed: the bundle fails by itself."""

    passed: bool = False
    path: str | None = None
    summary: str = ""


@dataclass
class Done(Generic[Result]):
    """How a job ended: its result (its defaults if it failed), its rows of table `layers`, what went wrong."""

    job: int
    result: Result
    layers: list[LayerRow]
    problem: str = ""


class SubJobs:
    """Runs jobs for a triage, one after the other; their progress is told as the triage's own."""

    def __init__(self, context: "JobContext", compare: CompareSpec) -> None:
        self._context, self._workspace = context, Workspace(context.folder.parent.parent)
        providers = [name.lower() for runner in compare.runners for name in runner.providers]
        engines = any(runner.kind == "trt" for runner in compare.runners) and bool(visible_gpus(os.environ))
        self._gpus = int(engines or any(name.startswith(_GPU) for name in providers))
        self._command = list(context.raw.get("command", []))

    def compare(self, spec: CompareSpec, title: str) -> Done[CompareResult]:
        """Run a comparison. LayerwiseError if it compares nothing: neither answer would rest on anything."""
        done = self.run("compare", spec, title, CompareResult)
        if nothing := done.result.nothing_compared:
            raise LayerwiseError(f"{title} {nothing[0]} (job {done.job})")
        return done

    def run(self, action: str, spec: msgspec.Struct, title: str, kind: type[Result]) -> Done[Result]:
        """Run a job; kind: of its result. LayerwiseError if the triage is cancelled, UsageError for a wrong request."""
        rows: list[object] = []
        job = JobSpec(
            action=action, params=msgspec.to_builtins(spec), title=f"triage: {title}", command=self._command,
            cwd=str(self._context.raw.get("cwd", "")), gpus=self._gpus,
        )  # fmt: skip
        view = run_inline(job, self._listener(rows, title), self._workspace, ACTIONS)
        if view.state == "cancelled":
            raise LayerwiseError(f"cancelled while: {title}")
        card = view.card or {}
        summary = str(card.get("summary", ""))
        if card.get("lacking"):  # says nothing of the model
            raise LayerwiseError(f"{title} {card['lacking']} (job {view.id})")
        if card.get("exit_code") == UsageError.exit_code:
            raise UsageError(f"{title} {summary}")
        problem = summary or ("" if view.state == "done" else view.state)
        return Done(view.id, msgspec.convert(view.result or {}, kind), typed(rows, LayerRow), problem)

    def _listener(self, rows: list[object], title: str) -> Callable[[Event], None]:
        def listen(event: Event) -> None:
            if event["type"] == "row" and event["table"] == "layers":
                rows.append(event["row"])
            elif event["type"] == "progress":
                unit = str(event.get("unit", ""))
                self._context.progress(event["done"] or 0, event["total"], unit, title)

        return listen

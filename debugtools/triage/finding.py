"""What a step of the triage found, and what steps share."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.triage.spec import TriageSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Result = TypeVar("Result")
_GPU = ("cuda", "tensorrt", "trt", "rocm", "migraphx")


class Sanitized(msgspec.Struct, frozen=True):
    """What is read of the result of sanitising: how many nodes there were and are."""

    before: int = 0
    after: int = 0


class Bundled(msgspec.Struct, frozen=True):
    """What is read of the result of writing a bundle. passed: the bundle fails by itself."""

    passed: bool = False
    path: str | None = None
    summary: str = ""


@dataclass
class Done(Generic[Result]):
    """How a job ended: its result (its defaults if it failed), its rows of table `layers`, what went wrong.

    refused: it went wrong in words of its own, as a model that cannot be loaded does; it neither crashed nor hung.
    """

    job: int
    result: Result
    layers: list[LayerRow]
    problem: str = ""
    refused: bool = False


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
        refused = card.get("kind") == "error"
        return Done(view.id, msgspec.convert(view.result or {}, kind), typed(rows, LayerRow), problem, refused)

    def _listener(self, rows: list[object], title: str) -> Callable[[Event], None]:
        def listen(event: Event) -> None:
            if event["type"] == "row" and event["table"] == "layers":
                rows.append(event["row"])
            elif event["type"] == "progress":
                unit = str(event.get("unit", ""))
                self._context.progress(event["done"] or 0, event["total"], unit, title)

        return listen


class JobFolders:
    """work: the folder in the job, which later attempts go on with. output: the user's, None: there is none."""

    def __init__(self, work: Path, output: Path | None) -> None:
        self.work, self.output = work, output

    def check(self) -> None:
        """OSError where nothing can be put at the user's folder."""
        if self.output is None:
            return
        make_folder(self.output.parent)
        if self.output.exists() and not self.output.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.output))
        if not os.access(self.output.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.output))

    @contextmanager
    def published(self) -> Iterator[Path]:
        """Yield the folder that reports are written to; in the end all is at its place, whole. OSError."""
        if self.output is None:
            yield self.work
            return
        make_folder(self.output.parent)
        with whole_folder(self.output, merge=True) as new:
            shutil.copytree(self.work, new, dirs_exist_ok=True)
            yield new

    def bundles(self) -> int:
        """How many bundles there are already; a new one gets the next number."""
        folders = [self.work] if self.output is None else [self.work, self.output]
        return len({path.name for folder in folders for path in folder.glob("bundle*") if path.is_dir()})

    def told(self, value: Any) -> Any:
        """A JSON value with the paths that its files have in the end."""
        return value if self.output is None else _replaced(value, str(self.work), str(self.output))

    def known(self, value: Any) -> Any:
        """The value that `told` was given."""
        return value if self.output is None else _replaced(value, str(self.output), str(self.work))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old + os.sep, new + os.sep)
    if isinstance(value, dict):
        return {key: _replaced(each, old, new) for key, each in value.items()}
    return [_replaced(each, old, new) for each in value] if isinstance(value, list) else value


@dataclass
class StepAnswer:
    """An answer with its evidence: lines of text, the jobs that gave it, and what later steps need of it.

    advice: in place of the one that the answer has otherwise.
    """

    answer: str
    evidence: list[str] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    advice: str = ""


@dataclass
class TriageState:
    """The triage so far."""

    spec: TriageSpec
    jobs: SubJobs
    place: JobFolders
    findings: dict[str, StepAnswer] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its files go."""
        return self.place.work

    @property
    def suspects(self) -> list[SuspectRow]:
        """What was located, worst first."""
        return typed(self.data("extract", "suspects") or [], SuspectRow)

    def answer(self, step: str) -> str:
        """What a step was answered, "" if it was not taken."""
        return self.findings[step].answer if step in self.findings else ""

    def data(self, step: str, key: str) -> Any:
        """What a step left, None if it was not taken or answered by the user."""
        found = self.findings.get(step)
        return found.data.get(key) if found else None


def outputs_told(done: Done[CompareResult]) -> list[str]:
    """A line of evidence about a comparison's verdict."""
    if done.problem:
        return [f"job {done.job} did not end well: {done.problem}"]
    result, worst = done.result, done.result.worst
    line = f"job {done.job}: {result.n_failed} of {result.n_rows} rows fail"
    if worst is not None and worst.max_abs is not UNSET:
        line += f"; worst {worst.tensor}: max abs {worst.max_abs:.3g}, max rel {worst.max_rel:.3g}"
    missing = sum(map(unasked, result.not_compared))
    return [line, *([f"{missing} tensors or iterations were not compared"] if missing else [])]


def failed(done: Done[CompareResult]) -> bool:
    """Whether a comparison shows the fault: rows fail, or it does not run at all."""
    return bool(done.problem) or not done.result.passed

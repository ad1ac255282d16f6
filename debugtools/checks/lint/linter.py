"""The job action `lint`: is a model valid, and if not, which of its nodes are at fault?

The specification is checked, the graph, one run of the whole, and only then the nodes.
"""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import BadFile, MissingPackage, writing
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.conclusion import conclusion
from layerwise._tool.debugtools.checks.lint.isolate import Isolation, Progress
from layerwise._tool.debugtools.checks.lint.report import Level, LintFindings, LintResult, LintSource
from layerwise._tool.debugtools.checks.lint.spec import LintSpec
from layerwise._tool.debugtools.checks.lint.structure import (
    broken_references,
    check_graph,
    check_nodes,
    duplicate_names,
    labels,
    needed_nodes,
    unused,
)
from layerwise._tool.debugtools.checks.lint.trial import Trial, first_feed
from layerwise._tool.surgery.cut.pieces import Pieces

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_EMPTY = "Empty ONNX model given"
_DAMAGED = "Error parsing message with type 'onnx.ModelProto': "


class Linter:
    """Lints one model into `report`. names: of all nodes of the main graph, once `run` has read it.

    The model is valid for onnxruntime if it loads and runs as it is; single nodes are tested only if it does not.
    `warn` gets what was assumed about the inputs. Raises UsageError, MissingDependency and BadFile for an impossible
    request, including a missing file; a damaged file is a finding. Without onnxruntime only the structure is linted,
    unless a provider is asked for.
    """

    def __init__(self, spec: LintSpec, report: LintFindings, warn: Callable[[str], None], progress: Progress) -> None:
        self.spec, self.report = spec, report
        self._warn, self._progress = warn, progress
        self.names: set[str] = set()

    def run(self) -> None:
        """Lint the model."""
        options = self.spec.model_options
        try:
            with ModelFile(self.spec.model, options.external_data_dir, options.ignore_external_data) as file:
                structure = file.structure()
                self._file(file, Pieces(structure, structure.graph))
        except BadFile as error:
            path = Path(self.spec.model)
            if Path(error.path) != path or not path.is_file():
                raise
            self.report.add(
                Level.EXCEPTION, LintSource.LOADER, _DAMAGED + error.reason if path.stat().st_size else _EMPTY
            )

    def _file(self, file: ModelFile, pieces: Pieces) -> None:
        if not pieces.nodes:
            self.report.add(Level.WARNING, LintSource.LOADER, "ONNX model has no nodes")
            return
        names = labels(pieces.nodes)
        self.names = set(names)
        duplicate_names(pieces, self.report)
        findings, bad_node = check_graph(file.structure())
        for text in findings:
            self.report.add(Level.EXCEPTION, LintSource.CHECKER, text)
        self._trials(file, pieces, names)
        if bad_node:
            self._schemas(pieces, names)
        unused(pieces, names, self.report)

    def _trials(self, file: ModelFile, pieces: Pieces, names: list[str]) -> None:
        trial = Trial(self.spec.runner, file.folder)
        if self.spec.model_options.ignore_external_data:
            self.report.add(Level.INFO, LintSource.LOADER, "neither loaded nor run: its external data was left out")
            return
        feed = first_feed(self.spec.feeds, pieces, self._warn, self._not_run)
        try:
            with warnings_of() as warnings:
                refusal = trial.whole(file.structure_bytes(), feed)
        except MissingPackage as error:
            if self.spec.runner.providers:
                raise
            self._structure_alone(pieces, names, error)
            return
        if refusal is None:
            for text in warnings:
                self.report.add(Level.WARNING, LintSource.ONNXRUNTIME, text)
            for position in sorted(needed_nodes(pieces)):  # onnxruntime runs no others
                self.report.passes(names[position])
            return
        before = len(self.report.entries)
        broken_references(pieces, names, self.report)
        if feed is not None:
            Isolation(pieces, names, trial, self.report, feed, progress=self._progress).run()
        if len(self.report.entries) == before and self.report.passed:
            self.report.add(Level.EXCEPTION, LintSource.ONNXRUNTIME, refusal.reason)

    def _structure_alone(self, pieces: Pieces, names: list[str], error: MissingPackage) -> None:
        self._not_run(f"only its structure was checked: {error}")
        broken_references(pieces, names, self.report)

    def _not_run(self, text: str) -> None:
        self.report.add(Level.WARNING, LintSource.LOADER, text)

    def _schemas(self, pieces: Pieces, names: list[str]) -> None:
        """Report nodes that violate their operator's schema if onnxruntime did not complain or did not get so far."""
        for position, text in check_nodes(pieces.model, pieces.graph):
            if not self.report.mentions(names[position]):
                op = pieces.nodes[position].op_type
                self.report.add(Level.WARNING, LintSource.CHECKER, text, [names[position]], op)


_WARNING = re.compile(r"\[W:onnxruntime:[^,]*, (?P<place>[^\]]*)\] (?P<text>.*?)(\x1b\[m)?$", re.MULTILINE)
_MOST = 1 << 20


@contextmanager
def warnings_of() -> Iterator[list[str]]:
    """Collect the warnings that onnxruntime logs in the block; at its end, one per code location, others counted.

    They are read from the file that stderr is redirected to (a job's log); otherwise there are none.
    """
    found: list[str] = []
    start = _size()
    yield found
    if start is not None:
        with Path("/proc/self/fd/2").open("rb") as log:
            log.seek(start)
            found += _distinct(log.read(_MOST).decode(errors="replace"))


def _size() -> int | None:
    try:
        status = os.fstat(2)
        return status.st_size if stat.S_ISREG(status.st_mode) and Path("/proc/self/fd/2").exists() else None
    except OSError:
        return None


def _distinct(text: str) -> list[str]:
    places: dict[str, list[str]] = {}
    for match in _WARNING.finditer(text):
        places.setdefault(match["place"], []).append(shown(match["text"].strip(), 600))
    return [texts[0] + (f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else "") for texts in places.values()]


def lint(context: "JobContext") -> LintResult:
    """Lint the model that `context.params` describes (a LintSpec).

    Each finding is a row of the table lint. The report goes to artifacts/lint.json, and to `output`.
    """
    started = time.perf_counter()
    spec = read_spec(context.params, LintSpec, "what to lint")
    report = LintFindings(lambda entry: context.row("lint", entry))
    linter = Linter(spec, report, context.warn, lambda done, total, name: context.progress(done, total, "nodes", name))
    linter.run()
    path = context.artifacts / "lint.json"
    path.parent.mkdir(exist_ok=True)
    for target in (path, *([Path(spec.output)] if spec.output else [])):
        with writing(f"{shown(str(target))}: the report"):
            write_named(target, json.dumps(report.to_json(), indent=4))
    passing, failing = report.passing, report.failing
    unjudged, seconds = len(linter.names.difference(passing, failing)), time.perf_counter() - started
    result = LintResult(
        report.passed, len(passing), len(failing), unjudged, len(report.entries), report=str(path), seconds=seconds
    )
    result.conclusion = conclusion(result, report.entries)
    return result

"""The job action `triage`: walks the flowchart, one step after the other, and writes the report."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.triage import measure
from layerwise._tool.debugtools.triage.conclusion import conclusion, nothing_wrong
from layerwise._tool.debugtools.triage.finding import JobFolders, StepAnswer, SubJobs, TriageState
from layerwise._tool.debugtools.triage.flow import END, FIRST, STEPS, check_answers, follow
from layerwise._tool.debugtools.triage.rows import StepRow, TriageReport, TriageResult
from layerwise._tool.debugtools.triage.spec import TriageSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

MEASURES: dict[str, Callable[[TriageState], StepAnswer]] = {
    "original": measure.reproduce,
    "sanitize": measure.sanitize,
    "inputs": measure.inputs,
    "intermittent": measure.intermittent,
    "repeat": measure.repeat,
    "layerwise": measure.layerwise,
    "extract": measure.extract,
    "reduce": measure.reduce,
    "check": measure.check,
    "report": measure.report,
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border-left: 4px solid #999; margin: 1rem 0; padding: .2rem 1rem; }
section.yes, section.refused { border-color: #b3261e; } section.no { border-color: #2e7d32; }
.answer { font-weight: bold; } .advice { background: #8882; padding: .4rem .6rem; }
pre, td { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } }
"""


def triage(context: "JobContext") -> TriageResult:
    """Find out what kind of fault `context.params` (a TriageSpec) describes.

    Emits a row of table steps for each step taken; returns the way, the verdict and the files written. Steps that an
    earlier attempt of the job took are not taken again. LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, TriageSpec, "the triage")
    if len(spec.compare.runners) < 2:
        raise UsageError("a triage needs two sides: --onnxrt with --reference-model GOOD.onnx, for example")
    check_answers(spec.answers)
    return context.resumed(lambda: Triage(context, spec).run())


class Triage:
    """One walk through the flowchart."""

    def __init__(self, context: "JobContext", spec: TriageSpec) -> None:
        self.context, self.spec = context, spec
        self.earlier = typed(context.previous_rows("steps"), StepRow)
        self.case = TriageState(spec, SubJobs(context, spec.compare), self._place())
        self.rows: list[StepRow] = []
        self._asks = spec.ask

    def _place(self) -> JobFolders:
        work = self.context.artifacts / "triage"
        try:
            if not self.earlier:
                shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True, exist_ok=True)
            place = JobFolders(work, Path(self.spec.output) if self.spec.output else None)
            place.check()
        except OSError as error:
            raise LayerwiseError(f"{self.spec.output or work} cannot be made: {error.strerror}") from error
        return place

    def run(self) -> TriageResult:
        """Take steps until the way ends."""
        started = time.monotonic()
        name = self._taken()
        while name != END:
            name = self._step(name)
        paths = write_reports(self.case, self.rows, self.context.raw)
        last, bundle = self.rows[-1], paths.get("bundle")
        return TriageResult(
            passed=bool(bundle) or nothing_wrong(self.rows), way=[(row.step, row.answer) for row in self.rows],
            end=last.step, advice=last.advice, files=paths, seconds=time.monotonic() - started,
            suspects=self.case.suspects, conclusion=conclusion(self.rows, self.case.suspects, bundle),
        )  # fmt: skip

    def _taken(self) -> str:
        """Take in the steps of earlier attempts; the step to go on with."""
        name = FIRST
        for row in self.earlier:
            if row.step != name:
                break
            self.rows.append(row)
            data = self.case.place.known(row.data)
            self.case.findings[name] = StepAnswer(row.answer, row.evidence, row.jobs, data)
            name = follow(name, row.answer)
        return name

    def _step(self, name: str) -> str:
        started = time.monotonic()
        self.context.log(f"{STEPS[name].title}: {STEPS[name].question}")
        given = self.spec.answers.get(name)
        found = StepAnswer(given, ["answered by you"]) if given else MEASURES[name](self.case)
        by = "user" if given else "machine"
        if self._asks and not given:
            chosen = self._ask(name, found)
            if chosen != found.answer:
                by, found.answer, found.advice = "user", chosen, ""
        self.case.findings[name] = found
        self._tell(name, found, by, time.monotonic() - started)
        return follow(name, found.answer)

    def _ask(self, name: str, found: StepAnswer) -> str:
        """Put the machine's answer to the user, who may overrule it."""
        step = STEPS[name]
        question = {
            "kind": "triage", "step": name, "text": f"{step.title}: {step.question}",
            "choices": [*step.answers, "auto"], "suggestion": found.answer, "evidence": found.evidence,
        }  # fmt: skip
        reply = self.context.ask(question)
        answer = str(reply.get("answer", ""))
        self._asks = answer != "auto"
        return answer if answer in step.answers else found.answer

    def _tell(self, name: str, found: StepAnswer, by: str, seconds: float) -> None:
        step = STEPS[name]
        row = StepRow(
            step=name, title=step.title, question=step.question, answer=found.answer, by=by,
            evidence=self.case.place.told(found.evidence), jobs=found.jobs, data=self.case.place.told(found.data),
            seconds=seconds, next=step.answers[found.answer], advice=found.advice or step.advice.get(found.answer, ""),
        )  # fmt: skip
        self.rows.append(row)
        self.context.row("steps", row)


def page(document: TriageReport) -> str:
    """The page; names in it are text, never markup."""
    body = "\n".join([*_steps(document), *_suspects(document), *_bundle(document)])
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return (
        f'<!doctype html><html lang="en"><head>{head}<title>Triage</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>Triage</h1>\n<pre>$ {escape(document.command)}</pre>\n{body}\n</body></html>\n"
    )


def _steps(document: TriageReport) -> Iterator[str]:
    for row in document.steps:
        who = " (by the user)" if row.by == "user" else ""
        evidence = "\n".join(_text(line, 400) for line in row.evidence)
        yield f'<section class="{_text(row.answer, 10)}"><h2>{_text(row.title, 80)}</h2>'
        yield f'<p>{_text(row.question, 200)} <span class="answer">{_text(row.answer, 10)}</span>{who}</p>'
        yield f"<pre>{evidence}</pre>"
        yield f'<p class="advice">{_text(row.advice, 400)}</p></section>' if row.advice else "</section>"


def _suspects(document: TriageReport) -> Iterator[str]:
    if not document.suspects:
        return
    yield "<h2>Suspects, worst first</h2><table><tr><th>#</th><th>op</th><th>node</th><th>diagnosis</th>"
    yield "<th>evidence</th></tr>"
    for suspect in document.suspects:
        cells = (suspect.i, suspect.op, suspect.node, suspect.diagnosis, suspect.evidence)
        yield "<tr>" + "".join(f"<td>{_text(cell, 400)}</td>" for cell in cells) + "</tr>"
    yield "</table>"


def _bundle(document: TriageReport) -> Iterator[str]:
    if document.bundle:
        yield f"<h2>Repro bundle</h2><pre>{_text(document.bundle, 1000)}</pre>"


def _text(value: Any, limit: int) -> str:
    return escape(shown(str(value), limit))


def write_reports(case: TriageState, rows: Sequence[StepRow], job: Mapping[str, Any]) -> dict[str, str]:
    """Write the report and put all files of the case in place; their paths. LayerwiseError if that cannot be."""
    bundle = case.place.told(case.data("report", "bundle"))
    document = TriageReport(shell_line(job.get("command", [])), list(rows), case.suspects, bundle)
    texts = {
        "txt": shown_lines("\n".join(text_lines(document))) + "\n",
        "json": json.dumps(to_builtins(document), indent=2),
        "html": page(document),
    }
    folder = case.place.output or case.folder
    try:
        with case.place.published() as new:
            for suffix, text in texts.items():
                atomic_write(new / f"report.{suffix}", text)
    except OSError as error:
        raise LayerwiseError(f"the report cannot be written to {shown(str(folder))}: {error.strerror}") from error
    paths = {suffix: str(folder / f"report.{suffix}") for suffix in texts}
    return paths | ({"bundle": bundle} if bundle else {})


def text_lines(document: TriageReport) -> Iterator[str]:
    """The report as plain lines."""
    yield "Triage"
    if document.command:
        yield f"$ {document.command}"
    for number, row in enumerate(document.steps):
        yield ""
        who = " (you)" if row.by == "user" else ""
        yield f"{number}. {row.title}: {row.question}  {row.answer}{who}  ({row.seconds:.1f} s)"
        yield from (f"     {shown(line, 400)}" for line in row.evidence)
        if row.advice:
            yield f"   → {row.advice}"
    if document.suspects:
        yield ""
        yield "Suspects, worst first"
        for suspect in document.suspects:
            yield f"  #{suspect.i} {shown(suspect.op, 60)} {shown(suspect.node, 120)}: {suspect.diagnosis}"
            yield f"     {shown(suspect.evidence, 400)}"
    if document.bundle:
        yield ""
        yield f"Repro bundle: {shown(document.bundle, 1000)}"

"""The report of a triage: text, JSON and one self-contained HTML page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.triage.finding import Case
from layerwise._tool.debugtools.triage.report_html import page
from layerwise._tool.debugtools.triage.rows import StepRow, TriageReport


def write_reports(case: Case, rows: Sequence[StepRow], job: Mapping[str, Any]) -> dict[str, str]:
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

"""The report as one HTML page that loads nothing from anywhere."""

from collections.abc import Iterator
from html import escape
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.triage.rows import TriageReport

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border-left: 4px solid #999; margin: 1rem 0; padding: .2rem 1rem; }
section.yes { border-color: #b3261e; } section.no { border-color: #2e7d32; }
.answer { font-weight: bold; } .advice { background: #8882; padding: .4rem .6rem; }
pre, td { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } }
"""


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

"""A report as one HTML page that loads nothing: its policy allows its own style and script, by their hashes, alone."""

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from time import gmtime, strftime

from layerwise._tool import VERSION
from layerwise._tool.debugtools.report.columns import CaseColumns
from layerwise._tool.debugtools.report.curve import drawn
from layerwise._tool.debugtools.report.figures import source_text
from layerwise._tool.debugtools.report.junit import figure
from layerwise._tool.debugtools.report.markdown import WORDS
from layerwise._tool.debugtools.report.plot import plot
from layerwise._tool.debugtools.report.structure import (
    OUTCOMES,
    Case,
    Part,
    Report,
    Section,
    Table,
    Value,
    counted_text,
)
from layerwise._tool.debugtools.report.text import shown, shown_lines

_NAME, _TEXT = 1000, 10_000
_MOST = 50_000  # rows of a table that a browser still scrolls


def html(report: Report) -> str:
    """The page."""
    style, script = _asset("style.css"), _asset("script.js")
    own = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    body = "\n".join(_body(report))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{WORDS[report.outcome]}: {_text(report.title, 200)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _body(report: Report) -> Iterator[str]:
    yield f'<h1><span class="{report.outcome}">{WORDS[report.outcome]}</span>: {_text(report.title)}</h1>'
    yield f"<p>{counted_text(report.counts)}.</p>"
    many = len(report.parts) > 1
    if many:
        yield from _overview(report.parts)
    for number, part in enumerate(report.parts):
        yield from _part(part, number, heading=many)
    yield f'<p class="dim">Layerwise {escape(VERSION)}</p>'


def _overview(parts: Sequence[Part]) -> Iterator[str]:
    head = "".join(f"<th>{column}</th>" for column in ("verdict", "part", "found", "s"))
    yield f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    for number, part in enumerate(parts):
        name = " ".join(filter(None, (part.key, part.name)))
        found = _text(part.conclusion or counted_text(part.counts), 400)
        yield (
            f'<tr><td class="{part.outcome}">{WORDS[part.outcome]}</td>'
            f'<td><a href="#part-{number}">{_text(name)}</a></td><td>{found}</td>{_cell(part.seconds)}</tr>'
        )
    yield "</tbody></table></div>"


def _part(part: Part, number: int, *, heading: bool) -> Iterator[str]:
    yield f'<section id="part-{number}">'
    if heading:
        name = " ".join(filter(None, (part.key, part.name)))
        yield f'<h2><span class="{part.outcome}">{WORDS[part.outcome]}</span>: {_text(name)}</h2>'
    if part.conclusion:
        yield f'<p class="found">{_text(part.conclusion, _TEXT)}</p>'
    yield "<table><tbody>"
    for key, value in _facts(part).items():
        yield f"<tr><th>{_text(key)}</th><td>{_text(value, _TEXT)}</td></tr>"
    yield "</tbody></table>"
    for place, section in enumerate(part.sections):
        yield from _section(section, f"table-{number}-{place}")
    if part.curve is not None:
        yield from drawn(part.curve)
    for table in part.tables:
        yield from _table(table)
    if part.messages:
        yield f"<details><summary>messages: {len(part.messages)}</summary>"
        lines = "\n".join(f"{message.level}: {message.text}" for message in part.messages)
        yield f"<pre>{escape(shown_lines(lines, _TEXT))}</pre></details>"
    yield "</section>"


def _facts(part: Part) -> dict[str, str]:
    started = "" if part.started is None else strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(part.started))
    seconds = "" if part.seconds is None else f"{part.seconds:.3g} s"
    code = "" if part.exit_code is None else str(part.exit_code)
    found = {"command": part.command, "model": part.model, "started": started, "took": seconds, "exit code": code}
    return {key: value for key, value in {**found, **part.facts}.items() if value}


def _section(section: Section, name: str) -> Iterator[str]:
    cases = section.cases[:_MOST]
    outcomes = [case.outcome for case in section.cases]
    counts = ", ".join(f"{outcomes.count(each)} {each}" for each in OUTCOMES if each in outcomes)
    yield f"<h3>{_text(section.title)}: {counts}</h3>"
    yield from plot(cases)
    if len(cases) > 1:
        yield f'<form data-table="{name}" hidden>'
        yield '<input type="search" name="text" placeholder="filter" aria-label="filter">'
        for outcome in (each for each in OUTCOMES if each in outcomes):
            yield f'<label><input type="checkbox" value="{outcome}" checked> {outcome}</label>'
        yield "<output></output></form>"
    columns = CaseColumns(cases)
    head = "".join(f"<th>{_text(column)}</th>" for column in ("verdict", *columns.names, "why"))
    yield f'<div class="scroll"><table id="{name}"><thead><tr>{head}</tr></thead><tbody>'
    for case in cases:
        cells = "".join(map(_cell, columns.values(case)))
        verdict = f'<td class="{case.outcome}">{WORDS[case.outcome]}</td>'
        yield f'<tr data-outcome="{case.outcome}">{verdict}{cells}<td>{_why(case)}</td></tr>'
    yield "</tbody></table></div>"
    if len(section.cases) > len(cases):
        yield f"<p>… and {len(section.cases) - len(cases)} more, which the JUnit report has.</p>"


def _why(case: Case) -> str:
    source = f"from {source_text(case.source)}" if case.source else ""
    module = f"module {case.module}" if case.module else ""
    first = _text(case.message, _TEXT)
    rest = "\n".join(filter(None, (module, source, case.detail)))
    return f"{first}<pre>{escape(shown_lines(rest, _TEXT))}</pre>" if rest else first


def _table(table: Table) -> Iterator[str]:
    rows = table.rows[:_MOST]
    head = "".join(f"<th>{_text(column)}</th>" for column in table.columns)
    yield f"<details><summary>{_text(table.title)}: {len(table.rows)}</summary>"
    yield f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    for row in rows:
        yield f"<tr>{''.join(map(_cell, row))}</tr>"
    yield "</tbody></table></div>"
    if len(table.rows) > len(rows):
        yield f"<p>… and {len(table.rows) - len(rows)} more.</p>"
    yield "</details>"


def _cell(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{_text(figure(value))}</td>"
    exact = f' data-value="{value!r}"' if math.isfinite(value) else ""
    return f'<td class="number"{exact}>{figure(value)}</td>'


def _text(text: str, limit: int = _NAME) -> str:
    return escape(shown(text, limit))

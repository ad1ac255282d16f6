"""A report as Markdown with tables, as GitHub shows it: for $GITHUB_STEP_SUMMARY, which takes 1 MiB at most.

Names are code spans, in which nothing is obeyed; other text has its marks escaped.
"""

import re
from collections.abc import Iterator, Sequence

from layerwise._tool.debugtools.report.columns import CaseColumns
from layerwise._tool.debugtools.report.figures import source_text
from layerwise._tool.debugtools.report.junit import figure
from layerwise._tool.debugtools.report.structure import Case, Part, Report, Section, Table, counted_text
from layerwise._tool.debugtools.report.text import shown

WORDS = {"failed": "FAILED", "error": "ERROR", "skipped": "skipped", "passed": "passed"}
_MARKS = re.compile(r"([\\`*{}\[\]<>#|~!@&$]|:(?=\S)|(?<!\w)_|_(?!\w))")
_BAD, _SKIPPED, _PASSED, _TABLE_ROWS, _PARTS = 100, 20, 20, 20, 1000
_MOST = 900_000  # bytes; GitHub drops a summary of more than 1 MiB
_NAMES = ("node", "tensor", "op", "name")


def markdown(report: Report) -> str:
    """The document. Parts that did not pass come first, and have room before the others."""
    lines = [f"# {_word(report.outcome)}: {prose(report.title)}", "", f"{counted_text(report.counts)}.", ""]
    many = len(report.parts) > 1
    if many:
        lines += [*_overview(report.parts), ""]
    parts = sorted(report.parts, key=lambda part: part.outcome in ("passed", "skipped")) if many else report.parts
    size = sum(len(line.encode()) + 1 for line in lines)
    for number, part in enumerate(parts):
        made = list(_part(part, heading=many))
        more = sum(len(line.encode()) + 1 for line in made)
        if size + more > _MOST:
            left = len(parts) - number
            lines += [
                f"{left} more part{'s' * (left != 1)} of the report did not fit here: the HTML report has all.",
                "",
            ]
            break
        lines, size = [*lines, *made], size + more
    return "\n".join(lines)


def _overview(parts: Sequence[Part]) -> Iterator[str]:
    yield from _rows(["verdict", "part", "found"], [
        [_word(part.outcome), code(part.key or part.name), prose(part.conclusion or counted_text(part.counts), 300)]
        for part in parts[:_PARTS]
    ])  # fmt: skip
    if len(parts) > _PARTS:
        yield ""
        yield f"… and {len(parts) - _PARTS} more: the HTML report has all."


def _part(part: Part, *, heading: bool) -> Iterator[str]:
    if heading:
        yield f"## {_word(part.outcome)}: {prose(' '.join(filter(None, (part.key, part.name))))}"
        yield ""
    if part.conclusion:
        yield f"**Found:** {prose(part.conclusion, 2000)}"
        yield ""
    for key, value in part.facts.items():
        yield f"- {prose(key)}: {prose(value, 1000)}"
    if part.facts:
        yield ""
    for section in part.sections:
        yield from _section(section)
    for table in part.tables:
        yield from _table(table)
    if part.command:
        yield f"Command: {code(part.command, 4000)}"
        yield ""


def _section(section: Section) -> Iterator[str]:
    told = _chosen(section.cases)
    yield f"### {prose(section.title, 300)}"
    yield ""
    columns = CaseColumns(told)
    cells = [[_word(case.outcome), *map(_cell, columns.names, columns.values(case)), _why(case)] for case in told]
    yield from _rows(["verdict", *columns.names, "why"], cells)
    yield ""
    left = len(section.cases) - len(told)
    if left:
        outcomes = [case.outcome for case in section.cases]
        every = ", ".join(f"{outcomes.count(each)} {each}" for each in WORDS if each in outcomes)
        yield f"… and {left} more ({every} in all): the HTML report has every one."
        yield ""


def _chosen(cases: Sequence[Case]) -> list[Case]:
    """The first of each outcome, those that are wrong first."""
    bad = [case for case in cases if case.outcome in ("failed", "error")][:_BAD]
    skipped = [case for case in cases if case.outcome == "skipped"][:_SKIPPED]
    remarks = [case for case in cases if case.outcome == "passed" and case.severity]
    plain = [case for case in cases if case.outcome == "passed" and not case.severity]
    return [*bad, *skipped, *[*remarks, *plain][:_PASSED]]


def _why(case: Case) -> str:
    source = f"from {code(source_text(case.source))}" if case.source else ""
    return " ".join(filter(None, (prose(case.message, 500), source)))


def _cell(column: str, value: object) -> str:
    text = figure(value)  # type: ignore[arg-type]
    return (code(text) if column in _NAMES else prose(text, 200)) if text else ""


def _table(table: Table) -> Iterator[str]:
    yield f"<details><summary>{prose(table.title)}: {len(table.rows)}</summary>"
    yield ""
    cells = [[_cell(column, value) for column, value in zip(table.columns, row, strict=False)]
             for row in table.rows[:_TABLE_ROWS]]  # fmt: skip
    yield from _rows(table.columns, cells)
    if len(table.rows) > _TABLE_ROWS:
        yield ""
        yield f"… and {len(table.rows) - _TABLE_ROWS} more: the HTML report has all."
    yield ""
    yield "</details>"
    yield ""


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(prose, columns))} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _word(outcome: str) -> str:
    return WORDS[outcome]


def prose(text: str, limit: int = 500) -> str:
    """Text that may hold anything, on one line, with every mark of Markdown and HTML escaped."""
    plain = shown(text, limit)
    marked = _MARKS.sub(lambda found: f"&#{ord(found[1])};", plain)
    return re.sub(r"(?i)(www)\.", r"\1&#46;", marked)


def code(text: str, limit: int = 200) -> str:
    """A name as a code span; as HTML where it has a mark that a span in a table cannot hold."""
    plain = shown(text, limit)
    if not plain or plain != plain.strip() or "`" in plain or "|" in plain:
        inner = re.sub(r"[^\w\s/.-]", lambda found: f"&#{ord(found[0])};", plain)
        return f"<code>{inner.replace('_', '&#95;')}</code>"
    return f"`{plain}`"

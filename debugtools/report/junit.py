"""A report as JUnit XML, as Jenkins' xunit plugin has its schema and as GitHub, GitLab and pytest write and read it.

A section is a test suite, a case a test case: failed is a failure, error an error, skipped is skipped with its reason.
"""

from collections.abc import Iterator
from datetime import datetime, timezone
from xml.sax.saxutils import escape, quoteattr

from layerwise._tool.debugtools.report.figures import source_text
from layerwise._tool.debugtools.report.structure import Case, Part, Report, Section, Table, Value
from layerwise._tool.debugtools.report.text import shown, shown_lines

_NAME, _TEXT = 500, 4000
_ROWS = 200
_HOST = "localhost"


def junit(report: Report) -> str:
    """The XML document."""
    suites = [line for part in report.parts for line in _part(part)]
    counts, seconds = report.counts, sum(part.seconds or 0.0 for part in report.parts)
    head = (f'<testsuites name={_attr(report.title)} tests="{counts.total()}" failures="{counts["failed"]}" '
            f'errors="{counts["error"]}" time="{seconds:.3f}">')  # fmt: skip
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>", ""])


def _part(part: Part) -> Iterator[str]:
    for number, section in enumerate(part.sections):
        yield from _suite(part, section, last=number == len(part.sections) - 1)


def _suite(part: Part, section: Section, *, last: bool) -> Iterator[str]:
    outcomes = [case.outcome for case in section.cases]
    name = " | ".join(filter(None, (part.key, part.name, section.title)))
    seconds = sum(case.seconds or 0.0 for case in section.cases)
    yield (
        f'<testsuite name={_attr(name)} tests="{len(outcomes)}" failures="{outcomes.count("failed")}" '
        f'errors="{outcomes.count("error")}" skipped="{outcomes.count("skipped")}" time="{seconds:.3f}" '
        f'timestamp="{_time(part.started)}" hostname="{_HOST}">'
    )
    yield "<properties>"
    for key, value in _properties(part).items():
        yield f"<property name={_attr(key)} value={_attr(value, _TEXT)}/>"
    yield "</properties>"
    for case in section.cases:
        yield from _case(part, section, case)
    if last:  # what no case holds stands once, in the last suite
        text = "\n".join(_told(part))
        if text:
            yield f"<system-out>{_body(text)}</system-out>"
    yield "</testsuite>"


def _properties(part: Part) -> dict[str, str]:
    found = {"command": part.command, "model": part.model, "conclusion": part.conclusion, **part.facts}
    return {key: value for key, value in found.items() if value}


def _case(part: Part, section: Section, case: Case) -> Iterator[str]:
    group = ".".join(filter(None, (part.key, part.action or "layerwise", _stem(part.model), section.title)))
    seconds = f' time="{case.seconds:.6f}"' if case.seconds is not None else ""
    yield f"<testcase classname={_attr(group)} name={_attr(case.name)}{seconds}>"
    body = _body("\n".join(_details(case)))
    message = _attr(case.message, _TEXT)
    if case.outcome == "failed":
        yield f"<failure message={message} type={_attr(case.rule or 'failed')}>{body}</failure>"
    elif case.outcome == "error":
        yield f"<error message={message} type={_attr(case.rule or 'error')}>{body}</error>"
    elif case.outcome == "skipped":
        yield f"<skipped message={message}/>"
    elif body and (case.figures or case.message):
        yield f"<system-out>{body}</system-out>"
    yield "</testcase>"


def _details(case: Case) -> Iterator[str]:
    """What is told of a case below its message."""
    if case.message:
        yield case.message
    if case.tensor and case.tensor not in case.name:
        yield f"tensor {case.tensor}"
    if case.module:
        yield f"module {case.module}"
    if case.source is not None:
        yield f"from {source_text(case.source)}"
    if case.figures:
        yield ", ".join(f"{name} {figure(value)}" for name, value in case.figures.items())
    if case.detail:
        yield case.detail


def _told(part: Part) -> Iterator[str]:
    """The conclusion, what the job said, and its tables."""
    if part.conclusion:
        yield part.conclusion
    for message in part.messages:
        yield f"{message.level}: {message.text}"
    for table in part.tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield ""
    yield f"{table.title}:"
    yield "\t".join(table.columns)
    for row in table.rows[:_ROWS]:
        yield "\t".join(shown(figure(value), 200) for value in row)
    if len(table.rows) > _ROWS:
        yield f"... and {len(table.rows) - _ROWS} more rows: the HTML report has them"


def figure(value: Value) -> str:
    """A figure as text, not escaped: five significant digits."""
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else str(value)


def _stem(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].replace(".", "_")


def _time(started: float | None) -> str:
    """Without a zone, which the schema does not take: UTC."""
    found = datetime.fromtimestamp(started or 0.0, tz=timezone.utc)
    return found.strftime("%Y-%m-%dT%H:%M:%S")


def _attr(text: str, limit: int = _NAME) -> str:
    return quoteattr(shown(text, limit))


def _body(text: str) -> str:
    return escape(shown_lines(text, _TEXT))

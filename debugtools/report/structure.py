"""The neutral structure of a report: what was judged, with what verdict, and where it is. All writers read it alone.

A report has a part for each job: `run` gives a report of one part, a matrix of cells gives one of many.
Text may be a model's: writers escape it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from layerwise._tool.surgery.origin.origin import SourceLine

Outcome = Literal["passed", "failed", "error", "skipped"]
Severity = Literal["", "note", "warning"]
Value = str | int | float | bool | None
OUTCOMES: tuple[Outcome, ...] = ("failed", "error", "skipped", "passed")
"""In the order in which they are told."""


class Case(Struct, frozen=True, kw_only=True):
    """One thing that was judged: a layer, a node, a runner, a step.

    name: unique in its section. failed: it was judged, and is wrong; error: it could not be carried out; skipped: it
    was not judged. message: why, in a sentence; needed unless it passed. detail: more lines.
    rule: what kind of finding it is, `compare/leap`. severity: of a remark about something that passed, or of a failure
    that another one explains.
    i, node, op, tensor: of the model; i is the position in topological order, -1 where there is none.
    module: a dotted path; source: the line of Python that the exporter noted. seconds: it took. figures: by column.
    """

    name: str
    outcome: Outcome
    message: str = ""
    detail: str = ""
    rule: str = ""
    severity: Severity = ""
    i: int = -1
    node: str = ""
    op: str = ""
    tensor: str = ""
    module: str = ""
    source: SourceLine | None = None
    seconds: float | None = None
    figures: dict[str, Value] = {}


class Section(Struct, frozen=True):
    """Cases that belong together: the layers of a pair of runners, the runs."""

    title: str
    cases: list[Case] = []


class Table(Struct, frozen=True):
    """Rows that nothing judges: the candidates of a search, the times of layers."""

    title: str
    columns: list[str]
    rows: list[list[Value]] = []


class CurvePoint(Struct, frozen=True):
    """x: a share; y: a number on a logarithmic scale; text: what it is. stands_out: it is what was chosen."""

    x: float
    y: float
    text: str = ""
    stands_out: bool = False


class Curve(Struct, frozen=True):
    """Points that are drawn where a writer draws."""

    title: str
    points: list[CurvePoint] = []


class Message(Struct, frozen=True):
    """What a job said. level: as in its journal (info, warning, error)."""

    level: str
    text: str


class Part(Struct, frozen=True, kw_only=True):
    """What one job came to.

    name: what it is, in words. key: identifies it among the parts; "" where it is alone. command: that repeats it.
    action: of the job, `compare`. model: path, "" where there is none. exit_code: of the command, None while unknown.
    conclusion: the sentence that it ends with. started: unix seconds. seconds: it took.
    facts: what else is told of it, in order.
    """

    name: str
    action: str = ""
    key: str = ""
    command: str = ""
    model: str = ""
    conclusion: str = ""
    exit_code: int | None = None
    started: float | None = None
    seconds: float | None = None
    facts: dict[str, str] = {}
    sections: list[Section] = []
    tables: list[Table] = []
    curve: Curve | None = None
    messages: list[Message] = []

    @property
    def cases(self) -> Iterator[Case]:
        """All cases, section by section."""
        return (case for section in self.sections for case in section.cases)

    @property
    def counts(self) -> Counter[str]:
        """How many cases have each outcome."""
        return Counter(case.outcome for case in self.cases)

    @property
    def outcome(self) -> Outcome:
        """error if a case could not be carried out, else failed if one is wrong, else passed if one is judged."""
        return worst(self.counts)


class Report(Struct, frozen=True):
    """What all parts came to. title: of the whole."""

    title: str
    parts: list[Part]

    @property
    def counts(self) -> Counter[str]:
        """How many cases of all parts have each outcome."""
        return sum((part.counts for part in self.parts), Counter())

    @property
    def outcome(self) -> Outcome:
        """That of all cases, as a part has one."""
        return worst(self.counts)


def worst(counts: Counter[str]) -> Outcome:
    """The outcome of cases of these outcomes; nothing judged at all is skipped."""
    return next((found for found in ("error", "failed", "passed") if counts[found]), "skipped")


def counted_text(counts: Counter[str]) -> str:
    """`2 failed, 1 skipped, 30 passed`."""
    words = {"error": "could not be carried out"}
    return ", ".join(f"{counts[each]} {words.get(each, each)}" for each in OUTCOMES if counts[each]) or "nothing judged"


def accounted(part: Part) -> Part:
    """The part with a case for its exit code, where no other case accounts for it.

    A command that did not pass is never told as one whose cases all passed, and one without a case has one.
    """
    counts, code = part.counts, part.exit_code
    if counts["failed"] or counts["error"] or (not code and counts.total()):
        return part
    outcome: Outcome = {0: "passed", 1: "failed", None: "skipped"}.get(code, "error")  # type: ignore[assignment]
    message = part.conclusion or (f"exit code {code}" if code is not None else "it has not ended")
    case = Case(name="verdict", outcome=outcome, message=message, rule=f"{part.action or 'job'}/verdict")
    return _with_section(part, Section("verdict", [case]))


def _with_section(part: Part, section: Section) -> Part:
    from msgspec.structs import replace

    return replace(part, sections=[*part.sections, section])

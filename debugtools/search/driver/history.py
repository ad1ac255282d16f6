"""The verdicts of a search, on file as they fall: what resuming, undoing and the cache go by."""

from contextlib import suppress
from typing import TYPE_CHECKING, cast

from msgspec import ValidationError

from layerwise._tool.debugtools.search.judges.protocol import By, Judgement
from layerwise._tool.debugtools.search.rows import CandidateRow, UndoRow, VerdictRow, read_verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def verdict_row(n: int, candidate: CandidateRow, judgement: Judgement, content: str) -> VerdictRow:
    """A row of table `verdicts`."""
    return VerdictRow(
        n=n, key=candidate.key, phase=candidate.phase, i=candidate.i, node=candidate.node, op=candidate.op,
        nodes=candidate.nodes, verdict=judgement.verdict, by=judgement.by, seconds=round(judgement.seconds, 4),
        measured=judgement.measured, note=judgement.note, artifact=judgement.measured.output, content=content,
    )  # fmt: skip


def judgement_of(row: VerdictRow) -> Judgement:
    """What a row of table `verdicts` says."""
    return Judgement(row.verdict, cast(By, row.by), row.seconds, row.measured, row.note)


class VerdictRows:
    """Rows of table `verdicts`, those of earlier attempts first. rows: those that were not undone."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self.rows: list[VerdictRow] = []
        self._last = 0
        for row in context.previous_rows("verdicts"):
            with suppress(ValidationError):  # a damaged row is none
                self._take(read_verdict(row))

    def _take(self, row: VerdictRow | UndoRow) -> None:
        if isinstance(row, UndoRow):
            self.rows = [kept for kept in self.rows if kept.n != row.n]
        else:
            self.rows.append(row)
            self._last = max(self._last, row.n)

    def add(self, about: CandidateRow, judgement: Judgement, content: str) -> None:
        """Write a verdict down. content: hash of what was judged, "" where the answer holds for this once only."""
        self._last += 1
        row = verdict_row(self._last, about, judgement, content)
        self._context.row("verdicts", row)
        self.rows.append(row)

    def find(self, phase: str) -> Judgement | None:
        """The verdict of a phase that has but one, if it has fallen."""
        return next((judgement_of(row) for row in self.rows if row.phase == phase), None)

    def cached(self, content: str) -> Judgement | None:
        """A verdict on the same content."""
        for row in self.rows:
            if content and row.content == content:
                return judgement_of(row)
        return None

    def undo(self) -> bool:
        """Take back the last verdict that a person gave, with those that followed from it; False if there is none."""
        given = (at for at, row in enumerate(self.rows) if row.by == "person" and row.phase != "original")
        last = max(given, default=None)
        if last is None:
            return False
        for row in reversed(self.rows[last:]):
            self._context.row("verdicts", UndoRow(row.n))
        del self.rows[last:]
        return True

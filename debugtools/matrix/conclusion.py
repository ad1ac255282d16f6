"""The last sentence of a matrix."""

from collections.abc import Mapping, Sequence

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.matrix.rows import CellRow, Change

_WORDS = {"failed": "failed", "error": "ended in an error", "lost": "given up (killed again and again)",
          "cancelled": "cancelled", "refused": "refused", "elsewhere": "run by another process"}  # fmt: skip
_NAMED = 3


def conclusion(rows: Sequence[CellRow], counts: Mapping[str, int], found: Sequence[Change], against: str) -> str:
    """What was found, how much was not, and what has changed."""
    bad = [row for row in rows if row.receipt.verdict != "passed"]
    text = f"{counts.get('passed', 0)} of {counted(len(rows), 'cell')} passed"
    others = [f"{counts[verdict]} {words}" for verdict, words in _WORDS.items() if counts.get(verdict)]
    text += f"; {', '.join(others)}: {_named(bad)}." if bad else "."
    if against:
        text += f" {_changed(found)}"
    return text


def _named(rows: Sequence[CellRow]) -> str:
    names = [cell_name(row) for row in rows[:_NAMED]]
    return ", ".join(names) + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")


def cell_name(row: CellRow | Change) -> str:
    """A cell in words, safe to print."""
    return " × ".join(shown(part, 60) for part in (row.model, row.side, row.feed, row.action) if part)


def _changed(found: Sequence[Change]) -> str:
    worse = [change for change in found if change.was == "passed" and change.now not in ("passed", "")]
    if not found:
        return "Nothing has changed since the run it was held against."
    text = f"{counted(len(found), 'cell')} changed since the run it was held against"
    if not worse:
        return f"{text}, none for the worse."
    more = f" and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
    return f"{text}; worse: {', '.join(map(cell_name, worse[:_NAMED]))}{more}."

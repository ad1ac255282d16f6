"""What a check of a baseline found, as lines of plain text."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.baseline.conclusion import grown, label
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow

MOST = 10
QUIET = frozenset({"follows", "less"})
"""Changes of which only the number is told."""


def change_line(row: ChangeRow) -> str:
    """One layer that is not as it was."""
    parts = [f"{row.change.upper()} | {label(row)}"]
    if row.change in ("grown", "unsure"):
        parts.append(grown(row))
    if row.was is not UNSET:
        parts.append(f"it was called {shown(row.was, 100)}")
    parts += [f"what fits: {row.cause}"] if row.cause else []
    parts += [row.note] if row.note else []
    if row.source is not UNSET:
        parts.append(f"{shown(row.source.file, 200)}:{row.source.line}")
    return " | ".join(parts)


def told(rows: Iterable[ChangeRow]) -> Iterator[ChangeRow]:
    """The rows that are told one by one: of a kind the first few."""
    count: dict[str, int] = {}
    for row in rows:
        count[row.change] = count.get(row.change, 0) + 1
        if row.change not in QUIET and count[row.change] <= MOST:
            yield row


def versions_line(result: BaselineResult) -> str:
    """The versions then and now."""
    then, now = (
        ", ".join(f"{shown(name, 60)} {shown(version, 40)}" for name, version in found.items())
        for found in (result.versions_then, result.versions_now)
    )
    return f"{then}; now {'the same' if then == now else now}"


def check_text(result: BaselineResult, rows: Sequence[ChangeRow], job: int) -> str:
    """The conclusion, the layers, what changed since, and where to read more."""
    lines = [result.conclusion, *map(change_line, told(rows))]
    lines += [f"since then: {shown('; '.join(result.changes), 2000)}"] if result.changes else []
    lines.append(f"versions then: {versions_line(result)}")
    return "\n".join([*lines, f"the whole table: layerwise jobs show {job}"])

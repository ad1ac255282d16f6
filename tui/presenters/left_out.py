"""What a comparison did not compare, and why, as lines."""

from collections.abc import Sequence
from itertools import groupby

from layerwise._tool.backends.text import in_full, shown
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import NotCompared
from layerwise._tool.tui.presenters.text import Line, wrap_runs
from layerwise._tool.tui.state.job_rows import RunFacts

Entry = tuple[str, list[Line]]
"""A tensor ("" for a heading) and the lines that tell of it."""


def left_out_entries(facts: RunFacts, cells: int) -> list[Entry]:
    """For each reason a heading with how many, then the tensors; what nobody asked to leave out comes first."""
    ordered = sorted(facts.result.not_compared, key=_rank)
    entries: list[Entry] = []
    for text, group in groupby(ordered, key=lambda item: item.text):
        found = list(group)
        tensors = list(dict.fromkeys(item.tensor for item in found if item.tensor))
        entries.append(("", _heading(found[0], facts.with_sides(text), len(tensors), cells)))
        entries += [(name, wrap_runs([("  ", ""), (in_full(name), "")], cells, 4)) for name in tensors]
    return entries


def _rank(item: NotCompared) -> tuple[bool, bool, str, str]:
    return item.reason in ("excluded", "not marked"), not unasked(item), item.reason, item.text


def _heading(item: NotCompared, text: str, count: int, cells: int) -> list[Line]:
    role = "warn" if unasked(item) else "strong"
    many = f"{count:,} tensor{'s' * (count != 1)}: " if count else ""
    return wrap_runs([(f"{many}{shown(text, 1000)}", role)], cells, 2)


def title(items: Sequence[NotCompared]) -> str:
    """What the list is about."""
    count = len({item.tensor for item in items if item.tensor})
    return f"Not compared: {count:,} tensor{'s' * (count != 1)} (type to filter, enter goes to the node)"

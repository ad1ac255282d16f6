"""The layer table as plain text, for output without a screen: where something happens in full, the rest folded."""

from collections.abc import Iterator, Sequence
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.numbers import sig

Row = dict[str, Any]
_NUMBERS = (("max abs", "max_abs"), ("max rel", "max_rel"), ("rel L2", "rel_l2"), ("ampl", "ampl"))
_NAME = 58


def origins(rows: Sequence[Row]) -> list[Row]:
    """The rows where an error begins: those with a finding of their own."""
    return [row for row in rows if row.get("finding") not in (None, "", "propagated", "skip")]


def folded_table(rows: Sequence[Row], around: int = 2) -> Iterator[str]:
    """Lines of the table of `rows` (in the order they came): `around` rows about each origin and both ends in full."""
    numbers = "".join(f"{title:>10}" for title, _ in _NUMBERS)
    yield f"  {'#':>5} {'op':<12} {'tensor':<{_NAME}}{numbers}  verdict"
    at = {i for i, row in enumerate(rows) if row in origins(rows)} | {0, len(rows) - 1}
    full = {i for place in at for i in range(place - around, place + around + 1)}
    begin = 0
    for i in range(len(rows) + 1):
        if i < len(rows) and i not in full:
            continue
        if i > begin:
            yield _folded(rows[begin:i])
        if i < len(rows):
            yield row_text(rows[i])
        begin = i + 1


def row_text(row: Row) -> str:
    """One row: place, operator, tensor, errors, verdict."""
    numbers = "".join(f"{sig(row.get(key)):>10}" for _, key in _NUMBERS)
    glyph = {True: "✓", False: "✗"}.get(row.get("passed"), " ")  # type: ignore[arg-type]
    name = shown(str(row["tensor"]).removesuffix("_output_0"), _NAME)
    op = shown(str(row.get("op") or "-"), 12)
    return f"{glyph} {row.get('i', ''):>5} {op:<12} {name:<{_NAME}}{numbers}  {verdict(row)}"


def verdict(row: Row) -> str:
    """The finding of a row, or whether it passed."""
    return str(row.get("finding") or {True: "ok", False: "failed"}.get(row.get("passed"), "-"))  # type: ignore[arg-type]


def _folded(rows: Sequence[Row]) -> str:
    failed = sum(row.get("passed") is False for row in rows)
    worst = max((float(row["rel_l2"]) for row in rows if row.get("rel_l2") is not None), default=0.0)
    state = f"{failed} of them fail" if failed else "all pass"
    return f"      ⋮ {len(rows)} tensors, {state}, rel L2 up to {sig(worst)}"

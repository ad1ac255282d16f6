"""The layer table as plain text, for output without a screen: where something happens in full, the rest folded."""

from collections.abc import Iterator, Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.presenters.numbers import sig

_NUMBERS = (("max abs", "max_abs"), ("max rel", "max_rel"), ("rel L2", "rel_l2"), ("ampl", "ampl"))
_NAME = 58


def origins(rows: Sequence[LayerRow]) -> list[LayerRow]:
    """The rows where an error begins: those with a finding of their own."""
    return [row for row in rows if _begins(row)]


def _begins(row: LayerRow) -> bool:
    return row.finding not in ("", "propagated", "skip")


def folded_table(rows: Sequence[LayerRow], around: int = 2) -> Iterator[str]:
    """Lines of the table of `rows` (in the order they came): `around` rows about each origin and both ends in full."""
    numbers = "".join(f"{title:>10}" for title, _ in _NUMBERS)
    yield f"  {'#':>5} {'op':<12} {'tensor':<{_NAME}}{numbers}  verdict"
    at = {i for i, row in enumerate(rows) if _begins(row)} | {0, len(rows) - 1}
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


def row_text(row: LayerRow) -> str:
    """One row: place, operator, tensor, errors, verdict."""
    numbers = "".join(f"{sig(getattr(row, key)):>10}" for _, key in _NUMBERS)
    glyph = {True: "✓", False: "✗", None: " "}[row.passed]
    name = shown(row.tensor.removesuffix("_output_0"), _NAME)
    op = shown(row.op or "-", 12)
    return f"{glyph} {row.i:>5} {op:<12} {name:<{_NAME}}{numbers}  {verdict(row)}"


def verdict(row: LayerRow) -> str:
    """The finding of a row, or whether it passed."""
    return row.finding or {True: "ok", False: "failed", None: "-"}[row.passed]


def _folded(rows: Sequence[LayerRow]) -> str:
    failed = sum(row.passed is False for row in rows)
    worst = max((row.rel_l2 for row in rows if row.rel_l2 is not None), default=0.0)
    state = f"{failed} of them fail" if failed else "all pass"
    return f"      ⋮ {len(rows)} tensors, {state}, rel L2 up to {sig(worst)}"

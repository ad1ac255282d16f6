"""The values of one tensor on both sides: the worst elements, and how errors and values are distributed."""

from collections.abc import Sequence

from layerwise._tool.backends.text import counted
from layerwise._tool.debugtools.compare.tensor_values import Element, ErrorCounts, TensorValues, ValueCounts
from layerwise._tool.tui.presenters.numbers import index_text, share_bar, sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit

_INDEX_CELLS = 20


def tensor_lines(data: TensorValues, names: Sequence[str], cells: int, glyphs: Glyphs) -> list[Line]:
    """Everything under the row's own statistics."""
    if data.errors is None or data.values is None:
        return [[("the two sides cannot be set against each other: ", "warn"), (_kinds(data), "")]]
    pair = data.row.pair if data.row is not None else (0, 1)
    sides = [f"{k} {names[side]}" if side < len(names) else f"side {k}" for k, side in enumerate(pair, 1)]
    return [
        *_worst(data.worst, sides, cells),
        [],
        *_errors(data.errors, data.size, cells, glyphs),
        [],
        *_values(data.values, sides, cells, glyphs),
    ]


def _kinds(data: TensorValues) -> str:
    return " and ".join(f"{dtype} {shape}" for dtype, shape in zip(data.dtypes, data.shapes, strict=True))


def _worst(worst: list[Element], sides: Sequence[str], cells: int) -> list[Line]:
    if not worst:
        return [[("every element is equal on both sides", "good")]]
    at = max(_INDEX_CELLS, *(len(index_text(found.index)) for found in worst))
    room = max(10, min(24, (cells - at - 24) // 2))
    head = f"{'worst elements':<{at}} " + "".join(f"{fit(s, room).strip():>{room}} " for s in sides)
    lines: list[Line] = [[(f"{head}{'abs':>10} {'rel':>10}", "head")]]
    for found in worst:
        both = "".join(f"{_value(value, room):>{room}} " for value in (found.a, found.b))
        index = f"{index_text(found.index):<{at}}"
        lines.append([(f"{index} {both}{sig(found.abs, 4):>10} {sig(found.rel, 4):>10}", "")])
    return lines


def _value(value: object, room: int) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)[:room]


def _errors(errors: ErrorCounts, size: int, cells: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [[("|a - b| by powers of ten", "head"), (f"   of {counted(size, 'element')}", "dim")]]
    rows = [("equal", errors.exact, "good")]
    lowest, counts = errors.lowest, errors.counts
    for k, count in enumerate(counts):
        power = lowest + k - 1
        name = f"below 1e{lowest}" if k == 0 else f"1e{power} up" if k == len(counts) - 1 else f"1e{power}"
        rows.append((name, count, ""))
    filled = [k for k, (_, count, _) in enumerate(rows) if count]
    rows = rows[: 1 + max(filled, default=0)]
    rows = [rows[0], *rows[min((k for k in filled if k > 0), default=1) :]]
    if errors.not_finite:
        rows.append(("NaN or Inf", errors.not_finite, "bad"))
    most = max((count for _, count, _ in rows), default=0)
    return lines + [
        [(f"{name:<12}{count:>12,}  ", role), (share_bar(count / (most or 1), max(1, cells - 28), glyphs), "accent")]
        for name, count, role in rows
    ]


def _values(values: ValueCounts, sides: Sequence[str], cells: int, glyphs: Glyphs) -> list[Line]:
    edges, counts = values.edges, values.counts
    room = max(8, (cells - 26 - 2 * 10) // 2)
    most = max((max(side) for side in counts), default=0)
    title = f"{'values':<26}{fit(sides[0], room + 10, keep='start')} {fit(sides[1], room + 8, keep='start')}"
    lines: list[Line] = [[(title, "head")]]
    for k in range(len(edges) - 1):
        span = f"{sig(edges[k], 3):>10} .. {sig(edges[k + 1], 3):>9}  "
        differs = counts[0][k] != counts[1][k]
        left = f"{fit(share_bar(counts[0][k] / (most or 1), room, glyphs), room)} {counts[0][k]:>8} "
        right = f"{fit(share_bar(counts[1][k] / (most or 1), room, glyphs), room)} {counts[1][k]:>8}"
        lines.append([(span, "dim"), (left + right, "warn" if differs else "")])
    return lines

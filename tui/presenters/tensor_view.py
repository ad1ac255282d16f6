"""The values of one tensor as text: histograms side by side, error by powers of ten, the worst elements."""

from collections.abc import Sequence
from typing import Any

from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import index_text, sig
from layerwise._tool.tui.presenters.text import Line, fit

INDEX_CELLS = 20


def tensor_lines(data: dict[str, Any], names: Sequence[str], cells: int, glyphs: Glyphs) -> list[Line]:
    """Everything under the row's own statistics."""
    if "errors" not in data:
        return [[("the two sides cannot be set against each other: ", "warn"), (_kinds(data), "")]]
    pair = (data.get("row") or {}).get("pair") or [0, 1]
    sides = [f"{k} {names[side]}" if side < len(names) else f"side {k}" for k, side in enumerate(pair, 1)]
    return [
        *_worst(data["worst"], sides, cells),
        [],
        *_errors(data["errors"], int(data.get("size") or 0), cells, glyphs),
        [],
        *_values(data["values"], sides, cells, glyphs),
    ]


def _kinds(data: dict[str, Any]) -> str:
    sides = zip(data.get("dtypes") or [], data.get("shapes") or [], strict=False)
    return " and ".join(f"{dtype} {shape}" for dtype, shape in sides)


def _worst(worst: list[dict[str, Any]], sides: Sequence[str], cells: int) -> list[Line]:
    if not worst:
        return [[("every element is equal on both sides", "good")]]
    room = max(10, min(24, (cells - INDEX_CELLS - 24) // 2))
    head = f"{'worst elements':<{INDEX_CELLS}} " + "".join(f"{fit(s, room, keep='start'):>{room}} " for s in sides)
    lines: list[Line] = [[(f"{head}{'abs':>10} {'rel':>10}", "head")]]
    for found in worst:
        both = "".join(f"{_value(found[side], room):>{room}} " for side in ("a", "b"))
        index = fit(index_text(found["index"]), INDEX_CELLS)
        lines.append([(f"{index} {both}{sig(found['abs'], 4):>10} {sig(found['rel'], 4):>10}", "")])
    return lines


def _value(value: object, room: int) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)[:room]


def _errors(errors: dict[str, Any], size: int, cells: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [[("|a - b| by powers of ten", "head"), (f"   of {size:,} elements", "dim")]]
    rows = [("equal", int(errors["exact"]), "good")]
    lowest, counts = int(errors["lowest"]), errors["counts"]
    for k, count in enumerate(counts):
        power = lowest + k - 1
        name = f"below 1e{lowest}" if k == 0 else f"1e{power} up" if k == len(counts) - 1 else f"1e{power}"
        rows.append((name, int(count), ""))
    filled = [k for k, (_, count, _) in enumerate(rows) if count]
    rows = rows[: 1 + max(filled, default=0)]
    rows = [rows[0], *rows[min((k for k in filled if k > 0), default=1) :]]
    if errors["not_finite"]:
        rows.append(("NaN or Inf", int(errors["not_finite"]), "bad"))
    most = max((count for _, count, _ in rows), default=0)
    return lines + [
        [(f"{name:<12}{count:>12,}  ", role), (_bar(count, most, cells - 28, glyphs), "accent")]
        for name, count, role in rows
    ]


def _values(values: dict[str, Any], sides: Sequence[str], cells: int, glyphs: Glyphs) -> list[Line]:
    edges, counts = values["edges"], values["counts"]
    room = max(8, (cells - 26 - 2 * 10) // 2)
    most = max((max(side) for side in counts), default=0)
    title = f"{'values':<26}{fit(sides[0], room + 10, keep='start')} {fit(sides[1], room + 8, keep='start')}"
    lines: list[Line] = [[(title, "head")]]
    for k in range(len(edges) - 1):
        span = f"{sig(edges[k], 3):>10} .. {sig(edges[k + 1], 3):>9}  "
        differs = counts[0][k] != counts[1][k]
        left = f"{fit(_bar(counts[0][k], most, room, glyphs), room)} {counts[0][k]:>8} "
        right = f"{fit(_bar(counts[1][k], most, room, glyphs), room)} {counts[1][k]:>8}"
        lines.append([(span, "dim"), (left + right, "warn" if differs else "")])
    return lines


def _bar(count: int, most: int, cells: int, glyphs: Glyphs) -> str:
    """A bar as long as the count; anything at all is at least one cell."""
    full = "#" if glyphs.ellipsis == "~" else "█"
    return full * (0 if count <= 0 else max(1, round(max(1, cells) * count / most)))

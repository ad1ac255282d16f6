"""The results as a table, in Polygraphy's layout."""

from collections.abc import Mapping, Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.support import Refusal

_TITLE = "===== Summary ====="


def refusal_table(refusals: Sequence[Refusal]) -> str:
    """Return why the parser rejects the model: function stack, operator, node, reason."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(" -> ".join(refusal.stack), []).append(refusal)
    rows = [(stack, each.op, each.name, each.reason) for stack, found in groups.items() for each in found]
    return _table(("Stack trace", "Operator", "Node", "Reason"), rows)


def part_table(reasons: Mapping[tuple[str, str], Sequence[tuple[int, int]]]) -> str:
    """Return unsupported parts by operator and reason: their number, first node and the one after the last."""
    rows = [(op, str(len(spans)), reason, str([list(span) for span in spans]))
            for (op, reason), spans in reasons.items()]  # fmt: skip
    return _table(("Operator", "Count", "Reason", "Nodes"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, *([shown(cell, 2000) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([_TITLE, lines[0], "-" * (sum(widths) + 3 * (len(head) - 1)), *lines[1:], ""])

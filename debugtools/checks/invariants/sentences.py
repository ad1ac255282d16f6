"""What a check comes to, in one sentence for somebody who has not read the table."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.spec import Located, RelationRow

_LINES = {
    "other rows": "a row does not change when other rows change",
    "permuted rows": "rows in another order give the same results in that order",
    "equal rows": "equal rows give equal results",
    "alone": "a row of a batch gives what it gives alone",
    "another shape": "with other lengths too, a row does not depend on other rows",
    "padding": "what stands at masked positions changes nothing at the others",
    "repeated runs": "the same inputs give the same results again",
    "threads": "the number of threads changes no more than rounding",
}
_BROKEN = {
    "other rows": "Row {row} of the batch changes when other rows change",
    "alone": "Row {first} of a batch is not what the same row gives alone",
    "equal rows": "Equal rows of the batch give different results: row {row} is not row 0",
    "permuted rows": "In another order, row {row} of the batch gives something else",
    "padding": "What stands at masked positions changes the results at the others",
    "repeated runs": "The same inputs give other results when they are run again",
    "threads": "Another number of threads gives other results, by more than rounding",
    "another shape": "With other lengths, row {row} of the batch changes when other rows change, or is alone",
}


def line(relation: str) -> str:
    """What a relation says."""
    return _LINES.get(relation, "")


def conclusion(rows: Sequence[RelationRow]) -> str:
    """The sentence of all relations."""
    broken = [row for row in rows if row.status == "broken"]
    if broken:
        return _sentence(min(broken, key=lambda row: (row.where is None, row.relation == "repeated runs")))
    obeyed = [row.relation for row in rows if row.status == "obeyed"]
    left = [row.relation for row in rows if row.status == "not checked"]
    if not obeyed:
        return "Nothing was checked: see why at each relation."
    text = f"No relation is broken: {', '.join(obeyed)} {'is' if len(obeyed) == 1 else 'are'} obeyed."
    if left:
        text += f" Not checked: {', '.join(left)}."
    seen = next((row for row in rows if row.status == "not checked" and row.rel > 0), None)
    if seen is not None:
        text += f" But look at {seen.relation!r}: {seen.text}"
    return text


def _sentence(row: RelationRow) -> str:
    if row.row is None and row.relation == "other rows":  # an output that lost its rows
        head = f"The rows of the batch are not the rows of the results: {row.text}"
        return f"{head}; it first breaks at {place(row.where)}." if row.where else f"{head}."
    at = 0 if row.row is None else row.row
    head = _BROKEN[row.relation].format(row=at, first=at)
    if row.where is None:
        return f"{head}: {row.text}." if row.text else f"{head}."
    return f"{head}: it first breaks at {place(row.where)}."


def place(where: Located) -> str:
    """A node, its operator, and where the batch is in what it reads."""
    name = shown(where.node or where.tensor, 120)
    text = f"{where.op} {name!r}"
    if where.note:
        return f"{text}, {where.note}"
    return text

"""The filter of the Perf screen: words, `op:MatMul`, `share>1`, `ms>=0.1`; every one of them must hold."""

import re
from collections.abc import Callable

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import ProfileRow

Test = Callable[[ProfileRow], bool]

FIELDS = {"share": "percent", "ms": "typical_ms", "mean": "mean_ms", "median": "median_ms", "calls": "calls"}
_LABELS = ("op", "provider", "node", "layer")
_NUMBER = re.compile(r"(?P<field>[a-z]+)(?P<sign>>=|<=|>|<|==?)(?P<value>.+)")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b, "==": lambda a, b: a == b,
}  # fmt: skip


def parse_filter(text: str) -> Test:
    """The test of a filter; an empty one lets all pass. Raises UsageError that says what is wrong."""
    tests = [_test(word) for word in text.split() if word != "and"]
    return lambda row: all(test(row) for test in tests)


def _test(word: str) -> Test:
    match = _NUMBER.fullmatch(word.lower())
    if match is not None:
        return _number_test(match["field"], match["sign"], match["value"])
    label, colon, value = word.lower().partition(":")
    if colon and label in _LABELS and value:
        key = "name" if label == "layer" else label
        if label == "op":
            return lambda row: row.op.lower() == value
        return lambda row: value in (getattr(row, key) or "").lower()
    text = word.lower()
    return lambda row: any(text in told.lower() for told in (row.name, row.op, row.node, row.tensor))


def _number_test(field: str, sign: str, value: str) -> Test:
    if field not in FIELDS:
        raise UsageError(f"no column '{shown(field, 30)}'; there are {', '.join(FIELDS)}, and op:NAME")
    try:
        wanted = float(value)
    except ValueError:
        raise UsageError(f"{field} needs a number, not '{shown(value, 30)}'") from None
    key, compare = FIELDS[field], _SIGNS[sign]
    return lambda row: compare(getattr(row, key), wanted)

"""Two JSON documents, value by value, with the place of each difference."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.outcome import Outcome

_ABSENT = object()
_PLAIN = (str, int, float, bool, type(None))
_Found = tuple[str, Any, Any]


def diff_json(a: Path, b: Path) -> Outcome:
    """Compare two JSON files. The order of keys does not matter. BadFile if one cannot be read."""
    outcome = Outcome("json")
    changed, first, second = (
        outcome.section("values that differ", "changed"),
        outcome.section("only in the first", "only_a"),
        outcome.section("only in the second", "only_b"),
    )
    one, other = read_json(a), read_json(b)
    for place, x, y in _differences(one, other):
        if y is _ABSENT:
            first.add(f"{shown(place, 200)}: {_text(x)}", place=place, value=_bare(x))
        elif x is _ABSENT:
            second.add(f"{shown(place, 200)}: {_text(y)}", place=place, value=_bare(y))
        else:
            changed.add(f"{shown(place, 200)}: {_text(x)} → {_text(y)}", place=place, a=_bare(x), b=_bare(y))
    counts = [len(section.items) for section in (changed, first, second)]
    outcome.summary = "equal" if outcome.equal else (
        f"documents differ: {counts[0]} values differ, {counts[1]} are only in the first, {counts[2]} in the second"
    )  # fmt: skip
    if outcome.equal and one in ([], {}):
        outcome.nothing_compared("both documents are empty")
    return outcome


def _differences(a: Any, b: Any) -> Iterator[_Found]:
    waiting: list[_Found] = [("$", a, b)]
    while waiting:
        place, x, y = waiting.pop()
        if isinstance(x, dict) and isinstance(y, dict):
            keys = dict.fromkeys([*x, *y])
            inner = [(f"{place}.{key}", x.get(key, _ABSENT), y.get(key, _ABSENT)) for key in keys]
        elif isinstance(x, list) and isinstance(y, list):
            inner = [(f"{place}[{i}]", _at(x, i), _at(y, i)) for i in range(max(len(x), len(y)))]
        else:
            if not _same(x, y):
                yield place, x, y
            continue
        waiting += reversed(inner)


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _ABSENT


def _same(x: Any, y: Any) -> bool:
    """Equal, and of one type but for numbers; NaN is NaN."""
    numbers = all(type(value) in (int, float) for value in (x, y))
    return (numbers or type(x) is type(y)) and bool(x == y or (x != x and y != y))


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
    return shown(json.dumps(value, ensure_ascii=False), 120)


def _bare(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else _text(value)

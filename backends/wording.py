"""What Python, numpy and msgspec say of a wrong value, and a job's journal of what happened, in words for people."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.text import one_line, shown

_KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "list": "a list",
    "tuple": "a list", "array": "a list", "dict": "an object with fields", "object": "an object with fields",
    "NoneType": "nothing", "null": "nothing", "bytes": "bytes", "set": "a set",
}  # fmt: skip


def _kind(name: str) -> str:
    return " or ".join(_KINDS.get(part.strip(), part.strip()) for part in name.replace("`", "").split("|"))


def _named(text: str) -> str:
    """`int` >= 1 with the kind in words."""
    return re.sub(r"`([\w|\s]+)`", lambda found: _kind(found[1]), text)


def _at(path: str | None) -> str:
    """`$.a[0]` as `a[0]`, followed by a colon."""
    place = (path or "").removeprefix("$").removeprefix(".")
    return f"{place}: " if place else ""


_Rule = tuple[str, Callable[[re.Match[str]], str]]
_PATH = r"(?: - at `(?:key in )?([^`]*)`)?$"
_RULES: tuple[_Rule, ...] = (
    (r"^'(\w+)' object cannot be interpreted as an integer$",
     lambda m: f"{_kind(m[1])} where a whole number is needed"),
    (r"^'(\w+)' object is not iterable$", lambda m: f"{_kind(m[1])} where a list is needed"),
    (r"^'(\w+)' object is not subscriptable$", lambda m: f"{_kind(m[1])} where a list or an object is needed"),
    (r"^'(\w+)' object is not callable$", lambda m: f"{_kind(m[1])} where a function is needed"),
    (r"^'(\w+)' object has no attribute '(\w+)'$", lambda m: f"{_kind(m[1])} has no {m[2]!r}"),
    (r"^(?:cannot unpack non-iterable|object of type) '?(\w+)'? (?:object|has no len\(\))$",
     lambda m: f"{_kind(m[1])} where a list is needed"),
    (r"^unhashable type: '(\w+)'$", lambda m: f"{_kind(m[1])} where a name is needed"),
    (r"^(?:list|tuple|string) indices must be integers.*$", lambda m: "a name where a list's place is needed"),
    (r"^could not convert string to float: (.*)$", lambda m: f"{m[1]} is not a number"),
    (r"^invalid literal for int\(\) with base 10: (.*)$", lambda m: f"{m[1]} is not a whole number"),
    (r"^setting an array element with a sequence\..*$", lambda m: "its lists are not all of one length"),
    (r"^(?:int\(\)|float\(\)) argument must be .*, not '(\w+)'$", lambda m: f"{_kind(m[1])} where a number is needed"),
    (r"^Expected `([^`]*)`, got `([^`]*)`" + _PATH,
     lambda m: f"{_at(m[3])}{_kind(m[2])} where there should be {_kind(m[1])}"),
    (r"^Object missing required field `([^`]*)`" + _PATH, lambda m: f"{_at(m[2])}`{m[1]}` is missing"),
    (r"^Object contains unknown field `([^`]*)`" + _PATH, lambda m: f"{_at(m[2])}there is no field `{m[1]}`"),
    (r"^Invalid (?:enum )?value (.*?)" + _PATH, lambda m: f"{_at(m[2])}{m[1]} is none of the values there are"),
    (r"^Expected (.*?)" + _PATH, lambda m: f"{_at(m[2])}there should be {_named(m[1])}"),
)  # fmt: skip


def in_words(error: BaseException, limit: int = 300) -> str:
    """What an error says, as one line safe to show, without the terms of Python's own types."""
    text = one_line(str(error))
    if type(error) is KeyError:
        return shown(f"there is no {text}", limit)
    told = (words(found) for pattern, words in _RULES if (found := re.match(pattern, text, re.DOTALL)))
    return shown(next(told, text), limit)


def event_words(event: Mapping[str, Any]) -> str:
    """One event of a job's journal, as one line safe to show."""
    kind = str(event.get("type", ""))
    made = _EVENTS.get(kind)
    return shown(one_line(made(event) if made else kind.replace("_", " ")), 300)


def _state(event: Mapping[str, Any]) -> str:
    attempt = event.get("attempt")
    return f"{event.get('state', 'it began')}{f', attempt {attempt}' if attempt not in (None, 1) else ''}"


def _progress(event: Mapping[str, Any]) -> str:
    total = event.get("total")
    counted = f"{event.get('done') or 0:g}{f' of {total:g}' if total else ''} {event.get('unit') or ''}".strip()
    return f"{counted}: {event['text']}" if event.get("text") else counted


def _row(event: Mapping[str, Any]) -> str:
    return f"a row of the table {event.get('table', '')}".rstrip()


_EVENTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "state": _state, "progress": _progress, "row": _row,
    "log": lambda event: str(event.get("text", "")), "warning": lambda event: f"warning: {event.get('text', '')}",
    "question": lambda event: f"it asked: {event.get('text', '')}", "result": lambda event: "its result",
    "reply": lambda event: "an answer came",
}  # fmt: skip

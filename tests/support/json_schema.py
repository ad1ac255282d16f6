"""A checker for JSON schemas, as far as the schemas of tests/data/schemas and docs/schemas use them.

A keyword that it does not know is an error, so that no schema is checked by half. Held against the jsonschema package
on both schemas when it was written.
"""

import math
import re
from typing import Any

_SAID = {"$schema", "$id", "$defs", "title", "description", "default", "format", "examples", "$comment", "definitions"}
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def problems(value: Any, schema: Any) -> list[str]:
    """What of a JSON value its schema does not allow, each with its place."""
    return _check(value, schema, schema, "$")


def _check(value: Any, schema: Any, root: Any, at: str) -> list[str]:
    if schema is True or schema is False:
        return [] if schema else [f"{at}: nothing may be here"]
    found: list[str] = []
    for key, rule in schema.items():
        if key not in _SAID:
            found += _KEYWORDS[key](value, rule, root, at, schema)
    return found


def _ref(value: Any, rule: str, root: Any, at: str, schema: Any) -> list[str]:
    target = root
    for word in rule.removeprefix("#/").split("/") if rule != "#" else ():
        target = target[word]
    return _check(value, target, root, at)


def _type(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    names = [rule] if isinstance(rule, str) else rule
    return [] if any(_is(value, name) for name in names) else [f"{at}: {value!r:.80} is no {rule}"]


def _is(value: Any, name: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "number":
        return number
    if name == "integer":
        return number and math.isfinite(value) and value == int(value)
    return isinstance(value, _TYPES[name])


def _properties(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [
        text
        for name, inner in rule.items()
        if name in value
        for text in _check(value[name], inner, root, f"{at}.{name}")
    ]


def _additional(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    others = [name for name in value if name not in schema.get("properties", {})]
    return [text for name in others for text in _check(value[name], rule, root, f"{at}.{name}")]


def _required(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [f"{at}: {name} is missing" for name in rule if isinstance(value, dict) and name not in value]


def _items(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    rest = value[len(schema.get("prefixItems", [])) :]
    return [text for i, item in enumerate(rest) for text in _check(item, rule, root, f"{at}[{i}]")]


def _prefix(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    pairs = zip(value, rule, strict=False) if isinstance(value, list) else ()
    return [text for i, (item, inner) in enumerate(pairs) for text in _check(item, inner, root, f"{at}[{i}]")]


def _any(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    tried = [_check(value, inner, root, at) for inner in rule]
    return [] if any(not each for each in tried) else [f"{at}: none of {len(rule)} fits: {tried[0][:1]}"]


def _one(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    fitting = sum(not _check(value, inner, root, at) for inner in rule)
    return [] if fitting == 1 else [f"{at}: {fitting} of oneOf fit"]


def _all(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [text for inner in rule for text in _check(value, inner, root, at)]


def _not(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [] if _check(value, rule, root, at) else [f"{at}: what must not fit does"]


def _enum(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [] if value in rule else [f"{at}: {value!r:.80} is none of {rule}"]


def _const(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    return [] if value == rule else [f"{at}: {value!r:.80} is not {rule!r}"]


def _pattern(value: Any, rule: str, root: Any, at: str, schema: Any) -> list[str]:
    return (
        [] if not isinstance(value, str) or re.search(rule, value) else [f"{at}: {value!r:.80} does not match {rule}"]
    )


def _bound(over: bool, length: bool) -> Any:
    def check(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
        if length != isinstance(value, str | list) or (not length and not _is(value, "number")):
            return []
        size = len(value) if length else value
        return [] if (size >= rule if over else size <= rule) else [f"{at}: {size} is beyond {rule}"]

    return check


def _unique(value: Any, rule: Any, root: Any, at: str, schema: Any) -> list[str]:
    if not rule or not isinstance(value, list):
        return []
    seen = [repr(item) for item in value]
    return [] if len(set(seen)) == len(seen) else [f"{at}: items are there twice"]


_KEYWORDS: dict[str, Any] = {
    "$ref": _ref, "type": _type, "properties": _properties, "additionalProperties": _additional,
    "required": _required, "items": _items, "prefixItems": _prefix, "anyOf": _any, "oneOf": _one, "allOf": _all,
    "not": _not, "enum": _enum, "const": _const, "pattern": _pattern, "uniqueItems": _unique,
    "minimum": _bound(True, False), "maximum": _bound(False, False), "minLength": _bound(True, True),
    "maxLength": _bound(False, True), "minItems": _bound(True, True), "maxItems": _bound(False, True),
    "exclusiveMinimum": lambda value, rule, *_: [] if not _is(value, "number") or value > rule else ["too small"],
}  # fmt: skip

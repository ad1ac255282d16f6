"""Rules of dumps as words of a command line, and as JSON or TOML files. Imports no numpy."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import MOST
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.specs import DumpRule
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.type_names import TYPE_NAMES

FIELDS = ("name", "iteration", "rank")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_STEP = re.compile(r"\d+(?:,\d+)*|-?\d+(?:x-?\d+)*")
_FORMS = "PATTERN with {name}, OLD=NEW, GLOB:0,2,1 (a permutation), GLOB:1x64x-1 (a shape), GLOB:TYPE or FILE.json"
_MOST_STARS = 8


def parse_rule(words: Iterable[str]) -> DumpRule | None:
    """The rule that words say, None for no words. UsageError for a word that says nothing."""
    rule = DumpRule()
    for word in words:
        rule = _joined(rule, _parsed(word))
    return None if rule == DumpRule() else rule


def rule_words(rule: DumpRule | None) -> list[str]:
    """The words that say it."""
    if rule is None:
        return []
    return [
        *([rule.pattern] if rule.pattern else []),
        *(f"{old}={new}" for old, new in rule.replace),
        *(f"{glob}:{value}" for table in (rule.layouts, rule.types) for glob, value in table.items()),
    ]


def _joined(first: DumpRule, second: DumpRule) -> DumpRule:
    if first.pattern and second.pattern:
        raise UsageError(f"two patterns for one dump: {shown(first.pattern, 80)} and {shown(second.pattern, 80)}")
    return DumpRule(
        pattern=first.pattern or second.pattern,
        replace=[*first.replace, *second.replace],
        layouts=first.layouts | second.layouts,
        types=first.types | second.types,
    )


def _parsed(word: str) -> DumpRule:
    if _FIELD.search(word):
        return _checked(DumpRule(pattern=word))
    glob, colon, value = word.rpartition(":")
    if colon and glob and (value in TYPE_NAMES.values() or _is_layout(value)):
        table = "types" if value in TYPE_NAMES.values() else "layouts"
        return DumpRule(**{table: {glob: value}})  # type: ignore[arg-type]
    if word.lower().endswith((".json", ".toml")):
        return read_rule(Path(word))
    old, equals, new = word.partition("=")
    if equals and old:
        return DumpRule(replace=[(old, new)])
    raise UsageError(f"{shown(word, 120)!r} is no rule of a dump: give {_FORMS}")


def _is_layout(value: str) -> bool:
    return bool(value.split()) and all(_STEP.fullmatch(step) for step in value.split())


def read_rule(path: Path) -> DumpRule:
    """The rule in a file: {"pattern", "replace": {OLD: NEW}, "layouts": {GLOB: STEPS}, "types": {GLOB: TYPE}}.

    BadFile if it is none.
    """
    fields = _read_toml(path) if path.name.lower().endswith(".toml") else read_json(path)
    if not isinstance(fields, dict) or not fields or fields.keys() - {"pattern", "replace", "layouts", "types"}:
        raise BadFile(path, "no rule of a dump: it has pattern, replace, layouts or types, and nothing else")
    tables = {name: fields.get(name, {}) for name in ("replace", "layouts", "types")}
    pattern = fields.get("pattern", "")
    for table in tables.values():
        if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
            raise BadFile(path, "replace, layouts and types are tables of texts")
    if not isinstance(pattern, str):
        raise BadFile(path, "its pattern is no text")
    made = DumpRule(
        pattern=pattern, replace=list(tables["replace"].items()), layouts=tables["layouts"], types=tables["types"]
    )
    return _checked(made)


def _read_toml(path: Path) -> Any:
    from layerwise._tool.backends.formats.toml import read_toml

    return read_toml(path, MOST)


def _checked(rule: DumpRule) -> DumpRule:
    """UsageError if a part of it cannot be used."""
    used = _FIELD.findall(rule.pattern)
    if rule.pattern and (len(set(used)) < len(used) or not used or rule.pattern.count("*") > _MOST_STARS):
        raise UsageError(
            f"the pattern {shown(rule.pattern, 120)!r} needs {{name}}, {{iteration}} or {{rank}}, each once"
        )
    for text in rule.layouts.values():
        if not _is_layout(text):
            raise UsageError(f"{shown(text, 80)!r} is no layout: 0,2,1 (a permutation) or 1x64x-1 (a shape)")
    for text in rule.types.values():
        if text not in TYPE_NAMES.values():
            raise UsageError(f"{shown(text, 80)!r} is no data type; one of: {', '.join(TYPE_NAMES.values())}")
    if any(not old for old, _ in rule.replace):
        raise UsageError("an empty text cannot be replaced in names")
    return rule


def pattern_of(text: str) -> "re.Pattern[str]":
    """The regular expression of a pattern: {name} any text, {iteration} and {rank} numbers, `*` within a folder."""
    parts = []
    for part in re.split(r"(\{(?:" + "|".join(FIELDS) + r")\}|\*)", text):
        if part == "*":
            parts.append("[^/]*")
        elif field := _FIELD.fullmatch(part):
            parts.append(f"(?P<{field[1]}>{'.+' if field[1] == 'name' else '[0-9]{1,9}'})")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts), re.DOTALL)

"""Fields of what a search's rows and results hold, as the screens read them: others are left out."""

from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.jobs.journal.schema import are_texts, is_count, is_object, is_text, or_none

Check = Callable[[Any], bool]


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_object, value))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_float(value: Any) -> bool:
    """Any number: an error may be infinite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _either(*checks: Check) -> Check:
    return lambda value: value is None or any(check(value) for check in checks)


_OBJECT, _OBJECTS, _NUMBER = or_none(is_object), or_none(_are_objects), or_none(_is_float)
_KINDS: Mapping[str, Check] = {
    **dict.fromkeys(("measured", "candidate", "files", "artifact", "canary"), _OBJECT),
    **dict.fromkeys(("region", "found", "frontier"), _OBJECTS),
    **dict.fromkeys(("labels", "runs", "inputs", "outputs"), or_none(_is_list)),
    **dict.fromkeys(("level", "seconds", "low", "kept", "max_abs", "max_rel", "rel_l2", "local", "local_abs"), _NUMBER),
    **dict.fromkeys(("i", "n", "checks", "n_suspects", "position"), or_none(is_count)),
    "suspects": _either(_are_objects, is_count),
    "nodes": _either(_are_objects, are_texts, is_count, _is_list),
    "evidence": _either(_is_list, is_text),
    "path": or_none(is_text),
    "verdict": or_none(is_text),
    "summary": or_none(is_text),
}


def known_fields(value: Any) -> Any:
    """`value` without the fields, at any depth, that no search writes so."""
    if isinstance(value, list):
        return [known_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    fits = ((key, item) for key, item in value.items() if key not in _KINDS or _KINDS[key](item))
    return {key: known_fields(item) for key, item in fits}

"""Version numbers."""

from typing import Any

_SUFFIXES = ("a", "b", "rc", "post", "dev")


def version(version_str: str) -> tuple[Any, ...]:
    """A version as a tuple that compares as versions do: "1.2.0+cu1" is (1, 2, 0, "cu1")."""
    parts: list[Any] = []
    for text in version_str.split("."):
        number, plus, local = text.partition("+")
        parts += [_part(number), local] if plus else [_part(number)]
    return tuple(parts)


def _part(text: str) -> Any:
    """A number; of "0rc1" its three pieces; any other text as it is."""
    try:
        return int(text)
    except ValueError:
        suffix = next((each for each in _SUFFIXES if each in text), None)
        return text if suffix is None else text.partition(suffix)

"""Names that belong together though they differ: as Polygraphy pairs them, and as file names are made of them."""

import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import unquote

_WORDS = re.compile(r"[a-z]+|[0-9]+")
_LETTER_OR_TWO = 2


def similar_name(name: str, among: Sequence[str], place: int, used: Collection[str] = ()) -> str | None:
    """Return the name itself, else the first that contains it or is contained in it (in any case), else that at
    `place`; None if there are fewer. used: names that belong to others.

    A name of a letter or two says nothing within a word: `e` is no `image`, but `x` is `x_1`.
    """
    if name in among:
        return name
    found = next((other for other in among if other not in used and _alike(name.lower(), other.lower())), None)
    placed = among[place] if place < len(among) and among[place] not in used else None
    return found or placed


def _alike(name: str, other: str) -> bool:
    shorter, longer = sorted((name, other), key=len)
    if len(shorter) <= _LETTER_OR_TWO:
        return shorter in _WORDS.findall(longer)
    return shorter in longer


_OTHER = re.compile(r"[^0-9A-Za-z]+")


def written_otherwise(names: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Return name -> the one of `others` that says the same in letters and digits (`/a/b.0`: `_a_b_0`, `%2Fa%2Fb.0`).

    Names that are on both sides, and what is not one to one, are left out.
    """
    known, there = set(names), set(others)
    first, second = _by_letters(known - there), _by_letters(there - known)
    return {name: second[key] for key, name in first.items() if key in second}


def _by_letters(names: Iterable[str]) -> dict[str, str]:
    """Names by their letters and digits, those alone of which there is one."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(_OTHER.sub("_", unquote(name)).strip("_"), []).append(name)
    return {key: same[0] for key, same in found.items() if key and len(same) == 1}

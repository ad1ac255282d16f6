"""Names that belong together though they differ: as Polygraphy pairs them, and as file names are made of them."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote


def similar_name(name: str, among: Sequence[str], place: int) -> str | None:
    """Return the name itself, else the first that contains it or is contained in it (in any case), else that at
    `place`; None if there are fewer.
    """
    if name in among:
        return name
    plain = name.lower()
    found = next((other for other in among if plain in other.lower() or other.lower() in plain), None)
    return found or (among[place] if place < len(among) else None)


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

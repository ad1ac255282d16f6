"""Names that belong together though they differ, as Polygraphy pairs them."""

from collections.abc import Sequence


def similar_name(name: str, among: Sequence[str], place: int) -> str | None:
    """Return the name itself, else the first that contains it or is contained in it (in any case), else that at
    `place`; None if there are fewer.
    """
    if name in among:
        return name
    plain = name.lower()
    found = next((other for other in among if plain in other.lower() or other.lower() in plain), None)
    return found or (among[place] if place < len(among) else None)

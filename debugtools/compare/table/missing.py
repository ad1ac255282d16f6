"""What is said of tensors that only one side has."""

from collections.abc import Mapping, Sequence

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.debugtools.compare.sides.side import Side


def not_given(side: Side, name: str = "") -> str:
    """Why a tensor has no counterpart on a side."""
    return side.naming.missing.get(name) or f"{shown(side.name, 80)} does not give it"


def nothing_in_common(
    sides: Sequence[Side], pair: Pair, first: Mapping[str, Array], second: Mapping[str, Array]
) -> str:
    """The message where a pair of runs has no output in common."""
    lists = [", ".join(shown(name, 60) for name in list(found)[:10]) or "none" for found in (first, second)]
    return (
        f"no outputs in common: {shown(sides[pair[0]].name, 80)} gives {lists[0]}; "
        f"{shown(sides[pair[1]].name, 80)} gives {lists[1]}. Names must match exactly; map others with --rename"
    )
